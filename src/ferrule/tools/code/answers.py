"""What servers answer, read without trust: any JSON value becomes places and symbols, or a `ToolFailure`."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ferrule.core.code import OutlineRow
from ferrule.core.errors import ToolFailure

MOST_TOLD = 20_000
"""Places or symbols that are looked at; nobody needs more to choose from."""
_NAME_CHARS = 200
_ADDRESS_CHARS = 16_384
_DEEPEST = 50
_LARGEST = 1 << 31
_NOTHING: Mapping[str, Any] = {}

KINDS = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum"),
    *("interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key"),
    *("null", "enum member", "struct", "event", "operator", "type parameter"),
)
"""The protocol's kinds of symbols, from 1."""


class Told(NamedTuple):
    """A place as a server tells it."""

    uri: str
    line: int = -1
    """From 0; -1 where it is not said."""
    unit: int = 0
    """Where in the line, from 0, in the server's units."""
    kind: str = ""
    name: str = ""
    container: str = ""
    item: Mapping[str, Any] = _NOTHING
    """All of it as it came, to ask on about it."""
    sites: tuple[tuple[int, int], ...] = ()
    """For calls: the line and the unit of each."""


def places(answer: Any) -> list[Told]:
    """Places out of `Location`, `LocationLink`, or a list of them."""
    told = (_place(one) for one in _rows(answer))
    return [one for one in told if one is not None]


def symbols(answer: Any) -> list[Told]:
    """Symbols of a workspace: `SymbolInformation` and `WorkspaceSymbol`."""
    out = []
    for one in _rows(answer):
        at = _mapping(one.get("location"))
        uri = _address(at.get("uri"))
        name = _text(one.get("name"))
        if uri and name:
            line, unit = _start(at.get("range"))
            out.append(Told(uri, line, unit, _kind(one), name, _text(one.get("containerName"))))
    return out


def items(answer: Any) -> list[Told]:
    """`CallHierarchyItem`s."""
    told = (_item(one) for one in _rows(answer))
    return [one for one in told if one is not None]


def calls(answer: Any, end: Literal["from", "to"]) -> list[Told]:
    """Who calls (`from`) or is called (`to`), each with where the calls are made."""
    out = []
    for one in _rows(answer):
        told = _item(_mapping(one.get(end)))
        if told is not None:
            starts = [_start(place) for place in _list(one.get("fromRanges"))]
            out.append(told._replace(sites=tuple(sorted({start for start in starts if start[0] >= 0}))))
    return out


def outline(answer: Any, most: int) -> tuple[tuple[OutlineRow, ...], int]:
    """The symbols of a file, `DocumentSymbol` or `SymbolInformation`, and how many there are beyond `most`."""
    rows: list[OutlineRow] = []
    more = seen = 0
    # A stack instead of a recursion: the depth is the server's choice.
    waiting: list[tuple[int, Mapping[str, Any]]] = [(0, one) for one in reversed(_ordered(answer))]
    while waiting and seen < MOST_TOLD:
        depth, one = waiting.pop()
        seen += 1
        name = _text(one.get("name"))
        if name and len(rows) < most:
            first, last = _span(one)
            rows.append(OutlineRow(depth, _kind(one), name, first, last, _text(one.get("containerName"))))
        elif name:
            more += 1
        if isinstance(one.get("children"), list):
            deeper = min(depth + 1, _DEEPEST)
            waiting += [(deeper, child) for child in reversed(_ordered(one["children"]))]
    return tuple(rows), more + len(waiting)


def hover(answer: Any) -> str:
    """The text of a `Hover`: markup, a marked string, or a list of those."""
    if answer is None:
        return ""
    if not isinstance(answer, Mapping):
        raise _nonsense()
    contents = answer.get("contents")
    pieces = contents[:MOST_TOLD] if isinstance(contents, list) else [contents]
    said = (_marked(piece) for piece in pieces)
    return "\n\n".join(piece for piece in said if piece)


def _marked(piece: Any) -> str:
    if isinstance(piece, str):
        return piece.strip()
    value = _mapping(piece).get("value")
    if not isinstance(value, str) or not value.strip():
        return ""
    language = piece.get("language")
    if not isinstance(language, str):
        return value.strip()
    fence = "```"
    while fence in value:
        fence += "`"
    return f"{fence}{_text(language)}\n{value.strip()}\n{fence}"


def _place(one: Mapping[str, Any]) -> Told | None:
    uri = _address(one.get("targetUri") or one.get("uri"))
    if not uri:
        return None
    spans = (one.get("targetSelectionRange"), one.get("targetRange"), one.get("range"))
    return Told(uri, *next((start for start in map(_start, spans) if start[0] >= 0), (-1, 0)))


def _item(one: Mapping[str, Any]) -> Told | None:
    uri, name = _address(one.get("uri")), _text(one.get("name"))
    if not uri or not name:
        return None
    line, unit = _start(one.get("selectionRange"))
    if line < 0:
        line, unit = _start(one.get("range"))
    return Told(uri, line, unit, _kind(one), name, item=one)


def _ordered(answer: Any) -> list[Mapping[str, Any]]:
    return sorted(_rows(answer), key=_first)


def _first(one: Mapping[str, Any]) -> tuple[int, int]:
    return _start(_mapping(one.get("location")).get("range") or one.get("range"))


def _span(one: Mapping[str, Any]) -> tuple[int, int]:
    """The first and the last line of a symbol, from 1."""
    whole = _mapping(_mapping(one.get("location")).get("range") or one.get("range"))
    first, _ = _start(whole)
    last, unit = _point(whole.get("end"))
    if unit == 0 and last > first:
        last -= 1  # it ends before that line begins
    return first + 1, max(first, last) + 1


def _rows(answer: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of an answer that is one, or a list of them, or nothing."""
    if answer is None:
        return
    if not isinstance(answer, (list, Mapping)):
        raise _nonsense()
    some = answer if isinstance(answer, list) else [answer]
    for one in some[:MOST_TOLD]:
        if isinstance(one, Mapping):
            yield one


def _start(span: Any) -> tuple[int, int]:
    return _point(_mapping(span).get("start"))


def _point(position: Any) -> tuple[int, int]:
    """A line and a unit; -1 for a line that is none."""
    at = _mapping(position)
    line, unit = _count(at.get("line")), _count(at.get("character"))
    return (-1, 0) if line is None else (line, unit or 0)


def _count(value: Any) -> int | None:
    """A whole number that can be one of a line or of a unit. Some programs write it as `3.0`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
        return None
    return int(value)


def _kind(one: Mapping[str, Any]) -> str:
    number = _count(one.get("kind"))
    return KINDS[number - 1] if number and number <= len(KINDS) else ""


def _text(value: Any) -> str:
    """One line of it: a name with a line end in it could look like a line of the answer."""
    if not isinstance(value, str):
        return ""
    line = " ".join(value[: _NAME_CHARS + 1].split())
    return line if len(line) <= _NAME_CHARS else line[:_NAME_CHARS] + "…"


def _address(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= _ADDRESS_CHARS else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else _NOTHING


def _list(value: Any) -> list[Any]:
    return value[:MOST_TOLD] if isinstance(value, list) else []


def _nonsense() -> ToolFailure:
    return ToolFailure(
        "The language server answered with something that is no answer to this. Ask again, or search the text.",
        code="server-failed",
    )
