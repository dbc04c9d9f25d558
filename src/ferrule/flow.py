"""Take a call through its stages in order, and make the reply for each way in which it ends.

This file alone knows the order:

prepare   name → face and tool → arguments → what it touches → ticket     no await: keeps the model's order
perform   permission → turn → body → words → bounds → reply               awaits: calls overlap

The user's hooks, if there are any, are told of all calls of a message before the first is prepared.
"""

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ferrule.arguments.schema import Arguments
from ferrule.call_checkpoint import CallCheckpoints
from ferrule.context import CallContext
from ferrule.core.access import Access, check_touches
from ferrule.core.call import (
    Blocked,
    Call,
    Done,
    Event,
    Failure,
    FileEdit,
    Prepared,
    Reply,
    Started,
    Status,
    Stop,
    result_text,
)
from ferrule.core.errors import BadArguments, Denied, ToolFailure, UnknownTool
from ferrule.core.tool import AnyTool, Args, Face, Preview
from ferrule.execute import Repeats, ToolRunner
from ferrule.files.jail import Jail
from ferrule.output import clean, clean_value
from ferrule.output.bounds import BoundedResult, OutputLimiter
from ferrule.permissions import Case
from ferrule.permissions.gate import Admitted, Gate, Previewing
from ferrule.registry import Registry
from ferrule.registry.foreign import not_loaded
from ferrule.schedule import Scheduler, Ticket

if TYPE_CHECKING:
    from ferrule.after_edits import Notices
    from ferrule.core.services import Mixed
    from ferrule.hooks import CallHooks, HookOutcome


_log = logging.getLogger("ferrule")
_log.addHandler(logging.NullHandler())  # silent unless the program that uses us listens


_DATA_BYTES = 8 << 20
"""Of a structured result, for programs; what a model reads is bounded more tightly."""


def reply_of(call: Call, ctx: CallContext, outcome: Any, bounded: BoundedResult, *, failed: bool, now: float) -> Reply:
    """A reply for a call that ran to its end; to some families an outcome may be an error."""
    # By what it has: whoever only reads files does not load what tools from elsewhere answer.
    structured, parts = _elsewhere(outcome, ctx) if hasattr(outcome, "structured") else (None, ())
    return Reply(
        id=call.id,
        name=call.name,
        status="error" if failed else "done",
        result=None if failed else bounded.result,
        error=Failure(result_text(bounded.result), "failed") if failed else None,
        track_files=tuple(ctx.tracked),
        notes=tuple(ctx.notes),
        output_id=bounded.output_id,
        started=ctx.started,
        ended=now,
        structured=structured,
        parts=parts,
    )


def _elsewhere(outcome: "Mixed", ctx: CallContext) -> tuple[Any, tuple[Any, ...]]:
    """What a tool from elsewhere answered as data: its structured result, and its parts as MCP writes them."""
    from ferrule.wire.mcp import blocks_of  # for tools from elsewhere

    data = (clean_value(outcome.structured), tuple(clean_value(blocks_of(outcome))))
    size = len(msgspec.json.encode(data)) if outcome.structured is not None or data[1] else 0
    if size > _DATA_BYTES:
        ctx.note(f"Its answer as data was left out: {size:,} bytes are more than {_DATA_BYTES:,}.")
        return None, ()
    return data


def _clean(failure: Failure) -> Failure:
    """Words of files and programs may be part of it; none of them steers a terminal."""
    return Failure(clean(failure.message), failure.error_code, failure.absolute_path)


def refusal(call: Call, ctx: CallContext, face: Face | None, error: BaseException, now: float) -> Reply:
    """A reply for a call that did not end well."""
    status: Status
    if isinstance(error, Denied | ToolFailure) and error.note:
        ctx.note(error.note)
    if isinstance(error, asyncio.CancelledError):
        status, failure = "cancelled", Failure("The call was cancelled.")
    elif isinstance(error, Denied):
        status, failure = "rejected-by-user", Failure(error.message, error.code, error.path)
    elif isinstance(error, ToolFailure):
        status, failure = "error", Failure(face.sentence(error) if face else error.message, error.code, error.path)
    else:
        _log.error("%s failed", call.name, exc_info=error)
        status, failure = "error", Failure(f"{call.name} failed inside: {type(error).__name__}: {error}", "bug")
    return Reply(
        id=call.id,
        name=call.name,
        status=status,
        error=_clean(failure),
        track_files=tuple(ctx.tracked),
        notes=tuple(ctx.notes),
        started=ctx.started,
        ended=now,
        stop=Stop("user", error.message) if isinstance(error, Denied) and error.stop else ctx.stop,
    )


async def stop(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel all and wait until each has cleaned up, however often somebody cancels meanwhile."""
    pending = set(tasks)
    for task in pending:
        task.cancel()
    while pending:
        with contextlib.suppress(asyncio.CancelledError):
            _, pending = await asyncio.wait(pending)


CHANGED_COMMAND = "The user changed your command to"


class ScheduledCall(NamedTuple):
    """A call that is understood and has its place in the order."""

    call: Call
    face: Face
    tool: AnyTool
    args: Args
    touches: tuple[Access, ...]
    ctx: CallContext
    ticket: Ticket | None = None
    """None for a call that is only looked at."""
    agreed: bool = False
    """Has the user given its input, instead of another one that was asked about?"""
    consented: bool = False
    """Has the user agreed to it beforehand?"""


class _Exchanged(Exception):  # noqa: N818 - what happened, and nobody's error
    """The user wants the call made with another input."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__()
        self.input = dict(given)


class Unready(NamedTuple):
    """A call that cannot run, and why."""

    ctx: CallContext
    face: Face | None
    error: Exception


class Flow:
    """One call through the stages, in order."""

    def __init__(
        self,
        *,
        context: Callable[[Call], CallContext],
        registry: Registry,
        arguments: Arguments,
        gate: Gate,
        scheduler: Scheduler,
        runner: ToolRunner,
        bounds: OutputLimiter,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        checkpoints: CallCheckpoints,
        hooks: "CallHooks | None" = None,
        context_kind: Literal["thread", "subagent"] = "thread",
    ) -> None:
        self.context = context
        self.registry = registry
        self.arguments = arguments
        self.gate = gate
        self.scheduler = scheduler
        self.runner = runner
        self.bounds = bounds
        self.emit = emit
        self.clock = clock
        self.checkpoints = checkpoints
        self.hooks = hooks
        self.notices: Notices | None = None
        """What is said of a message as a whole; of sessions with language servers."""
        self.context_kind: Literal["thread", "subagent"] = context_kind
        self.repeats = Repeats()
        self.why_not: Callable[[str], str] | None = None
        """Says more about a tool that is not here, where somebody knows why."""
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, calls: Sequence[Call], *, approved: Collection[str] = ()) -> list[Reply]:
        """Replies in the order of `calls`, whatever order they finished in. Cancelling it cancels every call first.

        `approved` are the ids of those that the user has agreed to beforehand.
        """
        if self.hooks is not None:
            prepared = [self.prepare(one.call, one) for one in await self._tell(self.hooks, calls)]
        else:
            prepared = [self.prepare(call) for call in calls]
        if approved:
            prepared = [
                one._replace(consented=True) if isinstance(one, ScheduledCall) and one.call.id in approved else one
                for one in prepared
            ]
        watch = self.notices.begin(_contexts_of(prepared), self.emit) if self.notices is not None else None
        tasks = {
            at: asyncio.create_task(self.perform(ready))
            for at, ready in enumerate(prepared)
            if isinstance(ready, ScheduledCall)
        }
        self._running.update(tasks.values())
        try:
            if tasks:
                await asyncio.wait(tasks.values())
        except asyncio.CancelledError:
            await stop(tasks.values())
            if watch is not None:
                watch.give_up()
            raise
        finally:
            self._running.difference_update(tasks.values())
            replies = [self._answer(ready, tasks.get(at)) for at, ready in enumerate(prepared)]
        if watch is not None:
            replies = await watch.finish(replies, self._running)
        # A hook or the user may have had it made under another name; whoever waits for the answer knows the first one.
        return [
            reply if reply.name == call.name else msgspec.structs.replace(reply, name=call.name)
            for reply, call in zip(replies, calls, strict=True)
        ]

    async def _tell(self, hooks: "CallHooks", calls: Sequence[Call]) -> "list[HookOutcome]":
        """Every call as the hooks leave it. None is looked at before all are told: the order stays the model's."""
        from ferrule.hooks import read_outcome  # for sessions with hooks

        tasks = [asyncio.create_task(hooks.before(call)) for call in calls]
        self._running.update(tasks)
        try:
            await asyncio.wait(tasks)
        finally:
            self._running.difference_update(tasks)
            await stop(task for task in tasks if not task.done())
        pairs = zip(calls, tasks, strict=True)
        return [read_outcome(call, task) for call, task in pairs]

    def cancel(self) -> None:
        """Stop every running call; each still gets its reply."""
        for task in self._running:
            task.cancel()

    def reply_cancelled(self, calls: Iterable[Call]) -> list[Reply]:
        """The answers to calls that were cancelled before anything was done about them."""
        return [self._end(call, self.context(call), None, asyncio.CancelledError()) for call in calls]

    async def stop(self) -> None:
        """Stop every running call and wait until each has cleaned up."""
        await stop(self._running)

    def prepare(self, call: Call, hooked: "HookOutcome | None" = None) -> ScheduledCall | Reply:
        """Understand a call and give it its place in the order."""
        ready = self.look(call)
        if hooked is not None and hooked.verdict == "cancelled":
            return self._end(call, ready.ctx, ready.face, asyncio.CancelledError())
        if hooked is not None:
            ready.ctx.hooked = (hooked.verdict, hooked.reason)
            ready.ctx.stop = Stop("hook", hooked.stop) if hooked.stop else None
            for note in hooked.notes:
                ready.ctx.note(note)
        if isinstance(ready, ScheduledCall):
            self.emit(self._build_prepared_event(ready))
            return self._take_ticket(ready)
        return self._end(call, ready.ctx, ready.face, ready.error)

    def _build_prepared_event(self, ready: ScheduledCall) -> Prepared:
        call, face, ctx = ready.call, ready.face, ready.ctx
        arguments = dict(ctx.input)
        if face.usual or face.fill:
            added = {**face.usual, **face.fill}
            arguments = {key: value for key, value in arguments.items() if key not in added or value != added[key]}
        return Prepared(
            id=call.id,
            name=call.name,
            at=self.clock(),
            input=dict(ctx.given),
            touches=ready.touches,
            tool=ready.tool.name,
            arguments=arguments,
        )

    def _take_ticket(self, ready: ScheduledCall) -> ScheduledCall:
        waits = ready.tool.waits
        return ready._replace(ticket=self.scheduler.ticket(() if waits else ready.touches, slotless=waits))

    def look(self, call: Call) -> "ScheduledCall | Unready":
        """Which tool, with which arguments, touching what."""
        ctx, face = self.context(call), None
        is_unseen = self.registry.is_waiting(call.name)
        try:
            face = ctx.spoken = self.registry.resolve(call.name).face
            came = self.arguments.receive(face, call.input)
            face, tool, ctx.spoken, values, note = self.registry.hear(call.name, came.values)
            if note:
                ctx.note(note)
            args = self.arguments.understand(face, ctx.spoken, tool, came._replace(values=values), ctx)
            ctx.given = came.values if ctx.spoken is face else _translate_values(face, ctx.input)
            touches = ctx.touches = self.gate.settle(check_touches(tool.access(args, ctx)))
            asks_secrets = _is_ours(tool) and tool.facts.asks_secrets
            self.gate.forbid(touches, ctx.spelled, asks_secrets=asks_secrets, previews=_previews(tool))
        except UnknownTool as error:
            why = self.why_not(call.name) if self.why_not is not None else ""
            return Unready(ctx, face, UnknownTool(f"There is no {call.name} now. {why}") if why else error)
        except BadArguments as error:
            if not is_unseen or face is None:
                return Unready(ctx, face, error)

            # Who has never seen the parameters is told them with what is wrong.
            return Unready(ctx, face, not_loaded(call.name, face, str(error)))
        except Exception as error:  # noqa: BLE001 - a bug in a tool harms its own call only
            return Unready(ctx, face, error)
        return ScheduledCall(call, face, tool, args, touches, ctx)

    def misfit(self, call: Call) -> ToolFailure | None:
        """Why a name and its arguments make no call of a tool here; None where they do, also one that would fail."""
        looked = self.look(call)
        error = looked.error if isinstance(looked, Unready) else None
        return error if isinstance(error, UnknownTool | BadArguments) else None

    async def perform(self, ready: ScheduledCall) -> Reply:
        """Let a call pass, wait for its turn, run it, put it into words and bound them."""
        call, ctx, ticket = ready.call, ready.ctx, ready.ticket
        assert ticket is not None
        try:
            end = await self._run(ready, ticket)
            if self.hooks is not None and ctx.started and not isinstance(end, asyncio.CancelledError):
                reply = end if isinstance(end, Reply) else refusal(call, ctx, ready.face, end, self.clock())
                # Whoever waits for this call's files waits for the hooks too: they may format them.
                end = await self._tell_end(self.hooks, call, reply)
            if ctx.checkpointed:
                ctx.changes = await self.checkpoints.end(ctx)
        finally:
            self.scheduler.release(ticket)
            ctx.finish()
        if isinstance(end, _Exchanged):
            return await self._exchange(ready, end.input)
        return self._end(call, ctx, ready.face, end)

    async def _exchange(self, ready: ScheduledCall, given: dict[str, Any]) -> Reply:
        """Make the call with the input that the user gave instead, as if it had come now: it is looked at like any."""
        call = Call(ready.face.name, given, ready.call.id)
        hooked, stop_by, notes = ready.ctx.hooked, ready.ctx.stop, list(ready.ctx.notes)
        if self.hooks is not None:
            # They have their word on what runs, not on what was given up.
            (said,) = await self._tell(self.hooks, [call])
            call, hooked = said.call, (said.verdict, said.reason)
            stop_by = Stop("hook", said.stop) if said.stop else stop_by
            notes += said.notes
        other = self.look(call)
        other.ctx.hooked, other.ctx.watch, other.ctx.stop = hooked, ready.ctx.watch, stop_by
        for note in notes:
            other.ctx.note(note)
        if isinstance(other, Unready):
            other.ctx.note("This is about the input that the user gave for the call, in the place of yours.")
            return self._end(call, other.ctx, other.face, other.error)
        if hooked[0] == "cancelled":
            return self._end(call, other.ctx, other.face, asyncio.CancelledError())
        self.emit(self._build_prepared_event(other))
        if (now := _commands(other)) != _commands(ready):
            other.ctx.note(f"{CHANGED_COMMAND} {now} before they allowed it.")
        return await self.perform(self._take_ticket(other)._replace(agreed=True))

    async def _run(self, ready: ScheduledCall, ticket: Ticket) -> Reply | BaseException:
        """What came of it, whatever that is: every call gets its answer."""
        call, face, tool, args, ctx = ready.call, ready.face, ready.tool, ready.args, ready.ctx
        try:
            admitted = await self._admit(ready, ticket)
            waited = await self.scheduler.turn(ticket)
            ready, moved = self._again(ready) if waited or admitted.by_person else (ready, False)
            if moved or (waited and not admitted.by_person):
                # Calls that ran meanwhile may have changed what made the question needless.
                admitted = await self._admit(ready, ticket)
            if self.gate.policy.is_held:
                self.gate.hold(self.case(ready))
            ctx.started = self.clock()
            self.emit(Started(id=call.id, name=call.name, at=ctx.started))
            is_kept = self.checkpoints.is_needed(ready.touches, hooked=self.hooks is not None)
            if is_kept and not await self.checkpoints.begin(ctx):
                admitted = await self._admit(ready, ticket)  # what cannot be taken back may need a question
            ctx.asks = functools.partial(self._approve, ready)
            ctx.asks_hosts = functools.partial(self._approve_hosts, ready)
            outcome = await self.runner.run(tool, args, ctx)
            if admitted.written is not None:
                admitted.written()
            ctx.exit_code = getattr(outcome, "exit_code", None)
            if ctx.exit_code is not None:
                ctx.output = "\n".join(filter(None, (getattr(outcome, "output", ""), getattr(outcome, "errors", ""))))
            await ctx.offer_guidance(ready.touches)
            ctx.tell_ended()
            said = ctx.need(Jail).as_commands_say(face.says(outcome))
            bounded = await self.bounds.bound(said, ctx, face.bound, limit_bytes=face.limit_bytes)
            reply = reply_of(call, ctx, outcome, bounded, failed=face.failed(outcome), now=self.clock())
            lines = outcome.lines if ctx.exit_code is not None and hasattr(outcome, "lines") else None
            return msgspec.structs.replace(reply, lines=lines, found=getattr(outcome, "counted", None))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a bug in a tool harms its own call only
            return error

    async def _admit(self, ready: ScheduledCall, ticket: Ticket) -> Admitted:
        """Let it in, or raise. What a person was shown of it and agreed to is kept: nothing else is written."""
        preview = None
        if _previews(ready.tool):
            preview = Previewing(
                functools.partial(self.scheduler.earlier, ticket),
                functools.partial(ready.tool.preview, ready.args, ready.ctx),
            )
        blocked = functools.partial(self._emit_blocked, ready.call)
        admitted = await self.gate.admit(self.case(ready), blocked, preview, agreed=ready.agreed)
        if admitted.input is not None:
            raise _Exchanged(admitted.input)
        ready.ctx.agreed = admitted.agreed
        return admitted

    async def _tell_end(self, hooks: "CallHooks", call: Call, reply: Reply) -> Reply:
        """The reply with the word of the hooks on it; what has happened stays told if they are stopped or fail."""
        try:
            return await hooks.after(call, reply)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - they are the user's own code
            return reply

    def _again(self, ready: ScheduledCall) -> tuple[ScheduledCall, bool]:
        """The call as it is now that its turn has come: the shell may have gone to another folder since."""
        if not any(access.kind == "command" and (access.mode == "write" or access.shell) for access in ready.touches):
            return ready, False
        touches = self.gate.settle(check_touches(ready.tool.access(ready.args, ready.ctx)))
        before, now = ([a.key for a in some if a.kind == "command"] for some in (ready.touches, touches))
        if touches == ready.touches or before != now:
            return ready, False  # a tool that finds another command now has its own word on that
        self.gate.forbid(touches, ready.ctx.spelled)
        ready.ctx.touches = touches
        return ready._replace(touches=touches), True

    def case(self, ready: ScheduledCall) -> Case:
        """The call as the policy sees it."""
        call, face, tool, touches, ctx = ready.call, ready.face, ready.tool, ready.touches, ready.ctx
        named = (call.id, face.name, tool.name, touches, tool.subagent_types)
        said = (ctx.input, ctx.spelled, ctx.hooked, self.context_kind)
        # Tools from elsewhere may bear the names of ours, and do something else.
        return Case(
            *named,
            *said,
            ctx.need(Jail).lent,
            given=ctx.given,
            consented=ready.consented,
            builtin=_is_ours(tool),
            behind=tool,
        )

    async def _approve(self, ready: ScheduledCall, sentence: str, planted: Preview) -> bool:
        """Ask about something that has come up while the call runs."""
        blocked = functools.partial(self._emit_blocked, ready.call)
        return await self.gate.approve(self.case(ready), sentence, blocked, planted)

    async def _approve_hosts(self, ready: ScheduledCall, sentence: str) -> Literal["no", "yes", "always", "outside"]:
        return await self.gate.approve_hosts(
            self.case(ready), sentence, functools.partial(self._emit_blocked, ready.call)
        )

    def _emit_blocked(self, call: Call, question: str) -> None:
        self.emit(Blocked(id=call.id, name=call.name, at=self.clock(), question=question))

    def _answer(self, ready: ScheduledCall | Reply, task: asyncio.Task[Reply] | None) -> Reply:
        if isinstance(ready, Reply):
            return ready
        assert task is not None
        if not task.cancelled():
            return task.result()
        # Cancelled before its first step: the body of `perform` never ran, so its end is here.
        assert ready.ticket is not None
        self.scheduler.release(ready.ticket)
        return self._end(ready.call, ready.ctx, ready.face, asyncio.CancelledError())

    def _end(self, call: Call, ctx: CallContext, face: Face | None, end: Reply | BaseException) -> Reply:
        """The one answer of a call, told to whoever listens."""
        reply = end if isinstance(end, Reply) else refusal(call, ctx, face, end, self.clock())
        if ctx.changes is not None:
            reply = msgspec.structs.replace(reply, changes=ctx.changes)
        if ctx.stop is not None and reply.stop is None:
            reply = msgspec.structs.replace(reply, stop=ctx.stop)
        if late := [note for note in ctx.notes if note not in reply.notes]:
            reply = msgspec.structs.replace(reply, notes=(*reply.notes, *late))
        failed = reply.status in {"error", "rejected-by-user"} or bool(ctx.exit_code)
        if said := self.repeats.record_end(face.tool if face else call.name, call.input, failed=failed):
            reply = msgspec.structs.replace(reply, notes=(*reply.notes, said))
        done = Done(
            id=call.id,
            name=call.name,
            at=self.clock(),
            reply=reply,
            tool=face.tool if face else "",
            edits=tuple(FileEdit.of(path, *sides) for path, sides in ctx.edits.items()) if ctx.edits else (),
            exit_code=ctx.exit_code,
            output=ctx.output,
        )
        if ctx.watch is None or not ctx.watch.holds(done):
            self.emit(done)
        return reply


def _is_ours(tool: AnyTool) -> bool:
    return tool.source == "builtin"


def _previews(tool: AnyTool) -> bool:
    """Can what it would change be believed to be what it will change?"""
    return tool.previews and _is_ours(tool)


def _translate_values(face: Face, values: dict[str, Any]) -> dict[str, Any]:
    """What came in another family's words, in the session's; nothing where it has none for it."""
    try:
        return dict(face.advertised(values))
    except (TypeError, ValueError, KeyError):
        return {}


def _commands(ready: ScheduledCall) -> str:
    """The command lines of a call."""
    return "; ".join(f"`{access.key}`" for access in ready.touches if access.kind == "command")


def _contexts_of(prepared: Sequence[ScheduledCall | Reply]) -> list[CallContext]:
    return [ready.ctx for ready in prepared if isinstance(ready, ScheduledCall)]
