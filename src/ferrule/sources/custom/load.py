"""The tools of installed packages, of the user and of the project, in this order: later ones override earlier ones."""

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ferrule.core.access import within
from ferrule.output.clean import clean
from ferrule.sources.brought import Brought
from ferrule.sources.custom.executable import Asking, load_program
from ferrule.sources.custom.places import Candidate, Place, candidates, content, is_described, project_place
from ferrule.support.beneath import describe
from ferrule.support.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Callable

    from ferrule.core.tool import AnyTool
    from ferrule.sources.custom.answers import Answers
    from ferrule.support.sandbox.profile import Wrapped

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
    answers: "Answers | None" = None,
) -> Brought:
    """All of them, by name; they override built-in tools of the same name, too.

    `folders` are the user's. `project` are folders of the project that the user trusts, and `contents` the very bytes
    of each file in them that was trusted: no other file there is used, and no other bytes run. `roots` are the folders
    that a session may write: a folder of the user's in one of them is refused, for what is there needs trust. What
    cannot be used is a warning, in the words of ah and without its `warning: `.

    Without `takes_all` a program is a tool only if a file beside it describes it, and nothing is run to find out more;
    of those in folders of `everyday`, which projects have for other reasons too, nothing is said. Without `asks` no
    program is asked now: what it has answered before is enough. `confine` and `answers` are for asking.
    """
    brought: list[Brought] = []
    if packages:
        from ferrule.sources.custom.packages import load_packages  # for sessions that take tools from packages

        brought.append(load_packages())
    outside = [folder for folder in dict.fromkeys(folders) if not _is_inside(folder, roots)]
    refused = [folder for folder in dict.fromkeys(folders) if folder not in outside and os.path.isdir(folder)]
    needs_words = not takes_all
    places = [Place(folder, needs_words=needs_words) for folder in outside]
    places += [project_place(folder, contents or {}, needs_words=needs_words) for folder in dict.fromkeys(project)]
    asking = Asking(describe_seconds, keep_env, roster, roots, confine, answers, asks=asks)
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
    return Brought(tuple(tools.values()), tuple(warnings))


def _is_inside(folder: str, roots: Sequence[str]) -> bool:
    real = os.path.realpath(folder)
    return any(within(real, os.path.realpath(root)) for root in roots)


async def _of(place: Place, asking: Asking, *, tells: bool) -> Brought:
    """The tools of one folder. Executables override modules of the same name."""
    every = candidates(place)
    mute = [one for one in every if one.kind == "program" and place.needs_words and not is_described(place, one.path)]
    found = [one for one in every if one not in mute]
    modules = [_module(one, place) for one in found if one.kind != "program"]
    room = asyncio.Semaphore(_AT_ONCE)

    async def program(path: str) -> Brought:
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
    return Brought(tuple(tool for one in (*modules, *programs) for tool in one.tools), tuple(warnings))


def _module(candidate: Candidate, place: Place) -> Brought:
    path = candidate.path
    try:
        source = content(place, path)
    except (OSError, ValueError) as error:
        problem = describe(error) if isinstance(error, OSError) else str(error)
        return Brought((), (f"failed to load {path}: {problem}",))
    if source is None:
        return Brought((), (f"failed to load {path}: it is not there any more.",))
    if candidate.kind == "python":
        from ferrule.sources.custom.module import load_module  # for sessions that have such tools

        return load_module(path, source, may_be_other=place.contents is not None)
    from ferrule.sources.custom.lua import load_lua  # as above

    return load_lua(path, source)


def _twice(brought: Sequence[Brought]) -> list[str]:
    """A warning for each name that two files of one folder share: which of them counts is hardly what was meant."""
    owners: dict[str, str] = {}
    warnings = []
    for tool in (tool for one in brought for tool in one.tools):
        if tool.name in owners:
            warnings.append(f"{tool.origin} replaces the tool {tool.name} of {owners[tool.name]}.")
        owners[tool.name] = tool.origin
    return warnings
