"""Programs that lead to one of the project's own environment: `uv run`, `npx`, `.venv/bin/…` and their like.

Such a program is what the project has installed for itself. It has the standing of the same program on the PATH where
that is one of the development commands, which run the project's code anyway, and no standing elsewhere.
"""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ferrule.permissions.shell.line import Simple
from ferrule.permissions.shell.scene import Scene

_FLAGS = {
    (
        "uv",
        "run",
    ): r"-q|-v|--quiet|--verbose|--frozen|--locked|--no-sync|--offline|--all-extras|--all-groups|--no-dev|--dev",
    ("poetry", "run"): r"",
    ("pdm", "run"): r"",
    ("pipenv", "run"): r"",
    ("npx",): r"--no-install|--no|--offline",
    ("bundle", "exec"): r"",
    ("pnpm", "exec"): r"",
    ("yarn", "run"): r"",
    ("yarn", "exec"): r"",
    ("yarn",): r"",
    ("pnpm",): r"",
}
"""What leads to a program of the environment, and its flags that change nothing about which program that is."""
_LOCAL = frozenset({"npx", "pnpm", "yarn"})
"""These take a program from elsewhere where the project has none of that name."""
_BINS = os.path.join("node_modules", ".bin")


class Led(NamedTuple):
    """The program that is meant, with its words."""

    words: tuple[str, ...]
    leader: str
    """What has to be found outside of the workspace; empty where the program itself is named by its path."""


def led(words: Sequence[str], cwd: str, scene: Scene) -> Led | None:
    """The command of the project's environment that the words lead to, if they lead to one."""
    if "/" in words[0]:
        name = _of_environment(words[0], cwd, scene)
        return Led((name, *words[1:]), "") if name else None
    for lead, flags in _FLAGS.items():
        if tuple(words[: len(lead)]) != lead:
            continue
        at = len(lead)
        while at < len(words) and flags and re.fullmatch(flags, words[at]):
            at += 1
        rest = tuple(words[at:])
        if not rest or "/" in rest[0] or rest[0].startswith("-"):
            return None
        if lead[0] in _LOCAL and not _is_local(rest[0], cwd, scene):
            return None
        return Led(rest, lead[0])
    return None


_ACTIVATION = r"\s*((?:source|\.)\s+([\w./-]+/bin/activate))\s*(?:&&|;|\n)\s*(?=\S)"


class Activation(NamedTuple):
    """A line that begins with the activation of an environment of the project."""

    source: str
    """The command that activates it."""
    folder: str
    """Where its programs lie."""
    rest: str
    """The line behind it."""


def activation(command: str, cwd: str, scene: Scene) -> Activation | None:
    """What a line activates first, if that is an environment of the project: then its programs come before others."""
    found = re.match(_ACTIVATION, command)
    if found is None or not _of_environment(found[2], cwd, scene, runs=False):
        return None
    folder = os.path.dirname(os.path.normpath(os.path.join(cwd, found[2])))
    return Activation(found[1], folder, command[found.end() :])


def within_environment(simple: Simple, folder: str) -> Simple:
    """The command with its program by its path, where the environment has it."""
    words = simple.stripped or simple.words
    if not words or not words[0].known or "/" in words[0].text:
        return simple
    path = os.path.join(folder, words[0].text)
    if not os.path.lexists(path):
        return simple
    named = words[0]._replace(text=path)
    return simple._replace(
        words=tuple(named if word is words[0] else word for word in simple.words), stripped=(named, *words[1:])
    )


def _of_environment(program: str, cwd: str, scene: Scene, *, runs: bool = True) -> str:
    """The plain name of a program that is named by its path in an environment of the project; empty for any other."""
    path = os.path.normpath(os.path.join(cwd, program))
    folder, name = os.path.split(path)
    straight = os.path.normpath(os.path.join(os.path.realpath(cwd), os.path.dirname(program)))
    if ".." in program.split("/") or os.path.realpath(folder) != straight or not scene.inside(straight):
        return ""
    if not (_is_program(path) if runs else os.path.isfile(path) and scene.inside(os.path.realpath(path))):
        return ""
    above, last = os.path.split(folder)
    virtual = last == "bin" and os.path.isfile(os.path.join(above, "pyvenv.cfg"))
    installed = last == "bin" and os.path.isfile(os.path.join(above, "autoload.php"))
    return name if virtual or installed or folder.endswith(os.sep + _BINS) else ""


def _is_local(name: str, cwd: str, scene: Scene) -> bool:
    """Is there a program of that name among those of the nearest project, so that none is fetched?"""
    folder = os.path.realpath(cwd)
    while scene.inside(folder):
        if any(os.path.lexists(os.path.join(folder, one)) for one in ("package.json", "node_modules")):
            bins = os.path.join(folder, _BINS)
            return scene.inside(os.path.realpath(bins)) and _is_program(os.path.join(bins, name))
        folder = os.path.dirname(folder)
    return False


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
