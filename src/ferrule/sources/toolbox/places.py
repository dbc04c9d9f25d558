"""Where toolboxes are: folders that the user names, and those of a trusted project."""

import os
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ferrule.core.access import within
from ferrule.settings import Tools

Layer = Literal["user", "project"]

PROJECT = (os.path.join(".agents", "tools"), os.path.join(".amp", "toolbox"))
"""Where a project keeps its own, below its root."""
OWN = "toolbox"
"""The folder beside the user's settings file."""


class Box(NamedTuple):
    """One folder of executables."""

    path: str
    layer: Layer


class Places(NamedTuple):
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
) -> Places:
    """The user's folders, then those of `project`, where that is trusted.

    The setting `tools.toolbox` counts before FERRULE_TOOLBOX, and that before AMP_TOOLBOX; an empty one means none.
    `roots` are the folders of the workspace: what lies in there is the project's, whoever names it.
    """
    named, whose = _named(tools, environment)
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
    return Places(tuple(dict.fromkeys(boxes)), tuple(warnings))


def preferred(tools: Tools, *, environment: Mapping[str, str], settings_file: str) -> str | None:
    """The user's folder that a new tool goes into; None where there is to be none."""
    named, _ = _named(tools, environment)
    if named is None:
        return os.path.join(os.path.dirname(settings_file), OWN)
    return next((path for path in map(os.path.expanduser, named) if os.path.isabs(path)), None)


def _named(tools: Tools, environment: Mapping[str, str]) -> tuple[list[str] | None, str]:
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
