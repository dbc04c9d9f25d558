"""Going back to the files as they were before a prompt of a conversation, from the journal."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import describe
from ferrule.workspace.journal import Entry, FileChange, Journal, Node, NodeChange
from ferrule.workspace.ledger import fingerprint
from ferrule.workspace.sealed import DamagedError
from ferrule.workspace.transaction import Contents, Writer


class Rewind(NamedTuple):
    """What a rewind of files would do, or has done."""

    changes: tuple[NodeChange, ...]
    """What becomes of each path."""
    by_hand: tuple[str, ...] = ()
    """Paths that the user has changed since: left alone unless they say otherwise."""
    lost: tuple[str, ...] = ()
    """Paths that cannot be brought back, because their bytes were not kept."""
    moved: tuple[str, ...] = ()
    """Sentences about git's HEAD, refs and index, each with the command that moves it back."""
    entry: str = ""
    """The journal's entry of a rewind that was done."""


class Rewinder:
    """Takes back all that one conversation has written since a prompt, in one write."""

    def __init__(self, journal: Journal, writer: Writer, read: Callable[[str], bytes | None]) -> None:
        """`read` reads a file of the workspace."""
        self._journal = journal
        self._writer = writer
        self._read = read

    def preview(self, prompt: int) -> Rewind:
        """What `back` would do now."""
        return self._planned(prompt, over=False)[0]

    def back(self, prompt: int, *, over: bool = False) -> Rewind:
        """Make it so: all of it or nothing. `over` also what was changed by hand since."""
        planned, wanted = self._planned(prompt, over=over)
        if not wanted:
            return planned
        found = {path: now for path, (now, _) in wanted.items()}

        def plan(there: Contents) -> Contents:
            if any(there[path] != now for path, now in found.items()):
                raise ToolFailure("A file was changed meanwhile. Nothing was changed. Try again.")
            return {path: then for path, (_, then) in wanted.items()}

        written = self._writer.apply(list(wanted), plan, kind="rewind")
        return planned._replace(entry=written.entry_id)

    def _planned(self, prompt: int, *, over: bool) -> tuple[Rewind, dict[str, tuple[bytes | None, bytes | None]]]:
        """With what each file is now, and what it is to be."""
        try:
            own = self.entries(prompt)
        except OSError as error:
            raise ToolFailure(f"{describe(error)}: {self._journal.folder}. Nothing was changed.") from error
        wanted: dict[str, tuple[bytes | None, bytes | None]] = {}
        by_hand: list[str] = []
        lost: list[str] = []
        for path in dict.fromkeys(path for entry in own for path in entry.paths):
            now = self._read(path)
            first = next(file for entry in own for file in entry.files if file.path == path)
            last = next(file for entry in reversed(own) for file in entry.files if file.path == path)
            is_by_hand = _mark(now) not in {last.after, first.before}
            if is_by_hand:
                by_hand.append(path)
                if not over:
                    continue
            if _mark(now) == first.before:
                continue
            known, then = self._before(own, path, now)
            if first.before is None:
                wanted[path] = (now, None)
            elif known:
                wanted[path] = (now, then)
            else:
                lost.append(path)
        changes = tuple(NodeChange(path, _node(now), _node(then)) for path, (now, then) in wanted.items())
        return Rewind(changes, tuple(by_hand), tuple(lost)), wanted

    def entries(self, prompt: int) -> list[Entry]:
        """What the conversation has written since, oldest first."""
        thread = self._journal.origin.thread
        return [
            entry
            for entry in self._journal.entries()
            if thread and entry.thread == thread and entry.prompt >= prompt and entry.files
        ]

    def _before(self, own: Sequence[Entry], path: str, now: bytes | None) -> tuple[bool, bytes | None]:
        for entry in reversed(own):
            at = 0
            for file in entry.files:
                if file.path == path:
                    if _mark(now) != file.after:
                        return False, None
                    now = self._taken_back(entry, file, at, now)
                at += file.old + file.new
        return True, now

    def _taken_back(self, entry: Entry, file: FileChange, at: int, now: bytes | None) -> bytes | None:
        if file.before is None:
            return None
        try:
            old = self._journal.payload(entry)[at : at + file.old]
        except DamagedError:
            return b""
        base = now or b""
        return base[: file.start] + old + base[file.start + file.new :]


def _mark(raw: bytes | None) -> str | None:
    return None if raw is None else fingerprint(raw)


def _node(raw: bytes | None) -> Node | None:
    return None if raw is None else Node("file", 0o644, fingerprint(raw), len(raw))
