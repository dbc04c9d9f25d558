"""A session's toolboxes: the files in them, what each says of itself, and the tools that come of it."""

import asyncio
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ferrule.core.tool import AnyTool
from ferrule.output.clean import clean
from ferrule.settings import Settings
from ferrule.sources.brought import Brought
from ferrule.sources.toolbox.description import Description, understood
from ferrule.sources.toolbox.launching import FailedError, said
from ferrule.sources.toolbox.naming import tool_name
from ferrule.sources.toolbox.places import Box
from ferrule.sources.toolbox.subagent import MOST_BYTES, SubagentTool, subagent
from ferrule.sources.toolbox.tool import ToolboxTool, fingerprint, hashed
from ferrule.support.beneath import describe
from ferrule.support.roster import Roster

if TYPE_CHECKING:
    from ferrule.sources.custom.answers import Answers
    from ferrule.support.sandbox.profile import Wrapped

Status = Literal["pending", "registered", "failed", "duplicate"]

MOST_FILES = 100
"""Of one folder."""
_AT_ONCE = 8
_TURNS = 6
"""All programs together have so many times the time of one to describe themselves."""


class Entry(NamedTuple):
    """One file of a toolbox, and what has become of it."""

    path: str
    box: Box
    status: Status = "pending"
    name: str = ""
    """What its tool is called; empty where nothing is known of that."""
    reason: str = ""
    """Why it has that status, as a sentence; empty where it is registered."""


class Toolbox:
    """All toolboxes of a session."""

    def __init__(
        self,
        boxes: Sequence[Box],
        *,
        settings: Settings,
        session: str,
        roster: Roster | None = None,
        can_run_subagents: bool = False,
        trusted: Mapping[str, bytes] | None = None,
        roots: Sequence[str] = (),
        confine: "Callable[[Sequence[str], str], Wrapped | None] | None" = None,
        answers: "Answers | None" = None,
    ) -> None:
        """`session` is told to the tools as the thread's id.

        `trusted` are the files of the project with the contents that the user trusts: with it nothing else of a
        project is run or read, also where a file has changed since. `roots` are the folders of the workspace.

        A project's program is described once for its content: confined by `confine`, and `answers` keeps what it said.
        """
        self.entries: list[Entry] = []
        """The files that were looked at, in the order in which they count."""
        self._boxes = boxes
        self._settings = settings
        self._session = session
        self._roster = roster
        self._can_run_subagents = can_run_subagents
        self._trusted = trusted
        self._roots = tuple(roots)
        self._confine = confine
        self._answers = answers

    async def load(self) -> Brought:
        """Let every program describe itself; the tools that come of it, and what could not be used."""
        if not self._boxes:
            return Brought(())
        looked, warnings = await asyncio.to_thread(self._look)
        self.entries = looked
        turns = asyncio.Semaphore(_AT_ONCE)
        loop = asyncio.get_running_loop()
        until = loop.time() + _TURNS * self._settings.tools.describe_seconds

        async def made(entry: Entry) -> AnyTool | Entry | None:
            if entry.status != "pending":
                return entry
            async with turns:
                if loop.time() >= until:
                    return entry._replace(reason="Others took so long to describe themselves that it had no turn.")
                return await self._made(entry)

        tools: dict[str, AnyTool] = {}
        entries: list[Entry] = []
        for entry, came in zip(looked, await asyncio.gather(*map(made, looked)), strict=True):
            entries += self._settled(entry, came, tools)
        self.entries = entries
        warnings += [f"{entry.path}: {entry.reason}" for entry in entries if entry.status != "registered"]
        return Brought(tuple(tools.values()), tuple(map(clean, warnings)))

    def _settled(self, entry: Entry, came: AnyTool | Entry | None, tools: dict[str, AnyTool]) -> Iterator[Entry]:
        """What has become of a file; the first of a name has it."""
        if came is None:
            return  # Markdown about something else
        if isinstance(came, Entry):
            yield came
            return
        first = tools.get(came.name)
        if first is not None:
            reason = f"Its name, {came.name}, is taken: {first.origin} comes before it."
            yield entry._replace(status="duplicate", name=came.name, reason=reason)
            return
        tools[came.name] = came
        yield entry._replace(status="registered", name=came.name)

    async def _made(self, entry: Entry) -> AnyTool | Entry | None:
        """The tool of a file; the entry, where it has failed."""
        path = entry.path
        stem = os.path.splitext(os.path.basename(path))[0]
        try:
            pin = await asyncio.to_thread(self._pin, entry)
            if path.endswith(".md"):
                return await asyncio.to_thread(self._subagent, path, tool_name(stem))
            description = await self._described(path, pin)
        except (FailedError, ValueError) as error:
            return entry._replace(status="failed", reason=str(error))
        name = tool_name(description.name or stem)
        return ToolboxTool(path, name, description, session=self._session, pin=pin, roots=self._roots)

    async def _described(self, path: str, pin: str) -> Description:
        """What a program says of itself; of a project's, what these very bytes have said before."""
        if not pin:
            return understood(await said(path, self._settings, self._roster, self._roots))
        known = self._answers.of(pin) if self._answers is not None else None
        if known is not None:
            return understood(known)
        text = await said(path, self._settings, self._roster, self._roots, self._confine)
        description = understood(text)
        if self._answers is not None:
            self._answers.keep(pin, text)
        return description

    def _pin(self, entry: Entry) -> str:
        """The hash of a project's file: what the user trusts is that, not what may be there when it is called."""
        if entry.box.layer == "user":
            return ""
        pin = fingerprint(entry.path)
        if not pin:
            raise FailedError("It cannot be read, and so it cannot be trusted.")
        if self._trusted is not None and hashed(self._trusted.get(entry.path)) != pin:
            raise FailedError("It is not what the user trusts: it was added or has changed since.")
        return pin

    def _subagent(self, path: str, name: str) -> AnyTool | None:
        raw = (self._trusted or {}).get(path)
        try:
            if raw is None:
                with open(path, "rb") as file:
                    raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(f"It cannot be read: {describe(error)}.") from error
        if len(raw) > MOST_BYTES:
            raise ValueError(f"It is longer than {MOST_BYTES:,} bytes.")
        found = subagent(raw.decode(errors="replace"), name)
        return None if found is None else SubagentTool(path, found, name=name, can_run=self._can_run_subagents)

    def _look(self) -> tuple[list[Entry], list[str]]:
        entries: list[Entry] = []
        warnings: list[str] = []
        for box in self._boxes:
            try:
                found = list(_files(box))
            except OSError as error:
                warnings.append(f"The toolbox folder {box.path} cannot be read: {describe(error)}.")
                continue
            if len(found) > MOST_FILES:
                warnings.append(
                    f"The toolbox folder {box.path} has {len(found)} tools; only the first {MOST_FILES} are used."
                )
            entries += found[:MOST_FILES]
        return entries, warnings


def _files(box: Box) -> Iterator[Entry]:
    """The files of a folder that may be tools, by name."""
    folder = os.stat(box.path) if box.layer == "user" else os.lstat(box.path)
    if not stat.S_ISDIR(folder.st_mode):
        raise NotADirectoryError(20, "Not a directory", box.path)
    for name in sorted(os.listdir(box.path)):
        path = os.path.join(box.path, name)
        try:
            status, own = os.stat(path), os.lstat(path)
        except OSError:
            continue  # a link to nothing
        is_tool = name.endswith(".md") or (status.st_mode & 0o111) != 0
        if name.startswith(".") or not stat.S_ISREG(status.st_mode) or not is_tool:
            continue
        entry = Entry(path, box)
        if box.layer == "project" and stat.S_ISLNK(own.st_mode):
            reason = "It is a link: what it leads to is not part of the project that the user trusts."
            yield entry._replace(status="failed", reason=reason)
        elif os.name == "posix" and (_is_anybodys(status) or _is_anybodys(folder)):
            reason = (
                "Anybody on this machine can change it: take that right away with `chmod o-w`, from its folder too."
            )
            yield entry._replace(status="failed", reason=reason)
        else:
            yield entry


def _is_anybodys(status: os.stat_result) -> bool:
    """May every user of the machine write it, or put another file into its place?"""
    return bool(status.st_mode & stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
