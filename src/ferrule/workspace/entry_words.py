"""Entries of the journal in words: which files a write was of, or which command changed how many."""

from collections.abc import Callable, Sequence

from ferrule.workspace.journal import Entry, NodeChange

_MOST_NAMES = 6
_COMMAND_CHARS = 80


def entry_words(entry: Entry, shown: Callable[[str], str]) -> str:
    """Such as `edit of src/a.py`, or ``command `npm run fmt`: 3 files``."""
    files = files_of(entry)
    if entry.kind == "command":
        what = counted(len(files), "file") if files or not entry.git else "only git's own data"
        return f"command {command_words(entry)}: {what}"
    return f"{entry.kind} of {names_of(files, shown)}"


def files_of(entry: Entry) -> tuple[str, ...]:
    """What it changed, without the folders of it; the folders where it changed nothing else."""
    nodes = (node.path for node in entry.nodes if not is_folder(node))
    return (*(file.path for file in entry.files), *nodes) or entry.paths


def is_folder(change: NodeChange) -> bool:
    """Was it a folder, or has become one, and was nothing else?"""
    sides = [side for side in (change.before, change.after) if side is not None]
    return bool(sides) and all(side.kind == "folder" for side in sides)


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
