"""Hooks at work: programs and functions are told of calls, all at once, and their words are put together."""

import asyncio
import json
import os

import pytest

from ferrule.hooks import After, Hook, HookVerdict
from ferrule.hooks.read import from_claude

from .hooking import LIMIT_SECONDS, Desk


@pytest.fixture
def desk(tmp_path):
    one = Desk(tmp_path)
    yield one
    one.close()


def says(**fields):
    """A command line that prints an answer before a call."""
    return printing({"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}})


def printing(answer):
    return f"cat > /dev/null; echo '{json.dumps(answer)}'"


@pytest.mark.contract("hook.protocol")
async def test_a_program_is_told_of_a_call_in_the_words_of_the_protocol(desk):
    command = desk.script('cat > told; printf "%s\\n" "$PWD" "$CLAUDE_PROJECT_DIR" "$FERRULE_PROJECT_DIR" > where')
    said = await desk.before(
        command, told={"command": "é\ud800", "n": [1, None]}, names=["Bash", "shell"], transcript_path="/t.jsonl"
    )

    assert said == HookVerdict()
    assert json.loads((desk.work / "told").read_text()) == {
        "session_id": "S-1",
        "transcript_path": "/t.jsonl",
        "cwd": str(desk.work),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "é\ud800", "n": [1, None]},
        "tool_use_id": "call-1",
    }
    assert (desk.work / "where").read_text().splitlines() == [str(desk.work)] * 3


async def test_a_program_is_told_of_a_reply(desk):
    await desk.after(desk.script("cat > told"))
    told = json.loads((desk.work / "told").read_text())

    assert (told["hook_event_name"], told["tool_response"]) == ("PostToolUse", {"output": "a"})


async def test_a_call_that_failed_is_an_event_of_its_own(desk):
    await desk.after(desk.script("cat > told"), Hook("PostToolUse", command="touch wrong"), failed=True)
    told = json.loads((desk.work / "told").read_text())

    assert (told["hook_event_name"], told["error"]) == ("PostToolUseFailure", {"output": "a"})
    assert not (desk.work / "wrong").exists()


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("SessionStart", {"source": "startup"}),
        ("SessionEnd", {"reason": "exit"}),
        ("Notification", {"message": "May it run?", "notification_type": "permission_prompt"}),
        ("UserPromptSubmit", {"prompt": "hi"}),
        ("Stop", {"stop_hook_active": False}),
    ],
)
async def test_a_program_is_told_of_the_session(desk, event, fields):
    hooks = desk.hooks(Hook(event, command=desk.script("cat > told")))
    async with asyncio.timeout(LIMIT_SECONDS):
        assert await hooks.fire(event, **fields) == After()
    told = json.loads((desk.work / "told").read_text())

    assert told["hook_event_name"] == event
    assert fields.items() <= told.items()
    assert (hooks.has(event), hooks.has("PreToolUse")) == (True, False)


async def test_matchers_of_the_session_are_about_why_it_happens(desk):
    hooks = desk.hooks(
        Hook("SessionStart", "resume", "touch resumed"),
        Hook("SessionStart", "startup|clear", "touch started"),
        Hook("Stop", "whatever", "touch stopped"),
    )
    async with asyncio.timeout(LIMIT_SECONDS):
        await hooks.fire("SessionStart", source="startup")
        await hooks.fire("Stop")

    assert sorted(os.listdir(desk.work)) == ["started", "stopped"]


DENY = "echo 'Not on main.' >&2; exit 2"


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        pytest.param([says(permissionDecision="allow")], HookVerdict("allow"), id="allow"),
        pytest.param(
            [says(permissionDecision="ask", permissionDecisionReason="Sure?")], HookVerdict("ask", "Sure?"), id="ask"
        ),
        pytest.param([DENY], HookVerdict("deny", "Not on main."), id="deny"),
        pytest.param([printing({"decision": "block", "reason": "No."})], HookVerdict("deny", "No."), id="older"),
        pytest.param(
            [printing({"continue": False, "stopReason": "Halt."})],
            HookVerdict("deny", "Halt.", stop="Halt."),
            id="stop",
        ),
        pytest.param(
            [says(permissionDecision="allow"), DENY, says(permissionDecision="ask", permissionDecisionReason="Sure?")],
            HookVerdict("deny", "Not on main."),
            id="the-strictest",
        ),
        pytest.param(
            [
                says(permissionDecision="allow", permissionDecisionReason="fine"),
                says(permissionDecision="ask", permissionDecisionReason="Sure?"),
                says(permissionDecision="ask", permissionDecisionReason="Really?"),
            ],
            HookVerdict("ask", "Sure?\nReally?"),
            id="the-reasons-of-the-strictest",
        ),
        pytest.param(
            [says(additionalContext="One."), says(additionalContext="Two.", permissionDecision="allow")],
            HookVerdict("allow", notes=("One.", "Two.")),
            id="context-in-order",
        ),
        pytest.param(
            [says(updatedInput={"command": "pwd"})], HookVerdict(input={"command": "pwd"}), id="another-input"
        ),
        pytest.param([says(updatedInput={"command": "ls"})], HookVerdict(), id="the-same-input"),
        pytest.param(
            [says(updatedInput={"command": "pwd"}), DENY],
            HookVerdict("deny", "Not on main."),
            id="no-input-where-denied",
        ),
        pytest.param(
            [says(updatedInput={"command": "a"}), says(updatedInput={"command": "b"}), "true"],
            HookVerdict(
                input={"command": "b"},
                notes=(
                    "Several hooks wanted to change the input of this call in different ways; the last one's is used.",
                ),
            ),
            id="the-last-input",
        ),
        pytest.param(["exit 1", "exit 77"], HookVerdict(), id="failing-is-no-word"),
        pytest.param([], HookVerdict(), id="no-hooks"),
    ],
)
async def test_what_hooks_say_before_a_call(desk, hooks, expected):
    assert await desk.before(*hooks) == expected


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        pytest.param(["echo 'Lint it.' >&2; exit 2"], After(blocked="Lint it."), id="exit-2"),
        pytest.param([printing({"decision": "block", "reason": "No."})], After(blocked="No."), id="block"),
        pytest.param(
            [
                printing({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "Seen."}}),
                printing({"decision": "block", "reason": "No.", "additionalContext": "Why."}),
            ],
            After(("Seen.", "Why."), "No."),
            id="several",
        ),
        pytest.param(["echo text"], After(), id="a-text"),
    ],
)
async def test_what_hooks_say_after_a_call(desk, hooks, expected):
    assert await desk.after(*hooks) == expected


async def test_what_is_not_for_the_model_is_for_the_user(desk):
    said = await desk.before(printing({"systemMessage": "Hello."}), "echo oops >&2; exit 3")

    assert said == HookVerdict()
    assert desk.reports == [
        "Hello.",
        "The PreToolUse hook `echo oops >&2; exit 3` failed with exit code 3: oops",
    ]


GUARD = """
import json, sys

told = json.load(sys.stdin)
command = told["tool_input"]["command"]
if command.startswith("rm "):
    print("Use git clean instead.", file=sys.stderr)
    sys.exit(2)
if command.startswith("npm "):
    answer = {"permissionDecision": "allow", "updatedInput": {**told["tool_input"], "command": "p" + command}}
    json.dump({"hookSpecificOutput": {"hookEventName": "PreToolUse", **answer}}, sys.stdout)
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("rm -r x", HookVerdict("deny", "Use git clean instead."), id="refused"),
        pytest.param("npm i", HookVerdict("allow", input={"command": "pnpm i"}), id="changed"),
        pytest.param("ls", HookVerdict(), id="let-through"),
    ],
)
async def test_a_file_of_claude_code_with_a_program_in_python_works_as_it_is(desk, command, expected):
    entry = {"type": "command", "command": desk.python(GUARD), "timeout": 30}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash|Task", "hooks": [entry]}]}}
    found = from_claude(json.dumps(settings).encode(), layer="user", source="settings.json")

    assert await desk.before(*found.hooks, told={"command": command}, names=["shell", "Bash"]) == expected


async def test_only_hooks_whose_matcher_covers_a_name_are_told(desk):
    await desk.before(
        Hook("PreToolUse", "Edit|Write", "touch list"),
        Hook("PreToolUse", "mcp__.*", "touch expression"),
        Hook("PreToolUse", "*", "touch star"),
        Hook("PostToolUse", "", "touch event"),
        names=["apply_patch", "Edit"],
    )

    assert sorted(os.listdir(desk.work)) == ["list", "star"]


async def test_an_identical_command_runs_once(desk):
    count = "echo x >> count"
    await desk.before(
        Hook("PreToolUse", "Bash", count),
        Hook("PreToolUse", "", count, layer="project"),
        Hook("PostToolUse", "", count),
    )

    assert (desk.work / "count").read_text() == "x\n"


async def test_hooks_run_at_the_same_time(desk):
    """Each waits for the other: one after the other, they would never end."""
    for name in ("a", "b"):
        os.mkfifo(desk.work / name)
    said = await desk.before(
        f"echo x > a; read line < b; {says(permissionDecision='allow').removeprefix('cat > /dev/null; ')}",
        "read line < a; echo x > b",
    )

    assert said == HookVerdict("allow")


async def test_variables_of_a_session_start_are_kept_in_order(desk):
    hooks = desk.hooks(
        Hook("SessionStart", command="echo 'export A=1 B=one' >> \"$CLAUDE_ENV_FILE\"; echo $CLAUDE_ENV_FILE > first"),
        Hook("SessionStart", command="echo 'B=\"$HOME\"' >> $CLAUDE_ENV_FILE"),
        Hook("SessionStart", command="echo B=two >> $CLAUDE_ENV_FILE; echo Welcome."),
    )
    async with asyncio.timeout(LIMIT_SECONDS):
        said = await hooks.fire("SessionStart", source="startup")

    assert said == After(("Welcome.",))
    assert hooks.environment_additions() == {"A": "1", "B": "two"}
    assert len(desk.reports) == 1
    assert "worked out" in desk.reports[0]
    assert not os.path.exists((desk.work / "first").read_text().strip())


async def test_only_a_session_start_has_a_file_for_variables(desk):
    await desk.before('[ -z "$CLAUDE_ENV_FILE" ] && touch none')

    assert os.listdir(desk.work) == ["none"]


async def test_programs_of_the_workspace_are_not_found_by_their_name(desk):
    inside = desk.work / "bin"
    inside.mkdir()
    (desk.top / "link").symlink_to(inside)
    for name in ("cat", "bash"):
        (inside / name).write_text("#!/bin/sh\ntouch planted\n")
        (inside / name).chmod(0o755)
    path = os.pathsep.join([str(inside), "bin", ".", "", str(desk.top / "link"), os.environ["PATH"]])
    await desk.before("cat > told", environment={**os.environ, "PATH": path})

    assert sorted(os.listdir(desk.work)) == ["bin", "told"]


def deny(_):
    return {"decision": "block", "reason": "No."}


async def allow_later(_):
    await asyncio.sleep(0)
    return {"hookSpecificOutput": {"permissionDecision": "allow"}}


class Callable:
    def __call__(self, told):
        return {"decision": "approve", "reason": told["tool_name"]}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda _: None, HookVerdict(), id="nothing"),
        pytest.param(deny, HookVerdict("deny", "No."), id="a-function"),
        pytest.param(allow_later, HookVerdict("allow"), id="a-coroutine"),
        pytest.param(Callable(), HookVerdict("allow", "Bash"), id="an-object"),
        pytest.param(
            lambda told: {"hookSpecificOutput": {"updatedInput": {**told["tool_input"], "x": 1}}},
            HookVerdict(input={"command": "ls", "x": 1}),
            id="another-input",
        ),
    ],
)
async def test_functions_answer_as_programs_do(desk, function, expected):
    assert await desk.before(Hook("PreToolUse", function=function)) == expected


async def test_functions_and_programs_are_asked_together(desk):
    assert await desk.before(Hook("PreToolUse", function=deny), says(permissionDecision="allow")) == HookVerdict(
        "deny", "No."
    )


async def test_a_function_cannot_change_what_others_are_told(desk):
    seen: list[dict] = []

    def change(told):
        told["tool_input"]["command"] = "rm"

    told = {"command": "ls", "more": {"half": "\ud800"}}
    await desk.before(Hook("PreToolUse", function=change), Hook("PreToolUse", function=seen.append), told=told)

    assert told == seen[0]["tool_input"] == {"command": "ls", "more": {"half": "\ud800"}}
