"""The patch tool, through the whole flow: all files or none, one journal entry, and every miss explained."""

import os
import stat

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.faults.desk import picture
from tests.patches import codex_patch, is_sayable

from ferrule import Call, Engine
from ferrule.core.content import PatchApplied
from ferrule.core.tool import Face
from ferrule.dialects import Dialect
from ferrule.permissions import Question

SCHEMA = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def said(outcome: PatchApplied) -> list[dict[str, str | None]]:
    return [file._asdict() for file in outcome.files]


FACE = Face(
    tool="patch", name="apply_patch", schema=SCHEMA, words="Apply a patch.", params={"input": "patch"}, says=said
)


def opened(folder: os.PathLike[str]) -> Engine:
    return Engine(
        folder,
        dialect=Dialect(name="test", faces=(FACE,)),
        ask=lambda question: question.kind == "call",
    )


@pytest.fixture
async def engine(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with opened(workspace) as engine:
        yield engine


def patch_of(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


async def apply(engine: Engine, *lines: str):
    return await engine.call("apply_patch", input=patch_of(*lines))


def put(root, **files: str) -> None:
    for name, content in files.items():
        (root / name).write_text(content)


EVERYTHING = (
    "*** Add File: new/a.txt",
    "+one",
    "+two",
    "*** Delete File: b",
    "*** Update File: c",
    "@@",
    " 1",
    "-2",
    "+zwei",
    "*** Update File: d",
    "*** Move to: moved/d.txt",
    "@@",
    "-x",
    "+y",
)


async def test_every_file_is_answered_for_in_the_order_of_the_patch(engine, root):
    put(root, b="gone\n", c="1\n2\n3\n", d="x\n")
    real = os.path.realpath(root)

    reply = await apply(engine, *EVERYTHING)

    assert reply.as_dict() == {
        "status": "done",
        "result": [
            {
                "kind": "add",
                "path": f"{real}/new/a.txt",
                "moved_to": None,
                "diff": "diff --git a/new/a.txt b/new/a.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new/a.txt\n"
                "@@ -0,0 +1,2 @@\n+one\n+two\n",
            },
            {
                "kind": "delete",
                "path": f"{real}/b",
                "moved_to": None,
                "diff": "diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
            },
            {
                "kind": "update",
                "path": f"{real}/c",
                "moved_to": None,
                "diff": "diff --git a/c b/c\n--- a/c\n+++ b/c\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n",
            },
            {
                "kind": "update",
                "path": f"{real}/d",
                "moved_to": f"{real}/moved/d.txt",
                "diff": "diff --git a/moved/d.txt b/moved/d.txt\n--- a/moved/d.txt\n+++ b/moved/d.txt\n"
                "@@ -1 +1 @@\n-x\n+y\n",
            },
        ],
        "trackFiles": [f"{real}/new/a.txt", f"{real}/b", f"{real}/c", f"{real}/d", f"{real}/moved/d.txt"],
    }
    assert {name: raw for name, (_, raw) in picture(root).items() if not name.endswith("/")} == {
        "new/a.txt": b"one\ntwo\n",
        "c": b"1\nzwei\n3\n",
        "moved/d.txt": b"y\n",
    }


async def test_one_undo_takes_all_of_it_back_and_one_redo_does_it_again(engine, root):
    put(root, b="gone\n", c="1\n2\n3\n", d="x\n")
    (root / "d").chmod(0o751)
    before = picture(root)
    await apply(engine, *EVERYTHING)
    after = picture(root)

    await engine.undo()
    undone = picture(root)
    await engine.redo()

    assert undone == before
    assert picture(root) == after
    assert stat.S_IMODE((root / "moved/d.txt").stat().st_mode) == 0o751
    assert len((await engine.history())[0]) == 1


async def test_nothing_is_written_when_one_of_many_files_fails(engine, root):
    names = [f"f{number}" for number in range(20)]
    put(root, **dict.fromkeys(names, "old\n"), last="other\n")
    before = {name: (root / name).stat() for name in names}
    sections = [line for name in names for line in (f"*** Update File: {name}", "@@", "-old", "+new")]

    reply = await apply(
        engine, "*** Add File: made/first", "+x", "*** Delete File: f0", *sections[4:], "*** Update File: last", "-old"
    )

    assert reply.error.error_code == "no-match"
    assert reply.error.absolute_path == os.path.realpath(root / "last")
    assert reply.track_files == ()
    assert not (root / "made").exists()
    assert {name: (root / name).read_bytes() for name in names} == dict.fromkeys(names, b"old\n")
    after = {name: (root / name).stat() for name in names}
    assert {name: (one.st_ino, one.st_mtime_ns) for name, one in after.items()} == {
        name: (one.st_ino, one.st_mtime_ns) for name, one in before.items()
    }
    assert (await engine.history())[0] == []


async def test_a_hundred_files_go_in_one_patch(engine, root):
    for number in range(100):
        (root / f"d{number % 7}").mkdir(exist_ok=True)
        (root / f"d{number % 7}/f{number}").write_text(f"a\nb{number}\nc\n")
    lines = [
        line
        for number in range(100)
        for line in (f"*** Update File: d{number % 7}/f{number}", "@@", " a", f"-b{number}", f"+B{number}")
    ]

    reply = await apply(engine, *lines)

    assert reply.ok, reply
    assert all((root / f"d{n % 7}/f{n}").read_text() == f"a\nB{n}\nc\n" for n in range(100))
    await engine.undo()
    assert all((root / f"d{n % 7}/f{n}").read_text() == f"a\nb{n}\nc\n" for n in range(100))


@pytest.mark.parametrize(
    ("lines", "code", "path", "words"),
    [
        pytest.param(["*** Add File: a", "+x"], "exists", "a", "a exists already (line 2", id="added-over-a-file"),
        pytest.param(["*** Delete File: no"], "not-found", "no", "no file no to delete (line 2", id="deleted-missing"),
        pytest.param(["*** Update File: no", "-x"], "not-found", "no", "no file no to update", id="updated-missing"),
        pytest.param(
            ["*** Update File: no", "*** Move to: b"], "not-found", "no", "no file no to update", id="moved-missing"
        ),
        pytest.param(
            ["*** Update File: a", "*** Move to: b"], "exists", "b", "b exists already", id="moved-over-a-file"
        ),
        pytest.param(
            ["*** Update File: a", "@@", "-nowhere"],
            "no-match",
            "a",
            "a: the hunk at line 3 of the patch has no place",
            id="miss",
        ),
        pytest.param(
            ["*** Update File: b", "-2", "@@", "-1"],
            "no-match",
            "b",
            "b: the hunk at line 4 of the patch",
            id="second-hunk-out-of-order",
        ),
        pytest.param(
            ["*** Update File: a", "@@", "-x"],
            "ambiguous",
            "a",
            "a: the hunk at line 3 of the patch fits 2 places: lines 1, 3.",
            id="two-places",
        ),
        pytest.param(["*** Update File: a", "+x"], "ambiguous", "a", "does not say where", id="added-without-a-place"),
        pytest.param(["*** Update File: raw", "-x"], "binary", "raw", "raw is binary", id="binary"),
        pytest.param(["*** Update File: latin", "-b", "+☃"], "unencodable", "latin", "cp1252", id="unencodable"),
        pytest.param(["*** Update File: folder", "-b"], "is-folder", "folder", "it is a directory", id="folder"),
        pytest.param(["*** Delete File: folder"], "is-folder", "folder", "it is a directory", id="folder-deleted"),
        pytest.param(["*** Add File: a/b", "+x"], "not-a-folder", None, "Nothing was changed.", id="below-a-file"),
    ],
)
async def test_what_cannot_be_done_is_said_and_changes_nothing(engine, root, lines, code, path, words):
    put(root, a="x\ny\nx\n", b="1\n2\n")
    (root / "raw").write_bytes(b"x\0\n")
    (root / "latin").write_bytes(b"caf\xe9\nb\n")
    (root / "folder").mkdir()
    before = picture(root)

    reply = await apply(engine, *lines, "*** Add File: other", "+fine")

    assert words in reply.error.message
    assert reply.error.error_code == code
    assert path is None or reply.error.absolute_path == os.path.realpath(root / path)
    assert "Nothing was changed." in reply.error.message
    assert picture(root) == before


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        pytest.param(["*** Update File: a", "oops"], "input: line 3: expected a line that begins", id="malformed"),
        pytest.param(
            ["*** Delete File: a", "*** Add File: a", "+x"],
            "line 3: a is named a second time, after line 2",
            id="twice",
        ),
        pytest.param(
            ["*** Update File: a", "-x", "*** Delete File: ./sub/../a"], "line 4: a is named", id="by-another-name"
        ),
        pytest.param(["*** Update File: link", "-x", "*** Delete File: a"], "line 4: a is named", id="by-a-link"),
        pytest.param(
            ["*** Update File: a", "*** Move to: b", "*** Delete File: b"], "line 4: b is named", id="goal-and-section"
        ),
        pytest.param(["*** Add File: new/", "+x"], "input: line 2: expected the path of a file", id="folder"),
    ],
)
async def test_a_bad_patch_is_refused_before_anybody_is_asked(tmp_path, lines, words):
    put(tmp_path, a="x\n", b="y\n")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "sub").mkdir()
    asked: list[str] = []

    def ask(question: Question) -> bool:
        asked.append(question.summary)
        return True

    async with Engine(
        tmp_path,
        dialect=Dialect(name="test", faces=(FACE,)),
        ask=ask,
    ) as engine:
        reply = await apply(engine, *lines)

    assert reply.error.error_code == "bad-arguments"
    assert words in reply.error.message
    assert reply.error.message.startswith("input: line ")
    assert asked == []
    assert (tmp_path / "a").read_text() == "x\n"


@pytest.mark.parametrize("name", [".git/config", ".env", "sub/.ssh/id_rsa"])
@pytest.mark.parametrize("how", ["add", "goal", "delete"])
async def test_one_guarded_file_refuses_the_whole_patch(engine, root, name, how):
    put(root, a="x\n")
    lines = {
        "add": [f"*** Add File: {name}", "+x"],
        "goal": ["*** Update File: a", f"*** Move to: {name}"],
        "delete": [f"*** Delete File: {name}"],
    }[how]

    reply = await apply(engine, "*** Add File: fine", "+x", *lines)

    assert reply.error.error_code in ("writing-protected-file", "writing-secret-file")
    assert picture(root) == {"a": (stat.S_IMODE((root / "a").stat().st_mode), b"x\n")}


async def test_a_path_outside_of_the_workspace_is_not_touched(engine, root, tmp_path):
    put(root, a="x\n")

    reply = await apply(engine, "*** Update File: a", f"*** Move to: {tmp_path}/outside")

    assert reply.status == "rejected-by-user"
    assert (root / "a").exists()
    assert not (tmp_path / "outside").exists()


async def test_a_denied_patch_does_not_tell_whether_it_would_fit(tmp_path):
    put(tmp_path, a="there\n")
    async with Engine(tmp_path, dialect=Dialect(name="test", faces=(FACE,))) as engine:
        there = await apply(engine, "*** Update File: a", "-there")
        absent = await apply(engine, "*** Update File: a", "-absent")

    assert there.as_dict() == absent.as_dict()


async def test_absolute_paths_are_paths_too(engine, root):
    put(root, a="x\n")

    reply = await apply(engine, f"*** Update File: {root}/a", "-x", "+y")

    assert reply.ok, reply
    assert (root / "a").read_text() == "y\n"


async def test_a_moved_file_keeps_its_bytes_and_its_mode(engine, root):
    (root / "run").write_bytes(b"\0\xff\r\n")
    (root / "run").chmod(0o755)
    (root / "plain").write_text("x\n")
    (root / "plain").chmod(0o600)

    reply = await apply(
        engine, "*** Update File: run", "*** Move to: bin/run", "*** Update File: plain", "*** Move to: p", "-x", "+y"
    )

    assert reply.ok, reply
    assert picture(root) == {
        "bin/": (picture(root)["bin/"][0], b""),
        "bin/run": (0o755, b"\0\xff\r\n"),
        "p": (0o600, b"y\n"),
    }


async def test_a_file_moved_to_itself_stays(engine, root):
    put(root, a="x\n")

    reply = await apply(engine, "*** Update File: a", "*** Move to: ./a", "-x", "+y")

    assert reply.result[0]["moved_to"] is None
    assert any("to itself" in note for note in reply.notes)
    assert (root / "a").read_text() == "y\n"


async def test_a_link_is_kept_and_its_target_patched(engine, root):
    put(root, real="x\n")
    (root / "link").symlink_to("real")

    reply = await apply(engine, "*** Update File: link", "-x", "+y")

    assert reply.track_files == (os.path.realpath(root / "real"),)
    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "y\n"


async def test_what_was_forgiven_is_noted(engine, root):
    put(root, a="  x  \n", b="p \nq\n")
    text = patch_of("*** Update File: a", "@@", "-x", "+y", "*** Update File: b", "@@", " p", "-q", "*** Add File: c")

    reply = await engine.call("apply_patch", input=f"```\n{text}```".replace("\n", "\r\n"))

    assert reply.ok, reply
    assert reply.notes == (
        "The patch has CR LF at its line ends; each file keeps its own line ends.",
        "The patch came inside a code fence, which was left out.",
        "a: the hunk at line 4 of the patch matched loosely (indentation).",
        "b: the hunk at line 8 of the patch matched loosely (trailing-blanks).",
        "c is empty: the patch has no lines for it.",
    )
    assert ((root / "a").read_bytes(), (root / "b").read_bytes(), (root / "c").read_bytes()) == (b"  y\n", b"p \n", b"")


async def test_a_patch_that_changes_nothing_writes_nothing(engine, root):
    put(root, a="x\n")
    before = (root / "a").stat()

    reply = await apply(engine, "*** Update File: a", "@@", "-x", "+x")

    assert any("nothing was written" in note for note in reply.notes)
    assert reply.track_files == ()
    assert (root / "a").stat().st_ino == before.st_ino
    assert (await engine.history())[0] == []


async def test_a_change_behind_the_back_is_told(engine, root):
    await apply(engine, "*** Add File: a", "+one")
    put(root, a="two\n")

    reply = await apply(engine, "*** Update File: a", "-one")

    assert "changed since" in reply.error.message


async def test_patches_of_one_file_in_one_message_come_one_after_the_other(engine, root):
    put(root, a="".join(f"slot {number}\n" for number in range(20)))
    calls = [
        Call("apply_patch", {"input": patch_of("*** Update File: a", "@@", f"-slot {n}", f"+done {n}")})
        for n in range(20)
    ]

    replies = await engine.run(calls)

    assert all(reply.ok for reply in replies)
    assert (root / "a").read_text() == "".join(f"done {number}\n" for number in range(20))


LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "d = 1", "é"]), max_size=8)
FORMS = st.sampled_from([("\n", "utf-8"), ("\r\n", "utf-8"), ("\n", "cp1252"), ("\r\n", "utf-16")])


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
    """Some files before and after; a patch can say what becomes of each of them."""
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}
    for name in draw(st.lists(st.sampled_from(["a", "b b", "sub/c", "sub/deep/d", "é"]), unique=True, max_size=4)):
        end, encoding = draw(FORMS)
        final = end if draw(st.booleans()) else ""
        sides = [end.join(draw(LINES)) for _ in range(2)]
        old, new = ((side + final).encode(encoding) if draw(st.integers(0, 4)) else None for side in sides)
        if is_sayable(old, new):
            before[name], after[name] = old, new
    return before, after


@given(trees())
@settings(max_examples=40)
async def test_a_patch_of_two_trees_makes_the_one_of_the_other_and_undo_takes_it_back(tmp_path_factory, sides):
    before, after = sides
    assume(before != after)
    root = tmp_path_factory.mktemp("workspace")
    for name, raw in before.items():
        if raw is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(raw)

    def found() -> dict[str, bytes]:
        return {name: raw for name, (_, raw) in picture(root).items() if not name.endswith("/")}

    async with opened(root) as engine:
        reply = await engine.call("apply_patch", input=codex_patch(before, after))

        assert reply.ok, reply
        assert found() == {name: raw for name, raw in after.items() if raw is not None}
        await engine.undo()
        assert found() == {name: raw for name, raw in before.items() if raw is not None}


@pytest.mark.parametrize(
    "section", ["*** Delete File: link", "*** Update File: link\n*** Move to: elsewhere"], ids=["delete", "move"]
)
async def test_a_link_is_neither_deleted_nor_moved_in_the_place_of_its_file(engine, root, section):
    (root / "file").write_bytes(b"kept\n")
    (root / "link").symlink_to("file")

    reply = await engine.call("patch", patch=f"*** Begin Patch\n{section}\n*** End Patch")

    assert reply.error is not None
    assert reply.error.error_code == "is-link"
    assert (root / "file").read_bytes() == b"kept\n"
