"""The addresses of the web that a conversation has come by: from the user, from searches, from pages the user named."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from urllib.parse import urlsplit

_END = r"[^\s<>\"'`\\^{|}\[\]]"
"""What an address in a text goes on with."""
_COMMON = frozenset({"com", "org", "net", "edu", "gov", "dev", "io", "ai", "app"})
"""What a host may end in that is written without a scheme and a path: other endings are mostly those of files."""
_CLOSING = ".,;:!?)*_~'"
"""What often stands behind an address and is not a part of it."""
_LOOPBACK = r"localhost|127\.[0-9.]+|::1|.+\.localhost"


class Addresses:
    """Which addresses may be fetched without a question while commands run unasked.

    Whatever else is fetched then could carry, in its host, its path or its query, what a command has read.
    """

    def __init__(self) -> None:
        self.is_heard = False
        """Is there a user who writes prompts? Otherwise whoever makes the calls is the user."""
        self._heard: list[str] = []
        """What the user wrote and nobody has looked through yet: most sessions fetch nothing."""
        self._written: set[str] = set()
        self._shown: set[str] = set()
        self._agreed: set[str] = set()

    def hear(self, text: str) -> None:
        """The user has written this."""
        self.is_heard = True
        self._heard.append(text)

    def found(self, urls: Iterable[str]) -> None:
        """A search has shown these."""
        self._shown.update(filter(None, map(_plain, urls)))

    def read(self, url: str, text: str) -> None:
        """A page was read; what it links to counts where the user had named it."""
        if _plain(url) in self._by_user():
            self._shown.update(filter(None, map(_plain, _in_page(text))))

    def agree(self, hosts: Iterable[str]) -> None:
        """The user has said yes to a fetch from these hosts: they are not asked about again."""
        self._agreed.update(hosts)

    def made_up(self, urls: Sequence[str], hosts: Sequence[str]) -> list[str]:
        """The hosts of those addresses that the model has made up; without addresses, `hosts` came by a redirect.

        This machine is none of them: what a session fetches there comes from its own commands.
        """
        known = self._by_user() | self._shown
        asked = [_host(url) for url in urls if _plain(url) not in known] if urls else hosts
        return [one for one in dict.fromkeys(asked) if one not in self._agreed and not re.fullmatch(_LOOPBACK, one)]

    def _by_user(self) -> set[str]:
        """What the user has written so far."""
        for text in self._heard:
            self._written.update(filter(None, map(_plain, _in_words(text))))
        self._heard.clear()
        return self._written


@cache
def _whole() -> re.Pattern[str]:
    return re.compile(rf"https?://{_END}+", re.IGNORECASE)


@cache
def _bare() -> re.Pattern[str]:
    """A host without a scheme before it, as people write it."""
    labels = r"((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+([a-z]{2,}))"
    return re.compile(rf"(?<![\w/.@:-]){labels}(?![\w-])((?::\d+)?/{_END}*)?", re.IGNORECASE)


def _in_words(text: str) -> Iterator[str]:
    """The addresses in what somebody has written."""
    yield from _in_page(text)
    for found in _bare().finditer(text):
        host, ending, path = found[1], found[2].lower(), found[3] or ""
        if path or ending in _COMMON or host.lower().startswith("www."):
            yield from (f"https://{one}" for one in _ends(host + path))


def _in_page(text: str) -> Iterator[str]:
    for found in _whole().findall(text):
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
    from ferrule.support.web.address import parsed  # loaded by whoever fetches
    from ferrule.support.web.errors import WebError

    try:
        return parsed(url.strip()).target.host
    except WebError:
        return url
