"""Search the web with Brave Search, ddgs, Exa, SearXNG or Tavily.

`search` asks the back end that the user has chosen. The library ddgs reads the result pages of search engines
and needs no key. It is foreign code with its own HTTP, so it runs on a thread that is waited for no longer than
the time limit.
"""

import asyncio
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import READS_OUTSIDE, Args, Context, Tool
from ferrule.sandbox.web_address import Code, WebError
from ferrule.settings import Settings
from ferrule.system.hosts import Bad
from ferrule.tools.web import Addresses, Link, Searched
from ferrule.tools.web.client import Web
from ferrule.tools.web.content import apart
from ferrule.tools.web.search_api import (
    DDGS,
    MOST_RESULTS,
    Domain,
    Domains,
    Odd,
    Row,
    SearchApi,
    SearchBackend,
    SearchRequest,
    SearchResult,
    WebQuery,
    each,
    filter_rows,
    interleave,
    key,
    list_objects,
    place,
    plain,
    run_query,
    search_error,
)

_QUERY_CHARS = 400


def _ask(query: WebQuery, key: str) -> SearchRequest:
    words = query.domains.add_site_terms(query.text, _QUERY_CHARS)
    parameters: dict[str, str | int] = {
        "q": words,
        "count": query.results,
        "result_filter": "web",
        "text_decorations": "false",
    }
    return SearchRequest(parameters, {"X-Subscription-Token": key})


def _rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    web = answer.get("web")
    if web is None and answer.get("type") == "search":
        return []  # without results the part is left out
    if not isinstance(web, dict):
        raise Odd
    return [
        (row.get("title"), row.get("url"), row.get("description"), row.get("page_age") or row.get("age"))
        for row in list_objects(web.get("results"))
    ]


BRAVE = SearchApi(
    name="brave",
    title="Brave Search",
    ask=_ask,
    rows=_rows,
    address="https://api.search.brave.com",
    path="/res/v1/web/search",
    key_env="BRAVE_API_KEY",
)


T = TypeVar("T")

ENGINES = {
    "duckduckgo": "html.duckduckgo.com",
    "brave": "search.brave.com",
    "mojeek": "www.mojeek.com",
    "startpage": "www.startpage.com",
    "yahoo": "search.yahoo.com",
    "wikipedia": "en.wikipedia.org",
}
"""The engines that it is let loose on, and where they are: it knows more, and asks them all unless it is told."""
_EACH_SECONDS = 5.0
"""The longest that one engine may take: the end of the program waits for it."""
_ENGINES_IN_TURN = 3
_NONE = "No results found."
_OTHERS = "set web.search.backend to one of brave, tavily, exa and searxng"


async def search_ddgs(
    backend: SearchBackend, query: WebQuery, *, verify: bool | str = True
) -> tuple[SearchResult, ...]:
    """The results of one query. `verify` names a file of certificates to trust instead of the usual ones."""
    words = query.domains.add_site_terms(query.text, _QUERY_CHARS)
    most = min(MOST_RESULTS, query.results * 2 if query.domains else query.results)
    work = functools.partial(_run_guarded, functools.partial(_text, words, most, backend, verify))
    try:
        rows = await asyncio.wait_for(apart(work, "ferrule-search"), backend.seconds)
    except TimeoutError as error:
        raise _ddgs_error(f"no search engine has answered within {backend.seconds:g} seconds.", "timed-out") from error
    return filter_rows(rows, query)


def _text(words: str, most: int, backend: SearchBackend, verify: bool | str) -> Sequence[Row]:  # noqa: FBT001 - as it is given
    try:
        import ddgs  # only who searches without a key pays for it, on a thread
        from ddgs import exceptions
    except ImportError as error:
        raise _no_package_error() from error
    each = max(0.1, min(_EACH_SECONDS, backend.seconds / _ENGINES_IN_TURN))
    library = ddgs.DDGS(proxy=backend.proxy or None, timeout=each, verify=verify)  # type: ignore[arg-type]  # a fraction does
    # Without one it takes that of a variable of its own, which no user of this program knows of.
    library._proxy = backend.proxy or None  # noqa: SLF001 - there is no other way to say none
    try:
        found = library.text(words, max_results=most, backend=",".join(ENGINES))
    except exceptions.TimeoutException as error:
        raise _ddgs_error("the search engines have not answered in time.", "timed-out") from error
    except exceptions.RatelimitException as error:
        raise _ddgs_error("the search engines take no more searches for now.", "quota") from error
    except exceptions.DDGSException as error:
        if str(error) == _NONE:
            return ()
        inner = error.args[0] if error.args else None
        if isinstance(inner, Exception) and not isinstance(inner, exceptions.DDGSException):
            said = f"the page of a search engine was not understood ({type(inner).__name__})."
            raise _ddgs_error(said, "bad-answer") from error
        # What follows the kind of error has the whole address in it, with the query.
        kind = plain(str(error).partition(":")[0], 40)
        through = " through the proxy of the setting web.proxy" * bool(backend.proxy)
        raise _ddgs_error(f"the search engines could not be reached{through} ({kind}).", "unreachable") from error
    return [(row["title"], row["href"], row["body"], "") for row in found]


def complaint() -> str:
    """Why it cannot be used; empty where it can. Nothing of it is loaded."""
    return "" if find_spec("ddgs") is not None else _no_package_error().message


def _no_package_error() -> WebError:
    said = f"the package ddgs is not installed. Install it with `pip install 'ferrule[web]'`, or {_OTHERS}."
    return search_error(said, "no-package")


def _run_guarded(work: Callable[[], T]) -> T:
    try:
        return work()
    except WebError:
        raise
    except BaseException as error:  # foreign code, whose panics are not even exceptions
        said = f"the package ddgs failed ({type(error).__name__}: {plain(str(error), 200)})."
        raise _ddgs_error(said, "bad-answer") from error


def _ddgs_error(said: str, code: Code) -> WebError:
    return search_error(f"{said} Check the network and try again later, or {_OTHERS}.", code)


_SNIPPET_CHARS = 500


def _exa_ask(query: WebQuery, key: str) -> SearchRequest:
    allowed, blocked = query.domains.names()
    body: dict[str, Any] = {
        "query": query.text,
        "numResults": query.results,
        "contents": {"highlights": {"maxCharacters": _SNIPPET_CHARS}},
    }
    # It takes a list that is empty for one that lets nothing through.
    body |= {"includeDomains": allowed} if allowed else {}
    body |= {"excludeDomains": blocked} if blocked else {}
    return SearchRequest(headers={"x-api-key": key}, body=body)


def _exa_rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    return [
        (row.get("title"), row.get("url"), _snippet(row), row.get("publishedDate"))
        for row in list_objects(answer.get("results"))
    ]


def _snippet(row: Mapping[str, Any]) -> object:
    highlights = row.get("highlights")
    if isinstance(highlights, list) and highlights:
        return " … ".join(part for part in highlights if isinstance(part, str))
    return row.get("summary") or row.get("text")


EXA = SearchApi(
    name="exa",
    title="Exa",
    ask=_exa_ask,
    rows=_exa_rows,
    address="https://api.exa.ai",
    path="/search",
    key_env="EXA_API_KEY",
    most=50,
)


def _searxng_ask(query: WebQuery, key: str) -> SearchRequest:  # noqa: ARG001 - it has none
    return SearchRequest({"q": query.domains.add_site_terms(query.text, _QUERY_CHARS), "format": "json"})


def _searxng_rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    return [
        (row.get("title"), row.get("url"), row.get("content"), row.get("publishedDate"))
        for row in list_objects(answer.get("results"))
    ]


SEARXNG = SearchApi(
    name="searxng",
    title="SearXNG",
    ask=_searxng_ask,
    rows=_searxng_rows,
    path="/search",
    most=50,
    refused="does not give its results as JSON (status 403). Whoever runs it can switch that on: `json` belongs under"
    " `search: formats:` in its settings.yml. Else set web.search.url to another server, or web.search.backend to"
    " another back end.",
)


def _tavily_ask(query: WebQuery, key: str) -> SearchRequest:
    allowed, blocked = query.domains.names()
    body = {
        "query": query.text,
        "max_results": query.results,
        "search_depth": "basic",
        "include_domains": allowed,
        "exclude_domains": blocked,
    }
    return SearchRequest(headers={"Authorization": f"Bearer {key}"}, body=body)


def _tavily_rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    return [
        (row.get("title"), row.get("url"), row.get("content"), row.get("published_date"))
        for row in list_objects(answer.get("results"))
    ]


TAVILY = SearchApi(
    name="tavily",
    title="Tavily",
    ask=_tavily_ask,
    rows=_tavily_rows,
    address="https://api.tavily.com",
    path="/search",
    key_env="TAVILY_API_KEY",
)


APIS: dict[str, SearchApi] = {api.name: api for api in (BRAVE, TAVILY, EXA, SEARXNG)}


def hosts(backend: SearchBackend) -> tuple[str, ...]:
    """Who is asked. Raises `WebError` where the settings do not say it."""
    if backend.name == DDGS:
        return tuple(ENGINES.values())
    return (place(APIS[backend.name], backend)[1].host,)


def complaint_of(backend: SearchBackend) -> str:
    """Why a search cannot work as it is set up, as far as that shows without a network; empty where it may."""
    try:
        if backend.name not in APIS:
            return complaint() if backend.name == DDGS else _unknown(backend.name)
        place(APIS[backend.name], backend)
        key(APIS[backend.name], backend)
    except WebError as error:
        return error.message
    return ""


def _unknown(name: str) -> str:
    return f"The web cannot be searched: there is no back end {name[:80]!r}; there are {', '.join([DDGS, *APIS])}."


async def search(web: "Web", backend: SearchBackend, query: WebQuery) -> tuple[SearchResult, ...]:
    """The results of one query, the best first. Raises `WebError`."""
    if backend.name == DDGS:
        return await search_ddgs(backend, query)
    return await run_query(web, APIS[backend.name], backend, query)


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
