"""A conversation in which every call has its one answer, whatever its client has kept of one that was cut.

An answer that breaks off leaves calls that nobody ran. Some APIs take such a conversation, and most refuse all that
is asked with it from then on.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from msgspec.structs import replace

from ferrule.wire.turn import Result, Text, Turn, Use

NOT_RUN = "This call was cut off before it was answered. It did not run."


def settled(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The same turns where nothing is amiss; else with an answer for each call, and none for what is no call."""
    out: list[Turn] = []
    waiting: list[Use] = []
    for is_model, run in groupby(turns, key=lambda turn: turn.role == "assistant"):
        given = list(run)
        if is_model:
            out += given
            waiting = [part for turn in given for part in turn.parts if isinstance(part, Use)]
        else:
            out += _answered(given, waiting)
            waiting = []
    out += _missing(waiting, Counter(use.id for use in waiting))
    is_same = len(out) == len(turns) and all(one is other for one, other in zip(out, turns, strict=True))
    return turns if is_same else out


def _answered(turns: Sequence[Turn], uses: Sequence[Use]) -> list[Turn]:
    """What stands between two turns of the model, with exactly one result for each of the calls before."""
    left = Counter(use.id for use in uses)
    kept: list[Turn] = []
    for turn in turns:
        parts = tuple(part for part in turn.parts if not isinstance(part, Result) or _takes(left, part.id))
        whole = turn if len(parts) == len(turn.parts) else replace(turn, parts=parts)
        if whole.parts or not turn.parts:
            kept.append(whole)
    added = _missing(uses, left)
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


def _missing(uses: Sequence[Use], left: Counter[str]) -> list[Turn]:
    """Results for the calls that are left without any."""
    parts = tuple(Result(use.id, (Text(NOT_RUN),), failed=True, name=use.name) for use in uses if _takes(left, use.id))
    return [Turn("user", parts)] if parts else []
