"""The loop: a model is asked, its calls are made, it hears the replies, until it is done or somebody stops it."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ferrule.agent import (
    Began,
    Budget,
    Called,
    Compacted,
    Ended,
    FellBack,
    Limits,
    Reason,
    RepeatCounter,
    Spent,
    Stopped,
    TurnBegan,
    TurnEnded,
    Waiting,
    add_spent,
    clamp_usage,
    longest,
)
from ferrule.agent.attachments import Prompt, PromptPart, check_vision, names_of, prompt_parts, words_of_parts
from ferrule.agent.compaction import Compacting
from ferrule.agent.conversation import EMPTY, INTERRUPTED, STOPPED_BEFORE, Conversation, build_failure, words_of
from ferrule.agent.request import NOTHING, Answered, PromptProgress, ask, find_named_files, without_numbers
from ferrule.agent.text_calls import SpokenCalls
from ferrule.core.call import Done, Event, Reply, ToolsChanged
from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.models import Model, ModelError
from ferrule.settings import Loop
from ferrule.tools import READ
from ferrule.wire import ModelRequest, Turn, Usage, Use, call_of, result_of

if TYPE_CHECKING:
    from ferrule.hooks import After


_CUT = (
    "The call was not made: your answer was cut off in the middle of its input. Make it again, shorter or in several "
    "calls."
)
_SKIPPED = "error: tool execution skipped ({what} exceeded)"
_WHAT = {"tokens": "token budget", "cost": "cost budget", "time": "time limit"}
_MOST_NAMED = 3
"""So many files that a prompt names are read for a small model."""
_NAMED = "The file {name} now:\n```\n{text}\n```"
_STOP_HOOKS = 5
"""So often hooks may send the model back to work for one prompt."""


class Agent:
    """Works on prompts, one after the other, in one conversation."""

    def __init__(self, talk: Conversation, *, loop: Loop, compacting: Compacting) -> None:
        self.talk = talk
        self.thread = talk.thread
        self.is_running = False
        self._loop = loop
        self._compacting = compacting
        self._waiting = Waiting()
        self._is_calling = False
        self._interrupted = False
        self._sent_back = 0
        """How often hooks have sent the model back to work."""
        self._words = ""
        """What the model said last to the prompt that is worked on."""
        self._stopped = ""
        """Why a hook has ended the work on it."""
        self._progress = PromptProgress(talk)
        self._is_nudged = False
        """Has the model just been told that what it said does nothing?"""
        self._undone = ""
        """What it has left undone, where it ends so."""
        self._is_aside = False
        """Are the calls that run now none of the model's?"""
        self._budget = Budget(Limits())

    @property
    def model(self) -> Model:
        return self.talk.model

    @property
    def turns(self) -> Sequence[Turn]:
        """The conversation as the model sees it."""
        return self.talk.history.turns

    @property
    def context_tokens(self) -> int:
        """About how much of the model's window is used."""
        return self.talk.history.tokens

    @property
    def spent(self) -> Spent:
        """What the whole conversation has taken."""
        return add_spent(self.talk.spent, self._budget.spent) if self.is_running else self.talk.spent

    def hear(self, event: Event) -> None:
        """Something happened to a call, or to the tools."""
        if isinstance(event, ToolsChanged):
            self.talk.tools_changed()
        if self._is_aside:
            return
        self._progress.hear(event)
        self.talk.tell(Called(thread=self.thread, call=event))
        if isinstance(event, Done) and event.reply.stop is not None and event.reply.stop.by == "user":
            # Later: the call itself is at its end, and keeps its own answer.
            asyncio.get_running_loop().call_soon(self.talk.setup.interrupt or self.interrupt)

    def use(self, model: Model) -> None:
        """Ask another model from the next turn on."""
        self.talk.model = model

    def steer(self, said: str | Sequence[PromptPart], *, by_user: bool = True) -> None:
        """Tell the model something while it works; it hears it with the next replies, or as the next prompt.

        Pictures and files are given as `attach` or `prompt_parts` made them. Not `by_user` is what a program says to
        it, with names of files perhaps, which anybody may have given them.

        Raises: ConfigError, for pictures that the model does not take.
        """
        given = (Text(said),) if isinstance(said, str) else tuple(said)
        parts = tuple(part for part in given if not isinstance(part, Text) or part.text.strip())
        check_vision(parts, self.model)
        if parts:
            self.talk.steering.append(parts)
            if not by_user:
                self.talk.unwritten.add(words_of_parts(parts))

    def interrupt(self) -> None:
        """Stop the answer and the calls that run now, and hand control back. The conversation stays valid."""
        self._interrupted = self.is_running
        self._waiting.stop()
        if self._is_calling:
            self.talk.hands.cancel()

    def left(self) -> Limits:
        """What a subagent of its may take at most."""
        return self._budget.left if self.is_running else Limits()

    @property
    def budget(self) -> Budget:
        """Of the prompt that it works on or has worked on last. What is begun for a prompt takes from it to its end."""
        return self._budget

    def share(self, spent: Spent, budget: Budget | None = None) -> None:
        """A subagent has taken so much of what it may take."""
        budget = budget or self._budget
        budget.share(spent)
        if not self.is_running or budget is not self._budget:
            self.talk.spent = add_spent(self.talk.spent, Spent(0, spent.usage, spent.cost, 0.0))

    def pay(self, usage: Usage, model: Model) -> None:
        """Something was asked beside the conversation, such as a summary."""
        usage = clamp_usage(usage)
        self.share(Spent(0, usage, None if model.prices is None else model.prices.cost(usage), 0.0))

    async def run(self, prompt: Prompt, *, written: str | None = None) -> Ended:
        """Work on a prompt until control comes back. Every run ends with an `Ended`, which is also told.

        A prompt is text, or a list of text, paths (`pathlib.Path`) of pictures and files, and what `attach` gives.
        `written` is what of it the user wrote, where that is not all: the rest may come from a file or a program.

        Raises: ConfigError, for a file that cannot be attached and for pictures that the model does not take.
        """
        if self.is_running or self._waiting.is_busy:
            raise ConfigError("The agent works on a prompt already, or sums up: steer it, or interrupt it first.")
        self.is_running, self._interrupted = True, False
        self._words = self._stopped = self._undone = ""
        self._is_nudged = False
        try:
            parts = await prompt_parts(prompt)
            check_vision(parts, self.model)
        except BaseException:
            self.is_running = False
            raise
        self._progress = PromptProgress(self.talk, words_of_parts(parts) if written is None else written)
        self._budget = Budget(self.talk.setup.limits, outer=self.talk.setup.overdrawn)
        reason: Reason = "interrupted"
        error = ""
        try:
            reason, error = await self._work(parts, words_of_parts(parts) if written is None else written)
        except Stopped:
            reason = "interrupted" if self._interrupted else "time"
        except ModelError as failure:
            reason, error = "error", str(failure)
        finally:
            # However it ended, every call has its result, and what it took is counted.
            self.talk.keep(self.talk.history.mend(INTERRUPTED))
            self.talk.spent = self.spent
            self.is_running = False
            self.talk.note("spent", self.talk.spent)
            if reason == "interrupted":
                self.talk.leave_off()
            ended = Ended(
                thread=self.thread,
                reason=reason,
                text=self._words,
                spent=self._budget.spent,
                total=self.talk.spent,
                error=error,
            )
            self.talk.tell(ended)  # also where whoever waits for it has given it up: a front end waits for this one
        return ended

    def rewind(self, prompt: int) -> str:
        """Go back to before a prompt of the conversation, which is said no more; its text. Files stay as they are.

        What is left can be gone back to. Raises `ConfigError` where it cannot be done.
        """
        self._check_idle()
        return self.talk.rewind(prompt)

    def unrewind(self) -> bool:
        """Take the last rewind of the conversation back; false where there is none."""
        self._check_idle()
        return self.talk.unrewind()

    def _check_idle(self) -> None:
        if self.is_running or self._waiting.is_busy:
            raise ConfigError("The agent is at work: interrupt it before its conversation is rewound.")

    async def compact(self, focus: str = "") -> Compacted:
        """Make the conversation smaller now: its beginning is summed up."""
        if self.is_running or self._waiting.is_busy:
            raise ConfigError("The agent is at work: interrupt it before its conversation is summed up.")
        compacted = await self._compacting.sum_up(self, focus)
        self.talk.note("spent", self.talk.spent)
        return compacted

    async def _work(self, prompt: tuple[PromptPart, ...], written: str) -> tuple[Reason, str]:
        """The loop itself."""
        self._began(prompt)
        if refused := await self._take(prompt, written):
            return refused
        self._sent_back, repeating = 0, RepeatCounter(self._loop.repeats)
        while True:
            if (met := self._budget.over()) is not None:
                return met, ""
            await self._compacting.fit(self)
            answered = NOTHING if self._interrupted else await self._answer()
            if self._interrupted:
                return "interrupted", ""
            if answered.is_cut:
                return "time", ""
            uses = [part for part in answered.said.parts if isinstance(part, Use)]
            met = await (self._reply(answered, uses, repeating) if uses else self._stop(answered))
            if met is not None:
                return met, self._stopped or self._undone

    def _began(self, prompt: tuple[PromptPart, ...]) -> None:
        setup = self.talk.setup
        self.talk.tell(
            Began(
                thread=self.thread,
                prompt=words_of_parts(prompt),
                model=self.model.name,
                dialect=setup.dialect,
                cwd=setup.cwd,
                tools=tuple(one.name for one in self.talk.tool_definitions()),
                permission_mode=setup.permission_mode(),
                attached=names_of(prompt),
            )
        )

    async def _take(self, prompt: tuple[PromptPart, ...], written: str) -> tuple[Reason, str] | None:
        """Put the prompt into the conversation; how it ends and why, where a hook will not have it."""
        said = await self.hooks("UserPromptSubmit", prompt=words_of_parts(prompt))
        if said is not None and said.stop:
            self._tell_stop(said.stop)
            return "stopped", self._stopped
        if said is not None and said.blocked:
            return "hook", said.blocked
        self.talk.setup.heard(written)
        before = [STOPPED_BEFORE] if self.talk.is_left_off else []
        notes = (*await self._read_prompt_files(written), *(said.notes if said is not None else ()))
        given = (*map(Text, before), *prompt, *map(Text, notes))
        kept = (part for part in given if not isinstance(part, Text) or part.text.strip())
        parts = (*kept, *self.talk.take_steering())
        self.talk.begin_prompt(Turn("user", parts or (Text(EMPTY),)), written)
        self.talk.is_left_off = False
        return None

    def _tell_stop(self, why: str) -> None:
        """A hook has ended the work: the user is told why."""
        self._stopped = why
        self.talk.warn(f"A hook has ended the work: {why}")

    async def _read_prompt_files(self, prompt: str) -> list[str]:
        """What the files hold that the prompt names, for a small model: it edits what it has not seen.

        They are read by a call like any other, so that whatever holds for files holds for these.
        """
        face = next((one for one in self.talk.hands.faces() if one.tool == READ), None)
        if face is None or not self._progress.is_led:
            return []
        names = find_named_files(prompt, self.talk.setup.cwd, most_bytes=self.model.window // 2)[:_MOST_NAMED]
        self._is_aside = True
        try:
            replies = await self._call([Use("", face.name, {face.shown_param("path"): name}) for name in names])
        finally:
            self._is_aside = False
        shown = {name: reply.text for name, reply in zip(names, replies, strict=False) if reply.ok}
        self._progress.show(shown)
        texts = [_NAMED.format(name=name, text=without_numbers(text)) for name, text in shown.items()]
        return [*texts, *self._progress.wish()]

    async def _answer(self) -> Answered:
        """Ask the model, and take in what it says; a conversation that is too long for it is made smaller first."""
        talk = self.talk
        number = self._budget.spent.turns + 1
        talk.tell(TurnBegan(thread=self.thread, number=number, context_tokens=talk.history.tokens))
        try:
            answered = await self.listen(self._question())
        except ModelError as error:
            if not await self._recover(error):
                raise
            answered = NOTHING if self._interrupted else await self.listen(self._question())
        talk.keep(talk.history.hear(answered.said))
        if (words := words_of(Turn("assistant", answered.said.parts))).strip():
            self._words = words
        is_answer = bool(answered.said.parts) or not answered.is_cut
        self._budget.count(answered.said.usage, self.model.prices, is_answer=is_answer)
        talk.tell(TurnEnded(thread=self.thread, said=answered.said, spent=self.spent))
        if not answered.is_cut:
            talk.setup.on_answer(words)
        return answered

    def _question(self) -> ModelRequest:
        return self._progress.constrain_request(self.talk.question(self.talk.history.turns), is_nudged=self._is_nudged)

    async def _recover(self, error: ModelError) -> bool:
        """Make the conversation smaller, or take another model, if that may help against what went wrong."""
        if error.kind == "too-long":
            return await self._compacting.shrink(self)
        other = self.talk.setup.fallback(error)
        if other is None or self._interrupted:
            return False
        self.talk.tell(FellBack(thread=self.thread, model=self.model.name, fallback=other.name, why=str(error)))
        self.use(other)
        return True

    async def listen(self, asked: ModelRequest, model: Model | None = None, *, aloud: bool = True) -> Answered:
        """Ask a model. An interruption or the end of the time gives what was heard until then.

        Raises: ModelError.
        """
        if self._interrupted:
            return NOTHING
        tell = self.talk.tell if aloud else _silently
        model = model or self.model
        spoken = None
        files = self._progress.writable_files() if model is self.model else None
        if (asked.definitions or files is not None) and asked.choice is None:
            spoken = SpokenCalls(
                self.talk.hands.misfit,
                asked.definitions,
                asked.turns,
                is_text_only=model.wire == "local",
                files=files,
            )
        asking = ask(model, asked, self.thread, tell, self.talk.history.ids, spoken=spoken)
        try:
            return await self._waiting.end_of(asking, self._seconds_left)
        except Stopped:  # before its first step: it has heard nothing
            return NOTHING

    async def hooks(self, event: str, **fields: object) -> "After | None":
        """Tell the user's hooks; None where nobody is told. Raises: Stopped, for they too are stopped."""
        if self._interrupted:
            raise Stopped
        return await self._waiting.end_of(self.talk.hooks(event, **fields), self._seconds_left)

    @property
    def _seconds_left(self) -> float | None:
        return self._budget.seconds_left if self.is_running else None

    async def _reply(self, answered: Answered, uses: list[Use], repeating: RepeatCounter) -> Reason | None:
        """Make the calls and answer them, in their order; why the loop ends, where it does."""
        talk = self.talk
        self._is_nudged = False
        if (met := self._budget.overdrawn()) is not None:
            words = _SKIPPED.format(what=_WHAT[met])
            talk.add(Turn("user", tuple(build_failure(use, words) for use in uses)))
            return met
        replies = await self._call([use for use in uses if use.id in answered.whole])
        done = {reply.id: result_of(reply) for reply in replies}
        results = tuple(done.get(use.id) or build_failure(use, _CUT) for use in uses)
        again = repeating.saw(uses, results, longest(replies))
        told = (Text(repeating.render_notice()),) if again == "tell" else ()
        steered = () if self._interrupted else (*self._progress.next_step(), *talk.take_steering())
        files = tuple(path for reply in replies for path in reply.track_files)
        talk.add(Turn("user", (*results, *told, *steered)), files)
        if self._interrupted or any(reply.stop is not None and reply.stop.by == "user" for reply in replies):
            self._interrupted = True
            return "interrupted"
        if stop := next((reply.stop for reply in replies if reply.stop is not None), None):
            self._tell_stop(stop.why)
            return "stopped"
        if talk.setup.is_done():
            return "end"
        return "loop" if again == "stop" else None

    async def _call(self, uses: Sequence[Use]) -> list[Reply]:
        """The replies to the calls that were written to their end. When the time is up, they are stopped."""
        if not uses:
            return []
        left = self._budget.seconds_left
        alarm = None if left is None else asyncio.get_running_loop().call_later(left, self.talk.hands.cancel)
        self._is_calling = True
        try:
            return await self.talk.hands.run([call_of(use) for use in uses])
        finally:
            self._is_calling = False
            if alarm is not None:
                alarm.cancel()

    async def _stop(self, answered: Answered) -> Reason | None:
        """The model wants nothing done any more; the user or a hook may."""
        talk = self.talk
        sent_back: tuple[Text, ...] = ()
        if not talk.steering:
            if answered.said.reason in {"length", "refused"}:
                return answered.said.reason
            if (met := self._nudge(answered)) != "":
                return met
            if self._sent_back < _STOP_HOOKS:
                said = await self.hooks(
                    talk.setup.stop_event, stop_hook_active=bool(self._sent_back), **talk.setup.about
                )
                if said is not None and said.stop:
                    self._tell_stop(said.stop)
                    return "end"
                sent_back = (Text(said.blocked),) if said is not None and said.blocked else ()
        # What the user wrote while the hooks had their say counts as well.
        if not sent_back and not talk.steering:
            return "end"
        self._sent_back += len(sent_back)
        talk.add(Turn("user", (*sent_back, *talk.take_steering())))
        return None

    def _nudge(self, answered: Answered) -> Reason | Literal[""] | None:
        """Tell a model once that what it said does nothing; the next time in a row the run ends so.

        Empty where there is nothing to tell.
        """
        told, undone = self._progress.left(answered)
        if not told or (self._is_nudged and not undone):
            return ""
        if self._is_nudged:
            self._undone = undone
            return "undone"
        self._is_nudged = True
        self.talk.add(Turn("user", (Text(told),)))
        return None


def _silently(_: object) -> None:
    """Nobody is told."""
