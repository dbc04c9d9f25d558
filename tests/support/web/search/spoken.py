"""What each API of a search is asked and how it answers, for a server on loopback that speaks them."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from ferrule.tools.web.search_api import SearchBackend
from tests.models.server import Exchange, Play

KEY = "key-of-nobody"
GUIDE = ("The <b>Guide</b> &amp; more", "https://docs.example.org/guide?a=1#top", "How it <strong>works</strong>.")
OTHER = ("Other", "https://other.example.net/", "Another page")
THIRD = ("Third", "http://example.org/third", "The third page")


class Spoken(NamedTuple):
    """One API, from its server's side."""

    name: str
    path: str
    answer: Callable[[list[tuple[str, str, str]]], dict[str, Any]]
    """Titles, addresses and snippets → the answer of the API; the first one has a date."""
    check: Callable[[Exchange, str, int, list[str], list[str]], None]
    """Is it asked as its documentation says? By the words, the number, and the allowed and blocked domains."""
    key_env: str = ""

    def at(self, url: str, **more: Any) -> SearchBackend:
        given = {"key": KEY, "seconds": 10.0, **more}
        return SearchBackend(self.name, url, **given)

    def play(self, rows: list[tuple[str, str, str]]) -> Play:
        async def play(exchange: Exchange) -> None:
            await exchange.whole(200, self.answer(rows))

        return play


def query(exchange: Exchange) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(exchange.path).query).items()}


def _rows(rows: list[tuple[str, str, str]], snippet: str, date: str, written: str) -> list[dict[str, Any]]:
    made = [{"title": title, "url": url, snippet: text} for title, url, text in rows]
    return [{**row, date: written} if number == 0 else row for number, row in enumerate(made)]


def _sites(words: str, allowed: list[str], blocked: list[str]) -> str:
    wanted = [f"site:{name}" for name in allowed]
    if len(wanted) > 1:
        return f"{words} ({' OR '.join(wanted)})"
    return " ".join([words, *wanted, *(f"-site:{name}" for name in blocked)])


def _brave(exchange: Exchange, words: str, count: int, allowed: list[str], blocked: list[str]) -> None:
    assert exchange.method == "GET"
    assert urlsplit(exchange.path).path == "/res/v1/web/search"
    asked = query(exchange)
    assert (asked["q"], asked["count"]) == (_sites(words, allowed, blocked), str(min(count, 20)))
    assert exchange.headers["x-subscription-token"] == KEY


def _tavily(exchange: Exchange, words: str, count: int, allowed: list[str], blocked: list[str]) -> None:
    assert (exchange.method, exchange.path) == ("POST", "/search")
    assert exchange.headers["authorization"] == f"Bearer {KEY}"
    assert exchange.headers["content-type"] == "application/json"
    assert exchange.value == {
        "query": words,
        "max_results": min(count, 20),
        "search_depth": "basic",
        "include_domains": allowed,
        "exclude_domains": blocked,
    }


def _exa(exchange: Exchange, words: str, count: int, allowed: list[str], blocked: list[str]) -> None:
    assert (exchange.method, exchange.path) == ("POST", "/search")
    assert exchange.headers["x-api-key"] == KEY
    asked = exchange.value
    assert (asked["query"], asked["numResults"]) == (words, count)
    assert asked.get("includeDomains", []) == allowed
    assert asked.get("excludeDomains", []) == blocked
    assert "highlights" in asked["contents"]


def _searxng(exchange: Exchange, words: str, count: int, allowed: list[str], blocked: list[str]) -> None:
    assert exchange.method == "GET"
    assert urlsplit(exchange.path).path == "/search"
    assert query(exchange) == {"q": _sites(words, allowed, blocked), "format": "json"}
    assert not {"authorization", "x-api-key", "x-subscription-token"} & exchange.headers.keys()


BRAVE = Spoken(
    "brave",
    "/res/v1/web/search",
    lambda rows: {
        "type": "search",
        "web": {"type": "search", "results": _rows(rows, "description", "page_age", "2026-01-31T08:00:00")},
    },
    _brave,
    "BRAVE_API_KEY",
)
TAVILY = Spoken(
    "tavily",
    "/search",
    lambda rows: {"results": _rows(rows, "content", "published_date", "Sat, 31 Jan 2026 08:00:00 GMT")},
    _tavily,
    "TAVILY_API_KEY",
)
EXA = Spoken(
    "exa",
    "/search",
    lambda rows: {
        "results": [
            {**row, "highlights": [row["text"]], "id": row["url"]}
            for row in _rows(rows, "text", "publishedDate", "2026-01-31T08:00:00.000Z")
        ]
    },
    _exa,
    "EXA_API_KEY",
)
SEARXNG = Spoken(
    "searxng",
    "/search",
    lambda rows: {"query": "x", "results": _rows(rows, "content", "publishedDate", "2026-01-31T00:00:00")},
    _searxng,
)
ALL = (BRAVE, TAVILY, EXA, SEARXNG)
WITH_KEY = (BRAVE, TAVILY, EXA)


def saying(status: int, body: Any = b"", **headers: str) -> Play:
    """An answer of that status."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def play(exchange: Exchange) -> None:
        await exchange.whole(status, data, **headers)

    return play
