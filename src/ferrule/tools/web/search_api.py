"""Ask a web search API and tidy its results: settings, domains, results and failures.

`Api` is one back end as a row: how it is asked and how it answers. Domains are compared by labels. Results have
one form for all back ends: plain text, web addresses, and no duplicates. A failure is a sentence that says how
to fix it.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.utils import parsedate_tz
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

import msgspec

from ferrule.sandbox.web_address import Code, WebError
from ferrule.system.hosts import Bad, NetworkEndpoint, leads_inside, target

if TYPE_CHECKING:
    from ferrule.tools.web.client import Got, Web


_PORT = 443


class Domain(NamedTuple):
    """A host and all below it; `*.example.org` means only those below."""

    host: str
    below: bool = False
    is_address: bool = False
    is_cut: bool = False
    """Did it come with a path, which says nothing about hosts?"""

    def covers(self, host: str) -> bool:
        """Is it this host, or one below it? Whole labels are compared."""
        if self.is_address or host == self.host:
            return host == self.host and not self.below
        own = self.host.split(".")
        return host.split(".")[-len(own) :] == own


class Domains(NamedTuple):
    """What is wanted, or what is not."""

    allowed: tuple[Domain, ...] = ()
    blocked: tuple[Domain, ...] = ()

    def lets(self, host: str) -> bool:
        """May results come from it? The host is in the spelling of `hosts.target`."""
        if any(domain.covers(host) for domain in self.blocked):
            return False
        return not self.allowed or any(domain.covers(host) for domain in self.allowed)

    def names(self) -> tuple[list[str], list[str]]:
        """Both lists as names of hosts, for back ends that filter themselves."""
        return [domain.host for domain in self.allowed], [domain.host for domain in self._shut()]

    def add_site_terms(self, text: str, most_chars: int) -> str:
        """The query with `site:` terms, for back ends that know no other way; as many as there is room for.

        What a term cannot say is filtered afterwards.
        """
        wanted: list[str] = []
        for domain in self.allowed:
            if len(f"{text} ({' OR '.join([*wanted, f'site:{domain.host}'])})") <= most_chars:
                wanted.append(f"site:{domain.host}")
        if wanted:
            return f"{text} ({' OR '.join(wanted)})" if len(wanted) > 1 else f"{text} {wanted[0]}"
        for domain in self._shut():
            longer = f"{text} -site:{domain.host}"
            text = longer if len(longer) <= most_chars else text
        return text

    def _shut(self) -> list[Domain]:
        """The blocked ones that a back end can be told: for it a host is always blocked with all below it."""
        return [domain for domain in self.blocked if not domain.below]

    def __bool__(self) -> bool:
        return bool(self.allowed or self.blocked)


def domain(written: str) -> Domain:
    """What somebody means by `docs.example.org`, `*.example.org` or `https://example.org/a`. Raises `hosts.Bad`."""
    found = _domain_pattern().fullmatch(written.strip())
    if found is None:
        raise Bad(f"{written[:253]!r} is not the name of a host.")
    host = target(found["host"], port=_PORT)
    below = bool(found["below"])
    if below and host.address is not None:
        raise Bad(f"{written[:253]!r}: there is nothing below an address.")
    return Domain(host.host, below, host.address is not None, found["rest"] not in {"", "/", "/*"})


@functools.cache
def _domain_pattern() -> re.Pattern[str]:
    return re.compile(r"(?:https?://)?(?P<below>\*?\.)?(?P<host>[^/?#]+)(?P<rest>(?:[/?#].*)?)", re.IGNORECASE)


def each(written: tuple[str, ...]) -> Iterator[Domain]:
    """One after the other, each once."""
    seen: set[tuple[str, bool]] = set()
    for one in map(domain, written):
        if (one.host, one.below) not in seen:
            seen.add((one.host, one.below))
            yield one


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


class SearchResult(NamedTuple):
    """One result of a search."""

    title: str
    url: str
    snippet: str = ""
    published: str = ""
    """A date, where the back end knows one."""


class WebQuery(NamedTuple):
    """What is searched for."""

    text: str
    results: int
    domains: Domains = Domains()


def filter_rows(rows: Iterable[Row], query: WebQuery) -> tuple[SearchResult, ...]:
    """The results that can be shown, each once, in their order."""
    found: dict[str, SearchResult] = {}
    for count, (title, url, snippet, published) in enumerate(rows):
        if len(found) >= min(query.results, MOST_RESULTS) or count >= _MOST_LOOKED_AT:
            break
        place = address(url)
        if place is None or _page(place[0]) in found or not query.domains.lets(place[1]):
            continue
        shown = SearchResult(
            plain(title, _TITLE_CHARS) or place[0], place[0], plain(snippet, _SNIPPET_CHARS), date(published)
        )
        found[_page(shown.url)] = shown
    return tuple(found.values())


def interleave(each: Sequence[Sequence[SearchResult]], most: int) -> tuple[SearchResult, ...]:
    """Several lists as one: the first of each, then the second of each."""
    found: dict[str, SearchResult] = {}
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


DDGS = "ddgs"
"""The back end that is a library and no API."""
INSTEAD = f'set web.search.backend = "{DDGS}", which needs no key'


class SearchBackend(NamedTuple):
    """A back end as the user has set it up."""

    name: str
    url: str = ""
    """Another address than its own."""
    key: str = ""
    key_env: str = ""
    """The variable that the key is from."""
    seconds: float = 30.0
    proxy: str = ""


class SearchRequest(NamedTuple):
    """What is sent to a back end."""

    parameters: Mapping[str, str | int] = {}
    headers: Mapping[str, str] = {}
    body: Any = None
    """Sent as JSON; where there is none, the query is in the address."""


class SearchApi(NamedTuple):
    """A row: one back end that is asked over HTTP and answers in JSON."""

    name: str
    title: str
    ask: Callable[[WebQuery, str], SearchRequest]
    """The query and the key → what is sent."""
    rows: Callable[[Mapping[str, Any]], Iterable[Row]]
    """The answer → its results. Raises `Odd`."""
    path: str
    address: str = ""
    key_env: str = ""
    """Where the key is, unless the settings say otherwise; empty where none is needed."""
    most: int = 20
    """How many results it gives at once."""
    refused: str = ""
    """What status 403 means, where it is not about a key."""

    def variable(self, backend: SearchBackend) -> str:
        """The variable that is to have the key."""
        return backend.key_env or self.key_env


class Odd(ValueError):  # noqa: N818 - the state of an answer
    """An answer of another shape than the API has."""


def list_objects(value: object) -> list[dict[str, Any]]:
    """The members of a list that are objects. Raises `Odd` where it is no list."""
    if not isinstance(value, list):
        raise Odd
    return [member for member in value if isinstance(member, dict)]


_UNREACHED = ("no-such-host", "unreachable")
_QUOTA = (402, 429, 432, 433)
"""Too many, or more than is paid for; the last two are Tavily's."""
_NOTHING_THERE = 404
_LEAST_KEY_CHARS = 4
"""What is shorter stands in any sentence."""
_REASON_BYTES = 20_000
_REASON_DEPTH = 3


def search_error(said: str, code: Code) -> WebError:
    """All of these begin in the same way."""
    return WebError(f"The web cannot be searched: {said}", code)


def without_key(error: WebError, key: str) -> WebError:
    """The same without the key: a back end may have echoed it, in another spelling too."""
    if len(key) < _LEAST_KEY_CHARS:
        return error

    said = error.message
    for form in (key, quote(key), quote(key, safe=""), repr(key)[1:-1]):
        said = re.sub(re.escape(form), "[key]", said, flags=re.IGNORECASE)
    if key.casefold() in unquote(said).casefold():
        return search_error("the back end has answered with the key. Check web.search.url.", error.code)
    return error if said == error.message else WebError(said, error.code)


def unreachable_error(error: WebError, host: NetworkEndpoint) -> WebError:
    """No answer came at all."""
    said = f"{host.host} could not be reached. {error.message}" if error.code in _UNREACHED else error.message
    return search_error(
        f"{said} Check the network, or set web.search.backend or web.search.url to a search that can be reached from"
        " here.",
        error.code,
    )


def refusal(got: "Got", api: SearchApi, backend: SearchBackend, host: NetworkEndpoint) -> WebError | None:
    """What is wrong with an answer by its status and size; None where it may be a result."""
    if got.why_partial:
        return search_error(f"the answer of {host.host} is not whole. {got.why_partial}", "bad-answer")
    if 200 <= got.status < 300:
        return None
    if got.status in {401, 403} and api.key_env:
        name = api.variable(backend)
        said = f"{api.title} refuses the key in {name} (status {got.status}). Put a valid one there, or {INSTEAD}."
        return search_error(said, "wrong-key")
    if got.status == 403 and api.refused:
        return search_error(f"{host.host} {api.refused}", "refused")
    if got.status in _QUOTA:
        return search_error(
            f"{api.title} takes no more searches for now (status {got.status}).{_again(got.headers)}"
            " Wait, make fewer searches, or set web.search.backend to another one.",
            "quota",
        )
    said = f"{api.title} at {host.host} answers with status {got.status}"
    if got.status >= 500:
        return search_error(f"{said}. Try again later, or set web.search.backend to another one.", "bad-answer")
    if got.status == _NOTHING_THERE:
        return search_error(
            f"{said}: there is no search. Check web.search.url, which must lead to {api.title}.", "bad-address"
        )
    if got.status >= 400:
        said += _reason(got.body, backend.key)
        return search_error(
            f"{said}. Try a shorter and plainer query; if that is no help, check web.search.url.", "refused"
        )
    return search_error(f"{said}, which is no result. Check web.search.url.", "bad-answer")


def bad_answer_error(api: SearchApi, host: NetworkEndpoint, said: str) -> WebError:
    """An answer that says yes and is no result."""
    return search_error(
        f"the answer of {host.host} {said}. Check that web.search.url leads to {api.title}, and that"
        " web.search.backend is right.",
        "bad-answer",
    )


def _again(headers: Mapping[str, str]) -> str:
    """When the back end wants to be asked again."""
    said = plain(next((value for name, value in headers.items() if name.lower() == "retry-after"), ""), 40)
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", said, re.ASCII):
        return f" It can be asked again in {said} second{'s' * (said != '1')}."
    return f" It can be asked again after {said}." if re.fullmatch(r"[A-Za-z0-9 ,:+-]+", said) else ""


def _reason(body: bytes, key: str) -> str:
    """What the back end says about its refusal; never the key."""
    if len(body) > _REASON_BYTES:
        return ""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ""
    for _ in range(_REASON_DEPTH):
        if isinstance(said, dict):
            said = next((said[name] for name in ("detail", "error", "message", "msg") if name in said), None)
        elif isinstance(said, list):
            said = said[0] if said else None
    text = plain(said, 200).rstrip(".")
    return f": {text}" if text and (not key or key not in str(said)) else ""


_FILTERED = 2
"""How many times as many results are asked for where some may have to be left out."""


async def run_query(web: "Web", api: SearchApi, backend: SearchBackend, query: WebQuery) -> tuple[SearchResult, ...]:
    """The results of one query. Raises `WebError`, without the key in it whoever has said what."""
    try:
        return await _run_query(web, api, backend, query)
    except WebError as error:
        raise without_key(error, backend.key.strip()) from None


async def _run_query(web: "Web", api: SearchApi, backend: SearchBackend, query: WebQuery) -> tuple[SearchResult, ...]:
    url, host = place(api, backend)
    wanted = query.results * (_FILTERED if query.domains else 1)
    sent = api.ask(query._replace(results=min(wanted, api.most)), key(api, backend))
    if sent.parameters:
        url = f"{url}?{urlencode(sent.parameters)}"
    headers = {"Accept": "application/json", **sent.headers}
    data = None
    if sent.body is not None:
        headers["Content-Type"] = "application/json"
        data = msgspec.json.encode(sent.body)
    try:
        got = await web.ask("GET" if data is None else "POST", url, headers=headers, data=data, seconds=backend.seconds)
    except WebError as error:
        raise unreachable_error(error, host) from error
    refused = refusal(got, api, backend, host)
    if refused is not None:
        raise refused
    return filter_rows(_rows(got.body, api, host), query)


def place(api: SearchApi, backend: SearchBackend) -> tuple[str, NetworkEndpoint]:
    """The address that is asked, and its host. Raises `WebError` for an address that cannot be one."""
    written = (backend.url or api.address).strip().rstrip("/")
    if not written:
        raise search_error(
            f"web.search.backend is {api.name!r}, and it is not said where its server is. Set web.search.url to its"
            f" address, as https://search.example.org, or {INSTEAD}.",
            "bad-address",
        )
    found = re.fullmatch(r"(?i:(https?)://)([^/?#]+)((?:/[^?#\s\\\x00-\x20\x7f-\x9f]*)?)", written)
    if found is None:
        raise search_error("web.search.url must be of the form https://search.example.org.", "bad-address")
    if "@" in found[2]:
        # It is not repeated: what stands before the sign may be a password, and a model reads this.
        raise search_error("web.search.url must have no user's name and no password in it.", "bad-address")
    scheme = found[1].lower()
    try:
        host = target(found[2], port=443 if scheme == "https" else 80)
    except Bad as error:
        raise search_error(f"the setting web.search.url does not fit. {error}", "bad-address") from error
    if scheme == "http" and api.key_env and not _is_near(host):
        raise search_error(
            f"web.search.url begins with http://, so that the key for {api.title} could be read on the way."
            " Use https://.",
            "bad-address",
        )
    whole = f"{scheme}://{found[2]}{found[3]}"
    return (whole if found[3].endswith(api.path) else whole + api.path), host


def _is_near(host: NetworkEndpoint) -> bool:
    """Does what is sent there stay on this machine or in its own network?"""
    if host.address is None:
        return host.host.split(".")[-1] == "localhost"
    return bool(leads_inside(host.address)) and not leads_inside(host.address, private=True)


def key(api: SearchApi, backend: SearchBackend) -> str:
    """The key as it is sent; nothing where none is needed. Raises `WebError`."""
    if not api.key_env:
        return ""
    name, found = api.variable(backend), backend.key.strip()
    if not found:
        raise search_error(
            f"{api.title} needs a key, and the environment variable {name} has none. Put one there, name another"
            f" variable with web.search.key_env, or {INSTEAD}.",
            "no-key",
        )
    if not found.isascii() or not found.isprintable():
        raise search_error(
            f"what is in {name} has characters that no key has. Set it to a key for {api.title}, or {INSTEAD}.",
            "wrong-key",
        )
    return found


def _rows(body: bytes, api: SearchApi, host: NetworkEndpoint) -> list[Row]:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise bad_answer_error(api, host, "is not JSON") from error
    try:
        return list(api.rows(answer if isinstance(answer, dict) else {}))
    except Odd as error:
        raise bad_answer_error(api, host, "is of another shape than its API has") from error
