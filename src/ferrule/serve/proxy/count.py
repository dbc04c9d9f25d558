"""How many tokens a request is: asked of the host that answers, or counted here."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ferrule.models.api import HttpModel
from ferrule.models.model import ModelError
from ferrule.support import tokens
from ferrule.wire.turn import Asked, Document, Foreign, Image, Part, Result, Text, Thinking, Use
from ferrule.wire.wire import load_wire

_A_TURN = 4
"""Tokens around each turn: its role and its ends."""
_A_TOOL = 8
_AN_IMAGE = 1_500
_A_PAGE = 2_000
_PAGE_BYTES = 50_000
"""A PDF has about a page for so many bytes."""


class _Place(NamedTuple):
    """Where an API counts, and what it wants to know."""

    path: str
    fields: tuple[str, ...]
    wrapped: bool = False
    """Does the body stand in another one, with the model?"""


_PLACES = {
    "anthropic": _Place(
        "/v1/messages/count_tokens", ("model", "system", "messages", "tools", "tool_choice", "thinking")
    ),
    "gemini": _Place("/models/{model}:countTokens", ("contents", "systemInstruction", "tools"), wrapped=True),
    "openai-responses": _Place(
        "/responses/input_tokens", ("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text")
    ),
}
_ANSWERS = ("input_tokens", "totalTokens")


class Counter:
    """Counts for all models, and remembers which hosts cannot."""

    def __init__(self) -> None:
        self._cannot: set[str] = set()

    async def count(self, asked: Asked, http: HttpModel | None) -> int:
        """The tokens of a request. `http` is asked if its host counts; None counts here."""
        if http is not None and http.host.api in _PLACES and http.host.name not in self._cannot:
            try:
                return await _ask(asked, http)
            except (ModelError, msgspec.DecodeError, ValueError):
                self._cannot.add(http.host.name)
        return count_here(asked)


async def _ask(asked: Asked, http: HttpModel) -> int:
    place = _PLACES[http.host.api]
    whole = load_wire(http.host.api).asked_out(msgspec.structs.replace(asked, model=http.model, stream=False))
    body = {name: whole[name] for name in place.fields if name in whole}
    if place.wrapped:
        body = {"generateContentRequest": {"model": f"models/{http.model}", **body}}
    data = msgspec.json.decode(await http.whole(place.path.format(model=http.model), msgspec.json.encode(body)))
    found = next((data[name] for name in _ANSWERS if isinstance(data, dict) and name in data), None)
    if not isinstance(found, int):
        raise ValueError("no count")  # noqa: TRY004 - whatever came is no answer
    return found


def count_here(asked: Asked) -> int:
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
    return msgspec.json.encode(value).decode()


@lru_cache(maxsize=4096)
def _text(words: str) -> int:
    """Most of a conversation was counted in the turn before."""
    return tokens.count(words) if words else 0
