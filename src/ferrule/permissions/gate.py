"""The gate: allow, ask or refuse a call, from what it touches. Ask means no when nobody can answer."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.core.access import Access, within
from ferrule.core.errors import Denied
from ferrule.permissions.asker import Answer, Asker, Question
from ferrule.permissions.modes import ModeConfig, includes
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail, Outside

Blocked = Callable[[str], None]
"""Told with the question when a call starts to wait for a person."""


class Case(NamedTuple):
    """A call as the policy sees it."""

    call_id: str
    name: str
    """The tool in the session's words."""
    tool: str
    """The canonical tool: what rules bind."""
    touches: tuple[Access, ...]
    command: str = ""
    """The command line of a shell call, in its final form."""
    cwd: str = ""
    subagent_types: tuple[str, ...] = ()


class Gate:
    """Holds the session's policy and what the user has granted meanwhile."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        asker: Asker,
        *,
        mode: ModeConfig,
        canonical: Callable[[str], str],
    ) -> None:
        self._jail = jail
        self._guard = guard
        self._asker = asker
        self._mode = mode
        self._canonical = canonical
        self._granted: set[str] = set()
        self._one_at_a_time = asyncio.Lock()

    def forbid(self, touches: Sequence[Access]) -> None:
        """Raise for what no answer can allow: secret and protected files."""
        for access in touches:
            if access.kind == "path":
                (self._guard.check_write if access.mode == "write" else self._guard.check_read)(access.key)

    def passes(self, case: Case) -> bool:
        """Does the call need no question? Reads inside the workspace do not; everything that changes something does."""
        return all(self._free(access, case) for access in case.touches)

    def check_mode(self, case: Case) -> None:
        if not includes(
            self._mode, case.name, subagent_types=case.subagent_types, canonical=self._canonical
        ):
            raise Denied(f"{case.name} is not part of this mode.", code="not-in-mode")

    async def admit(self, case: Case, blocked: Blocked) -> None:
        """Return when the call may run; raise `Denied` when it may not."""
        self.check_mode(case)
        for folder, path in self._outside(case.touches):
            await self._widen(case, folder, path, blocked)
        if self.passes(case):
            return
        key = f"{case.tool}\0{case.command}" if case.command else case.tool
        if key in self._granted:
            return
        question = Question(
            kind="call",
            call_id=case.call_id,
            name=case.name,
            summary=self._summary(case),
            touches=case.touches,
        )
        answer = await self._ask(question, blocked, key)
        if not answer.allow:
            raise Denied(
                answer.message or f"The user did not allow {case.name}: {question.summary}.", code="not-allowed"
            )

    async def _ask(self, question: Question, blocked: Blocked, key: str) -> Answer:
        blocked(question.summary)
        async with self._one_at_a_time:
            if key in self._granted:
                return Answer(allow=True)
            answer = await self._asker.ask(question)
            if answer.allow and answer.always:
                self._granted.add(key)
            return answer

    def _outside(self, touches: Sequence[Access]) -> list[tuple[str, str]]:
        """Folders that a yes would have to open, each with the path that needs it."""
        out = []
        for access in touches:
            if access.kind == "path" and not self._jail.holds(access.key):
                folder = access.key if os.path.isdir(access.key) else os.path.dirname(access.key)
                out.append((folder, access.key))
        return out

    async def _widen(self, case: Case, folder: str, path: str, blocked: Blocked) -> None:
        if self._jail.holds(path):
            return
        question = Question(
            kind="folder",
            call_id=case.call_id,
            name=case.name,
            summary=f"{case.name} wants to go outside the workspace, into {folder}",
            touches=case.touches,
            folder=folder,
        )
        answer = await self._ask(question, blocked, f"folder\0{folder}")
        if not answer.allow or os.path.dirname(folder) == folder:
            outside = Outside(path)
            raise Denied(outside.message, code=outside.code, path=path)
        self._jail.add(folder)

    def _free(self, access: Access, case: Case) -> bool:
        if access.kind == "path":
            return access.mode == "read" or self._agents_own(access.key)
        if access.kind == "everything" and case.command:
            from ferrule.permissions.plain import auto_allowed  # noqa: PLC0415 - only commands need it

            return auto_allowed(
                case.command,
                cwd=case.cwd,
                roots=[root.path for root in self._jail.roots],
                secret=self._guard.secret,
            )
        return False

    def _agents_own(self, path: str) -> bool:
        """Notes in `.amp/` are the agent's own; its settings there are protected and never get this far."""
        return any(within(path, os.path.join(root.path, ".amp")) for root in self._jail.roots)

    def _summary(self, case: Case) -> str:
        if case.command:
            return f"run `{case.command}` in {case.cwd}"
        writes = [self._jail.shown(a.key) for a in case.touches if a.kind == "path" and a.mode == "write"]
        return f"write {', '.join(writes)}" if writes else f"run {case.name}, which may touch anything"
