"""ah's faces: the seed's schemas, output formats, error sentences and limits, to the letter.

Names in backticks, and ids written like them, are those of ah's own tests, whose counterparts these are; those of its
truncation are in `tests/output/test_shorten.py`.
"""

import base64
import io
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
from tests.strategies import texts

from ferrule import Call, Engine
from ferrule.arguments.schema import Schema
from ferrule.core.content import CommandResult, Created, Edited, FileText, Picture
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Ends, Face
from ferrule.dialects import load_dialect
from ferrule.output.bounds import shorten

FACES = {face.name: face for face in load_dialect("ah").faces}
EACH = pytest.mark.parametrize("face", [pytest.param(face, id=name) for name, face in FACES.items()])
SEED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "ah_schemas.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(SEED))
def test_the_schema_is_the_seed_s(name):
    assert silent(FACES[name].schema) == SEED[name]
    assert list(FACES[name].schema["properties"]) == list(SEED[name]["properties"])


@EACH
def test_every_parameter_is_described_and_every_tool_in_whole_sentences(face: Face):
    assert face.words.endswith(".")
    assert all(about["description"].endswith(".") for about in face.schema["properties"].values())


@each_row(
    ("face", "outcome", "said"),
    [
        pytest.param("read", FileText("/a", 1, ("a", "b"), 2), "1\ta\n2\tb", id="no-final-newline"),
        pytest.param(
            "read", FileText("/a", 1, ("a", "b"), 2, final_newline=True), "1\ta\n2\tb\n3\t", id="final-newline"
        ),
        pytest.param(
            "read",
            FileText("/a", 1, ("a", "b"), 2, final_newline=True, limited=True),
            "1\ta\n2\tb",
            id="final-newline-beyond-the-limit",
        ),
        pytest.param("read", FileText("/a", 1, (), 0), "1\t", id="empty-file"),
        pytest.param("read", FileText("/a", 2, (), 0), "", id="past-the-end-of-an-empty-file"),
        pytest.param("read", FileText("/a", 3, (), 2, final_newline=True), "3\t", id="behind-the-last-newline"),
        pytest.param("read", FileText("/a", 9, (), 2), "", id="past-the-end"),
        pytest.param("read", FileText("/a", 98, ("x", "", "{}")), "98\tx\n99\t\n100\t{}", id="from-a-line"),
        pytest.param("write", Created("/a", False, (), 1, 11), "1 lines", id="one-line"),
        pytest.param("write", Created("/a", False, (), 2, 4, final_newline=True), "3 lines", id="counted-as-read"),
        pytest.param("write", Created("/a", True, (), 0, 0), "1 lines", id="nothing"),
        pytest.param("write", Created("/a", True, (), 1, 1, final_newline=True), "2 lines", id="one-newline"),
        pytest.param("edit", Edited("/a", "", 1, 1, (("x", "y"),)), "- x\n+ y", id="one-line-for-another"),
        pytest.param(
            "edit", Edited("/a", "", 1, 1, (("a\nb\n", "c\n\nd"),)), "- a\n- b\n+ c\n+ \n+ d", id="several-lines"
        ),
        pytest.param("edit", Edited("/a", "", 1, 1, (("a\nb", ""),)), "- a\n- b", id="deletion"),
        pytest.param("edit", Edited("/a", "", 1, 1, (("\n", ""),)), "- ", id="deletion-of-a-newline"),
        pytest.param("edit", Edited("/w/a", "", 1, 1), "edited /w/a", id="nothing-to-show"),
        pytest.param("bash", CommandResult("x", "/w", "", 0), "(no output)", id="no-output"),
        pytest.param("bash", CommandResult("x", "/w", "out\n", 0), "out\n", id="output"),
        pytest.param("bash", CommandResult("x", "/w", "", 7), "exit code: 7", id="exit-code"),
        pytest.param("bash", CommandResult("x", "/w", "out\n", 7), "out\n\nexit code: 7", id="output-and-exit-code"),
        pytest.param(
            "bash", CommandResult("x", "/w", "", 143, 2.0), "error: command timed out after 2s", id="timed-out"
        ),
        pytest.param(
            "bash", CommandResult("x", "/w", "a", 0, 1.2), "a\nerror: command timed out after 2s", id="seconds-round-up"
        ),
        pytest.param("bash", CommandResult("x", "/w", "", 124), "exit code: 124", id="a-command-s-own-124"),
    ],
)
def test_an_outcome_reads_like_this(face, outcome, said):
    assert FACES[face].says(outcome) == said


@given(st.text(st.sampled_from("ab\n"), max_size=30))
def test_every_newline_begins_a_numbered_line(text):
    """As the seed's program counts them: what stands between newlines, before the first and behind the last."""
    lines = text.removesuffix("\n").split("\n") if text else []
    outcome = FileText("/a", 1, tuple(lines), len(lines), final_newline=text.endswith("\n"))
    said = FACES["read"].says(outcome)

    assert said == "\n".join(f"{number}\t{line}" for number, line in enumerate(text.split("\n"), 1))
    assert FACES["write"].says(Created("/a", False, (), len(lines), 0, text.endswith("\n"))) == (
        f"{text.count(chr(10)) + 1} lines"
    )


def test_an_image_is_an_image():
    said = FACES["read"].says(Picture("/a.png", "image/png", b"\x89PNG"))

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
    assert FACES["bash"].failed(outcome) is failed


@each_row(
    ("face", "failure", "said"),
    [
        pytest.param(
            "read", ToolFailure("No.", code="not-found", path="/w/a"), "error: failed to read file: /w/a", id="missing"
        ),
        pytest.param(
            "read",
            ToolFailure("It is binary.", code="binary", path="/w/a", count=512),
            "error: /w/a appears to be a binary file (512 bytes)",
            id="binary",
        ),
        pytest.param(
            "edit",
            ToolFailure("", code="not-found", path="/w/a"),
            "error: failed to read file: /w/a",
            id="edit-missing",
        ),
        pytest.param("edit", ToolFailure("", code="no-match"), "error: old_string not found in file", id="no-match"),
        pytest.param(
            "edit",
            ToolFailure("The closest is {line}.", code="no-match"),
            "error: old_string not found in file\nThe closest is {line}.",
            id="no-match-explained",
        ),
        pytest.param(
            "edit",
            ToolFailure("", code="ambiguous", count=4),
            "error: old_string is not unique (found 4 times)",
            id="ambiguous",
        ),
        pytest.param(
            "write",
            ToolFailure("", code="protected-folder", path="/w/vendor/a"),
            "error: path is in a protected directory: /w/vendor/a",
            id="protected",
        ),
        pytest.param("write", ToolFailure("The disk is full.", code="other"), "error: The disk is full.", id="other"),
        pytest.param("bash", ToolFailure("The command is empty."), "error: The command is empty.", id="no-code"),
        pytest.param("bash", BadArguments("timeout: no."), "validation error: timeout: no.", id="bad-arguments"),
    ],
)
def test_failures_are_said_in_the_seed_s_sentences(face, failure, said):
    assert FACES[face].sentence(failure) == said


READ_LIMITS = {
    "usual_lines": None,
    "most_bytes": 8 << 20,
    "ranged_bytes": 50_000,
    "broad_bytes": 8 << 20,
    "number_bytes": 10,
    "line_bytes": 8 << 20,
    "decoded": ("image",),
    "folders": False,
}
BASH_LIMITS = {
    "flags": ("-o", "pipefail", "-e"),
    "head_chars": 60_000,
    "tail_chars": 60_000,
}


@each_row(
    ("face", "given_input", "canonical"),
    [
        pytest.param("read", {"path": "/a"}, {"path": "/a", **READ_LIMITS}, id="read-all"),
        pytest.param(
            "read",
            {"path": "/a", "offset": 1, "limit": 5},
            {"path": "/a", "offset": 1, "limit": 5, **READ_LIMITS},
            id="lines-are-counted-from-1",
        ),
        pytest.param("read", {"path": "/a", "offset": 0, "limit": 0}, {"path": "/a", **READ_LIMITS}, id="0-is-all"),
        pytest.param("read", {"path": "/a", "offset": -1}, {"path": "/a", **READ_LIMITS}, id="before-the-start"),
        pytest.param(
            "write", {"path": "/a", "content": "x"}, {"path": "/a", "content": "x", "final_newline": False}, id="write"
        ),
        pytest.param(
            "edit",
            {"path": "/a", "old_string": "x", "new_string": "y"},
            {"path": "/a", "old": "x", "new": "y"},
            id="edit",
        ),
        pytest.param("bash", {"command": "ls"}, {"command": "ls", "seconds": 120, **BASH_LIMITS}, id="bash"),
        pytest.param(
            "bash",
            {"command": "ls", "timeout": 1500},
            {"command": "ls", "seconds": 1.5, **BASH_LIMITS},
            id="bash-milliseconds",
        ),
    ],
)
def test_arguments_become_canonical_with_the_seed_s_limits(face, given_input, canonical):
    assert FACES[face].canonical(given_input) == canonical


def arguments(face: Face) -> st.SearchStrategy[dict[str, Any]]:
    """Any arguments that the face's schema allows."""
    some: dict[str, st.SearchStrategy[Any]] = {"string": texts, "integer": st.integers(-5, 10**7)}
    values = {name: some[about["type"]] for name, about in face.schema["properties"].items()}
    required = set(face.schema["required"])
    return st.fixed_dictionaries(
        {name: value for name, value in values.items() if name in required},
        optional={name: value for name, value in values.items() if name not in required},
    )


@EACH
def test_shown_and_read_back_the_arguments_are_the_same(face: Face):
    schema = Schema(face.schema)

    @given(arguments(face))
    def law(values):
        canonical = face.canonical(values)
        shown = face.advertised(canonical)

        assert schema.fit(dict(shown)) == (shown, ())
        assert face.canonical(shown) == canonical

    law()


@pytest.mark.parametrize(
    ("face", "bound"),
    [
        pytest.param("bash", Ends(30_000, 256), id="bash"),
        pytest.param("read", Ends(50_000), id="read"),
        pytest.param("write", Ends(10_000), id="write"),
        pytest.param("edit", Ends(10_000), id="edit"),
    ],
)
def test_a_long_result_keeps_both_ends(face, bound):
    assert FACES[face].bound == bound


MANY_LINES = "\n".join(f"L{number}" for number in range(1, 301))


@each_row(
    ("face", "text", "cut"),
    [
        pytest.param("bash", "hello world", None, id="truncate_output_short"),
        pytest.param("bash", "x" * 30_000, None, id="truncate_output_bash_limit-fits"),
        pytest.param("bash", "x" * 50_000, "20000 bytes removed", id="truncate_output_bash_limit"),
        pytest.param("read", "x" * 30_001, None, id="truncate_output_read_limit-fits"),
        pytest.param("read", "x" * 60_000, "10000 bytes removed", id="truncate_output_read_limit"),
        pytest.param("bash", MANY_LINES, "[...44 lines omitted...]", id="truncate_output_bash_line_limit"),
        pytest.param("read", MANY_LINES, None, id="truncate_output_read_no_line_limit"),
        pytest.param("write", "x" * 10_001, "1 bytes removed", id="write"),
        pytest.param("edit", "x" * 10_001, "1 bytes removed", id="edit"),
    ],
)
def test_each_tool_has_the_limits_of_the_seed(face, text, cut):
    short = shorten(text, FACES[face].bound)

    assert (short.text == text) is (cut is None)
    assert (cut or "") in short.text


@each_row(
    ("schema", "values", "lines"),
    [
        pytest.param(
            {"name": "string", "age": "integer"}, {"name": "Alice", "age": 30}, None, id="validate_input_valid"
        ),
        pytest.param({"name": "string"}, {}, ["name: required"], id="validate_input_missing_required"),
        pytest.param({"name": "string"}, {"name": ["x"]}, ["name: "], id="validate_input_wrong_type"),
        pytest.param(
            {"name": "string", "age": "integer"},
            {"age": "old"},
            ["name: required", "age: "],
            id="validate_input_multiple_errors",
        ),
        pytest.param({"name": "string", "age?": "integer"}, {"name": "x"}, None, id="validate_input_optional_missing"),
        pytest.param({"name?": "string"}, {}, None, id="validate_input_no_required"),
        pytest.param({"yes": "boolean"}, {"yes": True}, None, id="validate_input_boolean_type"),
        pytest.param({"yes": "boolean"}, {"yes": 7}, ["yes: "], id="validate_input_boolean_type-wrong"),
    ],
)
def test_arguments_are_held_against_the_schema(schema, values, lines):
    properties = {name.rstrip("?"): {"type": kind} for name, kind in schema.items()}
    required = [name for name in schema if not name.endswith("?")]
    judge = Schema({"type": "object", "properties": properties, "required": required})
    if lines is None:
        assert judge.fit(dict(values)) == (values, ())
        return
    with pytest.raises(BadArguments) as caught:
        judge.fit(dict(values))

    said = caught.value.message.split("\n")
    assert len(said) == len(lines)
    assert all(line.startswith(beginning) for line, beginning in zip(said, lines, strict=True))


@pytest.fixture
async def engine(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Engine(workspace, dialect="ah", ask=lambda question: question.kind == "call") as opened:
        yield opened


@pytest.fixture
def root(engine, tmp_path):
    """The workspace's folder, by its real path."""
    return Path(os.path.realpath(tmp_path / "workspace"))


async def test_the_four_tools_of_the_seed_are_advertised(engine):
    """`tool_definitions`"""
    shown = engine.definitions()

    assert [one["name"] for one in shown] == ["read", "write", "edit", "bash"]
    assert all(one["description"] and one["inputSchema"]["type"] == "object" for one in shown)


@pytest.mark.parametrize(
    ("name", "given_input", "line"),
    [
        pytest.param("read", {}, "path: required", id="execute_tool_validation_error"),
        pytest.param("read", {"path": ["a"]}, "path: ", id="execute_tool_type_validation"),
        pytest.param("read", {"path": "a", "offset": "first"}, "offset: ", id="no-number"),
        pytest.param("write", {"path": "a"}, "content: required", id="write-nothing"),
        pytest.param("edit", {"path": "a", "old_string": "x"}, "new_string: required", id="edit-half"),
        pytest.param("bash", {"timeout": 5}, "command: required", id="no-command"),
        pytest.param("bash", {"command": "ls", "timeout": 0}, "timeout: must be more than 0", id="no-time"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_by_their_names(engine, name, given_input, line):
    reply = await engine.call(name, **given_input)

    assert (reply.status, reply.error.error_code) == ("error", "bad-arguments")
    assert reply.text.startswith(f"validation error: {line}")


@pytest.mark.parametrize(
    ("content", "window", "said"),
    [
        pytest.param("test-hostname\n", {}, "1\ttest-hostname\n2\t", id="read_tool"),
        pytest.param("hello world", {}, "1\thello world", id="read_text_not_image"),
        pytest.param("a\nb\nc", {"offset": 2}, "2\tb\n3\tc", id="from-a-line"),
        pytest.param("a\nb\nc", {"offset": 2, "limit": 1}, "2\tb", id="one-line"),
        pytest.param("a\nb\nc", {"offset": "2", "limit": "1"}, "2\tb", id="numbers-in-strings"),
        pytest.param("a\nb\nc", {"limit": 0}, "1\ta\n2\tb\n3\tc", id="0-is-all"),
        pytest.param("a\nb\n", {"offset": 3}, "3\t", id="behind-the-last-newline"),
        pytest.param("a\nb\n", {"offset": 4}, "", id="past-the-end"),
        pytest.param("", {}, "1\t", id="empty-file"),
    ],
)
async def test_a_file_is_read_like_this(engine, root, content, window, said):
    (root / "a.txt").write_text(content)
    reply = await engine.call("read", path="a.txt", **window)

    assert (reply.status, reply.result) == ("done", said)


@pytest.mark.parametrize(
    ("form", "name", "media_type"),
    [
        pytest.param("PNG", "a.png", "image/png", id="read_image_png"),
        pytest.param("JPEG", "a.jpg", "image/jpeg", id="read_image_jpg"),
        pytest.param("WEBP", "a.webp", "image/webp", id="read_image_webp"),
        pytest.param("GIF", "a.gif", "image/gif", id="read_image_gif"),
    ],
)
async def test_an_image_is_read_as_one(engine, root, form, name, media_type):
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, form)
    (root / name).write_bytes(file.getvalue())
    reply = await engine.call("read", path=name)

    assert reply.result == {
        "type": "image",
        "media_type": media_type,
        "data": base64.b64encode(file.getvalue()).decode(),
    }


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"MZ\0\0PE\0\0binary content\0\0more", id="read_binary_file"),
        pytest.param(bytes(range(1, 9)) * 40 + b"text", id="read_binary_by_control_chars"),
    ],
)
async def test_a_binary_file_is_refused_with_its_size(engine, root, content):
    (root / "a.bin").write_bytes(content)
    reply = await engine.call("read", path="a.bin")

    assert reply.status == "error"
    assert reply.text == f"error: {root}/a.bin appears to be a binary file ({len(content)} bytes)"


async def test_what_is_no_file_cannot_be_read(engine, root):
    """`read_nonexistent`"""
    (root / "folder").mkdir()
    missing = await engine.call("read", path="nonexistent")
    folder = await engine.call("read", path="folder")

    assert missing.text == f"error: failed to read file: {root}/nonexistent"
    assert folder.text.startswith(f"error: failed to read file: {root}/folder")
    assert not missing.ok
    assert not folder.ok


async def test_a_long_file_keeps_both_ends_and_is_kept_whole(engine, root):
    lines = ["é" * 40 for _ in range(2000)]
    (root / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    whole = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, 1))
    reply = await engine.call("read", path="a.txt")

    head, _, tail = reply.result.partition("\n\n[output truncated: ")
    removed, _, tail = tail.partition(" bytes removed from middle]\n\n")
    assert int(removed) == len(whole.encode()) - 50_000
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert 24_998 <= len(head.encode()) <= 25_000
    assert 24_998 <= len(tail.encode()) <= 25_000
    assert (await engine.output(reply.output_id)).read(0, 10**7).text == whole


async def test_a_file_is_written_as_it_is(engine, root):
    """`write_tool`"""
    new = await engine.call("write", path="deep/er/a.txt", content="hello world")
    over = await engine.call("write", path="deep/er/a.txt", content="a\r\nb\n\nc")

    assert new.result == "1 lines"
    assert over.result == "4 lines"
    assert (root / "deep/er/a.txt").read_bytes() == b"a\r\nb\n\nc"


@pytest.mark.parametrize(
    ("content", "old", "new", "said", "left"),
    [
        pytest.param("hello world", "hello", "goodbye", "- hello\n+ goodbye", "goodbye world", id="edit_tool"),
        pytest.param(
            "value = 100", "100", "50%1", "- 100\n+ 50%1", "value = 50%1", id="edit_tool_percent_in_replacement"
        ),
        pytest.param("a.b(c)%d", "b(c)%", ".", "- b(c)%\n+ .", "a..d", id="no-pattern-is-magic"),
        pytest.param("one\ntwo\n", "one\n", "", "- one", "two\n", id="deletion"),
        pytest.param("x x", "x", "y", "error: old_string is not unique (found 2 times)\n", "x x", id="ambiguous"),
        pytest.param("hello", "absent", "y", "error: old_string not found in file\n", "hello", id="absent"),
        pytest.param("hello", "", "y", "error: old_string is empty", "hello", id="empty"),
        pytest.param("hello", "hello", "hello", "error: old_string and new_string are the same", "hello", id="same"),
    ],
)
async def test_an_edit_does_this_without_a_read_before(engine, root, content, old, new, said, left):
    (root / "a.txt").write_text(content)
    reply = await engine.call("edit", path="a.txt", old_string=old, new_string=new)

    assert reply.ok is not said.startswith("error: ")
    assert reply.text.startswith(said) if said.startswith("error: ") else reply.text == said
    assert (root / "a.txt").read_text() == left


async def test_what_is_not_there_cannot_be_edited(engine, root):
    reply = await engine.call("edit", path="gone", old_string="a", new_string="b")

    assert (reply.status, reply.text) == ("error", f"error: failed to read file: {root}/gone")


async def test_secret_and_protected_files_are_errors_like_all_others(engine, root):
    (root / ".env").write_text("KEY=1")
    replies = [
        await engine.call("read", path=".env"),
        await engine.call("write", path=".env", content=""),
        await engine.call("edit", path=".git/config", old_string="a", new_string="b"),
    ]

    assert [reply.status for reply in replies] == ["error"] * 3
    assert all(reply.text.startswith("error: Refusing to ") for reply in replies)


@pytest.mark.parametrize(
    ("folders", "path", "refused"),
    [
        pytest.param("{root}/vendor", "vendor/a.txt", True, id="absolute"),
        pytest.param("other:vendor", "vendor/deep/a.txt", True, id="relative-and-second"),
        pytest.param("vendor/", "{root}/vendor/a.txt", True, id="with-a-slash"),
        pytest.param("vendor", "sub/../vendor/a.txt", True, id="around-a-corner"),
        pytest.param("vendor", "link/a.txt", True, id="through-a-link"),
        pytest.param("link", "vendor/a.txt", True, id="named-by-a-link"),
        pytest.param("vendor", "VENDOR/a.txt", True, id="in-other-letters"),
        pytest.param("vendor", "vendored/a.txt", False, id="only-its-beginning"),
        pytest.param("vendor", "a.txt", False, id="beside-it"),
        pytest.param("::", "a.txt", False, id="no-folders"),
        pytest.param("", "a.txt", False, id="nothing"),
    ],
)
async def test_no_file_is_written_in_a_protected_directory(tmp_path, monkeypatch, folders, path, refused):
    root = tmp_path / "workspace"
    for name in ("vendor", "vendored", "sub"):
        (root / name).mkdir(parents=True)
    (root / "link").symlink_to("vendor")
    monkeypatch.setenv("AH_PROTECT_DIRS", folders.replace("{root}", str(root)).replace(":", os.pathsep))
    path = path.replace("{root}", str(root))
    patch = f"*** Begin Patch\n*** Add File: {path}.new\n+a\n*** End Patch"
    async with Engine(root, dialect="ah", ask=lambda question: question.kind == "call") as engine:
        written = await engine.call("write", path=path, content="a")
        edited = await engine.call("edit", path=path, old_string="a", new_string="b")
        # Whatever words a call comes in, the folders are the session's.
        others = await engine.run(
            [
                Call("apply_patch", {"input": patch}),
                Call("edit", {"path": path, "edits": [{"oldText": "b", "newText": "c"}]}),
                Call("delete_file", {"path": path}),
            ]
        )

    assert (written.ok, edited.ok) == (not refused, not refused)
    assert [reply.ok for reply in others] == [not refused] * 3
    if refused:
        assert (
            written.text == edited.text == f"error: path is in a protected directory: {os.path.realpath(root / path)}"
        )
        assert not os.path.exists(root / path)
        assert {reply.error.error_code for reply in others if reply.error} == {"protected-folder"}


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        pytest.param("echo hello", "done", "hello\n", id="bash_tool"),
        pytest.param("exit 1", "error", "exit code: 1", id="bash_exit_code"),
        pytest.param("echo out; echo err >&2", "done", "out\nerr\n", id="both-streams"),
        pytest.param("true", "done", "(no output)", id="no-output"),
        pytest.param("echo a; false; echo b", "error", "a\n\nexit code: 1", id="stops-at-the-first-failure"),
        pytest.param("false | cat; echo b", "error", "exit code: 1", id="also-inside-a-pipeline"),
        pytest.param("exit 124", "error", "exit code: 124", id="a-command-s-own-124"),
        pytest.param("echo one\necho {a,b}", "done", "one\na b\n", id="bash-itself"),
    ],
)
async def test_a_command_says_this(engine, command, status, said):
    reply = await engine.call("bash", command=command)

    assert (reply.status, reply.text) == (status, said)


async def test_a_command_sees_the_environment(engine, monkeypatch):
    """`bash_env_passthrough`"""
    monkeypatch.setenv("SHADE_OF_GREEN", "olive")
    reply = await engine.call("bash", command="echo $SHADE_OF_GREEN")

    assert reply.result == "olive\n"


async def test_a_command_is_stopped_after_its_milliseconds(engine):
    """`bash_timeout`"""
    reply = await engine.call("bash", command="exec sleep 60", timeout=300)

    assert (reply.status, reply.text) == ("error", "error: command timed out after 1s")


async def test_a_command_that_ends_in_time_is_left_alone(engine):
    """`bash_timeout_not_triggered`"""
    reply = await engine.call("bash", command="echo fast", timeout=60_000)

    assert (reply.status, reply.result) == ("done", "fast\n")


async def test_a_long_output_keeps_both_ends_and_is_kept_whole(engine):
    reply = await engine.call("bash", command="seq 1 1000; exit 3")

    whole = "".join(f"{number}\n" for number in range(1, 1001)) + "\nexit code: 3"
    lines = whole.split("\n")
    gone = len(lines) - 256
    assert reply.text == "\n".join([*lines[:128], f"[...{gone} lines omitted...]", *lines[-128:]])
    assert reply.status == "error"
    assert (await engine.output(reply.output_id)).read(0, 10**7).text == whole


async def test_an_endless_output_shows_its_real_ends(engine):
    reply = await engine.call("bash", command="seq -s ' ' 1 200000")

    assert reply.result.startswith("1 2 3 ")
    assert reply.result.endswith(" 199999 200000\n")
    assert " bytes removed from middle]" in reply.result
    assert "characters are not shown" not in reply.result
    assert len(reply.result) < 30_100
    assert reply.output_id is not None
