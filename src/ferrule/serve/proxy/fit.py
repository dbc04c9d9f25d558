"""A request as the API of a host can take it: without what only the client's own API does, and what was left out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ferrule.models.api import HttpModel
from ferrule.serve.proxy.bundles import KIND, MESSAGE, unbundled
from ferrule.serve.proxy.records import shown
from ferrule.serve.proxy.relay import BILLING
from ferrule.serve.proxy.settle import settled
from ferrule.wire import fields
from ferrule.wire.shape import WireError
from ferrule.wire.turn import Asked, Choice, Definition, Foreign, Part, Result, Text, Turn, Use
from ferrule.wire.wire import load_wire

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


def fitted(asked: Asked, source: str, http: HttpModel | None) -> Asked:
    """A request of a client of the API `source` as a model can be asked it; `http` is None for one that has no API."""
    if http is None or http.host.name != "anthropic":
        asked = replace(asked, turns=_without_billing(asked.turns))
    if http is not None and http.host.api == source:
        return asked
    asked = unbundled(asked)
    if http is not None and http.host.api in _USER_FIRST:
        asked = replace(asked, turns=_begun(asked.turns))
    definitions = _offered(asked)
    turns = settled(asked.turns)
    return replace(
        asked,
        turns=tuple(map(_told, turns)) if any(map(_has_reference, turns)) else tuple(turns),
        definitions=definitions,
        choice=_choice(asked.choice, definitions),
    )


def left_out(
    body: Mapping[str, Any], asked: Asked, sent: Asked, source: str, http: HttpModel | None
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
        names += [one.name for one in _lost(body, sent, source, http) if not one.where.startswith(tuple(gone))]
    return tuple(dict.fromkeys(shown(name) for name in names if name not in _TOLD))[:_MOST_NAMES]


def _is_row(tool: Any, one: Definition) -> bool:
    return one.extra is not None and tool is one.extra.fields


def _lost(body: Mapping[str, Any], sent: Asked, source: str, http: HttpModel) -> Sequence[fields.Dropped]:
    """The fields that the other API has no place for; none for a body that cannot be sent, which is told elsewhere."""
    wire = load_wire(http.host.api)
    bare = tuple(replace(one, schema={}) for one in sent.definitions)
    short = replace(sent, turns=(), definitions=bare)
    try:
        back = wire.asked_in(wire.asked_out(short))
        recent = {key: body[key][-_RECENT:] for key in _TURNS if isinstance(body.get(key), list)}
        marks = http.host.takes_marks(http.model)
        return fields.dropped({**body, **recent}, fields.Passage(source, http.host.api, short, back, marks=marks))
    except (WireError, RecursionError):
        return ()


def _begun(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
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


def _offered(asked: Asked) -> tuple[Definition, ...]:
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
