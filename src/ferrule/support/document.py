"""Documents: the text and the pictures of a PDF's pages, decoded in a child process (`decoder`)."""

import re
from typing import NamedTuple

import msgspec

from ferrule.support import decoder
from ferrule.support.picture import LONG_SIDE, BadPicture, kind, size

SOURCE_BYTES = 100_000_000
MOST_PAGES = 20
"""That are given at once."""
MOST_UNASKED = 10
"""A longer document must be asked for by pages."""
PAGE_CHARS = 50_000
"""Of a page's text; what is longer is cut, and says so."""
PICTURE_BYTES = 1_000_000
"""Of a page's picture: twenty of them must fit into one turn of a model."""
LIMITS = decoder.Limits(seconds=60)

_MANY = f"at most {MOST_PAGES} pages can be read at once."
_RANGE = r"([0-9]{1,7})(?:(\s*-\s*)([0-9]{1,7})?)?"


class BadDocument(ValueError):  # noqa: N818 - the state of the file, as a tool reports it
    """The document cannot be read. The message is a whole sentence."""

    def __init__(self, message: str, *, code: str = "bad-document") -> None:
        super().__init__(message)
        self.code = code
        """`bad-document`, `encrypted`, `too-large-to-show` or `needs-docs`."""


class BadPages(ValueError):  # noqa: N818 - the reader is a model
    """Those pages cannot be given. The message goes behind the name of the argument and a colon."""


class Leaf(NamedTuple):
    """One page."""

    number: int
    text: str
    media_type: str = ""
    """Of the picture; empty where there is none."""
    data: bytes = b""


class Pages(NamedTuple):
    """Some pages, in the order in which they were asked for."""

    pages: tuple[Leaf, ...]
    total: int
    """How many the document has."""


def known(head: bytes) -> bool:
    """Do these first bytes begin a PDF?"""
    return head.startswith(b"%PDF-")


def ranges(text: str) -> tuple[tuple[int, int | None], ...]:
    """First and last page of each part of `3`, `1-5`, `10-` or `1,3-4`; None is the end of the document.

    Raises: BadPages.
    """
    found: list[tuple[int, int | None]] = []
    parts = text.split(",")
    if len(parts) > MOST_PAGES:
        raise BadPages(_MANY)
    for part in parts:
        match = re.fullmatch(_RANGE, part.strip())
        if match is None:
            raise BadPages(f'{part.strip()[:40]!r} names no pages; write for example "3", "1-5" or "1,3-4".')
        first = int(match[1])
        last = first if match[2] is None else int(match[3]) if match[3] else None
        if first < 1:
            raise BadPages("pages are counted from 1.")
        if last is not None and last < first:
            raise BadPages(f"the end {last} lies before the start {first}.")
        found.append((first, last))
    if sum(1 if last is None else last - first + 1 for first, last in found) > MOST_PAGES:
        raise BadPages(_MANY)
    return tuple(found)


async def pages(
    raw: bytes, wanted: str | None = None, *, images: bool = False, limits: decoder.Limits = LIMITS
) -> Pages:
    """The pages `wanted` (as `ranges` reads them) of a PDF, or all of a short one.

    A page comes with its picture when `images` are asked for, or when it has something on it but no text. A range
    that ends behind the last page ends with it.

    Raises: BadDocument, BadPages.
    """
    chosen = None if wanted is None else ranges(wanted)
    if len(raw) > SOURCE_BYTES:
        raise BadDocument(
            f"The document has {len(raw):,} bytes; {SOURCE_BYTES:,} are the most that can be read.",
            code="too-large-to-show",
        )
    where = decoder.folders(["pypdfium2", "PIL"])
    pictures = "all" if images else "textless"
    if where is None and not images:
        where, pictures = decoder.folders(["pypdfium2"]), ""
    if where is None:
        raise BadDocument(
            f"The libraries that read PDF and draw its pages are not installed: {decoder.INSTALL}.", code="needs-docs"
        )
    order = {
        "ranges": chosen,
        "pictures": pictures,
        "side": LONG_SIDE,
        "most_bytes": PICTURE_BYTES,
        "most_pages": MOST_PAGES,
        "most_unasked": MOST_UNASKED,
        "page_chars": PAGE_CHARS,
        "source_bytes": SOURCE_BYTES,
    }
    try:
        decoded = await decoder.decode("pages", raw, order, limits=limits, where=where)
        said = msgspec.json.decode(decoded.said, type=_Said)
        if said.wrong:
            raise _refusal(said)
        return Pages(_leaves(said, decoded.data), said.total)
    except decoder.Undecodable as error:
        raise BadDocument(f"The document {error}") from error
    except (msgspec.DecodeError, BadPicture) as error:
        raise BadDocument("The document could not be decoded.") from error


class _Row(msgspec.Struct):
    number: int
    text: str
    media_type: str = ""
    size_bytes: int = 0


class _Said(msgspec.Struct):
    wrong: str = ""
    total: int = 0
    number: int = 0
    pages: tuple[_Row, ...] = ()


def _leaves(said: _Said, data: bytes) -> tuple[Leaf, ...]:
    """The pages, if what the child said is true of its bytes: it may have been taken over."""
    found: list[Leaf] = []
    at = 0
    for row in said.pages[:MOST_PAGES]:
        drawn = data[at : at + max(0, row.size_bytes)]
        at += len(drawn)
        if drawn and (kind(drawn) != row.media_type or max(size(drawn)) > LONG_SIDE or len(drawn) > PICTURE_BYTES):
            raise BadPicture("A page's picture is not what was asked for.")
        found.append(Leaf(row.number, row.text[: PAGE_CHARS + 200], row.media_type if drawn else "", drawn))
    return tuple(found)


def _refusal(said: _Said) -> BadDocument | BadPages:
    have = f"the document has {said.total} page{'' if said.total == 1 else 's'}"
    if said.wrong == "encrypted":
        return BadDocument("The document is encrypted: it cannot be read without its password.", code="encrypted")
    if said.wrong == "unasked":
        return BadPages(f'{have}; name those to read, at most {MOST_PAGES}, for example "1-5".')
    if said.wrong == "past":
        return BadPages(f"{have}, and none after that.")
    if said.wrong == "many":
        return BadPages(f"{_MANY[:-1]}, and {have}.")
    if said.wrong == "page":
        return BadDocument(f"Page {said.number} of {said.total} is damaged; others may be readable.")
    return BadDocument("The document is damaged, or not a PDF.")
