"""Text files as bytes: every decoding can be undone, and a splice changes nothing around it."""

import codecs

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.text import Binary, Splice, TextFile, TextLines, Unencodable, is_binary, lines, parse, splice

ENCODINGS = ["utf-8", "utf-16-le", "utf-16-be", "cp1252", "latin-1", "shift_jis", "gb18030", "koi8-r"]
BOMS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
TEXT = st.text(st.sampled_from("ab\té\u20ac日😀 \r\n\x0b\u2028"), max_size=40)


def as_file(text: str, encoding: str) -> TextFile:
    bom = BOMS.get(encoding, b"")
    return TextFile(bom + text.encode(encoding), text, encoding, bom)


@st.composite
def files_and_splices(draw: st.DrawFn) -> tuple[TextFile, list[Splice]]:
    encoding = draw(st.sampled_from(ENCODINGS))
    text = draw(TEXT).encode(encoding, "ignore").decode(encoding)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8).filter(lambda found: len(found) % 2 == 0)))
    pairs = zip(cuts[::2], cuts[1::2], strict=True)
    news = st.text(max_size=5).map(lambda new: new.encode(encoding, "ignore").decode(encoding))
    return as_file(text, encoding), [Splice(start, end, draw(news)) for start, end in pairs]


@given(st.binary(max_size=200))
@example(b"\xff\xfe\x00\xd8")
@example(codecs.BOM_UTF8 + b"\xe9")
@example(b"# coding: utf-7\n+AOk-\xe9")
def test_a_parsed_file_encodes_to_the_same_bytes(raw: bytes):
    try:
        file = parse(raw)
    except Binary:
        return

    assert file.bom + file.text.encode(file.encoding) == raw == file.raw
    assert not is_binary(raw)


@given(st.text(max_size=50))
def test_text_in_utf_8_is_read_as_it_is(text: str):
    raw = text.encode()
    assume(not is_binary(raw) and not raw.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)))

    assert parse(raw).text == text


@given(files_and_splices())
def test_bytes_outside_of_the_splices_never_change(case: tuple[TextFile, list[Splice]]):
    file, splices = case
    expected, done = file.bom, 0
    for start, end, new in splices:
        expected += (file.text[done:start] + new).encode(file.encoding)
        done = end

    assert splice(file, splices) == expected + file.text[done:].encode(file.encoding)


@each_row(
    ("raw", "text", "encoding", "bom"),
    [
        pytest.param(b"", "", "utf-8", b"", id="empty"),
        pytest.param("é\n".encode(), "é\n", "utf-8", b"", id="utf-8"),
        pytest.param(codecs.BOM_UTF8 + b"a\n", "a\n", "utf-8", codecs.BOM_UTF8, id="utf-8-with-mark"),
        pytest.param(
            codecs.BOM_UTF8 + b"\xe9\n", "\xe9\n", "cp1252", codecs.BOM_UTF8, id="a-mark-before-something-else"
        ),
        pytest.param(
            codecs.BOM_UTF16_LE + "é\n".encode("utf-16-le"), "é\n", "utf-16-le", codecs.BOM_UTF16_LE, id="utf-16-le"
        ),
        pytest.param(
            codecs.BOM_UTF16_BE + "é\n".encode("utf-16-be"), "é\n", "utf-16-be", codecs.BOM_UTF16_BE, id="utf-16-be"
        ),
        pytest.param(b"caf\xe9 \x93q\x94", "café “q”", "cp1252", b"", id="windows"),
        pytest.param(b"\xe9\x81", "é\x81", "latin-1", b"", id="latin-1-when-windows-has-no-such-byte"),
        pytest.param(b"# -*- coding: koi8-r -*-\n\xc1", "# -*- coding: koi8-r -*-\nа", "koi8-r", b"", id="declared"),
        pytest.param(
            b"#!x\n# vim: set fileencoding=latin-1 :\n\x80",
            "#!x\n# vim: set fileencoding=latin-1 :\n\x80",
            "iso8859-1",
            b"",
            id="declared-on-the-second-line",
        ),
        pytest.param(
            b"1\n2\n# coding: koi8-r\n\xc1", "1\n2\n# coding: koi8-r\nÁ", "cp1252", b"", id="declared-too-late"
        ),
        pytest.param(
            b'<?xml version="1.0" encoding="iso-8859-2"?>\xb1',
            '<?xml version="1.0" encoding="iso-8859-2"?>ą',
            "iso8859-2",
            b"",
            id="declared-in-xml",
        ),
        pytest.param(b"# coding: latin-1\n", "# coding: latin-1\n", "iso8859-1", b"", id="declared-and-still-ascii"),
        pytest.param(b"# coding: nonsense\n\xe9", "# coding: nonsense\né", "cp1252", b"", id="declared-but-unknown"),
        pytest.param(b"# coding: cp037\n\xe9", "# coding: cp037\né", "cp1252", b"", id="declared-but-not-like-ascii"),
        pytest.param(b"# coding: utf-7\n\xe9", "# coding: utf-7\né", "cp1252", b"", id="declared-but-with-states"),
        pytest.param(
            b"# coding: latin-1\n" + "é".encode(), "# coding: latin-1\né", "utf-8", b"", id="declared-but-is-utf-8"
        ),
        pytest.param(b"\x1b[1mlog\x1b[0m\x0c\n", "\x1b[1mlog\x1b[0m\x0c\n", "utf-8", b"", id="escapes-are-text"),
        pytest.param(b"\x01", "\x01", "utf-8", b"", id="a-few-controls-are-text"),
    ],
)
def test_the_encoding_is_found(raw: bytes, text: str, encoding: str, bom: bytes):
    assert parse(raw) == TextFile(raw, text, encoding, bom)


@each_row(
    "raw",
    [
        pytest.param(b"a\0b", id="nul"),
        pytest.param(b"a" * 100_000 + b"\0", id="nul-far-behind"),
        pytest.param(bytes(range(1, 32)) * 10, id="controls"),
        pytest.param("text".encode("utf-32"), id="utf-32"),
        pytest.param("text".encode("utf-16-le"), id="utf-16-without-a-mark"),
        pytest.param(codecs.BOM_UTF16_LE + b"a\0b", id="half-a-character"),
        pytest.param(codecs.BOM_UTF16_LE + b"a\0\x00\xd8b\0", id="half-a-pair"),
        pytest.param(b"\x7fELF\x02\x01\x01\0\0", id="program"),
    ],
)
def test_binary_files_are_refused(raw: bytes):
    assert is_binary(raw)
    with pytest.raises(Binary):
        parse(raw)


@pytest.mark.parametrize(
    ("raw", "new", "character", "encoding"),
    [
        pytest.param(b"caf\xe9", "ok → no", "→", "cp1252", id="arrow-in-windows"),
        pytest.param("é".encode(), "a\ud800", "\ud800", "utf-8", id="half-a-pair-in-utf-8"),
        pytest.param(b"# coding: latin-1\n", "\u20ac", "\u20ac", "iso8859-1", id="euro-where-latin-1-is-declared"),
    ],
)
def test_what_the_encoding_lacks_is_refused(raw: bytes, new: str, character: str, encoding: str):
    with pytest.raises(Unencodable) as caught:
        splice(parse(raw), [Splice(0, 0, new)])

    assert (caught.value.character, caught.value.encoding) == (character, encoding)
    assert encoding in str(caught.value)
    str(caught.value).encode()


def test_new_characters_in_a_declared_encoding_are_written_in_it():
    file = parse(b"# coding: latin-1\nname = 'x'\n")

    assert splice(file, [Splice(26, 27, "é")]) == b"# coding: latin-1\nname = '\xe9'\n"


@pytest.mark.parametrize(
    "splices",
    [
        pytest.param([Splice(2, 3, ""), Splice(1, 1, "")], id="out-of-order"),
        pytest.param([Splice(0, 2, ""), Splice(1, 3, "")], id="overlapping"),
        pytest.param([Splice(2, 1, "")], id="backwards"),
        pytest.param([Splice(0, 9, "")], id="outside"),
        pytest.param([Splice(-1, 1, "")], id="negative"),
    ],
)
def test_splices_that_make_no_sense_are_an_error(splices: list[Splice]):
    with pytest.raises(ValueError, match="Splices"):
        splice(parse(b"abc"), splices)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("a", ["a"], id="no-end"),
        pytest.param("a\nb\r\nc", ["a", "b", "c"], id="mixed"),
        pytest.param("a\rb\nc\r\n", ["a\rb", "c"], id="a-lone-cr-among-lf-is-a-character"),
        pytest.param("a\rb\r", ["a", "b"], id="cr-alone"),
        pytest.param("a\n\n", ["a", ""], id="an-empty-last-line"),
        pytest.param("a\x0b\x0c\x1c\x85\u2028b\n", ["a\x0b\x0c\x1c\x85\u2028b"], id="nothing-else-ends-a-line"),
    ],
)
def test_only_crlf_and_lf_end_lines_and_cr_where_there_is_no_lf(text: str, expected: list[str]):
    assert lines(text) == expected


@given(TEXT, st.integers(0, 40))
def test_the_end_of_a_line_is_the_next_or_else_the_last_one(text: str, offset: int):
    assume(offset <= len(text) and text[offset - 1 : offset + 1] != "\r\n")
    page = TextLines(text)
    ends = [end for end in ("\r\n", "\n", "\r") if end in text] or ["\n"]

    assert page.line_end(offset) in ends
    assert page.line_end(offset) == TextLines(text).line_end(offset)


def test_splicing_at_100_000_places_of_a_wide_text_is_linear():
    text = "é " * 100_000
    splices = [Splice(start, start + 1, "ß") for start in range(0, len(text), 2)]

    assert splice(as_file(text, "utf-8"), splices) == ("ß " * 100_000).encode()
