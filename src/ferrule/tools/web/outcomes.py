"""What the web tools answer: pages, addresses that lead elsewhere, and results of a search."""

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
        import re  # for sessions that look at the web

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
