"""The order that model APIs demand of a conversation: results right behind the calls that they answer."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from ferrule.wire.content import FREE
from ferrule.wire.shape import WireError
from ferrule.wire.turn import Definition, Document, Image, Part, Result, Text, Thinking, Turn, Use

Role = Literal["system", "user", "assistant"]

_NOT_IN: dict[str, tuple[type, ...]] = {
    "user": (Use, Thinking),
    "assistant": (Result,),
    "system": (Use, Thinking, Result, Image, Document),
}


def ordered(turns: Iterable[Turn]) -> list[Turn]:
    """Between two turns of the model, all results come first, in their order; nothing else moves.

    Every API refuses words between a call and its result, and people do write while a tool runs.
    """
    out: list[Turn] = []
    for is_model, run in groupby(turns, key=lambda turn: turn.role == "assistant"):
        given = [_checked(turn) for turn in run]
        out += given if is_model else _results_first(given)
    return out


def _results_first(turns: list[Turn]) -> list[Turn]:
    results = tuple(part for turn in turns for part in turn.parts if isinstance(part, Result))
    if not results:
        return turns
    rest = [Turn(turn.role, tuple(part for part in turn.parts if not isinstance(part, Result))) for turn in turns]
    first = next(at for at, turn in enumerate(rest) if turn.role == "user")
    # A system turn between the calls and their results would stand in the way as well.
    host = rest.pop(first)
    return [Turn("user", results + host.parts), *(turn for turn in rest if turn.parts)]


def _checked(turn: Turn) -> Turn:
    if wrong := next((part for part in turn.parts if isinstance(part, _NOT_IN[turn.role])), None):
        raise WireError(f"A turn of the {turn.role} cannot hold {type(wrong).__name__}.")
    return turn


def system_words(turn: Turn) -> str:
    """A system turn as one text."""
    return "\n\n".join(part.text for part in turn.parts if isinstance(part, Text))


def apart(turns: Iterable[Turn]) -> tuple[str, list[Turn]]:
    """All system turns as one text, and the turns without them: for APIs that have one place for the system's words."""
    given = list(turns)
    texts = (system_words(_checked(turn)) for turn in given if turn.role == "system")
    system = "\n\n".join(text for text in texts if text)
    return system, ordered(turn for turn in given if turn.role != "system")


def uses_of(turns: Iterable[Turn]) -> dict[str, Use]:
    """The calls of a conversation by their ids."""
    return {part.id: part for turn in turns for part in turn.parts if isinstance(part, Use)}


def name_of(result: Result, uses: dict[str, Use]) -> str:
    """The tool that a result comes from, where anything says so."""
    if result.name or result.id not in uses:
        return result.name
    return uses[result.id].name


def grouped(parts: Iterable[tuple[Role, tuple[Part, ...]]]) -> tuple[Turn, ...]:
    """Turns from what an API lists one by one: what the model said in a row is one turn, and so is what answers it.

    Results open a turn of the user, and the words right behind them belong to it.
    """
    turns: list[Turn] = []
    for role, more in parts:
        before = turns[-1] if turns and turns[-1].role == role else None
        if before is not None and (role == "assistant" or (role == "user" and _only_results(before))):
            turns[-1] = Turn(before.role, before.parts + more)
        else:
            turns.append(Turn(role, more))
    return tuple(turns)


def _only_results(turn: Turn) -> bool:
    return all(isinstance(part, Result) for part in turn.parts)


def freed(turns: Sequence[Turn], definitions: Iterable[Definition]) -> Sequence[Turn]:
    """Calls of free-text tools that came as objects, as the text that they hold."""
    names = {definition.name for definition in definitions if definition.grammar}
    if not names:
        return turns
    return [Turn(turn.role, tuple(_freed(part, names) for part in turn.parts)) for turn in turns]


def _freed(part: Part, names: set[str]) -> Part:
    if not isinstance(part, Use) or part.name not in names or part.is_text:
        return part
    if isinstance(part.input, str):
        return Use(part.id, part.name, part.input, is_text=True)
    text = part.input.get(FREE)
    if len(part.input) != 1 or not isinstance(text, str):
        return part
    return Use(part.id, part.name, text, is_text=True)
