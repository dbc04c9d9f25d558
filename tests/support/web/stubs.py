"""A web without a network: names that are known by heart, and sites that answer what a test says."""

from collections.abc import Callable, Sequence
from typing import Any

import httpx2

from ferrule.sandbox.web_address import Way
from ferrule.tools.web.client import Allowances, Web

PUBLIC = "93.184.215.14"

NAMES: dict[str, tuple[str, ...]] = {
    "public.example": (PUBLIC,),
    "www.public.example": (PUBLIC,),
    "other.example": ("2606:4700::1111", "104.16.0.1"),
    "third.example": ("8.8.8.8",),
    "inner.example": ("10.0.0.5",),
    "localhost": ("::1", "127.0.0.1"),
}


class Names:
    """A resolver that counts. A name with several answers in a list gives one after the other, the last one again."""

    def __init__(self, more: dict[str, Any] | None = None) -> None:
        self._known: dict[str, Any] = {**NAMES, **(more or {})}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self._known.get(host)
        if found is None:
            raise OSError(-2, "Name or service not known")
        if isinstance(found, list):
            return tuple(found.pop(0) if len(found) > 1 else found[0])
        return tuple(found)


Answer = Callable[[httpx2.Request], httpx2.Response]


def redirect(to: str | bytes, status: int = 302) -> httpx2.Response:
    place = to if isinstance(to, bytes) else to.encode("utf-8", "surrogateescape")
    return httpx2.Response(status, headers=[(b"location", place)])


def page(text: str = "hello", kind: str = "text/plain", **headers: str) -> httpx2.Response:
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(200, text=text, headers={"content-type": kind, **more})


class Sites:
    """Stands in for connections, and remembers where each would have gone."""

    def __init__(self, *answers: Answer | httpx2.Response) -> None:
        self._answers = list(answers)
        self.ways: list[Way] = []
        self.asked: list[httpx2.Request] = []
        self.open = 0

    def __call__(self, way: Way, **_: Any) -> httpx2.AsyncBaseTransport:
        self.ways.append(way)
        return _Line(self)

    @property
    def urls(self) -> list[str]:
        return [str(way.url) for way in self.ways]

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        number = len(self.asked) - 1
        if number < len(self._answers):
            found = self._answers[number]
        else:
            found = (
                self._answers[-1] if self._answers and not isinstance(self._answers[-1], httpx2.Response) else page()
            )
        return found if isinstance(found, httpx2.Response) else found(request)


class _Line(httpx2.AsyncBaseTransport):
    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        sites.open += 1

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._sites.answer(request)

    async def aclose(self) -> None:
        self._sites.open -= 1


def stubbed(sites: Sites, names: Names | None = None, **allowed: Any) -> Web:
    """A session's web that reaches only these sites."""
    clock = allowed.pop("clock", None)
    options = {} if clock is None else {"clock": clock}
    return Web(Allowances(**{"robots": False, **allowed}), resolver=names or Names(), transport=sites, **options)
