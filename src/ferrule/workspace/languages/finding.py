"""Finding what a language server needs: its program, the folder of its project, and the packages of that.

Nothing of the workspace is ever started: a program that lies in it, or is linked into it, counts as not there.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ferrule.core.access import within
from ferrule.support.programs import lies_in, program
from ferrule.workspace.formatters import upwards
from ferrule.workspace.languages.table import Row

_LISTED = 2000
"""So many names of a folder are looked through for a marker like `*.sln`."""
_TOOLCHAINS = 100
_VERSION_SECONDS = 20.0
_versions: dict[tuple[str, int], int] = {}


def find_program(row: Row, roots: Sequence[str]) -> str | None:
    """Where the server's program is: on PATH, beside the Python that runs this, or where the user says."""
    if os.path.isabs(row.program):
        candidates = [row.program]
    elif os.sep in row.program or row.program in {"", os.curdir, os.pardir}:
        return None
    else:
        found = program(row.program, outside=roots)
        outside = list(roots)
        while found is not None and is_stand_in(found):
            outside.append(os.path.dirname(found))
            found = program(row.program, outside=outside)
        if found is not None:
            return found
        folder = os.path.join(sys.prefix, "Scripts" if os.name == "nt" else "bin")
        candidates = [os.path.join(folder, row.program + ".exe" * (os.name == "nt"))]
    for path in candidates:
        if os.path.isfile(path) and os.access(path, os.X_OK) and not lies_in(path, roots):
            return path
    return None


def is_stand_in(path: str) -> bool:
    """Is it rustup under another name, while no toolchain has the program which that would start?"""
    rustup = os.path.join(os.path.dirname(os.path.realpath(path)), "rustup" + ".exe" * (os.name == "nt"))
    try:
        if not os.path.samefile(path, rustup):  # a link to it, or the same file under two names
            return False
    except OSError:
        return False
    toolchains = os.path.join(os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup"), "toolchains")
    try:
        names = sorted(os.listdir(toolchains))[:_TOOLCHAINS]
    except OSError:
        names = []
    return not any(os.path.isfile(os.path.join(toolchains, name, "bin", os.path.basename(path))) for name in names)


async def is_new_enough(row: Row, path: str) -> bool:
    """Is it the program that the row means? Where that depends on its version it is asked for it, once."""
    if not row.least_version:
        return True
    try:
        key = (path, os.stat(path).st_mtime_ns)
    except OSError:
        return False
    if key not in _versions:
        _versions[key] = await _version(path)
    return _versions[key] >= row.least_version


async def _version(path: str) -> int:
    from ferrule.support.environment import quiet_environment  # for the few programs that are asked
    from ferrule.support.pipe import pipe

    try:
        said = await pipe(
            [path, "--version"],
            b"",
            cwd=os.path.dirname(path),
            env=quiet_environment(os.environ),
            seconds=_VERSION_SECONDS,
            limit_bytes=4096,
        )
    except OSError:
        return 0
    found = re.search(rb"(\d+)\.\d", said.stdout)
    return int(found[1]) if found and not said.stopped and len(found[1]) < 6 else 0


def find_root(row: Row, path: str, top: str) -> str:
    """The nearest folder above the file, up to `top`, where a project of the row begins; else `top`."""
    for folder in upwards(os.path.dirname(path), top):
        if not within(folder, top):
            break
        if has_marker(row, folder):
            return folder
    return top


def has_marker(row: Row, folder: str) -> bool:
    """Does a project of the row begin in that folder?"""
    return any(_has(folder, marker) for marker in row.markers)


def _has(folder: str, marker: str) -> bool:
    if "*" not in marker:
        return os.path.lexists(os.path.join(folder, marker))
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(marker[1:]) for entry, _ in zip(entries, range(_LISTED), strict=False))
    except OSError:
        return False


def search_path(roots: Sequence[str]) -> str:
    """PATH without what is relative and what lies in the workspace: a server starts programs by their names too."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(one for one in folders if os.path.isabs(one) and not lies_in(one, roots))


def python_configuration(root: str, roots: Sequence[str]) -> dict[str, Any]:
    """What servers for Python are told of the project's virtual environment, which is looked at and never run.

    Those of pyright's kind would run the interpreter that they are given, or find: they are given one from outside.
    """
    settings: dict[str, Any] = {}
    interpreter = program("python3", outside=roots) or program("python", outside=roots)
    if interpreter is None and not lies_in(sys.executable, roots):
        interpreter = sys.executable
    # Rather none than the one that it would find in the project.
    settings["pythonPath"] = settings["defaultInterpreterPath"] = interpreter or os.devnull
    venv = next((path for name in (".venv", "venv") if os.path.isdir(path := os.path.join(root, name))), "")
    found: dict[str, Any] = {"python": settings}
    if venv:
        packages = list(_site_packages(venv))
        settings["analysis"] = {"extraPaths": packages}
        found["basedpyright"] = {"analysis": {"extraPaths": packages}}
        found["ty"] = {"configuration": {"environment": {"python": venv}}}
    return found


def _site_packages(venv: str) -> Iterator[str]:
    windows = os.path.join(venv, "Lib", "site-packages")
    if os.name == "nt" and os.path.isdir(windows):
        yield windows
    try:
        names = sorted(os.listdir(os.path.join(venv, "lib")))
    except OSError:
        return
    for name in names:
        path = os.path.join(venv, "lib", name, "site-packages")
        if name.startswith(("python", "pypy")) and os.path.isdir(path):
            yield path
