"""A conversation as the store has it, made ready to go on."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ferrule.agent.events import Spent
from ferrule.agent.history import RESUMED, History
from ferrule.wire.turn import Image, Result, Text, Turn, Use

if TYPE_CHECKING:
    from ferrule.workspace.thread_store import Item


class _Whole(msgspec.Struct):
    turns: list[Turn]


class Resumed(NamedTuple):
    """What is known of an earlier conversation."""

    history: History
    spent: Spent
    mended: Turn | None
    """The results of calls that a crash has left without any; they are in the history."""
    lost: int
    """How many items could not be read."""


def resume(items: "Sequence[Item]") -> Resumed:
    """The conversation as its model saw it last; what a crash has left open is answered."""
    turns: list[Turn] = []
    spent, lost = Spent(), 0
    for item in items:
        try:
            if item.kind == "turn":
                turns.append(msgspec.json.decode(item.body, type=Turn))
            elif item.kind == "compacted":
                turns = msgspec.json.decode(item.body, type=_Whole).turns
            elif item.kind == "spent":
                spent = msgspec.json.decode(item.body, type=Spent)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            lost += 1
    history = History(_answered(turns))
    return Resumed(history, spent, history.mend(RESUMED), lost)


def _answered(turns: list[Turn]) -> list[Turn]:
    """Every call in the middle has its result, and every result its call, whatever could not be read."""
    out: list[Turn] = []
    open_uses: dict[str, Use] = {}
    for turn in turns:
        if turn.role == "assistant":
            if open_uses:
                out.append(_results(open_uses))
            open_uses = {part.id: part for part in turn.parts if isinstance(part, Use)}
            out.append(turn)
            continue
        kept = tuple(part for part in turn.parts if not isinstance(part, Result) or part.id in open_uses)
        answered = {part.id for part in kept if isinstance(part, Result)}
        if open_uses and not open_uses.keys() <= answered:
            missing = {name: use for name, use in open_uses.items() if name not in answered}
            kept = (*_results(missing).parts, *kept)
        open_uses = {}
        if kept:
            out.append(turn if kept == turn.parts else Turn(turn.role, kept))
    return out


def _results(uses: dict[str, Use]) -> Turn:
    return Turn("user", tuple(Result(use.id, (Text(RESUMED),), failed=True, name=use.name) for use in uses.values()))


def as_text(items: "Sequence[Item]", shown: Callable[[str], str] = str) -> str:
    """All turns as text, line by line, for whoever reads back what was summed up."""
    lines: list[str] = []
    for item in items:
        if item.kind != "turn":
            continue
        try:
            turn = msgspec.json.decode(item.body, type=Turn)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        lines += (shown(line) for line in _lines(turn))
    return "\n".join(lines)


def _lines(turn: Turn) -> list[str]:
    out = [f"## {turn.role}"]
    for part in turn.parts:
        match part:
            case Text():
                out.append(part.text)
            case Use():
                out.append(f"call {part.name} {msgspec.json.encode(part.input).decode()}")
            case Result():
                head = "failed" if part.failed else "result"
                out.append(f"{head} of {part.name}:")
                out += (one.text for one in part.parts if isinstance(one, Text))
            case Image():
                out.append("(a picture)")
            case _:
                pass
    return out
