"""Keep a language server's open documents in step with the files on disk.

The module tells the server about changes to those files and to others, and compares folders before and after,
because any program may have changed them.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.tools.lsp.documents import DocumentReader, DocumentText, OpenDocument, Signature, signature, uri
from ferrule.tools.lsp.known import LanguageServerEntry
from ferrule.tools.lsp.life import WATCHED, Life

_MOST_ENTRIES = 20_000
_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", "target", ".tox", ".cache"}
)
"""Folders that are large, and whose files are seldom what was changed."""
_CREATED, _CHANGED, _DELETED = 1, 2, 3
_EVERY_SECONDS = 2.0
"""Who asks within so long is answered from what was seen last: what changes a project unseen is hardly faster."""
_PATIENCE_SECONDS = 0.1
"""So long a question waits for a look. What a longer one finds is told with the next question."""


class Inventory:
    """The files of a folder that a server cares for, and how each looked."""

    def __init__(self, folder: str, wanted: Callable[[str], bool]) -> None:
        """Look through it, but through no more of it than is reasonable; links are not followed."""
        self.files: dict[str, Signature] = {}
        self.is_whole = True
        left = _MOST_ENTRIES
        folders = [folder]
        while folders:
            left = self._look(folders.pop(0), folders, wanted, left)
            if left <= 0:
                self.is_whole = False
                return

    def _look(self, folder: str, folders: list[str], wanted: Callable[[str], bool], left: int) -> int:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left <= 0:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] * (entry.name not in _LEFT_OUT)
                    elif wanted(entry.name):
                        seen = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(seen.st_mode):
                            looks = (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)
                            self.files[entry.path] = looks
        except OSError:
            pass  # it went away while it was looked at, or is closed to us
        return left

    def news(self, before: "Inventory") -> list[tuple[str, int]]:
        """What the protocol says of each file that came, changed or went since then."""
        old, is_whole = before.files, before.is_whole and self.is_whole
        found = [
            (path, _CHANGED if path in old else _CREATED)
            for path, looks in self.files.items()
            if old.get(path) != looks and (path in old or is_whole)
        ]
        # Where not all of it was seen, nothing is known of what is missing.
        return found + [(path, _DELETED) for path in old if is_whole and path not in self.files]


class Lookout:
    """Looks through a project now and then, in a thread, and says what became of its files meanwhile."""

    def __init__(self, folder: str, wanted: Callable[[str], bool]) -> None:
        self._folder = folder
        self._wanted = wanted
        self._looks: list[asyncio.Task[Inventory]] = []
        """The one that the server's knowledge is from, and those after it that were not told yet."""
        self._looked_at = 0.0
        """When the last one was begun, by the clock of the loop."""

    def begin(self) -> None:
        """The server is being started: behind everybody's back the project is looked through as it is now."""
        self.end()
        self._look()

    def end(self) -> None:
        """The server was ended."""
        for look in self._looks:
            look.cancel()
        self._looks = []

    async def news(self, *, is_sure: bool = False) -> dict[str, int]:
        """What came, changed or went since it was told last; where something surely did, it is waited for."""
        looks = self._looks
        is_due = asyncio.get_running_loop().time() - self._looked_at >= _EVERY_SECONDS
        # One at a time: where a look takes long, more of them would only make it longer.
        if not looks or not (is_sure or (is_due and looks[-1].done()) or any(look.done() for look in looks[1:])):
            return {}
        if is_sure or (is_due and looks[-1].done()):
            self._look()
            await asyncio.wait(looks, timeout=None if is_sure else _PATIENCE_SECONDS)
        last = max(number for number, look in enumerate(looks) if number == 0 or look.done())
        if looks is not self._looks or not last or not looks[0].done():
            return {}  # the server was ended meanwhile, or nobody has finished yet
        before, now = looks[0].result(), looks[last].result()
        found = await asyncio.to_thread(now.news, before)
        if looks is not self._looks:
            return {}
        del looks[:last]
        return dict(found)

    def _look(self) -> None:
        self._looked_at = asyncio.get_running_loop().time()
        self._looks.append(asyncio.create_task(asyncio.to_thread(Inventory, self._folder, self._wanted)))


MOST_OPEN = 64
_MOST_TOUCHED = 5000
_OPENED_CREATED, _OPENED_CHANGED, _OPENED_DELETED = 1, 2, 3


class Opened:
    """The documents of one server. When it was started again they are opened again."""

    def __init__(self, row: LanguageServerEntry, root: str, reader: DocumentReader) -> None:
        self._row = row
        self._root = root
        markers = frozenset(row.markers)
        self._lookout = Lookout(root, lambda name: name in markers or bool(row.language(name)))
        self._reader = reader
        self._documents: dict[str, OpenDocument] = {}
        self._life: Life | None = None
        self._touched: dict[str, None] = {}
        self._expected: dict[str, Signature | None] = {}
        self._seen: dict[str, None] = {}
        self._untold: dict[str, int] = {}
        self.is_stirred = False
        """Was it told of changes whose consequences it may not have told yet?"""

    def get(self, path: str) -> OpenDocument | None:
        return self._documents.get(path)

    def all(self) -> dict[str, OpenDocument]:
        """By path, the one that was needed last at the end."""
        return dict(self._documents)

    def release(self, paths: Iterable[str]) -> None:
        """Texts that somebody gave for these count no more: with the next `sync` they are as their files are."""
        for path in paths:
            document = self._documents.get(path)
            if document is not None and document.signature is None:
                self._documents[path] = document._replace(signature=(-1, -1, -1, -1))

    def touch(self, paths: Iterable[str]) -> None:
        """These files, or some in these folders, were changed: the server is told so with the next `sync`."""
        self._touched |= dict.fromkeys(paths)
        while len(self._touched) > _MOST_TOUCHED:
            del self._touched[next(iter(self._touched))]

    def expect(self, paths: Iterable[str]) -> None:
        """Calls are about to write these: who asks before all of them are done is told of what some have done."""
        self._expected = {path: signature(path) for path in paths}

    def is_stale(self, life: Life) -> bool:
        """Was the server started again since its documents were opened?"""
        return self._life is not None and self._life is not life

    async def revive(self, life: Life) -> None:
        """Open the documents again that were open, as they are now. Raises Gone."""
        for path in list(self._documents):
            document = self._documents[path]
            if document.signature is not None and signature(path) != document.signature:
                now = await self._read_or_none(path)
                if now is None:
                    del self._documents[path]
                else:
                    self._documents[path] = document._replace(text=now.text, signature=now.signature)
        if self.is_stale(life):
            self._open_again(life)

    async def sync(self, life: Life, path: str, text: str | None, *, looks: bool = True) -> OpenDocument:
        """Have the server see the document as it is, and all the others that it has open. Raises Gone, ToolFailure.

        `looks`: it also learns what others than tools have changed in the project.
        """
        given = None if text is None else DocumentText(text, (-1, -1, -1, -1))
        fresh = given or await self._read_changed(path)
        others: dict[str, DocumentText | None] = {}
        for other, document in list(self._documents.items()):
            if other != path and document.signature is not None and signature(other) != document.signature:
                others[other] = await self._read_or_none(other)
        stirred = await self._find_changes(life, looks=looks and given is None)
        # From here on nothing waits: two callers cannot get into each other's way.
        with life.batch():
            if self._life is not life:
                self._open_again(life)
            changed: dict[str, int] = {}
            for other, now in others.items():
                self._follow(life, other, now, changed)
            document = self._put(life, path, fresh, changed, is_given=given is not None)
            self._tell_touched(life, stirred | changed)
        return document

    async def _find_changes(self, life: Life, *, looks: bool) -> dict[str, int]:
        """What changed in the project since it was looked through last: now, where some folder of it was touched."""
        if looks:
            self._look_at_expected()
        is_here = False
        if self._touched and await life.will(WATCHED, float("inf")):
            folders = [path for path in self._touched if os.path.isdir(path)]
            for folder in folders:
                del self._touched[folder]
            is_here = any(within(folder, self._root) or within(self._root, folder) for folder in folders)
        if is_here or (looks and life.can(WATCHED)):
            news = await self._lookout.news(is_sure=is_here)
            self.is_stirred |= bool(news)
            return news
        return {}

    def _look_at_expected(self) -> None:
        for path, before in self._expected.items():
            now = signature(path)
            if now != before:
                self._expected[path] = now
                self._touched[path] = None

    def look(self) -> None:
        """The server is being started, and learns from the files as they are now."""
        self._lookout.begin()

    def rest(self) -> None:
        """The server was ended."""
        self._lookout.end()

    def _open_again(self, life: Life) -> None:
        self._life = life
        self._seen, self._untold = {}, {}
        for path, document in self._documents.items():
            self._documents[path] = document._replace(version=1, since=life.published.number)
            _open(life, self._documents[path])

    async def _read_changed(self, path: str) -> DocumentText | None:
        """The file, unless it looks as it did when it was read for the open document."""
        document = self._documents.get(path)
        if document is not None and document.signature is not None and signature(path) == document.signature:
            return None
        return await self._reader.read(path)

    async def _read_or_none(self, path: str) -> DocumentText | None:
        try:
            return await self._reader.read(path)
        except ToolFailure:
            return None  # gone, or nothing that a server may see

    def _put(
        self, life: Life, path: str, fresh: DocumentText | None, changed: dict[str, int], *, is_given: bool
    ) -> OpenDocument:
        old = self._documents.pop(path, None)
        looks = fresh.signature if fresh is not None and not is_given else None
        if old is None:
            assert fresh is not None
            while len(self._documents) >= MOST_OPEN:
                self._close(life, next(iter(self._documents)))
            language = self._row.language(path) or "plaintext"
            document = OpenDocument(path, uri(path), language, 1, fresh.text, looks, life.published.number)
            _open(life, document)
        elif fresh is None:
            document = old
        else:
            document = self._change(life, old, fresh.text, saved=not is_given)._replace(signature=looks)
            if document.version != old.version and not is_given:
                changed[path] = _OPENED_CHANGED
        self._documents[path] = document  # the newest last
        return document

    def _follow(self, life: Life, path: str, now: DocumentText | None, changed: dict[str, int]) -> None:
        document = self._documents.get(path)
        if document is None:
            return
        if now is None:
            self._close(life, path)
            changed[path] = _OPENED_DELETED
            return
        new = self._change(life, document, now.text, saved=True)._replace(signature=now.signature)
        self._documents[path] = new
        if new.version != document.version:
            changed[path] = _OPENED_CHANGED

    def _change(self, life: Life, old: OpenDocument, text: str, *, saved: bool) -> OpenDocument:
        if old.text == text:
            return old
        new = old._replace(version=old.version + 1, text=text, since=life.published.number)
        kind = _sync_kind(life)
        if kind == 0:
            _close(life, old)
            _open(life, new)
        else:
            told = {"uri": new.uri, "version": new.version}
            life.tell("textDocument/didChange", {"textDocument": told, "contentChanges": [{"text": text}]})
        if saved:
            _save(life, new)
        return new

    def _close(self, life: Life, path: str) -> None:
        document = self._documents.pop(path)
        _close(life, document)
        life.published.forget(path)

    def _tell_touched(self, life: Life, changed: dict[str, int]) -> None:
        """Files that are not open too, where the server wants to know; it may say that later."""
        self._untold |= changed
        if not life.can(WATCHED):
            while len(self._untold) > _MOST_TOUCHED:
                del self._untold[next(iter(self._untold))]
            return
        events, self._untold = list(self._untold.items()), {}
        told = {path for path, _ in events}
        touched, self._touched = self._touched, {}
        for path in touched:
            if path in told:
                continue
            if signature(path) is None:
                events.append((path, _OPENED_DELETED))
                self._seen.pop(path, None)
                continue
            if path in self._seen or path in self._documents:
                events.append((path, _OPENED_CHANGED))
                continue
            # Whether it was there before nobody knows; both are true of a file that went and came.
            events += [(path, _OPENED_DELETED), (path, _OPENED_CREATED)]
            self._seen[path] = None
        if events:
            life.tell(WATCHED, {"changes": [{"uri": uri(path), "type": kind} for path, kind in events]})


def _sync_options(life: Life) -> dict[str, Any]:
    said = life.capabilities.get("textDocumentSync")
    if isinstance(said, dict):
        return said
    return {"openClose": True, "change": said if isinstance(said, int) else 1}


def _sync_kind(life: Life) -> int:
    kind = _sync_options(life).get("change")
    return kind if isinstance(kind, int) else 0


def _open(life: Life, document: OpenDocument) -> None:
    told = {
        "uri": document.uri,
        "languageId": document.language,
        "version": document.version,
        "text": document.text,
    }
    life.tell("textDocument/didOpen", {"textDocument": told})


def _close(life: Life, document: OpenDocument) -> None:
    life.tell("textDocument/didClose", {"textDocument": {"uri": document.uri}})


def _save(life: Life, document: OpenDocument) -> None:
    """Some look for errors only in what was saved."""
    wanted = _sync_options(life).get("save")
    if wanted:
        includes = isinstance(wanted, dict) and wanted.get("includeText")
        told: dict[str, Any] = {"textDocument": {"uri": document.uri}}
        life.tell("textDocument/didSave", told | ({"text": document.text} if includes else {}))
