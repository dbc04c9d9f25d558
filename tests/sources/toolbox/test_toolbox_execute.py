"""Toolbox tools in a session: parameters, output, failures, time, cancellation, and what they may not do."""

import asyncio
import json
import os
import sys

import pytest
from tests.fifo import Fifo
from tests.scripted import NO, YES, Scripted
from tests.sources.toolbox.boxes import ECHO, SESSION, box, describing, new_mark, put, session, toolbox
from tests.support.test_process import living

from ferrule import Call, Engine
from ferrule.core.call import Progress
from ferrule.permissions import ModeConfig
from ferrule.settings import LimitSettings, Settings

LIMIT_SECONDS = 30
JSON_TOOL = f"""#!{sys.executable}
import json, os, sys
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({{"name": "add", "description": "Adds.", "inputSchema": {{
        "type": "object",
        "properties": {{"numbers": {{"type": "array", "items": {{"type": "number"}}}}, "note": {{"type": "string"}}}},
        "required": ["numbers"]}}}}))
else:
    values = json.load(sys.stdin)
    print(sum(values["numbers"]), values.get("note", ""))
"""


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "box"


@pytest.mark.contract("toolbox.execute-text")
async def test_a_tool_that_speaks_text_gets_text(workspace, folder):
    put(folder, "echo", describing("name: echo\ndescription: Says it.\nwords: string it\ntimes: integer? times"))
    async with session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__echo", words="hello\ntimes: 7", times=2)

    assert (reply.status, reply.result) == ("done", 'words: "hello\\ntimes: 7"\ntimes: 2')


@pytest.mark.contract("toolbox.execute-json")
async def test_a_tool_that_speaks_json_gets_json(workspace, folder):
    put(folder, "add", JSON_TOOL)
    async with session(workspace, box(folder)) as engine:
        replies = await engine.run(
            [
                Call("tb__add", {"numbers": [1, 2.5], "note": 'ü "quoted"\n'}),
                Call("tb__add", {"numbers": "no"}),
                Call("tb__add", {}),
            ]
        )

    assert replies[0].result == '3.5 ü "quoted"\n'
    assert [reply.error and reply.error.error_code for reply in replies[1:]] == ["bad-arguments", "bad-arguments"]
    assert "numbers" in replies[1].text


async def test_it_is_advertised_as_it_describes_itself(workspace, folder):
    put(folder, "echo", ECHO)
    async with session(workspace, box(folder)) as engine:
        definition = engine.definitions()[-1]

    assert definition["name"] == "tb__echo"
    assert definition["description"] == "Say what came."
    assert definition["inputSchema"]["properties"] == {"words": {"type": "string", "description": "what to say"}}


async def test_it_runs_in_the_workspace_and_knows_its_thread(workspace, folder):
    script = 'echo "$TOOLBOX_ACTION|$AGENT|$CLAUDECODE|$AMP_THREAD_ID|$AGENT_THREAD_ID|$PWD|$(pwd)"'
    put(folder, "where", describing("name: where\ndescription: Says where.", then=script))
    async with session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__where")

    assert reply.result.split("|") == ["execute", "amp", "1", SESSION, SESSION, str(workspace), str(workspace)]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("echo out; echo why >&2; exit 3", "out\nwhy\nThe tool failed with exit code 3.", id="both"),
        pytest.param("exit 4", "The tool failed with exit code 4.", id="silent"),
        pytest.param("kill -9 $$", "The tool failed with exit code 137.", id="killed"),
        pytest.param("printf 'a\\033[31mb\\n' >&2; exit 1", "ab\nThe tool failed with exit code 1.", id="colours"),
    ],
)
@pytest.mark.contract("toolbox.exit-code")
async def test_another_exit_code_than_0_is_a_failure(workspace, folder, script, said):
    put(folder, "fails", describing("name: fails\ndescription: Fails.", then=script))
    async with session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__fails")

    assert (reply.status, reply.text) == ("error", said)


async def test_errors_of_a_tool_that_did_well_are_not_the_models(workspace, folder):
    put(folder, "warns", describing("name: warns\ndescription: Warns.", then="echo noise >&2; echo fine"))
    async with session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__warns")

    assert (reply.status, reply.result, reply.notes) == ("done", "fine", ())


async def test_errors_without_an_end_are_cut(workspace, folder):
    put(folder, "loud", describing("name: loud\ndescription: Loud.", then="seq 100000 >&2; exit 1"))
    async with session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__loud")

    assert len(reply.text) < 5_000
    assert "100000\nThe tool failed with exit code 1." in reply.text


async def test_long_output_is_cut_and_kept_whole(workspace, folder):
    put(folder, "long", describing("name: long\ndescription: Long.", then="seq 100000"))
    async with session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__long")
        stored = await engine.output(reply.output_id or "")
        page = stored.read(0, 1 << 20)

    assert reply.result.startswith("1\n2\n")
    assert reply.result.endswith("\n99999\n100000")
    assert len(reply.result) < 102_400
    assert page.text.endswith("\n99999\n100000\n")
    assert page.text.count("\n") == 100_000


async def test_a_tool_that_does_not_read_is_no_worse_for_it(workspace, folder):
    put(folder, "deaf", describing("name: deaf\ndescription: Deaf.\nwords: string it", then="echo done"))
    async with asyncio.timeout(LIMIT_SECONDS), session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__deaf", words="x" * 500_000)

    assert (reply.status, reply.result) == ("done", "done")


async def test_the_end_of_the_process_counts_and_not_that_of_its_pipe(workspace, folder):
    mark = new_mark()
    script = f"sleep {mark} & (setsid sleep {mark} &) ; echo done"
    put(folder, "leaves", describing("name: leaves\ndescription: Leaves some.", then=script))
    async with asyncio.timeout(LIMIT_SECONDS), session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__leaves")

        assert (reply.status, reply.result) == ("done", "done")
        assert living(mark) == []


async def test_a_tool_that_says_nothing_is_stopped_in_time(workspace, folder):
    mark = new_mark()
    script = f"trap '' TERM; while :; do sleep {mark}; done"
    put(folder, "hangs", describing("name: hangs\ndescription: Hangs.", then=script))
    settings = Settings(limits=LimitSettings(seconds=0.5))
    async with asyncio.timeout(LIMIT_SECONDS), session(workspace, box(folder), settings=settings) as engine:
        reply = await engine.call("tb__hangs")

        assert (reply.status, reply.error and reply.error.error_code) == ("error", "timed-out")
        assert living(mark) == []


async def test_output_is_progress_while_it_runs(workspace, folder):
    script = "echo line 1; until [ -e go ]; do sleep 0.01; done; echo line 2"
    put(folder, "slow", describing("name: slow\ndescription: Slow.", then=script))

    def heard(event):
        if isinstance(event, Progress) and event.message == "line 1":
            (workspace / "go").touch()

    async with asyncio.timeout(LIMIT_SECONDS), session(workspace, box(folder), on_event=heard) as engine:
        reply = await engine.call("tb__slow")

    assert (reply.status, reply.result) == ("done", "line 1\nline 2")


async def test_cancelling_ends_all_of_it(workspace, folder):
    mark, up = new_mark(), Fifo(workspace / "up")
    script = f"(setsid sleep {mark} &); trap '' TERM; echo > up; sleep {mark}; sleep {mark}"
    put(folder, "long", describing("name: long\ndescription: Long.", then=script))
    async with asyncio.timeout(LIMIT_SECONDS), session(workspace, box(folder)) as engine:
        running = asyncio.create_task(engine.call("tb__long"))
        await up.said()
        engine.cancel()
        reply = await running

        assert reply.status == "cancelled"
        assert living(mark) == []


async def test_a_killed_engine_leaves_a_trace_in_the_roster(workspace, folder):
    processes = os.path.join(os.environ["FERRULE_STATE"], "processes")
    put(folder, "look", describing("name: look\ndescription: Looks.", then=f"ls {processes}"))
    async with session(workspace, box(folder)) as engine:
        reply = await engine.call("tb__look")

    assert reply.result.endswith(".process")
    assert [name for name in os.listdir(processes) if name.endswith(".process")] == []


async def test_every_call_asks_and_a_no_runs_nothing(workspace, folder):
    put(folder, "acts", describing("name: acts\ndescription: Acts.\nwhat: string it", then=": >> ran"))
    asker = Scripted(NO, YES)
    brought = await toolbox(box(folder)).load()
    async with Engine(workspace, ask=asker) as engine:
        engine.registry.bring("toolbox", brought.tools)
        refused = await engine.call("tb__acts", what="x")
        assert not (workspace / "ran").exists()
        done = await engine.call("tb__acts", what="x")

    assert (refused.status, done.status) == ("rejected-by-user", "done")
    assert len(asker.questions) == 2
    assert "tb__acts" in asker.questions[0].summary


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        pytest.param(ModeConfig(allow_toolbox=False), "rejected-by-user", id="no-toolboxes"),
        pytest.param(ModeConfig(allow_toolbox=True), "done", id="toolboxes"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="scope"), "done", id="its-subagent"),
        pytest.param(ModeConfig(allow_toolbox=True, subagent_type="other"), "rejected-by-user", id="another-subagent"),
    ],
)
@pytest.mark.contract("toolbox.subagent-types")
async def test_the_mode_and_the_tool_say_who_may_use_it(workspace, folder, mode, status):
    said = json.dumps({"name": "x", "description": "Does it.", "meta": {"subagentTypes": ["scope"]}})
    put(folder, "x", describing(said, then="echo done"))
    async with session(workspace, box(folder), mode=mode) as engine:
        reply = await engine.call("tb__x")

    assert reply.status == status


async def test_a_projects_tool_runs_only_as_it_described_itself(workspace, folder):
    path = put(folder, "echo", ECHO)
    async with session(workspace, box(folder, "project")) as engine:
        first = await engine.call("tb__echo", words="x")
        put(folder, "echo", ECHO + ": > ran\n")
        changed = await engine.call("tb__echo", words="x")
        path.unlink()
        path.symlink_to(put(folder.parent, "other", ECHO))
        linked = await engine.call("tb__echo", words="x")

    assert (first.status, first.result) == ("done", "words: x")
    assert [reply.error and reply.error.error_code for reply in (changed, linked)] == ["changed", "changed"]
    assert not (workspace / "ran").exists()


async def test_a_users_tool_may_be_changed_while_it_is_used(workspace, folder):
    put(folder, "echo", ECHO)
    async with session(workspace, box(folder)) as engine:
        put(folder, "echo", "#!/bin/sh\necho new\n")
        reply = await engine.call("tb__echo", words="x")
        os.unlink(folder / "echo")
        gone = await engine.call("tb__echo", words="x")

    assert reply.result == "new"
    assert gone.status == "error"
    assert "cannot be run" in gone.text
