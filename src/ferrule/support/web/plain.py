"""The words of a page without a library: for pages that the libraries fail on, and where there are none.

It reads from the beginning to the end once, whatever the page is: no page takes longer than its length.
"""

import functools
import html
import re
from collections.abc import Iterator

MOST_CHARS = 2_000_000
"""Of a page that is looked at."""
_TITLE_CHARS = 400
_HEAD_CHARS = 200_000
_SILENT = frozenset(
    {
        "script",
        "style",
        "title",
        "noscript",
        "template",
        "svg",
        "head",
        "nav",
        "footer",
        "iframe",
        "object",
        "select",
        "math",
    }
)
"""What stands in these is no text of the page."""
_COMMENT_END = "-->"
_UNREAD = frozenset({"script", "style", _COMMENT_END})
_ALOUD = ("body", "main", "article", "h1")
"""Whatever was not closed before these begin is over."""
_LINES = frozenset(
    {
        *("address", "article", "aside", "body", "br", "center", "dd", "details", "dialog", "div", "dt", "fieldset"),
        *("figcaption", "figure", "form", "header", "hr", "html", "legend", "main", "option", "section", "summary"),
        *("tbody", "thead", "tfoot", "tr"),
    }
)
_PARAGRAPHS = frozenset({"p", "pre", "ul", "ol", "table", "blockquote", "dl"})


def text_of(page: str) -> str:
    """The words, a line for each block; headings and items of lists are marked as Markdown does."""
    return _tidied("".join(_pieces(page[:MOST_CHARS])))


def title_of(page: str) -> str:
    """What a page calls itself; empty where it does not."""
    head = page[:_HEAD_CHARS]
    for pattern in _titles():
        if found := pattern.search(head):
            text = " ".join(html.unescape(_tag().sub(" ", found[1])).split())
            if text:
                return text[:_TITLE_CHARS]
    return ""


def _pieces(page: str) -> Iterator[str]:
    at, silent, is_code = 0, "", False
    for found in _tag().finditer(page):
        if not silent:
            yield _words(page[at : found.start()], is_code=is_code)
        at = found.end()
        name = found["name"].lower() if found["name"] else ""
        closes = found["slash"] == "/"
        if silent:
            # In a script only its own end is a tag; elsewhere a page's own text ends what was left open.
            is_over = name in _ALOUD and silent not in _UNREAD
            if is_over or found[0] == silent or (closes and name == silent):
                silent = ""
            continue
        if found[0] == "<!--" or (name in _SILENT and not closes and not found[0].endswith("/>")):
            silent = name or _COMMENT_END
            yield "\n"
        elif name == "pre":
            is_code = not closes
            yield "\n```\n"
        elif name:
            yield _mark(name, closes=closes)
    if not silent:
        yield _words(page[at:], is_code=is_code)


def _mark(name: str, *, closes: bool) -> str:
    if name[0] == "h" and name[1:] in {"1", "2", "3", "4", "5", "6"}:
        return "\n\n" if closes else f"\n\n{'#' * int(name[1:])} "
    if name == "li":
        return "\n" if closes else "\n- "
    if name in {"td", "th"}:
        return " | " if closes else ""
    if name in _PARAGRAPHS:
        return "\n\n"
    return "\n" if name in _LINES else ""


def _words(text: str, *, is_code: bool) -> str:
    said = html.unescape(text)
    return said if is_code else _blank().sub(" ", said)


def _tidied(text: str) -> str:
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if line == "```":
            is_code = not is_code
        kept = line.rstrip() if is_code else line.strip()
        if kept.startswith("- ") and lines[-2:-1] and lines[-2].startswith("- ") and not lines[-1]:
            lines.pop()
        if kept or (lines and lines[-1]):
            lines.append(kept)
    return "\n".join(lines).strip() + "\n"


@functools.cache
def _tag() -> re.Pattern[str]:
    # Nothing that was read is given back: each character is looked at once.
    return re.compile(r"<!--|-->|<(?P<slash>/?)(?P<name>[A-Za-z][A-Za-z0-9]*+)[^<>]*+>|<[!?](?!--)[^<>]*+>")


@functools.cache
def _blank() -> re.Pattern[str]:
    return re.compile(r"\s+")


@functools.cache
def _titles() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(r"(?i)<title[^<>]{0,500}>([^<]{1,2000})"),
        re.compile(r"""(?i)<meta\s[^<>]{0,200}?og:title["'][^<>]{0,200}?content\s{0,9}=\s{0,9}["']([^<>"']{1,2000})"""),
        re.compile(r"(?i)<h1[^<>]{0,500}>((?:[^<]|<(?!/h1)){1,2000})"),
    )
