"""What pages hold: kinds and charsets, Markdown, what breaks a converter, and that nothing is left of it."""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.documents import DecoderLimits
from ferrule.tools.web import content
from ferrule.tools.web import content as contents
from ferrule.tools.web.body import decode_text, detect_kind
from ferrule.tools.web.content import Converter, Failed, UnreadablePage, Warm
from tests.rows import each_row
from tests.support.test_document import written
from tests.support.test_picture import ATTEMPTED, TRIES, png

SAMPLES = Path(__file__).parents[2] / "data" / "web"
HERE = "https://site.example/a/b"
WAIT_SECONDS = 60


@contextlib.asynccontextmanager
async def converter(**options: Any) -> AsyncIterator[tuple[Converter, Warm]]:
    child = Warm(**options)
    opened = Converter(child)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            yield opened, child
    finally:
        await opened.close()


async def read(raw: bytes, media_type: str = "text/html", **more: Any) -> contents.Content:
    async with converter() as (opened, _):
        return await opened.convert(raw, address=HERE, media_type=media_type, **more)


def wide(size: int) -> bytes:
    """A page of one table."""
    row = "<tr>" + "".join(f"<td>{number}</td>" for number in range(8)) + "</tr>"
    return f"<html><body><table>{row * (size // len(row))}</table></body></html>".encode()


@pytest.mark.parametrize("name", ["article", "reference", "soup", "listing", "broken"])
async def test_a_page_reads_like_this(golden, name):
    found = await read((SAMPLES / f"{name}.html").read_bytes())

    assert not found.notes
    golden.check(f"web/{name}.md", f"{found.title}\n\n---\n\n{found.text}")


async def test_a_page_as_plain_text_has_its_words_and_no_marks(golden):
    found = await read((SAMPLES / "article.html").read_bytes(), form="text")

    golden.check("web/article.txt", found.text)


async def test_a_page_as_html_is_as_it_came():
    raw = (SAMPLES / "article.html").read_bytes()

    assert (await read(raw, form="html")).text == raw.decode()


async def test_a_page_that_is_all_navigation_is_given_all_the_same():
    links = "".join(f'<a href="/{number}">chapter {number}</a> ' for number in range(50))

    found = await read(f"<html><body><nav>{links}</nav></body></html>".encode())

    assert "[chapter 49](https://site.example/49)" in found.text


async def test_a_main_part_that_is_a_small_part_is_not_taken_for_the_page():
    rest = "<p>A paragraph of the page that is not in its main part.</p>" * 50

    found = await read(f"<html><body><main><p>Log in</p></main><div>{rest}</div></body></html>".encode())

    assert found.text.count("not in its main part") == 50


PDF, PNG, TEXT = written("hello"), png(2, 2), b"one\ntwo\n"


@each_row(
    ("raw", "media_type", "kind"),
    [
        pytest.param(b"<p>x</p>", "text/html", "page", id="html"),
        pytest.param(b"<p>x</p>", "application/xhtml+xml", "page", id="xhtml"),
        pytest.param(b"<!-- x --><!DOCTYPE html><p>", "", "page", id="html-untold"),
        pytest.param(b"\n <html>", "application/octet-stream", "page", id="html-as-bytes"),
        pytest.param(b"<html>", "text/plain", "text", id="html-as-text-is-text"),
        pytest.param(b"no tag at all", "text/html", "text", id="text-as-html"),
        pytest.param(b' {"a": 1}', "text/html", "data", id="json-as-html"),
        pytest.param(PDF, "text/html", "document", id="pdf-as-html"),
        pytest.param(PDF, "application/octet-stream", "document", id="pdf-as-bytes"),
        pytest.param(PNG, "text/plain", "picture", id="png-as-text"),
        pytest.param(TEXT, "application/octet-stream", "text", id="text-as-bytes"),
        pytest.param(TEXT, "application/zip", "text", id="text-as-zip"),
        pytest.param(TEXT, "", "text", id="text-untold"),
        pytest.param(b"{}", "application/json", "data", id="json"),
        pytest.param(b"{}", "application/ld+json", "data", id="json-of-a-kind"),
        pytest.param(b"[1]", "", "data", id="json-untold"),
        pytest.param(b"<?xml version='1.0'?><rss/>", "application/rss+xml", "text", id="rss"),
        pytest.param(b"<svg/>", "image/svg+xml", "text", id="svg"),
        pytest.param(b"# x", "text/markdown", "text", id="markdown"),
        pytest.param("ü".encode("utf-16"), "text/plain", "text", id="utf-16"),
        pytest.param(b"PK\x03\x04" + bytes(range(256)), "application/zip", "binary", id="zip"),
        pytest.param(b"\x7fELF\x02\x01\x01" + bytes(40), "application/octet-stream", "binary", id="program"),
        pytest.param(b"\0" * 100, "text/html", "binary", id="zeros-as-html"),
        pytest.param(b"\x1f\x8b\x08\0\0\0\0\0", "", "binary", id="gzip"),
        pytest.param(b"", "", "text", id="nothing"),
        pytest.param(b"", "text/plain", "text", id="nothing-told"),
        pytest.param("\x1b[1mone\x07 two \u202e".encode() + b"x" * 24, "text/plain", "text", id="text-with-controls"),
        pytest.param("\x1b[1mone\x07 two \u202e".encode() + b"x" * 24, "", "binary", id="the-same-untold"),
        pytest.param(b"a\0b\x01c\x02" * 10, "text/plain", "binary", id="more-controls-than-text"),
        pytest.param(b"\x01\x02\x03\x04", "text/plain", "binary", id="nothing-but-controls"),
    ],
)
def test_what_a_page_is_is_told_by_its_bytes_and_its_server(raw, media_type, kind):
    assert detect_kind(raw, media_type) == kind


@each_row(
    ("raw", "charset", "text"),
    [
        pytest.param("ä".encode(), "", "ä", id="utf-8-untold"),
        pytest.param(b"\xe4 \x80", "", "ä €", id="windows-untold"),
        pytest.param(b"\xe4 \x80", "iso-8859-1", "ä €", id="latin-1-is-what-windows-made-of-it"),
        pytest.param(b"\xef\xbb\xbf\xc3\xa4", "iso-8859-1", "ä", id="mark-before-header"),
        pytest.param("ä".encode("utf-16"), "utf-8", "ä", id="utf-16-mark"),
        pytest.param(b"<meta charset=koi8-r>\xc1", "", "<meta charset=koi8-r>а", id="meta"),
        pytest.param(
            b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">\xe0',
            "",
            '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">а',
            id="older-meta",
        ),
        pytest.param(b'<?xml version="1.0" encoding="shift_jis"?>\x82\xa0', "", None, id="xml"),
        pytest.param(b"<meta charset=koi8-r>\xc3\xa4", "utf-8", "<meta charset=koi8-r>ä", id="header-before-meta"),
        pytest.param(b"+ADw-b+AD4-", "utf-7", "+ADw-b+AD4-", id="utf-7-is-none"),
        pytest.param(b"aGk=", "base64", "aGk=", id="base64-is-none"),
        pytest.param(b"\\u0041", "unicode_escape", "\\u0041", id="escapes-are-none"),
        pytest.param(b"x", "no-such-charset", "x", id="unknown"),
        pytest.param("aä".encode()[:-1], "", "a\ufffd", id="cut-off-in-a-character"),
        pytest.param(b"\xff", "utf-8", "\ufffd", id="not-what-the-header-says"),
    ],
)
def test_the_charset_is_the_mark_s_the_header_s_the_page_s_or_the_usual(raw, charset, text):
    found = decode_text(raw, charset, "page")

    assert found == text if text is not None else found.endswith("あ")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(b'{"b":1,"a":[1.50,true]}', '{\n  "b": 1,\n  "a": [\n    1.50,\n    true\n  ]\n}', id="set-out"),
        pytest.param(b'{\n "a": 1}', '{\n "a": 1}', id="was-set-out"),
        pytest.param(b'{"a":', '{"a":', id="not-json"),
        pytest.param(b"[" * 50_000, "[" * 50_000, id="deep"),
        pytest.param(b"[" + b"1," * 100_000 + b"1]", None, id="long"),
    ],
)
async def test_json_that_is_short_is_set_out_and_other_is_left_as_it_is(raw, text):
    found = await read(raw, "application/json")

    assert found.kind == "data"
    assert found.text == (raw.decode() if text is None else text)


async def test_a_pdf_is_the_text_of_its_pages_whatever_the_server_calls_it():
    found = await read(written(*(f"leaf {number}" for number in range(1, 26))), "text/html")

    assert found.kind == "document"
    assert found.text.startswith("Page 1 of 25\nleaf 1\n\nPage 2 of 25")
    assert found.text.endswith("Page 25 of 25\nleaf 25")
    assert not found.why_partial


async def test_a_long_pdf_is_given_so_far(monkeypatch):
    monkeypatch.setattr(contents, "MOST_PAGES", 2)
    monkeypatch.setattr(contents, "_AT_ONCE_PAGES", 2)

    found = await read(written("one", "two", "three"), "application/pdf")

    assert "two" in found.text
    assert "three" not in found.text
    assert found.why_partial == "These are the first 2 of its 3 pages."


async def test_a_picture_is_a_picture():
    found = await read(PNG, "application/octet-stream")

    assert (found.kind, found.media_type, found.data) == ("picture", "image/png", PNG)


@pytest.mark.parametrize(
    ("raw", "media_type", "said"),
    [
        pytest.param(b"\0\1\2\3" * 50, "video/mp4", "200 bytes of the type video/mp4", id="video"),
        pytest.param(b"\0\1\2\3" * 50, "", "of a type that the server does not tell", id="untold"),
        pytest.param(b"\0\1\2\3" * 50, "text/plain", "is said to be text/plain, but its 200 bytes", id="no-text"),
        pytest.param(b"\0\1\2\3" * 50, "a/b", "ask the user for it, or .* where commands may use", id="what-to-do"),
        pytest.param(b"%PDF-1.7 and no more", "application/pdf", "damaged", id="damaged-pdf"),
        pytest.param(png(60_000, 60_000), "image/png", "60000 x 60000 pixels", id="huge-picture"),
        pytest.param(PNG[:20], "image/png", "cut off", id="cut-picture"),
    ],
)
async def test_what_cannot_be_shown_is_refused_with_the_reason(raw, media_type, said):
    with pytest.raises(UnreadablePage, match=said):
        await read(raw, media_type)


HOSTILE = {
    "deep": "<div>" * 100_000 + "the text" + "</div>" * 100_000,
    "deep-and-open": "<b><i>" * 50_000 + "the text",
    "tables-in-tables": "<table><tr><td>" * 20_000 + "the text",
    "lists-in-lists": "<ul><li>" * 20_000 + "the text",
    "quotes": "<blockquote>" * 20_000 + "the text",
    "many-attributes": "<p " + " ".join(f"a{number}" for number in range(200_000)) + ">the text",
    "open-tags": "<" * 1_000_000 + "p>the text",
    "open-comment": "<p>the text<!--" + "-" * 1_000_000,
    "one-line": "<p>" + "word " * 400_000 + "the text",
    "entities": "<p>" + "&lt;&nbsp;&nosuch;&#x110000;" * 30_000 + "the text",
    "entity-bomb": '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><p>&b;&b; the text',
    "one-long-word": "<p>the text " + "x" * 2_000_000,
    "code-without-end": "<p>the text</p>" + '<pre class="language-x">' * 50_000,
    "main-without-end": "<p>the text</p>" + "<main>" * 50_000 + "</main>" * 2,
}


async def test_hostile_pages_give_their_text_one_after_the_other():
    async with converter() as (opened, child):
        for name, page in HOSTILE.items():
            found = await opened.convert(page.encode(), address=HERE, media_type="text/html")

            assert "the text" in found.text, (name, found.text[:200], found.notes)
        first = child.pid
        assert (await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")).text == "# x\n"
        assert child.pid == first


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_read_without_a_library_too(name):
    assert "the text" in content.text_of(HOSTILE[name]) or name in {"one-line", "open-comment"}


@given(st.text(alphabet="<>/!-ab \n\"'=&;#x1", max_size=300))
@settings(max_examples=200)
def test_whatever_a_page_is_its_words_come_out_without_tags(page):
    found = content.text_of(page)

    assert "<b>" not in found or "&lt;" in page or "&#" in page
    assert isinstance(content.title_of(page), str)


def test_the_words_of_a_page_are_found_without_a_library(golden):
    golden.check("web/article-plain.md", content.text_of((SAMPLES / "article.html").read_text(encoding="utf-8")))


async def test_a_page_that_breaks_the_child_is_read_without_it_and_the_next_one_is_not_touched():
    async with converter(limits=DecoderLimits(memory_bytes=160 << 20)) as (opened, _):
        found = await opened.convert(wide(6_000_000), address=HERE, media_type="text/html")
        after = await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")

    if sys.platform == "linux":  # elsewhere memory is not bounded
        assert found.notes == (
            "The page is given as plain text: it could not be turned into Markdown (the page breaks it).",
        )
        assert found.why_partial.startswith("Only the first 2,000,000 of the page's")
    assert "0 | 1 | 2" in found.text
    assert (after.text, after.notes) == ("# x\n", ())


async def test_a_page_that_takes_too_long_is_read_without_the_child():
    async with converter(limits=DecoderLimits(seconds=0)) as (opened, child):
        found = await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")
        gone = child.pid

    assert (found.text, gone) == ("# x\n", None)
    assert "it took longer than 0 seconds" in found.notes[0]


async def test_a_child_that_was_killed_is_started_again():
    async with converter() as (opened, child):
        await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")
        first = child.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)

        again = [await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html") for _ in range(2)]

        assert again[1].text == "# x\n"
        assert not again[1].notes
        assert child.pid not in (None, first)


async def test_what_a_child_says_unasked_ends_it_and_is_no_answer():
    async with converter() as (opened, child):
        await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")
        first, process = child.pid, child._child
        assert process is not None
        process.pipe_data_received(1, json.dumps({"id": "guessed", "length": 6}).encode() + b"\nforged")

        found = await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")

        assert (found.text, found.notes) == ("# x\n", ())
        assert child.pid != first


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"no json\n", id="no-json"),
        pytest.param(b"[]\n", id="no-object"),
        pytest.param(b'{"id": "x", "length": 0}\n', id="another-s-answer"),
        pytest.param(b'{"length": -1}\n', id="no-id"),
        pytest.param(b"x" * 100_000, id="no-end-of-line"),
    ],
)
async def test_a_child_that_does_not_keep_to_the_form_is_not_believed(said):
    child = Warm()
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await child.turn("<p>x", address=HERE, form="markdown")
            process = child._child
            assert process is not None
            work = asyncio.create_task(process.turn("<p>x", HERE, "markdown"))
            await asyncio.sleep(0)
            process._heard[:0] = said
            process._more.set()

            with pytest.raises(Failed):
                await work
    finally:
        await child.close()


async def test_pages_wait_for_each_other_and_one_that_is_given_up_spoils_no_other():
    async with converter() as (opened, _):
        pages = [asyncio.create_task(opened.convert(wide(300_000), address=HERE, media_type="text/html"))]
        pages += [
            asyncio.create_task(opened.convert(f"<h1>{at}</h1>".encode(), address=HERE, media_type="text/html"))
            for at in range(5)
        ]
        while not opened._warm._turn.locked():
            await asyncio.sleep(0)
        pages[0].cancel()
        found = await asyncio.gather(*pages, return_exceptions=True)

    assert isinstance(found[0], asyncio.CancelledError)
    assert [page.text for page in found[1:] if isinstance(page, contents.Content)] == [f"# {at}\n" for at in range(5)]


async def test_a_page_that_waits_too_long_for_others_is_read_without_the_child(monkeypatch):
    monkeypatch.setattr(content, "TURN_SECONDS", 0.0)
    async with converter() as (opened, child):
        async with child._turn:
            found = await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")
        after = await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")

    assert (found.text, "the pages before it took too long" in found.notes[0]) == ("# x\n", True)
    assert not after.notes


async def test_a_small_page_that_becomes_a_huge_one_is_read_without_the_child():
    page = b"<table><tr>" + b"<td>a" * 2000 + b"</tr>" + b"<tr><td>x</tr>" * 20_000
    found = await read(page)

    assert "the page breaks it" in found.notes[0] or "too long" in found.notes[0]
    assert len(found.text) < len(page)


async def test_a_large_page_is_not_read_on_the_event_loop(monkeypatch):
    def read_plainly(page: str) -> str:
        threads.append(threading.get_ident())
        return plainly(page)

    plainly = contents.text_of
    threads: list[int] = []
    monkeypatch.setattr(contents, "text_of", read_plainly)
    monkeypatch.setattr(contents, "folders", lambda: None)
    for count in (10, 40_000):
        await read(b"<div>" + b"<b>x" * count)

    assert [thread == threading.get_ident() for thread in threads] == [True, False]


async def test_ending_a_child_takes_its_end_from_nobody(caplog):
    for _ in range(3):
        async with converter() as (opened, _):
            await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")

    assert not caplog.records


async def test_a_child_that_nobody_needs_for_a_while_ends():
    async with converter(idle_seconds=0.0) as (opened, child):
        await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")
        process = child._child
        assert process is not None
        await process.over.wait()

        assert child.pid is None
        assert (await opened.convert(b"<h1>y</h1>", address=HERE, media_type="text/html")).text == "# y\n"


async def test_closing_ends_the_child_also_while_it_starts():
    async with asyncio.timeout(WAIT_SECONDS):
        opened = Converter()
        opened.begin()
        await asyncio.sleep(0)
        await opened.close()
        late = await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")

    assert opened._warm.pid is None
    assert "the session is over" in late.notes[0]


async def test_closing_ends_the_child_also_while_a_page_starts_it():
    async with asyncio.timeout(WAIT_SECONDS):
        opened = Converter()
        reading = asyncio.create_task(opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html"))
        while not opened._warm._turn.locked():
            await asyncio.sleep(0)
        await opened.close()
        late = await reading

    assert opened._warm.pid is None
    assert "the session is over" in late.notes[0]


async def test_a_child_that_was_begun_early_is_the_one_that_is_used():
    async with converter() as (opened, child):
        opened.begin()
        assert child._starting is not None
        await asyncio.wait([child._starting])
        begun = child.pid
        opened.begin()

        await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")

        assert begun is not None
        assert child.pid == begun


async def test_nothing_is_decoded_in_a_child_that_could_reach_anything():
    async with converter() as (opened, child):
        await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")
        if sys.platform != "linux":
            assert child.pid is not None  # only Linux has walls
            return
        status = (Path("/proc") / str(child.pid) / "status").read_text()
        environment = (Path("/proc") / str(child.pid) / "environ").read_bytes()

    said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert said["NoNewPrivs"] == "1"
    assert said["Seccomp"] == "2"
    assert b"HOME" not in environment


# A page that has taken over its process tries what a hostile picture does, and to read the page that comes next.
TAKEN = """
inside = {"__name__": "turning"}
exec(compile(open(%r).read(), "turning", "exec"), inside)
def turned(page, address, form):
    wanted = json.loads(page)
    found, _ = tries(wanted)
    try: found["next page"] = "came" if os.read(0, 1) else ""
    except OSError: found["next page"] = "denied"
    return json.dumps(found), False
inside["convert_page"] = turned
inside["main"]()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux lets a process close itself in.")
async def test_a_page_that_takes_over_its_process_reaches_nothing(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("came from the file")
    (tmp_path / "secret-old").write_text("")
    (tmp_path / "taken.py").write_text(TRIES + TAKEN % content._PROGRAM)
    monkeypatch.setattr(content, "_PROGRAM", str(tmp_path / "taken.py"))
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        wanted = {"secret": str(tmp_path / "secret"), "port": tcp.getsockname()[1], "unix": str(tmp_path / "s")}
        async with converter() as (_, child):
            said = json.loads((await child.turn(json.dumps(wanted), address=HERE, form="markdown")).text)

    expected = dict.fromkeys((*ATTEMPTED, "next page"), "denied")
    if ctypes.CDLL(None).syscall(444, None, 0, 1) <= 0:
        print("NOT TESTED HERE: this kernel has no Landlock, files stay open to converters.")
        expected |= dict.fromkeys(("read", "list", "create", "rename", "start"), "came")
    assert said == expected


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import os; os.abort()", id="abort"),
        pytest.param("while True: print('x' * 100_000)", id="endless-output"),
        pytest.param(
            "print('{\"ready\": true}', flush=True); input(); import os; os.kill(os.getpid(), 11)", id="segfault"
        ),
        pytest.param("print('{\"ready\": true}', flush=True); import os; os.close(0); os._exit(0)", id="gone"),
        pytest.param("print('{\"ready\": 1}', flush=True); input()", id="not-ready"),
        pytest.param("print('{\"ready\": true}', flush=True); import time; time.sleep(300)", id="asleep"),
    ],
)
async def test_a_child_that_breaks_is_gone_and_the_page_is_read_without_it(tmp_path, monkeypatch, program):
    (tmp_path / "broken.py").write_text(program)
    monkeypatch.setattr(content, "_PROGRAM", str(tmp_path / "broken.py"))

    async with converter(limits=DecoderLimits(seconds=1)) as (opened, child):
        found = await opened.convert(b"<h1>x</h1>", address=HERE, media_type="text/html")

        assert child.pid is None
    assert found.text == "# x\n"
    assert "could not be turned into Markdown" in found.notes[0]


async def test_without_the_packages_there_is_the_plain_text_and_a_word_on_how_to_get_them(monkeypatch):
    monkeypatch.setattr(contents, "folders", lambda: None)

    found = await read(b"<title>T</title><h1>x</h1><p>y")

    assert (found.text, found.title) == ("# x\n\ny\n", "T")
    assert "pip install 'ferrule[web]'" in found.notes[0]


async def test_a_child_without_its_packages_says_so(monkeypatch):
    monkeypatch.setattr(content, "folders", lambda: None)
    child = Warm()

    with pytest.raises(Failed, match="not installed"):
        await child.turn("<p>", address=HERE, form="markdown")
    await child.close()
