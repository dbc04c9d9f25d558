"""What this session has changed in the workspace, from the journal: every file as it was before, and as it is."""

import os
from collections.abc import Callable, Iterable

from ferrule.support.beneath import is_regular, read_all
from ferrule.support.diff import diff
from ferrule.workspace.journal import Entry, FileChange, Journal
from ferrule.workspace.ledger import fingerprint
from ferrule.workspace.sealed import DamagedError
from ferrule.workspace.textfile import is_binary

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def changes(journal: Journal, shown: Callable[[str], str], only: str = "") -> list[str]:
    """One diff a file, in the order in which they were first written; `only` one file, or those in a folder."""
    own = [entry for entry in journal.entries() if journal.wrote(entry)]
    paths = dict.fromkeys(file.path for entry in own for file in entry.files if _is_below(file.path, only, shown))
    return [text for path in paths if (text := _of_file(journal, own, path, shown(path)))]


def _is_below(path: str, only: str, shown: Callable[[str], str]) -> bool:
    wanted = os.path.normpath(only)
    return not only or any(name == wanted or name.startswith(wanted + os.sep) for name in (path, shown(path)))


def _of_file(journal: Journal, own: Iterable[Entry], path: str, name: str) -> str:
    now = _contents(path)
    before, foreign = now, False
    for entry in reversed(list(own)):
        file = next((one for one in entry.files if one.path == path), None)
        if file is None:
            continue
        try:
            before, fits = _taken_back(before, file, journal.payload(entry), entry)
        except DamagedError:
            fits = False
        if not fits:
            foreign = True
            break
    if foreign and before == now:
        return f"diff --git a/{name} b/{name}\n(changed by somebody else since; `git diff` or /undo may tell more)\n"
    if any(raw is not None and is_binary(raw) for raw in (before, now)):
        return f"Binary file {name} differs.\n" if before != now else ""
    return diff(name, *(None if raw is None else raw.decode(errors="replace") for raw in (before, now)))


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
