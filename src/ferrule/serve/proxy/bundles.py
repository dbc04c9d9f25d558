"""What codex has in the Responses API alone: bundles of tools for its agents and MCP servers, and messages of agents.

Another API is shown each tool of a bundle (`namespace`) by a name of its own, and calls of it go back to the client as
it knows them; it reads a message of an agent as words of the user. The free text of a call, which stands inside of an
object elsewhere, is taken out of it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from ferrule.wire import openai_responses
from ferrule.wire.content import FREE
from ferrule.wire.delta import Delta, UseBegun, UseEnded, UsePiece
from ferrule.wire.shape import WireError
from ferrule.wire.turn import Asked, Choice, Definition, Foreign, Part, Result, Text, Turn, Use

KIND = "namespace"
MESSAGE = "agent_message"
_MOST_CHARS = 64
"""No API takes longer names."""
_HASH_CHARS = 8
NO_NAMES: Mapping[str, tuple[str, str]] = MappingProxyType({})


def named(bundle: str, name: str) -> str:
    """The name of a tool of a bundle, where there are no bundles."""
    joined = f"{bundle.rstrip('_')}__{name}"
    if len(joined) <= _MOST_CHARS:
        return joined
    seed = hashlib.sha256(joined.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{joined[: _MOST_CHARS - _HASH_CHARS - 1]}_{seed}"


def names(asked: Asked) -> Mapping[str, tuple[str, str]]:
    """What `unbundled` calls a tool → its bundle and its own name."""
    return {
        named(bundle, inner.name): (bundle, inner.name)
        for one in asked.definitions
        if (bundle := _bundle(one))
        for inner in _inside(one)
    } or NO_NAMES


def unbundled(asked: Asked) -> Asked:
    """A request whose tools of bundles stand by themselves, in the place of their bundle."""
    turns = asked.turns
    if any(map(_is_special, (part for turn in turns for part in turn.parts))):
        turns = tuple(told for turn in turns for told in _told(turn))
    if not any(map(_bundle, asked.definitions)):
        return asked if turns is asked.turns else replace(asked, turns=turns)
    definitions = tuple(inner for one in asked.definitions for inner in _alone(one))
    return replace(asked, turns=turns, definitions=definitions, choice=_choice(asked.choice, names(asked)))


class ClientCalls:
    """Makes the calls of another API's model into calls as the client knows its tools."""

    def __init__(self, asked: Asked) -> None:
        self._names = names(asked)
        self._free = frozenset(one.name for one in unbundled(asked).definitions if one.grammar)
        self._held: dict[int, list[str]] = {}
        """The pieces of calls of free-text tools: the text stands inside of an object there."""

    def put(self, delta: Delta) -> Sequence[Delta]:
        if isinstance(delta, UseBegun):
            return (self._begun(delta),)
        if not self._held or not isinstance(delta, UsePiece | UseEnded) or delta.at not in self._held:
            return (delta,)
        if isinstance(delta, UsePiece):
            self._held[delta.at].append(delta.text)
            return ()
        text = _text("".join(self._held.pop(delta.at)))
        return (delta,) if delta.cut else (UsePiece(delta.at, text), delta)

    def _begun(self, begun: UseBegun) -> UseBegun:
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
        yield replace(inner, name=named(bundle, inner.name))


def _is_special(part: Part) -> bool:
    if isinstance(part, Use):
        return bool(part.namespace)
    return _is_message(part)


def _told(turn: Turn) -> Iterator[Turn]:
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
        return replace(part, name=named(part.namespace, part.name), namespace="", extra=None)
    if isinstance(part, Foreign) and _is_message(part):
        return Text(_words(part.block.get("content")))
    return part


def _words(content: Any) -> str:
    """What one agent tells another. A host of its own API would have sealed it; nobody else does."""
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    texts = [one.get("text", one.get("encrypted_content", "")) for one in blocks]
    return "".join(text for text in texts if isinstance(text, str)) or "(An agent has sent no words.)"


def _choice(choice: Choice | None, known: Mapping[str, tuple[str, str]]) -> Choice | None:
    """A choice that names a tool of a bundle."""
    if choice is None or choice.kind != "tool":
        return choice
    found = next((name for name, (_, inner) in known.items() if inner == choice.name), choice.name)
    return choice if found == choice.name else replace(choice, name=found)
