"""Fetch web pages for a session: limits, redirects, sharing and a short-lived cache.

Nothing is carried from hop to hop: no cookies, no credentials, no trust. Every redirect is parsed, looked up and
judged like the first address. It never leads from the public web into a private network, not even to a host that
may be asked for there, and never from https back to http.

Pages that were fetched lately are reused for a while, within a size limit.
"""

import asyncio
import contextlib
import functools
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import httpcore2

from ferrule.sandbox.proxy import Resolver
from ferrule.sandbox.web_address import CutOff, Inside, Reach, Url, Way, WebError, join_url, no_package, parse_url
from ferrule.system.hosts import Address, NetworkEndpoint
from ferrule.tools.web.body import ENCODINGS, Body, Tell, is_text, media_type
from ferrule.tools.web.connect import FetchSlots, Sharing, proxy, resolve_host
from ferrule.tools.web.robots import HOPS, ROBOTS_BYTES, Robots

if TYPE_CHECKING:
    import ssl

    import httpx2


_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ACCEPT = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5"

_OURS = frozenset({"host", "accept-encoding", "connection", "content-length", "transfer-encoding", "te", "upgrade"})
"""Headers that nobody else sets: what they say is about the connection."""

Check = Callable[[Way], Awaitable[None]]
"""Raises WebError for a page that is not to be fetched."""


class Roads(NamedTuple):
    """What all fetches of a session share."""

    reach: Reach
    line: "Callable[..., httpx2.AsyncBaseTransport]"
    slots: FetchSlots
    user_agent: str
    clock: Callable[[], float]


class Terms(NamedTuple):
    """What one fetch may do."""

    hops: int
    most_bytes: int
    across: bool = True
    """Are redirects followed? Otherwise they are what comes back, so that somebody may judge where they lead."""
    own: NetworkEndpoint | None = None
    """The one host and port that may be private beside those that the user has named. It is asked as it is written:
    without an upgrade, and not from any other one."""
    beginning: bool = False
    """Is the beginning enough of what is too large?"""
    check: Check | None = None
    tell: Tell | None = None
    method: str = "GET"
    headers: Mapping[str, str] = {}
    data: bytes | None = None
    has_place: bool = False
    """Is it part of another fetch, which has a place already?"""


class Landed(NamedTuple):
    """Where a fetch ended, and what it has read there so far."""

    url: Url
    status: int
    headers: "httpx2.Headers"
    body: Body
    is_private: bool = False
    """Is it in the user's own network, or was it come by from there?"""


class RedirectTarget(NamedTuple):
    """A redirect that is not followed."""

    to: Url
    status: int
    is_private: bool = False
    """Does it come from a host of the user's own network?"""


class Journey:
    """One fetch."""

    def __init__(
        self, roads: Roads, terms: Terms, limit: asyncio.Timeout, known: Mapping[str, tuple[Address, ...]]
    ) -> None:
        self._roads = roads
        self._terms = terms
        self._limit = limit
        self._known = dict(known)
        self.landed: Landed | None = None
        """Also while its body is still coming."""
        self._is_private = False
        """Was a host of the user's own network on the way?"""

    async def go(self, url: Url) -> Landed | RedirectTarget:
        """Raises WebError."""
        first = here = self._upgrade_public(url)
        seen: set[Url] = set()
        before: Way | None = None
        while True:
            seen.add(here)
            with _explain_redirect(before, here):
                way, turned = await self._stop(here)
            if turned is None:
                assert self.landed is not None
                return self.landed
            to = self._upgrade_public(turned.to)
            self._refuse(way, to)
            if not self._may_follow(first, to):
                with _explain_redirect(way, to):
                    self._roads.reach.judge_literal(to, self._terms.own)
                return RedirectTarget(to, turned.status, self._is_private)
            if to in seen:
                raise WebError(
                    f"{first} redirects in a circle. It may want cookies, which are not kept.", "too-many-redirects"
                )
            if len(seen) > self._terms.hops:
                raise WebError(
                    f"{first} redirects more than {self._terms.hops} times (setting web.hops).", "too-many-redirects"
                )
            here, before = to, way

    def _upgrade_public(self, url: Url) -> Url:
        return url if self._terms.own is not None else self._roads.reach.upgrade_public(url)

    def _refuse(self, way: Way, to: Url) -> None:
        if way.url.scheme == "https" and to.scheme == "http":
            raise WebError(
                f"{way.url} redirects from https to {to}, which anybody on the way can read; it is not followed.",
                "bad-address",
            )
        if not way.is_private and self._roads.reach.is_private(to.target, self._terms.own):
            raise WebError(
                f"{way.url} is public and redirects to {to.origin} in the user's own network; it is not followed.",
                "private-address",
            )

    def _may_follow(self, first: Url, to: Url) -> bool:
        if self._terms.own is not None:
            return first.origin == to.origin and self._terms.method in {"GET", "HEAD"}
        return self._terms.across

    async def _stop(self, url: Url) -> tuple[Way, RedirectTarget | None]:
        if self._terms.has_place:
            return await self._visit(url)
        async with self._roads.slots.hold(url.target.host, self._limit):
            return await self._visit(url)

    async def _visit(self, url: Url) -> tuple[Way, RedirectTarget | None]:
        way = await self._roads.reach.way(url, self._terms.own, self._known)
        self._is_private = self._is_private or way.is_private
        if self._terms.check is not None:
            await self._terms.check(way)
        return way, await self._ask(way)

    async def _ask(self, way: Way) -> RedirectTarget | None:
        import httpx2  # whoever fetches pays for it

        answer: httpx2.Response | None = None
        line = self._roads.line(way)
        try:
            answer = await line.handle_async_request(self._question(way.url))
            headers = answer.headers
            if answer.status_code < 200:
                raise WebError(
                    f"{way.url} answers with status {answer.status_code}, which was not asked for.", "bad-answer"
                )
            if answer.status_code in _REDIRECTS and "location" in headers:
                references = set(headers.get_list("location"))
                if len(references) != 1:
                    raise WebError(f"{way.url} redirects to several addresses at once.", "bad-answer")
                return RedirectTarget(_join_redirect(way.url, references.pop()), answer.status_code)
            body = Body(str(way.url), most_bytes=self._terms.most_bytes, tell=self._terms.tell, clock=self._roads.clock)
            self.landed = Landed(way.url, answer.status_code, headers, body, self._is_private)
            assert isinstance(answer.stream, httpx2.AsyncByteStream)
            await body.read(answer.stream, headers, beginning=self._terms.beginning)
        except httpx2.TimeoutException as error:
            raise WebError(f"{way.url} did not answer in time.", "timed-out") from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise WebError(f"{way.url} cannot be fetched: {str(error)[:200]!a}.", "unreachable") from error
        finally:
            if answer is not None:
                await answer.aclose()
            await line.aclose()
        return None

    def _question(self, url: Url) -> "httpx2.Request":
        import httpx2  # as above

        headers = {
            "user-agent": self._roads.user_agent,
            "accept": _ACCEPT,
            **{name.lower(): value for name, value in self._terms.headers.items() if name.lower() not in _OURS},
            "host": url.authority,
            "accept-encoding": ENCODINGS,
            "connection": "close",
        }
        for name, value in headers.items():
            if not (name.isascii() and value.isascii() and name.isprintable() and value.isprintable()):
                raise WebError("A header cannot be sent: it has a character that no header has.", "bad-address")
        try:
            return httpx2.Request(self._terms.method, str(url), headers=headers, content=self._terms.data)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            raise WebError(f"{url} cannot be asked for: {str(error)[:200]!a}.", "bad-address") from error


@contextlib.contextmanager
def _explain_redirect(before: Way | None, here: Url) -> Iterator[None]:
    """Whoever reads of a failure has asked for another address than the one that it is about."""
    try:
        yield
    except WebError as error:
        if before is None:
            raise
        raise error.after(str(before.url), str(here), is_own=before.is_private) from error


def _join_redirect(url: Url, reference: str) -> Url:
    try:
        return join_url(url, reference)
    except WebError as error:
        raise WebError(f"{url} redirects to an address that is not fetched. {error.message}", error.code) from error


_NOTHING: Mapping[str, str] = MappingProxyType({})


class Allowances(NamedTuple):
    """The settings, as plain values."""

    private_hosts: tuple[str, ...] = ()
    robots: bool = True
    user_agent: str = ""
    proxy: str = ""
    seconds: float = 30.0
    most_bytes: int = 10 << 20
    hops: int = 10
    cache_seconds: float = 900.0


class Got(NamedTuple):
    """A page, whatever its status."""

    url: str
    """As it was asked for."""
    address: str
    """Where it came from, after redirects."""
    status: int
    media_type: str
    """In lower case, without parameters; empty where nothing was said."""
    charset: str
    body: bytes
    is_cached: bool = False
    why_partial: str = ""
    """Why this is not all of it, as a sentence."""
    headers: Mapping[str, str] = _NOTHING
    """By their names in lower case."""
    is_private: bool = False
    """Did it come from a host of the user's own network, or by way of one? A command of the session may be one."""


class Redirected(NamedTuple):
    """A redirect to another host, which was not followed."""

    url: str
    to: str
    status: int
    is_private: bool = False
    """Is the host that redirects one of the user's own network?"""


MOST_BYTES = 32_000_000
MOST_PAGES = 500
_OVERHEAD_BYTES = 2_000
_HEADER_BYTES = 200
"""What each header takes beside its letters: a page may have thousands that are short."""


class Memory:
    """Pages by what was asked. The one that was asked for longest ago goes first."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._pages: OrderedDict[Hashable, tuple[float, Got]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> Got | None:
        found = self._pages.get(key)
        if found is None:
            return None
        until, page = found
        if self._clock() >= until:
            self._drop(key)
            return None
        self._pages.move_to_end(key)
        return page._replace(is_cached=True)

    def put(self, key: Hashable, page: Got) -> None:
        """Keeps a page that is whole and that its site lets us keep."""
        self._drop(key)
        size = _size(page)
        if self._seconds <= 0 or page.why_partial or not 200 <= page.status < 300 or size > MOST_BYTES // 2:
            return
        wishes = page.headers.get("cache-control", "").lower()
        if "no-store" in [each.strip() for each in wishes.split(",")]:
            return
        self._pages[key] = (self._clock() + self._seconds, page)
        self._bytes += size
        while self._bytes > MOST_BYTES or len(self._pages) > MOST_PAGES:
            self._drop(next(iter(self._pages)))

    def clear(self) -> None:
        self._pages.clear()
        self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        found = self._pages.pop(key, None)
        if found is not None:
            self._bytes -= _size(found[1])


def _size(page: Got) -> int:
    headers = sum(len(name) + len(value) + _HEADER_BYTES for name, value in page.headers.items())
    return len(page.body) + headers + _OVERHEAD_BYTES


_WEB_NOTHING: Mapping[str, str] = {}
_LONGEST_SECONDS = 86_400.0
"""Limits above this are one: without end is a limit too."""


class Web:
    """The session's one way to the web."""

    def __init__(
        self,
        allowances: Allowances,
        *,
        resolver: Resolver = resolve_host,
        transport: "Callable[..., httpx2.AsyncBaseTransport] | None" = None,
        clock: Callable[[], float] = time.monotonic,
        tls: "ssl.SSLContext | None" = None,
        inside: Callable[[], Inside | None] = lambda: None,
    ) -> None:
        """`inside` gives the network of the session's commands.

        `transport` is called with a `Way` and makes what asks there; it stands in for connections in tests.
        """
        self._allowances = allowances
        self._resolver = resolver
        self._transport = transport
        self._clock = clock
        self._tls = tls
        self._inside = inside
        self._memory = Memory(allowances.cache_seconds, clock)
        self._robots = Robots(clock)
        self._sharing: Sharing[Got | Redirected] = Sharing()
        self._made: Roads | None = None
        self._is_closed = False

    async def get(
        self,
        url: str,
        *,
        across: bool = True,
        fresh: bool = False,
        seconds: float | None = None,
        limit_said: str = "",
        tell: Tell | None = None,
    ) -> Got | Redirected:
        """The page at an address, whatever its status. Raises WebError.

        With `across`, redirects are followed; else they are what comes back. With `fresh`, it is fetched
        even where it is remembered. `limit_said` names the limit where `seconds` are not those of the settings.
        """
        reach = self._roads().reach
        wanted = reach.upgrade_public(parse_url(url))
        key = (wanted, across)
        fresh = fresh or reach.inside(wanted.target) is not None  # what a session builds changes from call to call
        if not fresh and (found := self._memory.get(key)) is not None:
            return found._replace(url=url)
        limit_seconds = self._allowances.seconds if seconds is None else seconds
        terms = Terms(
            hops=self._allowances.hops,
            most_bytes=self._allowances.most_bytes,
            across=across,
            tell=tell,
        )

        async def work() -> Got | Redirected:
            page = await self._fetch(
                wanted, terms, limit_seconds, with_robots=self._allowances.robots, limit_said=limit_said
            )
            if isinstance(page, Got) and reach.inside(wanted.target) is None:
                self._memory.put(key, page)
            return page

        # Who has a little less time left than another one shares with it all the same.
        time_left = math.ceil(min(limit_seconds, _LONGEST_SECONDS))
        page = await self._run((key, fresh, time_left, limit_said), work)
        return page._replace(url=url)

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = _WEB_NOTHING,
        data: bytes | None = None,
        seconds: float | None = None,
    ) -> Got:
        """What a back end that the user has configured answers. Raises WebError.

        Its host and port may be private; nothing is upgraded, remembered or asked of robots.txt, and no redirect leaves
        it.
        """
        wanted = parse_url(url)
        terms = Terms(
            hops=self._allowances.hops,
            most_bytes=self._allowances.most_bytes,
            own=wanted.target,
            method=method,
            headers=headers,
            data=data,
        )
        limit_seconds = self._allowances.seconds if seconds is None else seconds
        answer = await self._run(object(), lambda: self._fetch(wanted, terms, limit_seconds, with_robots=False))
        if isinstance(answer, Redirected):
            raise WebError(
                f"{wanted.origin} redirects to {answer.to}, which is not followed: what is sent is meant for the "
                "first one only. Give the address that it redirects to.",
                "bad-answer",
            )
        return answer._replace(url=url)

    async def close(self) -> None:
        """End what is under way, and forget what was fetched."""
        self._is_closed = True
        await self._sharing.close()
        self._memory.clear()

    async def _run(self, key: object, work: Callable[[], Coroutine[Any, Any, Got | Redirected]]) -> Got | Redirected:
        self._refuse_closed()
        try:
            return await self._sharing.run(key, work)
        except asyncio.CancelledError:
            if not _is_cancelled():
                self._refuse_closed()
            raise

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise WebError("The session has ended; nothing is fetched any more.", "unreachable")

    async def _fetch(
        self, url: Url, terms: Terms, seconds: float, *, with_robots: bool, limit_said: str = ""
    ) -> Got | Redirected:
        journey: Journey | None = None
        try:
            async with asyncio.timeout(seconds) as limit:
                roads = self._roads()
                if with_robots:
                    terms = terms._replace(check=functools.partial(self._check, roads, limit))
                journey = Journey(roads, terms, limit, {})
                landed = await journey.go(url)
        except TimeoutError:
            limit_said = limit_said or f"{_format_seconds(seconds)} s (setting web.seconds)"
            why = f"The page was not complete after {limit_said}; this is what had come by then."
            page = _partial(journey, why)
            if page is None:
                raise WebError(f"{url} took longer than {limit_said}.", "timed-out") from None
            return page
        except CutOff as error:
            page = _partial(journey, f"{error.message} This is what had come by then.")
            if page is None:
                raise
            return page
        if isinstance(landed, Landed):
            return _got(landed)
        return Redirected(str(url), str(landed.to), landed.status, landed.is_private)

    async def _check(self, roads: Roads, limit: asyncio.Timeout, way: Way) -> None:
        if way.is_private:
            return  # the user's own hosts are the user's own to read

        async def fetch(file: Way) -> tuple[int, bytes]:
            terms = Terms(hops=HOPS, most_bytes=ROBOTS_BYTES, beginning=True, has_place=True)
            known = {file.url.target.host: file.addresses}
            landed = await Journey(roads, terms, limit, known).go(file.url)
            assert isinstance(landed, Landed)
            return landed.status, bytes(landed.body.data)

        await self._robots.check(way, fetch)

    def _roads(self) -> Roads:
        """What all fetches share, made by the first one. Raises WebError."""
        if self._made is None:
            way_between = proxy(self._allowances.proxy)
            self._made = Roads(
                reach=Reach(
                    self._allowances.private_hosts,
                    self._resolver,
                    is_proxied=way_between is not None,
                    inside=self._inside,
                ),
                line=self._transport or functools.partial(_line(), tls=self._context, proxy=way_between),
                slots=FetchSlots(),
                user_agent=self._allowances.user_agent or _user_agent(),
                clock=self._clock,
            )
        return self._made

    def _context(self) -> "ssl.SSLContext":
        if self._tls is None:
            self._tls = httpcore2.default_ssl_context()
        return self._tls


def _line() -> "Callable[..., httpx2.AsyncBaseTransport]":
    try:
        from ferrule.tools.web.transport import PageTransport  # whoever fetches pays for its packages
    except ImportError as error:
        raise no_package() from error
    return PageTransport


def _partial(journey: Journey | None, why: str) -> Got | None:
    """What has come, where it is text that is of use without its end."""
    landed = None if journey is None else journey.landed
    if landed is None or not landed.body.data or landed.status >= 400:
        return None
    if not is_text(media_type(landed.headers)[0], landed.body.data):
        return None
    return _got(landed)._replace(why_partial=why)


def _got(landed: Landed) -> Got:
    kind, charset = media_type(landed.headers)
    headers = {name.lower(): value for name, value in landed.headers.items() if name.lower() != "set-cookie"}
    address = str(landed.url)
    return Got(
        address,
        address,
        landed.status,
        kind,
        charset,
        bytes(landed.body.data),
        headers=headers,
        is_private=landed.is_private,
    )


def _user_agent() -> str:

    try:
        return f"Ferrule/{version('ferrule')} (coding agent tool)"
    except PackageNotFoundError:
        return "Ferrule (coding agent tool)"


def _format_seconds(seconds: float) -> str:
    """As it is said: what is left of a limit after a redirect has many digits."""
    return f"{round(seconds, 1) or seconds:g}"


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
