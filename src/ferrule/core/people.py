"""Asking people to choose: what they are asked, and whoever asks them for a tool."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context

ChoiceKind = Literal["choice", "text", "yesno"]
Answers = Mapping[str, tuple[str, ...]]
"""The key of a choice → the labels that were chosen, or what was said in own words."""


class Option(msgspec.Struct, frozen=True):
    """One of the answers that are offered."""

    label: str
    description: str = ""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a person answers by choosing, or in their own words."""

    question: str
    header: str = ""
    """A short label."""
    options: tuple[Option, ...] = ()
    """Empty for a `text`."""
    multiple: bool = False
    """May several be chosen?"""
    free: bool = True
    """Are own words an answer?"""
    id: str = ""
    kind: ChoiceKind = "choice"
    placeholder: str = ""
    """A hint for own words."""

    @property
    def key(self) -> str:
        """What its answer is called: its id or, where it has none, the question itself."""
        return self.id or self.question


class Chosen(NamedTuple):
    """What a person was asked, each with the answers; none where they left it open."""

    answers: tuple[tuple[Choice, tuple[str, ...]], ...]


def nobody(why: str) -> ToolFailure:
    """The failure where no person can be asked; `why` is a whole sentence."""
    return ToolFailure(
        f"{why} Decide yourself, and say in your answer which assumption you have made.", code="nobody-to-ask"
    )


class People:
    """Whoever can be asked: `ctx.need(People)`. A session with a person gives its own subclass."""

    async def choose(self, choices: Sequence[Choice], ctx: Context) -> Answers | None:  # noqa: ARG002 - subclasses use it
        """What was answered; None where the person does not want to. Raises `ToolFailure` where there is nobody."""
        raise nobody("There is nobody to ask in this session.")
