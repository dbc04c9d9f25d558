"""One change, said in the words of every family, leaves the same bytes; what one writes, it reads back."""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.patches import codex_patch, is_sayable

from ferrule import Call, Engine
from ferrule.core.call import Reply
from ferrule.core.tool import Face
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.files.text import parse

NAME = "file.txt"


class Change(NamedTuple):
    """A canonical edit."""

    old: str
    new: str
    everywhere: bool = False


def own(family: str, tool: str) -> Face | None:
    """The family's face for a tool: the advertised one, else an older one."""
    faces = [face for face in load_dialect(family).faces if face.tool == tool]
    return next((face for face in faces if face.shown), faces[0] if faces else None)


def said(family: str, change: Change, before: bytes, after: bytes) -> Call:
    """The change in the family's own words: as an edit, or as a patch where it has no edits."""
    face = own(family, "multi_edit" if own(family, "edit") is None else "edit")
    if face is None and is_sayable(before, after):
        patch = own(family, "patch")
        assert patch is not None
        return Call(patch.name, patch.advertised({"patch": codex_patch({NAME: before}, {NAME: after})}))
    # What the family has no words for at all, its models say in those of another.
    face = face or own("amp", "edit")
    assert face is not None
    if change.everywhere and "everywhere" not in {face.params.get(name, name) for name in face.schema["properties"]}:
        change = as_one_piece(change, parse(before).text)
    values: dict[str, Any] = {"path": NAME, "old": change.old, "new": change.new}
    return Call(face.name, face.advertised({**values, "everywhere": True} if change.everywhere else values))


def as_one_piece(change: Change, text: str) -> Change:
    """A change of every place as one of all that lies between the first and the last of them."""
    start, end = text.index(change.old), text.rindex(change.old) + len(change.old)
    return Change(text[start:end], text[start:end].replace(change.old, change.new))


async def made(family: str, folder: Path, call: Call, before: bytes) -> tuple[Reply, bytes]:
    """What a session of the family makes of a file that it has read."""
    workspace = folder / family
    workspace.mkdir()
    (workspace / NAME).write_bytes(before)
    read = own(family, "read")
    assert read is not None
    async with Engine(workspace, dialect=family, ask=lambda question: True, state=folder / "state") as engine:
        seen, reply = await engine.run([Call(read.name, read.advertised({"path": NAME})), call])
    assert seen.ok, seen
    return reply, (workspace / NAME).read_bytes()


TRICKY = [
    pytest.param(b"one\r\ntwo\r\n", Change("one\ntwo", "1\n2"), b"1\r\n2\r\n", id="crlf"),
    pytest.param(b"one\r\ntwo\r\n", Change("one\r\ntwo", "1\r\n2"), b"1\r\n2\r\n", id="crlf-said-as-crlf"),
    pytest.param(b"a\r\nb\nc\r\n", Change("b\n", "B\n"), b"a\r\nB\nc\r\n", id="mixed-endings"),
    pytest.param(b"old\rmac\r", Change("mac", "Mac"), b"old\rMac\r", id="cr-endings"),
    pytest.param(b"\xef\xbb\xbfone\ntwo\n", Change("one", "1"), b"\xef\xbb\xbf1\ntwo\n", id="byte-order-mark"),
    pytest.param(
        "\ufeffeins\nzw\u00f6lf\n".encode("utf-16-le"),
        Change("zw\u00f6lf", "zw\u00f6lf!"),
        "\ufeffeins\nzw\u00f6lf!\n".encode("utf-16-le"),
        id="utf-16",
    ),
    pytest.param(b"caf\xe9\nna\xefve\n", Change("na\u00efve", "\u00e9t\u00e9"), b"caf\xe9\n\xe9t\xe9\n", id="latin-1"),
    pytest.param(b"one\ntwo", Change("two", "2"), b"one\n2", id="no-final-newline"),
    pytest.param(b"one\ntwo\n", Change("two\n", "2\nthree\n"), b"one\n2\nthree\n", id="final-newline"),
    pytest.param(
        b"class A:\n\tdef f(self):\n\t\treturn 1\n",
        Change("\tdef f(self):\n\t\treturn 1", "\tdef f(self):\n\t\tx = 1\n\t\treturn x"),
        b"class A:\n\tdef f(self):\n\t\tx = 1\n\t\treturn x\n",
        id="tabs",
    ),
    pytest.param(
        b"class A:\n    def f(self):\n        return 1\n",
        Change("def f(self):\n    return 1", "def f(self):\n    x = 1\n    return x"),
        b"class A:\n    def f(self):\n        x = 1\n        return x\n",
        id="indentation-shifted",
    ),
    pytest.param(
        "na\u00efve \U0001f600 e\u0301\n".encode(),
        Change("\U0001f600", "\u2192\u65e5\u672c"),
        "na\u00efve \u2192\u65e5\u672c e\u0301\n".encode(),
        id="unicode",
    ),
    pytest.param(b"x = 1\ny = 1\nz = 1\n", Change("= 1", "= 2", True), b"x = 2\ny = 2\nz = 2\n", id="everywhere"),
    pytest.param(
        b"x = 1\r\ny = 1\r\n", Change("1\r\n", "10\r\n", True), b"x = 10\r\ny = 10\r\n", id="everywhere-in-crlf"
    ),
    pytest.param(b"one\ntwo\nthree\n", Change("two\n", ""), b"one\nthree\n", id="deletion"),
    pytest.param(b"only\n", Change("only\n", ""), b"", id="deletion-of-all"),
    pytest.param(b"one\ntwo\n", Change("one\n", "zero\none\n"), b"zero\none\ntwo\n", id="insertion-at-the-start"),
    pytest.param(b"one\ntwo\n", Change("two\n", "two\nthree\n"), b"one\ntwo\nthree\n", id="insertion-at-the-end"),
    pytest.param(b"one\ntwo", Change("two", "two\nthree"), b"one\ntwo\nthree", id="insertion-at-an-open-end"),
    pytest.param(b"a  \nb\n", Change("b", "c"), b"a  \nc\n", id="trailing-blanks-elsewhere"),
    pytest.param(b"\n\n\nx\n\n\n", Change("x", "y"), b"\n\n\ny\n\n\n", id="empty-lines"),
    pytest.param(b"$1 \\1 {0} %s\n", Change("{0}", "\\g<0> $& {1}"), b"$1 \\1 \\g<0> $& {1} %s\n", id="no-templates"),
    pytest.param(b"*** End Patch\n+x\n", Change("+x", "-y"), b"*** End Patch\n-y\n", id="looks-like-a-patch"),
]


@pytest.mark.parametrize(("before", "change", "after"), TRICKY)
async def test_the_same_edit_in_every_dialect_leaves_the_same_bytes(tmp_path, before, change, after):
    for family in FAMILIES:
        reply, left = await made(family, tmp_path, said(family, change, before, after), before)

        assert reply.ok, (family, reply)
        assert left == after, family


LINES = st.lists(st.text("ab\t \u00e9{", max_size=4), min_size=1, max_size=6)


@st.composite
def changes(draw: st.DrawFn) -> tuple[bytes, Change, bytes]:
    """A file, an edit whose old text stands in it once or is to be changed everywhere, and the file after it."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(draw(LINES)) + draw(st.sampled_from(["", end]))
    start = draw(st.integers(0, len(text)))
    old = text[start : draw(st.integers(start, len(text)))]
    new = draw(st.sampled_from(["", old.upper(), end, "new"])) + end.join(draw(LINES))
    everywhere = draw(st.booleans())
    # A file without line ends has the usual ones; and half of one is no text that anybody would name.
    assume(end == "\n" or end in text)
    assume(old.strip() and old != new and not old.startswith("\n") and not old.endswith("\r"))
    # Places that overlap are neither one nor so many.
    places = len(re.findall(f"(?={re.escape(old)})", text))
    assume(places == 1 or (everywhere and places == text.count(old)))
    return text.encode(), Change(old, new, everywhere), text.replace(old, new).encode()


@settings(max_examples=25)
@given(changes())
def test_any_edit_in_every_dialect_leaves_the_same_bytes(case):
    before, change, after = case

    async def law() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for family in FAMILIES:
                reply, left = await made(family, Path(folder), said(family, change, before, after), before)

                assert reply.ok, (family, reply)
                assert left == after, family

    asyncio.run(law())


NUMBERED = {
    "amp": r"\d+: ",
    "claude": r" *\d+→",
    "wayland": r" *\d+\t",
    "ah": r"\d+\t",
    "codex": r"L\d+: ",
    "gemini": r"",
    "opencode": r"\d+: ",
    "pi": r"",
}
"""What each family puts before a line."""

ENDED = {"amp"}
"""Those who end a file that does not end in a newline; all others keep what they are given."""


async def written_and_read(family: str, folder: Path, content: str) -> tuple[bytes, str]:
    """The bytes of a file that was written, and what reading it gives, without the numbers of the lines."""
    workspace = folder / family
    workspace.mkdir()
    read, write = own(family, "read"), own(family, "write") or own("gemini", "write")
    assert read is not None
    assert write is not None
    async with Engine(workspace, dialect=family, ask=lambda question: True, state=folder / "state") as engine:
        written, seen = await engine.run(
            [
                Call(write.name, write.advertised({"path": NAME, "content": content})),
                Call(read.name, read.advertised({"path": NAME})),
            ]
        )
    assert written.ok, written
    assert seen.ok, seen
    lines = (re.sub(f"^{NUMBERED[family]}", "", line) for line in seen.text.split("\n"))
    return (workspace / NAME).read_bytes(), "\n".join(lines)


async def check_written(folder: Path, content: str) -> None:
    for family in FAMILIES:
        raw, seen = await written_and_read(family, folder, content)
        ended = content + "\n" if family in ENDED and content and not content.endswith("\n") else content

        assert raw == ended.encode(), family
        # Whether a last line has an end is not what numbered lines tell, and an empty file may be called one.
        assert not content or seen in (ended, ended.removesuffix("\n")), family


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("one\ntwo\n", id="lines"),
        pytest.param("one\ntwo", id="no-final-newline"),
        pytest.param("", id="nothing"),
        pytest.param("\n", id="an-empty-line"),
        pytest.param("\n\nx\n\n", id="empty-lines"),
        pytest.param("\tx\n  y  \n", id="blanks"),
        pytest.param("1: x\n     2\u2192y\n3\tz\n", id="looks-numbered"),
        pytest.param("caf\u00e9 \U0001f600 \u65e5\u672c\n", id="unicode"),
    ],
)
async def test_what_is_written_in_every_dialect_reads_back(tmp_path, content):
    await check_written(tmp_path, content)


@settings(max_examples=15)
@given(st.lists(st.text("ab1: \t\u2192\u00e9L", max_size=6), max_size=6).map("\n".join))
def test_whatever_is_written_in_every_dialect_reads_back(content):
    async def law() -> None:
        with tempfile.TemporaryDirectory() as folder:
            await check_written(Path(folder), content)

    asyncio.run(law())


async def test_windows_line_ends_are_written_as_they_are(tmp_path):
    for family in FAMILIES:
        raw, _ = await written_and_read(family, tmp_path, "a\r\nb\r\n")

        assert raw == b"a\r\nb\r\n", family
