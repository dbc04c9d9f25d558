"""The edit torture table of the field report: each row must be done right or refused, and never done wrong."""

import codecs

import pytest
from tests.rows import each_row

from ferrule.files.match import Ambiguous, EditMatch, Missing, find
from ferrule.files.text import Binary, parse, splice

BOM = codecs.BOM_UTF8


def edited(raw: bytes, old: str, new: str, *, everywhere: bool = False) -> bytes | Ambiguous | Missing:
    file = parse(raw)
    outcome = find(file, old, new, everywhere=everywhere)
    return splice(file, outcome.splices) if isinstance(outcome, EditMatch) else outcome


DONE = [
    pytest.param(
        b"a b a",
        "a",
        r"$& $$ $1 \1 \g<0> {0} %s",
        True,
        rb"$& $$ $1 \1 \g<0> {0} %s b $& $$ $1 \1 \g<0> {0} %s",
        id="C-dollar-everywhere",
    ),
    pytest.param(b"a b", "a", r"$&\n", False, rb"$&\n b", id="C-dollar-once"),
    pytest.param(b"a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\ny\n", False, b"a\r\nx\r\ny\r\nc\r\n", id="D-crlf-file-lf-text"),
    pytest.param(
        b"a\r\nb\r\nc\r\n", "b", "x\ny", False, b"a\r\nx\r\ny\r\nc\r\n", id="D-crlf-file-new-lines-inside-a-line"
    ),
    pytest.param(b"a\nb\nc\n", "a\r\nb\r\n", "x\r\ny\r\n", False, b"x\ny\nc\n", id="D-lf-file-crlf-text"),
    pytest.param(b"a\rb\rc", "a\nb", "x\ny\nz", False, b"x\ry\rz\rc", id="D-cr-file-lf-text"),
    pytest.param(b"a\r\nb\nc\r\n", "b", "x", False, b"a\r\nx\nc\r\n", id="E-mixed-edit-an-lf-line"),
    pytest.param(
        b"a\r\nb\nc\r\n", "b\n", "x\ny\n", False, b"a\r\nx\ny\nc\r\n", id="E-mixed-edit-an-lf-line-with-its-end"
    ),
    pytest.param(b"a\r\nb\nc\r\n", "b", "x\ny", False, b"a\r\nx\ny\nc\r\n", id="E-mixed-grow-an-lf-line"),
    pytest.param(b"a\r\nb\nc\r\n", "a\nb\nc", "a\nx\nc", False, b"a\r\nx\nc\r\n", id="E-mixed-region"),
    pytest.param(b"a\nb\r\nc\nd", "c", "x\ny", False, b"a\nb\r\nx\ny\nd", id="E-mixed-the-own-end-of-the-line"),
    pytest.param(b"a\nb\r\nc", "c", "x\ny", False, b"a\nb\r\nx\r\ny", id="E-mixed-last-line-takes-the-end-before-it"),
    pytest.param(BOM + b"a\nb\n", "a\n", "x\n", False, BOM + b"x\nb\n", id="F-bom-edit-the-first-line"),
    pytest.param(
        codecs.BOM_UTF16_LE + "a\r\né\r\n".encode("utf-16-le"),
        "a\né",
        "x\ny",
        False,
        codecs.BOM_UTF16_LE + "x\r\ny\r\n".encode("utf-16-le"),
        id="F-bom-utf-16",
    ),
    pytest.param(b"caf\xe9\nx = 1\n", "x = 1", "x = 2", False, b"caf\xe9\nx = 2\n", id="G-latin-1-elsewhere"),
    pytest.param(b"caf\xe9\nx = 1\n", "café", "thé", False, b"th\xe9\nx = 1\n", id="G-latin-1-in-the-text"),
    pytest.param(b"\x81\xe9\nx\n", "x", "y", False, b"\x81\xe9\ny\n", id="G-bytes-of-no-code-page"),
    pytest.param(
        b"u  \na \nb\t\nc  \nv \n",
        "a\nb\nc\n",
        "a\nx\nc\n",
        False,
        b"u  \na \nx\nc  \nv \n",
        id="H-file-has-trailing-blanks",
    ),
    pytest.param(b"a\n   \nb\n", "a\n\nb", "a\n\nx", False, b"a\n   \nx\n", id="H-file-has-blanks-on-an-empty-line"),
    pytest.param(b"a\nb\n", "a  \nb\t\n", "x\ny\n", False, b"x\ny\n", id="H-old-has-trailing-blanks"),
    pytest.param(
        b"class A:\n    def f(self):\n        return 1\n",
        "def f(self):\n    return 1\n",
        "def f(self):\n    if x:\n        return 2\n    return 1\n",
        False,
        b"class A:\n    def f(self):\n        if x:\n            return 2\n        return 1\n",
        id="I-indent-off-by-four",
    ),
    pytest.param(
        b"def f():\n    return 1\n",
        "    def f():\n        return 1",
        "    def f():\n        return 2",
        False,
        b"def f():\n    return 2\n",
        id="I-indent-too-deep-by-four",
    ),
    pytest.param(
        b"func f() {\n\tif x {\n\t\treturn\n\t}\n}\n",
        "    if x {\n        return\n    }\n",
        "    if x {\n        for {\n            g()\n        }\n    }\n",
        False,
        b"func f() {\n\tif x {\n\t\tfor {\n\t\t\tg()\n\t\t}\n\t}\n}\n",
        id="J-file-tabs-old-spaces",
    ),
    pytest.param(
        b"def f():\n  if x:\n    y()\n",
        "def f():\n\tif x:\n\t\ty()\n",
        "def f():\n\tif x:\n\t\ty()\n\t\tz()\n",
        False,
        b"def f():\n  if x:\n    y()\n    z()\n",
        id="J-file-spaces-old-tabs",
    ),
    pytest.param(
        "“a” x² ﬁ\nb = 1\n".encode(),
        "b = 1",
        "b = 2",
        False,
        "“a” x² ﬁ\nb = 2\n".encode(),
        id="K-curly-quotes-elsewhere-stay",
    ),
    pytest.param(b"a\nb", "b", "x", False, b"a\nx", id="M-last-line-without-newline"),
    pytest.param(b"a\nb", "a\nb", "x\ny", False, b"x\ny", id="M-whole-file-without-newline"),
    pytest.param(b"a \nb", "a\nb", "x\ny", False, b"x\ny", id="M-loosely-without-newline"),
    pytest.param(b"a\nb\n", "b\n", "b", False, b"a\nb", id="M2-delete-the-final-newline"),
    pytest.param(b"a\r\nb\r\n", "b\n", "b", False, b"a\r\nb", id="M2-delete-the-final-newline-loosely"),
    pytest.param(b"a\nb", "b", "b\n", False, b"a\nb\n", id="M2-add-the-final-newline"),
]

REFUSED = [
    pytest.param(
        b"x = 1\ny\n    x = 1\n",
        "x = 1",
        "x = 2",
        Ambiguous("exact", (1, 3)),
        id="B-exact-twice-though-one-is-a-whole-line",
    ),
    pytest.param(
        b"if a:\n    f()\nif b:\n    f()\n  f() \n",
        "    f()\n",
        "    g()\n",
        Ambiguous("exact", (2, 4)),
        id="B-exact-twice-a-loose-one-besides",
    ),
    pytest.param("say ‘hi’\n".encode(), "say 'hi'", "say 'ho'", Missing(), id="K-curly-quotes-are-not-forgiven"),
    pytest.param("a\u00a0b\n".encode(), "a b", "x", Missing(), id="K-nor-other-blanks"),
    pytest.param("é\n".encode(), "e\u0301", "x", Missing(), id="K-nor-other-forms-of-a-letter"),
    pytest.param(b"a \nb\nc\na\t\nb\n", "a\nb", "x", Ambiguous("trailing-blanks", (1, 4)), id="O-two-loose-places"),
    pytest.param(
        b"  a\n    b\n\ta\n\t\tb\n", "a\n  b\n", "x\n", Ambiguous("indentation", (1, 3)), id="O-two-shifted-places"
    ),
    pytest.param(
        b"a\r\nb\r\na\r\nb\r\n", "a\nb", "x", Ambiguous("line-endings", (1, 3)), id="O-two-places-but-for-line-ends"
    ),
    pytest.param(b"total = count + 1\n", "total = cuont + 1", "x", Missing(), id="P-wrong-tokens"),
    pytest.param(b"f(a, b)\n", "f(a,  b)", "x", Missing(), id="P-blanks-inside-a-line"),
    pytest.param(b"a\nb", "b\n", "x\n", Missing(), id="P-a-final-newline-that-is-not-there"),
    pytest.param(b"a\n\nb\n", "a\nb\n", "x\n", Missing(), id="P-an-empty-line-left-out"),
]


@each_row(("raw", "old", "new", "everywhere", "expected"), DONE)
def test_it_is_done_right(raw: bytes, old: str, new: str, everywhere: bool, expected: bytes):
    assert edited(raw, old, new, everywhere=everywhere) == expected


@each_row(("raw", "old", "new", "expected"), REFUSED)
def test_it_is_refused(raw: bytes, old: str, new: str, expected: Ambiguous | Missing):
    assert edited(raw, old, new) == expected


def test_a_file_that_is_no_text_is_not_edited():
    with pytest.raises(Binary):
        edited(b"GIF89a\0\0x = 1", "x = 1", "x = 2")
