"""Define the events of a conversation, and the limits that end it.

Budgets count turns, tokens, cost and time. The user, or the end of the time, can stop the wait for an answer or a
hook. A model goes round in circles if it makes the same calls with the same answers, turn after turn.
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from ferrule.core.call import Event, Reply
from ferrule.models import Model, Prices
from ferrule.wire import ModelResponse, Result, Usage, Use

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


class Limits(NamedTuple):
    """The most that one prompt may take; None is no limit."""

    turns: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class Budget:
    """What one prompt has taken so far."""

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        outer: "Callable[[], Reason | None] | None" = None,
    ) -> None:
        """`outer` says whether whoever it is taken from has anything left: several may take from one budget at once."""
        self.limits = limits
        self._outer = outer
        self._clock = clock
        self._began = clock()
        self._spent = Spent()

    def count(self, usage: Usage, prices: Prices | None, *, is_answer: bool = True) -> None:
        """The model was asked once more; what was stopped before its first word is no answer."""
        before, usage = self._spent, clamp_usage(usage)
        cost = before.cost if prices is None else (before.cost or 0.0) + prices.cost(usage)
        self._spent = Spent(before.turns + is_answer, add_usage(before.usage, usage), cost)

    def share(self, spent: Spent) -> None:
        """What a subagent took counts too, but for its turns and its time."""
        self._spent = add_spent(self._spent, Spent(0, spent.usage, spent.cost, 0.0))

    @property
    def left(self) -> Limits:
        """What is left for a subagent; turns are its own."""
        limits, usage = self.limits, self._spent.usage
        return Limits(
            tokens=None if limits.tokens is None else max(1, limits.tokens - usage.input - usage.output),
            cost=None if limits.cost is None else max(1e-9, limits.cost - (self._spent.cost or 0.0)),
            seconds=self.seconds_left,
        )

    @property
    def seconds_left(self) -> float | None:
        """None where time does not matter."""
        return None if self.limits.seconds is None else max(0.0, self.limits.seconds - self._took)

    @property
    def spent(self) -> Spent:
        return Spent(self._spent.turns, self._spent.usage, self._spent.cost, self._took)

    @property
    def _took(self) -> float:
        return self._clock() - self._began

    def over(self) -> Reason | None:
        """Which limit is met."""
        limits, spent = self.limits, self._spent
        if limits.turns is not None and spent.turns >= limits.turns:
            return "turns"
        return self.overdrawn()

    def overdrawn(self) -> Reason | None:
        """The same without turns: past these, calls that were asked for are not run any more."""
        limits, usage = self.limits, self._spent.usage
        if limits.tokens is not None and usage.input + usage.output >= limits.tokens:
            return "tokens"
        cost = self._spent.cost or 0.0
        if limits.cost is not None and (cost > limits.cost or cost >= limits.cost > 0):
            return "cost"  # with a limit of nothing, what costs nothing may go on
        if limits.seconds is not None and self._took >= limits.seconds:
            return "time"
        return self._outer() if self._outer is not None else None


def clamp_usage(usage: Usage) -> Usage:
    """The tokens as they count: what a host counts wrong gives nothing back."""
    return Usage(*(max(0, getattr(usage, name)) for name in Usage.__struct_fields__))


def add_usage(one: Usage, other: Usage) -> Usage:
    """The tokens of both."""
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
    )


def add_spent(one: Spent, other: Spent) -> Spent:
    """What both took."""
    costs = [cost for cost in (one.cost, other.cost) if cost is not None]
    return Spent(
        one.turns + other.turns,
        add_usage(one.usage, other.usage),
        sum(costs) if costs else None,
        one.seconds + other.seconds,
    )


def cost_limit_warning(model: Model, limits: Limits) -> str:
    """A limit that nothing counts against is none, and whoever has set it relies on it; empty where it holds."""
    # What runs on this machine costs nothing.
    if limits.cost is None or model.prices is not None or model.name.startswith(("scripted:", "local:")):
        return ""
    return (
        f"The limit of ${limits.cost:g} does not hold for {model.name}: what it costs is not known. Set `input` and "
        f'`output`, in dollars for a million tokens, under [models.known."{model.model}"] in your settings, or use '
        "--max-tokens."
    )


T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - what happened, and nobody's error
    """It was stopped before anything came of it."""


class Waiting:
    """Waits for one thing at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None

    @property
    def is_busy(self) -> bool:
        """Is anything waited for?"""
        return self._task is not None

    def stop(self) -> None:
        """Stop what is waited for, if anything is."""
        if self._task is not None:
            self._task.cancel()

    async def end_of(self, work: Coroutine[Any, Any, T], seconds: float | None) -> T:
        """What comes of it, at the latest when the seconds are over: what it gives when it is cancelled.

        Raises: Stopped, where that is nothing.
        """
        self._task = task = asyncio.create_task(work)
        try:
            await asyncio.wait([task], timeout=seconds)
        finally:
            self._task = None
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
        if task.cancelled():
            raise Stopped
        return task.result()


TOLD = (
    "[LOOP DETECTED] You have made the same call with the same answer {times} times in a row. It will not change: "
    "try something else, or say what is in the way. After {most} times the loop is stopped."
)
_LONGEST_CIRCLE = 4
"""So many turns may lie between one and the same again."""
_PATIENT_SECONDS = 5.0
_POLLS = 10


class RepeatCounter:
    """Counts how often in a row the same thing was done.

    Whoever waits does the same again and again as well, and is right: a build takes its time. So where calls that went
    well have taken some seconds since a turn was last the same, only one in ten such turns counts.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._times = 0
        self._seen: list[bytes] = []
        self._waited = 0.0
        self._polls = 0
        self._when: dict[bytes, float] = {}
        """How long had been waited when a turn was seen last."""

    def saw(self, uses: Sequence[Use], results: Sequence[Result], seconds: float = 0.0) -> Literal["", "tell", "stop"]:
        """Take note of one turn, whose calls took so long: tell the model, stop, or nothing of that."""
        key = _key(uses, results)
        if not any(result.failed for result in results):
            self._waited += seconds
        if self._is_waiting(key):
            return ""
        kept = self.most * _LONGEST_CIRCLE
        self._seen = [*self._seen[1 - kept :], key]
        before, self._times = self._times, max(map(self._rounds, range(1, _LONGEST_CIRCLE + 1)))
        if self._times >= self.most:
            return "stop"
        return "tell" if before < self._times == max(2, self.most - 2) else ""

    def render_notice(self) -> str:
        return TOLD.format(times=self._times, most=self.most)

    def _is_waiting(self, key: bytes) -> bool:
        before = self._when.pop(key, self._waited)
        self._when[key] = self._waited
        if len(self._when) > self.most * _LONGEST_CIRCLE:
            del self._when[next(iter(self._when))]
        if self._waited - before < _PATIENT_SECONDS:
            return False
        self._polls += 1
        return self._polls % _POLLS != 0

    def _rounds(self, period: int) -> int:
        """How often in a row the last turns were the same: A A A, and with a longer period A B A B as well."""
        seen, times = self._seen, 1
        while len(seen) >= period * (times + 1) and seen[-period * (times + 1) :][:period] == seen[-period:]:
            times += 1
        return times


def longest(replies: Sequence[Reply]) -> float:
    """How many seconds the calls took that were made at all."""
    return max((reply.ended - reply.started for reply in replies if reply.started), default=0.0)


def _key(uses: Sequence[Use], results: Sequence[Result]) -> bytes:
    asked = [(use.name, use.input) for use in uses]
    said = [(result.parts, result.failed) for result in results]
    try:
        raw = msgspec.json.encode((asked, said), order="sorted")
    except UnicodeEncodeError:  # half of a surrogate pair, which models do write
        raw = repr((asked, said)).encode(errors="surrogatepass")
    return hashlib.blake2b(raw, digest_size=16).digest()
