"""Find a session's toolboxes, load their tools, and create new tools from templates.

Toolboxes are the folders that the user names and those of a trusted project.
"""

import asyncio
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.core.tool import AnyTool
from ferrule.output import clean
from ferrule.settings import Settings, Tools
from ferrule.sources import SourceTools
from ferrule.sources.toolbox.tool import (
    MOST_BYTES,
    MOST_CHARS,
    PREFIX,
    Description,
    FailedError,
    SubagentTool,
    ToolboxTool,
    ask_description,
    fingerprint,
    hash_content,
    parse_description,
    subagent,
    tool_name,
)
from ferrule.system.folder import describe
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from ferrule.sandbox import Wrapped
    from ferrule.sources.custom import ProgramAnswers


Layer = Literal["user", "project"]

PROJECT = (os.path.join(".agents", "tools"), os.path.join(".amp", "toolbox"))
"""Where a project keeps its own, below its root."""
OWN = "toolbox"
"""The folder beside the user's settings file."""


class Box(NamedTuple):
    """One folder of executables."""

    path: str
    layer: Layer


class ToolboxFolders(NamedTuple):
    """The folders in their order: where two tools share a name, the earlier folder has it."""

    boxes: tuple[Box, ...]
    warnings: tuple[str, ...] = ()


def folders(
    tools: Tools,
    *,
    environment: Mapping[str, str],
    settings_file: str,
    roots: Sequence[str] = (),
    project: Sequence[str] = (),
    trusted: bool = False,
) -> ToolboxFolders:
    """The user's folders, then those of `project`, where that is trusted.

    The setting `tools.toolbox` counts before FERRULE_TOOLBOX, and that before AMP_TOOLBOX; an empty one means none.
    `roots` are the folders of the workspace: what lies in there is the project's, whoever names it.
    """
    named, whose = _read_folders(tools, environment)
    of = f" of {whose}" if whose else ""
    warnings: list[str] = []
    boxes: list[Box] = []
    if named is None:
        home = os.path.expanduser("~")
        standard = [os.path.join(home, ".config", "amp", "tools")] if os.path.isabs(home) else []
        named = [*standard, os.path.join(os.path.dirname(settings_file), OWN)]
    for entry in named:
        path = os.path.expanduser(entry)
        if not os.path.isabs(path):
            # What it means would depend on the folder that a session is started in, and that may be anybody's.
            warnings.append(f"The toolbox folder {entry!r}{of} is not used: write it as an absolute path.")
        elif _is_the_projects(path, roots):
            warnings.append(
                f"The toolbox folder {path}{of} is not used: it lies in the workspace. A project's own tools "
                f"are in {' or '.join(PROJECT)}, and need trust."
            )
        elif os.path.isdir(path):
            boxes.append(Box(os.path.normpath(path), "user"))
        elif whose:
            warnings.append(f"The toolbox folder {path} of {whose} is not there.")
    if trusted:
        boxes += [Box(os.path.normpath(path), "project") for path in project if os.path.isdir(path)]
    return ToolboxFolders(tuple(dict.fromkeys(boxes)), tuple(warnings))


def choose_folder(tools: Tools, *, environment: Mapping[str, str], settings_file: str) -> str | None:
    """The user's folder that a new tool goes into; None where there is to be none."""
    named, _ = _read_folders(tools, environment)
    if named is None:
        return os.path.join(os.path.dirname(settings_file), OWN)
    return next((path for path in map(os.path.expanduser, named) if os.path.isabs(path)), None)


def _read_folders(tools: Tools, environment: Mapping[str, str]) -> tuple[list[str] | None, str]:
    """The folders that the user names, and where; None where nothing is said."""
    if tools.toolbox is not None:
        return [entry for entry in tools.toolbox if entry], "tools.toolbox"
    for name in ("FERRULE_TOOLBOX", "AMP_TOOLBOX"):
        if name in environment:
            return [entry for entry in environment[name].split(os.pathsep) if entry], name
    return None, ""


def _is_the_projects(path: str, roots: Sequence[str]) -> bool:
    home, real = os.path.realpath(os.path.expanduser("~")), os.path.realpath(path)
    # Whoever works in the home folder itself has their own configuration below it.
    return any(within(real, root) and not within(home, root) for root in map(os.path.realpath, roots))


Status = Literal["pending", "registered", "failed", "duplicate"]

MOST_FILES = 100
"""Of one folder."""
_AT_ONCE = 8
_TURNS = 6
"""All programs together have so many times the time of one to describe themselves."""


class ToolboxEntry(NamedTuple):
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
        answers: "ProgramAnswers | None" = None,
    ) -> None:
        """`session` is told to the tools as the thread's id.

        `trusted` are the files of the project with the contents that the user trusts: with it nothing else of a
        project is run or read, also where a file has changed since. `roots` are the folders of the workspace.

        A project's program is described once for its content: confined by `confine`, and `answers` keeps what it said.
        """
        self.entries: list[ToolboxEntry] = []
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

    async def load(self) -> SourceTools:
        """Let every program describe itself; the tools that come of it, and what could not be used."""
        if not self._boxes:
            return SourceTools(())
        looked, warnings = await asyncio.to_thread(self._look)
        self.entries = looked
        turns = asyncio.Semaphore(_AT_ONCE)
        loop = asyncio.get_running_loop()
        until = loop.time() + _TURNS * self._settings.tools.describe_seconds

        async def made(entry: ToolboxEntry) -> AnyTool | ToolboxEntry | None:
            if entry.status != "pending":
                return entry
            async with turns:
                if loop.time() >= until:
                    return entry._replace(reason="Others took so long to describe themselves that it had no turn.")
                return await self._make_tool(entry)

        tools: dict[str, AnyTool] = {}
        entries: list[ToolboxEntry] = []
        for entry, came in zip(looked, await asyncio.gather(*map(made, looked)), strict=True):
            entries += self._register(entry, came, tools)
        self.entries = entries
        warnings += [f"{entry.path}: {entry.reason}" for entry in entries if entry.status != "registered"]
        return SourceTools(tuple(tools.values()), tuple(map(clean, warnings)))

    def _register(
        self, entry: ToolboxEntry, came: AnyTool | ToolboxEntry | None, tools: dict[str, AnyTool]
    ) -> Iterator[ToolboxEntry]:
        """What has become of a file; the first of a name has it."""
        if came is None:
            return  # Markdown about something else
        if isinstance(came, ToolboxEntry):
            yield came
            return
        first = tools.get(came.name)
        if first is not None:
            reason = f"Its name, {came.name}, is taken: {first.origin} comes before it."
            yield entry._replace(status="duplicate", name=came.name, reason=reason)
            return
        tools[came.name] = came
        yield entry._replace(status="registered", name=came.name)

    async def _make_tool(self, entry: ToolboxEntry) -> AnyTool | ToolboxEntry | None:
        """The tool of a file; the entry, where it has failed."""
        path = entry.path
        stem = os.path.splitext(os.path.basename(path))[0]
        try:
            pin = await asyncio.to_thread(self._pin, entry)
            if path.endswith(".md"):
                return await asyncio.to_thread(self._subagent, path, tool_name(stem))
            description = await self._describe_program(path, pin)
        except (FailedError, ValueError) as error:
            return entry._replace(status="failed", reason=str(error))
        name = tool_name(description.name or stem)
        return ToolboxTool(path, name, description, session=self._session, pin=pin, roots=self._roots)

    async def _describe_program(self, path: str, pin: str) -> Description:
        """What a program says of itself; of a project's, what these very bytes have said before."""
        if not pin:
            return parse_description(await ask_description(path, self._settings, self._roster, self._roots))
        known = self._answers.of(pin) if self._answers is not None else None
        if known is not None:
            return parse_description(known)
        text = await ask_description(path, self._settings, self._roster, self._roots, self._confine)
        description = parse_description(text)
        if self._answers is not None:
            self._answers.keep(pin, text)
        return description

    def _pin(self, entry: ToolboxEntry) -> str:
        """The hash of a project's file: what the user trusts is that, not what may be there when it is called."""
        if entry.box.layer == "user":
            return ""
        pin = fingerprint(entry.path)
        if not pin:
            raise FailedError("It cannot be read, and so it cannot be trusted.")
        if self._trusted is not None and hash_content(self._trusted.get(entry.path)) != pin:
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

    def _look(self) -> tuple[list[ToolboxEntry], list[str]]:
        entries: list[ToolboxEntry] = []
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


def _files(box: Box) -> Iterator[ToolboxEntry]:
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
        entry = ToolboxEntry(path, box)
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


Language = Literal["bash", "zsh", "python", "node"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_NAME = "@NAME@"


def make(name: str, language: Language, folder: str) -> str:
    """Write a tool of that name into the folder, ready to run; its path. Raises ConfigError, and overwrites nothing."""
    room = MOST_CHARS - len(PREFIX)
    if not re.fullmatch(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{room - 1}}}", name):
        raise ConfigError(f"A tool cannot be called {name!r}: use letters, digits, _ and -, {room} at most.")
    with open(os.path.join(os.path.dirname(__file__), "templates", language), encoding="utf-8") as file:
        text = file.read().replace(_NAME, name)
    path = os.path.join(folder, name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(path, flags, 0o755)
    except FileExistsError as error:
        raise ConfigError(f"{error.filename} is there already; choose another name, or remove it first.") from error
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from error
    with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o755)  # whatever new files are otherwise
    return path
