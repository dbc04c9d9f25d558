"""How calls end: a reply for one that ran, and a reply for each way in which one did not."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.context import CallContext
from ferrule.core.call import Call
from ferrule.core.errors import Denied, ToolFailure
from ferrule.core.face import Face
from ferrule.core.reply import Failure, Reply, Status, Stop, spoken
from ferrule.output.bounds import Bounded
from ferrule.output.clean import clean, clean_value

if TYPE_CHECKING:
    from ferrule.core.elsewhere import Mixed

_log = logging.getLogger("ferrule")
_log.addHandler(logging.NullHandler())  # silent unless the program that uses us listens


_DATA_BYTES = 8 << 20
"""Of a structured result, for programs; what a model reads is bounded more tightly."""


def reply_of(call: Call, ctx: CallContext, outcome: Any, bounded: Bounded, *, failed: bool, now: float) -> Reply:
    """A reply for a call that ran to its end; to some families an outcome may be an error."""
    # By what it has: whoever only reads files does not load what tools from elsewhere answer.
    structured, parts = _elsewhere(outcome, ctx) if hasattr(outcome, "structured") else (None, ())
    return Reply(
        id=call.id,
        name=call.name,
        status="error" if failed else "done",
        result=None if failed else bounded.result,
        error=Failure(spoken(bounded.result), "failed") if failed else None,
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
