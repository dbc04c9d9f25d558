"""What this conversation has changed in the workspace, from the journal: every file as it was before, and as it is."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.support.beneath import is_regular, read_all
from ferrule.support.diff import diff
from ferrule.workspace.entry_words import command_words, files_of
from ferrule.workspace.journal import Entry, FileChange, Journal, Node, NodeChange
from ferrule.workspace.ledger import fingerprint
from ferrule.workspace.sealed import DamagedError
from ferrule.workspace.textfile import is_binary

_FOREIGN = "changed by somebody else since; `git diff` or /undo may tell more"
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class _Earlier(NamedTuple):
    """What a file was before a write."""

    raw: bytes | None
    why: str = ""
    """Why nobody can tell; empty where it is known."""


def changes(
    journal: Journal,
    shown: Callable[[str], str],
    only: str = "",
    kept: Callable[[Node], bytes | None] = lambda _: None,
) -> list[str]:
    """One diff a file, in the order in which they were first written; `only` one file, or those in a folder.

    `kept` gives the bytes that a file had before a command, where they are known.
    """
    own = [entry for entry in journal.entries() if journal.wrote(entry)]
    changed = dict.fromkeys(path for entry in own for path in files_of(entry))
    paths = [path for path in changed if _is_below(path, only, shown) and not os.path.isdir(path)]
    return [text for path in paths if (text := _of_file(journal, own, path, shown(path), kept))]


def _is_below(path: str, only: str, shown: Callable[[str], str]) -> bool:
    wanted = os.path.normpath(only)
    return not only or any(name == wanted or name.startswith(wanted + os.sep) for name in (path, shown(path)))


def _of_file(journal: Journal, own: Sequence[Entry], path: str, name: str, kept: Callable[[Node], bytes | None]) -> str:
    now = _contents(path)
    before, why = now, ""
    for entry in reversed(own):
        earlier = _before(journal, entry, path, before, kept)
        if earlier is None:
            continue
        if why := earlier.why:
            break
        before = earlier.raw
    if why and before == now:
        return f"diff --git a/{name} b/{name}\n({why})\n"
    if any(raw is not None and is_binary(raw) for raw in (before, now)):
        return f"Binary file {name} differs.\n" if before != now else ""
    return diff(name, *(None if raw is None else raw.decode(errors="replace") for raw in (before, now)))


def _before(
    journal: Journal, entry: Entry, path: str, now: bytes | None, kept: Callable[[Node], bytes | None]
) -> _Earlier | None:
    """What the file was before this entry; None where the entry is not about it."""
    file = next((one for one in entry.files if one.path == path), None)
    node = next((one for one in entry.nodes if one.path == path), None)
    if file is None:
        return None if node is None else _before_command(now, node, entry, kept)
    try:
        raw, fits = _taken_back(now, file, journal.payload(entry), entry)
    except DamagedError:
        return _Earlier(now, _FOREIGN)
    return _Earlier(raw, "" if fits else _FOREIGN)


def _by_command(entry: Entry) -> str:
    return f"changed by a command: {command_words(entry)}" if entry.kind == "command" else "changed by a command"


def _before_command(
    now: bytes | None, node: NodeChange, entry: Entry, kept: Callable[[Node], bytes | None]
) -> _Earlier:
    unknown = _Earlier(now, _by_command(entry))
    was, became = node.before, node.after
    if any(one is not None and one.kind != "file" for one in (was, became)):
        return unknown
    if became is not None and became.is_unkept:
        return unknown
    if (None if now is None else fingerprint(now)) != (None if became is None else became.content):
        return _Earlier(now, _FOREIGN)
    if was is None:
        return _Earlier(None)
    raw = kept(was)
    return unknown if raw is None else _Earlier(raw)


def _taken_back(now: bytes | None, file: FileChange, payload: bytes, entry: Entry) -> tuple[bytes | None, bool]:
    """What the file was before this write; false where it is not what the write has left."""
    if (None if now is None else fingerprint(now)) != file.after:
        return now, False
    if file.before is None:
        return None, True
    at = 0
    for one in entry.files:
        if one.path == file.path:
            break
        at += one.old + one.new
    old, base = payload[at : at + file.old], now or b""
    return base[: file.start] + old + base[file.start + file.new :], True


def _contents(path: str) -> bytes | None:
    try:
        # What was a file may be a pipe by now: nobody waits for it.
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    try:
        return read_all(descriptor) if is_regular(descriptor) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
