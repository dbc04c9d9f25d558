"""Pieces of text for others, in one file: each has one clear place or the whole change is refused."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.files.diff import diff, diff_of_splices
from ferrule.files.explain import explain, explain_ambiguous
from ferrule.files.journal import find_changed_span
from ferrule.files.ledger import Ledger
from ferrule.files.match import Ambiguous, EditMatch, Missing, find
from ferrule.files.text import Binary, Splice, TextFile, Unencodable, line_mark, parse, splice


class Piece(NamedTuple):
    """One old text and what to put in its place."""

    old: str
    new: str
    everywhere: bool = False
    expected: int | None = None
    """How many places there must be."""


class Replaced(NamedTuple):
    """A file with its pieces replaced."""

    before: TextFile
    after: TextFile
    first_line: int
    """Where the new text begins and ends in the file as it will be, from 1."""
    last_line: int
    places: int
    notes: tuple[str, ...]
    splices: tuple[Splice, ...] | None
    """What was done to the text, where it was done at once."""

    @property
    def raw(self) -> bytes:
        return self.after.raw

    def diff(self, name: str) -> str:
        """A diff of the file under the given name."""
        if self.splices is not None:
            return diff_of_splices(name, self.before.text, self.splices)
        return diff(name, self.before.text, self.after.text)


def current(raw: bytes | None, path: str, ledger: Ledger, *, read_first: bool) -> TextFile:
    """The text file that is to be changed; with `read_first` only one that the session has seen as it is."""
    if raw is None:
        raise ToolFailure("There is no such file to edit.", code="not-found", path=path)
    try:
        file = parse(raw)
    except Binary as error:  # before anybody is sent to read it, which cannot be done either
        raise ToolFailure("The file is binary and cannot be edited as text.", code="binary", path=path) from error
    if read_first:
        check_read(raw, path, ledger)
    return file


def check_read(raw: bytes, path: str, ledger: Ledger) -> None:
    """Refuse a file that the session has not read, or not as it now is."""
    if not ledger.knows(path):
        why = ledger.why_unread(path)
        hint = f"\nReading it has failed: {why}" if why else ""
        message = f"{path} has not been read yet. Read it first, then change it.{hint}"
        raise ToolFailure(message, code="not-read", path=path, hint=hint)
    if ledger.stale(path, raw):
        raise ToolFailure(f"{path} has changed since it was read. Read it again first.", code="stale", path=path)


def replace(file: TextFile, piece: Piece, path: str, *, stale: bool) -> Replaced:
    """The file with one piece replaced."""
    found = _place(file, piece, path, stale=stale, of="")
    first, last = found.lines[0][0], found.lines[-1][1]
    after = _apply_splices(file, found.splices, path)
    notes = (*_notes(found, ""), *_encoding_note(file))
    return Replaced(file, after, first, last, len(found.lines), notes, found.splices)


def replace_all(file: TextFile, pieces: Sequence[Piece], path: str, *, in_turn: bool, stale: bool) -> Replaced:
    """The file with all pieces replaced: each in what the ones before have left, or all in the file as it is."""
    if len(pieces) == 1:
        return replace(file, pieces[0], path, stale=stale)
    notes: list[str] = []
    every: list[EditMatch] = []
    after = file
    for number, piece in enumerate(pieces, 1):
        found = _place(after, piece, path, stale=stale, of=f"Edit {number} of {len(pieces)}: ")
        every.append(found)
        notes += _notes(found, f"Edit {number}: ")
        if in_turn:
            after = _apply_splices(after, found.splices, path)
    together = None
    if not in_turn:
        together = _together(every, path)
        after = _apply_splices(file, together, path)
    first, last = _find_changed_lines(file.text, after.text) or every[0].lines[0]
    places = sum(len(found.lines) for found in every)
    return Replaced(file, after, first, last, places, (*notes, *_encoding_note(file)), together)


def _together(every: Sequence[EditMatch], path: str) -> tuple[Splice, ...]:
    """The splices of all edits in the order of the text; two at one point stay in the order of the edits."""
    splices = sorted((one for found in every for one in found.splices), key=lambda one: (one.start, one.end))
    for one, other in itertools.pairwise(splices):
        if one.end > other.start:
            raise ToolFailure(
                "Two of the edits change the same text. Make one edit of them. Nothing was changed.",
                code="overlap",
                path=path,
            )
    return tuple(splices)


def _find_changed_lines(before: str, after: str) -> tuple[int, int] | None:
    """The first and the last line of what differs, in the text as it will be; None where nothing does."""
    new, mark = after.encode(errors="surrogatepass"), line_mark(after).encode()
    start, gone, come = find_changed_span(before.encode(errors="surrogatepass"), new)
    if not gone and not come:
        return None
    first = new.count(mark, 0, start) + 1
    ends = new.count(mark, start, start + come)
    return first, first + ends - (ends > 0 and new.endswith(mark, 0, start + come))


def _place(file: TextFile, piece: Piece, path: str, *, stale: bool, of: str) -> EditMatch:
    """The one place that is meant, or all of them; a failure explains itself."""
    if not piece.old:
        raise ToolFailure(f"{of}The old text is empty.", code="empty-old", path=path)
    if piece.old == piece.new:
        raise ToolFailure(f"{of}The old text and the new text are the same.", code="same-text", path=path)
    many = piece.everywhere or (piece.expected or 1) > 1
    match = find(file, piece.old, piece.new, everywhere=many)
    if isinstance(match, Missing):
        report = explain(file, piece.old, piece.new, changed_since_read=stale)
        raise ToolFailure(of + report, code="no-match", path=path)
    if isinstance(match, Ambiguous):
        report = explain_ambiguous(file, match, piece.old)
        raise ToolFailure(of + report, code="ambiguous", path=path, count=len(match.lines))
    if piece.expected is not None and len(match.lines) != piece.expected:
        raise ToolFailure(
            f"{of}The old text stands in {len(match.lines)} places, not in {piece.expected}. Nothing was changed.",
            code="unexpected-count",
            path=path,
            count=len(match.lines),
        )
    return match


def _apply_splices(file: TextFile, splices: Sequence[Splice], path: str) -> TextFile:
    """The file with the splices done; its encoding is not guessed anew, whatever the new text holds."""
    try:
        raw = splice(file, splices)
    except Unencodable as error:
        raise ToolFailure(f"{error} Nothing was changed.", code="unencodable", path=path) from error
    parts: list[str] = []
    done = 0
    for start, end, new in splices:
        parts += (file.text[done:start], new)
        done = end
    return TextFile(raw, "".join((*parts, file.text[done:])), file.encoding, file.bom)


def _notes(found: EditMatch, of: str) -> tuple[str, ...]:
    return () if found.rung == "exact" else (f"{of}The old text was matched loosely ({found.rung}).",)


def _encoding_note(file: TextFile) -> tuple[str, ...]:
    if file.encoding in ("utf-8", "ascii"):
        return ()
    return (f"The file is encoded as {file.encoding}, and still is.",)
