"""Ways past the user's hooks: other names, other families' tools, arguments to be mended, scripts, skills."""

import pytest

from ferrule import Call, Hook
from ferrule.dialects import FAMILIES
from tests.faults.elsewhere import Asked, Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


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
