"""Bodies of the official packages' types: nothing is lost onto the same API, and onto another nothing in silence."""

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.wire import WireError, load_wire
from ferrule.wire.fields import NEEDED, others
from ferrule.wire.translate import translate_body
from tests.rows import each_row
from tests.wire.sdk_bodies import BODIES

pytestmark = pytest.mark.usefixtures("packages")
WIRES = list(BODIES)
PAIRS = [(source, target) for source in WIRES for target in WIRES if source != target]
_SILENT = {"metadata", "output_config", "text", "reasoning", "thinkingConfig", "toolConfig"}
"""Objects of settings that say nothing while they are empty."""
seeds = st.integers(0, 2**32)


def normal(value: Any) -> Any:
    """A body without the fields that say nothing: null, an empty list, and what holds in any case."""
    if isinstance(value, dict):
        found = {key: normal(member) for key, member in value.items() if member is not None and member != []}
        return {key: member for key, member in found.items() if member != {} or key not in _SILENT}
    return [normal(member) for member in value] if isinstance(value, list) else value


def _blocks(content: Any, kind: str) -> Any:
    return [{"type": kind, "text": content}] if isinstance(content, str) else content


def anthropic_form(body: dict[str, Any]) -> dict[str, Any]:
    """Words alone are a block of text, and a system of plain blocks is one text."""
    out: dict[str, Any] = normal(body)
    for message in out["messages"]:
        message["content"] = _blocks(message["content"], "text")
        for block in message["content"]:
            if block["type"] == "tool_result":
                block.update({"content": _blocks(block["content"], "text")} if "content" in block else {})
                if not block.get("is_error"):
                    block.pop("is_error", None)
    system = out.get("system")
    if isinstance(system, list) and not any(others(block, frozenset(("type", "text"))) for block in system):
        out["system"] = "\n\n".join(block["text"] for block in system)
    for tool in out.get("tools", ()):
        if tool.get("type", "custom") == "custom" and "input_schema" in tool:
            tool.pop("type", None)
            tool.setdefault("description", "")
    if not out.get("stream"):
        out.pop("stream", None)
    return out


def chat_form(body: dict[str, Any]) -> dict[str, Any]:
    """Words alone are a part of text; texts of which nothing is said are one; a refusal is a part."""
    out: dict[str, Any] = normal(body)
    for message in out["messages"]:
        content = _blocks(message.get("content"), "text") or []
        if message["role"] == "assistant" and message.get("refusal"):
            content = [*content, {"type": "refusal", "refusal": message.pop("refusal")}]
        if message["role"] in {"assistant", "system", "developer"} and all(
            part.keys() == {"type", "text"} for part in content
        ):
            between = "" if message["role"] == "assistant" else "\n\n"
            content = _blocks(between.join(part["text"] for part in content), "text")
        message["content"] = content
    for tool in out.get("tools", ()):
        if "function" in tool:
            tool["function"].setdefault("strict", False)
            tool["function"].setdefault("description", "")
            tool["function"].setdefault("parameters", {"type": "object", "properties": {}})
        else:
            tool["custom"].setdefault("description", "")
            tool["custom"].setdefault("format", {"type": "text"})
    if isinstance(out.get("stop"), str):
        out["stop"] = [out["stop"]]
    if not out.get("stream"):
        out.pop("stream", None)
    return out


def responses_form(body: dict[str, Any]) -> dict[str, Any]:
    """An item without a type is a message, and words alone are a part of text."""
    out: dict[str, Any] = normal(body)
    for item in out["input"]:
        if "role" in item:
            item.setdefault("type", "message")
        if item.get("type") == "message":
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            content = _blocks(item.get("content"), kind) or []
            if item["role"] in {"system", "developer"} and all(part.keys() == {"type", "text"} for part in content):
                content = _blocks("\n\n".join(part["text"] for part in content), kind)
            item["content"] = content
    for tool in out.get("tools", ()):
        if tool["type"] in {"function", "custom"}:
            tool.setdefault("description", "")
        if tool["type"] == "custom":
            tool.setdefault("format", {"type": "text"})
        if tool["type"] == "function":
            tool.setdefault("strict", False)
    if "include" in out:
        out["include"] = list(dict.fromkeys(out["include"]))
    if not out.get("stream"):
        out.pop("stream", None)
    return out


def gemini_form(body: dict[str, Any]) -> dict[str, Any]:
    """A function without a description has an empty one."""
    out: dict[str, Any] = normal(body)
    for tool in out.get("tools", ()):
        for one in tool.get("functionDeclarations", ()):
            one.setdefault("description", "")
            if "parameters" not in one:
                one.setdefault("parametersJsonSchema", {"type": "object", "properties": {}})
    for content in out["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                part["functionCall"].setdefault("args", {})
    return out


FORMS = {
    "anthropic": anthropic_form,
    "openai-chat": chat_form,
    "openai-responses": responses_form,
    "gemini": gemini_form,
}


@pytest.mark.parametrize("name", WIRES)
@given(seed=seeds)
@settings(max_examples=60)
def test_a_body_onto_its_own_api_loses_nothing(name, seed):
    wire, body = load_wire(name), BODIES[name](seed)

    assert FORMS[name](wire.asked_out(wire.asked_in(body))) == FORMS[name](body)


_MARK = re.compile(r"zq\d{4}zq|\b2\d{4}\b|0\.5\d{4}\b")


_BASE64 = re.compile(r'"([A-Za-z0-9+/]+={0,2})"')
_LEFT_OUT = re.compile(r"\[The document at [^ ]+ was left out here\.\]")


def _marks(value: Any) -> set[str]:
    """What can be found again: in texts, in numbers, and in texts that are packed as a file."""
    text = _LEFT_OUT.sub("", json.dumps(value))
    packed = (
        base64.b64decode(found).decode(errors="replace") for found in _BASE64.findall(text) if len(found) % 4 == 0
    )
    return set(_MARK.findall(" ".join((text, *packed))))


def _at(body: Any, path: str) -> Any:
    for step in re.findall(r"[^.\[\]]+", path):
        body = body[int(step)] if isinstance(body, list) else body[step]
    return body


@pytest.mark.parametrize(("source", "target"), PAIRS, ids="-to-".join)
@given(seed=seeds)
@settings(max_examples=25)
def test_what_another_api_does_not_get_is_named(source, target, seed):
    """Every text and number of the body is in the other's, or stands under a path that was dropped; and no path is
    named whose words all arrived."""
    body = BODIES[source](seed, hosted=False)
    made = translate_body(body, source, target)
    arrived = _marks(made.body)
    named = {where: _marks(_at(body, where)) for _, where in made.dropped}

    assert _marks(body) - arrived - set().union(*named.values()) == set()
    assert {where: marks for where, marks in named.items() if marks and marks <= arrived} == {}


@pytest.mark.parametrize(("source", "target"), [("mcp", "gemini"), ("gemini", "mcp"), ("nothing", "gemini")])
def test_only_model_apis_have_bodies(source, target):
    with pytest.raises(ConfigError, match="No model API is called"):
        translate_body({"model": "m"}, source, target)


def test_what_a_thinking_model_refuses_is_named_onto_its_own_api_too():
    body = {
        "model": "m",
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": "hi"}],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "temperature": 0.2,
        "top_p": 0.5,
        "top_k": 3,
    }
    made = translate_body(body, "anthropic", "anthropic")

    assert made.dropped == [("temperature", "temperature"), ("top_p", "top_p"), ("top_k", "top_k")]
    assert made.body.keys() == body.keys() - {"temperature", "top_p", "top_k"}
    assert translate_body({**body, "thinking": {"type": "disabled"}}, "anthropic", "anthropic").dropped == []


def test_a_block_that_is_dropped_whole_is_named_by_its_kind():
    found = {"type": "search_result", "source": "a", "title": "A", "content": []}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    messages = [{"role": "user", "content": [found]}, {"role": "assistant", "content": [thought]}]
    made = translate_body({"model": "m", "max_tokens": 1, "messages": messages}, "anthropic", "gemini")

    assert made.dropped == [("search_result", "messages[0].content[0]"), ("thinking", "messages[1].content[0]")]


def test_a_chat_server_gets_top_k_only_from_who_knows_it():
    """OpenAI refuses the field; servers that imitate its API take it."""
    body = {"model": "m", "messages": [], "top_k": 7}
    made = translate_body({"model": "m", "messages": [], "max_tokens": 1, "top_k": 7}, "anthropic", "openai-chat")

    assert translate_body(body, "openai-chat", "openai-chat").body["top_k"] == 7
    assert translate_body(body, "openai-chat", "anthropic").body["top_k"] == 7
    assert "top_k" not in made.body
    assert ("top_k", "top_k") in made.dropped


@each_row(("source", "name"), [(wire, name) for wire, names in NEEDED.items() for name in names])
def test_what_a_request_depends_on_goes_back_to_its_api_and_is_refused_elsewhere(source, name):
    body = BODIES[source](1, hosted=False) | {name: {"zq": "zq"}}

    assert translate_body(body, source, source).body[name] == {"zq": "zq"}
    for target in WIRES:
        if target != source:
            with pytest.raises(WireError, match=f"{name} names what only {source} has"):
                translate_body(body, source, target)
