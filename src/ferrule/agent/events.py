"""What happens in a conversation, as it happens: one stream drives every front end."""

from typing import Literal

import msgspec

from ferrule.core.events import Event
from ferrule.wire.turn import ModelResponse, Usage

Reason = Literal[
    "end", "undone", "length", "refused", "turns", "tokens", "cost", "time", "loop", "hook", "stopped", "interrupted",
    "error",
]  # fmt: skip
"""Why control came back: the model was done, left undone what it was asked for, ran out of tokens, was refused by a
filter; a limit of turns, tokens, cost or time was met; the same call came again and again; a hook refused the prompt
or ended the work; the user interrupted it; something went wrong."""


class Spent(msgspec.Struct, frozen=True):
    """What it took so far."""

    turns: int = 0
    """Answers of the model."""
    usage: Usage = Usage()
    """The tokens of all of them together."""
    cost: float | None = None
    """Dollars, where the prices are known."""
    seconds: float = 0.0


class Happened(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something happened in the conversation `thread`; a helper's has an id of its own."""

    thread: str


class Began(Happened, frozen=True, kw_only=True, tag="began"):
    """The agent takes up a prompt; the first of a conversation, or one more."""

    prompt: str
    """Its words."""
    model: str
    dialect: str
    cwd: str
    tools: tuple[str, ...]
    permission_mode: str
    attached: tuple[str, ...] = ()
    """The pictures and files of the prompt, each in a few words."""


class TurnBegan(Happened, frozen=True, kw_only=True, tag="turn-began"):
    """The model is asked, for the `number`th time in this run."""

    number: int
    context_tokens: int
    """About how much of its window the conversation fills."""


class Spoke(Happened, frozen=True, kw_only=True, tag="spoke"):
    """More words of the model's answer."""

    text: str


class Thought(Happened, frozen=True, kw_only=True, tag="thought"):
    """More of what the model thinks."""

    text: str


class Calling(Happened, frozen=True, kw_only=True, tag="calling"):
    """The model has begun to write a call; its input is not complete yet."""

    id: str
    name: str


class Retrying(Happened, frozen=True, kw_only=True, tag="retrying"):
    """The model is asked again in a moment: what was heard of this turn is void."""

    why: str
    seconds: float
    attempt: int


class FellBack(Happened, frozen=True, kw_only=True, tag="fell-back"):
    """The model could not be asked, and another one is asked in its place from now on."""

    model: str
    fallback: str
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.fallback} is asked from now on, for {self.model} could not be: {self.why}"


class TurnEnded(Happened, frozen=True, kw_only=True, tag="turn-ended"):
    """The model's answer is complete: its words, its thinking and its calls."""

    said: ModelResponse
    spent: Spent


class Called(Happened, frozen=True, kw_only=True, tag="called"):
    """Something happened to a call: `Prepared`, `Blocked`, `Started`, `Progress` or `Done`, or to the tools at all."""

    call: Event


class Steered(Happened, frozen=True, kw_only=True, tag="steered"):
    """What the user wrote meanwhile has reached the model."""

    text: str
    attached: tuple[str, ...] = ()
    """The pictures and files beside it, each in a few words."""


class Compacted(Happened, frozen=True, kw_only=True, tag="compacted"):
    """The conversation was made smaller: old outputs were left out, or its beginning was summed up."""

    kind: Literal["outputs", "summary"]
    before_tokens: int
    after_tokens: int
    summary: str = ""


class Warned(Happened, frozen=True, kw_only=True, tag="warned"):
    """Something that the user should know, as a sentence."""

    sentence: str


class ChildBegan(Happened, frozen=True, kw_only=True, tag="child-began"):
    """A helper begins; events with `child` as their thread are its own."""

    child: str
    call_id: str
    """The call that asked for it."""
    name: str
    description: str
    model: str


class ChildEnded(Happened, frozen=True, kw_only=True, tag="child-ended"):
    """A helper is done."""

    child: str
    reason: Reason
    spent: Spent


class Ended(Happened, frozen=True, kw_only=True, tag="ended"):
    """Control is handed back. It is the last event of a run, and there is always one."""

    reason: Reason
    text: str
    """The model's last words."""
    spent: Spent
    """Of this run."""
    total: Spent
    """Of the whole conversation."""
    error: str = ""
    """What went wrong, and what to do next."""


AgentEvent = (
    Began
    | TurnBegan
    | Spoke
    | Thought
    | Calling
    | Retrying
    | FellBack
    | TurnEnded
    | Called
    | Steered
    | Compacted
    | Warned
    | ChildBegan
    | ChildEnded
    | Ended
)
