"""The addresses of the web that a conversation has come by: from the user, from searches, from pages the user named."""

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from ferrule.support.web.address import parsed
from ferrule.support.web.errors import WebError

_WRITTEN = re.compile(r"https?://[^\s<>\"'`\\^{|}\[\]]+", re.IGNORECASE)
_BARE = re.compile(
    r"(?<![\w/.@:-])((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+([a-z]{2,}))(?![\w-])((?::\d+)?/[^\s<>\"'`\\^{|}\[\]]*)?",
    re.IGNORECASE,
)
"""A host without a scheme before it, as people write it."""
_COMMON = frozenset({"com", "org", "net", "edu", "gov", "dev", "io", "ai", "app"})
"""What such a host may end in where no path follows: other endings are mostly those of files."""
_CLOSING = ".,;:!?)*_~'"
"""What often stands behind an address and is not a part of it."""
_LOOPBACK = re.compile(r"localhost|127\.[0-9.]+|\[?::1\]?|.+\.localhost")


class Addresses:
    """Which addresses may be fetched without a question while commands run unasked.

    Whatever else is fetched then could carry, in its host, its path or its query, what a command has read.
    """

    def __init__(self) -> None:
        self.is_heard = False
        """Is there a user who writes prompts? Otherwise whoever makes the calls is the user."""
        self._written: set[str] = set()
        self._shown: set[str] = set()
        self._agreed: set[str] = set()

    def hear(self, text: str) -> None:
        """The user has written this."""
        self.is_heard = True
        self._written.update(filter(None, map(_plain, _in_words(text))))

    def found(self, urls: Iterable[str]) -> None:
        """A search has shown these."""
        self._shown.update(filter(None, map(_plain, urls)))

    def read(self, url: str, text: str) -> None:
        """A page was read; what it links to counts where the user had named it."""
        if _plain(url) in self._written:
            self._shown.update(filter(None, map(_plain, _in_page(text))))

    def agree(self, hosts: Iterable[str]) -> None:
        """The user has said yes to a fetch from these hosts: they are not asked about again."""
        self._agreed.update(hosts)

    def made_up(self, urls: Sequence[str], hosts: Sequence[str]) -> list[str]:
        """The hosts of those addresses that the model has made up; without addresses, `hosts` came by a redirect.

        This machine is none of them: what a session fetches there comes from its own commands.
        """
        known = self._written | self._shown
        asked = [_host(url) for url in urls if _plain(url) not in known] if urls else hosts
        return [host for host in dict.fromkeys(asked) if host not in self._agreed and not _LOOPBACK.fullmatch(host)]


def _in_words(text: str) -> Iterator[str]:
    """The addresses in what somebody has written."""
    yield from _in_page(text)
    for found in _BARE.finditer(text):
        host, ending, path = found[1], found[2].lower(), found[3] or ""
        if path or ending in _COMMON or host.lower().startswith("www."):
            yield from (f"https://{one}" for one in _ends(host + path))


def _in_page(text: str) -> Iterator[str]:
    for found in _WRITTEN.findall(text):
        yield from _ends(found)
        if "&amp;" in found:
            yield from _ends(found.replace("&amp;", "&"))


def _ends(written: str) -> Iterator[str]:
    """An address, and the same without what may only stand behind it."""
    yield written
    while written and written[-1] in _CLOSING:
        written = written[:-1]
        yield written


def _plain(url: str) -> str:
    """An address as it is compared: to the letter, but for what never reaches the server or is the same there."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return ""
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme.lower() not in {"http", "https"} or not host:
        return ""
    # Public hosts are asked over https, whatever the address says.
    scheme = "" if port is None else parts.scheme.lower()
    return f"{scheme}//{host}{'' if port is None else f':{port}'}{parts.path or '/'}?{parts.query}"


def _host(url: str) -> str:
    """The host as a fetch declares it."""
    try:
        return parsed(url.strip()).target.host
    except WebError:
        return url
