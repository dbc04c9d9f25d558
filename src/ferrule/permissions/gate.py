"""The gate: allow, ask or refuse a call, from what it touches. Ask means no when nobody can answer."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.core.access import EVERYTHING, Access, within
from ferrule.core.errors import Denied, ToolFailure
from ferrule.permissions.asker import NO, YES, Answer, Asker, Question
from ferrule.permissions.modes import ModeConfig, includes
from ferrule.settings import settings_path, state_folder
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail, Outside

Blocked = Callable[[str], None]
"""Told with the question when a call starts to wait for a person."""

_NOTES = ".amp"
_NOTE_ENDINGS = frozenset({"", ".md", ".txt", ".log", ".csv", ".json", ".jsonl"})
_OBEYED = frozenset(
    {"package", "project", "tsconfig", "jsconfig", "deno", "nx", "turbo", "lerna", "composer", "build", "workspace"}
    | {"makefile", "gnumakefile", "dockerfile", "justfile", "rakefile", "sconstruct", "sconscript", "wscript", "buck"}
)
"""Names that build programs look for in every folder."""


class Case(NamedTuple):
    """A call as the policy sees it."""

    call_id: str
    name: str
    """The tool in the session's words."""
    tool: str
    """The canonical tool: what rules bind."""
    touches: tuple[Access, ...]
    subagent_types: tuple[str, ...] | None = None

    @property
    def command(self) -> str:
        """The command line that the call would run, in its final form; empty for a call that runs none."""
        return next((access.key for access in self.touches if access.kind == "process"), "")

    @property
    def cwd(self) -> str:
        """The folder that the command would run in."""
        return next((access.key for access in self.touches if access.kind == "path"), "")


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
        own: Sequence[str] | None = None,
    ) -> None:
        """`own` are the engine's own files and folders, which no call may write: by default its state and settings."""
        self._jail = jail
        self._guard = guard
        self._asker = asker
        self._mode = mode
        self._canonical = canonical
        self._own = own
        self._real_own: tuple[str, ...] | None = None
        self._granted: set[str] = set()
        self._one_at_a_time = asyncio.Lock()

    def forbid(self, touches: Sequence[Access]) -> None:
        """Raise for what no answer can allow: secret and protected files, and the engine's own."""
        for access in touches:
            if access.kind != "path":
                continue
            if access.mode == "read":
                self._guard.check_read(access.key)
                continue
            self._guard.check_write(access.key)
            if self._engines(access.key):
                raise ToolFailure(
                    f"Refusing to write {os.path.basename(access.key)}: it belongs to Ferrule itself. "
                    "Ask the user to change it by hand.",
                    code="writing-protected-file",
                    path=access.key,
                )

    def _engines(self, path: str) -> bool:
        if self._real_own is None:
            own = (state_folder(), settings_path()) if self._own is None else self._own
            self._real_own = tuple(os.path.realpath(one) for one in own)
        return any(within(path, one) for one in self._real_own)

    def passes(self, case: Case) -> bool:
        """Does the call need no question? Reads inside the workspace do not; everything that changes something does."""
        return all(self._free(access, case) for access in case.touches)

    def check_mode(self, case: Case) -> None:
        if not includes(self._mode, case.name, subagent_types=case.subagent_types, canonical=self._canonical):
            raise Denied(f"{case.name} is not part of this mode.", code="not-in-mode")

    async def admit(self, case: Case, blocked: Blocked) -> None:
        """Return when the call may run; raise `Denied` when it may not."""
        self.check_mode(case)
        for folder, path in self._outside(case.touches):
            await self._widen(case, folder, path, blocked)
        if self.passes(case):
            return
        key = _likeness(case)
        if key in self._granted:
            return
        question = Question(
            kind="call",
            call_id=case.call_id,
            name=case.name,
            summary=_visible(self._summary(case)),
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
                return YES
            answer = await self._asker.ask(question)
            if answer.allow is not True:
                return Answer(allow=False, message=answer.message)
            if answer.always or question.kind == "folder":
                self._granted.add(key)
            return answer

    def _outside(self, touches: Sequence[Access]) -> list[tuple[str, str]]:
        """Folders that a yes would have to open, each with the path that needs it."""
        out = []
        for access in touches:
            if access.kind == "path" and not self._jail.holds(access.key):
                folder = access.key
                while not os.path.isdir(folder):
                    folder = os.path.dirname(folder)
                out.append((folder, access.key))
        return out

    async def _widen(self, case: Case, folder: str, path: str, blocked: Blocked) -> None:
        if self._jail.holds(path):
            return
        question = Question(
            kind="folder",
            call_id=case.call_id,
            name=case.name,
            summary=_visible(f"{case.name} wants to go outside the workspace, into {folder}"),
            touches=case.touches,
            folder=folder,
        )
        is_all_there_is = os.path.dirname(folder) == folder
        answer = NO if is_all_there_is else await self._ask(question, blocked, f"folder\0{folder}")
        # A link put in the folder's place meanwhile would open another folder than the one that was asked about.
        if not answer.allow or os.path.realpath(folder) != folder:
            outside = Outside(path)
            raise Denied(f"{answer.message} {outside.message}".strip(), code=outside.code, path=path)
        self._jail.add(folder)

    def _free(self, access: Access, case: Case) -> bool:
        if access.kind == "path":
            return access.mode == "read" or self._agents_own(access.key)
        if access.kind in {"everything", "process"} and case.command and EVERYTHING in case.touches:
            from ferrule.permissions.plain import auto_allowed  # noqa: PLC0415 - only commands need it

            return auto_allowed(
                case.command,
                cwd=case.cwd,
                roots=[root.path for root in self._jail.roots],
                off_limits=lambda path: self._guard.secret(path) or self._among_notes(path),
            )
        return False

    def _agents_own(self, path: str) -> bool:
        """Notes in `.amp/` are the agent's own. Code and settings there are not: a test run may pick them up."""
        stem, ending = os.path.splitext(os.path.basename(path).lower())
        is_note = ending in _NOTE_ENDINGS and not stem.startswith(".") and stem not in _OBEYED
        return is_note and within(path, os.path.join(self._jail.folder, _NOTES))

    def _among_notes(self, path: str) -> bool:
        """Is it in a folder of notes, also on a disk that takes `.AMP` for the same folder?"""
        return any(within(path.lower(), os.path.join(root.path, _NOTES).lower()) for root in self._jail.roots)

    def _summary(self, case: Case) -> str:
        if case.command:
            return f"run `{case.command}` in {case.cwd}"
        writes = [self._jail.shown(a.key) for a in case.touches if a.kind == "path" and a.mode == "write"]
        return f"write {', '.join(writes)}" if writes else f"run {case.name}, which may touch anything"


def _likeness(case: Case) -> str:
    """What "always" is said about: this command in this folder, or this tool with these hosts and processes."""
    others = sorted(f"{access.kind}\0{access.key}" for access in case.touches if access.kind in {"host", "process"})
    return "\0".join((case.tool, case.cwd if case.command else "", *others))


def _visible(text: str) -> str:
    """A text in which nothing steers the screen that it is shown on, or hides there."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
