"""Search the web."""

import os

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import READS_OUTSIDE, Args, Context, Tool
from ferrule.sandbox.web_address import WebError
from ferrule.settings.schema import Settings
from ferrule.system.hosts import Bad
from ferrule.tools.web.backends import APIS, hosts, search
from ferrule.tools.web.client import Web
from ferrule.tools.web.conversation_addresses import Addresses
from ferrule.tools.web.outcomes import Link, Searched
from ferrule.tools.web.search_api import (
    DDGS,
    MOST_RESULTS,
    Domain,
    Domains,
    SearchBackend,
    SearchResult,
    WebQuery,
    each,
    interleave,
)

_QUERY_CHARS = 400
"""The most that the APIs take."""
_MOST_QUERIES = 5
_MOST_DOMAINS = 50


class WebSearchArgs(Args, frozen=True, kw_only=True):
    query: str
    queries: tuple[str, ...] = ()
    """Further ones for the same thing."""
    results: int | None = None
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()


class WebSearch(Tool[WebSearchArgs, Searched]):
    """Asks the back end that the user's settings name."""

    name = "web_search"
    args = WebSearchArgs
    title = "Search the web"
    hints = READS_OUTSIDE

    def access(self, args: WebSearchArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the settings say it
        try:
            return tuple(map(Access.host, hosts(load_backend(ctx.need(Settings)))))
        except WebError as error:
            raise ToolFailure(error.message, code=error.code) from error

    async def run(self, args: WebSearchArgs, ctx: Context) -> Searched:
        settings = ctx.need(Settings)
        backend, wanted, domains = load_backend(settings), _results(args, settings, ctx), _domains(args, ctx)
        found: list[tuple[SearchResult, ...]] = []
        missed: list[WebError] = []
        # One after the other: what costs nothing mostly allows one search a second.
        for words in _queries(args, ctx):
            ctx.progress(f"Searching for {words}")
            try:
                found.append(await search(ctx.need(Web), backend, WebQuery(words, wanted, domains)))
            except WebError as error:
                missed.append(error)
                break
        if missed and not any(found):
            raise ToolFailure(missed[0].message, code=missed[0].code) from missed[0]
        if missed:
            ctx.note(f"Not all of the queries were searched for. {missed[0].message}")
        links = tuple(Link(*result) for result in interleave(found, wanted))
        ctx.need(Addresses).add_found(link.url for link in links)
        if not links and backend.name == DDGS:
            ctx.note("That may also mean that the search engines have turned the program away. Try again later.")
        return Searched(args.query.strip(), links, backend.name)


def load_backend(settings: Settings) -> SearchBackend:
    """The back end that the user has set up, with its key."""
    chosen = settings.web.search
    name = chosen.key_env or (APIS[chosen.backend].key_env if chosen.backend in APIS else "")
    key = os.environ.get(name, "") if name else ""
    return SearchBackend(chosen.backend, chosen.url, key, name, settings.web.seconds, settings.web.proxy)


def _queries(args: WebSearchArgs, ctx: Context) -> tuple[str, ...]:
    """What is searched for, each once."""
    if not args.query.strip():
        raise BadArguments(f"{ctx.param('query')}: must say what to search for.")
    words = dict.fromkeys(" ".join(text.split()) for text in (args.query, *args.queries))
    several = tuple(text for text in words if text)
    if any(not text.isprintable() for text in several):
        raise BadArguments(f"{ctx.param('query')}: has characters that cannot be searched for.")
    if any(len(text) > _QUERY_CHARS for text in several):
        name = ctx.param("query" if len(several[0]) > _QUERY_CHARS else "queries")
        raise BadArguments(f"{name}: is too long; a query has at most {_QUERY_CHARS} characters.")
    if len(several) > _MOST_QUERIES:
        ctx.note(f"Only the first {_MOST_QUERIES} queries were searched for.")
    return several[:_MOST_QUERIES]


def _results(args: WebSearchArgs, settings: Settings, ctx: Context) -> int:
    if args.results is None:
        return settings.web.search.results
    if args.results < 1:
        raise BadArguments(f"{ctx.param('results')}: must be at least 1.")
    if args.results > MOST_RESULTS:
        ctx.note(f"A search gives at most {MOST_RESULTS} results.")
    return min(args.results, MOST_RESULTS)


def _domains(args: WebSearchArgs, ctx: Context) -> Domains:
    if args.allowed_domains and args.blocked_domains:
        raise BadArguments(
            f"{ctx.param('allowed_domains')}: cannot be used together with {ctx.param('blocked_domains')}; give one of"
            " them."
        )
    return Domains(
        _parse_domains(args.allowed_domains, ctx.param("allowed_domains"), ctx),
        _parse_domains(args.blocked_domains, ctx.param("blocked_domains"), ctx),
    )


def _parse_domains(written: tuple[str, ...], name: str, ctx: Context) -> tuple[Domain, ...]:
    if len(written) > _MOST_DOMAINS:
        raise BadArguments(f"{name}: at most {_MOST_DOMAINS} domains can be named.")
    try:
        found = tuple(each(written))
    except Bad as error:
        raise BadArguments(f"{name}: takes names of hosts, as docs.example.org. {error}") from error
    for domain in found:
        if domain.is_cut:
            ctx.note(f"{name} takes hosts and no paths: all of {domain.host} is meant.")
    return found
