"""Which documents a language server has open, and telling it what became of them and of other files."""

import os
from collections.abc import Iterable
from typing import Any

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.workspace.languages.documents import Document, Reader, Signature, Text, signature
from ferrule.workspace.languages.life import WATCHED, Life
from ferrule.workspace.languages.positions import uri
from ferrule.workspace.languages.stirred import Lookout
from ferrule.workspace.languages.table import Row

MOST_OPEN = 64
_MOST_TOUCHED = 5000
_CREATED, _CHANGED, _DELETED = 1, 2, 3


class Opened:
    """The documents of one server. When it was started again they are opened again."""

    def __init__(self, row: Row, root: str, reader: Reader) -> None:
        self._row = row
        self._root = root
        markers = frozenset(row.markers)
        self._lookout = Lookout(root, lambda name: name in markers or bool(row.language(name)))
        self._reader = reader
        self._documents: dict[str, Document] = {}
        self._life: Life | None = None
        self._touched: dict[str, None] = {}
        self._expected: dict[str, Signature | None] = {}
        self._seen: dict[str, None] = {}
        self._untold: dict[str, int] = {}
        self.is_stirred = False
        """Was it told of changes whose consequences it may not have told yet?"""

    def get(self, path: str) -> Document | None:
        return self._documents.get(path)

    def all(self) -> dict[str, Document]:
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

    async def sync(self, life: Life, path: str, text: str | None, *, looks: bool = True) -> Document:
        """Have the server see the document as it is, and all the others that it has open. Raises Gone, ToolFailure.

        `looks`: it also learns what others than tools have changed in the project.
        """
        given = None if text is None else Text(text, (-1, -1, -1, -1))
        fresh = given or await self._read_changed(path)
        others: dict[str, Text | None] = {}
        for other, document in list(self._documents.items()):
            if other != path and document.signature is not None and signature(other) != document.signature:
                others[other] = await self._read_or_none(other)
        stirred = await self._stirred(life, looks=looks and given is None)
        # From here on nothing waits: two callers cannot get into each other's way.
        with life.gathered():
            if self._life is not life:
                self._open_again(life)
            changed: dict[str, int] = {}
            for other, now in others.items():
                self._follow(life, other, now, changed)
            document = self._put(life, path, fresh, changed, is_given=given is not None)
            self._tell_touched(life, stirred | changed)
        return document

    async def _stirred(self, life: Life, *, looks: bool) -> dict[str, int]:
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

    async def _read_changed(self, path: str) -> Text | None:
        """The file, unless it looks as it did when it was read for the open document."""
        document = self._documents.get(path)
        if document is not None and document.signature is not None and signature(path) == document.signature:
            return None
        return await self._reader.read(path)

    async def _read_or_none(self, path: str) -> Text | None:
        try:
            return await self._reader.read(path)
        except ToolFailure:
            return None  # gone, or nothing that a server may see

    def _put(self, life: Life, path: str, fresh: Text | None, changed: dict[str, int], *, is_given: bool) -> Document:
        old = self._documents.pop(path, None)
        looks = fresh.signature if fresh is not None and not is_given else None
        if old is None:
            assert fresh is not None
            while len(self._documents) >= MOST_OPEN:
                self._close(life, next(iter(self._documents)))
            language = self._row.language(path) or "plaintext"
            document = Document(path, uri(path), language, 1, fresh.text, looks, life.published.number)
            _open(life, document)
        elif fresh is None:
            document = old
        else:
            document = self._change(life, old, fresh.text, saved=not is_given)._replace(signature=looks)
            if document.version != old.version and not is_given:
                changed[path] = _CHANGED
        self._documents[path] = document  # the newest last
        return document

    def _follow(self, life: Life, path: str, now: Text | None, changed: dict[str, int]) -> None:
        document = self._documents.get(path)
        if document is None:
            return
        if now is None:
            self._close(life, path)
            changed[path] = _DELETED
            return
        new = self._change(life, document, now.text, saved=True)._replace(signature=now.signature)
        self._documents[path] = new
        if new.version != document.version:
            changed[path] = _CHANGED

    def _change(self, life: Life, old: Document, text: str, *, saved: bool) -> Document:
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
                events.append((path, _DELETED))
                self._seen.pop(path, None)
                continue
            if path in self._seen or path in self._documents:
                events.append((path, _CHANGED))
                continue
            # Whether it was there before nobody knows; both are true of a file that went and came.
            events += [(path, _DELETED), (path, _CREATED)]
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


def _open(life: Life, document: Document) -> None:
    told = {
        "uri": document.uri,
        "languageId": document.language,
        "version": document.version,
        "text": document.text,
    }
    life.tell("textDocument/didOpen", {"textDocument": told})


def _close(life: Life, document: Document) -> None:
    life.tell("textDocument/didClose", {"textDocument": {"uri": document.uri}})


def _save(life: Life, document: Document) -> None:
    """Some look for errors only in what was saved."""
    wanted = _sync_options(life).get("save")
    if wanted:
        includes = isinstance(wanted, dict) and wanted.get("includeText")
        told: dict[str, Any] = {"textDocument": {"uri": document.uri}}
        life.tell("textDocument/didSave", told | ({"text": document.text} if includes else {}))
