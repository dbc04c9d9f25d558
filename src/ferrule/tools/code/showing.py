"""Places that a server has told, as a session may see them: whose code is shown, who is only named, who is left out."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.core.code import Occurrence, Site
from ferrule.core.errors import FerruleError
from ferrule.core.tool import Context
from ferrule.support.threads import Threads
from ferrule.tools.code.answers import Told
from ferrule.tools.code.pointing import NEAR_CHARS, shortened, words
from ferrule.tools.code.sources import NOTHING, Source, Sources
from ferrule.workspace.guarded import Guard
from ferrule.workspace.languages.positions import Encoding, Layout, from_server, path_of
from ferrule.workspace.paths import Jail

if TYPE_CHECKING:
    from ferrule.workspace.languages.documents import Document

MOST = 100
"""Places, with the sites of calls among them."""
_DECORATED = 8
"""So many lines below its beginning the name of a symbol is looked for."""
_FEW = 4
_ADDRESS_CHARS = 300
_READ_CHARS = 64 << 20
"""How much is read for the lines of one answer."""


class Shown(NamedTuple):
    """Some places, and what is not among them."""

    places: tuple[Occurrence, ...]
    more: int = 0
    more_sites: int = 0
    is_partial: bool = False
    """Were places left out that lie in files which may not be read?"""


class _Place(NamedTuple):
    """A place and the real path behind its address; None where that is no file."""

    told: Told
    real: str | None
    is_inside: bool
    is_own: bool = False
    """Does only the server have that file, as in its private folder?"""


class Showing:
    """Shows the places of one answer."""

    def __init__(
        self,
        ctx: Context,
        encoding: Encoding,
        sources: Sources,
        known: "tuple[Document, Source] | None" = None,
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
        self._files: dict[str, Source] = {}
        if known is not None:
            document, source = known
            self._paths[document.uri] = (document.path, True, False)
            self._files[document.path] = source
        self._layouts: dict[str, Layout] = {}
        self._room = _READ_CHARS

    async def places(
        self, told: Sequence[Told], *, definitions: Sequence[Told] = (), name: str = "", sites_in: str = ""
    ) -> Shown:
        """The first places by file and line, each once: `definitions` before others, symbols of that `name` too.

        `sites_in` is the file in which calls are made; each caller's own where it is empty.
        """
        await self._resolve((*told, *definitions))
        allowed = [place for place in map(self._place, told) if place is not None]
        defined = {_spot(place)[:2] for place in map(self._place, definitions) if place is not None}

        def order(place: _Place) -> tuple[bool, bool, bool, tuple[str, int, int]]:
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
        return Shown(tuple(shown), len(chosen) - len(shown), more_sites, len(allowed) < len(told))

    async def readable(self, told: Sequence[Told]) -> list[Told]:
        """Those of them that the session may know of."""
        await self._resolve(told)
        return [one for one in told if self._place(one) is not None]

    def inside(self, told: Told) -> str:
        """The real path of its file, where that lies in the workspace; else empty."""
        place = self._place(told)
        return place.real or "" if place is not None and place.is_inside else ""

    def _place(self, told: Told) -> _Place | None:
        """None for a place in a file that is secret, or that a rule denies: it is neither shown nor named."""
        found = self._paths[told.uri]
        return None if found is None else _Place(told, *found)

    async def _resolve(self, told: Iterable[Told]) -> None:
        new = {one.uri for one in told} - self._paths.keys()
        if len(new) <= _FEW:  # sooner done than handed to a thread
            self._paths |= {uri: self._resolved(uri) for uri in new}
        else:
            self._paths |= await self._threads.run(lambda: {uri: self._resolved(uri) for uri in new})

    def _resolved(self, uri: str) -> tuple[str | None, bool, bool] | None:
        try:
            spelled = path_of(uri)
            if spelled is None:
                return None, False, False
            real = self._jail.real(spelled)
        except (FerruleError, UnicodeError):
            return None, False, False  # a path that no file can have
        if self._guard.secret(real) or self._guard.secret(self._jail.spelled(spelled)):
            return None
        is_inside = self._jail.holds(real) and not self._jail.in_own_tmp(real)  # servers keep copies of libraries there
        # What a confined server keeps for itself lies where nobody else has anything.
        return real, is_inside, not is_inside and not os.path.lexists(real)

    def _occurrence(self, place: _Place, sites: Sequence[tuple[int, int]], sites_in: str) -> Occurrence:
        told, real, is_inside, is_own = place
        own = real if is_inside else None
        line, character, text = self._line(own, told.line, told.unit)
        if text and told.name:
            line, character, text = self._at_name(self._files[own or ""].rows, told.name, line, character)
        called_in = sites_in or own
        path = (
            told.uri[:_ADDRESS_CHARS] if real is None else os.path.basename(real) if is_own else self._jail.shown(real)
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
                return number, begin + found.start + 1, shortened(rows[number - 1])
        return line, character, shortened(rows[line - 1])

    def _site(self, path: str, line: int, unit: int) -> Site:
        return Site(_one_line(self._jail.shown(path)), *self._line(path, line, unit))

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
        return number, character, shortened(rows[number - 1]) if number <= len(rows) else ""

    async def _read(self, path: str | None) -> None:
        if path and path not in self._files:
            self._files[path] = await self._sources.get(path, self._ctx) if self._room > 0 else NOTHING
            self._room -= len(self._files[path].text)


def _one_line(path: str) -> str:
    """A name with a line end in it could look like a line of the answer."""
    return path if path.isprintable() else "".join("\ufffd" if char in "\t\n\v\f\r" else char for char in path)


def _once(places: Sequence[_Place]) -> list[_Place]:
    """Of what only the server can open, each file and name once, as the first of its overloads."""
    found: list[_Place] = []
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


def _spot(place: _Place) -> tuple[str, int, int]:
    """Which place it is. Of what is not looked into only the line is told."""
    return place.real or place.told.uri, place.told.line, place.told.unit if place.is_inside else 0
