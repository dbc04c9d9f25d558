"""Where tools of the user and of the project are, and which files of such a folder are one."""

import os
import stat
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ferrule.settings import Settings, settings_path
from ferrule.support.beneath import READ, read_regular

LIMIT_BYTES = 1 << 20
"""Of a module, or of what is written about an executable."""

Kind = Literal["python", "lua", "program"]
_ORDER: tuple[Kind, ...] = ("python", "lua", "program")
"""Within one folder; a later one overrides an earlier one of the same name."""


class Place(NamedTuple):
    """A folder of tools; of a project's, only what was trusted is used."""

    folder: str
    contents: Mapping[str, bytes] | None = None
    """The trusted files of a project by their paths; None for the user's own folder."""
    needs_words: bool = False
    """Is a program a tool only if a file beside it describes it?"""


class Candidate(NamedTuple):
    """A file that may be a tool."""

    path: str
    kind: Kind


def user_folders(settings: Settings) -> tuple[str, ...]:
    """The folders of the user's own tools: `tools` beside the settings file, and those that the settings name."""
    beside = os.path.dirname(settings_path())
    named = (os.path.join(beside, os.path.expanduser(folder)) for folder in settings.tools.folders)
    return (os.path.join(beside, "tools"), *(os.path.normpath(folder) for folder in named))


def project_place(folder: str, contents: Mapping[str, bytes], *, needs_words: bool = False) -> Place:
    """The folder with what was trusted of it."""
    folder = os.path.normpath(folder)
    inside = {os.path.normpath(path): raw for path, raw in contents.items()}
    return Place(folder, {path: raw for path, raw in inside.items() if os.path.dirname(path) == folder}, needs_words)


def candidates(place: Place) -> list[Candidate]:
    """The files that may be tools: modules by name, then executables by name. A folder that is not there has none."""
    if place.contents is None:
        try:
            names = sorted(os.listdir(place.folder))
        except OSError:
            return []
    else:
        names = sorted(os.path.basename(path) for path in place.contents)
    found = []
    for name in names:
        path = os.path.join(place.folder, name)
        kind = _kind(path, name, follow=place.contents is None)
        if kind is not None:
            found.append(Candidate(path, kind))
    return sorted(found, key=lambda one: _ORDER.index(one.kind))


def is_described(place: Place, path: str) -> bool:
    """Is there a file beside a program that says what it does?"""
    words = f"{path}.md"
    return os.path.exists(words) if place.contents is None else words in place.contents


def content(place: Place, path: str) -> bytes | None:
    """What a file holds, None where it is not there: of a project the very bytes that were trusted.

    Raises ValueError with a reason where it cannot be used, and OSError where it cannot be read.
    """
    if place.contents is not None:
        return place.contents.get(path)
    try:
        raw = read_regular(os.open(path, READ), LIMIT_BYTES)
    except FileNotFoundError:
        return None
    if raw is None:
        raise ValueError("it is not a regular file.")
    if len(raw) > LIMIT_BYTES:
        raise ValueError(f"it is larger than {LIMIT_BYTES:,} bytes.")
    return raw


def _kind(path: str, name: str, *, follow: bool) -> Kind | None:
    if name.startswith((".", "_")) or name.endswith(("~", ".md")):
        return None
    try:
        mode = os.stat(path, follow_symlinks=follow).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode):
        return None
    if name.endswith(".py"):
        return "python"
    if name.endswith(".lua"):
        return "lua"
    return "program" if mode & 0o111 else None
