"""Entries of the journal in words."""

import os

import pytest

from ferrule.checkpoints.undo import entry_words
from ferrule.files.journal import FileChange, JournalEntry, NodeChange


def files(*names):
    return tuple(
        FileChange(path=f"/w/{name}", temp="", before=None, after=None, start=0, old=0, new=0) for name in names
    )


def nodes(count):
    return tuple(NodeChange(f"/w/{number}", None, None) for number in range(count))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param(JournalEntry(id="1", kind="edit", files=files("a")), "edit of a", id="one file"),
        pytest.param(
            JournalEntry(id="1", kind="patch", files=files(*"abcdef")), "patch of a, b, c, d, e, f", id="some"
        ),
        pytest.param(
            JournalEntry(id="1", kind="patch", files=files(*"abcdefgh")),
            "patch of a, b, c, d, e, f and 2 more",
            id="many",
        ),
        pytest.param(
            JournalEntry(id="1", kind="rewind", files=files("a"), nodes=nodes(1)), "rewind of a, 0", id="a rewind"
        ),
        pytest.param(
            JournalEntry(id="1", kind="command", about="npm run fmt", nodes=nodes(3)),
            "command `npm run fmt`: 3 files",
            id="a command",
        ),
        pytest.param(
            JournalEntry(id="1", kind="command", about="for x in a b\ndo\n  touch $x\ndone", nodes=nodes(1)),
            "command `for x in a b do touch $x done`: 1 file",
            id="lines",
        ),
        pytest.param(
            JournalEntry(id="1", kind="command", about="x" * 200, nodes=nodes(1)),
            f"command `{'x' * 79}…`: 1 file",
            id="long",
        ),
    ],
)
def test_an_entry_is_named_by_its_files_or_by_its_command(entry, words):
    assert entry_words(entry, os.path.basename) == words
