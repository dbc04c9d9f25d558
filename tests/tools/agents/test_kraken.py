"""kraken: one subagent for each file, all drafts written at once or none, one undo for all of it."""

import asyncio
import json
import os
import threading

import pytest
from tests.tools.agents.acting import alone, done, nobody, opened, steps

from ferrule import Settings
from ferrule.checkpoints.undo import Drafts
from ferrule.core.call import Event, Progress
from ferrule.core.errors import ToolFailure
from ferrule.files.transaction import Writer
from ferrule.settings import LimitSettings, Loop

FILES = {"a.py": "def load(): ...\n", "b.py": "load()\n", "sub/c.py": "load()\nload()\n", "other.py": "x = 1\n"}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "workspace"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def picture(folder):
    """Every file with its bytes."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def scratch(state):
    """Whatever is left of drafts, and announced writes."""
    every = (os.path.join(at, name) for at, folders, names in os.walk(state) for name in (*folders, *names))
    return [path for path in every if "/drafts/" in path or "/pending/" in path]


async def rename(job, use):
    """Does its part: another name, everywhere in its file."""
    reply = await use("edit_file", path=job.description, old_str="load", new_str="load_all", replace_all=True)
    assert reply.ok, reply
    return f"Renamed in {job.description}."


async def test_every_file_has_its_own_subagent_and_all_are_written_at_once(root, state):
    engine, acting = opened(root, rename, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Rename load to load_all.", files=["a.py", "b.py", "sub/c.py"])
        undoable, _ = await engine.history()

    assert reply.ok, reply
    assert picture(root) == {name: text.replace("load", "load_all") for name, text in FILES.items()}
    assert [job.description for job in acting.jobs] == ["a.py", "b.py", "sub/c.py"]
    assert [len(entry.files) for entry in undoable] == [3]
    assert sorted(reply.track_files) == sorted(str(root / name) for name in ("a.py", "b.py", "sub/c.py"))
    assert reply.result == (
        "M a.py (+1 -1): Renamed in a.py.\n"
        "M b.py (+1 -1): Renamed in b.py.\n"
        "M sub/c.py (+2 -2): Renamed in sub/c.py.\n"
        "3 files written at once; undo_edit on any of them takes all of it back. 6 turns, 330 tokens."
    )
    assert scratch(state) == []


async def test_one_undo_takes_all_of_it_back(root, state):
    engine, _ = opened(root, rename, state=state)
    async with engine:
        await engine.call("kraken", task="Rename.", files=["**/[abc].py"])
        assert picture(root) != FILES
        reply = await engine.call("undo_edit", path="b.py")

    assert reply.ok, reply
    assert picture(root) == FILES


async def test_a_subagent_sees_its_own_draft_and_the_others_as_they_were(root, state):
    both_wrote = asyncio.Barrier(2)
    seen = {}

    async def look(job, use):
        mine, other = job.description, "b.py" if job.description == "a.py" else "a.py"
        await rename(job, use)
        await both_wrote.wait()
        seen[mine] = ((await use("Read", path=mine)).text, (await use("Read", path=other)).text)
        refused = await use("edit_file", path=other, old_str="load", new_str="x")
        assert refused.error.error_code == "only-one-file", refused
        return "ok"

    engine, _ = opened(root, look, state=state)
    async with asyncio.timeout(30), engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py"])

    assert reply.ok, reply
    assert seen == {
        "a.py": ("1: def load_all(): ...", "1: load()"),
        "b.py": ("1: load_all()", "1: def load(): ..."),
    }


async def test_a_subagent_has_tools_to_read_and_edit_and_no_others(root, state):
    refused = []

    async def reach(job, use):
        for name, values in (
            ("Bash", {"cmd": "echo x > z"}),
            ("delete_file", {"path": "a.py"}),
            ("kraken", {"task": "x"}),
        ):
            refused.append((await use(name, **values)).status)
        assert (await use("Grep", pattern="load")).ok
        assert (await use("glob", filePattern="*.py")).ok
        return "nothing"

    engine, _ = opened(root, reach, state=state)
    async with engine:
        await engine.call("kraken", task="Try.", files=["a.py"])

    assert len(refused) == 3
    assert "done" not in refused
    assert picture(root) == FILES


async def test_every_edit_is_still_asked_about_by_its_real_path(root, state):
    asked = []

    def answer(question):
        asked.append(question.summary)
        return "b.py" not in question.summary

    async def attempt(job, use):
        reply = await use("edit_file", path=job.description, old_str="load", new_str="x", replace_all=True)
        return "done" if reply.ok else f"CANNOT: {reply.error.message}"

    engine, _ = opened(root, attempt, state=state, ask=answer)
    async with engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py"])

    assert sorted(asked) == ["edit_file: write a.py", "edit_file: write b.py"]
    assert reply.error.error_code == "part-failed"
    assert picture(root) == FILES


async def test_a_file_can_be_made_when_it_is_of_the_set(root, state):
    async def make(job, use):
        reply = await use("create_file", path=job.description, content="new")
        assert reply.ok, reply
        return "made"

    engine, _ = opened(root, make, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Make it.", files=["deep/er/new.py"])
        assert (root / "deep/er/new.py").read_text() == "new\n"
        await engine.undo()

    assert reply.result.startswith("A deep/er/new.py (+1 -0): made\n1 file written at once")
    assert picture(root) == FILES
    assert not (root / "deep").exists()


async def test_nothing_to_change_is_said_and_not_written(root, state):
    async def leave(job, use):
        return "It is right as it is."

    engine, _ = opened(root, leave, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Check.", files=["a.py"])
        assert (await engine.history())[0] == []

    assert reply.result == (
        "  a.py: It is right as it is.\nNothing had to be changed; no file was written. 2 turns, 110 tokens."
    )


FAILS = {
    "said": ("CANNOT: the file is\n generated.", "the file is generated."),
    "turns": (done("half", reason="turns", why="It used all of its 50 turns."), "It used all of its 50 turns."),
    "failed": (done("", reason="error", why="The model could not be asked")._replace(status="failed"), "asked."),
    "stopped": (done("I am")._replace(status="stopped"), "I am."),
    "edited": (done("I could not do it.")._replace(failed_write="no\n match"), "its last edit failed: no match"),
    "refused": (ToolFailure("No model for it.", code="no-model"), "No model for it."),
}


@pytest.mark.parametrize("how", FAILS)
async def test_one_part_that_fails_means_that_nothing_is_written(root, state, how):
    end, why = FAILS[how]

    async def fail(job, use):
        await rename(job, use)
        if job.description != "b.py":
            return "ok"
        if isinstance(end, ToolFailure):
            raise end
        return end

    engine, _ = opened(root, fail, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py", "sub/c.py"])
        assert (await engine.history())[0] == []

    assert reply.error.error_code == "part-failed"
    assert "Nothing was written" in reply.error.message
    assert "- b.py: " in reply.error.message
    assert why in reply.error.message
    assert picture(root) == FILES
    assert scratch(state) == []
    assert not reply.track_files


async def test_the_others_are_stopped_when_one_part_fails(root, state):
    stopped = []

    async def wait(job, use):
        if job.description == "a.py":
            await steps(5)
            return "CANNOT: no."
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(job.description)

    engine, _ = opened(root, wait, state=state)
    async with asyncio.timeout(30), engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py", "sub/c.py"])

    assert sorted(stopped) == ["b.py", "sub/c.py"]
    assert "1 of 3 files could not be done, and 2 more were stopped" in reply.error.message


async def test_a_part_that_is_stopped_by_itself_is_not_taken_for_done(root, state):
    async def stop(job, use):
        await rename(job, use)
        if job.description == "b.py":
            raise asyncio.CancelledError
        return "ok"

    engine, _ = opened(root, stop, state=state)
    async with asyncio.timeout(30), engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py"])

    assert not reply.ok
    assert picture(root) == FILES
    assert scratch(state) == []


async def test_a_bug_in_one_part_is_one_bug_and_nothing_is_written(root, state):
    async def burst(job, use):
        await rename(job, use)
        raise ZeroDivisionError

    engine, _ = opened(root, burst, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py"])

    assert reply.error.error_code == "bug"
    assert picture(root) == FILES
    assert scratch(state) == []


async def test_a_file_that_somebody_else_writes_meanwhile_stops_all_of_it(root, state):
    async def interfere(job, use):
        await rename(job, use)
        if job.description == "b.py":
            (root / "b.py").write_text("theirs\n")
        return "ok"

    engine, _ = opened(root, interfere, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py"])

    assert reply.error.error_code == "changed-meanwhile"
    assert str(root / "b.py") in reply.error.message
    assert picture(root) == {**FILES, "b.py": "theirs\n"}
    assert scratch(state) == []


class Broken(Writer):
    """A disk that is full when the write begins."""

    def __init__(self, writer):
        self.__dict__.update(writer.__dict__)

    def _write(self, targets, **_):
        raise OSError(28, "No space left on device", targets[0].place.path)


@pytest.mark.parametrize("stage", ["begin", "find_changed", "commit", "write"])
async def test_a_failure_at_any_stage_leaves_everything_as_it_was(root, state, stage, monkeypatch):
    def fail(*_, **__):
        raise ToolFailure(f"{stage} failed.", code="injected")

    engine, _ = opened(root, rename, state=state)
    async with engine:
        if stage == "write":
            engine._services.put(Writer, Broken(engine._services[Writer]))
        else:
            monkeypatch.setattr(f"ferrule.checkpoints.undo.Drafts.{stage}", fail)
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py"])

    assert reply.status == "error"
    assert picture(root) == FILES
    assert scratch(state) == []


MOMENTS = [*range(0, 60, 3), *range(60, 300, 20), 400, 600]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_cancelling_at_any_moment_writes_all_or_nothing_and_leaves_no_draft(root, state, moment):
    engine, _ = opened(root, rename, state=state)
    async with asyncio.timeout(60), engine:
        running = asyncio.create_task(engine.call("kraken", task="Rename.", files=["a.py", "b.py", "sub/c.py"]))
        await steps(moment)
        running.cancel()
        await asyncio.wait([running])
        after = picture(root)
        assert scratch(state) == []
        again = await engine.call("edit_file", path="other.py", old_str="1", new_str="2")

    assert again.ok, again
    assert after in (FILES, {name: text.replace("load", "load_all") for name, text in FILES.items()})


@pytest.mark.parametrize(
    ("step", "is_written"), [("begin", False), ("find_changed", True), ("commit", True), ("close", True)]
)
async def test_cancelling_inside_of_a_step_is_all_or_nothing_and_is_told(root, state, step, is_written, monkeypatch):
    engine, _ = opened(root, rename, state=state)
    original = getattr(Drafts, step)
    loop = asyncio.get_running_loop()
    heard = threading.Event()

    def stop():
        engine.cancel()
        heard.set()

    def slow(self, *args, **more):
        if threading.current_thread() is threading.main_thread():
            stop()
        else:
            loop.call_soon_threadsafe(stop)
            assert heard.wait(20)
        return original(self, *args, **more)

    async with asyncio.timeout(60), engine:
        monkeypatch.setattr(Drafts, step, slow)
        reply = await engine.call("kraken", task="Rename.", files=["a.py", "b.py", "sub/c.py"])

    assert bool(reply.track_files) == is_written
    assert picture(root) == {n: t.replace("load", "load_all") if is_written else t for n, t in FILES.items()}
    assert scratch(state) == []


@pytest.mark.parametrize("moment", [0, 5, 20, 80])
async def test_a_cancelled_call_waits_for_its_subagents_however_often_it_is_cancelled(root, state, moment):
    ended = []

    async def slow(job, use):
        try:
            await asyncio.Event().wait()
        finally:
            await steps(20)
            ended.append(job.description)

    engine, acting = opened(root, slow, state=state)
    async with asyncio.timeout(60), engine:
        running = asyncio.create_task(engine.call("kraken", task="Rename.", files=["a.py", "b.py"]))
        while acting.running < 2:
            await asyncio.sleep(0)
        await steps(moment)
        for _ in range(3):
            engine.cancel()
            await steps(2)
        reply = await running

    assert reply.status == "cancelled"
    assert sorted(ended) == ["a.py", "b.py"]
    assert scratch(state) == []


async def test_so_many_work_at_once_as_the_settings_say(root, state):
    async def wait(job, use):
        await steps(10)
        return "ok"

    names = [f"{number}.py" for number in range(9)]
    engine, acting = opened(root, wait, state=state, settings=Settings(loop=Loop(children=3)))
    async with engine:
        await engine.call("kraken", task="Look.", files=names)

    assert len(acting.jobs) == 9
    assert acting.most == 3


def plan(*rows):
    block = json.dumps([{"path": path, "change": change} for path, change in rows])
    return f"Here it is.\n\n```json\n{block}\n```\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(plan(("a.py", "rename"), ("b.py", "its use")), id="json-block"),
        pytest.param(
            json.dumps([{"path": "a.py", "change": "rename"}, {"path": "b.py", "change": "its use"}]), id="json"
        ),
        pytest.param("a.py: rename\nb.py: its use\n", id="lines"),
        pytest.param("- `a.py`: rename\n- b.py: its use", id="list"),
        pytest.param(plan(("a.py", "rename"), ("b.py", "its use"), ("./a.py", "rename")), id="twice"),
    ],
)
async def test_without_files_a_planner_says_which(root, state, answer):
    async def act(job, use):
        if "list_dir" in job.agent.tools:
            assert (await use("edit_file", path="a.py", old_str="load", new_str="x")).status != "done"
            return answer
        return await rename(job, use)

    heard: list[Event] = []
    engine, acting = opened(root, act, state=state, on_event=heard.append)
    async with engine:
        reply = await engine.call("kraken", task="Rename load to load_all.")

    assert reply.ok, reply
    assert [job.description for job in acting.jobs] == ["which files to change", "a.py", "b.py"]
    assert "What is to change in it:\n\nrename" in acting.jobs[1].prompt
    assert "- b.py: its use" in acting.jobs[1].prompt
    assert "load_all" in (root / "a.py").read_text()
    assert "8 turns" not in reply.result
    assert "6 turns" in reply.result
    assert "2 files to change: a.py, b.py" in [event.message for event in heard if isinstance(event, Progress)]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param("I would change a few files.", "bad-plan", id="prose"),
        pytest.param("a.py: rename\nand so on", "bad-plan", id="half-prose"),
        pytest.param('```json\n[{"path": "a.py"}]\n```', "bad-plan", id="no-change"),
        pytest.param('```json\n{"path": "a.py", "change": "x"}\n```', "bad-plan", id="no-list"),
        pytest.param('```json\n[{"path": "a.py", "change": " "}]\n```', "bad-plan", id="empty-change"),
        pytest.param(plan(*((f"{n}.py", "x") for n in range(51))), "too-many-files", id="too-many"),
        pytest.param(plan(("a.py", "x"), ("../out.py", "x")), "outside-workspace", id="outside"),
        pytest.param(plan((".env", "x")), "writing-secret-file", id="secret"),
        pytest.param(plan((".git/config", "x")), "writing-protected-file", id="protected"),
        pytest.param(plan(("sub", "x")), "is-folder", id="folder"),
        pytest.param(done(plan(("a.py", "x")), reason="turns", why="No turns left."), "bad-plan", id="cut-short"),
    ],
)
async def test_a_plan_that_is_not_one_changes_nothing(root, state, answer, code):
    async def act(job, use):
        assert "list_dir" in job.agent.tools, "only the planner is asked"
        return answer

    engine, _ = opened(root, act, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Rename.")

    assert reply.error.error_code == code, reply
    assert picture(root) == FILES


async def test_a_part_that_was_to_change_its_file_and_did_not_has_failed(root, state):
    async def act(job, use):
        if "list_dir" in job.agent.tools:
            return plan(("a.py", "rename"), ("b.py", "its use"))
        return await rename(job, use) if job.description == "a.py" else "I could not do it: the text is not there."

    engine, _ = opened(root, act, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Rename.")

    assert reply.error.error_code == "part-failed"
    assert "b.py: it was to be changed, and was not: I could not do it" in reply.error.message
    assert picture(root) == FILES


async def test_an_empty_plan_is_an_answer(root, state):
    async def act(job, use):
        return "```json\n[]\n```"

    engine, _ = opened(root, act, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Rename.")

    assert reply.result == "Nothing had to be changed; no file was written. 2 turns, 110 tokens."


@pytest.mark.parametrize(
    ("values", "code"),
    [
        pytest.param({"task": " "}, "bad-arguments", id="no-task"),
        pytest.param({"task": "x", "files": ["*.none"]}, "bad-arguments", id="nothing-matches"),
        pytest.param({"task": "x", "files": [f"{n}.py" for n in range(51)]}, "too-many-files", id="too-many"),
        pytest.param({"task": "x", "files": [".env"]}, "writing-secret-file", id="secret"),
        pytest.param({"task": "x", "files": ["link.py"]}, "writing-secret-file", id="a-link-to-a-secret"),
        pytest.param({"task": "x", "files": ["/etc/hosts"]}, "outside-workspace", id="outside"),
        pytest.param({"task": "x", "files": ["/etc/*"]}, "outside-workspace", id="a-glob-outside"),
        pytest.param({"task": "x", "files": ["sub"]}, "is-folder", id="folder"),
        pytest.param({"task": "x", "files": [""]}, None, id="empty-path"),
    ],
)
async def test_files_that_cannot_be_of_the_set_are_refused_before_anybody_is_asked(root, state, values, code):
    (root / ".env").write_text("KEY=1\n")
    (root / "link.py").symlink_to(root / ".env")
    engine, _ = opened(root, nobody, state=state)
    async with engine:
        reply = await engine.call("kraken", **values)

    assert reply.status == "error"
    assert code is None or reply.error.error_code == code, reply


async def test_guarded_files_that_match_a_glob_stay_out(root, state):
    (root / "sitecustomize.py").write_text("x\n")

    async def look(job, use):
        return "ok"

    engine, acting = opened(root, look, state=state)
    async with engine:
        reply = await engine.call("kraken", task="Look.", files=["*.py"])

    assert [job.description for job in acting.jobs] == ["a.py", "b.py", "other.py"]
    assert any("secret or protected" in note for note in reply.notes)


async def test_without_a_model_it_says_so(root):
    async with alone(root) as engine:
        reply = await engine.call("kraken", task="Rename.", files=["a.py"])

    assert reply.error.error_code == "no-model"


@pytest.mark.contract("timeout.finder")
@pytest.mark.parametrize("name", ["kraken", "oracle", "finder"])
async def test_a_subagent_s_work_has_no_time_limit(root, state, name):
    async def late(job, use):
        await asyncio.sleep(0.2)
        return "late"

    engine, _ = opened(root, late, state=state, settings=Settings(limits=LimitSettings(seconds=0.05)))
    async with engine:
        values = {"query": "x"} if name == "finder" else {"task": "x"}
        reply = await engine.call(name, **values, **({"files": ["a.py"]} if name == "kraken" else {}))

    assert reply.ok, reply
    assert "late" in reply.result


async def test_two_krakens_on_the_same_files_do_not_lose_a_change(root, state):
    async def act(job, use):
        number = job.prompt.split("number ")[1][0]
        reply = await use("edit_file", path=job.description, old_str="load", new_str=f"load{number}", replace_all=True)
        assert reply.ok, reply
        await steps(50)
        return "ok"

    engine, _ = opened(root, act, state=state)
    async with asyncio.timeout(60), engine:
        both = await asyncio.gather(
            *(engine.call("kraken", task=f"number {n}", files=["a.py", "b.py"]) for n in (1, 2))
        )

    assert sorted(reply.ok for reply in both) == [False, True]
    winner = 1 + [reply.ok for reply in both].index(True)
    assert picture(root) == {**FILES, "a.py": f"def load{winner}(): ...\n", "b.py": f"load{winner}()\n"}
