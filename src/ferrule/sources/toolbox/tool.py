"""A toolbox tool: a program of the user's that is run with `TOOLBOX_ACTION=execute`."""

import asyncio
import contextlib
import hashlib
import logging
import os

from ferrule.core.elsewhere import Mixed
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.sources.raw import Raw
from ferrule.sources.toolbox.description import Description
from ferrule.sources.toolbox.launching import cannot_start, environment
from ferrule.sources.toolbox.parameters import written
from ferrule.support.roster import Roster
from ferrule.support.running import Finished, Launch, Running, start

_log = logging.getLogger("ferrule")

_HEAD_CHARS = _TAIL_CHARS = 40_000
"""Kept of the output in memory; the log has the rest."""
_ERROR_CHARS = 4_000
_READ_SECONDS = 86_400.0
"""So long a program may leave its parameters unread; the call's own time limit is shorter."""


class ToolboxTool(Tool[Raw, Mixed]):
    """One executable of a toolbox."""

    args = Raw
    source = "toolbox"

    def __init__(self, path: str, name: str, description: Description, *, session: str, pin: str = "") -> None:
        """`pin` is the hash of the program that has described itself, where no other may run in its place."""
        self.name = name
        self.words = description.words
        self.schema = description.schema
        self.subagent_types = description.subagent_types
        self.origin = path
        self.exit_code: int | None = None
        """How its last run ended; for the command line."""
        self._format = description.format
        self._session = session
        self._pin = pin

    async def run(self, args: Raw, ctx: Context) -> Mixed:
        parameters = written(args.values, self._format)
        if self._pin and fingerprint(self.origin) != self._pin:
            raise ToolFailure(
                f"It was not run: {self.origin} has changed since it described itself. Its project has to be trusted "
                "anew, in a new session.",
                code="changed",
            )
        running = self._start(ctx)
        feeding = asyncio.create_task(_feed(running, parameters))
        try:
            await running.wait()
        except BaseException:
            running.abandon()
            await running.stop()
            raise
        finally:
            feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await feeding
            running.close()
        return self._outcome(running.finished(), ctx)

    def _start(self, ctx: Context) -> Running:
        settings, cwd = ctx.need(Settings), ctx.path(".")
        thread = {"AMP_THREAD_ID": self._session, "AGENT_THREAD_ID": self._session}
        launch = Launch(
            argv=[self.origin],
            cwd=cwd,
            env=environment(settings, "execute", cwd=cwd, more=thread),
            apart=True,
            stdin="pipe",
            log=ctx.new_log(),
            log_limit_bytes=settings.shell.log_mb << 20,
            log_late=True,
            head_chars=_HEAD_CHARS,
            tail_chars=_TAIL_CHARS,
            roster=ctx.need(Roster),
            command=self.origin,
        )
        try:
            return start(launch, on_output=lambda text: _progress(ctx, text))
        except OSError as error:
            raise ToolFailure(f"{self.name} ({self.origin}): {cannot_start(error)}", code="cannot-start") from error

    def _outcome(self, finished: Finished, ctx: Context) -> Mixed:
        code = self.exit_code = finished.exit_code
        if finished.log_error:
            ctx.drop_log()
            ctx.note(f"The full output could not be kept: {finished.log_error}.")
        elif finished.missing_chars:
            shown_chars = len(finished.text) + len(finished.errors)
            ctx.keep_log(finished.logged_bytes, missing=max(1, finished.total_chars - shown_chars))
        if finished.survivors_killed:
            ctx.note("Processes that the tool left running were stopped.")
        text, errors = finished.text.removesuffix("\n"), finished.errors.strip()
        if code == 0:
            if errors:
                _log.debug("%s wrote to its standard error: %s", self.name, errors[-_ERROR_CHARS:])
            return Mixed((text,))
        parts = [text, errors[-_ERROR_CHARS:], f"The tool failed with exit code {code}."]
        return Mixed(("\n".join(part for part in parts if part),), failed=True)


async def _feed(running: Running, parameters: bytes) -> None:
    """Give the program its parameters. One that does not read them may still do its work."""
    with contextlib.suppress(OSError):
        await running.write(parameters, seconds=_READ_SECONDS)
    running.close_stdin()


def _progress(ctx: Context, text: str) -> None:
    if not ctx.over:
        ctx.progress(text.rstrip().rsplit("\n", 1)[-1][-200:])


def fingerprint(path: str) -> str:
    """A hash of a program's bytes and mode; empty where it cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()
