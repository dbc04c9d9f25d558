"""Wayland's faces: the schemas, limits, output formats and error sentences of its engine, to the letter."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog import silent
from tests.rows import each_row
from tests.strategies import texts

from ferrule import Call, Engine
from ferrule.arguments.schema import Schema
from ferrule.core.content import CommandResult, Created, Edited, FileText, Hit, Hits, PathPage, Picture, Unread
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Face, Middle
from ferrule.dialects import load_dialect
from ferrule.tools import BUILTIN

FACES = {face.name: face for face in load_dialect("wayland").faces}
DEFERRED = ["EnterPlanMode", "ExitPlanMode"]
SEED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "wayland_schemas.json").read_text(encoding="utf-8")
)


@each_row("name", sorted(SEED))
def test_the_schema_is_the_seed_s(name):
    assert silent(FACES[name].schema) == SEED[name]
    assert list(FACES[name].schema["properties"]) == list(SEED[name]["properties"])


def test_the_eight_built_in_tools_and_those_for_plans_have_faces():
    assert list(FACES) == list(SEED)
    assert set(FACES) == {
        *("Read", "Write", "Edit", "Bash", "Grep", "Glob", "Delegate", "ToolSearch"),
        *("EnterPlanMode", "ExitPlanMode"),
    }


def test_every_tool_is_here():
    assert {face.tool for face in FACES.values()} <= BUILTIN.keys()
    assert list(load_dialect("wayland").deferred) == DEFERRED


@each_row("face", [pytest.param(FACES[name], id=name) for name in FACES])
def test_every_parameter_is_described_and_every_tool_in_whole_sentences(face: Face):
    assert face.words.endswith(".")
    assert all(about["description"].endswith(".") for about in face.schema["properties"].values())


@each_row(
    ("face", "outcome", "said"),
    [
        pytest.param(
            "Read", FileText("/a", 1, ("one", "", "three")), "     1\tone\n     2\t\n     3\tthree", id="lines"
        ),
        pytest.param("Read", FileText("/a", 999_999, ("x", "y")), "999999\tx\n1000000\ty", id="wide-numbers"),
        pytest.param("Read", FileText("/a", 1, ("x",), 1, final_newline=True), "     1\tx", id="final-newline"),
        pytest.param("Read", FileText("/a", 1, (), 0), "", id="empty-file"),
        pytest.param("Read", FileText("/a", 1, ("{}\t{0}",)), "     1\t{}\t{0}", id="braces-are-only-braces"),
        pytest.param("Read", Unread("/a", "binary", 4096), "(binary file, 4096 bytes)", id="binary"),
        pytest.param("Write", Created("/w/a", False, (), 3, 12), "Created /w/a (3 lines)", id="created"),
        pytest.param("Write", Created("/w/a", True, (), 1, 2), "Updated /w/a (1 lines)", id="updated"),
        pytest.param("Write", Created("/w/{a}", True, (), 0, 0), "Updated /w/{a} (0 lines)", id="emptied"),
        pytest.param("Edit", Edited("/w/a", "", 1, 1), "Edited /w/a: replaced 1 occurrence(s)", id="edited"),
        pytest.param(
            "Edit", Edited("/w/a", "", 1, 9, places=4), "Edited /w/a: replaced 4 occurrence(s)", id="edited-everywhere"
        ),
        pytest.param(
            "Bash",
            CommandResult("ls", "/w", "a\nb\n", 0, None, "warning\n"),
            "Exit code: 0\nSTDOUT:\na\nb\n\nSTDERR:\nwarning\n",
            id="ran",
        ),
        pytest.param("Bash", CommandResult("x", "/w", "", 127), "Exit code: 127\nSTDOUT:\n\nSTDERR:\n", id="ran-badly"),
        pytest.param("Bash", CommandResult("x", "/w", "", 143, 0.25), "Command timed out after 250ms", id="timed-out"),
        pytest.param(
            "Bash",
            CommandResult("x", "/w", "so far", 143, 120.0, "oh"),
            "Command timed out after 120000ms\nSTDOUT:\nso far\nSTDERR:\noh",
            id="timed-out-with-output",
        ),
        pytest.param(
            "Grep",
            Hits((Hit("src/a.rs", 12, "fn main() {"), Hit("src/b.rs", 3, "")), 2),
            "src/a.rs:12:fn main() {\nsrc/b.rs:3:",
            id="matches",
        ),
        pytest.param("Grep", Hits((), 0), "No matches found", id="no-matches"),
        pytest.param("Glob", PathPage(("b.rs", "src/a.rs"), 0, "/w"), "b.rs\nsrc/a.rs", id="files"),
        pytest.param("Glob", PathPage((), 0, "/w"), "No files matched the pattern", id="no-files"),
    ],
)
def test_an_outcome_reads_like_this(face, outcome, said):
    assert FACES[face].says(outcome) == said


def test_an_unchanged_file_is_said_to_be_one():
    said = FACES["Read"].says(Unread("/a", "unchanged", 7))

    assert said.startswith("File unchanged since last read. The content from the earlier Read ")


def test_an_image_is_an_image():
    said = FACES["Read"].says(Picture("/a.png", "image/png", b"\x89PNG"))

    assert said == {"type": "image", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [
        pytest.param(CommandResult("x", "/w", "", 0), False, id="zero"),
        pytest.param(CommandResult("x", "/w", "", 1), True, id="one"),
        pytest.param(CommandResult("x", "/w", "", 0, 1.0), True, id="zero-after-it-was-stopped"),
    ],
)
def test_a_command_fails_by_its_exit_code(outcome, failed):
    assert FACES["Bash"].failed(outcome) is failed


@given(st.integers(1, 10**7), st.lists(texts.map(lambda text: text.replace("\n", " ")), min_size=1, max_size=20))
def test_every_line_comes_back_with_its_number(first, lines):
    said = FACES["Read"].says(FileText("/a", first, tuple(lines)))

    assert said.split("\n") == [f"{first + at:>6}\t{line}" for at, line in enumerate(lines)]


@each_row(
    ("face", "failure", "said"),
    [
        pytest.param(
            "Read",
            ToolFailure("No.", code="not-found", path="/w/a", hint=". Did you mean /w/b?"),
            "Failed to read file /w/a: No such file or directory. Did you mean /w/b?",
            id="read-not-found",
        ),
        pytest.param(
            "Read",
            ToolFailure("Secrets stay secret.", code="reading-secret-file", path="/w/.env"),
            "Refused to read /w/.env: Secrets stay secret.",
            id="read-secret",
        ),
        pytest.param(
            "Write",
            ToolFailure("Programs obey it.", code="writing-protected-file", path="/w/.git/x"),
            "Refused to write /w/.git/x: Programs obey it.",
            id="write-protected",
        ),
        pytest.param(
            "Edit",
            ToolFailure("Secrets stay secret.", code="writing-secret-file", path="/w/.env"),
            "Refused to edit /w/.env: Secrets stay secret.",
            id="edit-secret",
        ),
        pytest.param("Edit", ToolFailure("", code="no-match"), "old_string not found in file", id="edit-no-match"),
        pytest.param(
            "Edit",
            ToolFailure("The closest is {line}.", code="no-match"),
            "old_string not found in file\nThe closest is {line}.",
            id="edit-no-match-explained",
        ),
        pytest.param(
            "Edit",
            ToolFailure("", code="ambiguous", count=3),
            "Multiple matches found (3). Use replace_all or provide more context.",
            id="edit-ambiguous",
        ),
        pytest.param(
            "Edit",
            ToolFailure("", code="not-found", path="/w/a"),
            "Failed to read file /w/a: No such file or directory",
            id="edit-not-found",
        ),
        pytest.param("Grep", ToolFailure("unclosed", code="bad-pattern"), "rg error: unclosed", id="grep-bad-pattern"),
        pytest.param("Bash", ToolFailure("As it is {x}.", code="other"), "As it is {x}.", id="any-other"),
    ],
)
def test_failures_are_said_in_the_seed_s_sentences(face, failure, said):
    assert FACES[face].sentence(failure) == said


@pytest.mark.parametrize(
    ("code", "beginning"),
    [
        pytest.param("not-read", "You must Read /w/a before editing. Use the Read tool first", id="not-read"),
        pytest.param("stale", "File /w/a has been modified externally since last read. ", id="stale"),
    ],
)
def test_an_edit_of_what_was_not_read_is_refused_in_the_seed_s_words(code, beginning):
    assert FACES["Edit"].sentence(ToolFailure("", code=code, path="/w/a")).startswith(beginning)


READ_LIMITS = {
    "usual_lines": None,
    "most_bytes": 8 << 20,
    "ranged_bytes": 100_000,
    "number_bytes": 10,
    "line_bytes": 8 << 20,
    "decoded": (),
    "folders": False,
    "mention_binary": True,
    "mention_unchanged": True,
}
BASH_LIMITS = {"most_seconds": 600, "apart": True, "head_chars": 100_000, "tail_chars": 100_000}
GREP_LIMITS = {"per_file": 0, "limit": 250, "line_chars": 20_000, "cut_bytes": 20_000}


@each_row(
    ("face", "given_input", "canonical"),
    [
        pytest.param("Read", {"file_path": "/a"}, {"path": "/a", **READ_LIMITS}, id="read-all"),
        pytest.param(
            "Read",
            {"file_path": "/a", "offset": 0, "limit": 5},
            {"path": "/a", "offset": 1, "limit": 5, **READ_LIMITS},
            id="lines-are-counted-from-0",
        ),
        pytest.param("Read", {"file_path": "/a", "offset": -3}, {"path": "/a", **READ_LIMITS}, id="before-the-start"),
        pytest.param(
            "Write",
            {"file_path": "/a", "content": "x"},
            {"path": "/a", "content": "x", "final_newline": False},
            id="write",
        ),
        pytest.param(
            "Edit",
            {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": True},
            {"path": "/a", "old": "x", "new": "y", "everywhere": True, "read_first": True},
            id="edit",
        ),
        pytest.param("Bash", {"command": "ls"}, {"command": "ls", "seconds": 120, **BASH_LIMITS}, id="bash"),
        pytest.param(
            "Bash",
            {"command": "ls", "timeout": 1500},
            {"command": "ls", "seconds": 1.5, **BASH_LIMITS},
            id="bash-milliseconds",
        ),
        pytest.param("Grep", {"pattern": "x"}, {"pattern": "x", "case_sensitive": True, **GREP_LIMITS}, id="grep"),
        pytest.param(
            "Grep",
            {"pattern": "x", "path": "/w", "glob": "*.rs", "case_insensitive": True},
            {"pattern": "x", "path": "/w", "glob": "*.rs", "case_sensitive": False, **GREP_LIMITS},
            id="grep-in-any-case",
        ),
        pytest.param(
            "Glob",
            {"pattern": "*", "path": "src"},
            {"pattern": "*", "path": "src", "limit": 100, "by_time": True, "relative": True},
            id="glob",
        ),
    ],
)
def test_arguments_become_canonical_with_the_seed_s_limits(face, given_input, canonical):
    assert FACES[face].canonical(given_input) == canonical


def arguments(face: Face) -> st.SearchStrategy[dict[str, Any]]:
    """Any arguments that the face's schema allows."""
    some = {
        "string": texts,
        "integer": st.integers(-5, 10**7),
        "boolean": st.booleans(),
        "array": st.lists(texts, max_size=2) if face.name != "Delegate" else st.just([]),
    }
    values = {name: some[about["type"]] for name, about in face.schema["properties"].items()}
    required = set(face.schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: value for name, value in values.items() if name in required},
        optional={name: value for name, value in values.items() if name not in required},
    )


@pytest.mark.parametrize("face", [pytest.param(face, id=name) for name, face in FACES.items()])
def test_shown_and_read_back_the_arguments_are_the_same(face: Face):
    schema = Schema(face.schema)

    @given(arguments(face))
    def law(values):
        canonical = face.canonical(values)
        shown = face.advertised(canonical)

        assert schema.fit(dict(shown)) == (shown, ())
        assert face.canonical(shown) == canonical

    law()


@each_row(
    ("face", "chars"),
    [
        *(("Read", 100_000), ("Write", 10_000), ("Edit", 10_000), ("Bash", 50_000), ("Grep", 20_000)),
        *(("Glob", 50_000), ("Delegate", 50_000), ("ToolSearch", 50_000)),
    ],
)
def test_a_long_result_loses_its_middle(face, chars):
    assert FACES[face].bound == Middle(chars)


@pytest.fixture
async def engine(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Engine(workspace, dialect="wayland", ask=lambda question: question.kind == "call") as opened:
        yield opened


@pytest.fixture
def root(engine, tmp_path):
    """The workspace's folder, by its real path."""
    return Path(os.path.realpath(tmp_path / "workspace"))


async def test_only_the_tools_that_are_here_are_advertised(engine):
    shown = ["Read", "Write", "Edit", "Bash", "Grep", "Glob", "ToolSearch"]
    assert [one["name"] for one in engine.definitions()] == shown


@pytest.mark.parametrize(
    ("name", "given_input", "line"),
    [
        pytest.param("Read", {}, "file_path: required", id="read-nothing"),
        pytest.param("Read", {"file_path": "a", "limit": 0}, "limit: must be at least 1", id="read-no-lines"),
        pytest.param("Read", {"file_path": ["a"]}, "file_path: ", id="read-a-list"),
        pytest.param("Write", {"file_path": "a"}, "content: required", id="write-nothing"),
        pytest.param("Edit", {"file_path": "a", "old_string": "x"}, "new_string: required", id="edit-half"),
        pytest.param("Bash", {"command": "ls", "timeout": 0}, "timeout: must be more than 0", id="no-time"),
        pytest.param("Bash", {"command": "ls", "timeout": "soon"}, "timeout: ", id="no-number"),
        pytest.param("Grep", {"pattern": ""}, "pattern: is empty", id="grep-nothing"),
        pytest.param("Grep", {"pattern": "x", "case_insensitive": "maybe"}, "case_insensitive: ", id="maybe"),
        pytest.param("Glob", {}, "pattern: required", id="glob-nothing"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_by_their_names(engine, name, given_input, line):
    reply = await engine.call(name, **given_input)

    assert (reply.status, reply.error.error_code) == ("error", "bad-arguments")
    assert reply.text.startswith(line)


async def test_a_file_is_written_read_and_written_again(engine, root):
    first = await engine.call("Write", file_path=str(root / "new/a.txt"), content="one\ntwo")
    lines = await engine.call("Read", file_path=str(root / "new/a.txt"))
    second = await engine.call("Write", file_path="new/a.txt", content="one\n")

    assert first.result == f"Created {root}/new/a.txt (2 lines)"
    assert lines.result == "     1\tone\n     2\ttwo"
    assert second.result == f"Updated {root}/new/a.txt (1 lines)"
    assert (root / "new/a.txt").read_bytes() == b"one\n"


@pytest.mark.parametrize(
    ("window", "said"),
    [
        pytest.param({}, "     1\ta\n     2\tb\n     3\tc", id="all"),
        pytest.param({"offset": 0, "limit": 1}, "     1\ta", id="from-0"),
        pytest.param({"offset": 1}, "     2\tb\n     3\tc", id="from-1"),
        pytest.param({"offset": 1, "limit": 1}, "     2\tb", id="one-line"),
        pytest.param({"offset": 3}, "", id="past-the-end"),
        pytest.param({"offset": "2"}, "     3\tc", id="a-number-in-a-string"),
    ],
)
async def test_a_part_of_a_file_is_read(engine, root, window, said):
    (root / "a.txt").write_bytes(b"a\r\nb\nc\n")
    reply = await engine.call("Read", file_path="a.txt", **window)

    assert (reply.status, reply.result) == ("done", said)


async def test_the_same_lines_are_shown_once_until_the_file_changes(engine, root):
    async def read(**window):
        return (await engine.call("Read", file_path="a.txt", **window)).result

    (root / "a.txt").write_text("a\nb\n")
    first, again, part = await read(), await read(), await read(offset=1)
    (root / "a.txt").write_text("c\nd\n")
    changed = await read()

    assert first == "     1\ta\n     2\tb"
    assert again.startswith("File unchanged since last read.")
    assert part == "     2\tb"
    assert changed == "     1\tc\n     2\td"


async def test_a_binary_file_is_an_answer(engine, root):
    (root / "a.bin").write_bytes(b"abc\0def")
    reply = await engine.call("Read", file_path="a.bin")

    assert (reply.status, reply.result) == ("done", "(binary file, 7 bytes)")


async def test_of_a_long_file_about_ten_thousand_tokens_are_shown_and_the_range_is_named(engine, root):
    lines = [f"line {number} " + "日本語" * 20 for number in range(1, 3001)]
    (root / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    reply = await engine.call("Read", file_path="a.txt")
    shown = reply.result.split("\n")

    assert shown == [f"{number:>6}\t{line}" for number, line in enumerate(lines[: len(shown)], 1)]
    assert 39_000 < len(reply.result.encode()) <= 40_000
    assert f"These are lines 1 to {len(shown)} of 3000. Give offset and limit for others." in reply.notes


async def test_a_long_line_loses_its_middle_and_is_kept_whole(engine, root):
    (root / "a.txt").write_text("é" * 150_000, encoding="utf-8")
    whole = f"{1:>6}\t{'é' * 150_000}"
    reply = await engine.call("Read", file_path="a.txt")

    gone = len(whole) - 100_000
    assert reply.result == f"{whole[:50_000]}\n\n... [truncated {gone} chars] ...\n\n{whole[-50_000:]}"
    assert (await engine.output(reply.output_id)).read(0, 10**7).text == whole


async def test_secret_files_and_folders_are_refused(engine, root):
    (root / ".env").write_text("KEY=1")
    secret, folder, gone = [
        await engine.call("Read", file_path=path) for path in (".env", str(root), str(root / "gone.txt"))
    ]

    assert secret.text.startswith(f"Refused to read {root}/.env: ")
    assert folder.text.startswith(f"Failed to read file {root}: ")
    assert gone.text == f"Failed to read file {root}/gone.txt: No such file or directory"
    assert [reply.status for reply in (secret, folder, gone)] == ["error"] * 3


async def test_an_edit_needs_a_read_and_the_file_as_it_was(engine, root):
    async def edit():
        return (await engine.call("Edit", file_path="a.txt", old_string="one", new_string="two")).text

    (root / "a.txt").write_text("one\n")
    unread = await edit()
    await engine.call("Read", file_path="a.txt")
    (root / "a.txt").write_text("one and more\n")
    stale = await edit()
    await engine.call("Read", file_path="a.txt")
    edited = await edit()

    assert unread.startswith(f"You must Read {root}/a.txt before editing. Use the Read tool first")
    assert stale.startswith(f"File {root}/a.txt has been modified externally since last read. ")
    assert edited == f"Edited {root}/a.txt: replaced 1 occurrence(s)"
    assert (root / "a.txt").read_text() == "two and more\n"


async def test_what_was_written_here_can_be_edited_at_once_and_again(engine, root):
    await engine.call("Write", file_path="a.txt", content="a b")
    first = await engine.call("Edit", file_path="a.txt", old_string="a", new_string="c")
    second = await engine.call("Edit", file_path="a.txt", old_string="b", new_string="d")

    assert first.ok
    assert second.ok
    assert (root / "a.txt").read_text() == "c d"


@pytest.mark.parametrize(
    ("given_input", "said", "left"),
    [
        pytest.param(
            {"old_string": "x", "new_string": "y"},
            "Multiple matches found (3). Use replace_all or provide more context.\n",
            "x x\nx\n",
            id="ambiguous",
        ),
        pytest.param(
            {"old_string": "x", "new_string": "y", "replace_all": True},
            "Edited {root}/a.txt: replaced 3 occurrence(s)",
            "y y\ny\n",
            id="everywhere",
        ),
        pytest.param(
            {"old_string": "absent", "new_string": "y"}, "old_string not found in file\n", "x x\nx\n", id="absent"
        ),
        pytest.param({"old_string": "", "new_string": "y"}, "old_string is empty. ", "x x\nx\n", id="empty"),
        pytest.param({"old_string": "x", "new_string": "x"}, "old_string and new_string are ", "x x\nx\n", id="same"),
    ],
)
async def test_an_edit_does_this(engine, root, given_input, said, left):
    (root / "a.txt").write_text("x x\nx\n")
    await engine.call("Read", file_path="a.txt")
    reply = await engine.call("Edit", file_path="a.txt", **given_input)

    assert reply.text.startswith(said.format(root=root) if "{root}" in said else said)
    assert (root / "a.txt").read_text() == left


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        pytest.param("echo out; echo err >&2", "done", "Exit code: 0\nSTDOUT:\nout\n\nSTDERR:\nerr\n", id="both"),
        pytest.param("true", "done", "Exit code: 0\nSTDOUT:\n\nSTDERR:\n", id="nothing"),
        pytest.param("printf a; exit 3", "error", "Exit code: 3\nSTDOUT:\na\nSTDERR:\n", id="exit-code"),
        pytest.param("false; printf on", "done", "Exit code: 0\nSTDOUT:\non\nSTDERR:\n", id="goes-on"),
    ],
)
async def test_a_command_says_this(engine, command, status, said):
    reply = await engine.call("Bash", command=command)

    assert (reply.status, reply.text) == (status, said)


async def test_a_command_is_stopped_after_its_milliseconds(engine):
    reply = await engine.call("Bash", command="exec sleep 60", timeout=300)

    assert (reply.status, reply.text) == ("error", "Command timed out after 300ms")


async def test_a_command_that_was_stopped_keeps_what_it_printed(engine):
    reply = await engine.call("Bash", command="echo so far; exec sleep 60", timeout=900)

    assert reply.text == "Command timed out after 900ms\nSTDOUT:\nso far\n\nSTDERR:\n"


async def test_no_command_has_more_than_ten_minutes(engine):
    reply = await engine.call("Bash", command="true", timeout=600_001)

    assert reply.ok
    assert any("timeout was shortened to 600 seconds" in note for note in reply.notes)


@pytest.mark.parametrize("stream", ["1", "2"])
async def test_a_long_output_loses_its_middle_and_is_kept_whole(engine, stream):
    reply = await engine.call("Bash", command=f"seq 1 20000 >&{stream}")

    whole = "".join(f"{number}\n" for number in range(1, 20_001))
    said = f"Exit code: 0\nSTDOUT:\n{whole if stream == '1' else ''}\nSTDERR:\n{whole if stream == '2' else ''}"
    gone = len(said) - 50_000
    assert reply.result == f"{said[:25_000]}\n\n... [truncated {gone} chars] ...\n\n{said[-25_000:]}"
    assert (await engine.output(reply.output_id)).read(0, 10**7).text == said


async def test_an_endless_output_shows_its_real_ends(engine):
    reply = await engine.call("Bash", command="seq 1 300000; echo last >&2")

    assert reply.result.startswith("Exit code: 0\nSTDOUT:\n1\n2\n3\n")
    assert reply.result.endswith("299999\n300000\n\nSTDERR:\nlast\n")
    assert "characters are not shown" not in reply.result
    assert len(reply.result) < 50_100


async def test_grep_says_paths_lines_and_texts(engine, root):
    (root / "src").mkdir()
    (root / "src/a.rs").write_text("fn Main() {}\n\nmain\n")
    (root / "b.txt").write_text("main\n")
    everywhere = await engine.call("Grep", pattern="main")
    any_case = await engine.call("Grep", pattern="main", path="src", case_insensitive=True)
    some = await engine.call("Grep", pattern="main", glob="*.txt")
    none = await engine.call("Grep", pattern="absent")

    assert everywhere.result == "b.txt:1:main\nsrc/a.rs:3:main"
    assert any_case.result == "src/a.rs:1:fn Main() {}\nsrc/a.rs:3:main"
    assert some.result == "b.txt:1:main"
    assert (none.status, none.result) == ("done", "No matches found")


async def test_grep_gives_250_lines_of_whatever_files(engine, root):
    (root / "a.txt").write_text("match\n" * 200)
    (root / "b.txt").write_text("match\n" * 200)
    reply = await engine.call("Grep", pattern="match")

    assert reply.result.count("\n") == 249
    assert reply.result.startswith("a.txt:1:match\n")
    assert reply.result.endswith("b.txt:50:match")
    assert any("250 of 400" in note for note in reply.notes)


async def test_grep_gives_20000_characters(engine, root):
    (root / "a.txt").write_text("".join(f"{number:04} " + "x" * 300 + "\n" for number in range(200)))
    reply = await engine.call("Grep", pattern="x")

    head, _, tail = reply.result.partition("\n\n... [truncated ")
    assert len(head) == 10_000
    assert len(tail.partition(" chars] ...\n\n")[2]) == 10_000
    assert reply.output_id is not None


async def test_a_pattern_that_cannot_be_read_is_an_error(engine):
    reply = await engine.call("Grep", pattern="(")

    assert reply.status == "error"
    assert reply.text.startswith("rg error: ")


async def test_glob_gives_the_newest_first_from_the_folder_of_the_search(engine, root):
    (root / "src/deep").mkdir(parents=True)
    for age, name in enumerate(("src/c.rs", "src/deep/a.rs", "src/b.rs")):
        (root / name).write_text("")
        os.utime(root / name, (1_000_000 - age, 1_000_000 - age))
    below = await engine.call("Glob", pattern="**/*.rs", path="src")
    above = await engine.call("Glob", pattern="src/*.rs")
    none = await engine.call("Glob", pattern="*.zip")

    assert below.result == "c.rs\ndeep/a.rs\nb.rs"
    assert above.result == "src/c.rs\nsrc/b.rs"
    assert (none.status, none.result) == ("done", "No files matched the pattern")


async def test_glob_gives_a_hundred_files(engine, root):
    for number in range(120):
        (root / f"{number:03}.txt").write_text("")
        os.utime(root / f"{number:03}.txt", (number, number))
    reply = await engine.call("Glob", pattern="*.txt")

    assert reply.result.split("\n") == [f"{number:03}.txt" for number in range(119, 19, -1)]


async def test_readers_share_their_time_and_writers_do_not(engine):
    readers = [
        Call("Read", {"file_path": "a"}),
        Call("Grep", {"pattern": "x"}),
        Call("Glob", {"pattern": "*"}),
        Call("Read", {"file_path": "a"}),
    ]
    writers = [
        Call("Write", {"file_path": "a", "content": ""}),
        Call("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
        Call("Bash", {"command": "ls"}),
    ]

    assert len(engine.plan(readers)) == 1
    assert len(engine.plan(writers)) == 3


async def test_a_deferred_tool_simply_runs_for_who_knows_its_name(engine):
    entered = await engine.call("EnterPlanMode")

    assert entered.ok
    assert "ExitPlanMode" in [face.name for face in engine.faces()]
