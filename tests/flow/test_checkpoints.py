"""Checkpoints around calls: commands, tools from elsewhere and hooks are taken back; what only reads costs nothing."""

import asyncio
import math
import os
import sys
from pathlib import Path

import pytest

from ferrule import Call, Engine, Reply, Settings, tool
from ferrule.core.errors import ToolFailure
from ferrule.files.journal import Journal
from ferrule.hooks import Hook
from ferrule.settings import CheckpointSettings, SandboxSettings


def opened(tmp_path: Path, **options) -> Engine:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    settings = options.pop("settings", Settings())
    return Engine(work, settings=settings, state=tmp_path / "state", ask=lambda _: True, dialect="claude", **options)


def names(reply: Reply) -> list[str]:
    """Of the files that a call has changed."""
    return [os.path.basename(path) for path in reply.changes.files] if reply.changes is not None else []


async def bash(engine: Engine, command: str, **more):
    return await engine.call("Bash", command=command, **more)


async def test_a_reply_tells_what_a_command_changed_and_one_undo_takes_it_back(tmp_path):
    async with opened(tmp_path) as engine:
        (tmp_path / "work/a.txt").write_text("one\ntwo\n")
        reply = await bash(engine, "echo three >> a.txt; mkdir sub; echo x > sub/b")
        await engine.undo()

    assert names(reply) == ["a.txt", "b"]
    assert (reply.changes.added, reply.changes.removed) == (2, 0)
    assert {path.name: path.read_text() for path in (tmp_path / "work").iterdir()} == {"a.txt": "one\ntwo\n"}


async def test_a_command_that_only_reads_or_changes_nothing_leaves_no_entry(tmp_path):
    async with opened(tmp_path) as engine:
        (tmp_path / "work/a.txt").write_text("one\n")
        replies = [await bash(engine, line) for line in ("cat a.txt", "ls -la", "touch -a a.txt; true > /dev/null")]

        assert [reply.changes for reply in replies] == [None] * 3
        assert engine.need(Journal).entries() == []


async def test_edits_and_commands_are_undone_in_their_order(tmp_path):
    path = tmp_path / "work/a.txt"
    seen = []
    async with opened(tmp_path) as engine:
        await engine.call("Write", file_path=str(path), content="one\n")
        await bash(engine, "echo two >> a.txt")
        await engine.call("Read", file_path=str(path))
        await engine.call("Edit", file_path=str(path), old_string="one", new_string="1")
        await bash(engine, "rm a.txt")
        for _ in range(4):
            await engine.undo()
            seen.append(path.read_text() if path.exists() else None)
        for _ in range(4):
            await engine.redo()

    assert seen == ["1\ntwo\n", "one\ntwo\n", "one\n", None]
    assert not path.exists()


async def test_what_a_tool_from_elsewhere_writes_is_taken_back(tmp_path):
    path = tmp_path / "work/a.txt"

    @tool
    def scribble() -> str:
        """Write over a file."""
        path.write_text("scribbled")
        return "done"

    async with opened(tmp_path, tools=[scribble]) as engine:
        path.write_text("mine")
        reply = await engine.call("scribble")
        await engine.undo()

    assert names(reply) == ["a.txt"]
    assert path.read_text() == "mine"


async def test_what_a_hook_does_after_an_edit_is_taken_back(tmp_path):
    path = tmp_path / "work/a.txt"

    async def upper(_: object) -> None:
        path.write_text(path.read_text().upper())

    async with opened(tmp_path, hooks=[Hook("PostToolUse", function=upper)]) as engine:
        await engine.call("Write", file_path=str(path), content="words\n")
        changed = path.read_text()
        await engine.undo()
        left = path.exists()

    assert (changed, left) == ("WORDS\n", False)


async def test_what_a_background_command_changed_is_one_step(tmp_path):
    path = tmp_path / "work/late"
    async with opened(tmp_path) as engine:
        await bash(engine, "echo x > early")
        await bash(engine, "until [ -e go ]; do sleep 0.01; done; echo y > late", run_in_background=True)
        (tmp_path / "work/go").touch()
        async with asyncio.timeout(30):
            while not path.exists():
                await asyncio.sleep(0.01)
        done = await engine.undo()
        left = sorted(one.name for one in (tmp_path / "work").iterdir())

    assert done.entry.about.startswith("in the background: until")
    assert left == ["early"]


@pytest.mark.parametrize("is_late", [False, True], ids=["at-once", "after-a-while"])
async def test_what_is_written_while_a_command_runs_in_the_background_is_no_change_of_the_command(tmp_path, is_late):
    work = tmp_path / "work"
    async with opened(tmp_path) as engine:
        await bash(engine, "echo x > early")
        await bash(engine, "until [ -e go ]; do sleep 0.01; done; echo y > late", run_in_background=True)
        await engine.call("Write", file_path=str(work / "new/sub/a.txt"), content="a\n")
        await engine.call("Write", file_path=str(work / "b.txt"), content="b\n")
        if is_late:  # as if everything was looked at long ago
            engine._services.checkpoints()._sure_at = -math.inf
        done = [await engine.undo(), await engine.undo()]
        left = sorted(one.name for one in work.iterdir())
        again = await engine.redo()
        (work / "go").touch()

    assert [one.entry.kind for one in (*done, again)] == ["write"] * 3
    assert left == ["early"]


async def test_a_preview_does_not_forget_a_command_that_still_runs(tmp_path):
    precious = tmp_path / "work/precious"
    async with opened(tmp_path) as engine:
        precious.write_text("mine")
        engine.begin_prompt(1)
        await bash(engine, "echo x > early")
        await bash(engine, "until [ -e go ]; do sleep 0.01; done; rm precious", run_in_background=True)
        await engine.rewind_preview(1)
        (tmp_path / "work/go").touch()
        async with asyncio.timeout(30):
            while precious.exists():
                await asyncio.sleep(0.01)
        await engine.undo()
        back = precious.read_text()

    assert back == "mine"


async def test_what_the_user_wrote_between_two_prompts_is_not_rewound_without_a_question(tmp_path):
    path = tmp_path / "work/f"
    async with opened(tmp_path) as engine:
        path.write_text("0\n")
        engine.begin_prompt(1)
        await bash(engine, "echo 1 > f; echo x > other")
        path.write_text("1\nhours of the user's own work\n")
        engine.begin_prompt(2)
        await bash(engine, "echo 2 >> f")
        done = await engine.rewind(1)
        kept = path.read_text()
        await engine.rewind(1, over=True)

    assert (done.by_hand, kept) == ((str(path),), "1\nhours of the user's own work\n2\n")
    assert path.read_text() == "0\n"


async def test_a_command_whose_changes_cannot_be_written_down_says_so(tmp_path, monkeypatch):
    async with opened(tmp_path) as engine:
        (tmp_path / "work/a").write_text("mine")
        await bash(engine, "echo x > early")

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(engine.need(Journal), "record", full)
            reply = await bash(engine, "rm a")
        await engine.undo()
        await engine.undo()

    assert any("cannot be undone" in note for note in reply.notes)
    assert (tmp_path / "work/a").read_text() == "mine"


async def test_a_command_that_is_stopped_is_taken_back_too(tmp_path):
    async with opened(tmp_path) as engine:
        (tmp_path / "work/a").write_text("mine")
        reply = await bash(engine, "rm a; sleep 60", timeout=1000)
        await engine.undo()

    assert reply.changes is not None
    assert (tmp_path / "work/a").read_text() == "mine"


async def test_where_nothing_can_be_kept_a_note_says_so_and_commands_run_as_before(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/checkpoints").write_text("a file where a folder should be")
    async with opened(tmp_path) as engine:
        (tmp_path / "work/a").write_text("mine")
        first, second = [await bash(engine, f"echo {number} > a") for number in (1, 2)]

        assert "cannot be undone in this session" in first.notes[0]
        assert (first.status, second.status, first.changes, second.notes) == ("done", "done", None, ())
        with pytest.raises(ToolFailure):
            await engine.undo()


async def test_a_switch_turns_them_off(tmp_path):
    async with opened(tmp_path, settings=Settings(checkpoints=CheckpointSettings(keep=False))) as engine:
        reply = await bash(engine, "echo x > a")

    assert reply.changes is None
    assert not (tmp_path / "state/checkpoints").exists()


@pytest.mark.parametrize("use", ["auto", "none"])
async def test_a_secret_file_is_kept_only_where_a_command_could_change_it(tmp_path, use):
    settings = Settings(sandbox=SandboxSettings(use=use))
    async with opened(tmp_path, settings=settings) as engine:
        (tmp_path / "work/.env").write_text("TOKEN=only-here\n")
        await bash(engine, "echo x > a")
    kept = [path.read_bytes() for path in (tmp_path / "state/checkpoints").rglob("*") if path.is_file()]

    assert any(b"only-here" in raw for raw in kept) == (use == "none")
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "state/checkpoints").rglob("*")} == {0}


async def test_commands_see_nothing_of_what_is_kept(tmp_path):
    async with opened(tmp_path) as engine:
        await bash(engine, "echo kept > a")
        reply = await bash(engine, f"ls {tmp_path / 'state'} 2>&1; echo z > b")

    assert "checkpoints" not in str(reply.result)


async def test_an_engine_that_is_killed_in_the_middle_of_a_command_leaves_what_can_be_taken_back(tmp_path):
    async with opened(tmp_path) as engine:
        (tmp_path / "work/a").write_text("mine")
        await bash(engine, "echo x > b")
    script = (
        "import asyncio, sys\nfrom ferrule import Engine\n"
        "async def main():\n"
        "    async with Engine(sys.argv[1], state=sys.argv[2], ask=lambda _: True, dialect='claude') as engine:\n"
        "        await engine.call('Bash', command='rm a; touch gone; sleep 60')\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path / "work"), str(tmp_path / "state")
    )
    async with asyncio.timeout(60):
        while not (tmp_path / "work/gone").exists():
            await asyncio.sleep(0.01)
        process.kill()
        await process.wait()
    async with opened(tmp_path) as engine:
        done = await engine.undo()

    assert done.entry.about == "rm a; touch gone; sleep 60"
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["a", "b"]


async def test_calls_of_one_message_are_told_apart(tmp_path):
    async with opened(tmp_path) as engine:
        calls = [Call("Bash", {"command": f"echo {name} > {name}"}) for name in "abc"]
        replies = await engine.run(calls)

    assert [names(reply) for reply in replies] == [["a"], ["b"], ["c"]]
