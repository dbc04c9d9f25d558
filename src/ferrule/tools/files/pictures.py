"""What a file holds that is not plain text: an image, a document with pages, a notebook."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ferrule.core.content import CellOutput, DocumentPage, Notebook, Picture, ReadDocument
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Context
from ferrule.system.threads import Threads

if TYPE_CHECKING:
    from ferrule.tools.files.read import Kind, ReadArgs


MOST_BYTES: Mapping["Kind", int] = {"image": 50_000_000, "document": 100_000_000, "notebook": 50_000_000}
"""Larger files are refused before anything looks into them."""
MOST_PICTURES = 20
PICTURE_BYTES = 7_500_000
"""Of all pictures in a notebook that are shown together: they must fit into one turn of a model."""


async def decode_content(
    kind: "Kind", path: str, raw: bytes, wanted: "ReadArgs", ctx: Context
) -> Picture | ReadDocument | Notebook:
    """The content as an outcome. Raises `ToolFailure` for what cannot be decoded within the limits."""
    if kind == "notebook":
        return await _with_pictures(await ctx.need(Threads).run(_notebook, path, raw, wanted))
    if kind == "document":
        return await _document(path, raw, wanted, ctx)
    from ferrule.documents.formats import BadPicture, fit  # for images

    try:
        fitted = await fit(raw)
    except BadPicture as error:
        raise ToolFailure(f"{error}", code=error.code, path=path) from error
    if fitted.note:
        ctx.note(fitted.note)
    return Picture(path, fitted.media_type, fitted.data)


async def _document(path: str, raw: bytes, wanted: "ReadArgs", ctx: Context) -> ReadDocument:
    from ferrule.documents.formats import BadDocument, BadPages, pages, ranges  # for documents

    try:
        found = await pages(raw, wanted.pages, images=wanted.page_images)
    except BadPages as error:
        raise BadArguments(f"{ctx.param('pages')}: {error}") from error
    except BadDocument as error:
        raise ToolFailure(f"{error}", code=error.code, path=path) from error
    last = max((end or 0 for _, end in ranges(wanted.pages)), default=0) if wanted.pages else 0
    if last > found.total:
        ctx.note(f"The document has {found.total} pages; there is none after that.")
    leaves = (
        DocumentPage(leaf.number, leaf.text, Picture(path, leaf.media_type, leaf.data) if leaf.data else None)
        for leaf in found.pages
    )
    return ReadDocument(path, tuple(leaves), found.total)


def _notebook(path: str, raw: bytes, wanted: "ReadArgs") -> Notebook:
    from ferrule.files.notebook import BadNotebook, read_notebook  # for notebooks

    try:
        notebook = read_notebook(path, raw)
    except BadNotebook as error:
        raise ToolFailure(f"{os.path.basename(path)}: {error}", code="bad-notebook", path=path) from error
    first = wanted.offset or 1
    last = len(notebook.cells) if wanted.limit is None else first + wanted.limit - 1
    return notebook._replace(cells=notebook.cells[first - 1 : last], first=first, total=len(notebook.cells))


async def _with_pictures(notebook: Notebook) -> Notebook:
    """The notebook with its pictures as model APIs take them, and those that they would not take left out."""
    drawn = [output for cell in notebook.cells for output in cell.outputs if output.picture is not None]
    if not drawn:
        return notebook
    fitted: dict[int, CellOutput] = {}
    room = PICTURE_BYTES
    for at, output in enumerate(drawn):
        fitted[id(output)] = shown = await _fit_output(output, room if at < MOST_PICTURES else 0)
        room -= len(shown.picture.data) if shown.picture is not None else 0
    cells = (
        cell._replace(outputs=tuple(fitted.get(id(output), output) for output in cell.outputs))
        for cell in notebook.cells
    )
    return notebook._replace(cells=tuple(cells))


async def _fit_output(output: CellOutput, room: int) -> CellOutput:
    from ferrule.documents.formats import BadPicture, fit  # for notebooks with pictures

    assert output.picture is not None
    why = "There is no room for another picture."
    try:
        fitted = await fit(output.picture.data) if room > 0 else None
    except BadPicture as error:
        fitted, why = None, str(error)
    if fitted is not None and len(fitted.data) <= room:
        return output._replace(picture=Picture(output.picture.path, fitted.media_type, fitted.data))
    return CellOutput(f"{output.text}\n[A picture is left out. {why}]".lstrip("\n"))
