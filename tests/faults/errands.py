"""Whole stories that have to happen in a process of their own; each tells at its end what it saw."""

import os
from collections.abc import Callable
from typing import Any

from ferrule.core.errors import ToolFailure
from tests.faults.desk import Desk, temporary

Errand = Callable[[str], dict[str, Any]]
HALF = bytes(150_000)
CROWD, TURNS = 32, 10


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
        desk.undo.undo_last()
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
        desk.write("file", b"first\n")
        with open(filler, "wb") as file:
            file.write(bytes(300_000))
        said = refusal(lambda: desk.write("file", HALF))
        full = desk.bytes("file")
        left = temporary(desk.root) + desk.pending()
        history = len(desk.history()[0])
        os.unlink(filler)
        desk.write("file", HALF)
        desk.undo.undo_last()
        return {
            "said": said,
            "kept": full == b"first\n",
            "left": left,
            "history": history,
            "undone": desk.bytes("file") == b"first\n",
        }


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


def crowd(home: str) -> dict[str, Any]:
    """Many processes edit one file at the same time, each its own line of it, again and again."""
    children = []
    for slot in range(CROWD):
        child = os.fork()
        if not child:
            with Desk(home) as desk:
                for turn in range(TURNS):
                    desk.edit("shared.txt", line(slot, turn), line(slot, turn + 1))
            os._exit(0)
        children.append(child)
    return {"ended": [os.waitpid(child, 0)[1] for child in children]}


def line(slot: int, turn: int) -> bytes:
    """A line of the shared file; its length changes with the turn, so that the lines behind it move."""
    return b"slot %d: %s.\n" % (slot, b"x" * (1 + turn * 7 % 13))


def shared(turn: int) -> bytes:
    """The shared file after so many turns of everybody."""
    return b"".join(line(slot, turn) for slot in range(CROWD))


def strangers(home: str) -> dict[str, Any]:
    """The folder is ours, its files are somebody else's."""
    with Desk(home) as desk:
        said = refusal(lambda: desk.write("theirs", b"new\n"))
        written = desk.write("shared", b"new\n")
        status = os.stat(desk.path("shared"))
        return {
            "said": said,
            "theirs": desk.bytes("theirs") == b"old\n",
            "shared": desk.bytes("shared") == b"new\n",
            "mode": status.st_mode & 0o7777,
            "notes": written.notes,
        }


def refusal(write: Callable[[], object]) -> str:
    """What a write that must fail says."""
    try:
        write()
    except ToolFailure as failure:
        return failure.message
    return "It was written."


ERRANDS: dict[str, Errand] = {
    "crowd": crowd,
    "full-disk": full_disk,
    "full-state": full_state,
    "read-only": read_only,
    "strangers": strangers,
}
