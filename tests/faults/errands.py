"""Whole stories that have to happen in a process of their own; each tells at its end what it saw."""

import os
from collections.abc import Callable
from typing import Any

from ferrule.core.errors import ToolFailure
from tests.faults.desk import Desk, temporary

Errand = Callable[[str], dict[str, Any]]
HALF = bytes(150_000)


def full_disk(home: str) -> dict[str, Any]:
    """The workspace has room for one copy of a file and not for two; then room is made."""
    with Desk(home) as desk:
        filler = desk.path("filler")
        with open(desk.path("file"), "wb") as file:
            file.write(HALF + b"old\n")
        with open(filler, "wb") as file:
            file.write(HALF)
        said = refusal(lambda: desk.edit("file", b"old", b"new"))
        full = desk.bytes("file")
        left = temporary(desk.root)
        os.unlink(filler)
        desk.edit("file", b"old", b"new")
        edited = desk.bytes("file")
        desk.undo.back()
        return {
            "said": said,
            "kept": full == HALF + b"old\n",
            "left": left,
            "pending": desk.pending(),
            "edited": edited == HALF + b"new\n",
            "undone": desk.bytes("file") == HALF + b"old\n",
        }


def full_state(home: str) -> dict[str, Any]:
    """The journal has no room for what a write replaces; then room is made."""
    with Desk(home) as desk:
        filler = os.path.join(home, "journal", "filler")
        desk.write("file", b"old\n")
        with open(filler, "wb") as file:
            file.write(bytes(250_000))
        said = refusal(lambda: desk.write("file", HALF))
        full = desk.bytes("file")
        left = temporary(desk.root) + desk.pending()
        history = len(desk.history()[0])
        os.unlink(filler)
        desk.write("file", HALF)
        desk.undo.back()
        return {"said": said, "kept": full == b"old\n", "left": left, "history": history, "undone": desk.bytes("file") == b"old\n"}


def read_only(home: str) -> dict[str, Any]:
    """Nothing in the workspace can be written; every kind of write says so and leaves nothing."""
    with Desk(home) as desk:
        said = [
            refusal(lambda: desk.write("file", b"new\n")),
            refusal(lambda: desk.write("made/new.txt", b"new\n")),
            refusal(lambda: desk.write("file", None)),
        ]
        return {
            "said": said,
            "kept": desk.bytes("file") == b"old\n",
            "names": os.listdir(desk.root),
            "pending": desk.pending(),
            "history": len(desk.history()[0]),
        }


def refusal(write: Callable[[], object]) -> str:
    """What a write that must fail says."""
    try:
        write()
    except ToolFailure as failure:
        return failure.message
    return "It was written."


ERRANDS: dict[str, Errand] = {"full-disk": full_disk, "full-state": full_state, "read-only": read_only}
