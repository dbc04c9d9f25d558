"""The conformance suite of MCP against a served engine: what applies to a server of tools passes, the rest is named."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.serve.program import LIMIT_SECONDS, OFFERED, program
from tests.serve.relay import relay
from tests.sources.mcp.node import Node
from tests.sources.mcp.node import found as found_node

TOKEN = "the-token-of-this-very-test-run"

_FIXTURE = "the fixture asks for something of its own; a served engine asks only whether a call may run"
_NO_PROMPTS = "the engine offers no prompts"
_NO_SAMPLING = "the engine uses no model of its client's"
_NO_ROOTS = "the engine's folders are its user's to choose, not its client's"
_NO_LOGGING = "the engine's log is not its client's (and the newest version of MCP gives it up)"
_OTHERS = "the engine offers the full outputs of its own calls as resources, and no others"
_NEVER_CHANGE = "full outputs never change"
_DENIED = "a call whose user cannot be asked is denied in words, so that its model can go on"

NOT_OURS = {
    "2025-11-25": {
        "logging-set-level": _NO_LOGGING,
        "tools-call-with-logging": _NO_LOGGING,
        "completion-complete": _NO_PROMPTS,
        "tools-call-sampling": _NO_SAMPLING,
        "elicitation-sep1034-general": _FIXTURE,
        "elicitation-sep1330-general": _FIXTURE,
        "resources-read-text": _OTHERS,
        "resources-read-binary": _OTHERS,
        "resources-templates-read": _OTHERS,
        "resources-subscribe": _NEVER_CHANGE,
        "resources-unsubscribe": _NEVER_CHANGE,
        "prompts-list": _NO_PROMPTS,
        "prompts-get-simple": _NO_PROMPTS,
        "prompts-get-with-args": _NO_PROMPTS,
        "prompts-get-embedded-resource": _NO_PROMPTS,
        "prompts-get-with-image": _NO_PROMPTS,
    },
    "2026-07-28": {
        "sep-2549-prompts-list-caching-hints": _NO_PROMPTS,
        "completion-complete": _NO_PROMPTS,
        "sep-2322-elicitation-incomplete": _FIXTURE,
        "sep-2322-multi-round-r1": _FIXTURE,
        "sep-2322-multiple-inputs-incomplete": _FIXTURE,
        "sep-2322-list-roots-incomplete": _NO_ROOTS,
        "sep-2322-sampling-incomplete": _NO_SAMPLING,
        "sep-2322-respect-client-capabilities": _NO_SAMPLING,
        "sep-2322-non-tool-incomplete": _NO_PROMPTS,
        "sep-2575-server-rejects-undeclared-capability": _DENIED,
        "sep-2575-missing-capability-http-400": _DENIED,
        "resources-read-text": _OTHERS,
        "resources-read-binary": _OTHERS,
        "resources-templates-read": _OTHERS,
        "prompts-list": _NO_PROMPTS,
        "prompts-get-simple": _NO_PROMPTS,
        "prompts-get-with-args": _NO_PROMPTS,
        "prompts-get-embedded-resource": _NO_PROMPTS,
        "prompts-get-with-image": _NO_PROMPTS,
    },
}
"""Version → the checks that fail because they ask for something that the engine does not offer, each with the reason.

Beside these stand the scenarios `tasks-*`, which are about an extension: the engine has no tasks in the sense of MCP.
"""

WHOLE = {
    "2025-11-25": {
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-error",
        "tools-call-with-progress",
        "tools-call-elicitation",
        "json-schema-2020-12",
        "server-sse-multiple-streams",
        "server-sse-polling",
        "resources-list",
        "dns-rebinding-protection",
    },
    "2026-07-28": {
        "tools-list",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-error",
        "tools-call-with-progress",
        "json-schema-2020-12",
        "server-sse-multiple-streams",
        "resources-list",
        "sep-2164-resource-not-found",
        "dns-rebinding-protection",
        "http-header-validation",
        "http-custom-header-server-validation",
        "input-required-result-request-state",
        "input-required-result-missing-input-response",
        "input-required-result-result-type",
        "input-required-result-unsupported-methods",
        "input-required-result-tampered-state",
        "input-required-result-ignore-extra-params",
        "input-required-result-validate-input",
    },
}
"""Version → the scenarios that pass whole. Of `server-stateless` and `caching`, all that is not named above passes."""

POLLED = ("server-sse-priming-event", "server-sse-retry-field", "server-sse-disconnect-resume")
"""What `server-sse-polling` checks: the relay breaks the connection of that call, and the result comes on another."""


async def checks(node: Node, version: str, port: int, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Scenario → its checks, each with what came of it."""
    process = await asyncio.create_subprocess_exec(
        node.program,
        node.script("conformance", "dist", "index.js"),
        "server",
        *("--url", f"http://127.0.0.1:{port}/mcp"),
        *("--requirements", version),
        *("--output-dir", folder),
        *("--timeout", "10000"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await asyncio.wait_for(process.wait(), LIMIT_SECONDS * 3)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found = {}
    for path in folder.glob("server-*/checks.json"):
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", path.parent.name.removeprefix("server-"))
        found[name] = [(check["id"], check["status"]) for check in json.loads(path.read_text())]
    return found


@pytest.mark.contract("mcp.serve-conformance")
async def test_what_applies_to_a_server_of_tools_passes(tmp_path, request):
    node = found_node(request)
    home = tmp_path / "home"
    home.mkdir()
    found = {}
    async with program(*OFFERED, "127.0.0.1:0", TOKEN, folder=home) as server:
        first = (await asyncio.wait_for(server.process.stderr.readline(), LIMIT_SECONDS)).decode()
        port = int(first.partition("/mcp")[0].rpartition(":")[2])
        async with relay(port, TOKEN, breaks=b"test_reconnection") as relayed:
            for version in NOT_OURS:
                found[version] = await checks(node, version, relayed, tmp_path / version)

    failed = {
        version: {
            check
            for name, some in scenarios.items()
            for check, status in some
            if status == "FAILURE" and not name.startswith("tasks-")
        }
        for version, scenarios in found.items()
    }
    whole = {
        version: {name for name, some in scenarios.items() if all(status != "FAILURE" for _, status in some)}
        for version, scenarios in found.items()
    }
    empty = [
        (version, name)
        for version, names in WHOLE.items()
        for name in names
        if all(status != "SUCCESS" for _, status in found[version][name])
    ]
    polled = [(check, status) for check, status in found["2025-11-25"]["server-sse-polling"] if status != "INFO"]
    assert polled == [(check, "SUCCESS") for check in POLLED]
    assert empty == []
    assert failed == {version: set(named) for version, named in NOT_OURS.items()}
    assert {version: names - {"tasks-status-notifications"} for version, names in whole.items()} == WHOLE
