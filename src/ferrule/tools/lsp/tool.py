"""Ask a language server about code, or search the text if no server can be asked."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from ferrule.core.access import Access
from ferrule.core.content import Hits
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.settings import Settings
from ferrule.tools.lsp import CodeQuery, Hovered, InText, Occurrences, Operation, Outline, answers
from ferrule.tools.lsp.answers import (
    OccurrenceResolver,
    Pointed,
    ServerLocation,
    Sources,
    SourceText,
    point,
    sees_all,
    source_of,
    without_values,
    words,
)
from ferrule.tools.lsp.documents import DocumentReader, to_server
from ferrule.tools.lsp.server import GivenUp, ProjectLanguageServer
from ferrule.tools.lsp.servers import LanguageServers
from ferrule.tools.search.grep import Grep, GrepArgs

if TYPE_CHECKING:
    from ferrule.tools.lsp.documents import Encoding, OpenDocument


MOST_SYMBOLS = 500
HOVER_CHARS = 8_000
_MOST_AGAIN = 5
_AGAIN_SECONDS = 0.1

_DEFINITION = "textDocument/definition"
_REFERENCES = "textDocument/references"
_IMPLEMENTATION = "textDocument/implementation"
_HOVER = "textDocument/hover"
_OUTLINE = "textDocument/documentSymbol"
_SYMBOLS = "workspace/symbol"
_HIERARCHY = "textDocument/prepareCallHierarchy"

LEFT_OUT = "Places in files that may not be read were left out."

Outcome = Occurrences | Outline | Hovered


class Inquiry(NamedTuple):
    """A server, and what it is asked about."""

    server: ProjectLanguageServer
    asked: CodeQuery
    at: Mapping[str, Any]
    """The document and the position, in the server's words."""
    document: "OpenDocument"
    """As the server has it."""
    source: SourceText
    """Its text."""
    ctx: Context
    seconds: float
    proven: MutableMapping[ProjectLanguageServer, int]
    """Servers that have found the files of their project, each with the process that has."""
    sources: Sources

    async def ask(self, method: str) -> Any:
        """The server's answer about the position."""
        return await self.put(method, self.at)

    async def put(self, method: str, params: Mapping[str, Any]) -> Any:
        """The server's answer to something else. Raises `ToolFailure`."""
        return await self.server.ask(method, params, seconds=self.seconds)

    async def everywhere(self, method: str, params: Mapping[str, Any]) -> Any:
        """Its answer about all files of the project.

        One that was just started may answer before it has found them all, and not say so: it is asked about the file
        first, for which it has to know its project, and then until it says the same twice.
        """
        if self.proven.get(self.server) == self.server.pid:
            return await self.put(method, params)
        with contextlib.suppress(ToolFailure):
            await self.put(_OUTLINE, {"textDocument": self.at["textDocument"]})
        answer = await self.put(method, params)
        for _ in range(_MOST_AGAIN):
            if self.proven.get(self.server) == self.server.pid:
                break
            await asyncio.sleep(_AGAIN_SECONDS)
            before, answer = answer, await self.put(method, params)
            if answer == before:
                self.proven[self.server] = self.server.pid
        return answer

    def build_resolver(self) -> OccurrenceResolver:
        known = (self.document, self.source)
        return OccurrenceResolver(self.ctx, self.server.encoding, self.sources, known, owner=self.server.name)

    async def resolve_places(
        self, told: Sequence[ServerLocation], showing: OccurrenceResolver | None = None, **how: Any
    ) -> Occurrences:
        """Places as the session may see them."""
        found = await (showing or self.build_resolver()).places(told, **how)
        if found.is_partial:
            self.ctx.note(LEFT_OUT)
        return Occurrences(self.asked, found.places, found.more, more_sites=found.more_sites)


async def _definition(inquiry: Inquiry) -> Outcome:
    return await inquiry.resolve_places(answers.places(await inquiry.ask(_DEFINITION)))


async def _implementation(inquiry: Inquiry) -> Outcome:
    return await inquiry.resolve_places(answers.places(await inquiry.everywhere(_IMPLEMENTATION, inquiry.at)))


async def _references(inquiry: Inquiry) -> Outcome:
    found = await inquiry.everywhere(_REFERENCES, {**inquiry.at, "context": {"includeDeclaration": True}})
    return await inquiry.resolve_places(answers.places(found), definitions=await _find_definitions(inquiry))


async def _find_definitions(inquiry: Inquiry) -> list[ServerLocation]:
    """Where the name is defined, as far as the server says: only the order of the references depends on it."""
    if not inquiry.server.can(_DEFINITION):
        return []
    try:
        return answers.places(await inquiry.ask(_DEFINITION))
    except ToolFailure:
        return []


async def _hover(inquiry: Inquiry) -> Outcome:
    text = answers.hover(await inquiry.ask(_HOVER))
    if text and inquiry.server.can(_DEFINITION):
        # The text is taken from where the name is defined: a file that may not be read is not quoted either.
        told = answers.places(await inquiry.ask(_DEFINITION))
        if len(await inquiry.build_resolver().readable(told)) < len(told):
            raise ToolFailure(
                f"`{inquiry.asked.name}` is defined in a file that may not be read, so nothing is told of it.",
                code="denied-by-rule",
            )
    return Hovered(inquiry.asked, _safe(text[:HOVER_CHARS], inquiry), max(0, len(text) - HOVER_CHARS))


def _safe(text: str, inquiry: Inquiry) -> str:
    """Without what the server may have taken from files that it should not have seen."""
    safe = without_values(text, inquiry.source.text) if text and sees_all(inquiry.ctx) else text
    if safe != text:
        inquiry.ctx.note(
            f"Values that do not stand in {inquiry.asked.path} itself were left out: no sandbox keeps the language"
            " server from files that may not be read."
        )
    return safe


async def _outline(inquiry: Inquiry) -> Outcome:
    answer = await inquiry.put(_OUTLINE, {"textDocument": inquiry.at["textDocument"]})
    return Outline(inquiry.asked, *answers.outline(answer, MOST_SYMBOLS))


async def _symbols(inquiry: Inquiry) -> Outcome:
    told = answers.symbols(await inquiry.everywhere(_SYMBOLS, {"query": inquiry.asked.name}))
    return await inquiry.resolve_places(told, name=inquiry.asked.name)


async def _hierarchy(inquiry: Inquiry) -> Outcome:
    return await inquiry.resolve_places(answers.items(await inquiry.ask(_HIERARCHY)))


async def _find_callers(inquiry: Inquiry) -> Outcome:
    return await _calls(inquiry, "callHierarchy/incomingCalls", "from")


async def _find_callees(inquiry: Inquiry) -> Outcome:
    return await _calls(inquiry, "callHierarchy/outgoingCalls", "to")


async def _calls(inquiry: Inquiry, method: str, end: Literal["from", "to"]) -> Outcome:
    show = inquiry.build_resolver()
    every = answers.items(await inquiry.ask(_HIERARCHY))
    # Whom a function calls is what stands in its file: of one that may not be read nothing is asked.
    readable = await show.readable(every)
    if not readable:
        return await inquiry.resolve_places(every, show)
    first = readable[0]
    if len(readable) > 1:
        others = len(readable) - 1
        inquiry.ctx.note(f"`{first.name}` is one of {len(readable)} that are meant; the other {others} were not asked.")
    about = await show.places([first])
    ask = inquiry.everywhere if end == "from" else inquiry.put
    told = answers.calls(await ask(method, {"item": first.item}), end)
    found = await inquiry.resolve_places(told, show, sites_in=show.inside(first) if end == "to" else "")
    return found._replace(about=about.places[0])


WAYS: Mapping[Operation, Callable[[Inquiry], Awaitable[Outcome]]] = {
    "goToDefinition": _definition,
    "findReferences": _references,
    "hover": _hover,
    "documentSymbol": _outline,
    "workspaceSymbol": _symbols,
    "goToImplementation": _implementation,
    "prepareCallHierarchy": _hierarchy,
    "incomingCalls": _find_callers,
    "outgoingCalls": _find_callees,
}
"""Operation → how it is done. What a server lacks is a `ToolFailure` with the code `unsupported`."""


MOST_LINES = 30


async def in_text(asked: CodeQuery, why: str, ctx: Context) -> InText:
    """The lines of the workspace that have the name as a whole word; never of files that may not be read."""
    name = asked.name
    is_word = [word.text for word in words(name)] == [name]
    # The `$` of a name is no part of a word to the search program.
    escaped = name.replace("$", r"\$")
    pattern = rf"(?:^|[^\w$])(?:{escaped})(?:[^\w$]|$)" if is_word else name
    found = await Grep().run(
        GrepArgs(pattern=pattern, literal=not is_word, case_sensitive=True, per_file=0, limit=MOST_LINES), ctx
    )
    assert isinstance(found, Hits)  # it was not asked for files
    return InText(asked, why, found)


_CANNOT = frozenset({"no-language-server", "no-sandbox", "unsupported"})
"""Failures after which the text is searched."""


class LspArgs(Args, frozen=True, kw_only=True):
    operation: Operation
    path: str
    line: int = 1
    """From 1."""
    character: int = 1
    """From 1, in code points."""
    query: str = ""
    """For `workspaceSymbol`: what to look for; the name at the position where it is empty."""


class Lsp(Tool[LspArgs, Occurrences | Outline | Hovered | InText]):
    """What a language server knows of a name; what a text search finds, where none can say it."""

    name = "lsp"
    args = LspArgs
    title = "Ask a language server"
    hints = READS

    def __init__(self) -> None:
        self._proven: WeakKeyDictionary[ProjectLanguageServer, int] = WeakKeyDictionary()
        self._sources = Sources()

    def access(self, args: LspArgs, ctx: Context) -> tuple[Access, ...]:
        real = ctx.path(args.path)
        ending = os.path.splitext(real)[1] or os.path.basename(real)
        # The answer depends on all files: edits of the same message that come before it are to be done by then.
        workspace = Access.read(ctx.need(Jail).folder)
        return (Access.read(real), workspace, Access.process(f"language server for {ending}", mode="read"))

    async def run(self, args: LspArgs, ctx: Context) -> Occurrences | Outline | Hovered | InText:
        path = ctx.path(args.path)
        # Whether the position makes sense is said before a server is started for it.
        servers = ctx.need(LanguageServers)
        warm = servers.warm(path)
        document = None
        if warm is not None:
            with contextlib.suppress(GivenUp):  # the next one is asked
                document = await warm.sync(path)
        source = source_of(document.text if document is not None else await _text(path, ctx))
        pointed = _locate_name(args, path, source, ctx)
        if pointed.snapped:
            ctx.note(pointed.snapped)
        asked = CodeQuery(
            args.operation, ctx.need(Jail).display_path(path), pointed.line, pointed.character, pointed.name
        )

        async def ask(server: "ProjectLanguageServer") -> Occurrences | Outline | Hovered:
            seen = document if document is not None and server is warm else await server.sync(path)
            shown = source if seen.text == source.text else source_of(seen.text)
            return await self._ask(asked, server, seen, shown, ctx)

        try:
            return await servers.use(path, ask, tell=ctx.progress, note=ctx.note)
        except ToolFailure as failure:
            if failure.code not in _CANNOT:
                raise
            if args.operation == "documentSymbol":
                raise ToolFailure(
                    f"{failure.message} A text search cannot list the symbols of a file: read the file instead.",
                    code=failure.code,
                    path=failure.path,
                ) from failure
            return await in_text(asked, failure.message, ctx)

    async def _ask(
        self,
        asked: CodeQuery,
        server: "ProjectLanguageServer",
        document: "OpenDocument",
        source: SourceText,
        ctx: Context,
    ) -> Occurrences | Outline | Hovered:
        position = _position(source, asked, server.encoding)
        inquiry = Inquiry(
            server=server,
            asked=asked._replace(server=server.name),
            at={"textDocument": {"uri": document.uri}, "position": position},
            document=document,
            source=source,
            ctx=ctx,
            seconds=ctx.need(Settings).lsp.seconds,
            proven=self._proven,
            sources=self._sources,
        )
        return await WAYS[asked.operation](inquiry)


def _position(source: SourceText, asked: CodeQuery, encoding: "Encoding") -> dict[str, int]:
    if source.has_odd_lines or asked.line > len(source.rows):
        return to_server(source.text, asked.line, asked.character, encoding)
    # The server counts the same lines: only the one is looked at.
    return to_server(source.rows[asked.line - 1], 1, asked.character, encoding) | {"line": asked.line - 1}


async def _text(path: str, ctx: Context) -> str:
    return (await DocumentReader(ctx.need(Jail), ctx.need(Guard)).read(path)).text


def _locate_name(args: LspArgs, path: str, source: SourceText, ctx: Context) -> Pointed:
    """The position, where it matters, and the name there."""
    query = args.query.strip()
    if args.operation == "documentSymbol":
        return Pointed()
    if args.operation == "workspaceSymbol" and query:
        return Pointed(name=query)
    return point(path, source.rows, args.line, args.character, ctx)
