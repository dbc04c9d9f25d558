"""The TypeScript SDK of Claude Code drives `ferrule run`: one process of Node, a query for each kind of option."""

import json
import os
import subprocess

import pytest
from tests.cli.sdk.messages_api import MessagesApi
from tests.cli.sdk.program import MODEL, Program
from tests.sources.mcp.node import found as found_node

ID = "11111111-2222-4333-8444-555555555555"
LIMIT_SECONDS = 120
SCRIPT = os.path.join(os.path.dirname(__file__), "client.mjs")


def test_the_typescript_sdk_is_understood(request: pytest.FixtureRequest, api: MessagesApi, program: Program) -> None:
    node = found_node(request)
    program.write(".claude/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nHello")
    call = {"description": "look", "prompt": "SUBJOB", "subagent_type": "rev", "run_in_background": False}
    address, talk = api.talk(
        {
            "FORM": [[("StructuredOutput", {"n": 3})], "Three."],
            "WRITE": [[("Write", {"file_path": f"{program.workspace}/a.txt", "content": "x"})], "Written."],
            "DELEGATE": [[("Task", call)], "Delegated."],
            "SUBJOB": ["Sub done."],
            "PROMPT": ["Hello.", "Again."],
        }
    )
    given = {
        "sdk": os.path.join(node.modules, "@anthropic-ai", "claude-agent-sdk", "sdk.mjs"),
        "program": program.path,
        "workspace": str(program.workspace),
        "environment": program.environment(address),
        "model": MODEL,
    }
    done = subprocess.run(
        [node.program, SCRIPT, json.dumps(given)], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}

    assert {name: row["result"] for name, row in seen.items() if "result" in row} == {
        "plain": "Hello.",
        "isolated": "Hello.",
        "session": "Hello.",
        "forked": "Again.",
        "structured": '{"n":3}',
        "asked": "Written.",
        "delegated": "Delegated.",
    }
    assert [row["error"] for row in seen.values() if row.get("error")] == []
    assert (seen["session"]["session"], seen["forked"]["session"] != ID) == (ID, True)
    assert seen["structured"]["structured"] == {"n": 3}
    assert program.files() == {"a.txt": "CHANGED"}
    assert {"system task_started", "system task_notification"} <= set(seen["delegated"]["kinds"])
    assert "general-purpose" in seen["controlled"]["agents"]
    assert "greet" in seen["controlled"]["commands"]
    assert [body["thinking"]["budget_tokens"] for body in talk.asked if "thinking" in body][-1] == 4096
