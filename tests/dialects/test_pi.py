"""Pi's faces: what a model is shown, how outcomes and failures read, and what its calls do to files."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.catalog import catalog, lay_out
from tests.rows import each_row

from ferrule import Call, Engine
from ferrule.core.content import (
    CommandResult,
    Created,
    Edited,
    FileText,
    FolderTree,
    Hit,
    Hits,
    ListDirEntry,
    Matching,
    PathPage,
)
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Face, LineLimit
from ferrule.dialects import load_dialect

FACES = {face.name: face for face in load_dialect("pi").faces}


def session(folder: Path) -> Engine:
    return Engine(folder, dialect="pi", ask=lambda question: True)


def test_seven_tools_are_advertised():
    assert [one["name"] for one in catalog("pi")] == ["read", "write", "edit", "bash", "grep", "find", "ls"]


@pytest.mark.parametrize(
    ("name", "properties", "required"),
    [
        pytest.param("read", ["path", "offset", "limit"], ["path"], id="read"),
        pytest.param("write", ["path", "content"], ["path", "content"], id="write"),
        pytest.param("edit", ["path", "edits"], ["path", "edits"], id="edit"),
        pytest.param("bash", ["command", "timeout"], ["command"], id="bash"),
        pytest.param(
            "grep",
            ["pattern", "path", "glob", "ignoreCase", "literal", "context", "limit"],
            ["pattern"],
            id="grep",
        ),
        pytest.param("find", ["pattern", "path", "limit"], ["pattern"], id="find"),
        pytest.param("ls", ["path", "limit"], [], id="ls"),
    ],
)
def test_parameters_are_those_of_the_family(name, properties, required):
    schema = FACES[name].schema

    assert (list(schema["properties"]), schema["required"]) == (properties, required)


@each_row("face", FACES.values())
def test_every_tool_and_every_parameter_is_described_in_whole_sentences(face: Face):
    assert face.words.endswith(".")
    assert all(about["description"].endswith(".") for about in face.schema["properties"].values())


@each_row(
    ("face", "outcome", "said"),
    [
        pytest.param("read", FileText("/a", 1, ("x", "y"), 2, final_newline=True), "x\ny\n", id="all-of-a-file"),
        pytest.param("read", FileText("/a", 1, ("x", "y"), 2), "x\ny", id="no-final-newline"),
        pytest.param("read", FileText("/a", 1, (), 0), "", id="empty-file"),
        pytest.param(
            "read",
            FileText("/a", 3, ("x", "y"), 9),
            "x\ny\n\n[Showing lines 3-4 of 9. Use offset=5 to continue.]",
            id="part-of-a-file",
        ),
        pytest.param(
            "read",
            FileText("/a", 1, ("x",)),
            "x\n\n[Showing lines 1-1. Use offset=2 to continue.]",
            id="part-of-a-file-without-a-known-end",
        ),
        pytest.param("read", FileText("/a", 8, ("x",), 8), "x", id="to-the-end"),
        pytest.param(
            "read", FileText("/a", 20, (), 10), "Offset 20 is beyond end of file (10 lines total)", id="past-the-end"
        ),
        pytest.param("write", Created("/a", False, (), 1, 7), "Successfully wrote 7 bytes to /a", id="written"),
        pytest.param("edit", Edited("/a", "", 1, 1, places=2), "Successfully replaced 2 block(s) in /a.", id="edited"),
        pytest.param("edit_text", Edited("/a", "", 1, 1), "Successfully replaced 1 block(s) in /a.", id="edited-old"),
        pytest.param("bash", CommandResult("x", "/w", "hi\n", 0), "hi", id="ran"),
        pytest.param("bash", CommandResult("x", "/w", "", 0), "(no output)", id="silent"),
        pytest.param("bash", CommandResult("x", "/w", "no\n", 2), "no\n\nCommand exited with code 2", id="ended-badly"),
        pytest.param(
            "bash",
            CommandResult("x", "/w", "so far\n", 143, 1.5),
            "so far\n\nCommand timed out after 1.5 seconds",
            id="stopped",
        ),
        pytest.param(
            "grep",
            Hits((Hit("a.py", 1, "before", context=True), Hit("a.py", 2, "hit")), 1),
            "a.py-1- before\na.py:2: hit",
            id="matches",
        ),
        pytest.param(
            "grep",
            Hits((Hit("a.py", 2, "hit"),), 3),
            "a.py:2: hit\n\n[2 more matches. Use a larger limit or a narrower pattern.]",
            id="more-matches",
        ),
        pytest.param("grep", Hits((), 0), "No matches found", id="no-matches"),
        pytest.param("grep", Matching((("a", 0), ("b", 0)), 2), "a\nb", id="files-for-a-call-in-other-words"),
        pytest.param("grep", Matching((("a", 2),), 1, 2), "a:2", id="counts-for-a-call-in-other-words"),
        pytest.param("find", PathPage(("a", "b/c"), 0), "a\nb/c", id="paths"),
        pytest.param(
            "find", PathPage(("a",), 4), "a\n\n[4 more. Use a larger limit or a narrower pattern.]", id="more-paths"
        ),
        pytest.param("find", PathPage((), 0), "No files found matching pattern", id="no-paths"),
        pytest.param(
            "ls", FolderTree("/w", (ListDirEntry("a", "file"), ListDirEntry("b", "folder")), 0), "a\nb/", id="names"
        ),
        pytest.param(
            "ls",
            FolderTree("/w", (ListDirEntry("a", "file"),), 2),
            "a\n\n[2 more entries. Use a larger limit.]",
            id="more-names",
        ),
        pytest.param("ls", FolderTree("/w", (), 0), "(empty directory)", id="no-names"),
    ],
)
def test_an_outcome_reads_like_this(face, outcome, said):
    assert FACES[face].says(outcome) == said


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [
        pytest.param(CommandResult("x", "/w", "", 0), False, id="zero"),
        pytest.param(CommandResult("x", "/w", "", 1), True, id="one"),
        pytest.param(CommandResult("x", "/w", "", 0, 1.0), True, id="stopped"),
    ],
)
def test_a_command_fails_by_its_exit_code(outcome, failed):
    assert FACES["bash"].failed(outcome) is failed


def test_a_long_output_keeps_its_last_lines():
    assert FACES["bash"].bound == LineLimit(2_000, 51_200, last=True)


@each_row("face", ["edit", "edit_text"])
@each_row(
    ("code", "said"),
    [
        pytest.param("not-found", "File not found: /w/a", id="not-found"),
        pytest.param("no-match", "Could not find the exact text in /w/a.\nWhy.", id="no-match"),
        pytest.param(
            "ambiguous", "Found 3 occurrences of the text in /w/a. The text must be unique.\nWhy.", id="ambiguous"
        ),
        pytest.param("empty-old", "oldText must not be empty in /w/a.", id="empty-old"),
        pytest.param("same-text", "No changes made to /w/a. Why.", id="same-text"),
        pytest.param("overlap", "Edits overlap in /w/a. Why.", id="overlap"),
        pytest.param("writing-protected-file", "Why.", id="any-other"),
    ],
)
def test_a_failed_edit_reads_like_this(face, code, said):
    assert FACES[face].sentence(ToolFailure("Why.", code=code, path="/w/a", count=3)) == said


@pytest.mark.parametrize(
    ("face", "code", "said"),
    [
        pytest.param(
            "read",
            "not-found",
            "ENOENT: no such file or directory, access '/w/a'. Did you mean b?",
            id="read-not-found",
        ),
        pytest.param(
            "read",
            "is-folder",
            "EISDIR: illegal operation on a directory, read '/w/a'. Use ls to list it.",
            id="read-folder",
        ),
        pytest.param("grep", "not-found", "Path not found: /w/a", id="grep-not-found"),
        pytest.param("find", "not-a-folder", "Not a directory: /w/a", id="find-in-a-file"),
        pytest.param("ls", "not-found", "Path not found: /w/a", id="ls-not-found"),
        pytest.param("bash", "other", "Why.", id="any-other"),
    ],
)
def test_another_failure_reads_like_this(face, code, said):
    failure = ToolFailure("Why.", code=code, path="/w/a", hint=". Did you mean b?")

    assert FACES[face].sentence(failure) == said


def test_there_are_no_words_for_an_edit_that_is_made_everywhere():
    with pytest.raises(BadArguments):
        FACES["edit"].advertised({"path": "a", "edits": [{"old": "x", "new": "y", "everywhere": True}]})


BEFORE = b"one\r\ntwo\r\nthree\r\n"
ONE_TWO = [{"oldText": "one", "newText": "1"}, {"oldText": "three", "newText": "3"}]


@pytest.mark.parametrize(
    ("edit", "after", "said"),
    [
        pytest.param(
            {"edits": ONE_TWO},
            b"1\r\ntwo\r\n3\r\n",
            "Successfully replaced 2 block(s) in {w}/a.txt.",
            id="several-at-once",
        ),
        pytest.param(
            {"edits": ONE_TWO[::-1]},
            b"1\r\ntwo\r\n3\r\n",
            "Successfully replaced 2 block(s) in {w}/a.txt.",
            id="in-any-order",
        ),
        pytest.param(
            {"edits": [{"oldText": "one", "newText": "two"}, {"oldText": "two", "newText": "2"}]},
            b"two\r\n2\r\nthree\r\n",
            "Successfully replaced 2 block(s) in {w}/a.txt.",
            id="all-matched-against-the-original",
        ),
        pytest.param(
            {"edits": json.dumps(ONE_TWO)},
            b"1\r\ntwo\r\n3\r\n",
            "Successfully replaced 2 block(s) in {w}/a.txt.",
            id="edits-as-a-string-of-json",
        ),
        pytest.param(
            {"oldText": "two", "newText": "2"},
            b"one\r\n2\r\nthree\r\n",
            "Successfully replaced 1 block(s) in {w}/a.txt.",
            id="the-older-arrangement",
        ),
        pytest.param(
            {"edits": ONE_TWO, "oldText": "two", "newText": "2"},
            b"1\r\n2\r\n3\r\n",
            "Successfully replaced 3 block(s) in {w}/a.txt.",
            id="both-arrangements-at-once",
        ),
        pytest.param(
            {"edits": [{"oldText": "one\ntwo", "newText": "x"}, {"oldText": "two\nthree", "newText": "y"}]},
            BEFORE,
            "Edits overlap in {w}/a.txt.",
            id="overlap",
        ),
        pytest.param(
            {"edits": [*ONE_TWO, {"oldText": "four", "newText": "4"}]},
            BEFORE,
            "Could not find the exact text in {w}/a.txt.",
            id="all-or-none",
        ),
        pytest.param(
            {"edits": [{"oldText": "t", "newText": "T"}]},
            BEFORE,
            "Found 2 occurrences of the text in {w}/a.txt.",
            id="ambiguous",
        ),
        pytest.param(
            {"edits": [{"oldText": "one", "newText": "one"}]},
            BEFORE,
            "No changes made to {w}/a.txt.",
            id="same-text",
        ),
        pytest.param(
            {"edits": [{"oldText": "", "newText": "x"}]}, BEFORE, "oldText must not be empty in {w}/a.txt.", id="empty"
        ),
        pytest.param(
            {"oldText": "four", "newText": "4"},
            BEFORE,
            "Could not find the exact text in {w}/a.txt.",
            id="the-older-arrangement-without-a-match",
        ),
        pytest.param({"edits": []}, BEFORE, "edits", id="no-edits"),
        pytest.param({"edits": "three edits"}, BEFORE, "edits", id="edits-that-are-words"),
        pytest.param({"edits": [{"oldText": "one"}]}, BEFORE, "edits[0].newText", id="half-an-edit"),
        pytest.param(
            {"edits": [{"oldText": "one", "newText": "1", "replaceAll": True}]},
            BEFORE,
            "edits[0].replaceAll: unknown; an edit has oldText and newText.",
            id="an-edit-that-says-more",
        ),
        pytest.param({}, BEFORE, "edits", id="nothing-to-do"),
    ],
)
async def test_an_edit_does_this(tmp_path, edit, after, said):
    lay_out(tmp_path, {"a.txt": BEFORE})
    async with session(tmp_path) as engine:
        (reply,) = await engine.run([Call("edit", {"path": "a.txt", **edit})])

    assert reply.text.startswith(said.format(w=tmp_path.resolve()))
    assert reply.ok == (after != BEFORE)
    assert (tmp_path / "a.txt").read_bytes() == after


@pytest.mark.parametrize(
    ("name", "given", "status", "said"),
    [
        pytest.param("read", {"path": "a.txt"}, "done", "one\ntwo\nthree\n", id="read"),
        pytest.param(
            "read",
            {"path": "a.txt", "offset": 2, "limit": 1},
            "done",
            "two\n\n[Showing lines 2-2 of 3. Use offset=3 to continue.]",
            id="read-from-a-line",
        ),
        pytest.param("read", {"path": "a.txt", "offset": "2"}, "done", "two\nthree\n", id="read-mended"),
        pytest.param("read", {"path": "a.txt", "offset": 2.0}, "done", "two\nthree\n", id="read-whole-float"),
        pytest.param("read", {"path": "a.txt", "offset": None}, "done", "one\ntwo\nthree\n", id="read-null"),
        pytest.param(
            "read",
            {"path": "a.txt", "offset": 9},
            "done",
            "Offset 9 is beyond end of file (3 lines total)",
            id="read-past-the-end",
        ),
        pytest.param("read", {"path": "a.txt", "offset": 0}, "error", "offset: must be at least 1, not 0.", id="zero"),
        pytest.param(
            "read",
            {"path": "sub"},
            "error",
            "EISDIR: illegal operation on a directory, read '{w}/sub'. Use ls to list it.",
            id="read-folder",
        ),
        pytest.param(
            "read",
            {"path": "a.tx"},
            "error",
            "ENOENT: no such file or directory, access '{w}/a.tx'. Did you mean {w}/a.txt?",
            id="read-not-found",
        ),
        pytest.param(
            "read", {"path": ".env"}, "error", "Refusing to read env file. Reading secrets is not permitted.", id="env"
        ),
        pytest.param("write", {"path": "n/b", "content": "x"}, "done", "Successfully wrote 1 bytes to {w}/n/b", id="w"),
        pytest.param("write", {"path": "b"}, "error", "content: required, but missing.", id="write-nothing"),
        pytest.param("bash", {"command": "echo hi"}, "done", "hi", id="bash"),
        pytest.param("bash", {"command": "exit 3"}, "error", "(no output)\n\nCommand exited with code 3", id="exit"),
        pytest.param(
            "bash",
            {"command": "echo so far; sleep 30", "timeout": 0.5},
            "error",
            "so far\n\nCommand timed out after 0.5 seconds",
            id="bash-timeout-in-seconds",
        ),
        pytest.param("bash", {"command": "echo hi", "timeout": 60}, "done", "hi", id="bash-in-time"),
        pytest.param("bash", {"command": "x", "timeout": 0}, "error", "timeout: must be more than 0.", id="no-time"),
        pytest.param("grep", {"pattern": "T"}, "done", "No matches found", id="grep-case"),
        pytest.param(
            "grep",
            {"pattern": "T", "ignoreCase": True, "path": "a.txt"},
            "done",
            "a.txt:2: two\na.txt:3: three",
            id="grep-ignore-case",
        ),
        pytest.param(
            "grep",
            {"pattern": "two", "context": 1},
            "done",
            "a.txt-1- one\na.txt:2: two\na.txt-3- three",
            id="grep-context",
        ),
        pytest.param(
            "grep",
            {"pattern": "o", "limit": 1, "glob": "*.txt"},
            "done",
            "a.txt:1: one\n\n[1 more matches. Use a larger limit or a narrower pattern.]",
            id="grep-limit",
        ),
        pytest.param("grep", {"pattern": "t.", "literal": True}, "done", "No matches found", id="grep-literal"),
        pytest.param("grep", {"pattern": "x", "path": "no"}, "error", "Path not found: {w}/no", id="grep-not-found"),
        pytest.param("find", {"pattern": "**/*.txt"}, "done", "a.txt\nsub/c.txt", id="find"),
        pytest.param("find", {"pattern": "*.txt", "path": "sub"}, "done", "c.txt", id="find-below"),
        pytest.param("find", {"pattern": "*.rs"}, "done", "No files found matching pattern", id="find-nothing"),
        pytest.param("ls", {}, "done", ".env\na.txt\nsub/", id="ls"),
        pytest.param("ls", {"path": "sub", "limit": 500}, "done", "c.txt", id="ls-below"),
        pytest.param("ls", {"path": "a.txt"}, "error", "Not a directory: {w}/a.txt", id="ls-of-a-file"),
    ],
)
async def test_a_call_is_answered_like_this(tmp_path, name, given: dict[str, Any], status, said):
    lay_out(tmp_path, {"a.txt": b"one\ntwo\nthree\n", "sub/c.txt": b"", ".env": b"KEY=1\n"})
    async with session(tmp_path) as engine:
        (reply,) = await engine.run([Call(name, given)])

    assert (reply.status, reply.text) == (status, said.format(w=tmp_path.resolve()))


async def test_a_file_is_written_exactly_and_needs_no_reading_before(tmp_path):
    lay_out(tmp_path, {"a": b"old"})
    async with session(tmp_path) as engine:
        replies = await engine.run(
            [Call("write", {"path": "a", "content": "no end"}), Call("write", {"path": "b", "content": "x\r\n"})]
        )

    assert [reply.ok for reply in replies] == [True, True]
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"no end", b"x\r\n")


async def test_the_older_arrangement_belongs_to_the_mode_that_has_the_tool(tmp_path):
    from ferrule import ModeConfig

    lay_out(tmp_path, {"a": b"x"})
    mode = ModeConfig(include_tools=("Edit",))
    async with Engine(tmp_path, dialect="pi", ask=lambda question: True, mode=mode) as engine:
        shown = [definition["name"] for definition in engine.definitions()]
        replies = await engine.run(
            [
                Call("edit", {"path": "a", "oldText": "x", "newText": "y"}),
                Call("edit", {"path": "a", "edits": [{"oldText": "y", "newText": "z"}]}),
                Call("bash", {"command": "ls"}),
            ]
        )

    assert shown == ["edit"]
    assert [reply.status for reply in replies] == ["done", "done", "rejected-by-user"]
    assert (tmp_path / "a").read_bytes() == b"z"
