"""The writes that are broken at every step: each has a state before it, one after it, and a way back."""

import os
from collections.abc import Callable
from typing import NamedTuple

from tests.faults.desk import Desk

TEXT = b"".join(b"line %d of the file\n" % number for number in range(400))


class Scene(NamedTuple):
    """One write. `prepare` makes the state before it, `act` is the write, `back` takes it back."""

    prepare: Callable[[Desk], object]
    act: Callable[[Desk], object]
    back: Callable[[Desk], object]


def _file(desk: Desk, name: str, content: bytes, mode: int) -> None:
    os.makedirs(os.path.dirname(desk.path(name)), exist_ok=True)
    with open(desk.path(name), "wb") as file:
        file.write(content)
    os.chmod(desk.path(name), mode)


def _edited(desk: Desk) -> None:
    _file(desk, "tool.sh", TEXT, 0o755)
    desk.edit("tool.sh", b"line 200 of", b"row 200 of")


def _created(desk: Desk) -> None:
    _file(desk, "old.txt", b"old\n", 0o600)
    desk.write("old.txt", b"older\n")
    desk.write("new/folder/file.txt", TEXT)


def _three(desk: Desk) -> None:
    _file(desk, "one.txt", TEXT, 0o640)
    _file(desk, "two/two.txt", b"two\n", 0o644)
    desk.write("one.txt", TEXT + b"end\n")


def _batch(desk: Desk) -> None:
    desk.write_all({"one.txt": TEXT, "three/four/new.txt": b"new\n", "two/two.txt": None})


def _undo(desk: Desk) -> object:
    return desk.undo.undo_last()


def _redo(desk: Desk) -> object:
    return desk.undo.redo_last()


def _undone_creation(desk: Desk) -> None:
    _created(desk)
    desk.undo.undo_last()


SCENES = {
    "write": Scene(lambda desk: _file(desk, "a.txt", TEXT, 0o640), lambda desk: desk.write("a.txt", TEXT[::-1]), _undo),
    "edit": Scene(_edited, lambda desk: desk.edit("tool.sh", b"line 300 of", b"row of"), _undo),
    "create": Scene(_edited, lambda desk: desk.write("new/folder/file.txt", TEXT), _undo),
    "delete": Scene(_created, lambda desk: desk.write("old.txt", None), _undo),
    "move": Scene(_edited, lambda desk: desk.move("tool.sh", "bin/tool", TEXT + b"end\n"), _undo),
    "batch": Scene(_three, _batch, _undo),
    "undo-edit": Scene(_edited, _undo, _redo),
    "undo-creation": Scene(_created, _undo, _redo),
    "redo-creation": Scene(_undone_creation, _redo, _undo),
}
