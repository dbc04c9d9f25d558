"""Which folders a tool makes again: no checkpoint keeps them, and a command that is seen to delete one asks."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase

from ferrule.core.access import within

REMADE: tuple[str, ...] = (
    ".angular",
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".zig-cache",
    "DerivedData",
    "__pycache__",
    "bower_components",
    "dist-newstyle",
    "elm-stuff",
    "node_modules",
    "vendor/bundle",
    "zig-cache",
)
"""Names that nobody but a tool gives a folder; one with a slash is the end of a path."""

MADE_AGAIN = "a tool makes it again"
"""Why such a folder is left out."""
_NAMED = 5
CACHES: tuple[str, ...] = (".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__")
"""Those that come again by themselves, at the next run: who deletes a folder of sources loses nothing with them."""

BESIDE: Mapping[str, tuple[str, ...]] = {
    ".build": ("Package.swift",),
    ".cache": ("gatsby-config.*",),
    ".output": ("nuxt.config.*",),
    "Pods": ("Podfile",),
    "_build": ("mix.exs", "rebar.config", "dune-project"),
    "build": ("build.gradle", "build.gradle.kts", "pubspec.yaml"),
    "cmake-build-debug": ("CMakeLists.txt",),
    "cmake-build-release": ("CMakeLists.txt",),
    "dist": ("package.json", "pyproject.toml", "setup.py", "setup.cfg"),
    "obj": ("*.csproj", "*.fsproj", "*.vbproj"),
    "target": ("Cargo.toml", "pom.xml", "build.sbt", "project.clj"),
    "vendor": ("composer.json",),
}
"""Names that some projects have for sources too: a tool makes them only beside a file that says so, as patterns.

`build` beside package.json is not among them: many projects keep the scripts of their build there.
"""

HOLDING: Mapping[str, tuple[str, ...]] = {
    "build": ("CMakeCache.txt", ".ninja_log"),
    "env": ("pyvenv.cfg",),
    "venv": ("pyvenv.cfg",),
    "virtualenv": ("pyvenv.cfg",),
}
"""The same, known by a file that the tool has left inside."""


def is_remade(
    folder_path: str, siblings: Collection[str], *, inside: Collection[str] = (), is_tracked: bool = False
) -> bool:
    """Would a tool make this folder again? `siblings` are the names beside it, `inside` those in it, where known.

    `is_tracked`: git tracks something in it, so it is the project's own, whatever it is called. Who does not know
    that says no: for a checkpoint to leave a folder out, both must be asked; for a question it is enough to wonder.
    The folder of the workspace itself is never asked about: its name is the user's choice.
    """
    if is_tracked:
        return False
    above, name = os.path.split(os.path.normpath(folder_path))
    if name in REMADE or f"{os.path.basename(above)}/{name}" in REMADE:
        return True
    if any(fnmatchcase(one, pattern) for pattern in BESIDE.get(name, ()) for one in siblings):
        return True
    return any(one in inside for one in HOLDING.get(name, ()))


def is_left_out(path: str, roots: Sequence[str], others: Sequence[str] = (), *, large_bytes: int) -> bool:
    """Would a checkpoint of these folders leave out what lies here now? `others` are written too, and never kept.

    Files of more than `large_bytes` are left out too.
    """
    root = next((root for root in roots if within(path, root)), None)
    if root is None:
        return any(within(path, other) for other in others)
    folder = root
    for name in os.path.relpath(path, root).split(os.sep):
        folder = os.path.join(folder, name)
        if folder != root and _is_remade_here(folder):
            return True
    try:
        return os.path.isfile(path) and os.path.getsize(path) > large_bytes
    except OSError:  # gone since
        return False


def _is_remade_here(folder: str) -> bool:
    name = os.path.basename(folder)
    pair = f"{os.path.basename(os.path.dirname(folder))}/{name}"
    if not {name, pair}.intersection((*REMADE, *BESIDE, *HOLDING)) or not os.path.isdir(folder):
        return False
    return is_remade(folder, _names(os.path.dirname(folder)), inside=_names(folder) if name in HOLDING else ())


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def left_out_words(left_out: Mapping[str, str], shown: Callable[[str], str]) -> str:
    """What checkpoints leave out: the names of folders that tools make again, and every other path with the reason."""
    again = sorted({os.path.basename(path) for path, why in left_out.items() if why == MADE_AGAIN})
    others = sorted(f"{shown(path)} ({why})" for path, why in left_out.items() if why != MADE_AGAIN)
    parts = [f"{_some(again)}, which tools make again"] if again else []
    parts += [_some(others)] if others else []
    return "; ".join(parts)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
