"""Read notebooks (nbformat 4), find the parts of their JSON, and change one cell by splicing bytes.

An edit leaves everything else as it was written. The new part is written as the file writes: its line ends,
indentation, blanks after commas and colons, and escapes.

Nothing is decoded that is not asked for, and nothing recurses: how deep and how long a text is was chosen by whoever
wrote it. NaN and Infinity pass, because Python writes them.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Literal, NamedTuple

from ferrule.core.content import Cell, CellOutput, Notebook, Picture
from ferrule.core.errors import near

MOST_DEEP = 200
"""No program that people use nests deeper, and decoders that recurse would fall."""
MOST_PARTS = 100_000
"""Members of one object or items of one array that are told apart."""
MOST_STEPS = 5_000_000
"""Brackets after which a text is not worth the time."""
_REMEMBERED_DEEP = 8
_REMEMBERED_BYTES = 1024
"""The ends of boxes that are not deeper and not smaller are kept, so that looking into a box is not a search again."""

_GAP = rb"[ \t\r\n]*+"
_STRING = rb'"[^"\\\x00-\x1f]*+(?>(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*)"'
_NUMBER = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_PLAIN = rb"(?:%b|%b|true|false|null|NaN|-?Infinity|\[%b\]|\{%b\})" % (_STRING, _NUMBER, _GAP, _GAP)
"""A value with nothing inside."""
_KEY = _STRING + _GAP + rb":" + _GAP

_IS_GAP = re.compile(_GAP)
_IS_STRING = re.compile(_STRING)
_IS_KEY = re.compile(_KEY)
_IS_PLAIN = re.compile(_PLAIN)
_IS_OPEN = re.compile(rb"\[%b|\{%b%b" % (_GAP, _GAP, _KEY))
_IS_COMMA = re.compile(rb"%b,?%b" % (_GAP, _GAP))
# Long rows of plain values are passed in bounded strides: an unbounded repetition would keep a mark for each of them.
_STRIDE = rb"%b(?:,%b%b%b){0,1000}"
_PASSES = {
    ord("]"): re.compile(_STRIDE % (_GAP, _GAP, _PLAIN, _GAP)),
    ord("}"): re.compile(_STRIDE % (_GAP, _GAP + _KEY, _PLAIN, _GAP)),
}
_NEXT = {ord("]"): re.compile(rb"," + _GAP), ord("}"): re.compile(rb"," + _GAP + _KEY)}
_PASSES_STRINGS = re.compile(_STRIDE % (_GAP, _GAP, _STRING, _GAP))
_CLOSER = {ord("["): ord("]"), ord("{"): ord("}")}


class BadJson(ValueError):  # noqa: N818 - the state of the text, as a tool reports it
    """The text is no JSON, or more of it than anybody needs."""


class Span(NamedTuple):
    """A value: its bytes from `start` up to `end`, without the blanks around it."""

    start: int
    end: int


class Member(NamedTuple):
    """A member of an object."""

    name: str
    key: Span
    value: Span


class Json:
    """A JSON text and where its value is, every byte of it checked. Making one raises `BadJson`."""

    def __init__(self, raw: bytes, start: int = 0) -> None:
        self.raw = raw
        self._ends: dict[int, int] = {}
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            raise BadJson(f"It is not UTF-8: byte {error.start:,} cannot be decoded.") from error
        self.root = self._value_at(self._past(start))
        end = self._past(self.root.end)
        if end != len(raw):
            raise _wrong(raw, end)

    def is_object(self, span: Span) -> bool:
        return self.raw[span.start] == ord("{")

    def is_array(self, span: Span) -> bool:
        return self.raw[span.start] == ord("[")

    def is_string(self, span: Span) -> bool:
        return self.raw[span.start] == ord('"')

    def bytes_of(self, span: Span) -> bytes:
        return self.raw[span.start : span.end]

    def members(self, span: Span) -> list[Member]:
        """The members of an object, in order; a name may come twice. Raises `BadJson` where there are too many."""
        found: list[Member] = []
        at = self._past(span.start + 1)
        while at < span.end - 1:
            key, colon = _IS_STRING.match(self.raw, at), _IS_KEY.match(self.raw, at)
            assert key is not None
            assert colon is not None
            named, value = Span(at, key.end()), self._value_at(colon.end())
            found.append(Member(self._string(named), named, value))
            at = self._behind(value, len(found))
        return found

    def items(self, span: Span) -> list[Span]:
        """The items of an array. Raises `BadJson` where there are too many."""
        found: list[Span] = []
        at = self._past(span.start + 1)
        while at < span.end - 1:
            found.append(self._value_at(at))
            at = self._behind(found[-1], len(found))
        return found

    def text(self, span: Span) -> str | None:
        """A string, or an array of strings put together, as notebooks write texts; None for anything else."""
        if self.is_string(span):
            return self._string(span)
        if not self.is_array(span):
            return None
        # Looked through before it is decoded, and decoded in strides: many small values take many times their size.
        pieces: list[str] = []
        at, last = self._past(span.start + 1), span.end - 1
        while at < last:
            first = _IS_STRING.match(self.raw, at)
            if first is None:
                return None
            passed = _PASSES_STRINGS.match(self.raw, first.end())
            assert passed is not None
            pieces.append("".join(json.loads(f"[{self.raw[at : passed.end()].decode()}]")))
            comma = _IS_COMMA.match(self.raw, passed.end())
            assert comma is not None
            at = comma.end()
        return "".join(pieces)

    def _string(self, span: Span) -> str:
        inside = self.raw[span.start + 1 : span.end - 1]
        if b"\\" not in inside:
            return inside.decode()
        text: str = json.loads(self.bytes_of(span).decode())
        return text

    def _value_at(self, start: int) -> Span:
        """The value that begins at `start`, checked to its end."""
        if start in self._ends:
            return Span(start, self._ends[start])
        at = start
        opened: list[int] = []  # where the boxes began that are open, the innermost last
        for _ in range(MOST_STEPS):
            plain = _IS_PLAIN.match(self.raw, at)
            if plain is not None:
                at = self._close_boxes(plain.end(), opened)
                if not opened:
                    return Span(start, at)
                continue
            box = _IS_OPEN.match(self.raw, at)
            if box is None:
                raise _wrong(self.raw, at)
            opened.append(at)
            if len(opened) > MOST_DEEP:
                raise BadJson(f"It is nested more than {MOST_DEEP} levels deep.")
            at = box.end()
        raise BadJson(f"It has more than {MOST_STEPS:,} brackets.")

    def _close_boxes(self, at: int, opened: list[int]) -> int:
        """Behind a value: close the boxes that end there. Where the next value begins, or the outermost box ended."""
        raw = self.raw
        while opened:
            closer = _CLOSER[raw[opened[-1]]]
            passed = _PASSES[closer].match(raw, at)
            assert passed is not None
            at = passed.end()
            if at >= len(raw) or raw[at] != closer:
                following = _NEXT[closer].match(raw, at)
                if following is None:
                    raise _wrong(raw, at)
                return following.end()
            at += 1
            start = opened.pop()
            if at - start >= _REMEMBERED_BYTES and len(opened) < _REMEMBERED_DEEP:
                self._ends[start] = at
        return at

    def _past(self, at: int) -> int:
        """Where the blanks end that may be there."""
        gap = _IS_GAP.match(self.raw, at)
        assert gap is not None
        return gap.end()

    def _behind(self, value: Span, count: int) -> int:
        if count > MOST_PARTS:
            raise BadJson(f"It has more than {MOST_PARTS:,} parts side by side.")
        comma = _IS_COMMA.match(self.raw, value.end)
        assert comma is not None
        return comma.end()


def _wrong(raw: bytes, at: int) -> BadJson:
    line = raw.count(b"\n", 0, at) + 1
    if at >= len(raw):
        return BadJson(f"It is not valid JSON: it ends too early, in line {line}.")
    column = at - raw.rfind(b"\n", 0, at)
    return BadJson(f"It is not valid JSON: something is wrong in line {line}, at byte {column} of it.")


MOST_BYTES = 50_000_000
MOST_CELLS = 10_000
MOST_OUTPUTS = 100
"""Outputs of one cell that are shown."""
OUTPUT_CHARS = 10_000
"""Of one output's text: half from its beginning, half from its end, where errors are named."""
PICTURE_BYTES = 3_750_000
"""A larger image is left out: model APIs take 5 MB of base64."""
FIRST_WITH_IDS = 5
"""The minor version of nbformat 4 since which cells have ids."""

BOM = b"\xef\xbb\xbf"
_COUNT = re.compile(rb"[0-9]{1,9}")
_STEERING = re.compile(r"\x1b\[[0-?]*+[ -/]*+[@-~]")
_SHOWN_AS_TEXT = ("text/plain", "text/markdown", "text/latex", "text/html", "application/javascript")
"""The first of them that an output has."""
_SHOWN_AS_PICTURE = ("image/png", "image/jpeg", "image/webp", "image/gif")
_VECTOR = "image/svg+xml"

Parts = Mapping[str, Span]
"""Name of a member → its value; of two with one name the last counts, as for every decoder."""


class BadNotebook(ValueError):  # noqa: N818 - the state of the file, as a tool reports it
    """The bytes are no notebook that can be read here."""


class CellPlace(NamedTuple):
    """A cell in the file."""

    span: Span
    members: list[Member]
    number: int
    """Its place, from 0."""
    id: str | None
    """Its own id."""
    kind: str
    source: Span
    """Its last source; there is at least one."""

    @property
    def name(self) -> str:
        """What a caller calls it."""
        return cell_name(self.number) if self.id is None else self.id

    @property
    def parts(self) -> Parts:
        return _parts(self.members)


class NotebookLayout(NamedTuple):
    """A notebook, and where everything stands in it."""

    text: Json
    members: list[Member]
    minor: int
    array: Span
    """The array of the cells."""
    cells: list[CellPlace]


def cell_name(number: int) -> str:
    """The name of the cell at a place, for files that give cells no ids."""
    return f"cell-{number}"


def outline(raw: bytes) -> NotebookLayout:
    """Where the cells are. Raises `BadNotebook`."""
    if len(raw) > MOST_BYTES:
        raise BadNotebook(f"The notebook has {len(raw):,} bytes; {MOST_BYTES:,} is the most that is read.")
    try:
        return _outline(raw)
    except BadJson as error:
        raise BadNotebook(f"The file is not a notebook that can be read. {error}") from error


def _outline(raw: bytes) -> NotebookLayout:
    text = Json(raw, len(BOM) if raw.startswith(BOM) else 0)
    if not text.is_object(text.root):
        raise BadNotebook("The file is JSON, but not a notebook: it is not an object.")
    top = text.members(text.root)
    parts = _parts(top)
    major, minor = (_count(text, parts.get(name)) for name in ("nbformat", "nbformat_minor"))
    if major is None:
        raise BadNotebook("The file is JSON, but not a notebook: it has no nbformat.")
    if major < 4:
        raise BadNotebook(
            f"The notebook is in format {major}; only format 4 can be read."
            " Convert it, for example with `jupyter nbconvert --to notebook --inplace`."
        )
    if major > 4:
        raise BadNotebook(f"The notebook is in format {major}; only format 4 can be read.")
    array = parts.get("cells")
    if array is None or not text.is_array(array):
        raise BadNotebook("The file is not a notebook: it has no list of cells.")
    spans = text.items(array)
    if len(spans) > MOST_CELLS:
        raise BadNotebook(f"The notebook has {len(spans):,} cells; {MOST_CELLS:,} is the most that is read.")
    cells = [_cell_place(text, one, number) for number, one in enumerate(spans)]
    return NotebookLayout(text, top, minor or 0, array, cells)


def _cell_place(text: Json, span: Span, number: int) -> CellPlace:
    if not text.is_object(span):
        raise BadNotebook(f"The notebook is damaged: its cell {number} (from 0) is not an object.")
    found = text.members(span)
    parts = _parts(found)
    kind, source = _string(text, parts.get("cell_type")), parts.get("source")
    if kind is None:
        raise BadNotebook(f"The notebook is damaged: its cell {number} (from 0) has no cell_type.")
    if source is None or text.text(source) is None:
        raise BadNotebook(f"The notebook is damaged: the source of its cell {number} (from 0) is not a text.")
    return CellPlace(span, found, number, _string(text, parts.get("id")), kind, source)


def read_notebook(path: str, raw: bytes) -> Notebook:
    """All cells of a notebook with what they put out. Raises `BadNotebook`."""
    book = outline(raw)
    text = book.text
    try:
        cells = tuple(_cell(path, text, place) for place in book.cells)
        return Notebook(path, _language(text, _parts(book.members)), cells, total=len(cells))
    except BadJson as error:
        raise BadNotebook(f"The notebook cannot be read. {error}") from error


def _cell(path: str, text: Json, place: CellPlace) -> Cell:
    outputs = place.parts.get("outputs")
    shown: list[CellOutput] = []
    if outputs is not None and text.is_array(outputs):
        spans = text.items(outputs)
        shown = [_output(path, text, span) for span in spans[:MOST_OUTPUTS]]
        if len(spans) > MOST_OUTPUTS:
            shown.append(CellOutput(f"[{len(spans) - MOST_OUTPUTS:,} more outputs are left out.]"))
    return Cell(place.name, place.kind, text.text(place.source) or "", tuple(shown))


def _output(path: str, text: Json, span: Span) -> CellOutput:
    parts = _object(text, span)
    kind = _string(text, parts.get("output_type"))
    if kind == "stream":
        return CellOutput(_truncate(_text(text, parts.get("text"))))
    if kind == "error":
        return CellOutput(_truncate(_error(text, parts)))
    if kind in ("execute_result", "display_data"):
        return _render_display(path, text, _object(text, parts.get("data")))
    return CellOutput(f"[An output of the unknown type {str(kind)[:100]!r}.]")


def _error(text: Json, parts: Parts) -> str:
    traceback = parts.get("traceback")
    if traceback is not None and text.is_array(traceback):
        lines = [text.text(line) or "" for line in text.items(traceback)]
        if any(lines):
            return "\n".join(lines)
    return f"{_text(text, parts.get('ename'))}: {_text(text, parts.get('evalue'))}"


def _render_display(path: str, text: Json, data: Parts) -> CellOutput:
    """One output comes in several forms: the best picture and the plainest text of them."""
    notes: list[str] = []
    picture: Picture | None = None
    kind = next((one for one in _SHOWN_AS_PICTURE if one in data), None)
    if kind is not None:
        found = _picture(path, text, data[kind])
        if isinstance(found, Picture):
            picture = found
        else:
            notes.append(f"[An output of type {kind} {found}.]")
    elif _VECTOR in data:
        notes.append(f"[An output of type {_VECTOR}, {_size(data[_VECTOR])}, which is not shown.]")
    plain = next((one for one in _SHOWN_AS_TEXT if one in data), None)
    if plain is not None:
        notes.insert(0, _truncate(_text(text, data[plain])))
    elif picture is None and not notes:
        notes += [f"[An output of type {one[:100]}, {_size(data[one])}, which is not shown.]" for one in list(data)[:3]]
    return CellOutput("\n".join(notes), picture)


def _picture(path: str, text: Json, span: Span) -> Picture | str:
    """The picture, or why there is none."""
    if (span.end - span.start) * 3 // 4 > PICTURE_BYTES:
        return f"({_size(span)}) is larger than {PICTURE_BYTES:,} bytes and left out"

    try:
        data = base64.b64decode(_text(text, span))
    except ValueError:
        return "is not valid base64"
    kind = _picture_kind(data)
    return "is not such a picture" if kind is None else Picture(path, kind, data)


def _picture_kind(data: bytes) -> str | None:
    """What the bytes are, whatever their label says: model APIs refuse a picture with the wrong one."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data.startswith(b"RIFF") and data[8:12] == b"WEBP" else None


def _truncate(text: str) -> str:
    text = _STEERING.sub("", text)
    left_out = len(text) - OUTPUT_CHARS
    if left_out <= 0:
        return text
    half = OUTPUT_CHARS // 2
    return f"{text[:half]}\n[{left_out:,} characters are left out here.]\n{text[-half:]}"


def _language(text: Json, top: Parts) -> str:
    metadata = _object(text, top.get("metadata"))
    for box, name in (("language_info", "name"), ("kernelspec", "language")):
        language = _string(text, _object(text, metadata.get(box)).get(name))
        if language:
            return language
    return "python"


def _parts(found: Iterable[Member]) -> Parts:
    return {member.name: member.value for member in found}


def _object(text: Json, span: Span | None) -> Parts:
    """The parts of an object; of anything else, none."""
    return _parts(text.members(span)) if span is not None and text.is_object(span) else {}


def _string(text: Json, span: Span | None) -> str | None:
    return None if span is None or not text.is_string(span) else text.text(span)


def _text(text: Json, span: Span | None) -> str:
    return (text.text(span) if span is not None else None) or ""


def _count(text: Json, span: Span | None) -> int | None:
    if span is None or _COUNT.fullmatch(text.raw, *span) is None:
        return None
    return int(text.bytes_of(span))


def _size(span: Span) -> str:
    return f"{span.end - span.start:,} bytes"


Mode = Literal["replace", "insert", "delete"]
Kind = Literal["code", "markdown"]

_LISTED = 20
"""Ids that a failure lists."""
_ID_CHARS = 100
"""How much of an id is looked at and said back where none fits; nbformat allows 64."""
_BY_PLACE = re.compile(r"cell-(0|[1-9][0-9]{0,8})")
_LINE_START = re.compile(rb"(\r?\n)([ \t]*)\Z")
# Not the escapes below 0x80, which every writer needs, and not a backslash that is itself escaped.
_ESCAPED = re.compile(rb"(?<!\\)(?>(?:\\\\)*)\\u(?!00[0-7])")
_RUN: dict[str, bytes] = {"execution_count": b"null", "outputs": b"[]"}
"""What a code cell has that was not run yet, and no other cell has."""
_NOT_IN_CODE = ("attachments",)


class NoCell(LookupError):  # noqa: N818 - what a tool reports
    """No cell is meant, or none has that id."""


class AmbiguousCell(LookupError):  # noqa: N818 - what a tool reports
    """Several cells have that id."""


class Changed(NamedTuple):
    """A notebook after an edit, and the cell that it was about."""

    raw: bytes
    cell_id: str
    source: str
    """The cell's source as it is now; the deleted one for a deletion."""
    before: str
    """The cell's source before; empty for a new cell."""
    dropped: tuple[str, ...] = ()
    """Members that the cell lost because cells of its new type have none."""


class _Style(NamedTuple):
    """How the file writes an object."""

    newline: str
    """Empty where everything stands on one line."""
    base: str
    """The blanks before its closing brace."""
    unit: str
    """What each level is indented by."""
    comma: str
    """With the blanks around it, where everything stands on one line."""
    colon: str
    escapes: bool
    """Are characters beyond ASCII escaped?"""

    @property
    def inner(self) -> str:
        """The blanks before its members."""
        return self.base + self.unit

    @property
    def blank(self) -> bytes:
        """What follows a comma on one line: who puts a blank after colons puts one there too."""
        return b" " if self.colon.endswith(" ") else b""


def edit_cell(
    raw: bytes, *, cell_id: str | None, source: str, cell_type: Kind | None = None, mode: Mode = "replace"
) -> Changed:
    """The notebook with one cell changed.

    An insertion goes behind the cell `cell_id`, or to the start. A replaced code cell loses its outputs: they came of
    another source. Raises `BadNotebook`, `NoCell`, `AmbiguousCell`, and `ValueError` for an insertion without a type.
    """
    book = outline(raw)
    try:
        if mode == "insert":
            changed = _insert(book, _find_cell(book, cell_id) if cell_id is not None else None, source, cell_type)
        elif mode == "delete":
            changed = _delete(book, _find_cell(book, cell_id))
        else:
            changed = _replace(book, _find_cell(book, cell_id), source, cell_type)
    except BadJson as error:
        raise BadNotebook(f"The cell cannot be edited. {error}") from error
    if len(changed.raw) > MOST_BYTES:
        raise BadNotebook(f"The notebook would have {len(changed.raw):,} bytes; {MOST_BYTES:,} is the most.")
    return changed


def _find_cell(book: NotebookLayout, cell_id: str | None) -> CellPlace:
    cells = book.cells
    if cell_id is None:
        if len(cells) == 1:
            return cells[0]
        raise NoCell(f"The notebook has {len(cells)} cells; say which one is meant.{_format_cells(cells)}")
    own = [cell for cell in cells if cell.id == cell_id]
    if len(own) > 1:
        places = ", ".join(cell_name(cell.number) for cell in own[:_LISTED])
        raise AmbiguousCell(f"{len(own)} cells have the id {cell_id[:_ID_CHARS]!r}: {places}. Name one by its place.")
    if own:
        return own[0]
    placed = _BY_PLACE.fullmatch(cell_id)
    if placed is not None and int(placed[1]) < len(cells):
        return cells[int(placed[1])]
    raise NoCell(f"No cell has the id {cell_id[:_ID_CHARS]!r}.{_suggest_cells(cell_id, cells)}")


def _suggest_cells(cell_id: str, cells: list[CellPlace]) -> str:

    alike = near(cell_id, [cell.name[:_ID_CHARS] for cell in cells[:1_000]]) if len(cell_id) <= _ID_CHARS else []
    return f" Did you mean {' or '.join(alike)}?" if alike else _format_cells(cells)


def _format_cells(cells: list[CellPlace]) -> str:
    if not cells:
        return " The notebook has no cells."
    more = f" and {len(cells) - _LISTED:,} more" if len(cells) > _LISTED else ""
    return f" The cells are {', '.join(cell.name[:_ID_CHARS] for cell in cells[:_LISTED])}{more}."


def _replace(book: NotebookLayout, cell: CellPlace, source: str, cell_type: Kind | None) -> Changed:
    text, raw, kind = book.text, book.text.raw, cell_type or cell.kind
    style = _style(raw, cell.span, cell.members)
    before = text.text(cell.source) or ""
    values = {"cell_type": _dump(kind, style)} if kind != cell.kind else {}
    if source != before:
        values["source"] = _dump_source(text, cell, source, style)
    unwanted: tuple[str, ...] = ()
    if kind == "code":
        values |= _RUN
        unwanted = _NOT_IN_CODE
    elif cell.kind == "code":
        unwanted = tuple(_RUN)
    kept = [member for member in cell.members if member.name not in unwanted]
    new = _cell_object(raw, cell, kept, values, style)
    lost = tuple(name for name in _NOT_IN_CODE if name in unwanted and name in cell.parts)
    return Changed(_splice_bytes(raw, cell.span, new), cell.name, source, before, lost)


def _cell_object(raw: bytes, cell: CellPlace, kept: list[Member], values: dict[str, bytes], style: _Style) -> bytes:
    """The cell with these members and new values; new members stand in order where the others do."""
    gaps = _gaps(raw, cell.span, [Span(one.key.start, one.value.end) for one in cell.members])
    after = dict(zip(cell.members, gaps.between, strict=False))
    pieces: list[tuple[str, bytes, bytes]] = []
    for member in kept:
        value = values.get(member.name, raw[member.value.start : member.value.end])
        text = raw[member.key.start : member.value.start] + value
        pieces.append((member.name, text, after.get(member, gaps.usual)))
    names = [member.name for member in kept]
    in_order = names == sorted(names)
    for name in sorted(values.keys() - set(names)):
        at = sum(one < name for one, _, _ in pieces) if in_order else len(pieces)
        pieces.insert(at, (name, f'"{name}"{style.colon}'.encode() + values[name], gaps.usual))
    body = b"".join(text + gap for _, text, gap in pieces[:-1]) + pieces[-1][1]
    return b"{" + gaps.first + body + gaps.last + b"}"


def _delete(book: NotebookLayout, cell: CellPlace) -> Changed:
    source = book.text.text(cell.source) or ""
    cells, number = book.cells, cell.number
    if len(cells) == 1:
        span, new = book.array, b"[]"
    elif number == 0:
        span, new = Span(cell.span.start, cells[1].span.start), b""
    else:
        span, new = Span(cells[number - 1].span.end, cell.span.end), b""
    return Changed(_splice_bytes(book.text.raw, span, new), cell.name, source, source)


def _insert(book: NotebookLayout, behind: CellPlace | None, source: str, cell_type: Kind | None) -> Changed:
    if cell_type is None:
        raise ValueError("A new cell needs a type.")
    if len(book.cells) >= MOST_CELLS:
        raise BadNotebook(f"The notebook has {len(book.cells):,} cells; {MOST_CELLS:,} is the most.")
    raw, number = book.text.raw, 0 if behind is None else behind.number + 1
    own_id = _fresh_id(book, source) if book.minor >= FIRST_WITH_IDS else None
    changed = Changed(b"", own_id or cell_name(number), source, "")
    if not book.cells:
        top = _style(raw, book.text.root, book.members)
        style = top._replace(base=top.inner + top.unit)
        cell = _dump(_new_cell(own_id, source, cell_type, as_list=True), style)
        before, after = ((top.newline + blanks).encode() for blanks in (style.base, top.inner))
        new = b"[" + before + cell + after + b"]" if top.newline else b"[" + cell + b"]"
        return changed._replace(raw=_splice_bytes(raw, book.array, new))
    model = behind or book.cells[0]
    style = _style(raw, model.span, model.members)
    cell = _dump(_new_cell(own_id, source, cell_type, as_list=book.text.is_array(model.source)), style)
    gap = _gaps(raw, book.array, [one.span for one in book.cells], style.blank).usual
    at, new = (model.span.start, cell + gap) if behind is None else (behind.span.end, gap + cell)
    return changed._replace(raw=_splice_bytes(raw, Span(at, at), new))


def _new_cell(own_id: str | None, source: str, cell_type: Kind, *, as_list: bool) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": cell_type, "metadata": {}, "source": _lines(source) if as_list else source}
    if own_id is not None:
        cell["id"] = own_id
    if cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
    return dict(sorted(cell.items()))


def _fresh_id(book: NotebookLayout, source: str) -> str:
    """One that no cell has. The same cell in the same notebook gets the same: what a person was shown is written."""
    taken = {cell.id for cell in book.cells}
    seed = hashlib.blake2b(book.text.raw + b"\0" + source.encode(errors="surrogatepass"), digest_size=16)
    while (fresh := seed.hexdigest()[:8]) in taken:
        seed.update(b"\0")
    return fresh


class _Gaps(NamedTuple):
    """What stands between the parts of an object or an array."""

    first: bytes
    between: list[bytes]
    last: bytes
    usual: bytes
    """Between two parts, where there is no better example."""


def _gaps(raw: bytes, span: Span, parts: list[Span], blank: bytes = b" ") -> _Gaps:
    first, last = raw[span.start + 1 : parts[0].start], raw[parts[-1].end : span.end - 1]
    between = [raw[one.end : other.start] for one, other in pairwise(parts)]
    single = b"," + (first if b"\n" in first else blank)
    return _Gaps(first, between, last, between[0] if between else single)


def _style(raw: bytes, span: Span, found: list[Member]) -> _Style:
    """How an object with at least two members is written."""
    gaps = _gaps(raw, span, [Span(one.key.start, one.value.end) for one in found])
    opening, closing = _LINE_START.search(gaps.first), _LINE_START.search(gaps.last)
    base = closing[2].decode() if closing else ""
    inner = opening[2].decode() if opening else ""
    return _Style(
        newline=opening[1].decode() if opening else "",
        base=base,
        unit=inner.removeprefix(base),
        comma=gaps.usual.decode(),
        colon=raw[found[0].key.end : found[0].value.start].decode(),
        escapes=raw.removeprefix(BOM).isascii() and _ESCAPED.search(raw) is not None,
    )


def _dump_source(text: Json, cell: CellPlace, source: str, style: _Style) -> bytes:
    """The source as the cell has it: a text or a list of lines, on one line or on many."""
    if not text.is_array(cell.source):
        return _dump(source, style)
    lines = text.items(cell.source)
    if lines and b"\n" not in text.raw[cell.source.start : lines[0].start]:
        style = style._replace(newline="", comma=_gaps(text.raw, cell.source, lines, style.blank).usual.decode())
    return _dump(_lines(source), style._replace(base=style.inner))


def _lines(source: str) -> list[str]:
    lines = [line + "\n" for line in source.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _dump(value: object, style: _Style) -> bytes:
    if style.newline:
        text = json.dumps(value, indent=style.unit, separators=(",", style.colon), ensure_ascii=style.escapes)
        text = text.replace("\n", style.newline + style.base)  # a newline in a string is escaped
    else:
        text = json.dumps(value, separators=(style.comma, style.colon), ensure_ascii=style.escapes)
    # Half of a surrogate pair has no UTF-8; its escape is valid JSON.
    return text.encode(errors="backslashreplace")


def _splice_bytes(raw: bytes, span: Span, new: bytes) -> bytes:
    return raw[: span.start] + new + raw[span.end :]
