"""Rewrite the bodies of proxied requests for the API of a host, and report the parts that were left out.

If client and host speak the same API, the client's own body is relayed and changed only as little as needed.
Otherwise the request is built anew, without the features that only the client's API has.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from ferrule.core.content import Text
from ferrule.models.bodies import MARK, encode_json, mark_last
from ferrule.models.http import HttpModel
from ferrule.serve.proxy.records import clean_client_text
from ferrule.serve.proxy.upstreams import Upstream, has_marks
from ferrule.wire import (
    Definition,
    Delta,
    Foreign,
    ModelRequest,
    Part,
    Result,
    ToolChoice,
    Turn,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
    WireError,
    fields,
    load_wire,
    openai_responses,
    origin,
)
from ferrule.wire.conversation import FREE

_LIMITS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "anthropic": (("max_tokens",),),
    "openai-chat": (("max_tokens",), ("max_completion_tokens",)),
    "openai-responses": (("max_output_tokens",),),
    "gemini": (("generationConfig", "maxOutputTokens"), ("generation_config", "max_output_tokens")),
}
"""Where each API says how long an answer may be."""
_BETA = re.compile(r"[a-z0-9][a-z0-9._-]{0,80}")
BILLING = "x-anthropic-billing-header:"
"""Claude Code begins its system prompt with such a line; it changes with versions and is for one host alone."""


def relay_body(body: Mapping[str, Any], asked: ModelRequest, upstream: Upstream, *, stream: bool) -> bytes:
    """The client's own body for the same API: another model's name, marks for the cache if it has none."""
    http = upstream.http
    assert http is not None
    api = http.host.api
    out = _FITS[api](dict(body), asked, http, stream)
    # What is guessed of a model is no reason to change a request.
    if upstream.has_bound:
        for path in _LIMITS[api]:
            _clamp(out, path, http.most_output)
    return encode_json(out)


def _messages(body: dict[str, Any], asked: ModelRequest, http: HttpModel, stream: bool) -> dict[str, Any]:  # noqa: FBT001 - one form for all
    body |= {"model": http.model, "stream": stream, "messages": _own_thoughts(body.get("messages") or [])}
    if http.host.name != "anthropic":
        body = without_billing(body)
    if asked.definitions and not has_marks(asked) and not _has_own_marks(body, asked):
        _mark(body)
    return body


def _has_own_marks(body: Mapping[str, Any], asked: ModelRequest) -> bool:
    """Marks in what has no noun: on the body as a whole, and on blocks of the API's own tools."""
    blocks = (part.block for turn in asked.turns for part in turn.parts if isinstance(part, Foreign))
    return any("cache_control" in holder for holder in (body, *blocks))


def _chat(body: dict[str, Any], _: ModelRequest, http: HttpModel, stream: bool) -> dict[str, Any]:  # noqa: FBT001 - as above
    options = body.pop("stream_options", None)
    options = options if isinstance(options, dict) else {}
    usage = {"stream_options": {**options, "include_usage": True}} if stream else {}
    return {**body, "model": http.model, "stream": stream, **usage}


def _responses(body: dict[str, Any], _: ModelRequest, http: HttpModel, stream: bool) -> dict[str, Any]:  # noqa: FBT001 - as above
    given = body.get("input")
    kept = [item for item in given if not _is_foreign(item, "openai-responses")] if isinstance(given, list) else given
    return {**body, "input": kept, "model": http.model, "stream": stream}


def _generate(body: dict[str, Any], _: ModelRequest, __: HttpModel, ___: bool) -> dict[str, Any]:  # noqa: FBT001 - as above
    body.pop("model", None)
    return body


_FITS: Mapping[str, Callable[[dict[str, Any], ModelRequest, HttpModel, bool], dict[str, Any]]] = {
    "anthropic": _messages,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _generate,
}
"""How a body of each API is sent on."""


def _is_foreign(block: Any, api: str) -> bool:
    """Is it thinking of another API, which was given to the client packed, when another model answered?"""
    return isinstance(block, dict) and block.get("type") in {"thinking", "reasoning"} and origin(block) not in {"", api}


def _own_thoughts(messages: list[Any]) -> list[Any]:
    """The conversation without what other APIs have signed, which this one would refuse."""
    out = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and any(_is_foreign(block, "anthropic") for block in content):
            kept = [block for block in content if not _is_foreign(block, "anthropic")]
            if kept:
                out.append({**message, "content": kept})
        else:
            out.append(message)
    return out


def _clamp(holder: dict[str, Any], path: tuple[str, ...], most: int) -> None:
    *outer, last = path
    for name in outer:
        inner = holder.get(name)
        if not isinstance(inner, dict):
            return
        holder[name] = holder = dict(inner)
    if isinstance(value := holder.get(last), int) and value > most:
        holder[last] = most


def _mark(body: dict[str, Any]) -> None:
    """Mark the end of the tools, of the system prompt and of the conversation for the cache."""
    body["tools"] = mark_last(body["tools"])
    if system := body.get("system"):
        blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
        body["system"] = [*blocks[:-1], {**blocks[-1], "cache_control": MARK}]
    messages = body.get("messages")
    if not messages:
        return
    last = messages[-1]
    content = last.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if last.get("role") == "user" and blocks and _can_be_marked(blocks[-1]):
        marked = {**last, "content": [*blocks[:-1], {**blocks[-1], "cache_control": MARK}]}
        body["messages"] = [*messages[:-1], marked]


def _can_be_marked(block: Any) -> bool:
    return (
        isinstance(block, dict)
        and block.get("type") in {"text", "tool_result", "image", "document"}
        and block.get("text") != ""
    )


def without_billing(body: dict[str, Any]) -> dict[str, Any]:
    """The body without the line that Claude Code writes for its own host."""
    system = body.get("system")
    if not isinstance(system, list):
        return body
    kept = [
        block
        for block in system
        if not (isinstance(block, dict) and str(block.get("text", "")).lstrip().startswith(BILLING))
    ]
    return body if len(kept) == len(system) else {**body, "system": kept}


def parse_betas(header: str) -> tuple[str, ...]:
    """The betas that a client of Anthropic's API names in a header; what is no name of one is passed over."""
    return tuple(one for part in header.split(",") if _BETA.fullmatch(one := part.strip()))


def conversation_key(asked: ModelRequest) -> str:
    """A name of the conversation, the same in each of its turns, by which a host finds what it has cached."""
    hashed = hashlib.sha256(asked.user.encode("utf-8", "replace"))
    for turn in asked.turns:
        hashed.update(turn.role.encode())
        for part in turn.parts:
            if isinstance(part, Text):
                hashed.update(part.text.encode("utf-8", "replace"))
        if turn.role == "user":
            break
    return hashed.hexdigest()[:32]


KIND = "namespace"
MESSAGE = "agent_message"
_MOST_CHARS = 64
"""No API takes longer names."""
_HASH_CHARS = 8
NO_NAMES: Mapping[str, tuple[str, str]] = MappingProxyType({})


def flat_tool_name(bundle: str, name: str) -> str:
    """The name of a tool of a bundle, where there are no bundles."""
    joined = f"{bundle.rstrip('_')}__{name}"
    if len(joined) <= _MOST_CHARS:
        return joined
    seed = hashlib.sha256(joined.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{joined[: _MOST_CHARS - _HASH_CHARS - 1]}_{seed}"


def names(asked: ModelRequest) -> Mapping[str, tuple[str, str]]:
    """What `unbundled` calls a tool → its bundle and its own name."""
    return {
        flat_tool_name(bundle, inner.name): (bundle, inner.name)
        for one in asked.definitions
        if (bundle := _bundle(one))
        for inner in _inside(one)
    } or NO_NAMES


def unbundle_tools(asked: ModelRequest) -> ModelRequest:
    """A request whose tools of bundles stand by themselves, in the place of their bundle."""
    turns = asked.turns
    if any(map(_is_special, (part for turn in turns for part in turn.parts))):
        turns = tuple(told for turn in turns for told in _convert_turn(turn))
    if not any(map(_bundle, asked.definitions)):
        return asked if turns is asked.turns else replace(asked, turns=turns)
    definitions = tuple(inner for one in asked.definitions for inner in _alone(one))
    return replace(asked, turns=turns, definitions=definitions, choice=_choice(asked.choice, names(asked)))


class ClientCalls:
    """Makes the calls of another API's model into calls as the client knows its tools."""

    def __init__(self, asked: ModelRequest) -> None:
        self._names = names(asked)
        self._free = frozenset(one.name for one in unbundle_tools(asked).definitions if one.grammar)
        self._held: dict[int, list[str]] = {}
        """The pieces of calls of free-text tools: the text stands inside of an object there."""

    def put(self, delta: Delta) -> Sequence[Delta]:
        if isinstance(delta, UseBegun):
            return (self._restore_name(delta),)
        if not self._held or not isinstance(delta, UsePiece | UseEnded) or delta.at not in self._held:
            return (delta,)
        if isinstance(delta, UsePiece):
            self._held[delta.at].append(delta.text)
            return ()
        text = _text("".join(self._held.pop(delta.at)))
        return (delta,) if delta.cut else (UsePiece(delta.at, text), delta)

    def _restore_name(self, begun: UseBegun) -> UseBegun:
        is_text = begun.is_text
        if begun.name in self._free and not is_text:
            self._held[begun.at] = []
            is_text = True
        bundle, name = self._names.get(begun.name, (begun.namespace, begun.name))
        return replace(begun, name=name, namespace=bundle, is_text=is_text)


def _text(given: str) -> str:
    """The text in the arguments of a call; a model may also have written nothing but the text."""
    try:
        value = msgspec.json.decode(given)
    except msgspec.DecodeError:
        return given
    if isinstance(value, dict):
        texts = [one for one in (value.get(FREE), *value.values()) if isinstance(one, str)]
        return texts[0] if texts else given
    return value if isinstance(value, str) else given


def _bundle(one: Definition) -> str:
    """The name of a bundle; empty for any other tool."""
    fields = one.extra.fields if one.hosted and one.extra is not None else {}
    return str(fields.get("name", "")) if fields.get("type") == KIND else ""


def _inside(one: Definition) -> tuple[Definition, ...]:
    fields: Mapping[str, Any] = one.extra.fields if one.extra is not None else {}
    try:
        return tuple(inner for inner in openai_responses.definitions_in(fields.get("tools")) if not inner.hosted)
    except WireError:
        return ()


def _alone(one: Definition) -> Iterator[Definition]:
    bundle = _bundle(one)
    if not bundle:
        yield one
        return
    for inner in _inside(one):
        yield replace(inner, name=flat_tool_name(bundle, inner.name))


def _is_special(part: Part) -> bool:
    if isinstance(part, Use):
        return bool(part.namespace)
    return _is_message(part)


def _convert_turn(turn: Turn) -> Iterator[Turn]:
    """A turn in words of all APIs. A message of an agent stands among what the model said, and is none of it."""
    if any(isinstance(part, Result) for part in turn.parts) or not any(map(_is_message, turn.parts)):
        yield replace(turn, parts=tuple(map(_part, turn.parts)))
        return
    for is_message, parts in groupby(turn.parts, _is_message):
        yield Turn("user" if is_message else turn.role, tuple(map(_part, parts)))


def _is_message(part: Part) -> bool:
    return isinstance(part, Foreign) and part.kind == MESSAGE


def _part(part: Part) -> Part:
    if isinstance(part, Use) and part.namespace:
        return replace(part, name=flat_tool_name(part.namespace, part.name), namespace="", extra=None)
    if isinstance(part, Foreign) and _is_message(part):
        return Text(_words(part.block.get("content")))
    return part


def _words(content: Any) -> str:
    """What one agent tells another. A host of its own API would have sealed it; nobody else does."""
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    texts = [one.get("text", one.get("encrypted_content", "")) for one in blocks]
    return "".join(text for text in texts if isinstance(text, str)) or "(An agent has sent no words.)"


def _choice(choice: ToolChoice | None, known: Mapping[str, tuple[str, str]]) -> ToolChoice | None:
    """A choice that names a tool of a bundle."""
    if choice is None or choice.kind != "tool":
        return choice
    found = next((name for name, (_, inner) in known.items() if inner == choice.name), choice.name)
    return choice if found == choice.name else replace(choice, name=found)


NOT_RUN = "This call was cut off before it was answered. It did not run."


def pair_results(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The same turns where nothing is amiss; else with an answer for each call, and none for what is no call."""
    out: list[Turn] = []
    waiting: list[Use] = []
    for is_model, run in groupby(turns, key=lambda turn: turn.role == "assistant"):
        given = list(run)
        if is_model:
            out += given
            waiting = [part for turn in given for part in turn.parts if isinstance(part, Use)]
        else:
            out += _complete_results(given, waiting)
            waiting = []
    out += _build_missing_results(waiting, Counter(use.id for use in waiting))
    is_same = len(out) == len(turns) and all(one is other for one, other in zip(out, turns, strict=True))
    return turns if is_same else out


def _complete_results(turns: Sequence[Turn], uses: Sequence[Use]) -> list[Turn]:
    """What stands between two turns of the model, with exactly one result for each of the calls before."""
    left = Counter(use.id for use in uses)
    kept: list[Turn] = []
    for turn in turns:
        parts = tuple(part for part in turn.parts if not isinstance(part, Result) or _takes(left, part.id))
        whole = turn if len(parts) == len(turn.parts) else replace(turn, parts=parts)
        if whole.parts or not turn.parts:
            kept.append(whole)
    added = _build_missing_results(uses, left)
    if not added:
        return kept
    # In the order of the calls: some hosts tell results apart by nothing else.
    order = {use.id: at for at, use in reversed([*enumerate(uses)])}
    results = [part for turn in (*added, *kept) for part in turn.parts if isinstance(part, Result)]
    results.sort(key=lambda result: order[result.id])
    rest = [replace(turn, parts=tuple(part for part in turn.parts if not isinstance(part, Result))) for turn in kept]
    return [Turn("user", tuple(results)), *(turn for turn in rest if turn.parts)]


def _takes(left: Counter[str], id_: str) -> bool:
    """Is there a call for this result, which no other one has answered?"""
    if left[id_] <= 0:
        return False
    left[id_] -= 1
    return True


def _build_missing_results(uses: Sequence[Use], left: Counter[str]) -> list[Turn]:
    """Results for the calls that are left without any."""
    parts = tuple(Result(use.id, (Text(NOT_RUN),), failed=True, name=use.name) for use in uses if _takes(left, use.id))
    return [Turn("user", parts)] if parts else []


_REFERENCE = "tool_reference"
_SEARCHES = "tool_search_tool_"
_TOLD = frozenset((_REFERENCE, KIND, MESSAGE))
"""What is told in other words."""


_TURNS = ("messages", "input", "contents")
_RECENT = 8
"""So many of the last messages are looked at for what has no place: the others were when they were new."""
_USER_FIRST = frozenset(("anthropic", "gemini"))
"""The APIs that take no conversation that begins with the model."""
_BEFORE = "(What was said before is left out.)"
_CHOICES = ("tool_choice", "toolConfig")
_MOST_NAMES = 40


def fit_request(asked: ModelRequest, source: str, http: HttpModel | None) -> ModelRequest:
    """A request of a client of the API `source` as a model can be asked it; `http` is None for one that has no API."""
    if http is None or http.host.name != "anthropic":
        asked = replace(asked, turns=_without_billing(asked.turns))
    if http is not None and http.host.api == source:
        return asked
    asked = unbundle_tools(asked)
    if http is not None and http.host.api in _USER_FIRST:
        asked = replace(asked, turns=_ensure_user_first(asked.turns))
    definitions = _select_tools(asked)
    turns = pair_results(asked.turns)
    return replace(
        asked,
        turns=tuple(map(_replace_references, turns)) if any(map(_has_reference, turns)) else tuple(turns),
        definitions=definitions,
        choice=_restrict_choice(asked.choice, definitions),
    )


def find_left_out(
    body: Mapping[str, Any], asked: ModelRequest, sent: ModelRequest, source: str, http: HttpModel | None
) -> tuple[str, ...]:
    """What of a request does not reach the model, by the names of the client's API. `sent` is what was made to fit."""
    if http is not None and http.host.api == source:
        return ()
    hosted = [one for one in asked.definitions if one.hosted and _kind(one) != KIND]
    names = list(map(_kind, hosted))
    if http is not None:
        rows = body.get("tools")
        tools = enumerate(rows if isinstance(rows, list) else ())
        # A tool that is left out as a whole is named once, and neither its fields are nor the choice of it.
        gone = [f"tools[{at}]" for at, tool in tools if any(_is_row(tool, one) for one in hosted)]
        gone += _CHOICES if sent.choice is not asked.choice else ()
        names += [
            one.name for one in _find_lost_fields(body, sent, source, http) if not one.where.startswith(tuple(gone))
        ]
    return tuple(dict.fromkeys(clean_client_text(name) for name in names if name not in _TOLD))[:_MOST_NAMES]


def _is_row(tool: Any, one: Definition) -> bool:
    return one.extra is not None and tool is one.extra.fields


def _find_lost_fields(
    body: Mapping[str, Any], sent: ModelRequest, source: str, http: HttpModel
) -> Sequence[fields.Dropped]:
    """The fields that the other API has no place for; none for a body that cannot be sent, which is told elsewhere."""
    wire = load_wire(http.host.api)
    bare = tuple(replace(one, schema={}) for one in sent.definitions)
    short = replace(sent, turns=(), definitions=bare)
    try:
        back = wire.asked_in(wire.asked_out(short))
        recent = {key: body[key][-_RECENT:] for key in _TURNS if isinstance(body.get(key), list)}
        marks = http.host.takes_marks(http.model)
        return fields.find_dropped(
            {**body, **recent}, fields.BodyTranslation(source, http.host.api, short, back, marks=marks)
        )
    except (WireError, RecursionError):
        return ()


def _ensure_user_first(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Turns of which the first one is the user's: a program may have left out what was said before."""
    first = next((at for at, turn in enumerate(turns) if turn.role != "system"), None)
    if first is None or turns[first].role != "assistant":
        return turns
    return (*turns[:first], Turn("user", (Text(_BEFORE),)), *turns[first:])


def _without_billing(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Claude Code's own line for its host changes with versions, and would spoil the cache of any other one."""
    if not any(map(_is_billing, turns[0].parts if turns and turns[0].role == "system" else ())):
        return turns
    first = replace(turns[0], parts=tuple(part for part in turns[0].parts if not _is_billing(part)))
    return (first, *turns[1:]) if first.parts else turns[1:]


def _is_billing(part: Part) -> bool:
    return isinstance(part, Text) and part.text.lstrip().startswith(BILLING)


def _select_tools(asked: ModelRequest) -> tuple[Definition, ...]:
    """The tools that another API is shown.

    Those that run inside of the client's API are left out. Those that the client defers are shown when a search has
    found them, behind the others and in that order, so that what was sent before stays the same; where the client's API
    itself would have searched, all are shown.
    """
    kept = [one for one in asked.definitions if not one.hosted]
    if any(_kind(one).startswith(_SEARCHES) for one in asked.definitions if one.hosted):
        return tuple(kept)
    plain = [one for one in kept if not _is_deferred(one)]
    later = {one.name: one for one in kept if _is_deferred(one)}
    if not later:
        return tuple(kept)
    named = [asked.choice.name] if asked.choice is not None else []
    found = dict.fromkeys((*_find_mentioned_tools(asked.turns), *named))
    return (*plain, *(later[name] for name in found if name in later))


def _kind(hosted: Definition) -> str:
    extra = hosted.extra.fields if hosted.extra is not None else {}
    return str(extra.get("type") or hosted.name)


def _is_deferred(one: Definition) -> bool:
    return one.extra is not None and bool(one.extra.fields.get("defer_loading"))


def _find_mentioned_tools(turns: Iterable[Turn]) -> Iterable[str]:
    """The tools that searches have found, and those that were called."""
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, Use):
                yield part.name
            elif isinstance(part, Result):
                yield from (name for one in part.parts if (name := _reference_name(one)))


def _reference_name(part: Part) -> str:
    """The tool that a part refers to; empty if it is no such part."""
    if isinstance(part, Foreign) and part.kind == _REFERENCE:
        return str(part.block.get("tool_name", ""))
    return ""


def _has_reference(turn: Turn) -> bool:
    return any(isinstance(part, Result) and any(map(_reference_name, part.parts)) for part in turn.parts)


def _replace_references(turn: Turn) -> Turn:
    """A turn whose references to tools are words: another API has no such blocks."""
    parts = [
        replace(part, parts=tuple(map(_replace_reference, part.parts)), extra=None)
        if isinstance(part, Result)
        else part
        for part in turn.parts
    ]
    return replace(turn, parts=tuple(parts))


def _replace_reference(part: Any) -> Any:
    name = _reference_name(part)
    return Text(f"The tool {name} was found, and can be called from now on.") if name else part


def _restrict_choice(choice: ToolChoice | None, offered: tuple[Definition, ...]) -> ToolChoice | None:
    """The choice, unless there is nothing left to choose."""
    if choice is None or not offered:
        return None
    if choice.kind == "tool" and all(one.name != choice.name for one in offered):
        return replace(choice, kind="auto", name="")
    return choice
