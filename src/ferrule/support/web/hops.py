"""One fetch from its first address to its last: every redirect is taken apart, looked up and judged like the first.

Nothing is carried from hop to hop: no cookies, no credentials, no trust. A redirect never leads from the public web
into a network of one's own, not even to a host that may be asked for there, and never from https back to http.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ferrule.support.hosts import Address, Target
from ferrule.support.web.address import Url, joined
from ferrule.support.web.body import ENCODINGS, Body, Tell
from ferrule.support.web.errors import WebError
from ferrule.support.web.reach import Reach, Way
from ferrule.support.web.slots import Slots

if TYPE_CHECKING:
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
    slots: Slots
    user_agent: str
    clock: Callable[[], float]


class Terms(NamedTuple):
    """What one fetch may do."""

    hops: int
    most_bytes: int
    across: bool = True
    """Are redirects followed? Otherwise they are what comes back, so that somebody may judge where they lead."""
    own: Target | None = None
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


class Turned(NamedTuple):
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

    async def go(self, url: Url) -> Landed | Turned:
        """Raises WebError."""
        first = here = self._settled(url)
        seen: set[Url] = set()
        before: Way | None = None
        while True:
            seen.add(here)
            with _told(before, here):
                way, turned = await self._stop(here)
            if turned is None:
                assert self.landed is not None
                return self.landed
            to = self._settled(turned.to)
            self._refuse(way, to)
            if not self._may_follow(first, to):
                with _told(way, to):
                    self._roads.reach.judge_literal(to, self._terms.own)
                return Turned(to, turned.status, self._is_private)
            if to in seen:
                raise WebError(
                    f"{first} redirects in a circle. It may want cookies, which are not kept.", "too-many-redirects"
                )
            if len(seen) > self._terms.hops:
                raise WebError(
                    f"{first} redirects more than {self._terms.hops} times (setting web.hops).", "too-many-redirects"
                )
            here, before = to, way

    def _settled(self, url: Url) -> Url:
        return url if self._terms.own is not None else self._roads.reach.settled(url)

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

    async def _stop(self, url: Url) -> tuple[Way, Turned | None]:
        if self._terms.has_place:
            return await self._visit(url)
        async with self._roads.slots.held(url.target.host, self._limit):
            return await self._visit(url)

    async def _visit(self, url: Url) -> tuple[Way, Turned | None]:
        way = await self._roads.reach.way(url, self._terms.own, self._known)
        self._is_private = self._is_private or way.is_private
        if self._terms.check is not None:
            await self._terms.check(way)
        return way, await self._ask(way)

    async def _ask(self, way: Way) -> Turned | None:
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
                return Turned(_redirected(way.url, references.pop()), answer.status_code)
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
def _told(before: Way | None, here: Url) -> Iterator[None]:
    """Whoever reads of a failure has asked for another address than the one that it is about."""
    try:
        yield
    except WebError as error:
        if before is None:
            raise
        raise error.after(str(before.url), str(here), is_own=before.is_private) from error


def _redirected(url: Url, reference: str) -> Url:
    try:
        return joined(url, reference)
    except WebError as error:
        raise WebError(f"{url} redirects to an address that is not fetched. {error.message}", error.code) from error
