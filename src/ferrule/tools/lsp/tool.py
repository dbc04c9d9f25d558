"""Ask a language server about code."""

import contextlib
import os
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ferrule.core.access import Access
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.settings import Settings
from ferrule.tools.lsp import CodeQuery, Hovered, InText, Occurrences, Operation, Outline
from ferrule.tools.lsp.answers import (
    Pointed,
    Sources,
    SourceText,
    point,
    source_of,
)
from ferrule.tools.lsp.documents import DocumentReader, to_server
from ferrule.tools.lsp.operations import WAYS, Inquiry, in_text
from ferrule.tools.lsp.server import GivenUp, ProjectLanguageServer
from ferrule.tools.lsp.servers import LanguageServers

if TYPE_CHECKING:
    from ferrule.tools.lsp.documents import Encoding, OpenDocument


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
