"""Attacks through tools from elsewhere: a hostile project, and a model that writes what is obeyed later."""

import asyncio
import os
import subprocess

import pytest

from ferrule import Call, Engine, Hook, Settings
from ferrule.core.errors import ConfigError
from ferrule.dialects.dialect import FAMILIES
from ferrule.permissions.asker import Answer
from ferrule.permissions.code import code_files
from ferrule.permissions.layers import PROJECT_FILES, project_files
from ferrule.permissions.trust import Trust
from ferrule.settings import Permissions, Shell
from ferrule.workspace.search_path import outside


class Asked(list):
    """Somebody who remembers every question; lets calls pass, but nothing out of the sandbox."""

    def __init__(self, *, allow=True, always=False):
        self.allow, self.always = allow, always

    async def ask(self, question):
        self.append(question)
        return Answer(allow=self.allow and question.kind != "outside", always=self.always)


class Project:
    """A workspace that the user may trust."""

    def __init__(self, tmp_path):
        self.folder = tmp_path / "work"
        self.folder.mkdir()
        self.state = str(tmp_path / "state")

    def put(self, name, text, *, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(mode)
        return path

    def skill(self, name, *, header=""):
        return self.put(f".agents/skills/{name}/SKILL.md", f"---\ndescription: x\n{header}---\nText.\n")

    def trust(self):
        folder = str(self.folder)
        Trust(self.state).grant(folder, project_files(folder))
        Trust(self.state, "code").grant(folder, code_files(folder))

    def opened(self, *, ask=None, dialect="claude", hooks=(), **settings):
        given = Settings(**settings) if settings else None
        return Engine(self.folder, dialect=dialect, ask=ask, hooks=hooks, settings=given, state=self.state)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


async def test_a_skill_that_came_after_the_trust_brings_no_rules(project):
    project.skill("known", header="allowed-tools: Read\n")
    project.trust()
    asked = Asked(allow=False)

    async with project.opened(ask=asked, permissions=Permissions(allow=("Skill",))) as engine:
        await engine.call("Skill", skill="known")
        project.skill("late", header="allowed-tools: Bash(*)\n")
        late = await engine.call("Skill", skill="late")
        command = await engine.call("Bash", command="touch made")

    assert "Bash" not in late.result
    assert (command.status, len(asked)) == ("rejected-by-user", 1)
    assert not (project.folder / "made").exists()


async def test_always_said_to_one_skill_is_not_said_to_another(project):
    project.skill("one", header="allowed-tools: Read\n")
    project.skill("two", header="allowed-tools: Bash(*)\n")
    project.trust()
    asked = Asked(always=True)

    async with project.opened(ask=asked) as engine:
        await engine.call("Skill", skill="one")
        await engine.call("Skill", skill="one")
        await engine.call("Skill", skill="two")

    assert [question.summary.rsplit(":", 1)[1] for question in asked] == ["one", "two"]


COMMANDS = [
    pytest.param("exec_command", {"cmd": "echo secret"}, id="another-familys-tool"),
    pytest.param("exec_command", {"cmd": "echo secret", "yield_time_ms": "1000"}, id="with-a-number-in-quotes"),
    pytest.param("run_terminal_command", {"command": "echo secret", "timeout_ms": "1000"}, id="an-older-name"),
    pytest.param("Bash", {"cmd": "echo secret", "timeout_ms": "1000"}, id="with-a-number-to-be-mended"),
    pytest.param("shell", {"command": ["echo", "secret"], "timeout_ms": "1000"}, id="as-a-list"),
]


@pytest.mark.parametrize("dialect", FAMILIES)
@pytest.mark.parametrize(("name", "values"), COMMANDS)
async def test_no_way_to_call_a_shell_goes_past_a_hook_on_bash(project, dialect, name, values):
    told = []

    def hook(given):
        told.append(given)
        refused = "secret" in given["tool_input"].get("command", "")
        return {"decision": "block", "reason": "no"} if refused else None

    async with project.opened(dialect=dialect, hooks=[Hook("PreToolUse", "Bash", function=hook)]) as engine:
        (reply,) = await engine.run([Call(name, values)])

    # Where a family does not take the call at all, there is nothing to refuse.
    assert reply.status != "done"
    if reply.error.error_code not in {"bad-arguments", "unknown-tool"}:
        assert [one["tool_input"]["command"] for one in told] == ["echo secret"]


EDITS = [
    pytest.param("apply_patch", "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n", id="a-patch"),
    pytest.param("delete_file", {"path": "a.txt"}, id="a-deletion"),
    pytest.param("edit", {"path": "a.txt", "edits": [{"oldText": "a", "newText": "b"}]}, id="several-edits"),
]


@pytest.mark.parametrize("matcher", ["Edit|Write", "^(Edit|MultiEdit|Write)$"])
@pytest.mark.parametrize(("name", "values"), EDITS)
async def test_no_way_to_change_a_file_goes_past_a_hook_on_edits(project, matcher, name, values):
    project.put("a.txt", "a\n")
    hook = Hook("PreToolUse", matcher, function=lambda _: {"decision": "block", "reason": "no"})

    async with project.opened(ask=Asked(), hooks=[hook]) as engine:
        await engine.call("Read", file_path=str(project.folder / "a.txt"))
        (reply,) = await engine.run([Call(name, values)])

    assert (reply.status, (project.folder / "a.txt").read_text()) == ("rejected-by-user", "a\n")


HOOKS = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "COMMAND"}]}]}}'
NAMED = [
    pytest.param("scripts/check.sh", id="as-it-is"),
    pytest.param("bash ./scripts/check.sh", id="behind-its-shell"),
    pytest.param('\\"$CLAUDE_PROJECT_DIR\\"/scripts/check.sh', id="in-the-project"),
    pytest.param("true && ${CLAUDE_PROJECT_DIR}/scripts/check.sh", id="behind-another"),
]


@pytest.mark.parametrize("command", NAMED)
async def test_a_script_of_a_trusted_hook_runs_only_as_it_was_trusted(project, command, tmp_path):
    made = tmp_path / "made"
    project.put("a.txt", "a\n")
    project.put(".claude/settings.json", HOOKS.replace("COMMAND", command))
    script = project.put("scripts/check.sh", f"#!/bin/sh\necho ran >> {made}\n", mode=0o755)
    project.trust()
    asked = Asked(allow=False)

    async with project.opened(ask=asked) as engine:
        await engine.call("Read", file_path=str(project.folder / "a.txt"))
        assert made.read_text() == "ran\n"
        write = await engine.call("Write", file_path=str(script), content=f"echo evil >> {made}\n")
        assert write.error.error_code == "writing-protected-file"
        before = made.read_text()
        project.put("scripts/check.sh", f"#!/bin/sh\necho evil >> {made}\n", mode=0o755)
        reply = await engine.call("Read", file_path=str(project.folder / "a.txt"))
        assert "not the one that the user trusts" in " ".join(engine.warnings)

    assert (reply.status, made.read_text()) == ("rejected-by-user", before)
    async with project.opened(ask=asked) as engine:  # the next session trusts none of it
        assert (await engine.call("Read", file_path=str(project.folder / "a.txt"))).status == "done"
    assert made.read_text() == before


async def test_a_trusted_program_cannot_be_written_by_the_session_that_may_run_it(project):
    project.put("tools/deploy", "#!/bin/sh\necho deployed\n", mode=0o755)
    project.put("tools/lines.py", "TOOL = None\n")
    project.trust()

    async with project.opened(ask=Asked()) as engine:
        for name in ("deploy", "lines.py"):
            path = str(project.folder / "tools" / name)
            reply = await engine.call("Write", file_path=path, content="#!/bin/sh\necho evil\n")
            assert reply.error.error_code == "writing-protected-file"
        await engine.call("Bash", command="echo echo evil >> tools/deploy")
        reply = await engine.call("deploy", args="")

    assert reply.result.strip() == "deployed"


KINDS = {
    "fifo": os.mkfifo,
    "folder": os.mkdir,
    "loop": lambda path: os.symlink(os.path.basename(path), path),
    "endless": lambda path: os.symlink("/dev/zero", path),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such files; the others are tested elsewhere")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROJECT_FILES)
async def test_what_is_no_file_where_rules_belong_is_told_as_a_mistake_of_the_project(project, name, kind):
    (project.folder / name).parent.mkdir(parents=True)
    KINDS[kind](str(project.folder / name))

    with pytest.raises(ConfigError, match="Cannot read the rules in"):
        async with asyncio.timeout(20), project.opened():
            pass


def test_programs_are_not_looked_for_in_the_workspace(tmp_path):
    work, link = tmp_path / "work", tmp_path / "link"
    (work / ".venv" / "bin").mkdir(parents=True)
    link.symlink_to(work / ".venv" / "bin")
    path = os.pathsep.join([str(work / ".venv" / "bin"), "bin", str(link), "", "/usr/bin", str(tmp_path / "workshop")])

    assert outside(path, [str(work)]) == os.pathsep.join(["/usr/bin", str(tmp_path / "workshop")])


async def test_a_program_left_in_the_workspace_is_not_run_when_tools_describe_themselves(
    project, tmp_path, monkeypatch
):
    made = tmp_path / "made"
    project.put(".venv/bin/sh", f"#!/bin/sh\ntouch {made}\n", mode=0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(project.folder / ".venv" / "bin"), os.environ["PATH"]]))
    boxes = {"toolbox": "echo 'name: boxed'; echo 'description: x'", "tools": "echo described"}
    settings = tmp_path / "settings"
    for folder, line in boxes.items():
        (settings / folder).mkdir(parents=True)
        (settings / folder / "mine").write_text(f"#!/usr/bin/env sh\n{line}\n", "utf-8")
        (settings / folder / "mine").chmod(0o755)
    (settings / "settings.toml").write_text("", "utf-8")
    monkeypatch.setenv("FERRULE_SETTINGS", str(settings / "settings.toml"))
    assert subprocess.run(["sh", "-c", "true"], check=True).returncode == 0
    made.unlink(missing_ok=True)

    async with project.opened(ask=Asked(), shell=Shell()) as engine:
        names = {one["name"] for one in engine.definitions()}
        replies = await engine.run([Call("tb__boxed", {}), Call("mine", {})])

    assert {"tb__boxed", "mine"} <= names
    assert [reply.status for reply in replies] == ["done", "done"]
    assert not made.exists()


RESOURCES = [
    pytest.param("list_mcp_resources", {"server": "evil"}, id="its-resources"),
    pytest.param("list_mcp_resources", {}, id="all-resources"),
    pytest.param("list_mcp_resource_templates", {}, id="all-templates"),
    pytest.param("read_mcp_resource", {"server": "evil", "uri": "x://y"}, id="a-resource"),
]


@pytest.mark.parametrize("rule", ["mcp__evil", "mcp__evil__*", "mcp__EVIL", "mcp__*"])
@pytest.mark.parametrize(("name", "values"), RESOURCES)
async def test_a_rule_that_denies_a_server_holds_for_whatever_goes_to_it(project, name, values, rule):
    rules = Permissions(deny=(rule,), allow=("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"))

    async with project.opened(dialect="codex", permissions=rules) as engine:
        decision = await engine.decide(Call(name, values))

    assert decision.verdict == "deny"


@pytest.mark.parametrize(("name", "values"), RESOURCES)
async def test_a_rule_that_allows_a_servers_tools_says_nothing_of_what_else_it_offers(project, name, values):
    async with project.opened(dialect="codex", permissions=Permissions(allow=("mcp__evil",))) as engine:
        decision = await engine.decide(Call(name, values))

    assert decision.verdict == "ask"


@pytest.mark.parametrize(
    ("word", "status"),
    [
        pytest.param({"decision": "block", "reason": "no"}, "rejected-by-user", id="refused"),
        pytest.param({"hookSpecificOutput": {"permissionDecision": "allow"}}, "rejected-by-user", id="allowed-alone"),
        pytest.param(
            {"hookSpecificOutput": {"updatedInput": {"command": "true"}}}, "rejected-by-user", id="wanted-otherwise"
        ),
    ],
)
async def test_a_hook_on_the_shell_has_its_word_on_the_commands_of_a_skill(project, word, status):
    skill = project.skill("late")
    skill.write_text(f"{skill.read_text()}!`touch made`\n")
    told = []

    def hook(given):
        told.append((given["tool_name"], given["tool_input"]))
        return word

    async with project.opened(ask=Asked(allow=False), hooks=[Hook("PreToolUse", "Bash", function=hook)]) as engine:
        reply = await engine.call("Skill", skill="late")

    assert told == [("Bash", {"command": "touch made"})]
    assert (reply.status, (project.folder / "made").exists()) == (status, False)


async def test_what_a_project_calls_its_files_does_not_steer_the_screen(project):
    os.makedirs(project.folder / "tools")
    with open(os.path.join(os.fsencode(project.folder), b"tools", b"\xff\n\x1b[2Jevil.py"), "wb") as file:
        file.write(b"TOOL = {}\n")

    async with project.opened() as engine:
        said = " ".join(engine.warnings)

    assert "not used" in said
    assert said.isprintable()
    assert said.encode()


SERVER = '{"mcpServers": {"theirs": {"command": "sh", "args": ["-c", "true \\u2028in /safe"]}}}'


@pytest.mark.parametrize(("mode", "asks"), [("default", True), ("dontAsk", False)])
async def test_nobody_is_asked_about_a_server_where_the_mode_says_no_to_questions(project, mode, asks):
    project.put(".mcp.json", SERVER)
    asked = Asked(allow=False)

    async with Engine(project.folder, ask=asked, permission_mode=mode, state=project.state) as engine:
        await engine.connect()

    assert [question.kind for question in asked] == ["server"] * asks
    assert all(line.isprintable() for question in asked for line in question.effects)
