"""Making sure of what a search has found, while commands run that could swap a folder for a link under it."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from ferrule.core.errors import FerruleError
from ferrule.core.tool import Context
from ferrule.workspace.paths import Jail, Place

_MOST_BYTES = 32 << 20


class Line(Protocol):
    """A line of a file, as a search program printed it."""

    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def text(self) -> str: ...


L = TypeVar("L", bound=Line)


def is_shaky(ctx: Context) -> bool:
    """Does a task of this session run? Only one can change folders while a search is under way."""
    module = sys.modules.get("ferrule.support.tasks")  # whoever has tasks has loaded it
    if module is None:
        return False
    tasks = ctx.need(module.Tasks)
    return any(task.status == "running" for task in tasks.list())


def confirmed(found: Iterable[L], root: str, ctx: Context, *, parts: bool = False) -> list[L]:
    """The lines, or the `parts` of them, that are really there, read once more without following any link."""
    lines_of = _reader(root, ctx)
    return [hit for hit in found if _stands(hit, lines_of(hit.path), parts=parts)]


def there(names: Iterable[str], root: str, ctx: Context) -> list[str]:
    """Those of the names that are really there, looked up once more without following any link."""
    jail, kept = ctx.need(Jail), []
    for name in names:
        with contextlib.suppress(OSError, FerruleError):
            place = jail.place(os.path.normpath(os.path.join(root, name)))
            with place.folder() as folder:
                folder.status(place.name)
                kept.append(name)
    return kept


def _stands(hit: Line, lines: list[str], *, parts: bool) -> bool:
    text = hit.text.rstrip("\r\n").rstrip("�")  # a line may have been cut inside of a character
    if not 0 < hit.line <= len(lines):
        return False
    line = lines[hit.line - 1]
    return text in line if parts else line.startswith(text)


def _contents(place: Place) -> bytes:
    with place.folder() as folder:
        return folder.read(place.name, _MOST_BYTES) or b""


def _reader(root: str, ctx: Context) -> Callable[[str], list[str]]:
    jail = ctx.need(Jail)
    known: dict[str, list[str]] = {}

    def lines(path: str) -> list[str]:
        if path not in known:
            try:
                place = jail.place(os.path.normpath(os.path.join(root, path)))
                known[path] = _contents(place).decode(errors="replace").split("\n")
            except (OSError, FerruleError):
                known[path] = []
        return known[path]

    return lines
