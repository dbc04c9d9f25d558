"""Entries of the journal in words: which files a write was of, or which command changed how many."""

from collections.abc import Callable, Sequence

from ferrule.workspace.journal import Entry

_MOST_NAMES = 6
_COMMAND_CHARS = 80


def entry_words(entry: Entry, shown: Callable[[str], str]) -> str:
    """Such as `edit of src/a.py`, or ``command `npm run fmt`: 3 files``."""
    if entry.kind == "command":
        return f"command {command_words(entry)}: {counted(len(entry.paths), 'file')}"
    return f"{entry.kind} of {names_of(entry.paths, shown)}"


def command_words(entry: Entry) -> str:
    """The command line, on one line of this many characters at most."""
    words = " ".join(entry.about.split())
    return f"`{words if len(words) <= _COMMAND_CHARS else words[: _COMMAND_CHARS - 1] + '…'}`"


def names_of(paths: Sequence[str], shown: Callable[[str], str]) -> str:
    """The names; of many, some and how many more there are."""
    more = f" and {len(paths) - _MOST_NAMES:,} more" if len(paths) > _MOST_NAMES else ""
    return ", ".join(map(shown, paths[:_MOST_NAMES])) + more


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
