"""Rows of the seeds' contracts that are about the system rather than one tool."""

import asyncio
import os

import pytest

from ferrule import Access, Call, Engine, Question, tool
from ferrule.core.access import EVERYTHING
from ferrule.core.call import Done, Event, Started
from ferrule.schedule import batches
from ferrule.system import run
from ferrule.system.child import ChildProcess


@pytest.fixture
async def engine(tmp_path):
    async with Engine(tmp_path, ask=lambda question: question.kind == "call") as opened:
        yield opened


def key(kind: str, name: str) -> tuple[Access, ...]:
    return (Access(kind="path", mode="read" if kind == "Read" else "write", key=f"/w/{name}"),)


@pytest.mark.contract("batch.read-read", "batch.conflict-starts-next", "batch.only-current", "batch.last")
@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["Read A", "Read A", "Read B"], [["Read A", "Read A", "Read B"]], id="reads-share"),
        pytest.param(["Edit A", "Edit A"], [["Edit A"], ["Edit A"]], id="writes-part"),
        pytest.param(["Read A", "Edit A"], [["Read A"], ["Edit A"]], id="read-then-write"),
        pytest.param(
            ["Read A", "Read B", "Edit A", "Read C"], [["Read A", "Read B"], ["Edit A", "Read C"]], id="the-example"
        ),
        pytest.param(
            ["Edit A", "Read B", "Edit B", "Read A"], [["Edit A", "Read B"], ["Edit B", "Read A"]], id="current-only"
        ),
        pytest.param(["Read A", "Bash", "Read A"], [["Read A"], ["Bash"], ["Read A"]], id="serial"),
    ],
)
def test_batches_are_cut_as_the_seed_cuts_them(calls, expected):
    touched = [(call, (EVERYTHING,) if call == "Bash" else key(*call.split())) for call in calls]

    assert batches(touched) == expected


@pytest.mark.contract("conflict.serial", "conflict.write", "conflict.read-read")
async def test_the_plan_follows_the_conflict_rules(engine):
    def plan(*calls: Call) -> int:
        return len(engine.plan(calls))

    read, write = Call("Read", {"path": "a"}), Call("create_file", {"path": "a", "content": ""})
    bash, look = Call("Bash", {"cmd": "make x"}), Call("Bash", {"cmd": "ls | head -3"})

    assert plan(read, read) == plan(read, look) == plan(look, look) == 1
    assert plan(look, write) == plan(bash, look) == 2
    assert plan(read, write) == plan(write, read) == plan(write, write) == 2
    assert plan(read, bash) == plan(bash, bash) == 2


@pytest.mark.contract("conflict.read-key", "conflict.write-key")
async def test_tools_declare_what_they_touch(tmp_path):
    heard: list[Event] = []
    async with Engine(tmp_path, on_event=heard.append) as engine:
        await engine.run(
            [
                Call("Read", {"path": "a"}),
                Call("edit_file", {"path": "a", "old_str": "x", "new_str": "y"}),
                Call("create_file", {"path": "b", "content": ""}),
                Call("Grep", {"pattern": "x"}),
                Call("Bash", {"cmd": "make x"}),
            ]
        )

    root = os.path.realpath(tmp_path)
    touches = {event.name: event.touches for event in heard if hasattr(event, "touches")}
    assert touches == {
        "Read": (Access.read(f"{root}/a"),),
        "edit_file": (Access.write(f"{root}/a"),),
        "create_file": (Access.write(f"{root}/b"),),
        "Grep": (Access.read(root),),
        "Bash": (Access.command("make x", root), Access.read(root)),
    }


@pytest.mark.contract("batch.parallel")
async def test_calls_of_a_batch_run_at_the_same_time(tmp_path):
    together = asyncio.Barrier(4)

    @tool(touches=lambda path: [Access.read(path)], inline=True)
    async def look(path: str) -> str:
        """Wait for the others, which only side by side can come."""
        await together.wait()
        return path

    async with asyncio.timeout(20), Engine(tmp_path, tools=[look]) as engine:
        replies = await engine.run([Call("look", {"path": "a"})] * 4)

    assert [reply.result for reply in replies] == ["a"] * 4


@pytest.mark.contract("create.track-files")
async def test_files_that_changed_are_named(engine, tmp_path):
    reply = await engine.call("create_file", path="a/b.txt", content="x")

    assert reply.as_dict()["trackFiles"] == [os.path.realpath(tmp_path / "a" / "b.txt")]


@pytest.mark.contract("edit.exact-match")
async def test_an_exact_match_wins_over_every_loose_one(engine, tmp_path):
    (tmp_path / "a.py").write_text("    x = 1\nx = 1 \nx = 1\n")

    reply = await engine.call("edit_file", path="a.py", old_str="\nx = 1\n", new_str="\nx = 2\n")

    assert reply.ok
    assert (tmp_path / "a.py").read_text() == "    x = 1\nx = 1 \nx = 2\n"


@pytest.mark.contract("flow.preprocess", "registry.preprocess")
@pytest.mark.usefixtures("asking")
async def test_permission_sees_the_arguments_in_their_final_form(tmp_path):
    asked: list[str] = []

    def ask(question: Question) -> bool:
        asked.append(question.summary)
        return False

    (tmp_path / "sub").mkdir()
    async with Engine(tmp_path, ask=ask) as engine:
        await engine.call("Bash", cmd="cd sub && rm x &")

    assert asked == ["run `rm x` in sub"]


@pytest.mark.contract("flow.post-process")
async def test_a_long_result_is_cut_after_the_body_and_kept_whole(tmp_path):
    @tool(touches=[])
    def talk() -> str:
        """Say too much."""
        return "word\n" * 30_000

    async with Engine(tmp_path, tools=[talk]) as engine:
        reply = await engine.call("talk")
        assert reply.output_id is not None
        kept = await engine.output(reply.output_id)

    assert reply.result.endswith("\n\n[Tool result truncated: 146KB exceeds limit. Please refine the query.]")
    assert kept.text == "word\n" * 30_000


@pytest.mark.contract("glob.ripgrep", "grep.ripgrep")
@pytest.mark.parametrize(
    ("name", "values"), [pytest.param("glob", {"filePattern": "*"}), pytest.param("Grep", {"pattern": "x"})]
)
async def test_searches_run_ripgrep(engine, monkeypatch, name, values):
    started = []

    class Watched(ChildProcess):
        def __init__(self, argv, **more):
            started.append(os.path.basename(argv[0]))
            super().__init__(argv, **more)

    monkeypatch.setattr(run, "ChildProcess", Watched)
    await engine.call(name, **values)

    assert set(started) == {"rg"}


@pytest.mark.contract("grep.error-ripgrep")
async def test_what_ripgrep_cannot_do_is_an_error(engine):
    reply = await engine.call("Grep", pattern="a(")

    assert (reply.status, reply.error.error_code) == ("error", "bad-pattern")


@pytest.mark.contract("reply.success", "reply.error", "reply.error-code", "reply.absolute-path")
async def test_replies_have_the_seed_s_form(engine, tmp_path):
    (tmp_path / ".env").write_text("x\n")
    root = os.path.realpath(tmp_path)

    wrote, secret, missing = await engine.run(
        [
            Call("create_file", {"path": "a", "content": "x"}),
            Call("Read", {"path": ".env"}),
            Call("Read", {"path": "zzz"}),
        ]
    )

    assert wrote.as_dict() == {
        "status": "done",
        "result": f"Successfully created file {root}/a",
        "trackFiles": [f"{root}/a"],
    }
    assert secret.as_dict()["error"]["errorCode"] == "reading-secret-file"
    assert missing.as_dict() == {
        "status": "error",
        "error": {
            "message": f"ENOENT: no such file or directory '{root}/zzz'",
            "errorCode": "not-found",
            "absolutePath": f"{root}/zzz",
        },
    }


@pytest.mark.contract("status.in-progress", "status.done", "status.error", "status.cancelled")
async def test_a_call_is_in_progress_until_it_is_done_failed_or_cancelled(tmp_path):
    heard: list[Event] = []
    running = asyncio.Event()

    @tool(touches=[], inline=True)
    async def forever() -> None:
        """Never end."""
        running.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(20), Engine(tmp_path, tools=[forever], on_event=heard.append) as engine:
        calls = [Call("glob", {"filePattern": "*"}, "1"), Call("Read", {"path": "x"}, "2"), Call("forever", {}, "3")]
        task = asyncio.create_task(engine.run(calls))
        await running.wait()
        assert [type(event) for event in heard if event.id == "3"][-1] is Started
        while sum(isinstance(event, Done) for event in heard) < 2:
            await asyncio.sleep(0)
        engine.cancel()
        replies = await task

    assert [reply.status for reply in replies] == ["done", "error", "cancelled"]


@pytest.mark.contract("truncate.read")
async def test_read_never_gives_more_than_64_kib(engine, tmp_path):
    (tmp_path / "a.txt").write_text("é" * 40 + "\n")
    (tmp_path / "b.txt").write_text(("é" * 400 + "\n") * 2000)

    whole = await engine.call("Read", path="a.txt")
    part = await engine.call("Read", path="b.txt", read_range=[1, 2000])

    assert whole.result == "1: " + "é" * 40
    assert 60_000 < len(part.result.encode()) <= 65_536
