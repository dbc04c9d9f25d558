"""`ferrule run` as the client libraries of Claude Code drive it: their flags, their requests, and what they need back.

The lines that go in are those which the libraries for Python and TypeScript write.
"""

import json
import subprocess
from typing import Any

import pytest
from tests.cli.recordings import lines_of, recording, start

from ferrule.cli.driven import inside
from ferrule.cli.main import run
from ferrule.cli.session_flags import rules_in
from ferrule.models.cues import calls, hangs, said

pytestmark = pytest.mark.usefixtures("unconfined")
FLAGS = ["--output-format", "stream-json", "--verbose", "--system-prompt", "", "--input-format", "stream-json"]
ASKED = ["--permission-prompt-tool", "stdio"]


class Other:
    """One end of the lines."""

    def __init__(self, path, cwd, *flags):
        arguments = ["run", *FLAGS, *flags, "--replay", path]
        self.child = start(arguments, cwd, stdin=subprocess.PIPE)
        self.lines: list[dict[str, Any]] = []

    def write(self, **line):
        self.child.stdin.write(json.dumps(line).encode() + b"\n")
        self.child.stdin.flush()

    def prompt(self, text):
        message = {"role": "user", "content": text}
        self.write(type="user", session_id="", message=message, parent_tool_use_id=None)

    def request(self, key, subtype, **fields):
        """What comes back to a request."""
        self.write(type="control_request", request_id=key, request={"subtype": subtype, **fields})
        return self.until("control_response")["response"]

    def respond(self, request, **response):
        about = {"subtype": "success", "request_id": request["request_id"], "response": response}
        self.write(type="control_response", response=about)

    def until(self, kind):
        """The next line of a kind; those before it are kept."""
        while raw := self.child.stdout.readline():
            line = json.loads(raw)
            self.lines.append(line)
            if line["type"] == kind:
                return line
        raise AssertionError(self.child.communicate()[1].decode())

    def end(self):
        """Close the input: the exit code, and what stood on standard error."""
        out, err = self.child.communicate(timeout=60)
        self.lines += lines_of(out)
        return self.child.returncode, err.decode()


@pytest.fixture
def driven(tmp_path):
    made: list[Other] = []

    def begin(*cues, flags=(), **initialize):
        made.append(Other(recording(tmp_path / "c.jsonl", *cues), tmp_path, *flags))
        answer = made[0].request("req_1", "initialize", **{"hooks": None, **initialize})
        assert (answer["subtype"], answer["request_id"]) == ("success", "req_1")
        return made[0]

    yield begin
    for one in made:
        one.child.kill()
        one.child.communicate()


def results(one):
    return [line["message"]["content"][0] for line in one.lines if line["type"] == "user"]


def test_a_conversation_goes_on_after_an_interruption_that_the_client_asked_for(driven):
    one = driven(hangs("I think"), said("Blue.", expect="blue"), flags=["--include-partial-messages"])
    one.prompt("Think.")
    one.until("stream_event")
    assert one.request("req_2", "interrupt")["subtype"] == "success"
    stopped = one.until("result")
    one.prompt("Make it blue.")
    done = one.until("result")

    assert (stopped["subtype"], stopped["errors"]) == (
        "error_during_execution",
        ["Interrupted. Go on with --continue."],
    )
    assert (done["result"], done["stop_reason"], "errors" in done) == ("Blue.", "end_turn", False)
    assert one.end() == (0, "")


def test_the_client_is_asked_about_calls_in_the_words_of_the_model(driven, tmp_path):
    a, b = ("Write", {"file_path": f"{tmp_path}/a", "content": "x"}), ("Bash", {"command": "touch b"})
    one = driven(calls(a), calls(b), said("Done."), flags=ASKED)
    one.prompt("Write.")
    first = one.until("control_request")
    one.respond(first, behavior="allow", updatedInput=first["request"]["input"])
    second = one.until("control_request")
    one.respond(second, behavior="deny", message="Not today.")
    done = one.until("result")

    assert first["request"]["subtype"] == "can_use_tool"
    assert (first["request"]["tool_name"], first["request"]["input"]) == a
    assert first["request"]["tool_use_id"] == "c1"
    assert second["request"]["input"]["command"] == "touch b"
    rules = [{"toolName": "Bash", "ruleContent": "touch *"}]
    assert second["request"]["permission_suggestions"] == [
        {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings"}
    ]
    assert (tmp_path / "a").read_text() == "x"
    assert not (tmp_path / "b").exists()
    assert results(one)[1]["content"] == [{"type": "text", "text": "Not today."}]
    assert [denied["tool_use_id"] for denied in done["permission_denials"]] == ["c2"]
    assert one.end()[0] == 0


def test_what_was_suggested_may_hold_from_then_on(driven, tmp_path):
    touch = [calls(("Bash", {"command": f"touch {name}"})) for name in "ab"]
    one = driven(*touch, said("Done."), flags=ASKED)
    one.prompt("Touch.")
    asked = one.until("control_request")
    given = asked["request"]
    one.respond(
        asked, behavior="allow", updatedInput=given["input"], updatedPermissions=given["permission_suggestions"]
    )
    one.until("result")

    assert (tmp_path / "b").exists()
    assert [line["type"] for line in one.lines].count("control_request") == 1


def test_edits_may_pass_from_then_on(driven, tmp_path):
    write = [calls(("Write", {"file_path": f"{tmp_path}/{name}", "content": "x"})) for name in "ab"]
    one = driven(*write, calls(("Bash", {"command": "touch /tmp"})), said("Done."), flags=ASKED)
    one.prompt("Write.")
    asked = one.until("control_request")
    given = asked["request"]
    assert given["permission_suggestions"] == [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    one.respond(asked, behavior="allow", updatedPermissions=given["permission_suggestions"])
    one.respond(one.until("control_request"), behavior="deny")
    one.until("result")

    assert (tmp_path / "b").exists()
    assert one.lines[-1]["permission_denials"][0]["tool_name"] == "Bash"


@pytest.mark.parametrize(
    ("response", "words"),
    [
        pytest.param({}, "did not allow this", id="nothing"),
        pytest.param({"behavior": "deny"}, "did not allow this", id="no reason"),
    ],
)
def test_only_the_call_that_was_allowed_is_made(driven, tmp_path, response, words):
    one = driven(calls(("Bash", {"command": "touch b"})), said("Done."), flags=ASKED)
    one.prompt("Touch.")
    one.respond(one.until("control_request"), **response)
    one.until("result")

    assert words in results(one)[0]["content"][0]["text"]
    assert list(tmp_path.glob("[bc]")) == []


def test_a_client_that_has_gone_allows_nothing(driven, tmp_path):
    one = driven(calls(("Bash", {"command": "touch b"})), said("Done."), flags=ASKED)
    one.prompt("Touch.")
    one.until("control_request")

    assert one.end()[0] == 0
    assert "has closed its end" in results(one)[0]["content"][0]["text"]
    assert not (tmp_path / "b").exists()


def test_a_client_may_answer_what_the_model_asks(driven):
    options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
    asked = {"question": "Which?", "header": "Colour", "options": options, "multiSelect": False}
    one = driven(
        calls(("AskUserQuestion", {"questions": [asked]})), said("Blue it is.", expect='"Which?": Blue'), flags=ASKED
    )
    one.prompt("Ask.")
    request = one.until("control_request")
    assert request["request"]["input"] == {"questions": [asked]}
    one.respond(request, behavior="allow", updatedInput={"questions": [asked], "answers": {"Which?": "Blue"}})

    assert one.until("result")["result"] == "Blue it is."


def test_hooks_of_the_client_are_called_and_heard(driven, tmp_path):
    hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}], "Elicitation": [{}]}
    bash = calls(("Bash", {"command": "touch b"}))
    one = driven(bash, said("Done."), flags=["--permission-mode", "bypassPermissions"], hooks=hooks)
    one.prompt("Touch.")
    called = one.until("control_request")
    said_no = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "Hands off."}
    one.respond(called, hookSpecificOutput=said_no)
    one.until("result")

    request = called["request"]
    assert (request["subtype"], request["callback_id"], request["tool_use_id"]) == ("hook_callback", "hook_0", "c1")
    assert request["input"]["hook_event_name"] == "PreToolUse"
    assert results(one)[0]["content"][0]["text"] == "Hands off."
    warned = [line["message"] for line in one.lines if line.get("subtype") == "warning"]
    assert warned == ["There are no hooks for Elicitation here: yours are not called."]
    assert not (tmp_path / "b").exists()


def test_servers_inside_the_client_have_tools(tmp_path):
    config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
    path = recording(tmp_path / "c.jsonl", calls(("mcp__calc__add", {"a": 2, "b": 3})), said("5."))
    one = Other(path, tmp_path, "--mcp-config", config, "--allowedTools", "mcp__calc__add,Read")
    one.write(type="control_request", request_id="req_1", request={"subtype": "initialize", "hooks": None})
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc"}},
        "notifications/initialized": {},
        "tools/list": {"tools": [{"name": "add", "description": "Adds.", "inputSchema": schema}, {"name": ""}]},
        "tools/call": {"content": [{"type": "text", "text": "5"}]},
    }
    messages: list[Any] = []
    for _ in answers:
        if len(messages) == 3:
            one.until("control_response")
            one.prompt("Add.")
        asked = one.until("control_request")
        messages.append(asked["request"]["message"])
        about = {"jsonrpc": "2.0", "id": messages[-1].get("id"), "result": answers[messages[-1]["method"]]}
        one.respond(asked, mcp_response=about)
    one.until("result")

    assert messages[-1]["params"] == {"name": "add", "arguments": {"a": 2, "b": 3}}
    assert results(one)[0]["content"] == [{"type": "text", "text": "5"}]
    init = next(line for line in one.lines if line.get("subtype") == "init")
    assert "mcp__calc__add" in init["tools"]
    assert init["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    status = one.request("req_2", "mcp_status")["response"]
    assert status == {"mcpServers": [{"name": "calc", "status": "connected", "scope": "dynamic"}]}
    assert one.end()[0] == 0


def test_the_mode_and_the_model_change_between_prompts(driven, tmp_path):
    other = recording(tmp_path / "other.jsonl", said("I am another."))
    write = calls(("Write", {"file_path": f"{tmp_path}/a", "content": "x"}))
    one = driven(write, said("One."), said("Three."))
    assert one.request("1", "set_permission_mode", mode="acceptEdits")["response"] == {"mode": "acceptEdits"}
    one.prompt("Write.")
    one.until("result")
    assert (tmp_path / "a").exists()
    assert one.request("2", "set_permission_mode", mode="plan")["response"] == {"mode": "plan"}
    assert one.request("3", "set_permission_mode", mode="default")["response"] == {"mode": "default"}
    refused = one.request("4", "set_permission_mode", mode="bypassPermissions")
    assert "did not begin with --permission-mode bypassPermissions" in refused["error"]
    assert one.request("5", "set_model", model=f"scripted:{other}")["subtype"] == "success"
    one.prompt("Who?")
    assert one.until("result")["result"] == "I am another."
    assert "no-such" in one.request("6", "set_model", model="no-such:model")["error"]
    assert one.request("7", "set_model", model=None)["subtype"] == "success"
    one.prompt("Who?")
    assert one.until("result")["result"] == "Three."
    assert one.request("8", "get_context_usage")["response"]["maxTokens"] > 0
    assert "There is no message with this id" in one.request("9", "rewind_files")["error"]
    assert "There is no request 'fly'" in one.request("11", "fly")["error"]
    assert one.request("10", "initialize")["subtype"] == "error"
    assert one.end() == (0, "")


def test_the_mode_that_a_project_wishes_for_is_not_left_for_a_looser_one(driven, tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"permissions": {"defaultMode": "dontAsk"}}')
    one = driven(said("Never."))

    assert one.request("1", "set_permission_mode", mode="acceptEdits")["response"] == {"mode": "dontAsk"}


def test_a_session_that_cannot_begin_is_told_to_whoever_waits_for_it(tmp_path):
    one = Other(str(tmp_path / "none.jsonl"), tmp_path)
    answer = one.request("req_1", "initialize", hooks=None)

    assert answer["subtype"] == "error"
    assert "none.jsonl" in answer["error"]
    code, err = one.end()
    assert code == 2
    assert answer["error"] in err


def test_a_client_that_asks_nothing_ends_well(driven):
    assert driven(said("Never.")).end() == (0, "")


def test_words_tools_and_rules_come_with_the_flags(tmp_path):
    path = recording(
        tmp_path / "c.jsonl", calls(("Bash", {"command": "touch b"}), system="pirate"), said("Arr.", system="pirate")
    )
    one = Other(path, tmp_path, "--tools", "Read,Bash,Grep", "--disallowedTools", "Grep,Bash(touch:*)")
    one.write(
        type="control_request",
        request_id="req_1",
        request={"subtype": "initialize", "systemPrompt": ["You are a pirate."], "appendSystemPrompt": "Be brief."},
    )
    one.until("control_response")
    one.prompt("Touch.")
    one.until("result")

    assert next(line for line in one.lines if line.get("subtype") == "init")["tools"] == ["Read", "Bash"]
    assert results(one)[0]["is_error"] is True
    assert not (tmp_path / "b").exists()
    assert one.end()[0] == 0


@pytest.mark.parametrize(
    ("texts", "rules"),
    [
        (["Read,Bash(git log:*)"], ["Read", "Bash(git log:*)"]),
        (["Read Bash(a, b)", "Edit"], ["Read", "Bash(a, b)", "Edit"]),
        (["", " , "], []),
        (["Bash(never closed, Read"], ["Bash(never closed, Read"]),
        ([")Read"], [")Read"]),
    ],
)
def test_rules_stand_between_commas_and_spaces(texts, rules):
    assert rules_in(texts) == rules


@pytest.mark.parametrize(
    ("config", "kept", "names"),
    [
        (["servers.json"], ("servers.json",), []),
        (["{not json"], ("{not json",), []),
        (['{"mcpServers": 3}'], ('{"mcpServers": 3}',), []),
        (['{"mcpServers":{"a":{"type":"sdk"}}}'], (), ["a"]),
        (
            ['{"mcpServers":{"a":{"type":"sdk"},"b":{"command":"x"}}}'],
            ('{"mcpServers":{"b":{"command":"x"}}}',),
            ["a"],
        ),
    ],
)
def test_servers_inside_the_client_are_kept_apart_from_the_others(config, kept, names):
    assert inside(config) == (kept, names)


SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def formed(tmp_path, *cues, schema=SCHEMA, flags=()):
    path = recording(tmp_path / "c.jsonl", *cues)
    arguments = ["run", "Count.", "--output", "json", "--json-schema", json.dumps(schema), *flags, "--replay", path]
    child = start(arguments, tmp_path)
    out, err = child.communicate(timeout=60)
    return child.returncode, json.loads(out) if out else None, err.decode()


def test_an_answer_may_have_a_form(tmp_path):
    wrong, right = (calls(("StructuredOutput", {"count": value})) for value in ("many", 3))
    code, result, _ = formed(tmp_path, said("Three."), wrong, right, flags=["--tools", ""])

    assert (code, result["subtype"], result["structured_output"]) == (0, "success", {"count": 3})
    assert (result["num_turns"], result["result"]) == (3, '{"count":3}')


def test_a_model_that_does_not_keep_to_the_form_fails(tmp_path):
    code, result, _ = formed(tmp_path, *[said("Three.")] * 6)

    assert (code, result["subtype"], result["is_error"]) == (4, "error_max_structured_output_retries", True)
    assert result["errors"] == ["The model gave no answer in the form that was asked for."]
    assert "structured_output" not in result


def test_the_answer_of_a_subagent_is_not_the_session_s(tmp_path):
    asked = {"description": "Count", "prompt": "Count too.", "subagent_type": "general-purpose"}
    gives = {number: ("StructuredOutput", {"count": number}) for number in (1, 2)}
    cues = [
        calls(("Task", asked)),
        calls(gives[1], prompt="Count too."),
        said("One.", prompt="Count too."),
        said("Well."),
        calls(gives[2]),
    ]
    code, result, _ = formed(tmp_path, *cues)

    assert (code, result["structured_output"], result["num_turns"]) == (0, {"count": 2}, 3)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "--json-schema is no JSON"),
        ('{"type": "array"}', "has to be the JSON Schema of an object"),
        ('{"type": "object", "properties": 3}', "schema"),
        ("nowhere.json", "The form nowhere.json cannot be read"),
    ],
)
def test_a_wrong_form_is_wrong_use(tmp_path, monkeypatch, capsys, schema, words):
    monkeypatch.chdir(tmp_path)
    path = recording(tmp_path / "c.jsonl", said("Never."))
    assert run(["run", "Go.", "--output", "json", "--json-schema", schema, "--replay", path]) == 2
    assert words in capsys.readouterr().err
    assert run(["run", "Go.", "--json-schema", "{}", "--replay", path]) == 2
    assert "--json-schema needs --output json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wanted",
    [
        {"hooks": 3, "sdkMcpServers": 3, "systemPrompt": 3, "appendSystemPrompt": []},
        {"hooks": {"PreToolUse": 3, "Stop": [3, {"hookCallbackIds": 3, "timeout": "x"}], "": None}},
        {"hooks": {"PreToolUse": [{"hookCallbackIds": [3, None], "matcher": 3, "timeout": -1}]}},
        {"agents": {"a": {}}, "skills": ["x"], "jsonSchema": 3},
    ],
    ids=["numbers", "no lists", "odd hooks", "more"],
)
def test_odd_wishes_do_no_harm(driven, wanted):
    one = driven(said("Done."), **wanted)
    one.write(type="control_response", response={"request_id": [], "subtype": 3})
    one.write(type="control_cancel_request", request_id="x")
    one.write(type="keep_alive")
    assert one.request("2", subtype=["?"])["subtype"] == "error"
    one.prompt("Go.")
    assert one.until("result")["result"] == "Done."
    code, err = one.end()
    assert (code, [line for line in err.splitlines() if not line.startswith("warning: ")]) == (0, [])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "its answer is no message of MCP"),
        ({"mcp_response": {"error": {"message": "Out of order"}}}, "Out of order"),
        ({"mcp_response": {"result": {"tools": 3}}}, ""),
        ({"mcp_response": {"result": {"tools": [3, {"name": "a"}]}}}, "A tool of the MCP server odd is left out."),
    ],
    ids=["nothing", "an error", "a number", "odd tools"],
)
def test_an_odd_server_is_a_warning(tmp_path, answer, words):
    one = Other(recording(tmp_path / "c.jsonl", said("Done.")), tmp_path)
    request = {"subtype": "initialize", "sdkMcpServers": ["odd", "__"]}
    one.write(type="control_request", request_id="req_1", request=request)
    one.respond(one.until("control_request"), **answer)
    if words not in {"its answer is no message of MCP", "Out of order"}:
        for _ in range(2):
            one.respond(one.until("control_request"), **answer)
    one.prompt("Go.")
    one.until("result")
    warned = " ".join(line["message"] for line in one.lines if line.get("subtype") == "warning")
    assert words in warned
    assert "The MCP server '__' cannot be used" in warned
    assert one.end() == (0, "")
