"""The gate: allow, ask or refuse a call, from what it touches. Ask means no when nobody can answer."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ferrule.core.access import Access, within
from ferrule.core.errors import Denied, ToolFailure
from ferrule.permissions.asker import NO, YES, Answer, Asker, Question, visible
from ferrule.permissions.modes import ModeConfig, includes
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail, Outside

Blocked = Callable[[str], None]
"""Told with the question when a call starts to wait for a person."""

_NOTE_ENDINGS = frozenset({"", ".md", ".txt", ".log", ".csv", ".json", ".jsonl"})
_OBEYED = frozenset(
    {"package", "project", "tsconfig", "jsconfig", "deno", "nx", "turbo", "lerna", "composer", "build", "workspace"}
    | {"makefile", "gnumakefile", "dockerfile", "justfile", "rakefile", "sconstruct", "sconscript", "wscript", "buck"}
)
"""Names that build programs look for in every folder."""


_DOES = {"delete": "delete", "undo": "take back the last write of"}
"""Canonical tool → what it does to a file, where that is not to write it."""


class Case(NamedTuple):
    """A call as the policy sees it."""

    call_id: str
    name: str
    """The tool in the session's words."""
    tool: str
    """The canonical tool: what rules bind."""
    touches: tuple[Access, ...]
    subagent_types: tuple[str, ...] | None = None
    input: Mapping[str, Any] = {}


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
        own: Sequence[str] = (),
        kept: Sequence[str] = (),
        notes: str = "",
    ) -> None:
        """No call may write `own`, the engine's files and folders, nor the folders that the user has `kept`.

        `notes` is the agent's own folder.
        """
        self._jail = jail
        self._guard = guard
        self._asker = asker
        self._mode = mode
        self._canonical = canonical
        self._own = tuple(map(os.path.realpath, own))
        self._kept = tuple(os.path.realpath(folder).casefold() for folder in kept)
        self._notes = notes
        self._granted: set[str] = set()
        self._one_at_a_time = asyncio.Lock()

    def forbid(self, touches: Sequence[Access], spelled: Mapping[str, str] = MappingProxyType({})) -> None:
        """Raise for what no answer can allow: secret and protected files, and the engine's own.

        `spelled` gives the paths as they were written: a guarded name counts also where it is only a link.
        """
        for access in touches:
            if access.kind != "path":
                continue
            for path in {access.key, spelled.get(access.key, access.key)}:
                (self._guard.check_read if access.mode == "read" else self._guard.check_write)(path)
            if access.mode == "read":
                continue
            if any(within(access.key.casefold(), one) for one in self._kept):
                raise ToolFailure(
                    f"Refusing to write {access.key}: the user keeps its folder from being written.",
                    code="protected-folder",
                    path=access.key,
                )
            if any(within(access.key, one) for one in self._own):
                raise ToolFailure(
                    f"Refusing to write {os.path.basename(access.key)}: it belongs to Ferrule itself. "
                    "Ask the user to change it by hand.",
                    code="writing-protected-file",
                    path=access.key,
                )

    def passes(self, case: Case) -> bool:
        """Does the call need no question? Reads inside the workspace do not; everything that changes something does."""
        return all(map(self._free, case.touches))

    def check_mode(self, case: Case) -> None:
        if not includes(self._mode, case.name, subagent_types=case.subagent_types, canonical=self._canonical):
            raise Denied(f"{case.name} is not part of this mode.", code="not-in-mode")

    async def admit(self, case: Case, blocked: Blocked) -> bool:
        """Return when the call may run, and whether a person has said so; raise `Denied` when it may not."""
        self.check_mode(case)
        for folder, path in self._outside(case.touches):
            await self._widen(case, folder, path, blocked)
        if self.passes(case):
            return False
        key = _likeness(case)
        if key in self._granted:
            return True
        question = Question(
            kind="call",
            call_id=case.call_id,
            name=case.name,
            tool=case.tool,
            summary=visible(self._summary(case)),
            touches=case.touches,
            input=case.input,
        )
        answer = await self._ask(question, blocked, key)
        if not answer.allow:
            raise Denied(answer.message or f"The user did not allow this: {question.summary}.", code="not-allowed")
        return True

    async def _ask(self, question: Question, blocked: Blocked, key: str) -> Answer:
        blocked(question.summary)
        async with self._one_at_a_time:
            if key in self._granted:
                return YES
            try:
                answer = await self._asker.ask(question)
            except Exception as error:
                message = f"The question could not be answered ({type(error).__name__}: {error}): {question.summary}."
                raise Denied(message, code="ask-failed") from error
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
            summary=visible(f"{case.name} wants to go outside the workspace, into {folder}"),
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

    def _free(self, access: Access) -> bool:
        if access.kind == "path":
            return access.mode in {"read", "restore"} or self._agents_own(access.key)
        if access.kind == "command":
            from ferrule.permissions.plain import auto_allowed  # only commands need it

            return auto_allowed(
                access.key,
                cwd=access.folder,
                roots=[root.path for root in self._jail.roots],
                off_limits=lambda path: self._guard.secret(path) or self._among_notes(path),
            )
        return False

    def _agents_own(self, path: str) -> bool:
        """Notes are the agent's own. Code and settings there are not: a test run may pick them up."""
        stem, ending = os.path.splitext(os.path.basename(path).lower())
        if not self._notes:
            return False
        is_note = ending in _NOTE_ENDINGS and not stem.startswith(".") and stem not in _OBEYED
        return is_note and within(path, os.path.join(self._jail.folder, self._notes))

    def _among_notes(self, path: str) -> bool:
        """Is it in a folder of notes, also on a disk that takes `.AMP` for the same folder?"""
        folders = [os.path.join(root.path, self._notes).lower() for root in self._jail.roots] if self._notes else []
        return any(within(path.lower(), folder) for folder in folders)

    def _summary(self, case: Case) -> str:
        commands = [f"run `{access.key}` in {access.folder}" for access in case.touches if access.kind == "command"]
        if commands:
            return ", ".join(commands)
        writes = [self._jail.shown(a.key) for a in case.touches if a.kind == "path" and a.mode == "write"]
        does = _DOES.get(case.tool, "write")
        return f"{case.name}: {does} {', '.join(writes)}" if writes else f"run {case.name}, which may touch anything"


def _likeness(case: Case) -> str:
    """What "always" is said about: this command in this folder, or this tool with these hosts and processes."""
    others = sorted("\0".join(access) for access in case.touches if access.kind in {"command", "host", "process"})
    return "\0".join((case.tool, *others))
