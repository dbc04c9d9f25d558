"""A toolbox tool: a program of the user's that is run with `TOOLBOX_ACTION=execute`."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Sequence

from ferrule.core.elsewhere import Mixed
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.sources.program import run_program
from ferrule.sources.raw import Raw
from ferrule.sources.toolbox.description import Description
from ferrule.sources.toolbox.launching import environment
from ferrule.sources.toolbox.parameters import written
from ferrule.support.beneath import READ_NO_LINK, is_regular
from ferrule.support.roster import Roster

_log = logging.getLogger("ferrule")

_HEAD_CHARS = _TAIL_CHARS = 48_000
"""Kept of the output in memory, about as much as a reply holds; the log has the rest."""
_ERROR_CHARS = 4_000


class ToolboxTool(Tool[Raw, Mixed]):
    """One executable of a toolbox."""

    args = Raw
    source = "toolbox"

    def __init__(
        self,
        path: str,
        name: str,
        description: Description,
        *,
        session: str,
        pin: str = "",
        roots: Sequence[str] = (),
    ) -> None:
        """`pin` is the hash of the program that has described itself, where no other may run in its place.

        `roots` are the folders of the workspace, where it looks for no program.
        """
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
        self._roots = tuple(roots)

    async def run(self, args: Raw, ctx: Context) -> Mixed:
        parameters = written(args.values, self._format)
        if self._pin and await asyncio.to_thread(fingerprint, self.origin) != self._pin:
            raise ToolFailure(
                f"It was not run: {self.origin} has changed since it described itself. The project has to be trusted "
                "anew, in a new session.",
                code="changed",
            )
        settings, cwd = ctx.need(Settings), ctx.path(".")
        thread = {"AMP_THREAD_ID": self._session, "AGENT_THREAD_ID": self._session}
        ran = await run_program(
            [self.origin],
            ctx=ctx,
            cwd=cwd,
            env=environment(settings, "execute", cwd=cwd, roots=self._roots, more=thread),
            stdin=parameters,
            roster=ctx.need(Roster),
            apart=True,
            head_chars=_HEAD_CHARS,
            tail_chars=_TAIL_CHARS,
        )
        code = self.exit_code = ran.exit_code
        text, errors = ran.output.removesuffix("\n"), ran.errors.strip()
        if code == 0:
            if errors:
                _log.debug("%s wrote to its standard error: %s", self.name, errors[-_ERROR_CHARS:])
            return Mixed((text,))
        parts = [text, errors[-_ERROR_CHARS:], f"The tool failed with exit code {code}."]
        return Mixed(("\n".join(part for part in parts if part),), failed=True)


def fingerprint(path: str) -> str:
    """A hash of a program's bytes; empty where it cannot be read, or is a link."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        descriptor = os.open(path, READ_NO_LINK)
        try:
            if not is_regular(descriptor):
                return ""
            while piece := os.read(descriptor, 1 << 20):
                digest.update(piece)
        finally:
            os.close(descriptor)
    except OSError:
        return ""
    return digest.hexdigest()


def hashed(content: bytes | None) -> str:
    """The same of a content; empty where there is none."""
    return "" if content is None else hashlib.blake2b(content, digest_size=16).hexdigest()
