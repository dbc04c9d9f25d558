"""Look at an image."""

import os

from ferrule.core.access import Access
from ferrule.core.content import Picture
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.documents import formats
from ferrule.files.jail import Jail, JailPath
from ferrule.system.folder import describe, is_regular, read_all
from ferrule.system.threads import Threads


class ViewImageArgs(Args, frozen=True, kw_only=True):
    path: str
    original: bool = False
    """Keep the resolution, as far as the API's limits allow."""


class ViewImage(Tool[ViewImageArgs, Picture]):
    """An image, scaled down to what model APIs take."""

    name = "view_image"
    args = ViewImageArgs
    title = "Look at a picture"
    hints = READS

    def access(self, args: ViewImageArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.read(ctx.path(args.path)),)

    async def run(self, args: ViewImageArgs, ctx: Context) -> Picture:
        place = ctx.need(Jail).place(ctx.path(args.path))
        try:
            raw = await ctx.need(Threads).run(_raw, place)
            fitted = await formats.fit(raw, original=args.original)
        except formats.BadPicture as error:
            raise ToolFailure(str(error), code=error.code, path=place.path) from error
        if fitted.note:
            ctx.note(fitted.note)
        return Picture(place.path, fitted.media_type, fitted.data)


def _raw(place: JailPath) -> bytes:
    path = place.path
    try:
        with place.folder() as folder:
            # The workspace itself has no name in a folder; `.` is then what is opened, and is no file.
            descriptor = folder.open(place.name if place.parts else os.curdir)
            try:
                return _picture_content(descriptor, path)
            finally:
                os.close(descriptor)
    except FileNotFoundError as error:
        raise ToolFailure(f"{path} is not there.", code="not-found", path=path) from error
    except OSError as error:
        raise ToolFailure(f"{describe(error)}: {path}", path=path) from error


def _picture_content(descriptor: int, path: str) -> bytes:
    if not is_regular(descriptor):
        raise ToolFailure(f"{path} is not a file, so it is no image.", code="not-an-image", path=path)
    if formats.kind(os.pread(descriptor, 16, 0)) is None:
        raise ToolFailure(f"{path} is not a PNG, JPEG, GIF or WebP image.", code="not-an-image", path=path)
    size_bytes = os.fstat(descriptor).st_size
    if size_bytes > formats.PICTURE_BYTES:
        raise formats.too_many_bytes(size_bytes)
    return read_all(descriptor, formats.PICTURE_BYTES)
