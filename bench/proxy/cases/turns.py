"""Conversations of several turns: thinking that comes back to the API that signed it, prefixes that stay the same byte
for byte, and marks for the cache."""

import json
from typing import Any

from bench.proxy import ask as asking
from bench.proxy.cases.kit import Table, equal
from bench.proxy.seen import plain_base64
from bench.proxy.stage import Scene
from bench.proxy.talk import TOOLS, Answer, Ask, Call, Think, Turn, Words, call, calls, model, result, user, words
from bench.proxy.upstream import says

TABLE = Table("turns")
SIGNATURE = "EqQBCkYIARgCKkBzaWduYXR1cmU+/w=="
_LISTS = {"anthropic": "messages", "openai-chat": "messages", "openai-responses": "input", "gemini": "contents"}


def _echoed(scene: Scene, body: dict[str, Any], *more: Turn) -> dict[str, Any]:
    """The next request of a program: what was asked before, what was answered, and what comes next."""
    key = _LISTS[scene.client]
    echo = scene.heard[-1].echo
    answer = echo if isinstance(echo, list) else [echo]
    behind = asking.body(Ask(turns=more, tools=TOOLS), scene.client, scene.name, stream=scene.stream)[key]
    return {**body, key: [*body[key], *answer, *behind]}


def _thoughts(scene: Scene) -> list[Any]:
    return [part for _, parts in scene.seen().turns for part in parts if part[0] == "thinking"]


_DONE = Answer((Words(("Done.",)),))


@TABLE.case("thinking comes back to its API with its signature", ask=Ask(tools=TOOLS, thinking=4_000, max_tokens=9_000))
async def _signed(scene: Scene) -> None:
    thought = Think(("Look ", "first."), SIGNATURE)
    scene.play(says(Answer((thought, Words(("I look.",)), Call("call_a", "Read", ('{"path":"a"}',))))), says(_DONE))
    body = scene.body()
    first = await scene.send(body)
    equal(first.thinking, "Look first.", "thinking")
    heard = await scene.send(_echoed(scene, body, user(result(first.ids[0], "Read", "A"))))
    assert heard.failed is None, heard.failed
    parts = [part for _, parts in scene.seen().turns for part in parts if part[0] != "thinking"]
    equal([part[0] for part in parts], ["text", "text", "call", "result"], "parts")
    sent = json.dumps(scene.last)
    if scene.wire == "gemini":
        sent = plain_base64(sent)
    carries = scene.client in {"anthropic", "openai-responses"} or scene.client == scene.wire
    if carries and scene.wire != "openai-chat":
        assert SIGNATURE in sent, "the signature was lost"
    if carries and scene.wire in {"anthropic", "openai-responses"}:
        equal(_thoughts(scene), [("thinking", "Look first.", SIGNATURE)], "thinking")
    assert "ferrule:" not in sent, "what was packed for the client went to the host"


@TABLE.case("thinking of one API does not go to another", clients=("anthropic", "openai-responses"), modes=(True,))
async def _foreign(scene: Scene) -> None:
    # The first answer comes from another model than the second.
    other = next(wire for wire in ("gemini", "openai-responses", "anthropic") if wire != scene.wire)
    name = {"gemini": "gemini:m", "openai-responses": "openai:m", "anthropic": "anthropic:m"}[other]
    thought = Think(("Hm.",), SIGNATURE)
    scene.play(says(Answer((thought, Words(("First.",))))), says(_DONE))
    body = scene.body(Ask(tools=TOOLS))
    first = await scene.clients.ask(scene.client, name, {**body, "model": name}, stream=True)
    scene.heard.append(first)
    equal(first.text, "First.", "text")
    heard = await scene.send(_echoed(scene, body, user("Go on.")))
    assert heard.failed is None, heard.failed
    sent = json.dumps(scene.last)
    assert SIGNATURE not in plain_base64(sent), "a signature of another API went to the host"
    assert "ferrule:" not in sent
    assert "First." in sent


_LONG = "The rules of the house: " + "be brief; say what is true; ask for one thing at a time. " * 30


def _prefix(before: bytes, after: bytes) -> int:
    """How many bytes two texts begin with in common."""
    at = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        at += 1
    return at


@TABLE.case("the prefix of a conversation stays the same byte for byte", ask=Ask(system=_LONG, tools=TOOLS))
async def _stable(scene: Scene) -> None:
    answers = [
        Answer((Words((f"Step {at}.",)), Call(f"call_{at}", "Read", (f'{{"path":"f{at}"}}',)))) for at in range(5)
    ]
    scene.play(*[says(answer) for answer in answers])
    body = scene.body()
    sent: list[bytes] = []
    for at in range(5):
        heard = await scene.send(body)
        assert heard.failed is None, heard.failed
        sent.append(scene.got[-1].raw)
        body = _echoed(scene, body, user(result(heard.ids[0], "Read", f"content of f{at}")))
    for at in range(4):
        before, after = scene.got[at].body, scene.got[at + 1].body
        key = _LISTS[scene.wire]
        old, new = (_unmarked(one[key]) for one in (before, after))
        equal(new[: len(old)], old, "the conversation until here")
        rest = [{name: value for name, value in one.items() if name != key} for one in (before, after)]
        equal(rest[1], rest[0], "all beside the conversation")
        if scene.wire != "anthropic" and scene.is_ours:
            # Marks wander; where there are none, everything up to the last message is the same.
            assert _prefix(sent[at], sent[at + 1]) >= _common(sent[at], old, key), "the bytes of the prefix differ"


def _common(raw: bytes, old: list[Any], key: str) -> int:
    """Where the conversation of a body ends, in bytes."""
    last = json.dumps(old[-1], ensure_ascii=False, separators=(",", ":")).encode()
    assert last in raw, f"{key} is not written compactly"
    return raw.index(last) + len(last)


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    return value


_TURNS = (user("Read a."), model(call("call_a", "Read", path="a")), user(result("call_a", "Read", "A")))
_MARK = {"type": "ephemeral"}


def _marks(value: Any) -> list[Any]:
    """All marks for the cache in a body, in their order."""
    if isinstance(value, list):
        return [mark for one in value for mark in _marks(one)]
    if isinstance(value, dict):
        own = [value["cache_control"]] if value.get("cache_control") else []
        return own + [mark for name, one in value.items() if name != "cache_control" for mark in _marks(one)]
    return []


@TABLE.case("marks of the client are kept, and removed where the API has none", clients=("anthropic",))
async def _marked(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body(Ask(turns=_TURNS, tools=TOOLS))
    hour = {**_MARK, "ttl": "1h"}
    body["system"] = [{"type": "text", "text": _LONG, "cache_control": hour}]
    body["tools"][-1]["cache_control"] = hour
    body["messages"][-1]["content"][-1]["cache_control"] = _MARK
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    marks = _marks(scene.last)
    if scene.wire == "anthropic":
        equal(sorted(map(str, marks)), sorted(map(str, [hour, hour, _MARK])), "marks")
    else:
        equal(marks, [], "marks")


@TABLE.case(
    "marks are set for a host that wants them",
    clients=("openai-chat", "openai-responses", "gemini"),
    wires=("anthropic",),
)
async def _set(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.ask(Ask(turns=_TURNS, tools=TOOLS, system=_LONG))
    assert heard.failed is None, heard.failed
    assert 2 <= len(_marks(scene.last)) <= 4, f"{len(_marks(scene.last))} marks"
    assert _marks(scene.last["tools"]) or _marks(scene.last["system"]), "nothing of what stays is marked"
    assert _marks(scene.last["messages"]), "nothing of the conversation is marked"


@TABLE.case(
    "marks of the client, for a gateway of another API that takes them",
    clients=("anthropic",),
    wires=("openai-chat",),
    host="openrouter",
    model="anthropic/claude-opus-5.5",
)
async def _gateway(scene: Scene) -> None:
    scene.play(says(words("ok")))
    body = scene.body(Ask(turns=_TURNS, tools=TOOLS))
    hour = {**_MARK, "ttl": "1h"}
    body["system"] = [{"type": "text", "text": _LONG, "cache_control": hour}]
    body["messages"][-1]["content"][-1]["cache_control"] = hour
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    equal(_marks(scene.last), [hour, hour], "marks of the system prompt and of the conversation")


@TABLE.case("marks are set for a client of the same API that has none", clients=("anthropic",), wires=("anthropic",))
async def _set_here(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.ask(Ask(turns=_TURNS, tools=TOOLS, system=_LONG))
    assert heard.failed is None, heard.failed
    assert 2 <= len(_marks(scene.last)) <= 4, f"{len(_marks(scene.last))} marks"


@TABLE.case(
    "a mark beside a tool that is loaded later, under another name",
    clients=("anthropic",),
    wires=("anthropic",),
    model="alias",
)
@TABLE.case("a mark beside a tool that is loaded later", clients=("anthropic",), wires=("anthropic",))
async def _deferred_mark(scene: Scene) -> None:
    # The API refuses both on one tool.
    scene.play(says(words("ok")))
    body = scene.body(Ask(tools=TOOLS, system=_LONG))
    body["tools"][-1]["defer_loading"] = True
    body["tools"].append({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"})
    body["tools"] = [body["tools"][-1], *body["tools"][:-1]]
    heard = await scene.send(body)
    assert heard.failed is None, heard.failed
    for tool in scene.last["tools"]:
        assert not (tool.get("defer_loading") and tool.get("cache_control")), f"the API refuses {tool['name']}"


@TABLE.case("tokens written to the cache are told", clients=("anthropic",), wires=("anthropic",))
async def _written(scene: Scene) -> None:
    from bench.proxy.talk import Counted

    answer = Answer((Words(("ok",)),), counted=Counted(9_000, 5, cached=4_000, written=3_000))
    scene.play(says(answer))
    heard = await scene.ask()
    equal((heard.input, heard.cached, heard.written), (9_000, 4_000, 3_000), "tokens")


@TABLE.case("a conversation has the same key for the cache in each turn", wires=("openai-responses", "openai-chat"))
async def _key(scene: Scene) -> None:
    if scene.client == scene.wire:
        return  # passed on as it is
    scene.play(says(calls(Call("call_a", "Read", ('{"path":"a"}',)))), says(_DONE))
    body = scene.body(Ask(tools=TOOLS))
    first = await scene.send(body)
    await scene.send(_echoed(scene, body, user(result(first.ids[0], "Read", "A"))))
    keys = [got.body.get("prompt_cache_key") for got in scene.got]
    assert keys[0], "no key"
    equal(keys[1], keys[0], "key of the second turn")


@TABLE.case("calls of every turn keep their own ids", modes=(True,))
async def _ids(scene: Scene) -> None:
    answers = [calls(Call(f"call_{at}", "Now", ("{}",)), Call(f"more_{at}", "Now", ("{}",))) for at in range(3)]
    scene.play(*[says(answer) for answer in answers], says(_DONE))
    body = scene.body(Ask(tools=TOOLS))
    for at in range(3):
        heard = await scene.send(body)
        assert heard.failed is None, heard.failed
        body = _echoed(scene, body, user(*(result(one, "Now", f"{at}") for one in heard.ids)))
    heard = await scene.send(body)
    equal(heard.text, "Done.", "text")
    scene.seen()  # raises for a result of no call, and for an id that comes twice


@TABLE.case("a host that numbers the calls of each answer anew", modes=(True, False))
async def _numbered(scene: Scene) -> None:
    if scene.client == scene.wire:
        return  # passed on as it is
    answers = [calls(Call("call_0", "Now", ("{}",))) for _ in range(3)]
    scene.play(*[says(answer) for answer in answers], says(_DONE))
    body = scene.body(Ask(tools=TOOLS))
    for at in range(3):
        heard = await scene.send(body)
        assert heard.failed is None, heard.failed
        body = _echoed(scene, body, user(*(result(one, "Now", f"{at}") for one in heard.ids)))
    heard = await scene.send(body)
    equal(heard.text, "Done.", "text")
    scene.seen()  # raises for a result of no call, and for an id that comes twice


@TABLE.case("a host whose answers all have the same id", modes=(True, False))
async def _same_id(scene: Scene) -> None:
    if scene.client == scene.wire:
        return  # passed on as it is
    scene.play(says(words("One.")), says(words("Two.")))
    first, second = await scene.ask(), await scene.ask()
    assert first.id != second.id, f"two answers with the id {first.id!r}: Claude Code takes them for one"
