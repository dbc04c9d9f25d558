"""View an image, through the whole flow."""

import base64
import io
import os
import sys

import pytest
from PIL import Image
from tests.direct import Direct

from ferrule import Engine, documents
from ferrule.core.access import Access
from ferrule.core.errors import ToolFailure
from ferrule.documents import LONG_SIDE, MOST_BYTES
from ferrule.tools.files.read import ViewImage


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def direct(folder):
    opened = Direct(folder)
    yield opened
    opened.close()


def drawn(form: str, width: int, height: int, mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, form)
    return file.getvalue()


async def refused(direct: Direct, **values) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        await direct(ViewImage(), **values)
    return caught.value


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_a_small_image_comes_as_it_is(direct, folder, form):
    raw = drawn(form, 20, 10)
    (folder / "misnamed.txt").write_bytes(raw)

    shown = await direct(ViewImage(), path="misnamed.txt")

    assert shown == (os.path.realpath(folder / "misnamed.txt"), f"image/{form.lower()}", raw)
    assert direct.notes == []


@pytest.mark.parametrize(
    ("original", "size", "notes"),
    [
        pytest.param(
            False,
            (LONG_SIDE, 784),
            ["The image was scaled from 3000 x 1500 to 1568 x 784 pixels."],
            id="scaled",
        ),
        pytest.param(True, (3000, 1500), [], id="original"),
    ],
)
async def test_a_large_image_is_scaled_unless_the_original_is_wanted(direct, folder, original, size, notes):
    (folder / "a.png").write_bytes(drawn("PNG", 3000, 1500))

    shown = await direct(ViewImage(), path="a.png", original=original)

    assert documents.size(shown.data) == size
    assert direct.notes == notes


async def test_the_original_obeys_the_limit_of_bytes(direct, folder):
    Image.frombytes("RGB", (1700, 1000), os.urandom(5_100_000)).save(folder / "a.png")

    shown = await direct(ViewImage(), path="a.png", original=True)

    assert os.path.getsize(folder / "a.png") > MOST_BYTES >= len(shown.data)


@pytest.mark.parametrize("original", [False, True])
async def test_an_image_of_too_many_pixels_is_refused(direct, folder, original):
    (folder / "a.gif").write_bytes(b"GIF89a\xff\xff\xff\xff\0\0\0;")

    failure = await refused(direct, path="a.gif", original=original)

    assert (failure.code, failure.path) == ("too-large-to-show", os.path.realpath(folder / "a.gif"))


async def test_a_huge_file_is_refused_unread(direct, folder):
    with open(folder / "a.png", "wb") as file:
        file.write(drawn("PNG", 5, 5))
        file.truncate(1 << 40)

    assert (await refused(direct, path="a.png")).code == "too-large-to-show"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("text.png", "not-an-image", id="text"),
        pytest.param("empty.png", "not-an-image", id="empty"),
        pytest.param("drawing.svg", "not-an-image", id="other-format"),
        pytest.param("folder", "not-an-image", id="folder"),
        pytest.param(".", "not-an-image", id="workspace"),
        pytest.param("pipe.png", "not-an-image", id="pipe"),
        pytest.param("missing.png", "not-found", id="missing"),
        pytest.param("nowhere/missing.png", "not-found", id="missing-folder"),
        pytest.param("cut.png", "bad-image", id="cut-off"),
    ],
)
async def test_what_is_no_image_is_refused(direct, folder, name, code):
    (folder / "text.png").write_text("no image\n")
    (folder / "empty.png").touch()
    (folder / "drawing.svg").write_text("<svg/>")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe.png")
    (folder / "cut.png").write_bytes(drawn("PNG", 9, 9)[:-9])

    failure = await refused(direct, path=name)

    assert (failure.code, failure.path) == (code, os.path.realpath(folder / name))


async def test_a_file_where_a_folder_should_be_is_a_failure(direct, folder):
    (folder / "a.png").write_bytes(drawn("PNG", 9, 9))

    assert "a.png" in (await refused(direct, path="a.png/b.png")).message


async def test_without_pillow_the_failure_says_what_to_install(direct, folder, monkeypatch):
    (folder / "a.png").write_bytes(drawn("PNG", 3000, 1500))
    monkeypatch.setitem(sys.modules, "PIL", None)

    failure = await refused(direct, path="a.png")

    assert failure.code == "needs-docs"
    assert "3000 x 1500" in failure.message
    assert "pip install 'ferrule[docs]'" in failure.message


async def test_only_the_file_is_touched(direct, folder):
    (folder / "a.png").write_bytes(drawn("PNG", 9, 9))

    await direct(ViewImage(), path="a.png")

    assert direct.touches == (Access.read(os.path.realpath(folder / "a.png")),)


async def test_an_engine_shows_an_image_and_goes_on_after_a_bad_one(folder):
    raw = drawn("PNG", 9, 9)
    (folder / "a.png").write_bytes(raw)
    (folder / "bad.png").write_bytes(drawn("PNG", 3000, 10)[:90])

    async with Engine(folder, dialect="codex") as engine:
        bad = await engine.call("view_image", path="bad.png")
        good = await engine.call("view_image", path="a.png")

    assert bad.as_dict()["error"]["errorCode"] == "bad-image"
    assert good.status == "done"
    assert base64.b64encode(raw).decode() in str(good.as_dict())
