"""Tools that only one API has: those that run inside of it, and those that a client defers until they are found."""

import json
from typing import Any

from bench.proxy.cases.kit import Table, equal
from bench.proxy.stage import Scene
from bench.proxy.talk import READ, TOOLS, Ask, Call, calls, words
from bench.proxy.upstream import says

TABLE = Table("own tools")
_SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
_CODE = {"type": "code_execution_20250825", "name": "code_execution"}
_HERE: dict[str, dict[str, Any]] = {
    "anthropic": {"tools": [_CODE]},
    "openai-responses": {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
    "gemini": {"tools": [{"codeExecution": {}}]},
}
_NAMES = {"anthropic": "code_execution_20250825", "openai-responses": "code_interpreter", "gemini": "codeExecution"}


def _names(scene: Scene) -> list[str]:
    return [name for name, _, _ in scene.seen().tools]


@TABLE.case("a tool that runs inside of its API is left out elsewhere", clients=tuple(_HERE), modes=(True, False))
async def _hosted(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body(Ask(tools=(READ,)))
    body["tools"] = [*body["tools"], *_HERE[scene.client]["tools"]]
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    equal(heard.text, "ok", "text")
    sent = json.dumps(scene.last["tools"])
    if scene.client == scene.wire:
        assert _NAMES[scene.client] in sent.replace('code_execution"', 'codeExecution"'), sent
        return
    equal(_names(scene), ["Read"], "tools")
    if scene.is_ours:
        assert _NAMES[scene.client] in heard.headers.get("x-ferrule-dropped", ""), heard.headers


@TABLE.case("a request with nothing but such tools is still answered", clients=tuple(_HERE), modes=(True,))
async def _only(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = {**scene.body(), **_HERE[scene.client]}
    if scene.client == "anthropic":
        body["tool_choice"] = {"type": "auto"}
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    if scene.client != scene.wire:
        assert not scene.last.get("tools"), scene.last["tools"]
        assert "tool_choice" not in scene.last


@TABLE.case("a tool choice that names what was left out", clients=("anthropic",), modes=(True,))
async def _chosen(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body(Ask(tools=(READ,)))
    body["tools"].append(_CODE)
    body["tool_choice"] = {"type": "tool", "name": "code_execution"}
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    if scene.client != scene.wire:
        assert scene.seen().choice in {"", "auto"}, scene.seen().choice


@TABLE.case("web search is left out where nobody does it", clients=("anthropic",), modes=(True,), variant="web-off")
async def _search(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body(Ask(tools=(READ,)))
    body["tools"].append(_SEARCH)
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    if scene.client == scene.wire:
        assert _SEARCH in scene.last["tools"] or "web_search" in json.dumps(scene.last["tools"])
        return
    equal(_names(scene), ["Read"], "tools")
    assert "web_search" in heard.headers["x-ferrule-dropped"]


def _deferred(scene: Scene, *more: dict[str, Any]) -> dict[str, Any]:
    """A request of Claude Code's: Write and Now are loaded when they are found."""
    body = scene.body(Ask(tools=TOOLS))
    for tool in body["tools"][1:]:
        tool["defer_loading"] = True
    search = {"name": "ToolSearch", "description": "Finds tools.", "input_schema": READ.schema}
    body["tools"] = [search, *body["tools"]]
    body["messages"] = [*body["messages"], *more]
    return body


def _found(id_: str, *names: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": id_, "name": "ToolSearch", "input": {"path": "x"}}
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    answer = {"type": "tool_result", "tool_use_id": id_, "content": references}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]


@TABLE.case("tools that are deferred are not shown before they are found", clients=("anthropic",), modes=(True, False))
async def _later(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.send(_deferred(scene))
    assert heard.failed is None, heard.failed
    if scene.wire == "anthropic":
        equal([tool.get("defer_loading") for tool in scene.last["tools"]], [None, None, True, True], "deferred")
    else:
        equal(_names(scene), ["ToolSearch", "Read"], "tools")
        assert "defer_loading" not in json.dumps(scene.last)


@TABLE.case("tools that a search has found are shown, behind the others", clients=("anthropic",), modes=(True, False))
async def _shown(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.send(_deferred(scene, *_found("t1", "Now")))
    assert heard.failed is None, heard.failed
    sent = json.dumps(scene.last)
    if scene.wire == "anthropic":
        assert '"tool_reference"' in sent
        return
    equal(_names(scene), ["ToolSearch", "Read", "Now"], "tools")
    assert "tool_reference" not in sent, "a block of another API"
    told = scene.seen().turns[-1][1][0]
    assert "Now" in json.dumps(told), f"the model is not told what was found: {told}"


@TABLE.case("what was found earlier keeps its place when more is found", clients=("anthropic",), modes=(True,))
async def _grows(scene: Scene) -> None:
    if scene.wire == "anthropic":
        return  # it keeps them itself
    scene.play(says(words("ok")))
    first, second = _found("t1", "Now"), _found("t2", "Write")
    await scene.send(_deferred(scene, *first))
    before = scene.seen().tools
    await scene.send(_deferred(scene, *first, *second))
    equal(scene.seen().tools, [*before, scene.seen().tools[-1]], "tools")
    equal(_names(scene), ["ToolSearch", "Read", "Now", "Write"], "tools")


@TABLE.case("where the API itself would search, all tools are shown", clients=("anthropic",), modes=(True,))
async def _all(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body(Ask(tools=TOOLS))
    for tool in body["tools"]:
        tool["defer_loading"] = True
    body["tools"].insert(0, {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"})
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    if scene.wire != "anthropic":
        equal(_names(scene), ["Read", "Write", "Now"], "tools")


@TABLE.case("tools with a type of the API's own that a client runs", clients=("anthropic",), modes=(True,))
async def _own_type(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body()
    body["tools"] = [{"type": "bash_20250124", "name": "bash"}]
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    if scene.wire == "anthropic":
        equal(scene.last["tools"][0]["type"], "bash_20250124", "type")
    else:
        name, said, schema = scene.seen().tools[0]
        equal(name, "bash", "name")
        assert said, "a tool without a word"
        assert "command" in schema["properties"], schema


_AGENTS = {
    "type": "namespace",
    "name": "agents",
    "description": "Other agents.",
    "tools": [{"type": "function", "name": name, "parameters": READ.schema} for name in ("spawn", "wait")],
}
_SPAWNED = {"type": "function_call", "call_id": "call_0", "name": "spawn", "namespace": "agents", "arguments": "{}"}
_OTHERS = ("anthropic", "openai-chat", "gemini")


@TABLE.case(
    "tools in a bundle stand by themselves elsewhere, and are called as the client knows them",
    clients=("openai-responses",),
    wires=_OTHERS,
    own=True,
)
async def _bundled(scene: Scene) -> None:
    scene.play(
        says(calls(Call("call_1", "agents__spawn", ('{"path":"a"}',)), Call("call_2", "Read", ('{"path":"b"}',))))
    )
    body = scene.body(Ask(tools=(READ,)))
    body["tools"].append(_AGENTS)
    body["input"] = [
        {"role": "user", "content": "Spawn."},
        _SPAWNED,
        {"type": "function_call_output", "call_id": "call_0", "output": "spawned"},
    ]
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    equal(_names(scene), ["Read", "agents__spawn", "agents__wait"], "tools")
    sent = [part for _, parts in scene.seen().turns for part in parts]
    equal([part[2] for part in sent if part[0] == "call"], ["agents__spawn"], "the call that was")
    items = [one for one in heard.echo if one.get("type") == "function_call"]
    equal([(one["name"], one.get("namespace")) for one in items], [("spawn", "agents"), ("Read", None)], "calls")
    assert "namespace" not in heard.headers.get("x-ferrule-dropped", ""), heard.headers


@TABLE.case(
    "what one agent of codex tells another is read elsewhere", clients=("openai-responses",), wires=_OTHERS, own=True
)
async def _agents(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body()
    content = [{"type": "input_text", "text": "Task: "}, {"type": "encrypted_content", "encrypted_content": "count."}]
    message = {"type": "agent_message", "id": "amsg_1", "author": "/root", "recipient": "/root/a", "content": content}
    body["input"] = [{"role": "user", "content": "Begin."}, message]
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    said = "".join(part[1] for role, parts in scene.seen().turns if role == "user" for part in parts)
    assert "Task: count." in said, said
    assert "agent_message" not in heard.headers.get("x-ferrule-dropped", ""), heard.headers


_PATCH = '*** Begin Patch\n*** Add File: a\n+"größer"\n*** End Patch\n'


@TABLE.case(
    "a tool that takes free text is called with it, whatever the host knows of such tools",
    clients=("openai-responses",),
    own=True,
)
async def _free(scene: Scene) -> None:
    knows = scene.wire.startswith("openai")
    text = _PATCH if knows else json.dumps({"input": _PATCH}, ensure_ascii=False)
    pieces = tuple(text[at : at + 9] for at in range(0, len(text), 9))
    scene.play(says(calls(Call("call_1", "apply_patch", pieces, is_text=knows))))
    body = scene.body(Ask(tools=(READ,)))
    body["tools"].append({"type": "custom", "name": "apply_patch", "description": "Changes files."})
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    made = next(one for one in heard.echo if one["type"].endswith("_call"))
    equal((made["type"], made["input"]), ("custom_tool_call", _PATCH), "call")
