"""Amp's faces: the seed's schemas, its output formats and its error sentences, to the letter."""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog import silent
from tests.rows import each_row
from tests.strategies import paths, texts, wild_paths

from ferrule.arguments.schema import Schema
from ferrule.core.content import CommandResult, Created, Edited, FileText, FolderListing, Hit, Hits, PathPage, Picture
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import GENERAL_LIMIT_BYTES, Face
from ferrule.dialects import amp as says
from ferrule.dialects.amp import dialect as amp

FACES = {face.name: face for face in amp().faces}
SEED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "amp_schemas.json").read_text(encoding="utf-8"))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.mark.contract("read.schema", "edit.schema", "create.schema", "bash.schema", "glob.schema", "grep.schema")
@pytest.mark.contract("schema.defaults")
@pytest.mark.parametrize("name", sorted(SEED))
def test_the_schema_is_the_seed_s(name):
    assert silent(FACES[name].schema) == SEED[name]
    assert list(FACES[name].schema["properties"]) == list(SEED[name]["properties"])


@pytest.mark.contract("tools.six", "tools.names")
def test_the_six_tools_of_the_seed_are_advertised_under_its_names():
    shown = [face.name for face in amp().faces if face.shown]

    assert shown[:6] == [
        "Read",
        "edit_file",
        "create_file",
        "Bash",
        "glob",
        "Grep",
    ]
    assert set(SEED) == set(shown[:6])


@pytest.mark.contract("read.line-numbers")
@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(
            FileText("/a", 1, ("first line of content", "second line of content")),
            "1: first line of content\n2: second line of content",
            id="from-the-start",
        ),
        pytest.param(FileText("/a", 499, ("x", "", "z")), "499: x\n500: \n501: z", id="from-a-line"),
        pytest.param(FileText("/a", 1, ()), "", id="nothing"),
        pytest.param(FileText("/a", 1, ("1: x",)), "1: 1: x", id="looks-numbered"),
        pytest.param(
            FolderListing("/a", ("another-file.js", "file.txt", "subdir/")),
            "another-file.js\nfile.txt\nsubdir/",
            id="folder",
        ),
        pytest.param(FolderListing("/a", ()), "", id="empty-folder"),
    ],
)
def test_read_says_numbered_lines_or_names(outcome, said):
    assert FACES["Read"].says(outcome) == said


@pytest.mark.parametrize("media_type", ["image/png", "image/jpeg", "image/gif"])
def test_read_says_an_image_as_base64(media_type):
    said = FACES["Read"].says(Picture("/a.png", media_type, PNG))

    assert said == {"type": "image", "media_type": media_type, "data": base64.b64encode(PNG).decode()}
    assert base64.b64decode(said["data"]) == PNG


@given(st.integers(1, 10**6), st.lists(texts.map(lambda text: text.replace("\n", " ")), min_size=1, max_size=20))
def test_every_line_comes_back_with_its_number(first, lines):
    said = FACES["Read"].says(FileText("/a", first, tuple(lines)))

    assert said.split("\n") == [f"{first + at}: {line}" for at, line in enumerate(lines)]


@pytest.mark.contract("edit.success-output")
def test_edit_says_the_diff_and_the_changed_lines():
    assert FACES["edit_file"].says(Edited("/a", "--- a\n+++ b\n", 3, 7)) == {
        "diff": "--- a\n+++ b\n",
        "lineRange": [3, 7],
    }


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(Created("/w/a.py", False, ()), "Successfully created file /w/a.py", id="created"),
        pytest.param(Created("/w/a.py", True, ()), "Successfully overwrote file /w/a.py", id="overwrote"),
        pytest.param(
            Created("/w/a.py", False, ("/w/AGENTS.md",)),
            {"message": "Successfully created file /w/a.py", "discoveredGuidanceFiles": ["/w/AGENTS.md"]},
            id="guidance",
        ),
        pytest.param(
            Created("/w/s/a.py", True, ("/w/AGENTS.md", "/w/s/CLAUDE.md")),
            {
                "message": "Successfully overwrote file /w/s/a.py",
                "discoveredGuidanceFiles": ["/w/AGENTS.md", "/w/s/CLAUDE.md"],
            },
            id="overwrote-with-guidance",
        ),
    ],
)
def test_create_says_what_it_did_and_what_it_found(outcome, said):
    assert FACES["create_file"].says(outcome) == said


@pytest.mark.parametrize("name", ["Bash", "run_terminal_command"])
@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(
            CommandResult("ls -la", "/path/to/dir", "total 48\n", 0),
            "<command>ls -la</command>\n<working_directory>/path/to/dir</working_directory>\n"
            "<output>total 48\n</output>\n<exit_code>0</exit_code>",
            id="success",
        ),
        pytest.param(
            CommandResult("false", "/w", "", 1),
            "<command>false</command>\n<working_directory>/w</working_directory>\n"
            "<output></output>\n<exit_code>1</exit_code>",
            id="failure-without-output",
        ),
        pytest.param(
            CommandResult("a && b", "/w", "<x> & {y}", 137),
            "<command>a && b</command>\n<working_directory>/w</working_directory>\n"
            "<output><x> & {y}</output>\n<exit_code>137</exit_code>",
            id="as-it-is",
        ),
    ],
)
def test_a_command_is_said_in_four_elements(name, outcome, said):
    assert FACES[name].says(outcome) == said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(PathPage((), 0), {"files": [], "remaining": 0}, id="nothing"),
        pytest.param(PathPage(("/w/a", "/w/b"), 0), {"files": ["/w/a", "/w/b"], "remaining": 0}, id="all"),
        pytest.param(PathPage(("/w/a",), 41), {"files": ["/w/a"], "remaining": 41}, id="a-page"),
    ],
)
def test_glob_says_files_and_remaining(outcome, said):
    assert FACES["glob"].says(outcome) == said


def test_a_page_that_would_be_too_long_gives_its_end_to_the_rest():
    found = PathPage(tuple(f"/place/{'deep/' * 30}file_{number:06}.py" for number in range(1000)), 17)
    said = says.files_and_remaining(found)

    assert said["files"] == list(found.paths[: len(said["files"])])
    assert len(said["files"]) + said["remaining"] == 1017
    assert len(said["files"]) < 1000
    assert GENERAL_LIMIT_BYTES - 300 < len(msgspec.json.encode(said)) <= GENERAL_LIMIT_BYTES


@given(st.lists(paths | wild_paths, max_size=8), st.integers(1, 400), st.integers(0, 10**9))
def test_a_page_never_exceeds_the_general_limit_and_loses_no_file(some, times, remaining):
    found = PathPage(tuple(some * times), remaining)
    said = says.files_and_remaining(found)
    written = [path.encode(errors="replace").decode() for path in said["files"]]

    assert len(msgspec.json.encode({**said, "files": written})) <= GENERAL_LIMIT_BYTES
    assert tuple(said["files"]) == found.paths[: len(said["files"])]
    assert len(said["files"]) + said["remaining"] == len(found.paths) + remaining


@pytest.mark.contract("grep.no-results")
@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        pytest.param(
            Hits((Hit("path/file.ts", 42, "matching line content"), Hit("b", 1, "")), 2),
            ["path/file.ts:42: matching line content", "b:1: "],
            id="lines",
        ),
        pytest.param(
            Hits((), 0),
            [
                "No results found.",
                "If you meant to search for a literal string, run Grep again with literal:true.",
            ],
            id="nothing",
        ),
    ],
)
def test_grep_says_lines_or_that_there_are_none(outcome, said):
    assert FACES["Grep"].says(outcome) == said


def test_the_pair_for_nothing_found_is_fresh_every_time():
    says.lines(Hits((), 0)).clear()

    assert len(says.lines(Hits((), 0))) == 2


@each_row(
    ("face", "failure", "said"),
    [
        pytest.param(
            "Read",
            ToolFailure("", code="not-found", path="/w/a.py"),
            "ENOENT: no such file or directory '/w/a.py'",
            id="read-not-found",
        ),
        pytest.param(
            "Read",
            ToolFailure("Gone.", code="not-found", path="/w/a.py", hint=". Did you mean /w/b.py?"),
            "ENOENT: no such file or directory '/w/a.py'. Did you mean /w/b.py?",
            id="read-did-you-mean",
        ),
        pytest.param(
            "Read",
            ToolFailure("", code="not-found", path="/w/{x}/{0}"),
            "ENOENT: no such file or directory '/w/{x}/{0}'",
            id="braces-are-only-braces",
        ),
        pytest.param(
            "Read",
            ToolFailure("It is binary.", code="binary", path="/w/a"),
            "File appears to be binary and cannot be displayed as text.",
            id="read-binary",
        ),
        pytest.param(
            "Read",
            ToolFailure("Give read_range.", code="too-large", path="/w/a"),
            "File content exceeds maximum allowed size (65536 bytes). Give read_range.",
            id="read-too-large",
        ),
        pytest.param(
            "Read",
            ToolFailure(
                "Refusing to read env file. Reading secrets is not permitted.",
                code="reading-secret-file",
                path="/w/.env",
            ),
            "Refusing to read env file. Reading secrets is not permitted.",
            id="read-secret",
        ),
        pytest.param(
            "edit_file",
            ToolFailure("", code="not-found", path="/w/a"),
            "file not found. Cannot update a file that doesn't exist.",
            id="edit-not-found",
        ),
        pytest.param(
            "edit_file",
            ToolFailure("", code="no-match", path="/w/a"),
            "Could not find exact match for old_str",
            id="edit-no-match",
        ),
        pytest.param(
            "edit_file",
            ToolFailure("The closest is {line}.", code="no-match", path="/w/a"),
            "Could not find exact match for old_str\nThe closest is {line}.",
            id="edit-no-match-explained",
        ),
        pytest.param(
            "edit_file",
            ToolFailure("", code="ambiguous", path="/w/a", count=3),
            "found multiple matches for edit (3 occurrences). Use replace_all or provide more context.",
            id="edit-ambiguous",
        ),
        pytest.param(
            "edit_file",
            ToolFailure("The texts are the same.", code="same-text"),
            "old_str and new_str must be different",
            id="edit-same",
        ),
        pytest.param(
            "Grep",
            ToolFailure("", code="not-found", path="/w/a"),
            "ENOENT: no such file or directory '/w/a'",
            id="grep-not-found",
        ),
        pytest.param("Grep", ToolFailure("As it is {x}.", code="other"), "As it is {x}.", id="any-other"),
        pytest.param("Bash", ToolFailure("Without a code."), "Without a code.", id="no-code"),
    ],
)
def test_failures_are_said_in_the_seed_s_sentences(face, failure, said):
    assert FACES[face].sentence(failure) == said


@pytest.mark.parametrize(
    ("face", "given_input", "canonical"),
    [
        pytest.param(
            "Read",
            {"path": "/a", "read_range": [1, 5]},
            {
                "path": "/a",
                "offset": 1,
                "limit": 5,
                "refuse_bytes": 65_536,
                "most_bytes": 65_536,
                "usual_lines": 500,
                "most_lines": 2_000,
                "line_bytes": 4_096,
                "decoded": ("image", "document"),
            },
            id="Read",
        ),
        pytest.param(
            "edit_file",
            {"path": "/a", "old_str": "x", "new_str": "y", "replace_all": True},
            {"path": "/a", "old": "x", "new": "y", "everywhere": True},
            id="edit_file",
        ),
        pytest.param(
            "create_file",
            {"path": "/a", "content": "x"},
            {"path": "/a", "content": "x", "final_newline": True, "name_guidance": True},
            id="create_file",
        ),
        pytest.param(
            "Bash",
            {"cmd": "ls", "cwd": "/w"},
            {"command": "ls", "cwd": "/w", "tail_chars": 50_000, "tail_bytes": 100_000},
            id="Bash",
        ),
        pytest.param(
            "run_terminal_command",
            {"command": "ls"},
            {"command": "ls", "tail_chars": 50_000, "tail_bytes": 100_000},
            id="run_terminal_command",
        ),
        pytest.param(
            "glob",
            {"filePattern": "*", "limit": 5, "offset": 1},
            {"pattern": "*", "limit": 5, "offset": 1},
            id="glob",
        ),
        pytest.param(
            "Grep",
            {"pattern": "x", "caseSensitive": True, "literal": True, "path": "/w"},
            {
                "pattern": "x",
                "case_sensitive": True,
                "literal": True,
                "path": "/w",
                "per_file": 10,
                "limit": 100,
                "line_chars": 200,
            },
            id="Grep",
        ),
    ],
)
def test_arguments_become_canonical_with_the_seed_s_limits(face, given_input, canonical):
    assert FACES[face].canonical(given_input) == canonical


LIMITS = [pytest.param(face, name, id=f"{face.name}-{name}") for face in FACES.values() for name in sorted(face.fill)]


@each_row(("face", "name"), LIMITS)
def test_no_call_can_change_a_limit_of_the_seed_s(face: Face, name):
    required = dict.fromkeys(face.schema.get("required", ["command"]), "x")
    fitted = Schema(face.schema).fit({**required, name: 10**9})

    assert face.canonical(fitted.values)[name] == face.fill[name]


@pytest.mark.contract("truncate.general")
@each_row("face", FACES.values())
def test_every_result_is_bound_by_the_general_limit(face: Face):
    # The 262,144 bytes of a page, which may take twice as many as JSON, are a row of their own.
    assert face.limit_bytes == (589_824 if face.tool == "web_fetch" else 102_400)
