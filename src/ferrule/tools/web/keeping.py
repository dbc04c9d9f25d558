"""How much of fetched pages is given, and where the rest is kept: nothing that was fetched is lost."""

import os
from collections.abc import Sequence

from ferrule.core.tool import Context
from ferrule.core.web import Missed, Moved, Page, Shown
from ferrule.support.threads import Threads

MOST_BYTES = 262_144
"""Of the text of all pages of one call, where a model reads them."""
GIVEN_BYTES = 40_000
"""The same where they go into the conversation: about 10,000 tokens."""

Found = Page | Shown | Moved | Missed


def shortened(found: Sequence[Found], most_bytes: int) -> tuple[Found, ...]:
    """The pages with as much of their text as there is room for."""
    room = _room([page.total_bytes if isinstance(page, Page) else 0 for page in found], most_bytes)
    return tuple(_cut(page, room) if isinstance(page, Page) else page for page in found)


async def fitted(found: Sequence[Found], ctx: Context, most_bytes: int) -> tuple[Found, ...]:
    """The same; the whole of what is cut goes into the store of outputs, and the reply names what reads it there."""
    cut = shortened(found, most_bytes)
    if cut == tuple(found):
        return cut
    whole = "\n\n".join(_headed(page, len(found)) for page in found if isinstance(page, Page)).encode(
        "utf-8", "replace"
    )
    path = ctx.new_log()
    if path is not None:
        try:
            await ctx.need(Threads).finish(_write, path, whole)
        except OSError as error:  # the disk is full, say: what was fetched is given all the same
            ctx.note(f"The whole text is not kept: {error.strerror or error}.")
        else:
            ctx.keep_log(len(whole))
    return cut


def _room(sizes: Sequence[int], most_bytes: int) -> int:
    """The bytes that each page may have: what short ones leave is shared by the others."""
    left, waiting = most_bytes, sorted(size for size in sizes if size)
    while waiting and waiting[0] <= left // len(waiting):
        left -= waiting.pop(0)
    return left // len(waiting) if waiting else most_bytes


def _cut(page: Page, room: int) -> Page:
    if page.total_bytes <= room:
        return page
    raw = page.text.encode("utf-8", "replace")[:room]
    newline = raw.rfind(b"\n", len(raw) // 2)
    text = (raw[: newline + 1] if newline >= 0 else raw).decode("utf-8", "ignore")
    kept = len(text.encode("utf-8", "replace"))
    why = f"The page has {page.total_bytes:,} bytes of text; these are the first {kept:,}."
    return page._replace(text=text, why_partial=f"{page.why_partial} {why}".strip())


def _headed(page: Page, count: int) -> str:
    return page.text if count == 1 else f"{page.address}\n\n{page.text}"


def _write(path: str, whole: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(whole)
