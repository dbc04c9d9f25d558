"""`ClaudeSDKClient`: what its callbacks, hooks and controls mean, as Claude Code has it; see `test_options`."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
)
from tests.cli.sdk.program import Program, Seen

pytestmark = pytest.mark.usefixtures("asking")


class Client:
    """A client, and what was seen of the program behind it."""

    def __init__(self, client: ClaudeSDKClient, seen: Seen) -> None:
        self.sdk = client
        self.seen = seen

    async def ask(self, prompt: str = "PROMPT") -> Any:
        """The result of one prompt."""
        await self.sdk.query(prompt)
        async for message in self.sdk.receive_response():
            self.seen.messages.append(message)
        return self.seen.result

    async def control(self, **request: Any) -> Any:
        """What comes back to a control request, or the words of its refusal."""
        assert self.sdk._query is not None
        try:
            return await self.sdk._query._send_control_request(request)
        except Exception as error:  # noqa: BLE001 - the SDK raises this one
            return str(error)


@pytest.fixture
def client(program: Program) -> Callable[..., Any]:
    @contextlib.asynccontextmanager
    async def begin(cues: Any, **given: Any) -> AsyncIterator[Client]:
        address, talk = program._api.talk(cues if isinstance(cues, dict) else {"PROMPT": cues})
        seen = Seen(talk)
        async with ClaudeSDKClient(program.options(address, seen, given)) as made:
            yield Client(made, seen)

    return begin


def write(program: Program, name: str = "a.txt", content: str = "x") -> tuple[str, dict[str, Any]]:
    return "Write", {"file_path": f"{program.workspace}/{name}", "content": content}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command, "description": "do it"}


def answering(asked: list[str], result: Callable[[dict[str, Any]], Any]) -> Any:
    async def answer(name: str, given: dict[str, Any], about: Any) -> Any:
        asked.append(name)
        return result(given)

    return answer


def results(seen: Seen) -> list[tuple[str, bool]]:
    """The results of calls on the stream, each as words and whether it is an error."""
    blocks = [block for one in seen.of("UserMessage") if isinstance(one.content, list) for block in one.content]
    found = [block for block in blocks if hasattr(block, "tool_use_id")]
    return [
        (block.content if isinstance(block.content, str) else block.content[0]["text"], bool(block.is_error))
        for block in found
    ]


def said_by_user(seen: Seen) -> list[str]:
    blocks = [block for one in seen.of("UserMessage") if isinstance(one.content, list) for block in one.content]
    return [block.text for block in blocks if hasattr(block, "text")]


# An input that the user gives instead


@pytest.mark.parametrize(
    ("call", "changed", "files", "error"),
    [
        ("write", {"content": "CHANGED"}, {"a.txt": "CHANGED"}, ""),
        ("write", {"content": None}, {}, "content"),
        ("bash", {"command": "touch c; touch d"}, {"c": "", "d": ""}, ""),
    ],
    ids=["changed", "misfit", "another-that-would-ask"],
)
async def test_a_call_is_made_with_the_input_that_the_user_gives(program, client, call, changed, files, error):
    asked: list[str] = []
    made = write(program) if call == "write" else bash("touch b")

    def change(given: dict[str, Any]) -> PermissionResultAllow:
        wanted = {key: value for key, value in {**given, **changed}.items() if value is not None}
        return PermissionResultAllow(updated_input=wanted)

    async with client([[made], "Done"], can_use_tool=answering(asked, change)) as one:
        result = await one.ask()

    assert (len(asked), program.files(), result.result) == (1, files, "Done")
    ((words, failed),) = results(one.seen)
    assert failed is bool(error)
    assert error in words


# Claude Code lets it pass. What is denied stays denied here, whoever gives the input.
@pytest.mark.parametrize("path", ["denied", "guarded"])
async def test_what_is_denied_and_guarded_stays_so_in_an_input_that_the_user_gives(program, client, path):
    target = {"denied": f"{program.workspace}/no.txt", "guarded": f"{program.workspace}/.git/hooks/pre-commit"}[path]
    answer = answering([], lambda given: PermissionResultAllow(updated_input={**given, "file_path": target}))
    rules = json.dumps({"permissions": {"deny": ["Edit(no.txt)"]}})
    async with client([[write(program)], "Done"], can_use_tool=answer, settings=rules) as one:
        await one.ask()

    ((_, failed),) = results(one.seen)
    assert failed or not program.is_own
    assert program.files() == {}


async def test_an_input_outside_the_workspace_may_be_given(program, client):
    outside = program.home / "out.txt"
    answer = answering([], lambda given: PermissionResultAllow(updated_input={**given, "file_path": str(outside)}))
    async with client([[write(program)], "Done"], can_use_tool=answer) as one:
        await one.ask()

    assert outside.read_text() == "x"


# A no that ends the work


async def test_a_no_may_end_the_work_and_the_next_prompt_is_answered(program, client):
    asked: list[str] = []
    answer = answering(asked, lambda _: PermissionResultDeny(message="Not today.", interrupt=True))
    async with client([[write(program), write(program, "b.txt")], "Again"], can_use_tool=answer) as one:
        stopped = await one.ask()
        words = results(one.seen)
        told = said_by_user(one.seen)
        done = await one.ask("PROMPT two")

    assert (stopped.subtype, len(stopped.permission_denials)) == ("error_during_execution", 1)
    assert told == ["[Request interrupted by user for tool use]"]
    assert (len(words), len(asked), program.files()) == (2, 1, {})
    assert (done.result, done.subtype) == ("Again", "success")
    if program.is_own:  # Claude Code tells the model a sentence of its own, and keeps the user's reason from it
        assert words[0] == ("Not today.", True)
        assert str(one.seen.asked[-1]["messages"]).count("Not today.") == 1
    assert len(one.seen.asked) == 2


async def test_an_interruption_is_told_and_the_next_prompt_is_answered(client):
    async with client([None, "Second"], include_partial_messages=True) as one:
        await one.sdk.query("PROMPT")
        async for message in one.sdk.receive_messages():
            one.seen.messages.append(message)
            if type(message).__name__ == "StreamEvent" and message.event["type"] == "content_block_delta":
                await one.sdk.interrupt()
            if type(message).__name__ == "ResultMessage":
                break
        first = one.seen.result
        second = await one.ask("PROMPT two")

    assert (first.subtype, said_by_user(one.seen)) == (
        "error_during_execution",
        ["[Request interrupted by user]"],
    )
    assert second.result == "Second"


# Hooks that end the work


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"])
async def test_a_hook_may_end_the_work(program, client, event):
    calls: list[str] = []

    async def halt(given: Any, key: str | None, about: Any) -> Any:
        calls.append(given["hook_event_name"])
        return {"continue_": False, "stopReason": "ENOUGH"} if len(calls) == 1 else {}

    hooks = {event: [HookMatcher(hooks=[halt])]}
    async with client([[bash("touch b")], "Done", "More"], allowed_tools=["Bash"], hooks=hooks) as one:
        first = await one.ask()
        asked = len(one.seen.asked)
        warned = one.seen.warnings
        await one.ask("PROMPT two")

    assert first.subtype == "success"
    assert asked == {"UserPromptSubmit": 0, "Stop": 2}.get(event, 1)
    assert not program.is_own or warned == ["A hook has ended the work: ENOUGH"]
    assert len(one.seen.asked) > asked


async def test_hooks_are_told_of_questions_and_subagents(program, client):
    told: list[tuple[str, str]] = []

    async def note(given: Any, key: str | None, about: Any) -> Any:
        told.append((given["hook_event_name"], given.get("tool_name") or given.get("agent_type") or ""))
        return {}

    events = ("PermissionRequest", "SubagentStart", "SubagentStop")
    task = {"description": "look", "prompt": "SUBJOB", "subagent_type": "general-purpose", "run_in_background": False}
    cues = {"SUBJOB": ["Sub done."], "PROMPT": [[write(program)], [("Task", task)], "Done"]}
    allow = answering([], lambda _: PermissionResultAllow())
    hooks = {event: [HookMatcher(hooks=[note])] for event in events}
    async with client(cues, hooks=hooks, can_use_tool=allow) as one:
        await one.ask()

    assert told == [
        ("PermissionRequest", "Write"),
        ("SubagentStart", "general-purpose"),
        ("SubagentStop", "general-purpose"),
    ]


# What a client asks for


async def test_skills_and_kinds_of_agents_are_listed(program, client):
    program.write(".claude/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nHello")
    program.write(".claude/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nHelp.")
    async with client(["x"], agents={"rev": AgentDefinition(description="Reviews.", prompt="Review.")}) as one:
        info = await one.sdk.get_server_info()

    assert info is not None
    assert "greet" in [command["name"] for command in info["commands"]]
    assert {"helper", "rev", "general-purpose"} <= {agent["name"] for agent in info["agents"]}


async def test_thinking_the_model_and_the_mode_change_between_prompts(program, client):
    async with client(["One", "Two"]) as one:
        await one.ask()
        answers = [
            await one.control(subtype="set_max_thinking_tokens", max_thinking_tokens=5000),
            await one.control(subtype="set_permission_mode", mode="plan"),
        ]
        await one.sdk.set_model("claude-sonnet-4-5")
        await one.ask("PROMPT two")

    last = one.seen.asked[-1]
    assert answers == [{}, {"mode": "plan"}]
    assert (last["model"], last["thinking"]["budget_tokens"]) == ("claude-sonnet-4-5", 5000)
    assert [status.data["permissionMode"] for status in one.seen.of("status")] == ["plan"]


async def test_settings_are_applied_to_a_session_that_runs(program, client):
    async with client(["One", [bash("touch b")], "Two"], allowed_tools=["Bash"]) as one:
        await one.ask()
        applied = await one.control(subtype="apply_flag_settings", settings={"permissions": {"deny": ["Bash"]}})
        await one.ask("PROMPT two")

    assert applied == {}
    assert program.files() == {}
    assert not program.is_own or "Bash" not in [tool["name"] for tool in one.seen.asked[-1]["tools"]]


async def test_files_are_put_back_to_what_they_were_before_a_message(program, client):
    program.write("a.txt", "before")
    cues = [[("Read", {"file_path": f"{program.workspace}/a.txt"})], [write(program, content="after")], "Done"]
    async with client(cues, allowed_tools=["Write"], enable_file_checkpointing=True) as one:

        async def prompts() -> AsyncIterator[dict[str, Any]]:
            message = {"role": "user", "content": "PROMPT"}
            yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "", "uuid": KEY}

        await one.sdk.query(prompts())
        async for _ in one.sdk.receive_response():
            pass
        changed = program.files()
        await one.sdk.rewind_files(KEY)

    assert (changed, program.files()) == ({"a.txt": "after"}, {"a.txt": "before"})


KEY = "11111111-2222-4333-8444-555555555555"


async def test_what_has_no_counterpart_is_refused_with_words_and_the_session_goes_on(program, client):
    requests: list[dict[str, Any]] = [
        {"subtype": "mcp_reconnect", "serverName": "none"},
        {"subtype": "mcp_toggle", "serverName": "none", "enabled": False},
        {"subtype": "rewind_files", "user_message_id": "none"},
        {"subtype": "nonsense"},
    ]
    async with client(["One"]) as one:
        refused = [await one.control(**request) for request in requests]
        result = await one.ask()

    assert all(isinstance(words, str) and len(words) > 10 for words in refused)
    assert result.result == "One"


async def test_a_picture_that_cannot_be_sent_is_an_error_and_the_session_goes_on(program, client):
    if not program.is_own:
        pytest.skip("Claude Code sends it, and the API refuses it.")
    async with client(["One"]) as one:

        async def prompts() -> AsyncIterator[dict[str, Any]]:
            source = {"type": "base64", "media_type": "image/png", "data": "bm8="}
            message = {"role": "user", "content": [{"type": "image", "source": source}]}
            yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}

        await one.sdk.query(prompts())
        async for message in one.sdk.receive_response():
            one.seen.messages.append(message)
        wrong = one.seen.result
        done = await one.ask()

    assert (wrong.is_error, wrong.subtype, done.result) == (True, "error_during_execution", "One")
