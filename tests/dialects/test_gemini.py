"""Gemini's faces: what a model is shown, how outcomes and failures read, and what its calls do to files."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from tests.catalog import lay_out
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
    ManyFiles,
    Matching,
    PathPage,
    Picture,
    Planned,
    Step,
)
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Face
from ferrule.dialects import COMING, load_dialect
from ferrule.tools import BUILTIN

FACES = {face.name: face for face in load_dialect("gemini").faces}
HERE = [face for face in FACES.values() if face.tool in BUILTIN]


def session(folder: Path) -> Engine:
    return Engine(folder, dialect="gemini", ask=lambda question: True)


@each_row(
    ("name", "properties", "required"),
    [
        pytest.param("read_file", "file_path start_line end_line", "file_path", id="read_file"),
        pytest.param(
            "read_many_files",
            "include exclude recursive useDefaultExcludes file_filtering_options",
            "include",
            id="read_many_files",
        ),
        pytest.param("write_file", "file_path content", "file_path content", id="write_file"),
        pytest.param(
            "replace",
            "file_path instruction old_string new_string allow_multiple",
            "file_path instruction old_string new_string",
            id="replace",
        ),
        pytest.param(
            "run_shell_command",
            "command description dir_path is_background delay_ms additional_permissions",
            "command",
            id="run_shell_command",
        ),
        pytest.param(
            "grep_search",
            "pattern dir_path include_pattern exclude_pattern names_only max_matches_per_file total_max_matches"
            " case_sensitive fixed_strings context after before no_ignore",
            "pattern",
            id="grep_search",
        ),
        pytest.param(
            "glob", "pattern dir_path case_sensitive respect_git_ignore respect_gemini_ignore", "pattern", id="glob"
        ),
        pytest.param("list_directory", "dir_path ignore file_filtering_options", "dir_path", id="list_directory"),
        pytest.param("write_todos", "todos", "todos", id="write_todos"),
        pytest.param("read_background_output", "pid lines delay_ms", "pid", id="read_background_output"),
        pytest.param("ask_user", "questions", "questions", id="ask_user"),
        pytest.param(
            "tracker_create_task",
            "title description type parentId dependencies",
            "title description type",
            id="tracker_create_task",
        ),
        pytest.param("tracker_update_task", "id title description status dependencies", "id", id="tracker_update_task"),
        pytest.param("tracker_get_task", "id", "id", id="tracker_get_task"),
        pytest.param("tracker_list_tasks", "status type parentId", "", id="tracker_list_tasks"),
        pytest.param(
            "tracker_add_dependency", "taskId dependencyId", "taskId dependencyId", id="tracker_add_dependency"
        ),
        pytest.param("tracker_visualize", "", "", id="tracker_visualize"),
        pytest.param("invoke_agent", "agent_name prompt", "agent_name prompt", id="invoke_agent"),
    ],
)
def test_parameters_are_those_of_the_family_and_every_tool_may_wait(name, properties, required):
    schema = FACES[name].schema

    assert list(schema["properties"]) == [*properties.split(), "wait_for_previous"]
    assert schema["required"] == required.split()


def test_what_is_not_here_yet_is_promised():
    assert {face.tool for face in FACES.values() if face.tool not in BUILTIN} <= COMING.keys()


@each_row("face", FACES.values())
def test_every_tool_and_every_parameter_is_described_in_whole_sentences(face: Face):
    assert face.words.endswith(".")
    assert all(about["description"].endswith((".", "?")) for about in face.schema["properties"].values())


@each_row(
    ("face", "outcome", "said"),
    [
        pytest.param("read_file", FileText("/a", 1, ("x", "y"), 2, final_newline=True), "x\ny\n", id="all-of-a-file"),
        pytest.param("read_file", FileText("/a", 1, (), 0), "", id="empty-file"),
        pytest.param(
            "read_file",
            FileText("/a", 3, ("x", "y"), 9),
            "IMPORTANT: The file content has been truncated. These are lines 3-4 of 9."
            " To read more, give start_line and end_line.\n\nx\ny",
            id="part-of-a-file",
        ),
        pytest.param(
            "read_file",
            FileText("/a", 1, ("x",)),
            "IMPORTANT: The file content has been truncated. These are lines 1-1."
            " To read more, give start_line and end_line.\n\nx",
            id="part-of-a-file-without-a-known-end",
        ),
        pytest.param(
            "read_file", FileText("/a", 20, (), 10), "The file has 10 lines; there is no line 20.", id="past-the-end"
        ),
        pytest.param(
            "read_many_files",
            ManyFiles((FileText("/a", 1, ("x",), 1, final_newline=True), FileText("/b", 1, ("y",), 9)), ()),
            "--- /a ---\n\nx\n\n\n--- /b ---\n\nIMPORTANT: The file content has been truncated. These are lines 1-1 of"
            " 9. To read more, use read_file with start_line and end_line.\n\ny\n\n--- End of content ---",
            id="many-files",
        ),
        pytest.param(
            "read_many_files",
            ManyFiles((), (("/a", "binary"),)),
            "No files matching the criteria were found or all were skipped.\n\nSkipped:\n- /a: binary\n\n"
            "--- End of content ---",
            id="no-files",
        ),
        pytest.param(
            "write_file", Created("/a", False, ()), "Successfully created and wrote to new file: /a.", id="created"
        ),
        pytest.param("write_file", Created("/a", True, ()), "Successfully overwrote file: /a.", id="overwrote"),
        pytest.param(
            "replace",
            Edited("/a", "the diff", 1, 1, places=2),
            "Successfully modified file: /a (2 replacements).\nthe diff",
            id="edited",
        ),
        pytest.param(
            "replace", Created("/a", False, ()), "Created new file: /a with provided content.", id="edited-into-being"
        ),
        pytest.param(
            "run_shell_command", CommandResult("x", "/w", "hi", 0), "Command: x\nDirectory: /w\nOutput: hi", id="ran"
        ),
        pytest.param(
            "run_shell_command",
            CommandResult("x", "/w", "", 2),
            "Command: x\nDirectory: /w\nOutput: (empty)\nExit Code: 2",
            id="ended-badly",
        ),
        pytest.param(
            "run_shell_command",
            CommandResult("x", "/w", "so far", 143, 2.0),
            "Command: x\nDirectory: /w\nOutput: so far\nError: stopped after 2 seconds\nExit Code: 143",
            id="stopped",
        ),
        pytest.param(
            "glob",
            PathPage(("/w/b", "/w/a"), 0, "/w"),
            "Found 2 file(s) within /w, newest first:\n/w/b\n/w/a",
            id="paths",
        ),
        pytest.param(
            "glob",
            PathPage(("/w/b",), 4, "/w"),
            "Found 5 file(s) within /w, newest first (4 more are not shown):\n/w/b",
            id="more-paths",
        ),
        pytest.param("glob", PathPage((), 0, "/w"), "No files found within /w", id="no-paths"),
        pytest.param(
            "grep_search",
            Hits((Hit("a", 1, "x", context=True), Hit("a", 2, "y"), Hit("b", 7, "z")), 2),
            "Found 2 matches\n---\nFile: a\nL1- x\nL2: y\n---\nFile: b\nL7: z\n---",
            id="matches",
        ),
        pytest.param(
            "grep_search",
            Hits((Hit("a", 2, "y"),), 9),
            "Found 9 matches (the first 1 are shown)\n---\nFile: a\nL2: y\n---",
            id="more-matches",
        ),
        pytest.param("grep_search", Hits((), 0), "No matches found", id="no-matches"),
        pytest.param("grep_search", Matching((("a", 0), ("b", 0)), 2), "Found 2 files with matches:\na\nb", id="names"),
        pytest.param("grep_search", Matching((("a", 0),), 1), "Found 1 file with matches:\na", id="one-name"),
        pytest.param("grep_search", Matching((), 0), "No matches found", id="no-names"),
        pytest.param(
            "list_directory",
            FolderTree("/w", (ListDirEntry("b", "folder"), ListDirEntry("a", "file")), 3),
            "Directory listing for /w:\n[DIR] b\na\n(3 more)",
            id="listing",
        ),
        pytest.param("list_directory", FolderTree("/w", (), 0), "Directory /w is empty.", id="empty-folder"),
        pytest.param(
            "write_todos",
            Planned((Step("x", "completed"), Step("y", "blocked"))),
            "Successfully updated the todo list. The current list is now:\n1. [completed] x\n2. [blocked] y",
            id="todos",
        ),
        pytest.param("write_todos", Planned(()), "Successfully cleared the todo list.", id="no-todos"),
    ],
)
def test_an_outcome_reads_like_this(face, outcome, said):
    assert FACES[face].says(outcome) == said


def test_a_picture_among_many_files_is_a_part_of_its_own():
    said = FACES["read_many_files"].says(ManyFiles((Picture("/a.png", "image/png", b"\x89PNG"),), ()))

    assert said == [
        {"type": "text", "text": "--- /a.png ---"},
        {"type": "image", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG").decode()},
        {"type": "text", "text": "--- End of content ---"},
    ]


@each_row(
    ("face", "code", "said"),
    [
        pytest.param("read_file", "not-found", "File not found: /w/a. Did you mean b?", id="read-not-found"),
        pytest.param(
            "read_file",
            "is-folder",
            "Path is a directory, not a file: /w/a. Use list_directory to list it.",
            id="read-folder",
        ),
        pytest.param("read_file", "binary", "Cannot display content of binary file: /w/a", id="read-binary"),
        pytest.param(
            "replace",
            "not-found",
            "File not found. Cannot apply edit. Use an empty old_string to create a new file.",
            id="edit-not-found",
        ),
        pytest.param(
            "replace",
            "no-match",
            "Failed to edit, 0 occurrences found for old_string in /w/a.\nWhy.",
            id="edit-no-match",
        ),
        pytest.param(
            "replace",
            "ambiguous",
            "Failed to edit, expected 1 occurrence but found 3 for old_string in /w/a."
            " Set allow_multiple to change all of them.\nWhy.",
            id="edit-ambiguous",
        ),
        pytest.param("smart_edit", "unexpected-count", "Failed to edit: Why.", id="edit-unexpected-count"),
        pytest.param(
            "replace",
            "same-text",
            "No changes to apply. The old_string and new_string are identical.",
            id="edit-same",
        ),
        pytest.param(
            "replace",
            "empty-old",
            "File already exists, cannot create: /w/a. Give the text to replace as old_string.",
            id="edit-empty",
        ),
        pytest.param(
            "list_directory", "not-found", "Error: Failed to list directory. /w/a is not there.", id="ls-not-found"
        ),
        pytest.param("list_directory", "not-a-folder", "Error: Path is not a directory: /w/a", id="ls-of-a-file"),
        pytest.param("grep_search", "not-found", "Path does not exist: /w/a", id="grep-not-found"),
        pytest.param("glob", "not-a-folder", "Path is not a directory: /w/a", id="glob-in-a-file"),
        pytest.param("run_shell_command", "other", "Why.", id="any-other"),
    ],
)
def test_a_failure_reads_like_this(face, code, said):
    failure = ToolFailure("Why.", code=code, path="/w/a", count=3, hint=". Did you mean b?")

    assert FACES[face].sentence(failure) == said


BEFORE = b"a = 1\r\nb = 1\r\n"
WHY = {"instruction": "because"}


@pytest.mark.parametrize(
    ("edit", "after", "said"),
    [
        pytest.param(
            {**WHY, "old_string": "a = 1\nb", "new_string": "a = 2\nb"},
            b"a = 2\r\nb = 1\r\n",
            "Successfully modified file: {w}/a.py (1 replacements).\n",
            id="once",
        ),
        pytest.param(
            {**WHY, "old_string": "= 1", "new_string": "= 2", "allow_multiple": True},
            b"a = 2\r\nb = 2\r\n",
            "Successfully modified file: {w}/a.py (2 replacements).\n",
            id="allow-multiple",
        ),
        pytest.param(
            {**WHY, "old_string": "= 1", "new_string": "= 2", "allow_multiple": False},
            BEFORE,
            "Failed to edit, expected 1 occurrence but found 2 for old_string in {w}/a.py.",
            id="ambiguous",
        ),
        pytest.param(
            {**WHY, "old_string": "= 1", "new_string": "= 2", "expected_replacements": 2},
            b"a = 2\r\nb = 2\r\n",
            "Successfully modified file: {w}/a.py (2 replacements).\n",
            id="older-expected-replacements",
        ),
        pytest.param(
            {"old_string": "a = 1", "new_string": "a = 2"},
            b"a = 2\r\nb = 1\r\n",
            "Successfully modified file: {w}/a.py (1 replacements).\n",
            id="older-without-instruction",
        ),
        pytest.param(
            {"old_string": "= 1", "new_string": "= 2", "expected_replacements": 3},
            BEFORE,
            "Failed to edit: The old text stands in 2 places, not in 3.",
            id="older-with-another-count",
        ),
        pytest.param(
            {"old_string": "= 1", "new_string": "= 2", "expected_replacements": 1},
            BEFORE,
            "Failed to edit, expected 1 occurrence but found 2",
            id="older-with-one",
        ),
        pytest.param(
            {**WHY, "old_string": "c = 1", "new_string": "c = 2"},
            BEFORE,
            "Failed to edit, 0 occurrences found for old_string in {w}/a.py.",
            id="no-match",
        ),
        pytest.param(
            {**WHY, "old_string": "a", "new_string": "a"},
            BEFORE,
            "No changes to apply. The old_string and new_string are identical.",
            id="same-text",
        ),
        pytest.param(
            {**WHY, "old_string": "", "new_string": "x"},
            BEFORE,
            "File already exists, cannot create: {w}/a.py. Give the text to replace as old_string.",
            id="empty-old-of-a-file",
        ),
        pytest.param({**WHY, "old_string": "a"}, BEFORE, "new_string: required, but missing.", id="half-an-edit"),
    ],
)
async def test_a_replacement_does_this(tmp_path, edit, after, said):
    lay_out(tmp_path, {"a.py": BEFORE})
    async with session(tmp_path) as engine:
        (reply,) = await engine.run([Call("replace", {"file_path": "a.py", **edit})])

    assert reply.text.startswith(said.format(w=tmp_path.resolve()))
    assert reply.ok == (after != BEFORE)
    assert (tmp_path / "a.py").read_bytes() == after


async def test_an_empty_old_string_makes_a_file(tmp_path):
    async with session(tmp_path) as engine:
        (reply,) = await engine.run(
            [Call("replace", {"file_path": "n/a", **WHY, "old_string": "", "new_string": "x\r\ny"})]
        )

    assert reply.text == f"Created new file: {tmp_path.resolve()}/n/a with provided content."
    assert (tmp_path / "n" / "a").read_bytes() == b"x\r\ny"


FILES = {"a.txt": b"one\ntwo\nthree\n", "sub/c.TXT": b"two", ".env": b"KEY=1\n", ".gitignore": b"*.log\n", "x.log": b""}
CUT = "IMPORTANT: The file content has been truncated. These are lines "
MORE = " To read more, give start_line and end_line.\n\n"


@pytest.mark.parametrize(
    ("name", "given", "status", "said"),
    [
        pytest.param("read_file", {"file_path": "a.txt"}, "done", "one\ntwo\nthree\n", id="read"),
        pytest.param(
            "read_file",
            {"file_path": "a.txt", "start_line": 2, "end_line": 2},
            "done",
            f"{CUT}2-2 of 3.{MORE}two",
            id="read-some-lines",
        ),
        pytest.param(
            "read_file", {"file_path": "a.txt", "end_line": 2}, "done", f"{CUT}1-2 of 3.{MORE}one\ntwo", id="read-to"
        ),
        pytest.param(
            "read_file",
            {"file_path": "a.txt", "start_line": "2"},
            "done",
            f"{CUT}2-3 of 3.{MORE}two\nthree\n",
            id="read-from-mended",
        ),
        pytest.param(
            "read_file",
            {"file_path": "a.txt", "start_line": 9},
            "done",
            "The file has 3 lines; there is no line 9.",
            id="read-past-the-end",
        ),
        pytest.param(
            "read_file",
            {"file_path": "a.txt", "start_line": 3, "end_line": 2},
            "error",
            "end_line: the end 2 lies before the start 3.",
            id="read-backwards",
        ),
        pytest.param(
            "read_file",
            {"file_path": "a.txt", "start_line": 0},
            "error",
            "start_line: must be at least 1, not 0.",
            id="read-line-zero",
        ),
        pytest.param(
            "read_file",
            {"file_path": "b.txt"},
            "error",
            "File not found: {w}/b.txt. Did you mean {w}/a.txt?",
            id="read-not-found",
        ),
        pytest.param(
            "read_file",
            {"file_path": "sub"},
            "error",
            "Path is a directory, not a file: {w}/sub. Use list_directory to list it.",
            id="read-folder",
        ),
        pytest.param(
            "read_file",
            {"file_path": ".env"},
            "error",
            "Refusing to read env file. Reading secrets is not permitted.",
            id="read-secret",
        ),
        pytest.param(
            "read_many_files",
            {"include": ["*.txt", "sub"]},
            "done",
            "--- {w}/a.txt ---\n\none\ntwo\nthree\n\n\n--- {w}/sub/c.TXT ---\n\ntwo\n\n--- End of content ---",
            id="read-many",
        ),
        pytest.param(
            "read_many_files",
            {"include": "a.txt"},
            "done",
            "--- {w}/a.txt ---\n\none\ntwo\nthree\n\n\n--- End of content ---",
            id="read-many-mended",
        ),
        pytest.param(
            "read_many_files",
            {"include": [".env"]},
            "done",
            "No files matching the criteria were found or all were skipped.\n\nSkipped:\n- {w}/.env: secret\n\n"
            "--- End of content ---",
            id="read-many-secret",
        ),
        pytest.param(
            "list_directory",
            {"dir_path": "."},
            "done",
            "Directory listing for {w}:\n[DIR] sub\n.env\n.gitignore\na.txt",
            id="list",
        ),
        pytest.param(
            "list_directory",
            {"dir_path": ".", "ignore": ["*.txt"], "file_filtering_options": {"respect_git_ignore": False}},
            "done",
            "Directory listing for {w}:\n[DIR] sub\n.env\n.gitignore\nx.log",
            id="list-with-options",
        ),
        pytest.param(
            "list_directory",
            {"dir_path": "a.txt"},
            "error",
            "Error: Path is not a directory: {w}/a.txt",
            id="list-a-file",
        ),
        pytest.param("list_directory", {}, "error", "dir_path: required, but missing.", id="list-nothing"),
        pytest.param(
            "glob",
            {"pattern": "**/*.txt"},
            "done",
            "Found 2 file(s) within {w}, newest first:\n{w}/sub/c.TXT\n{w}/a.txt",
            id="glob-any-case",
        ),
        pytest.param(
            "glob",
            {"pattern": "**/*.txt", "case_sensitive": True},
            "done",
            "Found 1 file(s) within {w}, newest first:\n{w}/a.txt",
            id="glob-case",
        ),
        pytest.param("glob", {"pattern": "*.log"}, "done", "No files found within {w}", id="glob-ignored"),
        pytest.param(
            "glob",
            {"pattern": "*.log", "respect_git_ignore": False},
            "done",
            "Found 1 file(s) within {w}, newest first:\n{w}/x.log",
            id="glob-not-ignored",
        ),
        pytest.param(
            "grep_search",
            {"pattern": "TWO", "include_pattern": "*.txt", "before": 1},
            "done",
            "Found 1 match\n---\nFile: a.txt\nL1- one\nL2: two\n---",
            id="grep",
        ),
        pytest.param(
            "grep_search",
            {"pattern": "two", "names_only": True},
            "done",
            "Found 2 files with matches:\na.txt\nsub/c.TXT",
            id="grep-names",
        ),
        pytest.param(
            "grep_search",
            {"pattern": "two", "exclude_pattern": "*.txt", "context": 1},
            "done",
            "Found 1 match\n---\nFile: sub/c.TXT\nL1: two\n---",
            id="grep-exclude",
        ),
        pytest.param(
            "grep_search",
            {"pattern": "o", "total_max_matches": 1},
            "done",
            "Found 3 matches (the first 1 are shown)\n---\nFile: a.txt\nL1: one\n---",
            id="grep-limit",
        ),
        pytest.param("grep_search", {"pattern": "TWO", "case_sensitive": True}, "done", "No matches found", id="case"),
        pytest.param("grep_search", {"pattern": "t.o", "fixed_strings": True}, "done", "No matches found", id="fixed"),
        pytest.param(
            "search_file_content",
            {"pattern": "zzz"},
            "done",
            "No matches found",
            id="grep-by-its-older-name",
        ),
        pytest.param(
            "run_shell_command",
            {"command": "cat c.TXT", "dir_path": "sub", "description": "look", "delay_ms": 5},
            "done",
            "Command: cat c.TXT\nDirectory: {w}/sub\nOutput: two",
            id="shell",
        ),
        pytest.param(
            "run_shell_command",
            {"command": "exit 3"},
            "done",
            "Command: exit 3\nDirectory: {w}\nOutput: (empty)\nExit Code: 3",
            id="shell-exit-code",
        ),
        pytest.param(
            "run_shell_command",
            {"command": "exit 3", "is_background": True, "delay_ms": 20_000},
            "done",
            "Command: exit 3\nDirectory: {w}\nOutput: (empty)\nExit Code: 3",
            id="shell-that-ends-before-it-is-left",
        ),
        pytest.param("list_background_processes", {}, "done", "No background processes found.", id="no-processes"),
        pytest.param(
            "read_background_output",
            {"pid": 1},
            "error",
            "There is no task with pid 1. This session has no tasks.",
            id="no-such-process",
        ),
        pytest.param(
            "run_shell_command",
            {"command": "echo hi", "is_background": False, "additional_permissions": {"network": True}},
            "done",
            "Command: echo hi\nDirectory: {w}\nOutput: hi\n",
            id="shell-foreground",
        ),
        pytest.param(
            "write_todos",
            {"todos": [{"description": "x", "status": "blocked"}]},
            "done",
            "Successfully updated the todo list. The current list is now:\n1. [blocked] x",
            id="todos",
        ),
        pytest.param(
            "write_todos",
            {"todos": [{"description": "x", "status": "someday"}]},
            "error",
            "todos[0].status",
            id="todos-with-an-unknown-status",
        ),
    ],
)
async def test_a_call_is_answered_like_this(tmp_path, name, given: dict[str, Any], status, said):
    lay_out(tmp_path, FILES)
    for age, path in enumerate(reversed(FILES)):
        os.utime(tmp_path / path, (1_000_000 - age, 1_000_000 - age))
    async with session(tmp_path) as engine:
        (reply,) = await engine.run([Call(name, given)])

    said = said.replace("{w}", str(tmp_path.resolve()))
    assert reply.status == status
    assert reply.text == said if status == "done" else reply.text.startswith(said)


@each_row("face", HERE)
def test_waiting_for_the_calls_before_is_accepted_everywhere_and_means_nothing_here(face: Face):
    samples: dict[str, Any] = {"include": ["a"], "todos": [], "questions": [], "prompt": "https://example.org"}
    required = {name: samples.get(name, "x") for name in face.schema["required"]}

    assert face.canonical({**required, "wait_for_previous": True}) == face.canonical(required)


async def test_calls_of_one_message_see_what_the_ones_before_did_without_being_asked_to_wait(tmp_path):
    async with session(tmp_path) as engine:
        replies = await engine.run(
            [
                Call("write_file", {"file_path": "a", "content": "one"}),
                Call("replace", {"file_path": "a", **WHY, "old_string": "one", "new_string": "two"}),
                Call("read_file", {"file_path": "a", "wait_for_previous": True}),
            ]
        )

    assert replies[2].text == "two"
    assert (tmp_path / "a").read_bytes() == b"two"
