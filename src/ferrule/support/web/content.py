"""What a page holds, for a reader: HTML as Markdown, text and data as they are, PDFs as text, pictures as pictures.

Nothing hostile is decoded here: HTML is in a child (`warm`), PDFs and pictures are in another (`decoder`). A page that
breaks its child is read by `plain`, which nothing breaks.
"""

import re
from typing import Literal, NamedTuple

from ferrule.support import document, picture
from ferrule.support.web.apart import aside
from ferrule.support.web.kinds import Kind, decoded, judged
from ferrule.support.web.plain import MOST_CHARS, text_of, title_of
from ferrule.support.web.warm import Failed, Warm, folders

Form = Literal["markdown", "text", "html"]
INSTALL = "pip install 'ferrule[web]'"
"""How a user gets the libraries that convert pages."""
PRETTY_BYTES = 100_000
"""JSON of at most so many bytes, all on one line, is set out on several."""
MOST_PAGES = 100
"""Of a PDF; a longer one is given so far."""
_AT_ONCE_PAGES = document.MOST_PAGES
_MUCH_BYTES = 100_000
"""More than this is decoded away from the event loop; of so many bytes a page can be made that takes long to read."""


class Unreadable(ValueError):  # noqa: N818 - the state of the page, as a tool reports it
    """The page cannot be shown. The message is a whole sentence."""

    def __init__(self, message: str, *, code: str = "unreadable") -> None:
        super().__init__(message)
        self.code = code


class Content(NamedTuple):
    """What a page holds."""

    kind: Kind
    text: str = ""
    title: str = ""
    media_type: str = ""
    data: bytes = b""
    """Of a picture."""
    why_partial: str = ""
    """Why this is not all of it, as a sentence."""
    notes: tuple[str, ...] = ()


class Converter:
    """The session's one. It must be closed."""

    def __init__(self, warm: Warm | None = None) -> None:
        self._warm = warm or Warm()

    def begin(self) -> None:
        """A page is on its way: be ready for it."""
        if folders() is not None:
            self._warm.begin()

    async def convert(
        self, raw: bytes, *, address: str, media_type: str = "", charset: str = "", form: Form = "markdown"
    ) -> Content:
        """What the bytes of the page at `address` hold. Raises: Unreadable."""
        kind = judged(raw, media_type)
        if kind == "binary":
            raise _binary(address, media_type, len(raw))
        if kind == "picture":
            return await _picture(raw)
        if kind == "document":
            return await _document(raw)
        text = await aside(lambda: decoded(raw, charset, kind), size=len(raw), much=_MUCH_BYTES)
        if kind == "page":
            return await self._page(text, address, media_type, form)
        if kind == "data":
            return Content(kind, _set_out(text), media_type=media_type or "application/json")
        return Content(kind, text, media_type=media_type or "text/plain")

    async def close(self) -> None:
        await self._warm.close()

    async def _page(self, page: str, address: str, media_type: str, form: Form) -> Content:
        given = Content("page", title=title_of(page), media_type=media_type or "text/html")
        if form == "html":
            return given._replace(text=page)
        if folders() is None:
            note = f"The page is given as plain text: the libraries that make Markdown of it are missing ({INSTALL})."
            return await _plain(given, page, note)
        try:
            turned = await self._warm.turn(page, address=address, form=form)
        except Failed as error:
            note = f"The page is given as plain text: it could not be turned into Markdown ({error})."
            return await _plain(given, page, note)
        if turned.is_cut:
            note = "The page is given as plain text: its parts lie too deep in each other for Markdown."
            return await _plain(given, page, note)
        return given._replace(text=turned.text)


def _binary(address: str, media_type: str, size: int) -> Unreadable:
    if media_type.startswith("text/"):
        what = f"{address} is said to be {media_type}, but its {size:,} bytes are no text, no picture and no PDF."
    else:
        kind = f"of the type {media_type}" if media_type else "of a type that the server does not tell"
        what = f"{address} is not a text, a picture or a PDF but {size:,} bytes {kind}."
    return Unreadable(
        f"{what} If it is needed, ask the user for it, or download it with a command where commands may use the "
        "network."
    )


async def _plain(given: Content, page: str, note: str) -> Content:
    text = await aside(lambda: text_of(page), size=len(page), much=_MUCH_BYTES)
    why = ""
    if len(page) > MOST_CHARS:
        why = f"Only the first {MOST_CHARS:,} of the page's {len(page):,} characters were looked at."
    return given._replace(text=text, notes=(note,), why_partial=why)


async def _picture(raw: bytes) -> Content:
    try:
        fitted = await picture.fit(raw)
    except picture.BadPicture as error:
        raise Unreadable(str(error), code=error.code) from error
    return Content(
        "picture", media_type=fitted.media_type, data=fitted.data, notes=(fitted.note,) if fitted.note else ()
    )


async def _document(raw: bytes) -> Content:
    """The text of its pages, so many at once as are decoded in one go."""
    leaves: list[document.Leaf] = []
    total = 1
    while len(leaves) < min(total, MOST_PAGES):
        first = len(leaves) + 1
        try:
            found = await document.pages(raw, f"{first}-{first + _AT_ONCE_PAGES - 1}")
        except (document.BadDocument, document.BadPages) as error:
            if leaves:  # one page in the middle is damaged
                return _leafed(leaves, total, str(error))
            raise Unreadable(str(error), code=getattr(error, "code", "bad-document")) from error
        leaves += found.pages
        total = found.total
    why = f"These are the first {len(leaves)} of its {total} pages." if total > len(leaves) else ""
    return _leafed(leaves, total, why)


def _leafed(leaves: list[document.Leaf], total: int, why: str) -> Content:
    text = "\n\n".join(f"Page {leaf.number} of {total}\n{leaf.text}".rstrip() for leaf in leaves)
    drawn = [str(leaf.number) for leaf in leaves if not leaf.text.strip()]
    notes = (f"There is no text on page {', '.join(drawn[:20])}: what is on it is a picture.",) if drawn else ()
    return Content("document", text, media_type="application/pdf", why_partial=why, notes=notes)


def _set_out(text: str) -> str:
    """JSON that was written for programs as people write it, where it is short."""
    if len(text) > PRETTY_BYTES or re.search(r"\n\s*[^\s]", text.strip()):
        return text
    import msgspec  # for JSON

    try:
        return msgspec.json.format(text.encode("utf-8", "replace"), indent=2).decode()
    except (msgspec.DecodeError, RecursionError):
        return text
