"""Load the tools of installed packages, the user and the project; later sources override earlier ones.

Installed packages bring tools through the entry-point group `ferrule.tools`.

The descriptions that programs give of themselves are kept by the hash of their content, so no program is asked
twice.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.output.clean import clean
from ferrule.permissions.trust import StateFile
from ferrule.sources.custom.executable import (
    Candidate,
    ProbeOptions,
    ToolFolder,
    candidates,
    content,
    is_described,
    load_program,
    project_place,
)
from ferrule.sources.custom.module import foreign, load_module, make_tools, resolve_offer
from ferrule.sources.function import SourceTools
from ferrule.system.folder import describe
from ferrule.system.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Callable

    from ferrule.core.tool import AnyTool
    from ferrule.sandbox.profile import Wrapped


_AT_ONCE = 8
"""Programs that are asked what they are at the same moment."""


async def load(
    *,
    packages: bool = True,
    folders: Sequence[str] = (),
    project: Sequence[str] = (),
    contents: Mapping[str, bytes] | None = None,
    roots: Sequence[str] = (),
    describe_seconds: float = 5.0,
    keep_env: Collection[str] = (),
    roster: Roster | None = None,
    takes_all: bool = True,
    everyday: Collection[str] = (),
    asks: bool = True,
    confine: "Callable[[Sequence[str], str], Wrapped | None] | None" = None,
    answers: "ProgramAnswers | None" = None,
) -> SourceTools:
    """All of them, by name; they override built-in tools of the same name, too.

    `folders` are the user's. `project` are folders of the project that the user trusts, and `contents` the very bytes
    of each file in them that was trusted: no other file there is used, and no other bytes run. `roots` are the folders
    that a session may write: a folder of the user's in one of them is refused, for what is there needs trust. What
    cannot be used is a warning, in the words of ah and without its `warning: `.

    Without `takes_all` a program is a tool only if a file beside it describes it, and nothing is run to find out more;
    of those in folders of `everyday`, which projects have for other reasons too, nothing is said. Without `asks` no
    program is asked now: what it has answered before is enough. `confine` and `answers` are for asking.
    """
    brought: list[SourceTools] = []
    if packages:
        brought.append(load_packages())
    outside = [folder for folder in dict.fromkeys(folders) if not _is_inside(folder, roots)]
    refused = [folder for folder in dict.fromkeys(folders) if folder not in outside and os.path.isdir(folder)]
    needs_words = not takes_all
    places = [ToolFolder(folder, needs_words=needs_words) for folder in outside]
    places += [project_place(folder, contents or {}, needs_words=needs_words) for folder in dict.fromkeys(project)]
    asking = ProbeOptions(describe_seconds, keep_env, roster, roots, confine, answers, asks=asks)
    brought += [await _of(place, asking, tells=place.folder not in everyday) for place in places]
    tools: dict[str, AnyTool] = {}
    for tool in (tool for one in brought for tool in one.tools):
        tools.pop(tool.name, None)
        tools[tool.name] = tool
    told = [
        f"the tools in {folder} are not used: they are inside of the workspace and not trusted." for folder in refused
    ]
    told += [warning for one in brought for warning in one.warnings]
    warnings = dict.fromkeys(map(clean, told))
    return SourceTools(tuple(tools.values()), tuple(warnings))


def _is_inside(folder: str, roots: Sequence[str]) -> bool:
    real = os.path.realpath(folder)
    return any(within(real, os.path.realpath(root)) for root in roots)


async def _of(place: ToolFolder, asking: ProbeOptions, *, tells: bool) -> SourceTools:
    """The tools of one folder. Executables override modules of the same name."""
    every = candidates(place)
    mute = [one for one in every if one.kind == "program" and place.needs_words and not is_described(place, one.path)]
    found = [one for one in every if one not in mute]
    modules = [_module(one, place) for one in found if one.kind != "program"]
    room = asyncio.Semaphore(_AT_ONCE)

    async def program(path: str) -> SourceTools:
        async with room:
            return await load_program(path, place, asking)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(program(one.path)) for one in found if one.kind == "program"]
    programs = [task.result() for task in tasks]
    warnings = [*_twice(modules), *_twice(programs)]
    for one in (*modules, *programs):
        warnings += one.warnings
    if mute and tells:
        first = os.path.basename(mute[0].path)
        others = f" and {len(mute) - 1} more" if len(mute) > 1 else ""
        warnings.append(
            f"{mute[0].path}{others}: no tool, for nothing describes it. Write what it does into {first}.md beside it."
        )
    return SourceTools(tuple(tool for one in (*modules, *programs) for tool in one.tools), tuple(warnings))


def _module(candidate: Candidate, place: ToolFolder) -> SourceTools:
    path = candidate.path
    try:
        source = content(place, path)
    except (OSError, ValueError) as error:
        problem = describe(error) if isinstance(error, OSError) else str(error)
        return SourceTools((), (f"failed to load {path}: {problem}",))
    if source is None:
        return SourceTools((), (f"failed to load {path}: it is not there any more.",))
    if candidate.kind == "python":
        return load_module(path, source, may_be_other=place.contents is not None)
    from ferrule.sources.custom.lua import load_lua  # as above

    return load_lua(path, source)


def _twice(brought: Sequence[SourceTools]) -> list[str]:
    """A warning for each name that two files of one folder share: which of them counts is hardly what was meant."""
    owners: dict[str, str] = {}
    warnings = []
    for tool in (tool for one in brought for tool in one.tools):
        if tool.name in owners:
            warnings.append(f"{tool.origin} replaces the tool {tool.name} of {owners[tool.name]}.")
        owners[tool.name] = tool.origin
    return warnings


GROUP = "ferrule.tools"


def load_packages() -> SourceTools:
    """All of them. An entry is a tool, a record, a list of these, or a function that returns one of all that."""
    if not _is_any():
        return SourceTools(())
    from importlib.metadata import entry_points  # 20 ms that only whoever has such a package pays

    tools: list[AnyTool] = []
    warnings: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda one: (one.dist.name if one.dist else "", one.name)):
        origin = f"{entry.dist.name if entry.dist else 'a package'}:{entry.name}"
        offer = None
        with foreign() as problems:
            offer = resolve_offer(entry.load())
        if problems:
            warnings.append(f"failed to load {origin}: {problems[0]}")
            continue
        offered = list(offer) if isinstance(offer, list | tuple) else [offer]
        brought = make_tools(offered, origin, none="its list is empty.")
        tools += brought.tools
        warnings += brought.warnings
    return SourceTools(tuple(tools), tuple(warnings))


def _is_any() -> bool:
    """Does any installed package name the group? Mostly none does, and reading these files is quick."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            # Every Python has the place of a zip in its path, and hardly any has the zip.
            if folder.endswith((".zip", ".whl")) and os.path.isfile(folder):
                return True
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and _names_it(os.path.join(folder, name)):
                return True
    return False


def _names_it(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return GROUP.encode() in file.read(1 << 20)
    except OSError:
        return False


_MOST = 1000
_LONGEST_CHARS = 20_000
"""A longer answer is not kept: it is asked for again."""


class _AnswerCache(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: the hash of a program's content → what it has answered, the newest last."""

    version: Literal[1] = 1
    lines: dict[str, str] = {}


class ProgramAnswers:
    """The answers of this user's programs, kept in the state folder: what they said to `--help`, or to `describe`."""

    def __init__(self, state_folder: str, question: Literal["help", "describe"] = "help") -> None:
        self._kept = StateFile(os.path.join(state_folder, "tools", f"{question}.json"), _AnswerCache)
        self._lines: dict[str, str] | None = None

    def of(self, content: str) -> str | None:
        """What the program with this content has answered; None where it was never asked."""
        if self._lines is None:
            self._lines = self._kept.read().lines
        return self._lines.get(content)

    def keep(self, content: str, line: str) -> None:
        """Keep its answer, if only for the session."""
        if len(line) > _LONGEST_CHARS:
            return
        if self._lines is not None:
            self._lines[content] = line
        with contextlib.suppress(ConfigError):
            self._kept.change(lambda kept: _AnswerCache(lines=dict([*kept.lines.items(), (content, line)][-_MOST:])))
