"""Hooks over a workspace of a test's own, and what they told the user."""

import asyncio
import os
import shlex
import sys
import threading

from ferrule.hooks import Hook
from ferrule.hooks.hooks import Hooks
from ferrule.system.tree import Roster

LIMIT_SECONDS = 60


class Desk:
    """A workspace, scripts beside it, and the session's hooks."""

    def __init__(self, top):
        self.top = top.resolve()
        self.work = self.top / "work"
        self.work.mkdir()
        self.reports = []
        self.roster = Roster(str(self.top / "roster"))
        self._opened = []

    def script(self, body, name="hook"):
        """A program outside of the workspace; the command line that runs it."""
        path = self.top / name
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)
        return shlex.quote(str(path))

    def python(self, body, name="hook.py"):
        return f"{shlex.quote(sys.executable)} {self.script(body, name)}"

    def hooks(self, *hooks, **options):
        made = Hooks(
            hooks,
            **{
                "workspace": str(self.work),
                "environment": dict(os.environ),
                "session_id": "S-1",
                "permission_mode": lambda: "default",
                "report": self.reports.append,
                "roster": self.roster,
                **options,
            },
        )
        self._opened.append(made)
        return made

    async def before(self, *hooks, names=("Bash",), told=None, **options):
        """What hooks before a call say; a text is a command."""
        made = self.hooks(
            *(Hook("PreToolUse", command=one) if isinstance(one, str) else one for one in hooks), **options
        )
        async with asyncio.timeout(LIMIT_SECONDS):
            return await made.before(names, next(iter(names)), {"command": "ls"} if told is None else told, "call-1")

    async def after(self, *hooks, failed=False, **options):
        event = "PostToolUseFailure" if failed else "PostToolUse"
        made = self.hooks(*(Hook(event, command=one) if isinstance(one, str) else one for one in hooks), **options)
        async with asyncio.timeout(LIMIT_SECONDS):
            return await made.after(["Bash"], "Bash", {"command": "ls"}, "call-1", {"output": "a"}, failed=failed)

    def close(self):
        for hooks in self._opened:
            hooks.close()
        for thread in threading.enumerate():
            if thread.name == "ferrule-guest":
                thread.join(LIMIT_SECONDS)  # it closes its loop, and nobody else waits for that
