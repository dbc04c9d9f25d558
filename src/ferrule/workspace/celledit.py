"""One cell of a notebook replaced, inserted or deleted, by splicing bytes: everything else stays as it was written.

What is new is written as the file writes: its line ends, indentation, blanks after commas and colons, and escapes.
"""

import json
import re
from itertools import pairwise
from typing import Literal, NamedTuple

from ferrule.workspace.jsonspan import BadJson, Json, Member, Span
from ferrule.workspace.notebook import (
    BOM,
    FIRST_WITH_IDS,
    MOST_BYTES,
    MOST_CELLS,
    BadNotebook,
    CellPlace,
    Outline,
    named,
    outline,
)

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
            changed = _insert(book, _found(book, cell_id) if cell_id is not None else None, source, cell_type)
        elif mode == "delete":
            changed = _delete(book, _found(book, cell_id))
        else:
            changed = _replace(book, _found(book, cell_id), source, cell_type)
    except BadJson as error:
        raise BadNotebook(f"The cell cannot be edited. {error}") from error
    if len(changed.raw) > MOST_BYTES:
        raise BadNotebook(f"The notebook would have {len(changed.raw):,} bytes; {MOST_BYTES:,} is the most.")
    return changed


def _found(book: Outline, cell_id: str | None) -> CellPlace:
    cells = book.cells
    if cell_id is None:
        if len(cells) == 1:
            return cells[0]
        raise NoCell(f"The notebook has {len(cells)} cells; say which one is meant.{_listed(cells)}")
    own = [cell for cell in cells if cell.id == cell_id]
    if len(own) > 1:
        places = ", ".join(named(cell.number) for cell in own[:_LISTED])
        raise AmbiguousCell(f"{len(own)} cells have the id {cell_id[:_ID_CHARS]!r}: {places}. Name one by its place.")
    if own:
        return own[0]
    placed = _BY_PLACE.fullmatch(cell_id)
    if placed is not None and int(placed[1]) < len(cells):
        return cells[int(placed[1])]
    raise NoCell(f"No cell has the id {cell_id[:_ID_CHARS]!r}.{_meant(cell_id, cells)}")


def _meant(cell_id: str, cells: list[CellPlace]) -> str:
    from ferrule.support.near import near  # only a mistake pays for it

    alike = near(cell_id, [cell.name[:_ID_CHARS] for cell in cells[:1_000]]) if len(cell_id) <= _ID_CHARS else []
    return f" Did you mean {' or '.join(alike)}?" if alike else _listed(cells)


def _listed(cells: list[CellPlace]) -> str:
    if not cells:
        return " The notebook has no cells."
    more = f" and {len(cells) - _LISTED:,} more" if len(cells) > _LISTED else ""
    return f" The cells are {', '.join(cell.name[:_ID_CHARS] for cell in cells[:_LISTED])}{more}."


def _replace(book: Outline, cell: CellPlace, source: str, cell_type: Kind | None) -> Changed:
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
    new = _object(raw, cell, kept, values, style)
    lost = tuple(name for name in _NOT_IN_CODE if name in unwanted and name in cell.parts)
    return Changed(_spliced(raw, cell.span, new), cell.name, source, before, lost)


def _object(raw: bytes, cell: CellPlace, kept: list[Member], values: dict[str, bytes], style: _Style) -> bytes:
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


def _delete(book: Outline, cell: CellPlace) -> Changed:
    source = book.text.text(cell.source) or ""
    cells, number = book.cells, cell.number
    if len(cells) == 1:
        span, new = book.array, b"[]"
    elif number == 0:
        span, new = Span(cell.span.start, cells[1].span.start), b""
    else:
        span, new = Span(cells[number - 1].span.end, cell.span.end), b""
    return Changed(_spliced(book.text.raw, span, new), cell.name, source, source)


def _insert(book: Outline, behind: CellPlace | None, source: str, cell_type: Kind | None) -> Changed:
    if cell_type is None:
        raise ValueError("A new cell needs a type.")
    if len(book.cells) >= MOST_CELLS:
        raise BadNotebook(f"The notebook has {len(book.cells):,} cells; {MOST_CELLS:,} is the most.")
    raw, number = book.text.raw, 0 if behind is None else behind.number + 1
    own_id = _fresh_id(book, source) if book.minor >= FIRST_WITH_IDS else None
    changed = Changed(b"", own_id or named(number), source, "")
    if not book.cells:
        top = _style(raw, book.text.root, book.members)
        style = top._replace(base=top.inner + top.unit)
        cell = _dump(_new_cell(own_id, source, cell_type, as_list=True), style)
        before, after = ((top.newline + blanks).encode() for blanks in (style.base, top.inner))
        new = b"[" + before + cell + after + b"]" if top.newline else b"[" + cell + b"]"
        return changed._replace(raw=_spliced(raw, book.array, new))
    model = behind or book.cells[0]
    style = _style(raw, model.span, model.members)
    cell = _dump(_new_cell(own_id, source, cell_type, as_list=book.text.is_array(model.source)), style)
    gap = _gaps(raw, book.array, [one.span for one in book.cells], style.blank).usual
    at, new = (model.span.start, cell + gap) if behind is None else (behind.span.end, gap + cell)
    return changed._replace(raw=_spliced(raw, Span(at, at), new))


def _new_cell(own_id: str | None, source: str, cell_type: Kind, *, as_list: bool) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": cell_type, "metadata": {}, "source": _lines(source) if as_list else source}
    if own_id is not None:
        cell["id"] = own_id
    if cell_type == "code":
        cell |= {"execution_count": None, "outputs": []}
    return dict(sorted(cell.items()))


def _fresh_id(book: Outline, source: str) -> str:
    """One that no cell has. The same cell in the same notebook gets the same: what a person was shown is written."""
    import hashlib  # only new cells pay for it

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


def _spliced(raw: bytes, span: Span, new: bytes) -> bytes:
    return raw[: span.start] + new + raw[span.end :]
