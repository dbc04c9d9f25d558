"""Opencode's faces: what a model is shown, how outcomes and failures read, and what its calls do to files."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from ferrule import Call, Engine
from ferrule.core.content import (
    CommandResult,
    Created,
    Edited,
    FileText,
    FolderListing,
    Hit,
    Hits,
    Matching,
    PatchApplied,
    Patched,
    PathPage,
    Planned,
    Step,
)
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Face, LineLimit
from ferrule.dialects import COMING, load_dialect
from ferrule.tools import BUILTIN

FACES = {face.name: face for face in load_dialect("opencode").faces}


def session(folder: Path) -> Engine:
    return Engine(folder, dialect="opencode", ask=lambda question: True)


def lay_out(folder: Path, files: dict[str, bytes]) -> None:
    for age, (name, raw) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        os.utime(path, (1_000_000 - age, 1_000_000 - age))


@each_row(
    ("name", "properties", "required"),
    [
        pytest.param("read", "filePath offset limit", "filePath", id="read"),
        pytest.param("write", "content filePath", "content filePath", id="write"),
        pytest.param("edit", "filePath oldString newString replaceAll", "filePath oldString newString", id="edit"),
        pytest.param("apply_patch", "patchText", "patchText", id="apply_patch"),
        pytest.param("bash", "command timeout workdir", "command", id="bash"),
        pytest.param("glob", "pattern path", "pattern", id="glob"),
        pytest.param("grep", "pattern path include", "pattern", id="grep"),
        pytest.param("todowrite", "todos", "todos", id="todowrite"),
        pytest.param("webfetch", "url format timeout", "url format", id="webfetch"),
        pytest.param(
            "task",
            "description prompt subagent_type task_id command background",
            "description prompt subagent_type",
            id="task",
        ),
        pytest.param("skill", "name", "name", id="skill"),
        pytest.param("question", "questions", "questions", id="question"),
        pytest.param("lsp", "operation filePath line character query", "operation filePath line character", id="lsp"),
    ],
)
def test_parameters_are_those_of_the_family(name, properties, required):
    schema = FACES[name].schema

    assert list(schema["properties"]) == properties.split()
    assert schema["required"] == required.split()


def test_what_is_not_here_yet_is_promised():
    assert {face.tool for face in FACES.values() if face.tool not in BUILTIN} <= COMING.keys()


@each_row("face", FACES.values())
def test_every_tool_and_every_parameter_is_described_in_whole_sentences(face: Face):
    assert face.words.endswith(".")
    assert all(about["description"].endswith(".") for about in face.schema["properties"].values())


@each_row(
    ("face", "outcome", "said"),
    [
        pytest.param("read", FileText("/a", 9, ("x", "y"), 20), "9: x\n10: y", id="lines"),
        pytest.param("read", FileText("/a", 1, (), 0), "", id="empty-file"),
        pytest.param("read", FolderListing("/w", ("a", "b/")), "a\nb/", id="folder"),
        pytest.param("write", Created("/a", False, ()), "Wrote file successfully.", id="created"),
        pytest.param("edit", Edited("/a", "", 1, 1), "Edit applied successfully.", id="edited"),
        pytest.param("edit", Created("/a", False, ()), "Wrote file successfully.", id="edited-into-being"),
        pytest.param(
            "apply_patch",
            PatchApplied(
                (
                    Patched("add", "/w/a", None, ""),
                    Patched("update", "/w/b", "/w/c", ""),
                    Patched("delete", "/w/d", None, ""),
                )
            ),
            "Success. Updated the following files:\nA /w/a\nM /w/c\nD /w/d",
            id="patched",
        ),
        pytest.param("bash", CommandResult("x", "/w", "hi\n", 0), "hi\n", id="ran"),
        pytest.param("bash", CommandResult("x", "/w", "", 0), "(no output)", id="silent"),
        pytest.param(
            "bash", CommandResult("x", "/w", "no", 2), "no\n\n<metadata>\nExit code: 2\n</metadata>", id="ended-badly"
        ),
        pytest.param(
            "bash",
            CommandResult("x", "/w", "so far", 143, 1.5),
            "so far\n\n<metadata>\nCommand was stopped after 1500 ms\nExit code: 143\n</metadata>",
            id="stopped",
        ),
        pytest.param("glob", PathPage(("/w/b", "/w/a"), 0), "/w/b\n/w/a", id="paths"),
        pytest.param(
            "glob",
            PathPage(("/w/b",), 3),
            "/w/b\n(Results are truncated: 3 more. Use a narrower pattern.)",
            id="more-paths",
        ),
        pytest.param("glob", PathPage((), 0), "No files found", id="no-paths"),
        pytest.param(
            "grep",
            Hits((Hit("a", 2, "y"), Hit("a", 4, "z"), Hit("b", 7, "z")), 3),
            "Found 3 matches\na:\n  Line 2: y\n  Line 4: z\n\nb:\n  Line 7: z",
            id="matches",
        ),
        pytest.param(
            "grep",
            Hits((Hit("a", 2, "y"),), 3),
            "Found 3 matches\na:\n  Line 2: y\n\n"
            "(Results are truncated: 2 more matches. Use a narrower path or pattern.)",
            id="more-matches",
        ),
        pytest.param("grep", Hits((), 0), "No files found", id="no-matches"),
        pytest.param("grep", Matching((("a", 0), ("b", 0)), 2), "a\nb", id="files-for-a-call-in-other-words"),
        pytest.param(
            "todowrite",
            Planned((Step("x", "completed", "low"), Step("y", "pending", "high"))),
            "[completed] x (low)\n[pending] y (high)",
            id="todos",
        ),
        pytest.param("todowrite", Planned(()), "(nothing is planned)", id="no-todos"),
    ],
)
def test_an_outcome_reads_like_this(face, outcome, said):
    assert FACES[face].says(outcome) == said


def test_a_command_that_ends_badly_is_no_failure_and_a_long_output_keeps_its_last_lines():
    assert FACES["bash"].failed(CommandResult("x", "/w", "", 1)) is False
    assert FACES["bash"].bound == LineLimit(2_000, 51_200, last=True)


@each_row(
    ("face", "code", "said"),
    [
        pytest.param("read", "not-found", "File not found: /w/a. Did you mean b?", id="read-not-found"),
        pytest.param("read", "binary", "Cannot read binary file: /w/a", id="read-binary"),
        pytest.param(
            "write",
            "not-read",
            "You must read file /w/a before overwriting it. Use the read tool first. Did you mean b?",
            id="write-not-read",
        ),
        pytest.param(
            "edit",
            "stale",
            "File /w/a has been modified since it was last read. Read it again before modifying it.",
            id="edit-stale",
        ),
        pytest.param("edit", "not-found", "File /w/a not found", id="edit-not-found"),
        pytest.param("edit", "no-match", "oldString not found in content\nWhy.", id="edit-no-match"),
        pytest.param(
            "edit",
            "ambiguous",
            "Found multiple matches for oldString. Provide more surrounding lines in oldString to identify the correct"
            " match.\nWhy.",
            id="edit-ambiguous",
        ),
        pytest.param(
            "edit", "same-text", "No changes to apply: oldString and newString are identical.", id="edit-same"
        ),
        pytest.param(
            "edit",
            "empty-old",
            "oldString is empty, but the file exists. Use write to replace all of it.",
            id="edit-empty",
        ),
        pytest.param("apply_patch", "no-match", "apply_patch verification failed: Why.", id="patch-no-match"),
        pytest.param("apply_patch", "bad-arguments", "Why.", id="patch-malformed"),
        pytest.param("grep", "not-found", "No such file or directory: '/w/a'", id="grep-not-found"),
        pytest.param("glob", "not-a-folder", "Not a directory: '/w/a'", id="glob-in-a-file"),
        pytest.param("bash", "other", "Why.", id="any-other"),
    ],
)
def test_a_failure_reads_like_this(face, code, said):
    failure = ToolFailure("Why.", code=code, path="/w/a", count=3, hint=". Did you mean b?")

    assert FACES[face].sentence(failure) == said


BEFORE = b"a = 1\nb = 1\n"


@each_row(
    ("edit", "after", "said"),
    [
        pytest.param(
            {"oldString": "a = 1", "newString": "a = 2"}, b"a = 2\nb = 1\n", "Edit applied successfully.", id="once"
        ),
        pytest.param(
            {"oldString": "= 1", "newString": "= 2", "replaceAll": True},
            b"a = 2\nb = 2\n",
            "Edit applied successfully.",
            id="everywhere",
        ),
        pytest.param(
            {"oldString": "= 1", "newString": "= 2"}, BEFORE, "Found multiple matches for oldString.", id="ambiguous"
        ),
        pytest.param({"oldString": "c", "newString": "d"}, BEFORE, "oldString not found in content\n", id="no-match"),
        pytest.param(
            {"oldString": "a", "newString": "a"},
            BEFORE,
            "No changes to apply: oldString and newString are identical.",
            id="same-text",
        ),
        pytest.param({"oldString": "", "newString": "a"}, BEFORE, "oldString is empty, but the file", id="empty"),
        pytest.param({"oldString": "a"}, BEFORE, "newString: required, but missing.", id="half-an-edit"),
    ],
)
@each_row("path", ["filePath", "path"])
async def test_an_edit_does_this(tmp_path, path, edit, after, said):
    lay_out(tmp_path, {"a.py": BEFORE})
    async with session(tmp_path) as engine:
        seen, reply = await engine.run([Call("read", {path: "a.py"}), Call("edit", {path: "a.py", **edit})])

    assert seen.text == "1: a = 1\n2: b = 1"
    assert reply.text.startswith(said)
    assert reply.ok == (after != BEFORE)
    assert (tmp_path / "a.py").read_bytes() == after


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param("edit", {"filePath": "a", "oldString": "x", "newString": "y"}, id="edit"),
        pytest.param("write", {"filePath": "a", "content": "y"}, id="write"),
        pytest.param("write", {"path": "a", "content": "y"}, id="write-v2"),
        pytest.param("Write", {"file_path": "a", "content": "y"}, id="write-in-claude-s-words"),
        pytest.param("edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}, id="edit-in-pi-s-words"),
        pytest.param(
            "replace",
            {"file_path": "a", "instruction": "", "old_string": "x", "new_string": "y"},
            id="edit-in-gemini-s-words",
        ),
    ],
)
async def test_a_file_must_have_been_read_as_it_is_whatever_words_the_call_is_in(tmp_path, name, given):
    lay_out(tmp_path, {"a": b"x"})
    async with session(tmp_path) as engine:
        (unread,) = await engine.run([Call(name, given)])
        await engine.run([Call("read", {"filePath": "a"})])
        (tmp_path / "a").write_bytes(b"x ")
        (stale,) = await engine.run([Call(name, given)])
        await engine.run([Call("read", {"filePath": "a"})])
        (done,) = await engine.run([Call(name, given)])

    assert [one.error and one.error.error_code for one in (unread, stale, done)] == ["not-read", "stale", None]
    assert (tmp_path / "a").read_bytes().startswith(b"y")


async def test_what_is_not_there_needs_no_reading(tmp_path):
    async with session(tmp_path) as engine:
        replies = await engine.run(
            [
                Call("write", {"filePath": "a", "content": "x"}),
                Call("edit", {"filePath": "b", "oldString": "", "newString": "y"}),
                Call("edit", {"filePath": "a", "oldString": "x", "newString": "z"}),
            ]
        )

    assert [reply.text for reply in replies] == ["Wrote file successfully."] * 2 + ["Edit applied successfully."]
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"z", b"y")


PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** Add File: n/b\n+x\n*** End Patch\n"
FILES = {"a.txt": b"one\ntwo\nthree\n", "sub/c.txt": b"two", ".env": b"KEY=1\n"}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"patchText": PATCH}, id="its-own-words"),
        pytest.param({"input": PATCH}, id="codex-s-words"),
        pytest.param(PATCH, id="free-text"),
    ],
)
async def test_a_patch_changes_all_files(tmp_path, given):
    lay_out(tmp_path, FILES)
    async with session(tmp_path) as engine:
        (reply,) = await engine.run([Call("apply_patch", given)])

    where = tmp_path.resolve()
    assert reply.text == f"Success. Updated the following files:\nM {where}/a.txt\nA {where}/n/b"
    assert (tmp_path / "a.txt").read_bytes() == b"one\n2\nthree\n"
    assert (tmp_path / "n" / "b").read_bytes() == b"x\n"


@pytest.mark.parametrize(
    ("name", "given", "status", "said"),
    [
        pytest.param("read", {"filePath": "a.txt"}, "done", "1: one\n2: two\n3: three", id="read"),
        pytest.param("read", {"filePath": "a.txt", "offset": 2, "limit": 1}, "done", "2: two", id="read-from-a-line"),
        pytest.param("read", {"path": "a.txt", "offset": 2, "limit": 1}, "done", "2: two", id="read-v2"),
        pytest.param("read", {"filePath": "."}, "done", ".env\na.txt\nsub/", id="read-folder"),
        pytest.param(
            "read", {"filePath": "b.txt"}, "error", "File not found: {w}/b.txt. Did you mean {w}/a.txt?", id="read-none"
        ),
        pytest.param("read", {"filePath": ".env"}, "error", "Refusing to read env file. ", id="read-secret"),
        pytest.param("read", {"path": ".env"}, "error", "Refusing to read env file. ", id="read-secret-v2"),
        pytest.param("bash", {"command": "echo hi"}, "done", "hi\n", id="bash"),
        pytest.param(
            "bash", {"command": "pwd", "workdir": "sub", "timeout": 60_000}, "done", "{w}/sub\n", id="bash-in-a-folder"
        ),
        pytest.param(
            "bash",
            {"command": "sleep 30", "timeout": 300},
            "done",
            "(no output)\n\n<metadata>\nCommand was stopped after 300 ms\nExit code: 143\n</metadata>",
            id="bash-timeout-in-milliseconds",
        ),
        pytest.param("bash", {"command": "x", "timeout": 0}, "error", "timeout: must be more than 0.", id="no-time"),
        pytest.param("glob", {"pattern": "**/*.txt"}, "done", "{w}/a.txt\n{w}/sub/c.txt", id="glob-newest-first"),
        pytest.param("glob", {"pattern": "*.rs"}, "done", "No files found", id="glob-nothing"),
        pytest.param(
            "glob", {"pattern": "*", "path": "a.txt"}, "error", "Not a directory: '{w}/a.txt'", id="glob-in-a-file"
        ),
        pytest.param(
            "grep",
            {"pattern": "tw[o]", "include": "*.txt"},
            "done",
            "Found 2 matches\na.txt:\n  Line 2: two\n\nsub/c.txt:\n  Line 1: two",
            id="grep",
        ),
        pytest.param("grep", {"pattern": "TWO"}, "done", "No files found", id="grep-case"),
        pytest.param("grep", {"pattern": "x", "path": "no"}, "error", "No such file or directory: '{w}/no'", id="no"),
        pytest.param(
            "apply_patch",
            {"patchText": PATCH.replace("-two", "-four")},
            "error",
            "apply_patch verification failed: a.txt: ",
            id="patch-no-match",
        ),
        pytest.param("apply_patch", {"patchText": "nonsense"}, "error", "patchText: ", id="patch-malformed"),
        pytest.param(
            "todowrite",
            {"todos": [{"content": "x", "status": "in_progress", "priority": "high"}]},
            "done",
            "[in_progress] x (high)",
            id="todos",
        ),
        pytest.param(
            "todowrite",
            {"todos": [{"content": "x", "status": "pending", "priority": "low", "id": "1"}]},
            "done",
            "[pending] x (low)",
            id="todos-with-ids",
        ),
        pytest.param(
            "todowrite",
            {"todos": [{"content": "x", "status": "blocked", "priority": "high"}]},
            "error",
            "todos[0].status",
            id="todos-with-an-unknown-status",
        ),
        pytest.param(
            "webfetch",
            {"url": "ftp://example.org", "format": "text"},
            "error",
            "'ftp://example.org' is not a page of the web: only https and http are fetched, not ftp.",
            id="webfetch-no-page",
        ),
    ],
)
async def test_a_call_is_answered_like_this(tmp_path, name, given: dict[str, Any], status, said):
    lay_out(tmp_path, FILES)
    async with session(tmp_path) as engine:
        (reply,) = await engine.run([Call(name, given)])

    said = said.replace("{w}", str(tmp_path.resolve()))
    assert reply.status == status
    assert reply.text == said if status == "done" else reply.text.startswith(said)
