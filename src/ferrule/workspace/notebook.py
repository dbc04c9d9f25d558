"""Notebooks (nbformat 4): where their cells stand in the file, and the cells with their outputs for a reader.

Everything is bounded before it is decoded; what is left out is said in its place.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ferrule.core.outcomes import Cell, CellOutput, Notebook, Picture
from ferrule.workspace.jsonspan import BadJson, Json, Member, Span

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
        return named(self.number) if self.id is None else self.id

    @property
    def parts(self) -> Parts:
        return _parts(self.members)


class Outline(NamedTuple):
    """A notebook, and where everything stands in it."""

    text: Json
    members: list[Member]
    minor: int
    array: Span
    """The array of the cells."""
    cells: list[CellPlace]


def named(number: int) -> str:
    """The name of the cell at a place, for files that give cells no ids."""
    return f"cell-{number}"


def outline(raw: bytes) -> Outline:
    """Where the cells are. Raises `BadNotebook`."""
    if len(raw) > MOST_BYTES:
        raise BadNotebook(f"The notebook has {len(raw):,} bytes; {MOST_BYTES:,} is the most that is read.")
    try:
        return _outline(raw)
    except BadJson as error:
        raise BadNotebook(f"The file is not a notebook that can be read. {error}") from error


def _outline(raw: bytes) -> Outline:
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
    return Outline(text, top, minor or 0, array, cells)


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
        return CellOutput(_bounded(_text(text, parts.get("text"))))
    if kind == "error":
        return CellOutput(_bounded(_error(text, parts)))
    if kind in ("execute_result", "display_data"):
        return _displayed(path, text, _object(text, parts.get("data")))
    return CellOutput(f"[An output of the unknown type {str(kind)[:100]!r}.]")


def _error(text: Json, parts: Parts) -> str:
    traceback = parts.get("traceback")
    if traceback is not None and text.is_array(traceback):
        lines = [text.text(line) or "" for line in text.items(traceback)]
        if any(lines):
            return "\n".join(lines)
    return f"{_text(text, parts.get('ename'))}: {_text(text, parts.get('evalue'))}"


def _displayed(path: str, text: Json, data: Parts) -> CellOutput:
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
        notes.insert(0, _bounded(_text(text, data[plain])))
    elif picture is None and not notes:
        notes += [f"[An output of type {one[:100]}, {_size(data[one])}, which is not shown.]" for one in list(data)[:3]]
    return CellOutput("\n".join(notes), picture)


def _picture(path: str, text: Json, span: Span) -> Picture | str:
    """The picture, or why there is none."""
    if (span.end - span.start) * 3 // 4 > PICTURE_BYTES:
        return f"({_size(span)}) is larger than {PICTURE_BYTES:,} bytes and left out"
    import base64  # only notebooks with pictures pay for it

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


def _bounded(text: str) -> str:
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
