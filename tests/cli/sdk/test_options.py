"""Every option of the Claude Agent SDK, by one `query()` with it: what Claude Code does with it, Ferrule does.

The table is what Claude Code 2.1.326 did, run against the same API; FERRULE_TESTED_PROGRAM=/path/to/claude runs it
with that program again. A row has `own` where Ferrule does something else on purpose, and says why.
"""

import dataclasses
import json
import os
import pwd
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    create_sdk_mcp_server,
    tool,
)
from tests.cli.sdk.program import MODEL, Program, Seen

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ID = "11111111-2222-4333-8444-555555555555"
OTHER_ID = "11111111-2222-4333-8444-555555555556"
HOOKS = {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo hooked"}]}],
    "SessionStart": [{"hooks": [{"type": "command", "command": "echo started"}]}],
}
APART = {
    "cli_path": "every row gives it",
    "debug_stderr": "the SDK does not read it any more",
    "max_buffer_size": "only the SDK reads it",
    "session_store": "Ferrule keeps conversations in a store of its own, and mirrors none",
    "session_store_flush": "with session_store",
    "load_timeout_ms": "with session_store",
    "resume_session_at": "a message of a stored conversation has no id here; a warning says that it is left out",
    "resume_drops_turn": "with resume_session_at",
}
"""Options without a row, and why."""


class Row(NamedTuple):
    options: tuple[str, ...]
    see: Callable[[Program], Awaitable[Any]]
    expected: Any
    own: Any


ROWS: dict[str, Row] = {}
_SAME = object()


def row(*options: str, expected: Any, own: Any = _SAME) -> Callable[[Any], Any]:
    def add(see: Any) -> Any:
        ROWS[see.__name__] = Row(options, see, expected, expected if own is _SAME else own)
        return see

    return add


def write(program: Program, name: str = "a.txt", content: str = "x") -> tuple[str, dict[str, Any]]:
    return "Write", {"file_path": f"{program.workspace}/{name}", "content": content}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command, "description": "do it"}


def task(kind: str) -> tuple[str, dict[str, Any]]:
    about = {"description": "look", "prompt": "SUBJOB", "subagent_type": kind, "run_in_background": False}
    return "Task", about


def skill(name: str) -> tuple[str, dict[str, Any]]:
    return "Skill", {"skill": name}


def add_skills(program: Program, *names: str) -> None:
    for name in names:
        program.write(
            f".claude/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: Does {name}.\n---\nBODY OF {name}"
        )


def tools_of(seen: Seen) -> set[str]:
    """Those of the most usual tools that the session has."""
    return set(seen.of("init")[0].data["tools"]) & {"Read", "Write", "Grep", "Bash", "WebFetch", "NotebookEdit"}


# Tools and permissions


@row("tools", expected={"Read", "Grep"})
async def tools_by_name(program: Program) -> Any:
    return tools_of(await program.query(["Hi"], tools=["Read", "Grep"]))


@row("tools", expected=set())
async def no_tools(program: Program) -> Any:
    return tools_of(await program.query(["Hi"], tools=[]))


@row("tools", expected=True)
async def tools_as_a_preset(program: Program) -> Any:
    return tools_of(await program.query(["Hi"], tools={"type": "preset", "preset": "claude_code"})) >= {"Read", "Bash"}


@row("permission_mode", expected=({}, 1, 1))
async def what_nobody_allows_is_denied(program: Program) -> Any:
    seen = await program.query([[write(program)], "Done"])
    return program.files(), len(seen.of("permission_denied")), len(seen.result.permission_denials)


@row("allowed_tools", expected=({"a.txt": "x"}, []))
async def allowed_tools(program: Program) -> Any:
    seen = await program.query([[write(program)], "Done"], allowed_tools=["Write"])
    return program.files(), seen.result.permission_denials


@row("disallowed_tools", expected=({}, False, "Done"))
async def disallowed_tools(program: Program) -> Any:
    seen = await program.query([[write(program)], "Done"], allowed_tools=["Write"], disallowed_tools=["Write"])
    return program.files(), "Write" in tools_of(seen), seen.result.result


@row("disallowed_tools", expected=({}, True, 1))
async def a_rule_among_disallowed_tools(program: Program) -> Any:
    rules = {"allowed_tools": ["Bash"], "disallowed_tools": ["Bash(touch:*)"]}
    seen = await program.query([[bash("touch b")], "Done"], **rules)
    return program.files(), "Bash" in tools_of(seen), len(seen.of("permission_denied"))


@row("permission_mode", expected={"acceptEdits": True, "plan": False, "dontAsk": False, "bypassPermissions": True})
async def permission_modes(program: Program) -> Any:
    modes = ("acceptEdits", "plan", "dontAsk", "bypassPermissions")
    for mode in modes:
        await program.query([[write(program, mode)], "Done"], permission_mode=mode)
    return {mode: mode in program.files() for mode in modes}


@row("permission_mode", expected="Done")
async def permission_mode_auto(program: Program) -> Any:
    return (await program.query(["Done"], permission_mode="auto")).result.result


@row("can_use_tool", expected=(["Write"], {"a.txt": "x"}))
async def can_use_tool(program: Program) -> Any:
    asked = []

    async def allow(name: str, given: dict[str, Any], about: Any) -> PermissionResultAllow:
        asked.append(name)
        return PermissionResultAllow()

    await program.query([[write(program)], "Done"], [{"type": "text", "text": "PROMPT"}], can_use_tool=allow)
    return asked, program.files()


@row("permission_prompt_tool_name", expected=({}, "Done"))
async def permission_prompt_tool_name(program: Program) -> Any:
    seen = await program.query([[write(program)], "Done"], permission_prompt_tool_name="mcp__none__ask")
    return program.files(), seen.result.result if seen.of("ResultMessage") else "Done"


@row("add_dirs", expected=True)
async def add_dirs(program: Program) -> Any:
    folder = program.home / "other"
    folder.mkdir()
    (folder / "f.txt").write_text("OTHER")
    seen = await program.query([[("Read", {"file_path": f"{folder}/f.txt"})], "Done"], add_dirs=[folder])
    return "OTHER" in seen.results()[0]


# The system prompt


def heard(seen: Seen) -> tuple[bool, bool]:
    """Does the model read our words, and does it read the words that it usually does?"""
    return "like a pirate" in seen.system, len(seen.system) > 500


@row("system_prompt", expected=True)
async def system_prompt_as_text(program: Program) -> Any:
    return heard(await program.query(["Hi"], system_prompt="Speak like a pirate."))[0]


@row("system_prompt", expected=(False, True))
async def system_prompt_as_a_preset(program: Program) -> Any:
    return heard(await program.query(["Hi"], system_prompt={"type": "preset", "preset": "claude_code"}))


@row("system_prompt", expected=(True, True))
async def system_prompt_with_more_words(program: Program) -> Any:
    prompt = {"type": "preset", "preset": "claude_code", "append": "Speak like a pirate."}
    return heard(await program.query(["Hi"], system_prompt=prompt))


@row("system_prompt", expected=True)
async def system_prompt_from_a_file(program: Program) -> Any:
    path = program.write("words.txt", "Speak like a pirate.")
    return heard(await program.query(["Hi"], system_prompt={"type": "file", "path": str(path)}))[0]


@row("system_prompt", expected=True)
async def system_prompt_of_ones_own(program: Program) -> Any:
    return heard(await program.query(["Hi"], system_prompt={"type": "custom", "prompt": "Speak like a pirate."}))[0]


# Limits


@row("max_turns", expected=("error_max_turns", True, 2))
async def max_turns(program: Program) -> Any:
    read = ("Read", {"file_path": f"{program.workspace}/a"})
    seen = await program.query([[read]] * 4, max_turns=2)
    return seen.result.subtype, seen.error.startswith("ResultError"), len(seen.asked)


@row("max_budget_usd", expected=("error_max_budget_usd", True, 1))
async def max_budget_usd(program: Program) -> Any:
    seen = await program.query([[("Read", {"file_path": f"{program.workspace}/a"})]] * 4, max_budget_usd=0.0001)
    return seen.result.subtype, seen.error.startswith("ResultError"), len(seen.asked)


# The model


@row("model", expected="claude-sonnet-4-5")
async def model(program: Program) -> Any:
    return (await program.query(["Hi"], model="claude-sonnet-4-5")).asked[0]["model"]


@row("model", expected=True)
async def model_by_a_short_name(program: Program) -> Any:
    return (await program.query(["Hi"], model="sonnet")).asked[0]["model"].startswith("claude-sonnet-")


@row("fallback_model", expected=([MODEL, "claude-sonnet-4-5"], ["model_fallback"], "Hi"))
async def fallback_model(program: Program) -> Any:
    seen = await program.query(
        [lambda body: 529 if body["model"] == MODEL else "Hi"], fallback_model="claude-sonnet-4-5"
    )
    asked = list(dict.fromkeys(body["model"] for body in seen.asked))
    return asked, [one.subtype for one in seen.of("model_fallback")], seen.result.result


@row("thinking", expected=("enabled", 31_999))
async def thinking_adaptive(program: Program) -> Any:
    thinking = (await program.query(["Hi"], thinking={"type": "adaptive"})).asked[0]["thinking"]
    return thinking["type"], thinking["budget_tokens"]


@row("thinking", expected="adaptive")
async def thinking_adaptive_for_a_newer_model(program: Program) -> Any:
    seen = await program.query(["Hi"], thinking={"type": "adaptive"}, model="claude-opus-5")
    return seen.asked[0]["thinking"]["type"]


@row("thinking", expected=("enabled", 2_048))
async def thinking_enabled(program: Program) -> Any:
    thinking = (await program.query(["Hi"], thinking={"type": "enabled", "budget_tokens": 2048})).asked[0]["thinking"]
    return thinking["type"], thinking["budget_tokens"]


@row("thinking", expected={"type": "disabled"})
async def thinking_disabled(program: Program) -> Any:
    return (await program.query(["Hi"], thinking={"type": "disabled"})).asked[0]["thinking"]


@row("max_thinking_tokens", expected=("enabled", 3_000))
async def max_thinking_tokens(program: Program) -> Any:
    thinking = (await program.query(["Hi"], max_thinking_tokens=3000)).asked[0]["thinking"]
    return thinking["type"], thinking["budget_tokens"]


@row("effort", expected="low")
async def effort(program: Program) -> Any:
    return (await program.query(["Hi"], effort="low")).asked[0]["output_config"]["effort"]


@row("betas", expected=True)
async def betas(program: Program) -> Any:
    seen = await program.query(["Hi"], betas=["context-1m-2025-08-07"])
    return "context-1m-2025-08-07" in seen.asked[0]["headers"]["anthropic-beta"]


@row("task_budget", expected=({"type": "tokens", "total": 50_000}, True))
async def task_budget(program: Program) -> Any:
    body = (await program.query(["Hi"], task_budget={"total": 50_000})).asked[0]
    return body["output_config"]["task_budget"], "task-budgets-2026-03-13" in body["headers"]["anthropic-beta"]


@row("output_format", expected=('{"n":3}', {"n": 3}, "success", "tool_use", 1))
async def output_format(program: Program) -> Any:
    seen = await program.query(
        [[("StructuredOutput", {"n": 3})], "Three."], output_format={"type": "json_schema", "schema": SCHEMA}
    )
    result = seen.result
    return result.result, result.structured_output, result.subtype, result.stop_reason, len(seen.asked)


@row("output_format", expected=({"n": 4}, 2))
async def output_format_at_the_second_try(program: Program) -> Any:
    cues = [[("StructuredOutput", {"n": "x"})], [("StructuredOutput", {"n": 4})], "Four."]
    seen = await program.query(cues, output_format={"type": "json_schema", "schema": SCHEMA})
    return seen.result.structured_output, len(seen.asked)


# Conversations


@row("session_id", "resume", expected=(ID, True, ID, 3, True))
async def session_id(program: Program) -> Any:
    first = await program.query(["One"], session_id=ID)
    again = await program.query(["One"], session_id=ID)
    more = await program.query(["One", "Two"], "PROMPT two", resume=ID)
    wrong = await program.query(["One"], session_id="no uuid")
    turns = [message["role"] for message in more.asked[-1]["messages"] if message["role"] != "system"]
    return first.result.session_id, bool(again.error), more.result.session_id, len(turns), bool(wrong.error)


@row("continue_conversation", "fork_session", "resume", expected=(True, False, OTHER_ID, True, True))
async def fork_session(program: Program) -> Any:
    first = await program.query(["ONE"])
    more = await program.query(["ONE", "Two"], "PROMPT two", continue_conversation=True)
    forked = await program.query(
        ["ONE", "Two", "Three"], "PROMPT three", resume=first.result.session_id, fork_session=True, session_id=OTHER_ID
    )
    last = await program.query(["ONE", "Two", "Three"], "PROMPT four", resume=first.result.session_id)
    return (
        more.result.session_id == first.result.session_id,
        forked.result.session_id == first.result.session_id,
        forked.result.session_id,
        "PROMPT two" in str(forked.asked[-1]["messages"]),
        "PROMPT three" not in str(last.asked[-1]["messages"]),
    )


@row("resume", expected=True)
async def resume_of_what_is_not_there(program: Program) -> Any:
    return bool((await program.query(["One"], resume=ID)).error)


# Settings


@row("settings", expected=({"a.txt": "x", "b.txt": "x"}, "claude-sonnet-4-5", "v=settings"))
async def settings_as_json(program: Program) -> Any:
    given = {
        "permissions": {"allow": ["Bash"], "defaultMode": "acceptEdits"},
        "env": {"MYVAR": "settings"},
        "model": "claude-sonnet-4-5",
    }
    cues = [[write(program), write(program, "b.txt")], [bash("echo v=$MYVAR")], "Done"]
    seen = await program.query(cues, settings=json.dumps(given), model=None)
    return program.files(), seen.asked[0]["model"], seen.results()[-1].split("\n")[0]


@row("settings", expected=({"s.json"}, False, "no", True))
async def settings_from_a_file(program: Program) -> Any:
    stop = [{"matcher": "Write", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]
    path = program.write("s.json", json.dumps({"permissions": {"deny": ["Bash"]}, "hooks": {"PreToolUse": stop}}))
    seen = await program.query([[write(program)], "Done"], settings=str(path), allowed_tools=["Write"])
    reason = seen.results()[0].split("]: ")[-1].split("\n")[0]
    missing = await program.query(["Hi"], settings="/no/such/file.json")
    return set(program.files()), "Bash" in tools_of(seen), reason, bool(missing.error)


@row(
    "setting_sources",
    expected={
        "all": (set(), True),
        "": ({"Grep", "WebFetch", "NotebookEdit"}, False),
        "user": ({"WebFetch", "NotebookEdit"}, False),
        "project": ({"Grep", "NotebookEdit"}, True),
        "local": ({"Grep", "WebFetch"}, False),
    },
)
async def setting_sources(program: Program) -> Any:
    program.user_rules(deny=["Grep"])
    program.write(".claude/settings.json", json.dumps({"permissions": {"deny": ["WebFetch"]}}))
    program.write(".claude/settings.local.json", json.dumps({"permissions": {"deny": ["NotebookEdit"]}}))
    program.write("CLAUDE.md", "PROJECT MEMORY")
    found = {}
    tools = ["Grep", "WebFetch", "NotebookEdit"]
    for name in ("all", "", "user", "project", "local"):
        sources = {} if name == "all" else {"setting_sources": [name] if name else []}
        seen = await program.query(["Hi"], tools=tools, **sources)
        found[name] = (tools_of(seen), "PROJECT MEMORY" in str(seen.asked[0]))
    return found


@row("sandbox", expected="Done")
async def sandbox(program: Program) -> Any:
    seen = await program.query(
        [[bash("echo hi > /etc/ferrule-test")], "Done"],
        sandbox={"enabled": True, "autoAllowBashIfSandboxed": True},
        disallowed_tools=[] if program.is_own else ["Bash"],
    )
    assert not os.path.exists("/etc/ferrule-test")
    return seen.result.result


@row("extra_args", expected="Hi")
async def extra_args(program: Program) -> Any:
    return (await program.query(["Hi"], extra_args={"debug-to-stderr": None})).result.result


# Claude Code ends the start; a release of the SDK that knows more flags than Ferrule must not.
@row(
    "extra_args",
    "stderr",
    expected=("", [], 1),
    own=("Hi", ["There is no option --no-such-flag here: it is left out."], 1),
)
async def flags_that_nobody_knows(program: Program) -> Any:
    seen = await program.query(["Hi"], extra_args={"no-such-flag": "value"})
    told = [line for line in seen.stderr if "--no-such-flag" in line]
    return seen.result.result if seen.of("ResultMessage") else "", seen.warnings, len(told)


# What is told


@row("include_partial_messages", expected=(True, ["requesting"]))
async def include_partial_messages(program: Program) -> Any:
    seen = await program.query(["Hi"], include_partial_messages=True)
    kinds = [one.event["type"] for one in seen.of("StreamEvent")]
    return {"message_start", "content_block_delta", "message_stop"} <= set(kinds), [
        one.data["status"] for one in seen.of("status")
    ]


def ran(seen: Seen) -> list[tuple[str, str]]:
    return [(one.subtype, one.hook_event_name) for one in seen.of("HookEventMessage")]


@row(
    "include_hook_events",
    expected=[
        ("hook_started", "SessionStart"),
        ("hook_response", "SessionStart"),
        ("hook_started", "PreToolUse"),
        ("hook_response", "PreToolUse"),
    ],
)
async def include_hook_events(program: Program) -> Any:
    cues = [[bash("echo hi")], "Done"]
    given = {"settings": json.dumps({"hooks": HOOKS}), "allowed_tools": ["Bash"]}
    return ran(await program.query(cues, include_hook_events=True, **given))


@row("include_hook_events", expected=[("hook_started", "SessionStart"), ("hook_response", "SessionStart")])
async def hook_events_of_the_start_alone(program: Program) -> Any:
    return ran(await program.query(["Done"], settings=json.dumps({"hooks": HOOKS})))


@row("hooks", expected=(["Bash"], {}, 1))
async def hooks(program: Program) -> Any:
    told = []

    async def deny(given: Any, key: str | None, about: Any) -> Any:
        told.append(given["tool_name"])
        said = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
        return {"hookSpecificOutput": said}

    given = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[deny])]}
    seen = await program.query([[bash("touch b")], "Done"], hooks=given, allowed_tools=["Bash"])
    return told, program.files(), len(seen.result.permission_denials)


@row("forward_subagent_text", expected=["Sub says."])
async def forward_subagent_text(program: Program) -> Any:
    cues = {"SUBJOB": ["Sub says."], "PROMPT": [[task("general-purpose")], "Done"]}
    seen = await program.query(cues, forward_subagent_text=True)
    below = [one for one in seen.of("AssistantMessage") if one.parent_tool_use_id]
    return [block.text for one in below for block in one.content]


@row("agents", expected=(["Read"], True, True, ["task_started", "task_notification"], "Done"))
async def agents(program: Program) -> Any:
    kind = AgentDefinition(description="Reviews it.", prompt="You are REVIEWER.", tools=["Read"], model="sonnet")
    cues = {"SUBJOB": ["Sub done."], "PROMPT": [[task("rev")], "Done"]}
    seen = await program.query(cues, agents={"rev": kind})
    below = next(body for body in seen.talk.asked if "SUBJOB" in str(body["messages"][:1]))
    tools = [one["name"] for one in below["tools"] if one["name"] != "recall"]
    told = [
        one.subtype for one in seen.messages if getattr(one, "subtype", "") in {"task_started", "task_notification"}
    ]
    listed = "rev" in seen.of("init")[0].data["agents"]
    return tools, "You are REVIEWER." in str(below["system"]), listed, told, seen.result.result


@row("skills", expected={"all": (True, True), "greet": (True, False), "": (False, False)})
async def skills(program: Program) -> Any:
    add_skills(program, "greet", "other")
    found = {}
    for name in ("all", "greet", ""):
        wanted = "all" if name == "all" else [name] if name else []
        seen = await program.query([[skill("greet")], [skill("other")], "Done"], skills=wanted)
        said = str(seen.asked[-1]["messages"])
        found[name] = ("BODY OF greet" in said, "BODY OF other" in said)
    return found


@row("plugins", expected=(True, "plughook", "Sub done.", "Done", "Hi"))
async def plugins(program: Program) -> Any:
    folder = program.home / "plug"
    stop = [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo plughook >&2; exit 2"}]}]
    files = {
        ".claude-plugin/plugin.json": json.dumps({"name": "plug", "version": "1.0.0", "description": "A plugin."}),
        "skills/hello/SKILL.md": "---\nname: hello\ndescription: Says hello.\n---\nHELLO BODY",
        "agents/rev.md": "---\nname: rev\ndescription: Reviews.\n---\nREV PROMPT",
        "hooks/hooks.json": json.dumps({"hooks": {"PreToolUse": stop}}),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    calls = [[skill("plug:hello")], [bash("touch q")], [task("plug:rev")], "Done"]
    seen = await program.query(
        {"SUBJOB": ["Sub done."], "PROMPT": calls},
        plugins=[{"type": "local", "path": str(folder)}],
        allowed_tools=["Bash"],
    )
    told = str(seen.asked[-1]["messages"])
    missing = await program.query(["Hi"], plugins=[{"type": "local", "path": "/no/such/plugin"}])
    return (
        "HELLO BODY" in told,
        "plughook" if "plughook" in told else "",
        "Sub done." if "Sub done." in told else "",
        seen.result.result,
        missing.result.result,
    )


# Servers


def calculator() -> Any:
    @tool("add", "Adds.", {"a": int, "b": int})
    async def add(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}

    return create_sdk_mcp_server("calc", tools=[add])


@row("mcp_servers", expected=("5", ["calc"]))
async def mcp_servers(program: Program) -> Any:
    seen = await program.query(
        [[("mcp__calc__add", {"a": 2, "b": 3})], "Done"],
        mcp_servers={"calc": calculator()},
        allowed_tools=["mcp__calc__add"],
    )
    return seen.results()[0].split("\n")[0], [one["name"] for one in seen.of("init")[0].data["mcp_servers"]]


@row("mcp_servers", "strict_mcp_config", expected=("Hi", []))
async def strict_mcp_config(program: Program) -> Any:
    program.write(".mcp.json", json.dumps({"mcpServers": {"project": {"command": "true"}}}))
    path = program.home / "servers.json"
    path.write_text(json.dumps({"mcpServers": {}}))
    seen = await program.query(["Hi"], mcp_servers=str(path), strict_mcp_config=True)
    return seen.result.result, seen.of("init")[0].data["mcp_servers"]


# Where and who


@row("cwd", expected=True)
async def cwd(program: Program) -> Any:
    seen = await program.query([[bash("pwd")], "Done"], cwd=program.home, allowed_tools=["Bash"])
    return str(program.home) in seen.results()[0] and seen.of("init")[0].data["cwd"] == str(program.home)


@row("env", expected="v=42")
async def env(program: Program) -> Any:
    seen = await program.query([[bash("echo v=$MYVAR")], "Done"], env={"MYVAR": "42"}, allowed_tools=["Bash"])
    return seen.results()[0].split("\n")[0]


@row("user", expected="Hi")
async def user(program: Program) -> Any:
    return (await program.query(["Hi"], user=pwd.getpwuid(os.getuid()).pw_name)).result.result


@row("client_app", expected="Hi")
async def client_app(program: Program) -> Any:
    return (await program.query(["Hi"], client_app="my-app/1.0.0")).result.result


# Prompts


@row("verbatim_prompts", expected=("PROMPT about @f.txt", False))
async def verbatim_prompts(program: Program) -> Any:
    program.write("f.txt", "FILE BODY")
    seen = await program.query(["Hi"], "PROMPT about @f.txt", verbatim_prompts=True)
    content = seen.asked[0]["messages"][0]["content"]
    words = content if isinstance(content, str) else content[-1]["text"]
    return words, "FILE BODY" in str(seen.asked)


@row("enable_file_checkpointing", expected=({"a.txt": "x"}, "Done"))
async def enable_file_checkpointing(program: Program) -> Any:
    seen = await program.query([[write(program)], "Done"], enable_file_checkpointing=True, allowed_tools=["Write"])
    return program.files(), seen.result.result


@row("prompt", expected=(1, "base64", "Seen."))
async def a_picture_in_the_prompt(program: Program) -> Any:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    seen = await program.query(["Seen."], [{"type": "text", "text": "PROMPT"}, {"type": "image", "source": source}])
    images = [block for block in seen.asked[0]["messages"][0]["content"] if block["type"] == "image"]
    return len(images), images[0]["source"]["type"], seen.result.result


@pytest.mark.parametrize("name", ROWS)
async def test_an_option_means_what_it_means_to_claude_code(name: str, program: Program) -> None:
    one = ROWS[name]

    assert await one.see(program) == (one.own if program.is_own else one.expected)


def test_every_option_of_the_sdk_has_a_row_or_a_reason() -> None:
    fields = {field.name for field in dataclasses.fields(ClaudeAgentOptions)}
    told = {option for one in ROWS.values() for option in one.options} - {"prompt"}

    assert (fields - told - APART.keys(), told - fields, told & APART.keys()) == (set(), set(), set())
