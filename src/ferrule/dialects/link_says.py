"""How the results of a search of the web read: as a numbered list, or as Markdown links."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ferrule.core.web import Link, Searched


def numbered(head: str = "", *, none: str) -> "Callable[[Searched], str]":
    """Title, address, date and snippet of each; `head` and `none` may have the `{query}` in them."""

    def says(outcome: "Searched") -> str:
        if not outcome.links:
            return none.replace("{query}", outcome.query)
        blocks = [_block(number, link) for number, link in enumerate(outcome.links, 1)]
        return "\n\n".join([*[head.replace("{query}", outcome.query)] * bool(head), *blocks])

    return says


def linked(outcome: "Searched") -> str:
    """A Markdown link for each, with its date and what it says."""
    head = f'Web search results for query: "{outcome.query}"'
    if not outcome.links:
        return f"{head}\n\nNo links found."
    return "\n".join([head, "", *map(_item, outcome.links)])


def _block(number: int, link: "Link") -> str:
    rows = (link.url, link.published and f"Published: {link.published}", link.snippet)
    return "\n".join([f"{number}. {link.title}", *(f"   {row}" for row in rows if row)])


def _item(link: "Link") -> str:
    """In a title and an address, what would end the link is written so that it does not."""
    title = re.sub(r"([\\\[\]])", r"\\\1", link.title)
    url = link.url.replace("(", "%28").replace(")", "%29")
    date = f" ({link.published})" if link.published else ""
    return f"- [{title}]({url}){date}" + (f": {link.snippet}" if link.snippet else "")
