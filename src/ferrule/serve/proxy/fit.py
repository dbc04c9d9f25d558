"""A request as the API of a host can take it: without what only the client's own API does, and what was left out."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from ferrule.models.api import HttpModel
from ferrule.serve.proxy.errors import ProxyError
from ferrule.serve.proxy.relay import BILLING
from ferrule.wire import fields
from ferrule.wire.shape import WireError
from ferrule.wire.turn import Asked, Choice, Definition, Foreign, Part, Result, Text, Turn, Use
from ferrule.wire.wire import load_wire

_REFERENCE = "tool_reference"
_SEARCHES = "tool_search_tool_"


class Fitted(NamedTuple):
    """A request for one host."""

    asked: Asked
    dropped: tuple[str, ...] = ()
    """What was left out, by the names of the client's API."""


def fitted(asked: Asked, body: Mapping[str, Any], source: str, http: HttpModel | None) -> Fitted:
    """The request of a client of the API `source` for a model. Raises ProxyError for what cannot be sent."""
    target = source if http is None else http.host.api
    if http is None or http.host.name != "anthropic":
        asked = replace(asked, turns=_without_billing(asked.turns))
    if source == target:
        return Fitted(asked)
    left_out: dict[str, None] = {}
    definitions = _offered(asked, left_out)
    asked = replace(
        asked,
        turns=tuple(map(_told, asked.turns)) if any(map(_has_reference, asked.turns)) else asked.turns,
        definitions=definitions,
        choice=_choice(asked.choice, definitions),
    )
    try:
        lost = _lost(body, asked, source, target, marks=http is not None and http.host.takes_marks(http.model))
    except (WireError, RecursionError) as error:
        raise ProxyError("bad", str(error)) from None
    return Fitted(asked, tuple(dict.fromkeys((*left_out, *lost))))


def _lost(body: Mapping[str, Any], asked: Asked, source: str, target: str, *, marks: bool) -> Iterable[str]:
    """The names of the fields that the other API has no place for."""
    wire = load_wire(target)
    short = replace(asked, turns=())
    passage = fields.Passage(source, target, short, wire.asked_in(wire.asked_out(short)), marks=marks)
    return (one.name for one in fields.dropped(body, passage) if one.name != _REFERENCE)


def _without_billing(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Claude Code's own line for its host changes with versions, and would spoil the cache of any other one."""
    if not any(map(_is_billing, turns[0].parts if turns and turns[0].role == "system" else ())):
        return turns
    first = replace(turns[0], parts=tuple(part for part in turns[0].parts if not _is_billing(part)))
    return (first, *turns[1:]) if first.parts else turns[1:]


def _is_billing(part: Part) -> bool:
    return isinstance(part, Text) and part.text.lstrip().startswith(BILLING)


def _offered(asked: Asked, left_out: dict[str, None]) -> tuple[Definition, ...]:
    """The tools that another API is shown.

    Those that run inside of the client's API are left out. Those that the client defers are shown when a search has
    found them, behind the others and in that order, so that what was sent before stays the same; where the client's API
    itself would have searched, all are shown.
    """
    kept = [one for one in asked.definitions if not one.hosted]
    hosted = [one for one in asked.definitions if one.hosted]
    left_out |= dict.fromkeys(_kind(one) for one in hosted)
    if any(_kind(one).startswith(_SEARCHES) for one in hosted):
        return tuple(kept)
    plain = [one for one in kept if not _is_deferred(one)]
    later = {one.name: one for one in kept if _is_deferred(one)}
    if not later:
        return tuple(kept)
    named = [asked.choice.name] if asked.choice is not None else []
    found = dict.fromkeys((*_mentioned(asked.turns), *named))
    return (*plain, *(later[name] for name in found if name in later))


def _kind(hosted: Definition) -> str:
    extra = hosted.extra.fields if hosted.extra is not None else {}
    return str(extra.get("type") or hosted.name)


def _is_deferred(one: Definition) -> bool:
    return one.extra is not None and bool(one.extra.fields.get("defer_loading"))


def _mentioned(turns: Iterable[Turn]) -> Iterable[str]:
    """The tools that searches have found, and those that were called."""
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, Use):
                yield part.name
            elif isinstance(part, Result):
                yield from (name for one in part.parts if (name := _referred(one)))


def _referred(part: Part) -> str:
    """The tool that a part refers to; empty if it is no such part."""
    if isinstance(part, Foreign) and part.kind == _REFERENCE:
        return str(part.block.get("tool_name", ""))
    return ""


def _has_reference(turn: Turn) -> bool:
    return any(isinstance(part, Result) and any(map(_referred, part.parts)) for part in turn.parts)


def _told(turn: Turn) -> Turn:
    """A turn whose references to tools are words: another API has no such blocks."""
    parts = [
        replace(part, parts=tuple(map(_in_words, part.parts)), extra=None) if isinstance(part, Result) else part
        for part in turn.parts
    ]
    return replace(turn, parts=tuple(parts))


def _in_words(part: Any) -> Any:
    name = _referred(part)
    return Text(f"The tool {name} was found, and can be called from now on.") if name else part


def _choice(choice: Choice | None, offered: tuple[Definition, ...]) -> Choice | None:
    """The choice, unless there is nothing left to choose."""
    if choice is None or not offered:
        return None
    if choice.kind == "tool" and all(one.name != choice.name for one in offered):
        return replace(choice, kind="auto", name="")
    return choice
