"""The prompts of a conversation: where each stands, and what rewinds have left behind and can be gone back to."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ferrule.agent.attachments import names_of
from ferrule.agent.history import EMPTY, STOPPED_BEFORE
from ferrule.core.errors import ConfigError
from ferrule.wire.turn import Text, Turn

REWOUND = "rewound"
UNREWOUND = "unrewound"


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A prompt and its turn."""

    number: int
    at: int


class Step(msgspec.Struct, frozen=True):
    """One rewind, as it is kept."""

    prompt: int
    turns: int
    """So many turns stay."""
    view: int = -1
    """Of which of the views that were left; of the conversation as it is where that is negative."""


class View(NamedTuple):
    """A conversation that a rewind has left."""

    turns: tuple[Turn, ...]
    marks: tuple[Mark, ...]
    is_left_off: bool = False


class Prompt(NamedTuple):
    """A prompt, as a person is shown it."""

    number: int
    text: str
    at: float
    """When it was said."""
    place: str = "here"
    """`here`, `rewound`, or `gone`, where it was summed up: the conversation cannot go back to it."""


class Past:
    """Numbers the prompts from 1, each number once, and goes back to before one of them."""

    def __init__(self) -> None:
        self.number = 0
        """Of the last prompt."""
        self.marks: list[Mark] = []
        """The prompts that are in the conversation as it is, in their order."""
        self.left: list[View] = []
        """What rewinds have left, the last one last."""
        self.written: frozenset[str] = frozenset()
        """What the user has written, as far as it was kept before the conversation went on here."""
        self._said: dict[int, tuple[str, float]] = {}

    def begin(self, number: int, at: int, turn: Turn, time: float, written: str = "") -> None:
        """A prompt is the turn at this place; `written` is what the user wrote for it, such as `/init`."""
        self.number = max(self.number, number)
        self.marks.append(Mark(number, at))
        self._said[number] = (written or prompt_text(turn), time)

    def prompts(self) -> list[Prompt]:
        """All that there ever were."""
        here = {mark.number for mark in self.marks}
        left = {mark.number for view in self.left for mark in view.marks}
        return [
            Prompt(number, text, at, "here" if number in here else "rewound" if number in left else "gone")
            for number, (text, at) in sorted(self._said.items())
        ]

    def text(self, number: int) -> str:
        return self._said[number][0]

    def shrunk(self, gone: int) -> None:
        """The first turns have become one."""
        self.marks = [Mark(mark.number, mark.at - gone + 1) for mark in self.marks if mark.at >= gone]

    def step(self, number: int) -> Step:
        """The rewind to before a prompt. Raises `ConfigError` where the conversation cannot go there."""
        for view, marks in ((-1, self.marks), *reversed([(at, one.marks) for at, one in enumerate(self.left)])):
            for mark in marks:
                if mark.number == number:
                    return Step(number, mark.at, view)
        if number in self._said:
            raise ConfigError(
                f"Prompt {number} was summed up: the conversation cannot go back to before it. Its files can."
            )
        known = f"they count from 1 to {self.number}" if self.number else "nothing was said yet"
        raise ConfigError(f"There is no prompt {number} in this conversation: {known}.")

    def rewind(self, step: Step, now: View) -> View:
        """The conversation as it was before the prompt; `now` is how it is."""
        base = now if step.view < 0 or step.view >= len(self.left) else self.left[step.view]
        if base is now or not _begins(base, now):
            self.left.append(now)
        kept = base.turns[: step.turns]
        behind = base.turns[step.turns : step.turns + 1]
        self.marks = [mark for mark in base.marks if mark.at < step.turns]
        return View(kept, tuple(self.marks), bool(behind) and is_behind_a_stop(behind[0]))

    def unrewind(self, now: View) -> View | None:
        """What the last rewind has left; None where there is nothing. What was said since is left in turn."""
        if not self.left:
            return None
        view = self.left.pop()
        if not _begins(view, now):
            self.left.append(now)
        self.marks = list(view.marks)
        return view


def _begins(longer: View, view: View) -> bool:
    """Is all of a view the beginning of another one?"""
    return longer.turns[: len(view.turns)] == view.turns


def prompt_text(turn: Turn) -> str:
    """What the user typed, without what was said before and behind it."""
    texts = (part.text for part in turn.parts if isinstance(part, Text) and part.text != STOPPED_BEFORE)
    words = next((text for text in texts if text != EMPTY), "")
    return words or "; ".join(names_of(turn.parts))


def is_behind_a_stop(turn: Turn) -> bool:
    """Was the model told with it that it had been interrupted?"""
    return any(isinstance(part, Text) and part.text == STOPPED_BEFORE for part in turn.parts)


def moved(marks: Sequence[Mark], places: Sequence[int]) -> list[Mark]:
    """The marks after the turns were put to other places; a turn that is gone has a negative one."""
    return [Mark(mark.number, places[mark.at]) for mark in marks if 0 <= mark.at < len(places) and places[mark.at] >= 0]
