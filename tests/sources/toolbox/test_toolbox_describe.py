"""Toolboxes at the start of a session: what counts as a tool, and programs that do all they should not."""

import asyncio
import json
import os
import sys

import pytest
from tests.fifo import Fifo
from tests.sources.toolbox.boxes import QUICK, box, describing, new_mark, put, statuses, toolbox
from tests.support.test_process import living

from ferrule.settings import Settings, ShellSettings, Tools
from ferrule.system.tree import Roster

HURRY = Settings(tools=Tools(describe_seconds=2.0))
TEXT = "name: {}\ndescription: Does it."


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "box"


async def test_executables_are_tools_and_nothing_else_is(folder):
    put(folder, "b-tool", describing(TEXT.format("second")))
    put(folder, "a-tool", describing(TEXT.format("first")))
    put(folder, "data.json", "{}", mode=0o644)
    put(folder, "README.md", "# About these tools\n", mode=0o644)
    put(folder, "NOTES.md", "#!/bin/sh\nexit 3\n")
    put(folder, ".hidden", describing(TEXT.format("hidden")))
    put(folder / "sub", "tool", describing(TEXT.format("sub")))
    (folder / "link").symlink_to(put(folder.parent, "elsewhere", describing(TEXT.format("linked"))))
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe", 0o755)
    box_of_it = toolbox(box(folder))

    brought = await box_of_it.load()

    assert [tool.name for tool in brought.tools] == ["tb__first", "tb__second", "tb__linked"]
    assert brought.warnings == ()
    assert set(statuses(box_of_it.entries).values()) == {"registered"}
    first = brought.tools[0]
    assert (first.source, first.origin, first.words) == ("toolbox", str(folder / "a-tool"), "Does it.")


async def test_a_tool_without_a_name_is_called_like_its_file(folder):
    put(folder, "run my tests.sh", describing("description: Does it."))

    (tool,) = (await toolbox(box(folder)).load()).tools

    assert tool.name == "tb__run-my-tests"


async def test_no_folders_are_no_tools(tmp_path):
    assert await toolbox().load() == ((), ())
    brought = await toolbox(box(tmp_path / "none")).load()
    assert brought.tools == ()
    assert "cannot be read" in brought.warnings[0]


@pytest.mark.contract("toolbox.duplicates")
async def test_the_earlier_folder_has_a_name_and_the_other_is_a_duplicate(tmp_path):
    put(tmp_path / "one", "z", describing("name: same\ndescription: First."))
    put(tmp_path / "two", "a", describing("name: same\ndescription: Second."))
    both = toolbox(box(tmp_path / "one"), box(tmp_path / "two"))

    brought = await both.load()

    assert [tool.words for tool in brought.tools] == ["First."]
    assert [(entry.status, entry.name) for entry in both.entries] == [
        ("registered", "tb__same"),
        ("duplicate", "tb__same"),
    ]
    assert str(tmp_path / "one" / "z") in both.entries[1].reason
    assert len(brought.warnings) == 1


async def test_only_the_first_hundred_of_a_folder_are_used(folder):
    for number in range(103):
        put(folder, f"{number:03}.md", "---\ntype: subagent\n---\nYou.\n", mode=0o644)

    brought = await toolbox(box(folder)).load()

    assert len(brought.tools) == 100
    assert "103 tools" in brought.warnings[0]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param("#!/bin/sh\nexec sleep 600\n", "within 2 seconds", id="hangs"),
        pytest.param("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 600; done\n", "within 2 seconds", id="ignores-term"),
        pytest.param("#!/bin/sh\nexec cat\n", "wrote nothing", id="reads-where-nothing-is"),
        pytest.param("#!/bin/sh\nexec yes\n", "more than 1,048,576", id="floods"),
        pytest.param("#!/bin/sh\nexec yes >&2\n", "more than 1,048,576", id="floods-with-errors"),
        pytest.param("#!/bin/sh\necho ready; echo 'no \033[31mluck' >&2; exit 3\n", "exit code 3", id="exits-with-3"),
        pytest.param("#!/bin/sh\nkill -9 $$\n", "exit code 137", id="kills-itself"),
        pytest.param("#!/bin/sh\nexit 0\n", "wrote nothing", id="says-nothing"),
        pytest.param("#!/bin/sh\necho name: x\n", "no description", id="no-description"),
        pytest.param(b"#!/bin/sh\nprintf '\\377\\000\\001junk'\n", "neither JSON nor", id="junk-from-a-script"),
        pytest.param(b"\x7fELF\x00\xff not really", "cannot be run", id="junk-itself"),
        pytest.param("echo no first line\n", "cannot be run", id="no-first-line"),
        pytest.param("#!/nowhere/interpreter\n", "cannot be run", id="no-interpreter"),
        pytest.param(b"", "", id="empty"),
    ],
)
async def test_a_bad_program_fails_with_a_reason_and_harms_no_other(folder, script, reason):
    put(folder, "bad", script)
    put(folder, "good", describing(TEXT.format("good")))
    box_of_it = toolbox(box(folder), settings=HURRY if "within" in reason else QUICK)
    if "600" in str(script):
        mark = new_mark()
        put(folder, "bad", script.replace("600", mark))
        box_of_it = toolbox(box(folder), settings=HURRY)

    brought = await box_of_it.load()

    bad = box_of_it.entries[0]
    assert (bad.status, bad.name) == ("failed", "")
    assert reason in bad.reason
    assert brought.warnings[0] == f"{bad.path}: {bad.reason}"
    assert "\x1b" not in bad.reason
    if "600" in str(script):
        assert living(mark) == []
    else:
        assert statuses(box_of_it.entries)["good"] == "registered"


async def test_what_a_program_left_running_is_ended(folder):
    mark = new_mark()
    put(
        folder,
        "daemon",
        f"#!/bin/bash\n(setsid sleep {mark} >/dev/null 2>&1 &)\nsleep {mark} &\n{describing(TEXT.format('d'))}",
    )

    brought = await toolbox(box(folder)).load()

    assert [tool.name for tool in brought.tools] == ["tb__d"]
    assert living(mark) == []


async def test_giving_up_leaves_no_process(folder, tmp_path):
    mark, up = new_mark(), Fifo(tmp_path / "up")
    put(folder, "slow", f"#!/bin/sh\necho > {tmp_path}/up\nexec sleep {mark}\n")
    loading = asyncio.create_task(toolbox(box(folder)).load())
    await up.said()

    loading.cancel()
    await asyncio.wait([loading], timeout=30)

    assert loading.cancelled()
    assert living(mark) == []


async def test_programs_that_had_no_turn_stay_pending(folder):
    for number in range(9 * 8):
        put(folder, f"{number:02}", "#!/bin/sh\nexec sleep 100\n")
    box_of_it = toolbox(box(folder), settings=Settings(tools=Tools(describe_seconds=0.02)))

    await box_of_it.load()

    found = statuses(box_of_it.entries)
    assert set(found.values()) <= {"failed", "pending"}
    assert found["00"] == "failed"
    assert found["71"] == "pending"
    assert "no turn" in box_of_it.entries[-1].reason


async def test_eight_run_at_once_and_no_more(folder, tmp_path):
    up = tmp_path / "up"
    up.mkdir()
    look = f"#!/bin/sh\n: > {up}/$$\nls {up} | wc -l >> {tmp_path}/seen\n"
    wait = f"until [ -e {tmp_path}/full ]; do [ $(ls {up} | wc -l) -lt 8 ] || : > {tmp_path}/full; sleep 0.01; done\n"
    for number in range(24):
        put(folder, f"{number:02}", f"{look}{wait}rm {up}/$$\necho name: {number}\necho description: x\n")

    brought = await toolbox(box(folder)).load()

    assert len(brought.tools) == 24
    assert (tmp_path / "full").exists()  # one of eight may be seen only when the first of them is gone
    assert max(map(int, (tmp_path / "seen").read_text().split())) <= 8


async def test_a_killed_engine_leaves_a_trace_in_the_roster(folder, tmp_path):
    put(folder, "look", f"#!/bin/sh\nls {tmp_path}/roster > {tmp_path}/seen\necho description: x\n")
    box_of_it = toolbox(box(folder), roster=Roster(str(tmp_path / "roster")))

    await box_of_it.load()

    assert (tmp_path / "seen").read_text().strip().endswith(".process")
    assert [name for name in os.listdir(tmp_path / "roster") if name.endswith(".process")] == []


@pytest.mark.contract("toolbox.environment")
async def test_the_environment_is_amps_without_secrets(folder, monkeypatch):
    script = (
        "import json, os, sys\n"
        "names = 'TOOLBOX_ACTION AGENT CLAUDECODE AMP_THREAD_ID AGENT_THREAD_ID MY_TOKEN MY_KEPT_TOKEN OK PATH PWD'\n"
        "seen = {name: os.environ.get(name) for name in names.split()}\n"
        "print(json.dumps({'name': 'env', 'description': json.dumps([seen, os.getcwd(), sys.stdin.read()])}))\n"
    )
    put(folder, "env", f"#!{sys.executable}\n{script}")
    monkeypatch.setenv("MY_TOKEN", "hunter2")
    monkeypatch.setenv("MY_KEPT_TOKEN", "wanted")
    monkeypatch.setenv("OK", "yes")
    monkeypatch.setenv("PATH", f".:relative::{os.environ['PATH']}")
    settings = Settings(tools=QUICK.tools, shell=ShellSettings(keep_env=("MY_KEPT_TOKEN",)))

    (tool,) = (await toolbox(box(folder), settings=settings).load()).tools

    seen, cwd, stdin = json.loads(tool.words)
    path = seen.pop("PATH").split(os.pathsep)
    assert seen == {
        "TOOLBOX_ACTION": "describe",
        "AGENT": "amp",
        "CLAUDECODE": "1",
        "AMP_THREAD_ID": None,
        "AGENT_THREAD_ID": None,
        "MY_TOKEN": None,
        "MY_KEPT_TOKEN": "wanted",
        "OK": "yes",
        "PWD": str(folder),
    }
    assert (cwd, stdin) == (str(folder), "")
    assert path
    assert all(map(os.path.isabs, path))


async def test_what_anybody_can_change_is_not_run(folder):
    put(folder, "open", f"#!/bin/sh\n: > {folder}/ran\n", mode=0o757)
    box_of_it = toolbox(box(folder))

    await box_of_it.load()

    assert statuses(box_of_it.entries) == {"open": "failed"}
    assert "chmod o-w" in box_of_it.entries[0].reason
    assert not (folder / "ran").exists()


async def test_a_folder_that_anybody_can_change_is_not_run(folder):
    put(folder, "tool", f"#!/bin/sh\n: > {folder}/ran\n")
    folder.chmod(0o777)
    box_of_it = toolbox(box(folder))

    await box_of_it.load()

    assert statuses(box_of_it.entries) == {"tool": "failed"}
    assert not (folder / "ran").exists()


async def test_a_link_in_a_project_is_not_followed(folder, tmp_path):
    target = put(tmp_path / "elsewhere", "tool", f"#!/bin/sh\n: > {tmp_path}/ran\n")
    folder.mkdir()
    (folder / "tool").symlink_to(target)
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    boxes = toolbox(box(folder, "project"), box(tmp_path / "linked", "project"))

    brought = await boxes.load()

    assert statuses(boxes.entries) == {"tool": "failed"}
    assert len(brought.warnings) == 2
    assert not (tmp_path / "ran").exists()


async def test_of_a_project_only_what_is_trusted_is_run(folder):
    trusted = describing(TEXT.format("trusted"))
    for name in ("added", "changed", "same"):
        put(folder, name, f"#!/bin/sh\n: > {folder}/ran\n" if name != "same" else trusted)
    put(folder, "prompt.md", "---\ntype: subagent\n---\nChanged.\n", mode=0o644)
    contents = {str(folder / name): trusted.encode() for name in ("changed", "same")}
    contents[str(folder / "prompt.md")] = b"---\ntype: subagent\n---\nOld.\n"
    boxes = toolbox(box(folder, "project"), trusted=contents)

    brought = await boxes.load()

    expected = {"added": "failed", "changed": "failed", "prompt.md": "failed", "same": "registered"}
    assert statuses(boxes.entries) == expected
    assert [tool.name for tool in brought.tools] == ["tb__trusted"]
    assert not (folder / "ran").exists()
