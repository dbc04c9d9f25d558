"""Ask a language server one of the nine operations, or search the text if no server can be asked."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ferrule.core.content import Hits
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.tools.lsp import CodeQuery, Hovered, InText, Occurrences, Operation, Outline, answers
from ferrule.tools.lsp.answers import (
    OccurrenceResolver,
    ServerLocation,
    Sources,
    SourceText,
    sees_all,
    without_values,
    words,
)
from ferrule.tools.lsp.server import ProjectLanguageServer
from ferrule.tools.search.grep import Grep, GrepArgs

if TYPE_CHECKING:
    from ferrule.tools.lsp.documents import OpenDocument

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
