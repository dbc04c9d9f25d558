"""Turn the answers of language servers into places and symbols that the session may see.

Answers are not trusted: any JSON value becomes places and symbols, or a `ToolFailure`.

Source lines are kept as long as the files look unchanged, because answers about code lead to the same files
again.

Files that may not be read are named without their code or left out. Types such as `Literal["…"]` may hold values
from such files, so these values are removed as well.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ferrule.core.errors import BadArguments, FerruleError, ToolFailure
from ferrule.core.tool import Context
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.text import lines
from ferrule.system import Threads
from ferrule.tools.lsp import Occurrence, OutlineRow, Site
from ferrule.tools.lsp.documents import DocumentReader, Encoding, Layout, Signature, from_server, path_of, signature
from ferrule.tools.lsp.servers import LanguageServers

if TYPE_CHECKING:
    from ferrule.tools.lsp.documents import OpenDocument


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


class ServerLocation(NamedTuple):
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


def places(answer: Any) -> list[ServerLocation]:
    """Places out of `Location`, `LocationLink`, or a list of them."""
    told = (_place(one) for one in _rows(answer))
    return [one for one in told if one is not None]


def symbols(answer: Any) -> list[ServerLocation]:
    """Symbols of a workspace: `SymbolInformation` and `WorkspaceSymbol`."""
    out = []
    for one in _rows(answer):
        at = _mapping(one.get("location"))
        uri = _address(at.get("uri"))
        name = _text(one.get("name"))
        if uri and name:
            line, unit = _start(at.get("range"))
            out.append(ServerLocation(uri, line, unit, _kind(one), name, _text(one.get("containerName"))))
    return out


def items(answer: Any) -> list[ServerLocation]:
    """`CallHierarchyItem`s."""
    told = (_item(one) for one in _rows(answer))
    return [one for one in told if one is not None]


def calls(answer: Any, end: Literal["from", "to"]) -> list[ServerLocation]:
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
    waiting: list[tuple[int, Mapping[str, Any]]] = [(0, one) for one in reversed(_sort_rows(answer))]
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
            waiting += [(deeper, child) for child in reversed(_sort_rows(one["children"]))]
    return tuple(rows), more + len(waiting)


def hover(answer: Any) -> str:
    """The text of a `Hover`: markup, a marked string, or a list of those."""
    if answer is None:
        return ""
    if not isinstance(answer, Mapping):
        raise _nonsense()
    contents = answer.get("contents")
    pieces = contents[:MOST_TOLD] if isinstance(contents, list) else [contents]
    said = (_render_markup(piece) for piece in pieces)
    return "\n\n".join(piece for piece in said if piece)


def _render_markup(piece: Any) -> str:
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


def _place(one: Mapping[str, Any]) -> ServerLocation | None:
    uri = _address(one.get("targetUri") or one.get("uri"))
    if not uri:
        return None
    spans = (one.get("targetSelectionRange"), one.get("targetRange"), one.get("range"))
    return ServerLocation(uri, *next((start for start in map(_start, spans) if start[0] >= 0), (-1, 0)))


def _item(one: Mapping[str, Any]) -> ServerLocation | None:
    uri, name = _address(one.get("uri")), _text(one.get("name"))
    if not uri or not name:
        return None
    line, unit = _start(one.get("selectionRange"))
    if line < 0:
        line, unit = _start(one.get("range"))
    return ServerLocation(uri, line, unit, _kind(one), name, item=one)


def _sort_rows(answer: Any) -> list[Mapping[str, Any]]:
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


_MOST_FILES = 64
_MOST_CHARS = 4 << 20


class SourceText(NamedTuple):
    """A text, its lines as people count them, and whether a server counts them differently."""

    text: str
    rows: list[str]
    has_odd_lines: bool


def source_of(text: str) -> SourceText:
    rows = lines(text)
    # A CR alone ends a line to servers, and to people only where nothing else does.
    return SourceText(text, rows, "\r" in text and any("\r" in row for row in rows))


NOTHING = SourceText("", [], has_odd_lines=False)


class Sources:
    """Files of the workspace that were read lately."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Signature, SourceText]] = {}
        self._chars = 0

    async def get(self, path: str, ctx: Context) -> SourceText:
        """What a real path holds; nothing where it is gone, is no text or may not be read."""
        jail, guard = ctx.need(Jail), ctx.need(Guard)
        kept = self._kept.get(path)
        if kept is not None and kept[0] == signature(path) and jail.holds(path) and not guard.secret(path):
            return kept[1]
        self._drop(path)
        with contextlib.suppress(FerruleError):
            read = await DocumentReader(jail, guard).read(path)
            source = source_of(read.text)
            self._keep(path, read.signature, source)
            return source
        return NOTHING

    def _keep(self, path: str, looks: Signature, source: SourceText) -> None:
        self._drop(path)
        self._kept[path] = (looks, source)
        self._chars += len(source.text)
        while len(self._kept) > _MOST_FILES or self._chars > _MOST_CHARS:
            self._drop(next(iter(self._kept)))

    def _drop(self, path: str) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            self._chars -= len(kept[1].text)


_LINE_CHARS = 200
NEAR_CHARS = 4096
_RUN = r"[\w$]+"
_KEYWORDS = frozenset(
    {
        *("and", "async", "await", "case", "class", "const", "def", "default", "elif", "else", "enum"),
        *("export", "extends", "final", "fn", "for", "from", "func", "function", "if", "implements", "import"),
        *("in", "interface", "is", "let", "mut", "new", "not", "or", "private", "protected", "pub"),
        *("public", "raise", "return", "static", "struct", "switch", "throw", "try", "type", "use", "using"),
        *("var", "void", "while", "with", "yield"),
    }
)
"""Words that are hardly ever meant by a position beside them. Some languages have names like these."""


class Pointed(NamedTuple):
    """A position in a file, and the name there."""

    line: int = 1
    character: int = 1
    name: str = ""
    snapped: str = ""
    """A sentence for whoever asked, where the name is only near the position."""


class IdentifierSpan(NamedTuple):
    """A name in a line, from one character up to another, from 0."""

    start: int
    end: int
    text: str


def point(path: str, rows: Sequence[str], line: int, character: int, ctx: Context) -> Pointed:
    """The name at a position, or the nearest on its line; wrong positions and lines without a name are failures."""
    if not 1 <= line <= len(rows):
        shown = ctx.need(Jail).display_path(path)
        has = f"{len(rows)} line" + "s" * (len(rows) != 1)
        raise BadArguments(f"{ctx.param('line')}: {line} is not a line of {shown}, which has {has}.")
    row = rows[line - 1]
    if not 1 <= character <= len(row) + 1:
        shown = ctx.need(Jail).display_path(path)
        raise BadArguments(
            f"{ctx.param('character')}: {character} is not in line {line} of {shown}, which has {len(row)} characters:"
            f" {truncate_line(row)!r}"
        )
    word = nearest(row, character - 1)
    if word is None:
        shown = ctx.need(Jail).display_path(path)
        raise ToolFailure(
            f"There is no name on line {line} of {shown}: {truncate_line(row)!r}. Point at a name.", code="no-name"
        )
    if word.start <= character - 1 < word.end:
        return Pointed(line, character, word.text)
    start = word.start + 1
    if word.end == character - 1:  # right behind it, where a cursor would stand
        return Pointed(line, start, word.text)
    shown = ctx.need(Jail).display_path(path)
    snapped = f"There is no name at {shown}:{line}:{character}; `{word.text}` at character {start} was taken."
    return Pointed(line, start, word.text, snapped)


def nearest(row: str, at: int) -> IdentifierSpan | None:
    """The name of a line that stands at a place in it, or nearest to it; of two, the one behind the place."""
    # Of a line as long as a book only what is near is looked at; no name is that long.
    begin = max(0, at - NEAR_CHARS) if len(row) > 2 * NEAR_CHARS else 0
    near = row[begin : at + NEAR_CHARS] if len(row) > 2 * NEAR_CHARS else row
    every = [IdentifierSpan(begin + word.start, begin + word.end, word.text) for word in words(near)]
    touching = [word for word in every if word.start <= at <= word.end]
    others = [word for word in every if word.text not in _KEYWORDS]
    return min(touching or others or every, key=lambda word: (_distance(word, at), word.start < at), default=None)


def _distance(word: IdentifierSpan, at: int) -> int:
    if word.start <= at < word.end:
        return 0
    return word.start - at if at < word.start else at - word.end + 1


def words(row: str) -> Iterator[IdentifierSpan]:
    """The names of a line. A combining character belongs to its name, and a number is none."""
    if row.isascii():  # nearly every line
        for found in re.finditer(_RUN, row, re.ASCII):
            if not found[0][0].isdigit():
                yield IdentifierSpan(*found.span(), found[0])
        return
    start = 0
    while start < len(row):
        end = start
        while end < len(row) and _is_part(row[end]):
            end += 1
        if end > start and (row[start] == "$" or row[start].isidentifier()):
            yield IdentifierSpan(start, end, row[start:end])
        start = max(end, start + 1)


def _is_part(character: str) -> bool:
    return character == "$" or f"a{character}".isidentifier()


def truncate_line(row: str) -> str:
    """A line of code as it is shown: without the blanks around it, and not too long."""
    bare = row.strip()
    return bare if len(bare) <= _LINE_CHARS else bare[:_LINE_CHARS] + "…"


MOST = 100
"""Places, with the sites of calls among them."""
_DECORATED = 8
"""So many lines below its beginning the name of a symbol is looked for."""
_FEW = 4
_SHOWN_ADDRESS_CHARS = 300
_READ_CHARS = 64 << 20
"""How much is read for the lines of one answer."""


class OccurrenceSelection(NamedTuple):
    """Some places, and what is not among them."""

    places: tuple[Occurrence, ...]
    more: int = 0
    more_sites: int = 0
    is_partial: bool = False
    """Were places left out that lie in files which may not be read?"""


class _ResolvedLocation(NamedTuple):
    """A place and the real path behind its address; None where that is no file."""

    told: ServerLocation
    real: str | None
    is_inside: bool
    is_own: bool = False
    """Does only the server have that file, as in its private folder?"""


class OccurrenceResolver:
    """Shows the places of one answer."""

    def __init__(
        self,
        ctx: Context,
        encoding: Encoding,
        sources: Sources,
        known: "tuple[OpenDocument, SourceText] | None" = None,
        *,
        owner: str = "the server",
    ) -> None:
        """`known` is a document that was allowed just now, as the server has it, and `owner` is that server."""
        self._ctx = ctx
        self._owner = owner
        self._sources = sources
        self._jail = ctx.need(Jail)
        self._guard = ctx.need(Guard)
        self._threads = ctx.need(Threads)
        self._encoding = encoding
        self._paths: dict[str, tuple[str | None, bool, bool] | None] = {}
        self._files: dict[str, SourceText] = {}
        if known is not None:
            document, source = known
            self._paths[document.uri] = (document.path, True, False)
            self._files[document.path] = source
        self._layouts: dict[str, Layout] = {}
        self._room = _READ_CHARS

    async def places(
        self,
        told: Sequence[ServerLocation],
        *,
        definitions: Sequence[ServerLocation] = (),
        name: str = "",
        sites_in: str = "",
    ) -> OccurrenceSelection:
        """The first places by file and line, each once: `definitions` before others, symbols of that `name` too.

        `sites_in` is the file in which calls are made; each caller's own where it is empty.
        """
        await self._resolve((*told, *definitions))
        allowed = [place for place in map(self._place, told) if place is not None]
        defined = {_spot(place)[:2] for place in map(self._place, definitions) if place is not None}

        def order(place: _ResolvedLocation) -> tuple[bool, bool, bool, tuple[str, int, int]]:
            spot = _spot(place)
            return spot[:2] not in defined, bool(name) and place.told.name != name, not place.is_inside, spot

        chosen = sorted({_spot(place): place for place in reversed(_once(allowed))}.values(), key=order)
        shown: list[Occurrence] = []
        room, more_sites = MOST, 0
        for place in chosen:
            if room <= 0:
                break
            sites = place.told.sites[: room - 1]
            more_sites += len(place.told.sites) - len(sites)
            await self._read(place.real if place.is_inside else None)
            await self._read(sites_in)
            found = self._occurrence(place, sites, sites_in)
            shown.append(found._replace(is_definition=_spot(place)[:2] in defined))
            room -= 1 + len(sites)
        return OccurrenceSelection(tuple(shown), len(chosen) - len(shown), more_sites, len(allowed) < len(told))

    async def readable(self, told: Sequence[ServerLocation]) -> list[ServerLocation]:
        """Those of them that the session may know of."""
        await self._resolve(told)
        return [one for one in told if self._place(one) is not None]

    def inside(self, told: ServerLocation) -> str:
        """The real path of its file, where that lies in the workspace; else empty."""
        place = self._place(told)
        return place.real or "" if place is not None and place.is_inside else ""

    def _place(self, told: ServerLocation) -> _ResolvedLocation | None:
        """None for a place in a file that is secret, or that a rule denies: it is neither shown nor named."""
        found = self._paths[told.uri]
        return None if found is None else _ResolvedLocation(told, *found)

    async def _resolve(self, told: Iterable[ServerLocation]) -> None:
        new = {one.uri for one in told} - self._paths.keys()
        if len(new) <= _FEW:  # sooner done than handed to a thread
            self._paths |= {uri: self._resolve_uri(uri) for uri in new}
        else:
            self._paths |= await self._threads.run(lambda: {uri: self._resolve_uri(uri) for uri in new})

    def _resolve_uri(self, uri: str) -> tuple[str | None, bool, bool] | None:
        try:
            spelled = path_of(uri)
            if spelled is None:
                return None, False, False
            real = self._jail.real(spelled)
        except (FerruleError, UnicodeError):
            return None, False, False  # a path that no file can have
        if self._guard.secret(real) or self._guard.secret(self._jail.lexical_path(spelled)):
            return None
        is_inside = self._jail.holds(real) and not self._jail.in_own_tmp(real)  # servers keep copies of libraries there
        # What a confined server keeps for itself lies where nobody else has anything.
        return real, is_inside, not is_inside and not os.path.lexists(real)

    def _occurrence(self, place: _ResolvedLocation, sites: Sequence[tuple[int, int]], sites_in: str) -> Occurrence:
        told, real, is_inside, is_own = place
        own = real if is_inside else None
        line, character, text = self._line(own, told.line, told.unit)
        if text and told.name:
            line, character, text = self._at_name(self._files[own or ""].rows, told.name, line, character)
        called_in = sites_in or own
        path = (
            told.uri[:_SHOWN_ADDRESS_CHARS]
            if real is None
            else os.path.basename(real)
            if is_own
            else self._jail.display_path(real)
        )
        return Occurrence(
            _one_line(path),
            line,
            character,
            text,
            is_outside=real is not None and not is_inside,
            kind=told.kind,
            name=told.name,
            container=told.container,
            sites=tuple(self._site(called_in, *site) for site in sites) if called_in else (),
            owner=self._owner if is_own else "",
        )

    def _at_name(self, rows: list[str], name: str, line: int, character: int) -> tuple[int, int, str]:
        """The same place, or the name's own: some servers say where a symbol begins, be it with a decorator."""
        for number in range(line, min(line + _DECORATED, len(rows)) + 1):
            begin = character - 1 if number == line else 0
            near = words(rows[number - 1][begin : begin + NEAR_CHARS])
            found = next((word for word in near if word.text == name), None)
            if found is not None:
                return number, begin + found.start + 1, truncate_line(rows[number - 1])
        return line, character, truncate_line(rows[line - 1])

    def _site(self, path: str, line: int, unit: int) -> Site:
        return Site(_one_line(self._jail.display_path(path)), *self._line(path, line, unit))

    def _line(self, path: str | None, line: int, unit: int) -> tuple[int, int, str]:
        """The line, the character and the code of a position; only files of the workspace are looked into."""
        if line < 0 or path is None:
            return line + 1, 0, ""
        text, rows, has_odd_lines = self._files[path]
        if has_odd_lines:
            layout = self._layouts.get(path) or Layout(text, self._encoding)
            self._layouts[path] = layout
            number, character = layout.place({"line": line, "character": unit})
        elif line < len(rows):
            number, character = line + 1, from_server(rows[line], {"line": 0, "character": unit}, self._encoding)[1]
        else:
            return line + 1, 0, ""  # the file has changed, or was not read
        return number, character, truncate_line(rows[number - 1]) if number <= len(rows) else ""

    async def _read(self, path: str | None) -> None:
        if path and path not in self._files:
            self._files[path] = await self._sources.get(path, self._ctx) if self._room > 0 else NOTHING
            self._room -= len(self._files[path].text)


def _one_line(path: str) -> str:
    """A name with a line end in it could look like a line of the answer."""
    return path if path.isprintable() else "".join("\ufffd" if char in "\t\n\v\f\r" else char for char in path)


def _once(places: Sequence[_ResolvedLocation]) -> list[_ResolvedLocation]:
    """Of what only the server can open, each file and name once, as the first of its overloads."""
    found: list[_ResolvedLocation] = []
    own: dict[tuple[str | None, str], int] = {}
    for place in places:
        key = (place.real, place.told.name)
        if not place.is_own or key not in own:
            if place.is_own:
                own[key] = len(found)
            found.append(place)
            continue
        first = found[own[key]]
        least = min(first, place, key=lambda one: one.told.line)
        sites = tuple(sorted({*first.told.sites, *place.told.sites}))
        found[own[key]] = least._replace(told=least.told._replace(sites=sites))
    return found


def _spot(place: _ResolvedLocation) -> tuple[str, int, int]:
    """Which place it is. Of what is not looked into only the line is told."""
    return place.real or place.told.uri, place.told.line, place.told.unit if place.is_inside else 0


_FENCED = r"^(`{3,}+)[^\n]*+\n.*?(?:^\1|\Z)"
_VALUE = r"""(["'`])((?:\\.|(?!\1)[^\\\n])+)(?:\1|$)|\d{4,}"""


def sees_all(ctx: Context) -> bool:
    """Do servers see secret and denied files too? Only the sandbox hides those from them."""
    return ctx.need(LanguageServers).sees_all


def without_values(text: str, source: str) -> str:
    """The text with the values in its code left out that do not stand in the source which was asked about."""

    def hidden(value: re.Match[str]) -> str:
        bare = value[2] or value[0]
        return value[0] if bare in source else f"{value[1] or ''}…{value[1] or ''}"

    def kept(block: re.Match[str]) -> str:
        head, line, rest = block[0].partition("\n")
        body = rest.removesuffix(block[1])
        return head + line + re.sub(_VALUE, hidden, body, flags=re.MULTILINE) + rest[len(body) :]

    return re.sub(_FENCED, kept, text, flags=re.DOTALL | re.MULTILINE)
