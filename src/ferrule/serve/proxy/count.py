"""How many tokens a request is: asked of the host that answers, or counted here."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from ferrule.core.content import Document, Image, Text
from ferrule.models.bodies import encode_json, generate_path
from ferrule.models.http import HttpModel
from ferrule.models.model import ModelError
from ferrule.registry import dynamic
from ferrule.wire.shape import WireError
from ferrule.wire.turn import Foreign, ModelRequest, Part, Result, Thinking, Use
from ferrule.wire.wire import load_wire

_SECONDS = 15.0
"""A host that takes longer to count is not waited for."""
_SHORT = 31
"""What is no longer than a hash is its own key."""
_MOST_COUNTED = 20_000
_A_TURN = 4
"""Tokens around each turn: its role and its ends."""
_A_TOOL = 8
_AN_IMAGE = 1_500
_A_PAGE = 2_000
_PAGE_BYTES = 50_000
"""A PDF has about a page for so many bytes."""


class _CountEndpoint(NamedTuple):
    """Where an API counts, and what it wants to know."""

    path: Callable[[str], str]
    """From a model's id to where it is."""
    fields: tuple[str, ...]
    wrapped: bool = False
    """Does the body stand in another one, with the model?"""


_PLACES = {
    "anthropic": _CountEndpoint(
        lambda _: "/v1/messages/count_tokens", ("model", "system", "messages", "tools", "tool_choice", "thinking")
    ),
    "gemini": _CountEndpoint(
        lambda model: generate_path(model, "countTokens"), ("contents", "systemInstruction", "tools"), wrapped=True
    ),
    "openai-responses": _CountEndpoint(
        lambda _: "/responses/input_tokens",
        ("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text"),
    ),
}
_ANSWERS = ("input_tokens", "totalTokens")


class Counter:
    """Counts for all models, and remembers which hosts cannot."""

    def __init__(self) -> None:
        self._cannot: set[str] = set()

    async def count(self, asked: ModelRequest, http: HttpModel | None) -> int:
        """The tokens of a request. `http` is asked if its host counts; None counts here."""
        if http is not None and http.host.api in _PLACES and http.host.name not in self._cannot:
            try:
                async with asyncio.timeout(_SECONDS):
                    return await _ask(asked, http)
            except (TimeoutError, WireError):
                pass
            except ModelError as error:
                if error.kind == "bad":  # all others may pass
                    self._cannot.add(http.host.name)
            except (msgspec.DecodeError, ValueError):
                self._cannot.add(http.host.name)
        return await asyncio.to_thread(count_here, asked)


async def _ask(asked: ModelRequest, http: HttpModel) -> int:
    place = _PLACES[http.host.api]
    whole = load_wire(http.host.api).asked_out(msgspec.structs.replace(asked, model=http.model, stream=False))
    body = {name: whole[name] for name in place.fields if name in whole}
    if place.wrapped:
        name = http.model if "/" in http.model else f"models/{http.model}"
        body = {"generateContentRequest": {"model": name, **body}}
    data = msgspec.json.decode(await http.whole(place.path(http.model), encode_json(body)))
    found = next((data[name] for name in _ANSWERS if isinstance(data, dict) and name in data), None)
    if type(found) is not int:
        raise ValueError("no count")
    return found


def count_here(asked: ModelRequest) -> int:
    """The tokens of a request by the tokenizer that is installed."""
    total = 3
    for turn in asked.turns:
        total += _A_TURN + sum(_part(part) for part in turn.parts)
    for one in asked.definitions:
        total += _A_TOOL + _text(one.name) + _text(one.words) + _text(_json(one.schema))
    return total


def _part(part: Part) -> int:
    if isinstance(part, Image):
        return _AN_IMAGE
    if isinstance(part, Document):
        return _text(part.text) if part.text else max(_A_PAGE, _A_PAGE * len(part.data) // _PAGE_BYTES)
    if isinstance(part, Result):
        return _A_TURN + sum(_part(one) for one in part.parts)
    return sum(_text(words) for words in _words(part))


def _words(part: Part) -> Iterator[str]:
    if isinstance(part, Text | Thinking):
        yield part.text
    elif isinstance(part, Use):
        yield part.name
        yield part.input if isinstance(part.input, str) else _json(part.input)
    elif isinstance(part, Foreign):
        yield _json(part.block)


def _json(value: Any) -> str:
    return encode_json(value).decode()


def _text(words: str) -> int:
    """Most of a conversation was counted in the turn before; of what is long only the hash is kept."""
    if not words:
        return 0
    raw = words.encode("utf-8", "replace")
    key = raw if len(raw) <= _SHORT else hashlib.sha256(raw).digest()
    count = _counted.get(key)
    if count is None:
        count = dynamic.count(words)
        if len(_counted) >= _MOST_COUNTED:
            _counted.clear()
        _counted[key] = count
    return count


_counted: dict[bytes, int] = {}
