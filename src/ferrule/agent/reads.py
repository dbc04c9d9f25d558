"""What a conversation has read: kept with its turns, and forgotten with what the model no longer has in sight."""

from collections.abc import Callable, Iterable, Sequence

from ferrule.wire.turn import Result, Turn, Use
from ferrule.workspace.ledger import Ledger, Sights

READ = "read"
"""What the store calls it."""


class Reads:
    """A ledger as a part of a conversation."""

    def __init__(self, ledger: Ledger, told: Iterable[Sights] = (), *, is_kept: bool = True) -> None:
        """`told` is what an earlier session of the conversation has kept."""
        self._ledger = ledger
        self._told = list(told)
        self._is_kept = is_kept

    def keep(self, note: Callable[[str, object], None]) -> None:
        """Have noted what was seen since."""
        if (news := self._ledger.take_news()) is not None:
            self._told.append(news)
            if self._is_kept:
                note(READ, news)

    def shrunk(self, before: Sequence[Turn], after: Sequence[Turn]) -> None:
        """The conversation was made smaller: forget what was read only where a result is not what it was."""
        was, still = _results(before), _results(after)
        self._ledger.forget_calls({key for key, one in was.items() if still.get(key) != one})

    def restore(self, turns: Sequence[Turn]) -> None:
        """The conversation is another one now: know what was read in it."""
        calls = {part.id for turn in turns for part in turn.parts if isinstance(part, Use)}
        self._ledger.restore(self._told, calls.__contains__)


def _results(turns: Sequence[Turn]) -> dict[str, Result]:
    return {part.id: part for turn in turns for part in turn.parts if isinstance(part, Result)}
