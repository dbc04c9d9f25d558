"""Define what the web tools answer, and the addresses that a conversation has come by."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Literal, NamedTuple

from ferrule.core.content import Picture

PageKind = Literal["page", "text", "data", "document"]
"""HTML as Markdown, plain text, JSON or the like, or a PDF's text."""


class WebPage(NamedTuple):
    """Text that an address leads to."""

    url: str
    """As it was asked for."""
    address: str
    """Where the text came from, after redirects."""
    kind: PageKind
    text: str
    title: str = ""
    media_type: str = ""
    status: int = 200
    total_bytes: int = 0
    """Of the text, where only a part of it is here."""
    is_cached: bool = False
    why_partial: str = ""
    """Why this is not all of it, as a sentence."""
    seconds: float = 0.0
    is_private: bool = False
    """Did it come from the user's own network, or by way of it? There a command of the session may have written it."""

    @property
    def page_element(self) -> str:
        """The text between marks that nothing in it can close: so several pages are told from each other."""
        held = re.sub(r"(?i)<(?=\s*/?\s*page\b)", "&lt;", self.text)
        return f'<page address="{_plain(self.address)}" title="{_plain(self.title)}">\n{held.rstrip()}\n</page>'


class WebPicture(NamedTuple):
    """A picture that an address leads to."""

    url: str
    address: str
    picture: Picture


class CrossHostRedirect(NamedTuple):
    """A redirect to another host, which was not followed."""

    url: str
    to: str
    status: int


class Missed(NamedTuple):
    """An address, one of several, that could not be read, and why."""

    url: str
    why: str


class Fetched(NamedTuple):
    """What came of a fetch."""

    pages: tuple[WebPage | WebPicture | CrossHostRedirect | Missed, ...]
    prompt: str = ""
    answer: str = ""
    """What the model that read them says to the prompt; empty where none was asked."""
    model: str = ""


class Link(NamedTuple):
    """One result of a search."""

    title: str
    url: str
    snippet: str = ""
    published: str = ""
    """A date, where the back end knows one."""


class Searched(NamedTuple):
    """The results of a search, the best first."""

    query: str
    links: tuple[Link, ...]
    backend: str = ""


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() and char not in '"<>' else " " for char in text)[:500]


_GOES_ON = r"[^\s<>\"`\\^{|}\[\]]"
"""What an address in a text goes on with. Some of these may also stand behind it: `_ends` tries both."""
_MOST_CHARS = 8_192
"""Longer ones are not fetched."""
_MOST_ENDS = 32
"""In so many places an address may end; a page could be made of nothing but brackets."""
_MOST_SHOWN = 20_000
"""Of one page."""
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

    def add_found(self, urls: Iterable[str]) -> None:
        """A search has shown these."""
        self._shown.update(filter(None, map(_normalize_url, urls)))

    def read(self, url: str, text: str, *, is_private: bool) -> None:
        """A page was read; what it links to counts where the user had named it.

        Not so where it came from this machine or the user's own network: there commands of the session can have
        written it, with addresses in which stands what they have read.
        """
        if not is_private and not re.fullmatch(_LOOPBACK, _host(url)) and _normalize_url(url) in self._by_user():
            self._shown.update(filter(None, map(_normalize_url, islice(_in_page(text), _MOST_SHOWN))))

    def agree(self, hosts: Iterable[str]) -> None:
        """The user has said yes to a fetch from these hosts: they are not asked about again."""
        self._agreed.update(hosts)

    def find_made_up(self, urls: Sequence[str], hosts: Sequence[str]) -> list[str]:
        """The hosts of those addresses that the model has made up; without addresses, `hosts` came by a redirect.

        This machine is none of them: what a session fetches there comes from its own commands.
        """
        known = self._by_user() | self._shown
        asked = [_host(url) for url in urls if _normalize_url(url) not in known] if urls else hosts
        return [one for one in dict.fromkeys(asked) if one not in self._agreed and not re.fullmatch(_LOOPBACK, one)]

    def _by_user(self) -> set[str]:
        """What the user has written so far."""
        for text in self._heard:
            self._written.update(filter(None, map(_normalize_url, _in_words(text))))
        self._heard.clear()
        return self._written


@cache
def _whole() -> re.Pattern[str]:
    six = r"(?:\[[0-9a-f:.]+\])?"
    return re.compile(rf"https?://{six}{_GOES_ON}{{0,{_MOST_CHARS}}}", re.IGNORECASE)


@cache
def _bare() -> re.Pattern[str]:
    """A host without a scheme before it, as people write it."""
    labels = r"((?:[^\W_](?:[^\W_]|-)*\.)+([^\W\d_]{2,}))"
    return re.compile(rf"(?<![\w/.@:-]){labels}(?![\w-])((?::\d+)?/{_GOES_ON}{{0,{_MOST_CHARS}}})?", re.IGNORECASE)


@cache
def _cuts() -> re.Pattern[str]:
    """Where an address may be over though no blank follows: at marks, and before scripts that are written without."""
    without_blanks = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
    return re.compile(rf"'|[^\w\x00-\x7f]|(?<=[\x00-\x7f])[{without_blanks}]")


def _in_words(text: str) -> Iterator[str]:
    """The addresses in what somebody has written. Another may begin in the middle of one, as behind a comma."""
    for start in re.finditer(r"https?://", text, re.IGNORECASE):
        whole = _whole().match(text, start.start())
        assert whole is not None
        for one in _ends(whole[0]):
            yield one
            yield re.sub(r"(?<=://)[^/?#@]*@", "", one)  # a name and a password are never sent
    for found in _bare().finditer(text):
        host, ending, path = found[1], found[2].lower(), found[3] or ""
        if path or ending in _COMMON or host.lower().startswith("www."):
            yield from (f"{scheme}://{one}" for one in _ends(host + path) for scheme in ("https", "http"))


def _in_page(text: str) -> Iterator[str]:
    for found in _whole().findall(text):
        yield from _ends(found)
        if "&amp;" in found:
            yield from _ends(found.replace("&amp;", "&"))


def _ends(written: str) -> Iterator[str]:
    """An address, and the same without what may only stand behind it."""
    return islice(_all_ends(written), _MOST_ENDS)


def _all_ends(written: str) -> Iterator[str]:
    cuts = (found.start() for found in _cuts().finditer(written))
    for end in (len(written), *islice(cuts, _MOST_ENDS), *_find_unopened(written)):
        one = written[:end]
        yield one
        while one and one[-1] in _CLOSING:
            one = one[:-1]
            yield one


def _find_unopened(written: str) -> Iterator[int]:
    """Where a bracket is closed that was not opened in it: the one around the address."""
    depth = 0
    for found in re.finditer(r"[()]", written):
        depth += 1 if found[0] == "(" else -1
        if depth < 0:
            yield found.start()
            return


def _normalize_url(url: str) -> str:
    """An address as it would be sent, which is what is compared, to the letter; empty where it never would be.

    Only what is the same to every server has several spellings: the host's name, the port that is usual, and what has
    to be written with a percent sign.
    """
    from ferrule.sandbox.web_address import WebError, parse_url, upgrade_url  # loaded by whoever fetches

    try:
        return str(upgrade_url(parse_url(url.strip())))  # public hosts are asked over https, whatever the address says
    except WebError:
        return ""


def _host(url: str) -> str:
    """The host as a fetch declares it."""
    from ferrule.sandbox.web_address import (
        WebError,
        parse_url,  # loaded by whoever fetches
    )

    try:
        return parse_url(url.strip()).target.host
    except WebError:
        return url
