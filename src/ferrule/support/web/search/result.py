"""The one form of results, whoever found them: plain text, addresses of the web, nothing twice."""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import NamedTuple
from urllib.parse import quote

from ferrule.support.hosts import Bad, target
from ferrule.support.web.search.domains import Domains

MOST_RESULTS = 50
_MOST_LOOKED_AT = 500
_TITLE_CHARS = 200
_SNIPPET_CHARS = 500
_DATE_CHARS = 40
_URL_CHARS = 2_048
_RAW_CHARS = 5_000
_PORTS = {"http": 80, "https": 443}
_KEPT = "!#$%&'()*+,/:;=?@[]~-._"
"""What stands for itself in an address, after the host."""

Row = tuple[object, object, object, object]
"""Title, address, snippet and date, as a back end gives them: of any type."""


class Result(NamedTuple):
    """One result of a search."""

    title: str
    url: str
    snippet: str = ""
    published: str = ""
    """A date, where the back end knows one."""


class Query(NamedTuple):
    """What is searched for."""

    text: str
    results: int
    domains: Domains = Domains()


def tidied(rows: Iterable[Row], query: Query) -> tuple[Result, ...]:
    """The results that can be shown, each once, in their order."""
    found: dict[str, Result] = {}
    for count, (title, url, snippet, published) in enumerate(rows):
        if len(found) >= min(query.results, MOST_RESULTS) or count >= _MOST_LOOKED_AT:
            break
        place = address(url)
        if place is None or _page(place[0]) in found or not query.domains.lets(place[1]):
            continue
        shown = Result(
            plain(title, _TITLE_CHARS) or place[0], place[0], plain(snippet, _SNIPPET_CHARS), date(published)
        )
        found[_page(shown.url)] = shown
    return tuple(found.values())


def merged(each: Sequence[Sequence[Result]], most: int) -> tuple[Result, ...]:
    """Several lists as one: the first of each, then the second of each."""
    found: dict[str, Result] = {}
    for rank in range(max(map(len, each), default=0)):
        for results in each:
            if rank < len(results) and len(found) < most:
                found.setdefault(_page(results[rank].url), results[rank])
    return tuple(found.values())


def address(written: object) -> tuple[str, str] | None:
    """An address in one spelling, and its host; None for what does not lead to a page of the web.

    With a user part, a control character or a backslash two readers may see two addresses in it.
    """
    if not isinstance(written, str) or len(written) > _URL_CHARS:
        return None
    found = _address().fullmatch(written.strip(" "))
    if found is None:
        return None
    scheme = found["scheme"].lower()
    try:
        host = target(found["authority"], port=_PORTS[scheme])
    except Bad:
        return None
    name = f"[{host.host}]" if ":" in host.host else host.host
    port = f":{host.port}" if host.port != _PORTS[scheme] else ""
    rest = quote(found["rest"], safe=_KEPT)
    return f"{scheme}://{name}{port}{rest if rest.startswith('/') else '/' + rest}", host.host


def plain(written: object, most_chars: int) -> str:
    """A text without tags, entities, line breaks and characters that nobody sees."""
    if not isinstance(written, str):
        return ""
    text = _gap().sub(" ", written[:_RAW_CHARS])
    text = unescape(_tag().sub("", text))
    text = " ".join("".join(_visible(text)).split())
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"


def date(written: object) -> str:
    """A day, as 2026-01-31, where it can be understood; else what is said of it."""
    text = plain(written, _DATE_CHARS)
    if re.match(r"\d{4}-\d\d-\d\d(?!\d)", text):
        return text[:10]
    from email.utils import parsedate_tz  # for the back ends that write dates like mail does

    day = parsedate_tz(text) if re.match(r"[A-Z][a-z]{2}, \d", text) else None
    return text if day is None else f"{day[0]:04}-{day[1]:02}-{day[2]:02}"


def _visible(text: str) -> Iterator[str]:
    for char in text:
        if char.isspace():
            yield " "
        elif char.isprintable():
            yield char


def _page(url: str) -> str:
    """Two addresses with the same are the same page."""
    return url.partition("#")[0]


@functools.cache
def _address() -> re.Pattern[str]:
    return re.compile(
        r"(?P<scheme>https?)://(?P<authority>[^/?#]+)(?P<rest>[^\x00-\x1f\x7f-\x9f\\\ud800-\udfff]*)", re.IGNORECASE
    )


@functools.cache
def _gap() -> re.Pattern[str]:
    return re.compile(r"</?(?:br|p|div|li|[uod]l|d[td]|t[rdh]|table|h[1-6r])(?:[\s/][^<>]*)?>", re.IGNORECASE)


@functools.cache
def _tag() -> re.Pattern[str]:
    return re.compile(r"<(?:[/?]?[A-Za-z]|!)[^<>]*>")
