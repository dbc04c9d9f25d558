"""Attacks that once worked, each through the whole engine."""

import asyncio
import os
import time

import pytest

from ferrule import Call, Engine, Question, Settings
from ferrule.settings import LimitSettings


def only_files(question: Question) -> bool:
    """A person who allows files to be written and nothing else."""
    return question.kind == "call" and question.name in ("create_file", "edit_file")


@pytest.mark.usefixtures("asking")
async def test_files_written_in_the_same_message_do_not_make_a_command_harmless(tmp_path):
    (tmp_path / "sub").mkdir()
    config = f"[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = touch {tmp_path}/PWNED\n"
    calls = [
        Call("create_file", {"path": f"sub/{name}", "content": content})
        for name, content in {
            "HEAD": "ref: refs/heads/main",
            "objects/k": "",
            "refs/k": "",
            "other": config,
        }.items()
    ]
    async with Engine(tmp_path, ask=only_files) as engine:
        replies = await engine.run([*calls, Call("Bash", {"cmd": "git status", "cwd": "sub"})])

    assert replies[-1].status == "rejected-by-user"
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.usefixtures("asking")
async def test_a_repository_in_disguise_is_not_obeyed(tmp_path):
    sub = tmp_path / "sub"
    for name in ("objects", "refs"):
        (sub / name).mkdir(parents=True)
    (sub / "HEAD").symlink_to("refs/heads/main")
    (sub / "config").write_text(f"[core]\n\tworktree = ..\n\tfsmonitor = touch {tmp_path}/PWNED\n")

    async with Engine(tmp_path) as engine:
        reply = await engine.call("Bash", cmd="cd sub && git status")

    assert reply.status == "rejected-by-user"
    assert not (tmp_path / "PWNED").exists()


async def test_a_folder_that_becomes_a_link_leads_nobody_out(tmp_path):
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "d").mkdir(parents=True)
    (work / "d" / "a.txt").write_text("inside\n")
    outside.mkdir()
    (outside / "a.txt").write_text("OUTSIDE-TEXT\n")

    async with Engine(work, ask=lambda question: question.kind == "call") as engine:
        replies = await engine.run(
            [
                Call("Bash", {"cmd": f"rm -r d; ln -s {outside} d"}),
                Call("Grep", {"pattern": "TEXT", "path": "d"}),
                Call("Bash", {"cmd": "pwd -P", "cwd": "d"}),
                Call("Read", {"path": "d/a.txt"}),
                Call("create_file", {"path": "d/b.txt", "content": "x"}),
            ]
        )

    assert [reply.status for reply in replies] == ["done", "error", "error", "error", "error"]
    assert not any("OUTSIDE-TEXT" in reply.text for reply in replies)
    assert os.listdir(outside) == ["a.txt"]


@pytest.mark.parametrize(
    ("link", "target", "call"),
    [
        pytest.param(".env", "dotenv-prod", Call("Read", {"path": ".env"}), id="secret-read"),
        pytest.param(".env", "dotenv-prod", Call("Grep", {"pattern": "K", "path": ".env"}), id="secret-grep"),
        pytest.param(
            ".env", "dotenv-prod", Call("edit_file", {"path": ".env", "old_str": "K", "new_str": "x"}), id="secret-edit"
        ),
        pytest.param(".ssh", "keys", Call("Read", {"path": ".ssh/k"}), id="secret-folder"),
        pytest.param(
            ".git/hooks",
            "keys",
            Call("create_file", {"path": ".git/hooks/pre-commit", "content": "x"}),
            id="protected-folder",
        ),
    ],
)
async def test_a_guarded_name_counts_also_where_it_is_only_a_link(tmp_path, link, target, call):
    (tmp_path / "dotenv-prod").write_text("K=1\n")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "k").write_text("K\n")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / target)

    async with Engine(tmp_path, ask=lambda _: True) as engine:
        (reply,) = await engine.run([call])

    assert reply.status == "error"
    assert "Refusing" in reply.text


async def test_hooks_of_a_repository_under_another_name_are_protected(tmp_path):
    for name in ("objects", "refs", "hooks"):
        (tmp_path / ".bare" / name).mkdir(parents=True)
    (tmp_path / ".bare" / "HEAD").write_text("ref: refs/heads/main\n")

    async with Engine(tmp_path, ask=lambda _: True) as engine:
        hook, config, other = await engine.run(
            [
                Call("create_file", {"path": ".bare/hooks/pre-commit", "content": "x"}),
                Call("create_file", {"path": ".bare/config", "content": "x"}),
                Call("create_file", {"path": "config", "content": "x"}),
            ]
        )

    assert [reply.status for reply in (hook, config, other)] == ["error", "error", "done"]


async def test_no_word_of_a_reply_steers_a_terminal(tmp_path):
    (tmp_path / "a\x1b[2J.txt").write_text("x\n")
    (tmp_path / "b.txt").write_text("one \x1b]0;title\x07 two three four\n")

    async with Engine(tmp_path, ask=lambda _: True) as engine:
        replies = await engine.run(
            [
                Call("Read", {"path": "a\x1b[2J.tx"}),
                Call("edit_file", {"path": "b.txt", "old_str": "one two three four five", "new_str": "x"}),
                Call("glob", {"filePattern": "*.txt"}),
                Call("Read\x1b[31m", {}),
            ]
        )

    said = "".join(reply.text + "".join(reply.notes) for reply in replies)
    assert "\x1b" not in said
    assert "\x07" not in said


async def test_names_that_are_no_text_still_get_their_answer(tmp_path):
    odd = os.fsdecode(b"\xff.txt")
    (tmp_path / odd).write_text("x\n")
    (tmp_path / "link.txt").symlink_to(odd)

    async with Engine(tmp_path, ask=lambda _: True) as engine:
        reply = await engine.call("edit_file", path="link.txt", old_str="x", new_str="y")

    assert reply.ok
    assert reply.as_dict()["trackFiles"] == [f"{os.path.realpath(tmp_path)}/?.txt"]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            Call("edit_file", {"path": "a.txt", "old_str": " " * 100_000 + "\n", "new_str": "y"}), id="blanks"
        ),
        pytest.param(Call("glob", {"filePattern": "{a,b}" * 9 + "*a" * 1900}), id="braces"),
        pytest.param(Call("glob", {"filePattern": "{" * 4000}), id="open-braces"),
        pytest.param(Call("Grep", {"pattern": "x", "glob": "{a,b}" * 9 + "[a-z]" * 800}), id="classes"),
        pytest.param(Call("glob", {"filePattern": "{" * 600 + "a" + "}" * 600}), id="nested"),
        pytest.param(Call("Bash", {"cmd": "a " * 500_000}), id="long-command"),
        pytest.param(Call("Bash", {"cmd": "echo \0"}), id="nul"),
        pytest.param(Call("Grep", {"pattern": "(a*)*b" * 200}), id="pattern"),
    ],
)
async def test_no_small_input_holds_up_the_engine(tmp_path, call):
    """Not a measurement: what once took seconds to minutes has to come back within a generous bound."""
    (tmp_path / "a.txt").write_text("x\n")
    async with asyncio.timeout(30), Engine(tmp_path, ask=lambda _: True) as engine:
        start = time.process_time()
        (reply,) = await engine.run([call])
        spent = time.process_time() - start

    assert reply.error is None or reply.error.error_code != "bug", reply
    assert spent < 10


async def test_a_line_too_deep_in_a_file_is_refused_and_ends(tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(3 << 30)
        file.seek(0)
        file.write(b"text\n" * 2000)

    async with asyncio.timeout(60), Engine(tmp_path, settings=Settings(limits=LimitSettings(seconds=50))) as engine:
        reply = await engine.call("Read", path="huge", read_range=[100_000, 100_001])

    assert reply.status == "error"


async def test_a_log_that_cannot_be_kept_is_not_left_behind(tmp_path, monkeypatch):
    async with Engine(tmp_path / ".." / tmp_path.name, ask=lambda _: True, state=tmp_path / "state") as engine:

        async def full(*_: object, **__: object) -> str:
            from ferrule.output.store import StoreError  # beside its only use

            raise StoreError("The disk is full.")

        monkeypatch.setattr(engine.store, "adopt", full)
        reply = await engine.call("Bash", cmd="seq 100000")

    assert any("could not be kept" in note for note in reply.notes)
    assert os.listdir(tmp_path / "state" / "outputs" / "logs") == []
