"""Claude Code's faces: the seed's schemas, what its models read, and that files are read before they are written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.catalog import silent
from tests.rows import each_row

from ferrule import Call, Engine, claude_code_definition, is_claude_code_tool
from ferrule.core.content import (
    CellEdited,
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
    Planned,
)
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Face, Middle
from ferrule.dialects import COMING, load_dialect
from ferrule.tools import BUILTIN

CLAUDE = load_dialect("claude")
FACES = {face.name: face for face in CLAUDE.faces}
SEED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "claude_schemas.json").read_text(encoding="utf-8")
)
OLDER = {"MultiEdit", "LS", "TodoWrite", "BashOutput", "Agent"}
"""Names that other versions have; models call them too."""
LATER = {"ToolSearch"}
"""What Claude Code has since, and the seed has not."""
OF_SERVERS = {"ListMcpResourcesTool", "ReadMcpResourceTool"}
"""Offered only where a server has something to be read."""


@each_row("name", sorted(SEED))
def test_the_schema_is_the_seed_s(name):
    assert silent(FACES[name].schema) == SEED[name]
    assert list(FACES[name].schema["properties"]) == list(SEED[name]["properties"])


def test_all_tools_of_the_seed_have_faces_and_those_that_are_here_are_shown():
    assert len(SEED) == 21
    assert set(FACES) == set(SEED) | OLDER | LATER | OF_SERVERS
    assert {name for name, face in FACES.items() if not face.shown} == OLDER
    assert {name for name in SEED if FACES[name].tool in BUILTIN} == {
        *("Read", "Write", "Edit", "Glob", "Grep", "Bash", "TaskOutput", "TaskStop", "NotebookEdit"),
        *("Skill", "Task", "AskUserQuestion", "TaskCreate", "TaskGet", "TaskUpdate", "TaskList"),
        *("EnterPlanMode", "ExitPlanMode", "WebFetch", "WebSearch", "LSP"),
    }
    assert {FACES[name].tool for name in SEED} - set(BUILTIN) <= set(COMING)


def undescribed(schema: Any, where: str = "") -> list[str]:
    """Parameters without a description, at any depth."""
    if not isinstance(schema, dict):
        return []
    inner = [*schema.get("properties", {}).items(), *([("[]", schema["items"])] if "items" in schema else [])]
    bare = [f"{where}.{name}" for name, about in inner if name != "[]" and not about.get("description")]
    return bare + [one for name, about in inner for one in undescribed(about, f"{where}.{name}")]


@each_row("face", FACES.values())
def test_every_tool_and_every_parameter_is_described_in_whole_sentences(face: Face):
    assert face.words.endswith(".")
    assert undescribed(face.schema, face.name) == []


@each_row(
    ("face", "outcome", "said"),
    [
        pytest.param("Read", FileText("/a", 1, ("x", "", "z")), "     1→x\n     2→\n     3→z", id="read"),
        pytest.param("Read", FileText("/a", 99_999, ("x",)), " 99999→x", id="read-further-down"),
        pytest.param("Read", FileText("/a", 1, (), 0), "The file exists, but it is empty.", id="read-empty"),
        pytest.param(
            "Read",
            FileText("/a", 9, (), 3),
            "The file has only 3 lines; line 9 is past its end.",
            id="read-past-the-end",
        ),
        pytest.param("Write", Created("/a", False, ()), "File created successfully at: /a", id="created"),
        pytest.param("Write", Created("/a", True, ()), "File updated successfully at: /a", id="overwritten"),
        pytest.param("Edit", Created("/a", False, ()), "File created successfully at: /a", id="created-by-an-edit"),
        pytest.param(
            "Edit", Edited("/a", "-x\n+y\n", 1, 1), "The file /a has been updated.\n```diff\n-x\n+y\n```", id="edited"
        ),
        pytest.param(
            "MultiEdit", Edited("/a", "+```\n", 1, 1), "The file /a has been updated.\n````diff\n+```\n````", id="fence"
        ),
        pytest.param(
            "NotebookEdit", CellEdited("/a", "c", "replace", "x = 1", ""), "Updated cell c with x = 1", id="cell"
        ),
        pytest.param("NotebookEdit", CellEdited("/a", "c", "insert", "x", ""), "Inserted cell c with x", id="new-cell"),
        pytest.param("NotebookEdit", CellEdited("/a", "c", "delete", "x", ""), "Deleted cell c", id="no-cell"),
        pytest.param("Glob", PathPage((), 0), "No files found", id="no-files"),
        pytest.param("Glob", PathPage(("/b", "/a"), 0), "/b\n/a", id="files"),
        pytest.param(
            "Glob",
            PathPage(("/b",), 7),
            "/b\n(Results are truncated: 7 more. Use a narrower path or pattern.)",
            id="more-files",
        ),
        pytest.param("Grep", Matching((), 0), "No files found", id="no-matching-files"),
        pytest.param("Grep", Matching((), 4), "No entries at this offset", id="files-past-the-end"),
        pytest.param("Grep", Matching((("a", 0),), 1), "Found 1 file\na", id="one-matching-file"),
        pytest.param("Grep", Matching((("a", 0), ("b", 0)), 5), "Found 5 files\na\nb", id="matching-files"),
        pytest.param(
            "Grep",
            Matching((("a", 2), ("b", 1)), 2, 3),
            "a:2\nb:1\n\nFound 3 matching lines in 2 files.",
            id="counts-and-their-total",
        ),
        pytest.param(
            "Grep", Matching((("a", 3),), 1, 3, parts=True), "a:3\n\nFound 3 matches in 1 file.", id="matches"
        ),
        pytest.param(
            "Grep", Matching((("a", 1),), 1, 1, parts=True), "a:1\n\nFound 1 match in 1 file.", id="one-match"
        ),
        pytest.param("Grep", Matching((("a", 1),), 1, 1), "a:1\n\nFound 1 matching line in 1 file.", id="one-count"),
        pytest.param("Grep", Hits((), 0), "No matches found", id="no-lines"),
        pytest.param("Grep", Hits((), 4), "No entries at this offset", id="lines-past-the-end"),
        pytest.param("Grep", Hits((Hit("a", 2, "x"), Hit("b", 1, "y")), 2), "a:2:x\nb:1:y", id="lines"),
        pytest.param(
            "Grep",
            Hits((Hit("a", 1, "-", context=True), Hit("a", 2, "x"), Hit("b", 1, "y")), 2),
            "a-1--\na:2:x\n--\nb:1:y",
            id="lines-with-others-around",
        ),
        pytest.param("Bash", CommandResult("ls", "/w", "a\nb\n", 0), "a\nb", id="ran"),
        pytest.param("Bash", CommandResult("true", "/w", "\n", 0), "(The command printed nothing.)", id="ran-silently"),
        pytest.param("Bash", CommandResult("false", "/w", "", 1), "Exit code 1", id="ran-badly"),
        pytest.param("Bash", CommandResult("x", "/w", "why\n", 127), "Exit code 127\nwhy", id="ran-badly-and-said-why"),
        pytest.param(
            "Bash",
            CommandResult("x", "/w", "so far\n", 143, 0.5),
            "so far\n\nCommand timed out after 0.5s",
            id="timed-out",
        ),
        pytest.param(
            "Bash", CommandResult("x", "/w", "", 143, 120.0), "Command timed out after 120s", id="timed-out-silently"
        ),
        pytest.param(
            "LS", FolderTree("/w", (ListDirEntry("a", "folder"), ListDirEntry("b", "file")), 0), "a/\nb", id="listed"
        ),
        pytest.param("TodoWrite", Planned(()), "The list was updated. Go on with the tasks on it.", id="planned"),
    ],
)
def test_outcomes_are_said_as_its_models_know_them(face, outcome, said):
    assert FACES[face].says(outcome) == said


@each_row(
    ("command", "exit_code", "failed"),
    [
        pytest.param("make", 0, False, id="success"),
        pytest.param("make", 1, True, id="failure"),
        pytest.param("grep x a", 1, False, id="grep-finds-nothing"),
        pytest.param("grep x a", 2, True, id="grep-fails"),
        *(
            pytest.param(command, 1, False, id=command.replace(" ", "-"))
            for command in (
                *("rg x", "egrep x a", "fgrep x a", "find . -name x", "diff a b", "test -f a", "[ -f a ]"),
                *("git diff --exit-code", "git grep x", "LC_ALL=C grep x a", "cat a | grep x", "cd sub && grep x a"),
                *("make; grep x a", "make || grep x a", "grep 'a;b|c' a 2>&1", "grep x a;", "cd a &&\ngrep x b"),
            )
        ),
        *(
            pytest.param(command, 1, True, id=command.replace(" ", "-"))
            for command in (
                *("git status", "grep x a; false", "grep x a | false", "make && grep x a", "echo grep", "grepx a"),
                *('python -c "x; test y"', "(grep x a)", "echo $(grep x a)", "for a in b; do grep x a; done", "&&", ""),
                *("grep x a & false", "! grep x a", "git", "sudo grep x a"),
            )
        ),
    ],
)
def test_an_exit_code_of_one_is_an_answer_of_some_programs(command, exit_code, failed):
    assert FACES["Bash"].failed(CommandResult(command, "/w", "", exit_code)) is failed


def test_a_command_that_was_stopped_has_failed():
    assert FACES["Bash"].failed(CommandResult("grep x", "/w", "", 1, 2.0)) is True


@given(st.text("grep x;|&\n'\"\\()$", max_size=30))
def test_any_command_line_is_judged(command):
    assert FACES["Bash"].failed(CommandResult(command, "/w", "", 1)) in (True, False)


@each_row(
    ("face", "failure", "said"),
    [
        pytest.param("Read", ToolFailure("", code="not-found", path="/a"), "File does not exist: /a", id="missing"),
        pytest.param(
            "Read",
            ToolFailure("", code="not-found", path="/a", hint=". Did you mean /b?"),
            "File does not exist: /a. Did you mean /b?",
            id="missing-with-a-hint",
        ),
        pytest.param(
            "Read",
            ToolFailure("", code="is-folder", path="/a"),
            "EISDIR: illegal operation on a directory, read '/a'. Use Glob or Bash to list it.",
            id="folder",
        ),
        pytest.param(
            "Read",
            ToolFailure("It has 9 bytes.", code="too-large", path="/a"),
            "File content exceeds the maximum allowed size. It has 9 bytes.",
            id="too-large",
        ),
        pytest.param(
            "Read",
            ToolFailure("", code="binary", path="/a", count=9),
            "/a is binary (9 bytes) and cannot be shown. Use Bash to look into it.",
            id="binary",
        ),
        *(
            pytest.param(
                face,
                ToolFailure("", code="not-read", path="/a"),
                "File has not been read yet. Read it first before writing to it.",
                id=f"{face}-unread",
            )
            for face in ("Write", "Edit", "MultiEdit", "NotebookEdit")
        ),
        *(
            pytest.param(
                face,
                ToolFailure("", code="stale", path="/a"),
                "File has been modified since it was read, by the user or a program."
                " Read it again before writing to it.",
                id=f"{face}-stale",
            )
            for face in ("Write", "Edit", "MultiEdit", "NotebookEdit")
        ),
        pytest.param(
            "Edit", ToolFailure("", code="not-found", path="/a"), "File does not exist: /a", id="edit-missing"
        ),
        pytest.param(
            "Edit",
            ToolFailure("The closest is {x}.", code="no-match", path="/a"),
            "String to replace not found in file.\nThe closest is {x}.",
            id="no-match",
        ),
        pytest.param(
            "Edit",
            ToolFailure("Lines 1, 2 and 3.", code="ambiguous", path="/a", count=3),
            "Found 3 matches of the string to replace, but replace_all is false."
            " Set replace_all, or add context until there is one.\nLines 1, 2 and 3.",
            id="ambiguous",
        ),
        pytest.param(
            "Edit",
            ToolFailure("", code="same-text"),
            "No changes to make: old_string and new_string are exactly the same.",
            id="same",
        ),
        pytest.param(
            "Edit",
            ToolFailure("", code="empty-old"),
            "old_string is empty, but the file exists. Use Write to replace all of it.",
            id="empty",
        ),
        pytest.param(
            "Edit",
            ToolFailure("", code="binary", path="/a"),
            "/a is binary and cannot be edited as text.",
            id="edit-binary",
        ),
        pytest.param(
            "Grep", ToolFailure("", code="not-found", path="/a"), "Path does not exist: /a", id="grep-missing"
        ),
        pytest.param(
            "Glob", ToolFailure("", code="not-a-folder", path="/a"), "Path is not a directory: /a", id="no-folder"
        ),
        pytest.param("Bash", ToolFailure("As it is {x}.", code="other"), "As it is {x}.", id="any-other"),
    ],
)
def test_failures_are_said_in_its_sentences(face, failure, said):
    assert FACES[face].sentence(failure) == said


SEARCH = {"case_sensitive": True, "limit": 0, "mode": "files", "per_file": 0, "line_chars": 500, "by_time": True}


@each_row(
    ("face", "values", "heard"),
    [
        pytest.param(
            "Read", {"file_path": "/a", "offset": 3, "limit": 5}, {"path": "/a", "offset": 3, "limit": 5}, id="read"
        ),
        pytest.param(
            "Read", {"file_path": "/a", "offset": 0}, {"path": "/a", "offset": 1}, id="from-0-is-from-the-start"
        ),
        pytest.param(
            "Edit",
            {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": True},
            {"path": "/a", "old": "x", "new": "y", "everywhere": True},
            id="edit",
        ),
        pytest.param(
            "MultiEdit",
            {"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y"}]},
            {"path": "/a", "edits": [{"old": "x", "new": "y"}]},
            id="several-edits",
        ),
        pytest.param(
            "Bash",
            {"command": "ls", "timeout": 1500, "description": "List"},
            {"command": "ls", "seconds": 1.5, "description": "List"},
            id="bash",
        ),
        pytest.param(
            "Bash",
            {"command": "ls", "run_in_background": True, "dangerouslyDisableSandbox": True},
            {"command": "ls", "background": True, "outside": True},
            id="bash-left-running-outside",
        ),
        pytest.param(
            "TaskOutput",
            {"task_id": "b1", "block": False, "timeout": 1500},
            {"task_id": "b1", "block": False, "seconds": 1.5},
            id="task",
        ),
        pytest.param(
            "BashOutput",
            {"bash_id": "b1", "filter": "err"},
            {"task_id": "b1", "block": False, "news": True, "only": "err"},
            id="task-by-its-older-name",
        ),
        pytest.param("BashOutput", {"task_id": "b1"}, {"task_id": "b1"}, id="task-by-itself"),
        pytest.param("TaskStop", {"task_id": "b1"}, {"task_id": "b1"}, id="stop"),
        pytest.param("TaskStop", {"shell_id": "b1"}, {"task_id": "b1"}, id="stop-by-its-older-name"),
        pytest.param("TaskStop", {"shell_id": "b1", "task_id": "b1"}, {"task_id": "b1"}, id="stop-by-both"),
        pytest.param(
            "Grep",
            {"pattern": "x", "-i": True, "-n": False},
            {"pattern": "x", "case_sensitive": False, "numbers": False},
            id="case",
        ),
        pytest.param(
            "Grep", {"pattern": "x", "-C": 2, "-A": 5}, {"pattern": "x", "before": 2, "after": 5}, id="context"
        ),
        pytest.param(
            "Grep",
            {"pattern": "x", "output_mode": "content", "type": "py", "head_limit": 3, "offset": 2, "multiline": True},
            {"pattern": "x", "mode": "lines", "kind": "py", "limit": 3, "offset": 2, "multiline": True},
            id="lines",
        ),
        pytest.param(
            "TodoWrite",
            {"todos": [{"content": "x", "status": "pending", "activeForm": "y"}]},
            {"steps": [{"text": "x", "status": "pending"}]},
            id="tasks",
        ),
    ],
)
def test_arguments_become_canonical(face, values, heard):
    assert FACES[face].heard(values) == heard


def test_a_search_has_the_usual_settings_unless_told_otherwise():
    assert FACES["Grep"].canonical({"pattern": "x"}) == {"pattern": "x", **SEARCH}


@each_row(
    ("face", "name"),
    [pytest.param(face, name, id=f"{face.name}-{name}") for face in CLAUDE.faces for name in sorted(face.fill)],
)
def test_no_call_can_change_what_the_family_leaves_to_the_engine(face: Face, name):
    assert face.completed({name: 10**9})[name] == face.fill[name]
    assert name not in {face.params.get(shown, shown) for shown in face.schema["properties"]}


def test_a_command_s_output_loses_its_middle():
    assert FACES["Bash"].bound == Middle(30_000)
    assert FACES["Bash"].fill["head_chars"] >= 60_000
    assert FACES["Bash"].fill["tail_chars"] >= 60_000


@pytest.fixture
async def session(tmp_path):
    async with Engine(tmp_path, dialect="claude", ask=lambda question: question.kind == "call") as engine:
        yield engine


@pytest.fixture
def root(tmp_path):
    """The real folder of the session, with a few files."""
    real = Path(os.path.realpath(tmp_path))
    (real / "a.py").write_bytes(b"import os\n\nx = 1\ny = 1\n")
    (real / "sub").mkdir()
    (real / "sub" / "b.py").write_bytes(b"x = 2\r\n")
    (real / "empty.txt").write_bytes(b"")
    (real / "raw.bin").write_bytes(bytes(range(256)))
    for age, name in enumerate(["empty.txt", "raw.bin", "sub/b.py", "a.py"]):
        os.utime(real / name, (1_700_000_000 + age, 1_700_000_000 + age))
    return real


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        pytest.param(
            "Read", {"file_path": "a.py"}, "     1→import os\n     2→\n     3→x = 1\n     4→y = 1", id="read-relative"
        ),
        pytest.param("Read", {"file_path": "{root}/a.py", "offset": 3, "limit": 1}, "     3→x = 1", id="read-a-part"),
        pytest.param("Read", {"file_path": "a.py", "offset": "4"}, "     4→y = 1", id="read-with-a-number-as-text"),
        pytest.param("Read", {"file_path": "empty.txt"}, "The file exists, but it is empty.", id="read-nothing"),
        pytest.param(
            "Read",
            {"file_path": "a.py", "offset": 9},
            "The file has only 4 lines; line 9 is past its end.",
            id="read-past-the-end",
        ),
        pytest.param(
            "Write",
            {"file_path": "new/c.txt", "content": "x"},
            "File created successfully at: {root}/new/c.txt",
            id="write",
        ),
        pytest.param(
            "Edit",
            {"file_path": "c.txt", "old_string": "", "new_string": "x"},
            "File created successfully at: {root}/c.txt",
            id="edit-that-creates",
        ),
        pytest.param("Glob", {"pattern": "**/*.py"}, "{root}/a.py\n{root}/sub/b.py", id="glob-newest-first"),
        pytest.param("Glob", {"pattern": "*.py", "path": "sub"}, "{root}/sub/b.py", id="glob-below"),
        pytest.param("Glob", {"pattern": "*.rs"}, "No files found", id="glob-nothing"),
        pytest.param("Grep", {"pattern": "x ="}, "Found 2 files\na.py\nsub/b.py", id="grep-newest-first"),
        pytest.param("Grep", {"pattern": "X ="}, "No files found", id="grep-minds-case"),
        pytest.param(
            "Grep", {"pattern": "X =", "-i": True, "path": "sub"}, "Found 1 file\nsub/b.py", id="grep-any-case"
        ),
        pytest.param(
            "Grep", {"pattern": "x =", "output_mode": "content"}, "a.py:3:x = 1\nsub/b.py:1:x = 2", id="grep-lines"
        ),
        pytest.param(
            "Grep",
            {"pattern": "x =", "output_mode": "content", "-n": False, "glob": "a.*"},
            "a.py:x = 1",
            id="grep-without-numbers",
        ),
        pytest.param(
            "Grep", {"pattern": "y", "output_mode": "content", "-B": 1}, "a.py-3-x = 1\na.py:4:y = 1", id="grep-context"
        ),
        pytest.param(
            "Grep",
            {"pattern": "= .", "output_mode": "content", "head_limit": 1, "offset": 1},
            "a.py:4:y = 1",
            id="grep-page",
        ),
        pytest.param(
            "Grep",
            {"pattern": "= .", "output_mode": "content", "offset": 9},
            "No entries at this offset",
            id="grep-past-the-end",
        ),
        pytest.param(
            "Grep", {"pattern": "= .", "offset": 9}, "No entries at this offset", id="grep-files-past-the-end"
        ),
        pytest.param(
            "Grep",
            {"pattern": "= .", "output_mode": "count"},
            "a.py:2\nsub/b.py:1\n\nFound 3 matching lines in 2 files.",
            id="grep-count",
        ),
        pytest.param("Grep", {"pattern": "os.*x =", "multiline": True}, "Found 1 file\na.py", id="grep-across-lines"),
        pytest.param(
            "Grep",
            {"pattern": "os.*x =", "multiline": True, "output_mode": "content"},
            "a.py:1:import os\na.py:2:\na.py:3:x = 1",
            id="grep-across-lines-gives-all-of-them",
        ),
        pytest.param("Grep", {"pattern": "os.*x ="}, "No files found", id="grep-within-lines"),
        pytest.param("Grep", {"pattern": "nowhere", "output_mode": "content"}, "No matches found", id="grep-no-lines"),
        pytest.param("Bash", {"command": "echo hi; echo oh >&2"}, "hi\noh", id="bash-both-outputs"),
        pytest.param("Bash", {"command": "pwd", "description": "Say where"}, "{root}", id="bash-in-the-workspace"),
        pytest.param("Bash", {"command": "grep nowhere a.py"}, "Exit code 1", id="bash-an-answer"),
        pytest.param("Bash", {"command": "true"}, "(The command printed nothing.)", id="bash-silent"),
        pytest.param("LS", {"path": ".", "ignore": ["*.bin"]}, "sub/\na.py\nempty.txt", id="ls"),
    ],
)
async def test_calls_that_fit_are_answered(session, root, name, values, said):
    filled = {key: value.format(root=root) if key == "file_path" else value for key, value in values.items()}
    reply = await session.call(name, **filled)

    assert (reply.status, reply.text) == ("done", said.replace("{root}", str(root)))


@pytest.mark.parametrize(
    ("name", "values", "start"),
    [
        pytest.param("Read", {}, "file_path: required, but missing.", id="read-what"),
        pytest.param(
            "Read",
            {"file_path": "b.py"},
            "File does not exist: {root}/b.py. Did you mean {root}/a.py?",
            id="read-missing",
        ),
        pytest.param(
            "Read",
            {"file_path": "sub"},
            "EISDIR: illegal operation on a directory, read '{root}/sub'.",
            id="read-folder",
        ),
        pytest.param("Read", {"file_path": "raw.bin"}, "{root}/raw.bin is binary (256 bytes)", id="read-binary"),
        pytest.param(
            "Read", {"file_path": "a.py", "offset": -1}, "offset: must be at least 1, not -1.", id="read-from-before"
        ),
        pytest.param(
            "Read", {"file_path": "a.py", "limit": 0}, "limit: must be at least 1, not 0.", id="read-no-lines"
        ),
        pytest.param("Read", {"file_path": "a.py", "colour": "red"}, "colour: unknown parameter;", id="read-unknown"),
        pytest.param("Write", {"file_path": "a.py"}, "content: required, but missing.", id="write-what"),
        pytest.param("Write", {"file_path": "a.py", "content": "z"}, "File has not been read yet.", id="write-unread"),
        pytest.param(
            "Write", {"file_path": "new/", "content": "z"}, "new/ names a folder, not a file.", id="write-folder"
        ),
        pytest.param(
            "Edit",
            {"file_path": "a.py", "old_string": "x", "new_string": "z"},
            "File has not been read yet.",
            id="edit-unread",
        ),
        pytest.param(
            "Edit",
            {"file_path": "n.py", "old_string": "x", "new_string": "z"},
            "File does not exist: {root}/n.py",
            id="edit-missing",
        ),
        pytest.param(
            "Edit",
            {"file_path": "a.py", "old_string": "x", "new_string": "x"},
            "No changes to make:",
            id="edit-nothing",
        ),
        pytest.param(
            "Edit",
            {"file_path": "empty.txt", "old_string": "", "new_string": "x"},
            "File has not been read yet.",
            id="edit-empty-unread",
        ),
        pytest.param(
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "z"}]},
            "File has not been read yet.",
            id="several-edits-unread",
        ),
        pytest.param(
            "NotebookEdit", {"notebook_path": "a.py", "new_source": "x"}, "a.py is not a notebook", id="no-notebook"
        ),
        pytest.param(
            "NotebookEdit",
            {"notebook_path": "n.ipynb", "new_source": "x"},
            "File does not exist: {root}/n.ipynb",
            id="notebook-missing",
        ),
        pytest.param("Glob", {"pattern": "*", "path": "nope"}, "Path does not exist: {root}/nope", id="glob-nowhere"),
        pytest.param(
            "Glob", {"pattern": "*", "path": "a.py"}, "Path is not a directory: {root}/a.py", id="glob-in-a-file"
        ),
        pytest.param("Grep", {"pattern": "("}, "regex parse error: unclosed group", id="grep-bad-pattern"),
        pytest.param("Grep", {"pattern": "x", "path": "nope"}, "Path does not exist: {root}/nope", id="grep-nowhere"),
        pytest.param(
            "Grep", {"pattern": "x", "type": "snake"}, "type: there is no file type 'snake'.", id="grep-bad-type"
        ),
        pytest.param(
            "Grep", {"pattern": "x", "output_mode": "all"}, 'output_mode: must be one of "content"', id="grep-bad-mode"
        ),
        pytest.param(
            "Grep",
            {"pattern": "x", "-A": -1, "output_mode": "content"},
            "-A: must be at least 0.",
            id="grep-bad-context",
        ),
        pytest.param(
            "Grep", {"pattern": "x", "head_limit": -1}, "head_limit: must be at least 0.", id="grep-bad-limit"
        ),
        pytest.param("Bash", {"command": "echo no; exit 3"}, "Exit code 3\nno", id="bash-fails"),
        pytest.param(
            "Bash",
            {"command": "sleep 60", "timeout": 200},
            "Command timed out after 0.2s",
            id="bash-too-long",
        ),
        pytest.param("Bash", {"command": "x", "timeout": 0}, "timeout: must be more than 0.", id="bash-no-time"),
        pytest.param("Bash", {"command": " "}, "The command is empty.", id="bash-nothing"),
        pytest.param("LS", {"path": "a.py"}, "Path is not a directory: {root}/a.py", id="ls-a-file"),
        pytest.param(
            "WebFetch",
            {"url": "x", "prompt": "y"},
            "'x' is not an address that begins with https:// or http://.",
            id="no-address",
        ),
        pytest.param(
            "BashOutput",
            {"bash_id": "1"},
            "There is no task with task_id 1. This session has no tasks.",
            id="no-task-by-an-old-name",
        ),
    ],
)
async def test_calls_that_do_not_fit_say_why(session, root, name, values, start):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    reply = await session.call(name, **values)

    assert reply.status == "error"
    assert reply.error.message.startswith(start.replace("{root}", str(root)))
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param("Write", {"file_path": "a.py", "content": "z = 3\n"}, id="Write"),
        pytest.param("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "z = 3"}, id="Edit"),
        pytest.param(
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "x = 1", "new_string": "z = 3"}]},
            id="MultiEdit",
        ),
        pytest.param("create_file", {"path": "a.py", "content": "z = 3\n"}, id="amp-create"),
        pytest.param("edit_file", {"path": "a.py", "old_str": "x = 1", "new_str": "z = 3"}, id="amp-edit"),
        pytest.param("write_file", {"file_path": "a.py", "content": "z = 3\n"}, id="gemini-write"),
        pytest.param("write", {"path": "a.py", "content": "z = 3\n"}, id="canonical-words"),
        pytest.param("edit", {"path": "a.py", "edits": [{"oldText": "x = 1", "newText": "z = 3"}]}, id="pi-edit"),
    ],
)
async def test_a_file_is_read_before_it_is_written_in_whatever_words(session, root, name, values):
    path = root / "a.py"
    original = path.read_bytes()
    unread = await session.call(name, **values)
    unchanged = path.read_bytes()
    await session.call("Read", file_path="a.py")
    path.write_bytes(original + b"# by somebody else\n")
    stale = await session.call(name, **values)
    others = path.read_bytes()
    await session.call("Read", file_path="a.py", offset=1, limit=1)
    done = await session.call(name, **values)

    assert (unread.error.error_code, unchanged) == ("not-read", original)
    assert (stale.error.error_code, others) == ("stale", original + b"# by somebody else\n")
    assert done.status == "done"
    assert b"z = 3" in path.read_bytes()


@pytest.mark.parametrize("name", ["Write", "write", "create_file"])
async def test_no_call_can_say_that_it_need_not_have_read(session, root, name):
    before = (root / "a.py").read_bytes()
    reply = await session.call(name, path="a.py", content="z = 3\n", read_first=False)

    assert reply.status == "error"
    assert (root / "a.py").read_bytes() == before


async def test_what_the_session_wrote_itself_counts_as_read(session, root):
    await session.call("Write", file_path="new.py", content="x = 1\n")
    edited = await session.call("Edit", file_path="new.py", old_string="1", new_string="2")
    written = await session.call("Write", file_path="new.py", content="x = 3\n")

    assert (edited.status, written.result) == ("done", f"File updated successfully at: {root}/new.py")
    assert (root / "new.py").read_bytes() == b"x = 3\n"


async def test_a_link_to_a_file_that_was_read_is_that_file(session, root):
    (root / "link.py").symlink_to("a.py")
    await session.call("Read", file_path="a.py")
    reply = await session.call("Edit", file_path="link.py", old_string="x = 1", new_string="x = 9")

    assert reply.status == "done"
    assert (root / "link.py").is_symlink()
    assert b"x = 9" in (root / "a.py").read_bytes()


@pytest.mark.parametrize("name", ["Write", "create_file"])
async def test_in_an_amp_session_the_same_call_overwrites(tmp_path, root, name):
    key = "file_path" if name == "Write" else "path"
    async with Engine(tmp_path, dialect="amp", ask=lambda question: True) as engine:
        reply = await engine.call(name, **{key: "a.py", "content": "z = 3"})

    assert reply.result == f"Successfully overwrote file {root}/a.py"
    assert (root / "a.py").read_bytes() == b"z = 3\n"


async def test_an_empty_file_is_filled_by_an_edit_of_nothing(session, root):
    await session.call("Read", file_path="empty.txt")
    reply = await session.call("Edit", file_path="empty.txt", old_string="", new_string="x\n")

    assert reply.result == f"File updated successfully at: {root}/empty.txt"
    assert (root / "empty.txt").read_bytes() == b"x\n"


async def test_an_edit_of_nothing_in_a_file_with_content_is_refused(session, root):
    await session.call("Read", file_path="a.py")
    reply = await session.call("Edit", file_path="a.py", old_string="", new_string="x\n")

    assert reply.error.message == "old_string is empty, but the file exists. Use Write to replace all of it."


@pytest.mark.parametrize(
    ("values", "start"),
    [
        pytest.param({"old_string": "z = 9"}, "String to replace not found in file.\n", id="no-match"),
        pytest.param(
            {"old_string": " = 1"}, "Found 2 matches of the string to replace, but replace_all is false.", id="two"
        ),
    ],
)
async def test_an_edit_without_one_clear_place_explains_itself(session, root, values, start):
    await session.call("Read", file_path="a.py")
    before = (root / "a.py").read_bytes()
    reply = await session.call("Edit", file_path="a.py", new_string=" = 5", **values)

    assert reply.error.message.startswith(start)
    assert (root / "a.py").read_bytes() == before


async def test_an_edit_says_its_diff(session, root):
    await session.call("Read", file_path="a.py")
    reply = await session.call("Edit", file_path="a.py", old_string=" = 1", new_string=" = 5", replace_all=True)

    assert reply.result == (
        f"The file {root}/a.py has been updated.\n```diff\ndiff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n"
        "@@ -1,4 +1,4 @@\n import os\n \n-x = 1\n-y = 1\n+x = 5\n+y = 5\n```"
    )


async def test_a_content_is_written_as_it_is(session, root):
    await session.call("Write", file_path="c.txt", content="no line end")

    assert (root / "c.txt").read_bytes() == b"no line end"


@pytest.mark.parametrize(
    ("lines", "first", "last"), [pytest.param(1_999, 1, 1_999, id="fits"), pytest.param(2_500, 1, 2_000, id="too-many")]
)
async def test_up_to_2000_lines_come_back(session, root, lines, first, last):
    (root / "long.txt").write_text("".join(f"{number}\n" for number in range(1, lines + 1)))
    reply = await session.call("Read", file_path="long.txt")

    shown = reply.result.split("\n")
    assert (shown[0], shown[-1]) == (f"{first:>6}→{first}", f"{last:>6}→{last}")
    assert reply.notes == (
        () if last == lines else ("These are lines 1 to 2000 of 2500. Give offset and limit for others.",)
    )


async def test_long_lines_are_cut_after_2000_characters(session, root):
    (root / "wide.txt").write_text("é" * 3_000 + "\nend\n")
    reply = await session.call("Read", file_path="wide.txt")

    assert reply.result == "     1→" + "é" * 2_000 + "\n     2→end"
    assert reply.notes == ("1 line was cut after 2,000 characters.",)


async def test_a_large_file_is_read_in_parts(session, root):
    (root / "large.txt").write_text("x" * 99 + "\n" * 1 + ("y" * 99 + "\n") * 2_700)
    whole = await session.call("Read", file_path="large.txt")
    part = await session.call("Read", file_path="large.txt", offset=2_701)

    assert whole.error.message.startswith(
        "File content exceeds the maximum allowed size. It has 270,100 bytes: give offset"
    )
    assert part.result == "  2701→" + "y" * 99


async def test_at_most_a_hundred_files_are_found(session, root):
    for number in range(130):
        (root / f"f{number}.txt").touch()
    reply = await session.call("Glob", pattern="f*.txt")

    *paths, last = reply.result.split("\n")
    assert len(paths) == 100
    assert last == "(Results are truncated: 30 more. Use a narrower path or pattern.)"


async def test_files_that_git_ignores_are_found_by_name_but_not_searched(session, root):
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("made/\n")
    (root / "made").mkdir()
    (root / "made" / "x.txt").write_text("nowhere else\n")
    found = await session.call("Glob", pattern="**/x.txt")
    searched = await session.call("Grep", pattern="nowhere else")

    assert found.result == f"{root}/made/x.txt"
    assert searched.result == "No files found"


async def test_a_timeout_beyond_ten_minutes_is_ten_minutes(session):
    reply = await session.call("Bash", command="true", timeout=3_600_000)

    assert reply.ok
    assert reply.notes == ("timeout was shortened to 600 seconds, the most there is.",)


async def test_a_command_without_a_timeout_has_two_minutes():
    assert FACES["Bash"].canonical({"command": "x"})["seconds"] == 120
    assert FACES["Bash"].canonical({"command": "x"})["most_seconds"] == 600


async def test_a_long_output_loses_its_middle_and_is_kept(session):
    reply = await session.call("Bash", command="seq 100000 150000")

    assert len(reply.result) < 30_100
    assert reply.result.startswith("100000\n")
    assert reply.result.endswith("\n150000")
    assert "... [truncated " in reply.result
    assert reply.output_id is not None


async def test_a_failure_keeps_its_exit_code_however_much_it_prints(session):
    reply = await session.call("Bash", command="seq 100000 150000; exit 7")

    assert reply.status == "error"
    assert reply.error.message.startswith("Exit code 7\n100000\n")
    assert len(reply.error.message) < 30_200


def drawn(*sizes: tuple[int, int]) -> list[Image.Image]:
    return [Image.new("RGB", size, "white") for size in sizes]


async def test_an_image_is_shown(session, root):
    drawn((4, 3))[0].save(root / "a.png")
    reply = await session.call("Read", file_path="a.png")

    assert (reply.result["type"], reply.result["media_type"]) == ("image", "image/png")


@pytest.mark.parametrize(
    ("count", "pages", "numbers"),
    [
        pytest.param(10, None, range(1, 11), id="a-short-one-comes-whole"),
        pytest.param(11, "2-3", range(2, 4), id="a-part"),
        pytest.param(11, "11", range(11, 12), id="one-page"),
    ],
)
async def test_a_pdf_is_read_by_pages(session, root, count, pages, numbers):
    first, *others = drawn(*[(20, 20)] * count)
    first.save(root / "a.pdf", save_all=True, append_images=others)
    reply = await session.call("Read", file_path="a.pdf", **({"pages": pages} if pages else {}))

    texts = [part["text"] for part in reply.result if part["type"] == "text"]
    assert texts == [f"Page {number} of {count}" for number in numbers]


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        pytest.param(
            None, 'pages: the document has 25 pages; name those to read, at most 20, for example "1-5".', id="long"
        ),
        pytest.param("1-21", "pages: at most 20 pages can be read at once.", id="too-many"),
        pytest.param("30", "pages: the document has 25 pages, and none after that.", id="past-the-end"),
        pytest.param("x", 'pages: \'x\' names no pages; write for example "3", "1-5" or "1,3-4".', id="no-pages"),
    ],
)
async def test_pages_of_a_long_pdf_have_to_be_named(session, root, pages, message):
    first, *others = drawn(*[(20, 20)] * 25)
    first.save(root / "a.pdf", save_all=True, append_images=others)
    reply = await session.call("Read", file_path="a.pdf", **({"pages": pages} if pages else {}))

    assert (reply.status, reply.error.message) == ("error", message)


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def code(name: str, source: str, *outputs: str) -> dict[str, Any]:
    streams = [{"output_type": "stream", "name": "stdout", "text": text} for text in outputs]
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "execution_count": None,
        "source": source,
        "outputs": streams,
    }


async def test_a_notebook_is_read_and_edited_cell_by_cell(session, root):
    (root / "n.ipynb").write_text(notebook(code("one", "1 + 1", "2\n"), code("two", "x")))
    unread = await session.call("NotebookEdit", notebook_path="n.ipynb", cell_id="two", new_source="y")
    read = await session.call("Read", file_path="n.ipynb")
    edits = [
        await session.call("NotebookEdit", notebook_path="n.ipynb", cell_id="two", new_source="y = 2"),
        await session.call(
            "NotebookEdit", notebook_path="n.ipynb", new_source="# A", cell_type="markdown", edit_mode="insert"
        ),
        await session.call("NotebookEdit", notebook_path="n.ipynb", cell_id="one", new_source="", edit_mode="delete"),
    ]

    assert unread.error.error_code == "not-read"
    assert read.result.startswith(
        '<cell id="one" language="python">\n1 + 1\n</cell>\n\n<output of="one">\n2\n</output>'
    )
    assert [edit.result.split(" cell ")[0] for edit in edits] == ["Updated", "Inserted", "Deleted"]
    assert [cell["source"] for cell in json.loads((root / "n.ipynb").read_text())["cells"]] == ["# A", "y = 2"]


@pytest.mark.parametrize(
    ("values", "start"),
    [
        pytest.param({"edit_mode": "insert"}, "cell_type: a new cell needs it;", id="insert-without-a-type"),
        pytest.param({"edit_mode": "delete"}, "cell_id: say which cell is to be deleted.", id="delete-without-a-cell"),
        pytest.param({"cell_id": "nine"}, "", id="no-such-cell"),
        pytest.param({"cell_type": "raw"}, "cell_type: must be one of", id="another-type"),
    ],
)
async def test_a_cell_has_to_be_clear(session, root, values, start):
    (root / "n.ipynb").write_text(notebook(code("one", "1"), code("two", "2")))
    await session.call("Read", file_path="n.ipynb")
    reply = await session.call("NotebookEdit", notebook_path="n.ipynb", new_source="x", **values)

    assert reply.status == "error"
    assert reply.error.message.startswith(start)


@each_row("name", sorted(SEED))
def test_a_tool_of_claude_code_is_known_and_defined(name):
    other = {
        "name": name,
        "description": "Other words.",
        "input_schema": {"type": "object"},
        "cache_control": {"type": "x"},
    }
    definition = claude_code_definition(other)

    assert is_claude_code_tool(name)
    assert silent(definition.parameters) == SEED[name]
    assert definition == (name, FACES[name].words, FACES[name].schema)


@pytest.mark.parametrize("name", ["read", "READ", "MultiEdit", "", "mcp__x__Read", " Read", "TodoWrite"])
def test_no_other_name_is_taken_for_one(name):
    assert not is_claude_code_tool(name)


def test_a_definition_may_be_changed_without_harm():
    claude_code_definition({"name": "Read"}).parameters["properties"].clear()

    assert claude_code_definition({"name": "Read"}).parameters == FACES["Read"].schema


@each_row(
    ("tool", "definition"),
    [
        pytest.param(
            {
                "name": "mine",
                "description": "Mine.",
                "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
            },
            ("mine", "Mine.", {"type": "object", "properties": {"a": {"type": "string"}}}),
            id="another-tool-passes",
        ),
        pytest.param({"name": "mine"}, ("mine", "", {"type": "object", "properties": {}}), id="bare"),
        pytest.param(
            {"name": "mine", "description": None, "input_schema": None},
            ("mine", "", {"type": "object", "properties": {}}),
            id="nothing-said",
        ),
        *(
            pytest.param({"type": kind, "name": "x"}, (name, "", {"type": "object", "properties": {}}), id=kind)
            for kind, name in (
                ("computer_20241024", "computer"),
                ("text_editor_20250124", "str_replace_editor"),
                ("bash_20241022", "bash"),
                ("bash_20250124", "bash"),
                ("custom", "x"),
                ("bash_x", "x"),
            )
        ),
    ],
)
def test_definitions_of_other_tools(tool, definition):
    assert claude_code_definition(tool) == definition


def test_a_schema_that_passes_is_not_the_caller_s_own():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    claude_code_definition({"name": "mine", "input_schema": schema}).parameters["properties"].clear()

    assert schema["properties"] == {"a": {"type": "string"}}


async def test_calls_of_one_message_are_answered_in_their_order(session, root):
    replies = await session.run(
        [
            Call("Read", {"file_path": "a.py"}),
            Call("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}),
            Call("Read", {"file_path": "a.py", "offset": 3, "limit": 1}),
        ]
    )

    assert [reply.status for reply in replies] == ["done"] * 3
    assert replies[2].result == "     3→x = 2"


CHOICE = {
    "question": "Which?",
    "header": "h",
    "multiSelect": False,
    "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}],
}
WORK = {"description": "d", "prompt": "p"}


@pytest.mark.parametrize(
    ("name", "given", "later"),
    [
        pytest.param("Read", {"file_path": "a.txt"}, {"allow_large": True}, id="read"),
        pytest.param("WebFetch", {"url": "http://127.0.0.1:1/", "prompt": "x"}, {"offset": 100}, id="fetch"),
        pytest.param("AskUserQuestion", {"questions": [CHOICE]}, {"annotations": {"Which?": {"notes": "n"}}}, id="ask"),
        *(
            pytest.param(name, {**WORK, **kind}, {key: "x"}, id=f"{name}-{key}-{len(kind)}")
            for name in ("Task", "Agent")
            for key in ("name", "isolation", "mode", "effort", "team_name")
            for kind in ({}, {"subagent_type": "general-purpose"})
        ),
    ],
)
async def test_a_parameter_of_a_later_version_costs_no_call(tmp_path, name, given, later):
    (tmp_path / "a.txt").write_text("one\n")
    async with Engine(tmp_path, dialect="claude", ask=lambda question: question.kind == "call") as engine:
        plain, more = await engine.run([Call(name, given), Call(name, {**given, **later})])
        shown = {one["name"]: one["inputSchema"]["properties"] for one in engine.definitions()}

    (key,) = later
    assert (more.status, more.result, more.error) == (plain.status, plain.result, plain.error)
    assert more.notes == (*plain.notes, f"{key}: has no effect in this session.")
    assert key not in shown.get(name, {})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param({"context": 1}, "1-one\n2:two two\n3-three", id="context"),
        pytest.param({"-C": 1}, "1-one\n2:two two\n3-three", id="the-older-name"),
        pytest.param({"context": 1, "-B": 0}, "2:two two\n3-three", id="one-side-said-besides"),
        pytest.param({"-o": True}, "2:two\n2:two", id="parts"),
        pytest.param({"-o": False}, "2:two two", id="no-parts"),
        pytest.param({"-o": True, "output_mode": "count"}, "2\n\nFound 2 matches in 1 file.", id="count"),
    ],
)
async def test_a_search_understands_what_later_versions_say(tmp_path, given, text):
    (tmp_path / "a.txt").write_text("one\ntwo two\nthree\n")
    asked = {"pattern": "two", "path": "a.txt", "output_mode": "content", **given}
    async with Engine(tmp_path, dialect="claude") as engine:
        reply = await engine.run([Call("Grep", asked)])

    assert reply[0].text.replace("a.txt:", "").replace("a.txt-", "") == text
    assert reply[0].notes == ()
