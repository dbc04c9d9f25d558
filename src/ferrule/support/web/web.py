"""Pages of the web for a session: fetched within limits, shared, remembered for a while."""

import asyncio
import functools
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from ferrule.support.sandbox.proxy import Resolver
from ferrule.support.web.address import Url, parsed
from ferrule.support.web.answer import Allowances, Got, Redirected
from ferrule.support.web.body import Tell, is_text, media_type
from ferrule.support.web.errors import CutOff, WebError, no_package
from ferrule.support.web.hops import Journey, Landed, Roads, Terms
from ferrule.support.web.memory import Memory
from ferrule.support.web.names import looked_up
from ferrule.support.web.proxy import proxy
from ferrule.support.web.reach import Inside, Reach, Way
from ferrule.support.web.robots import HOPS, MOST_BYTES, Robots
from ferrule.support.web.slots import Sharing, Slots

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = ["Allowances", "Got", "Redirected", "Web"]

_NOTHING: Mapping[str, str] = {}
_LONGEST_SECONDS = 86_400.0
"""Limits above this are one: without end is a limit too."""


class Web:
    """The session's one way to the web."""

    def __init__(
        self,
        allowances: Allowances,
        *,
        resolver: Resolver = looked_up,
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
        wanted = reach.settled(parsed(url))
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
        headers: Mapping[str, str] = _NOTHING,
        data: bytes | None = None,
        seconds: float | None = None,
    ) -> Got:
        """What a back end that the user has configured answers. Raises WebError.

        Its host and port may be private; nothing is upgraded, remembered or asked of robots.txt, and no redirect leaves
        it.
        """
        wanted = parsed(url)
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
            limit_said = limit_said or f"{_rounded(seconds)} s (setting web.seconds)"
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
            terms = Terms(hops=HOPS, most_bytes=MOST_BYTES, beginning=True, has_place=True)
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
                slots=Slots(),
                user_agent=self._allowances.user_agent or _user_agent(),
                clock=self._clock,
            )
        return self._made

    def _context(self) -> "ssl.SSLContext":
        if self._tls is None:
            import httpcore2  # whoever fetches pays for it

            self._tls = httpcore2.default_ssl_context()
        return self._tls


def _line() -> "Callable[..., httpx2.AsyncBaseTransport]":
    try:
        from ferrule.support.web.transport import Line  # whoever fetches pays for its packages
    except ImportError as error:
        raise no_package() from error
    return Line


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
    from importlib.metadata import PackageNotFoundError, version  # only the first fetch pays for it

    try:
        return f"Ferrule/{version('ferrule')} (coding agent tool)"
    except PackageNotFoundError:
        return "Ferrule (coding agent tool)"


def _rounded(seconds: float) -> str:
    """As it is said: what is left of a limit after a redirect has many digits."""
    return f"{round(seconds, 1) or seconds:g}"


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
