"""Documents: pages by number, and hostile files that end a child process but nothing else."""

import asyncio
import contextlib
import io
import os
import sys
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from ferrule import documents
from ferrule.documents import LONG_SIDE, BadDocument, BadPages, DecoderLimits, Leaf, Pages, is_pdf, pages, ranges, size

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
RED_DOT = (b"\xff\0\0", b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceRGB")


def pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A file of these objects, numbered from 1; the first is the catalog."""
    raw, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(raw))
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, len(raw))
    return raw + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table) + end


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def packed(data: bytes, entries: bytes = b"") -> bytes:
    return stream(zlib.compress(data, 9), b"/Filter /FlateDecode " + entries)


def page(content: int, *, width: int = 612, height: int = 792) -> bytes:
    return (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents %d 0 R "
        b"/Resources << /Font << /F 3 0 R >> /XObject << /I 4 0 R >> >> >>" % (width, height, content)
    )


def written(*texts: str, **measures: int) -> bytes:
    """A document with one line of text on each page."""
    kids = b" ".join(b"%d 0 R" % (5 + 2 * at) for at in range(len(texts)))
    objects = [CATALOG, b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(texts), kids), FONT, stream(*RED_DOT)]
    for at, text in enumerate(texts):
        shown = f"BT /F 9 Tf 20 {measures.get('height', 792) // 2} Td ({text}) Tj ET" if text else ""
        objects += [page(6 + 2 * at, **measures), stream(shown.encode())]
    return pdf(*objects)


def numbered(count: int) -> bytes:
    return written(*(f"This is page {number}." for number in range(1, count + 1)))


def single(content: bytes, *, picture: bytes | None = None, tree: bytes = b"/Count 1 /Kids [5 0 R]") -> bytes:
    """A document of one page with that content, already a stream."""
    nodes = b"<< /Type /Pages %s >>" % tree
    return pdf(CATALOG, nodes, FONT, picture or stream(*RED_DOT), page(6), content)


DRAWING = stream(b"600 0 0 700 6 50 cm /I Do")


@pytest.fixture(autouse=True)
def nothing_left():
    """No descriptor and no child, running or zombie, is left by any test of this module."""
    before, had = sorted(os.listdir("/dev/fd")), has_children()
    yield
    assert sorted(os.listdir("/dev/fd")) == before
    assert has_children() <= had


def has_children() -> bool:
    """Is there a child, running or not yet reaped? It is left as it is."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def is_there(pid: int) -> bool:
    """Is there a process of that number, running or not yet reaped?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def read(raw: bytes, wanted: str | None = None, **options) -> Pages:
    async with asyncio.timeout(60):
        return await pages(raw, wanted, **options)


async def refused(raw: bytes, wanted: str | None = None, **options) -> BadDocument:
    with pytest.raises(BadDocument) as caught:
        await read(raw, wanted, **options)
    return caught.value


@pytest.mark.parametrize(
    ("head", "answer"),
    [(b"%PDF-1.4\n", True), (b"%PDF", False), (b"", False), (b"# about %PDF-1.4", False)],
)
def test_a_document_is_known_by_its_first_bytes(head, answer):
    assert is_pdf(head) is answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("3", ((3, 3),), id="one"),
        pytest.param("1-5", ((1, 5),), id="some"),
        pytest.param("10-29", ((10, 29),), id="twenty"),
        pytest.param("5-", ((5, None),), id="to-the-end"),
        pytest.param("1,3-4", ((1, 1), (3, 4)), id="several"),
        pytest.param(" 2 - 4 , 9 ", ((2, 4), (9, 9)), id="blanks"),
        pytest.param("7-7", ((7, 7),), id="from-itself"),
    ],
)
def test_ranges_are_read(text, expected):
    assert ranges(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", '\'\' names no pages; write for example "3", "1-5" or "1,3-4".', id="empty"),
        pytest.param("all", "'all' names no pages", id="a-word"),
        pytest.param("1,,2", "'' names no pages", id="hole"),
        pytest.param("-3", "'-3' names no pages", id="without-start"),
        pytest.param("1.5", "'1.5' names no pages", id="half"),
        pytest.param("١", "'١' names no pages", id="other-digits"),
        pytest.param("9" * 5000, f"'{'9' * 40}' names no pages", id="too-long"),
        pytest.param("0-3", "pages are counted from 1.", id="zero"),
        pytest.param("5-2", "the end 2 lies before the start 5.", id="backwards"),
        pytest.param("1-21", "at most 20 pages can be read at once.", id="too-many"),
        pytest.param("1-15,30-35", "at most 20 pages can be read at once.", id="too-many-together"),
        pytest.param(",".join("123456789" * 3), "at most 20 pages can be read at once.", id="too-many-parts"),
    ],
)
async def test_wrong_ranges_are_refused_before_anything_is_read(text, message):
    with pytest.raises(BadPages) as caught:
        await read(b"never looked at", text)

    assert str(caught.value).startswith(message)


@given(st.text("0123456789-, x", max_size=30))
@example("1-20")
def test_ranges_are_few_and_run_forwards_or_are_refused(text):
    with contextlib.suppress(BadPages):
        found = ranges(text)
        assert sum(1 if last is None else last - first + 1 for first, last in found) <= 20
        assert all(first >= 1 for first, _ in found)


async def test_a_short_document_comes_whole():
    assert await read(numbered(10)) == Pages(
        tuple(Leaf(number, f"This is page {number}.") for number in range(1, 11)), 10
    )


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        pytest.param("3", [3], id="one"),
        pytest.param("2-4", [2, 3, 4], id="some"),
        pytest.param("9,1-2,2-3", [9, 1, 2, 3], id="each-once-and-in-order"),
        pytest.param("22-", [22, 23, 24, 25], id="to-the-end"),
        pytest.param("24-40", [24, 25], id="beyond-the-end"),
        pytest.param("6-25", list(range(6, 26)), id="twenty"),
    ],
)
async def test_pages_are_chosen(wanted, numbers):
    found = await read(numbered(25), wanted)

    assert [leaf.number for leaf in found.pages] == numbers
    assert [leaf.text for leaf in found.pages] == [f"This is page {number}." for number in numbers]
    assert found.total == 25


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param(None, 'the document has 25 pages; name those to read, at most 20, for example "1-5".', id="none"),
        pytest.param("26", "the document has 25 pages, and none after that.", id="past-the-end"),
        pytest.param("1,99-", "the document has 25 pages, and none after that.", id="partly-past-the-end"),
        pytest.param("2-", "at most 20 pages can be read at once, and the document has 25 pages.", id="open-end"),
        pytest.param("1,22-,5-", "at most 20 pages can be read at once, and the document has 25 pages.", id="together"),
    ],
)
async def test_pages_that_cannot_be_given_say_how_many_there_are(wanted, message):
    with pytest.raises(BadPages) as caught:
        await read(numbered(25), wanted)

    assert str(caught.value) == message


async def test_lines_end_in_one_character():
    raw = single(stream(b"BT /F 9 Tf 20 700 Td (first) Tj 0 -20 Td (second) Tj ET"))

    assert (await read(raw)).pages == (Leaf(1, "first\nsecond"),)


async def test_a_long_page_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(documents, "PAGE_CHARS", 10)

    assert (await read(written("0123456789abc"))).pages == (
        Leaf(1, "0123456789\n[The page has 13 characters; these are the first 10.]"),
    )


async def test_a_page_without_text_comes_as_a_picture():
    leaf = (await read(single(DRAWING))).pages[0]

    assert (leaf.text, leaf.media_type, max(size(leaf.data))) == ("", "image/png", LONG_SIDE)
    assert Image.open(io.BytesIO(leaf.data)).convert("RGB").getpixel((600, 800)) == (255, 0, 0)


async def test_a_page_with_nothing_on_it_has_neither_text_nor_picture():
    assert (await read(written("", "text"))).pages == (Leaf(1, ""), Leaf(2, "text"))


async def test_pictures_come_when_they_are_asked_for():
    found = await read(written("one", "two", ""), images=True)

    assert [(leaf.text, leaf.media_type) for leaf in found.pages] == [
        ("one", "image/png"),
        ("two", "image/png"),
        ("", "image/png"),
    ]
    assert {max(size(leaf.data)) for leaf in found.pages} == {LONG_SIDE}


@pytest.mark.parametrize(
    ("measures", "shown"),
    [
        pytest.param({"width": 100, "height": 50}, (200, 100), id="small"),
        pytest.param({"width": 10_000_000, "height": 10}, (LONG_SIDE, 1), id="ribbon"),
        pytest.param({"width": 1_000_000_000, "height": 1_000_000_000}, (LONG_SIDE, LONG_SIDE), id="huge"),
    ],
)
async def test_a_picture_of_a_page_is_never_too_large(measures, shown):
    leaf = (await read(written("x", **measures), images=True)).pages[0]

    assert size(leaf.data) == shown


async def test_a_picture_of_too_many_bytes_becomes_a_jpeg(monkeypatch):
    monkeypatch.setattr(documents, "PAGE_PICTURE_BYTES", 600_000)
    entries = b"/Type /XObject /Subtype /Image /Width 600 /Height 700 /BitsPerComponent 8 /ColorSpace /DeviceRGB"

    leaf = (await read(single(DRAWING, picture=stream(os.urandom(600 * 700 * 3), entries)))).pages[0]

    assert (leaf.media_type, len(leaf.data) <= 600_000) == ("image/jpeg", True)


@pytest.mark.parametrize(
    ("missing", "images"),
    [("pypdfium2", False), ("pypdfium2", True), ("PIL", True)],
)
async def test_without_the_libraries_it_says_what_to_install(missing, images, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)

    error = await refused(written("x"), images=images)

    assert (error.code, "pip install 'ferrule[docs]'" in str(error)) == ("needs-docs", True)


async def test_without_pillow_there_is_still_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)

    assert (await read(written("text", ""))).pages == (Leaf(1, "text"), Leaf(2, ""))
    assert (await read(single(DRAWING))).pages == (Leaf(1, ""),)


async def test_a_file_of_too_many_bytes_is_refused(monkeypatch):
    monkeypatch.setattr(documents, "DOCUMENT_BYTES", 100)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")  # nothing may be decoded

    assert (await refused(written("x"))).code == "too-large-to-show"


async def test_an_encrypted_document_is_refused():
    lock = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >> /ID [<00> <00>]" % (b"1" * 64, b"2" * 64)
    raw = pdf(CATALOG, b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>", page(4), stream(b""), trailer=lock)

    error = await refused(raw)

    assert (error.code, str(error)) == (
        "encrypted",
        "The document is encrypted: it cannot be read without its password.",
    )


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"%PDF-1.7\n", id="nothing-but-a-head"),
        pytest.param(b"%PDF-1.7\n" + bytes(range(256)) * 20, id="garbage"),
        pytest.param(pdf(b"<< /Type /Catalog >>"), id="no-pages"),
        pytest.param(single(DRAWING, tree=b"/Count 0 /Kids []"), id="zero-pages"),
        pytest.param(pdf(b"[" * 100_000), id="deep"),
    ],
)
async def test_a_damaged_document_is_refused(raw):
    error = await refused(raw)

    assert (error.code, str(error)) == ("bad-document", "The document is damaged, or not a PDF.")


async def test_no_beginning_of_a_document_harms():
    raw = written("one", "two")

    for end in range(0, len(raw) - 1, 101):
        with contextlib.suppress(BadDocument):
            assert (await read(raw[:end])).total <= 2


@pytest.mark.parametrize(
    ("tree", "wanted", "message"),
    [
        pytest.param(b"/Count 1000000 /Kids [5 0 R]", None, "the document has 1000000 pages", id="million"),
        pytest.param(b"/Count 1000000 /Kids [5 0 R]", "777", "Page 777 of 1000000 is damaged", id="one-of-a-million"),
        pytest.param(b"/Count 3 /Kids [5 0 R 2 0 R 2 0 R]", None, "Page 2 of 3 is damaged", id="its-own-child"),
        pytest.param(b"/Count 2 /Kids [9 0 R 8 0 R]", None, "Page 1 of 2 is damaged", id="missing-children"),
    ],
)
async def test_a_tree_of_pages_that_lies_is_refused(tree, wanted, message):
    with pytest.raises((BadDocument, BadPages), match=message):
        await read(single(DRAWING, tree=tree), wanted)


@pytest.mark.parametrize(
    ("make", "limits"),
    [
        pytest.param(
            lambda: single(packed(b" " * 300_000_000)), DecoderLimits(memory_bytes=256 << 20), id="inflated-stream"
        ),
        pytest.param(
            lambda: single(packed(b"0 0 m 1 1 l S\n" * 2_000_000)),
            DecoderLimits(memory_bytes=256 << 20),
            id="many-lines",
        ),
        pytest.param(lambda: written("x"), DecoderLimits(output_bytes=10), id="output"),
        pytest.param(lambda: written("x"), DecoderLimits(seconds=0), id="time"),
    ],
)
async def test_what_needs_more_than_the_limits_is_refused(make, limits):
    error = await refused(make(), limits=limits)

    assert error.code == "bad-document"
    assert "could not be decoded within the limits" in str(error)


async def test_an_image_bomb_in_a_page_ends_at_most_the_child():
    entries = b"/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /BitsPerComponent 8 /ColorSpace /DeviceGray"
    raw = single(DRAWING, picture=packed(bytes(50_000_000), entries))

    with contextlib.suppress(BadDocument):
        leaf = (await read(raw, limits=DecoderLimits(seconds=20, memory_bytes=512 << 20))).pages[0]
        assert leaf.text == ""
    assert (await read(written("still here"))).pages == (Leaf(1, "still here"),)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]\n", id="other-json"),
        pytest.param(b'{"total": "many"}\n', id="other-types"),
        pytest.param(
            b'{"total": 1, "pages": [{"number": 1, "text": "", "media_type": "image/png", "size_bytes": 9}]}\nno image',
            id="no-picture",
        ),
    ],
)
async def test_what_a_decoder_says_is_not_believed(tmp_path, monkeypatch, said):
    monkeypatch.setattr(documents, "_PROGRAM", str(tmp_path / "liar.py"))
    (tmp_path / "liar.py").write_text(f"import os; os.write(1, {said!r})")

    assert str(await refused(written("x"))) == "The document could not be decoded."


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancelled_decoder_is_gone(tmp_path, monkeypatch, times):
    monkeypatch.setattr(documents, "_PROGRAM", str(tmp_path / "endless.py"))
    begun = tmp_path / "begun"
    (tmp_path / "endless.py").write_text(
        f"import os\nopen({str(begun)!r} + '.part', 'w').write(str(os.getpid()))\n"
        f"os.rename({str(begun)!r} + '.part', {str(begun)!r})\nwhile True: pass\n"
    )
    job = asyncio.create_task(pages(written("x")))
    async with asyncio.timeout(30):
        while not begun.exists():
            await asyncio.wait([job], timeout=0.01)
    child = int(begun.read_text())
    before = sorted(os.listdir("/dev/fd"))

    for _ in range(times):
        job.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await job

    async with asyncio.timeout(30):  # cancelled twice, it does not wait for the end that it has brought about
        while sorted(os.listdir("/dev/fd")) == before or is_there(child):
            await asyncio.sleep(0)
    monkeypatch.undo()
    assert (await read(written("still here"))).pages == (Leaf(1, "still here"),)
