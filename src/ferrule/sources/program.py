"""Run a program that is a tool or describes one, and check the schema that it gives."""

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.tool import Context
from ferrule.sandbox import Wrapped, do_nothing
from ferrule.settings import Settings
from ferrule.sources.mcp import ListedTool
from ferrule.sources.mcp.results import usable as looked_through
from ferrule.system.command import Launch, Running, start
from ferrule.system.folder import describe
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from ferrule.system.child import Starter


HEAD_CHARS = 25_000
TAIL_CHARS = 25_000
_FEED_SECONDS = 3600.0
"""A program may read as slowly as it likes: it is the end of its own time that ends this."""


class Programmed(NamedTuple):
    """What came of a program."""

    output: str
    """What it wrote, as a reader would see it; with its errors among it, unless those are apart."""
    errors: str
    exit_code: int
    """As shells count: 128 and the signal's number where a signal ended it."""
    timed_out: bool
    missing_chars: int
    """Characters that are left out in the middle; the whole is in the log, where there is one."""
    flooded: bool = False
    """Was it stopped because it wrote more than it may?"""


class _FloodError(Exception):
    """It has written more than it may."""


async def run_program(
    argv: Sequence[str],
    *,
    ctx: Context | None,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    seconds: float | None = None,
    roster: Roster | None = None,
    apart: bool = False,
    head_chars: int = HEAD_CHARS,
    tail_chars: int = TAIL_CHARS,
    limit_bytes: int | None = None,
    wrapped: Wrapped | None = None,
) -> Programmed:
    """Run it to its end, or for at most `seconds`. However this ends, nothing that it started lives on.

    With a context, progress is told, and a log is kept where the output is too long to give whole. `apart` keeps the
    errors out of the output. At `limit_bytes` of output it is stopped. `wrapped` is how it is confined, where it is.
    Raises `ToolFailure` where it cannot be started.
    """
    log = ctx.new_log() if ctx is not None else None
    launch = Launch(
        argv,
        cwd,
        env,
        apart=apart,
        stdin="none" if stdin is None else "pipe",
        log=log,
        log_limit_bytes=0 if ctx is None else ctx.need(Settings).shell.log_mb << 20,
        log_late=True,
        head_chars=head_chars,
        tail_chars=tail_chars,
        roster=roster,
        starter=None if wrapped is None else cast("Starter | None", wrapped.starter),
        descriptors=() if wrapped is None else wrapped.descriptors,
        done=None if wrapped is None or wrapped.done is do_nothing else wrapped.done,
    )

    def hear(text: str) -> None:
        if ctx is not None:
            _progress(ctx, text)
        if limit_bytes is not None and running.result().total_bytes > limit_bytes:
            raise _FloodError

    try:
        running = start(launch, on_output=None if ctx is None and limit_bytes is None else hear)
    except (OSError, ValueError) as error:
        if wrapped is not None:
            wrapped.done()
        why = describe(error) if isinstance(error, OSError) else str(error)
        raise ToolFailure(f"{argv[0]} cannot be run: {why}.", path=argv[0]) from error
    feeding = None if stdin is None else asyncio.create_task(_feed(running, stdin))
    try:
        flooded = await _wait_for_end(running, seconds)
    except BaseException:
        running.abandon()
        await running.stop()
        raise
    finally:
        if feeding is not None:
            feeding.cancel()
            await asyncio.wait([feeding])
        running.close()
    finished = running.result()
    if ctx is not None and finished.missing_chars:
        shown_chars = len(finished.text) + len(finished.errors)
        ctx.keep_log(finished.logged_bytes, missing=max(1, finished.total_chars - shown_chars))
    return Programmed(
        finished.text, finished.errors, finished.exit_code or 0, finished.timed_out, finished.missing_chars, flooded
    )


async def _wait_for_end(running: Running, seconds: float | None) -> bool:
    """Wait for its end, or bring it about; whether it was because of too much output."""
    try:
        if await running.wait(seconds) == "time":
            await running.stop(timed_out=True)
            await running.wait()
    except _FloodError:
        running.abandon()
        await running.stop()
        return True
    return False


async def _feed(running: Running, data: bytes) -> None:
    # A program that reads nothing, or that has ended, needs nothing more to read.
    with contextlib.suppress(OSError):
        await running.write(data, seconds=_FEED_SECONDS)
    running.close_stdin()


def _progress(ctx: Context, text: str) -> None:
    if not ctx.over:
        ctx.progress(text.rstrip().rsplit("\n", 1)[-1][-200:])


_NAME = r"[A-Za-z0-9_.-]{1,64}"
"""What model APIs take as the name of a parameter."""


def usable(schema: object) -> dict[str, Any]:
    """The schema, clean and as an object's. Raises ValueError with a sentence where it cannot be used."""
    if not isinstance(schema, dict):
        raise ValueError("Its schema is not an object.")  # noqa: TRY004 - it is about what a program wrote
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise ValueError('The "properties" of its schema are not an object.')  # noqa: TRY004 - as above
    for name in properties:
        if not re.fullmatch(_NAME, name):
            raise ValueError(
                f"Its parameter {name[:80]!r} has a name that model APIs refuse: "
                "they take letters, digits, _, . and -, 64 at most."
            )
    try:
        found = looked_through(ListedTool(name="tool", words="", schema={"properties": {}, **schema}))
    except ConfigError as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{reason[:1].upper()}{reason[1:]}.") from error
    return dict(found.schema)
