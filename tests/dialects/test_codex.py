"""Codex's faces, those of today and those that older models call: schemas, words, patches as free text, blocks."""

import base64
import io
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.rows import each_row
from tests.scripted import YES, Scripted

from ferrule import Call, Engine
from ferrule.core.content import (
    CommandResult,
    FileText,
    FolderTree,
    ListDirEntry,
    Matching,
    PatchApplied,
    Patched,
    Picture,
    Planned,
)
from ferrule.core.errors import BadArguments
from ferrule.core.tool import Face, Middle
from ferrule.dialects import COMING, load_dialect
from ferrule.tools import BUILTIN

CODEX = load_dialect("codex")
FACES = {face.name: face for face in CODEX.faces}

PARAMETERS = {
    "exec_command": "cmd* workdir tty yield_time_ms max_output_tokens shell login environment_id sandbox_permissions"
    " justification prefix_rule additional_permissions",
    "write_stdin": "session_id* chars yield_time_ms max_output_tokens",
    "apply_patch": "input*",
    "update_plan": "plan* explanation",
    "view_image": "path* detail environment_id",
    "request_user_input": "questions*",
    "request_permissions": "permissions* reason environment_id",
    "tool_search": "query* limit",
    "spawn_agent": "message* task_name* agent_type fork_turns model reasoning_effort",
    "spawn_agent_v1": "message items agent_type fork_context model reasoning_effort service_tier",
    "wait_agent": "targets timeout_ms",
    "list_agents": "path_prefix",
    "resume_agent": "id*",
    "send_input": "target* message items interrupt",
    "close_agent": "target*",
    "list_mcp_resources": "server cursor",
    "list_mcp_resource_templates": "server cursor",
    "read_mcp_resource": "server* uri*",
    "shell": "command* workdir timeout_ms sandbox_permissions justification",
    "shell_command": "command* workdir timeout_ms login sandbox_permissions justification prefix_rule",
    "read_file": "file_path* offset limit mode indentation",
    "list_dir": "dir_path* offset limit depth",
    "grep_files": "pattern* include path limit",
}
"""As the facts about the family have them; a star marks what is required, which comes first."""


@each_row("name", sorted(PARAMETERS))
def test_the_parameters_are_the_family_s(name):
    schema = FACES[name].schema
    required = schema.get("required", ())
    shown = [one + "*" * (one in required) for one in schema["properties"]]

    assert shown == PARAMETERS[name].split()
    assert schema["additionalProperties"] is False


def test_there_are_no_other_tools():
    assert set(FACES) == set(PARAMETERS)
    assert {face.tool for face in CODEX.faces} - set(BUILTIN) <= set(COMING)


@each_row(
    ("name", "path", "default"),
    [
        ("read_file", "offset", 1),
        ("read_file", "limit", 2000),
        ("list_dir", "offset", 1),
        ("list_dir", "limit", 25),
        ("list_dir", "depth", 2),
        ("grep_files", "limit", 100),
        ("exec_command", "yield_time_ms", 10_000),
        ("exec_command", "login", True),
        ("tool_search", "limit", 8),
    ],
)
def test_the_defaults_are_the_family_s(name, path, default):
    assert FACES[name].schema["properties"][path]["default"] == default


@each_row("face", FACES.values())
def test_every_tool_and_every_parameter_is_described(face: Face):
    def bare(schema: Any) -> list[str]:
        if not isinstance(schema, dict):
            return []
        inner = schema.get("properties", {})
        below = [*inner.values(), schema.get("items")]
        return [name for name, about in inner.items() if not about.get("description")] + [
            one for about in below for one in bare(about)
        ]

    assert face.words.endswith(".")
    assert bare(face.schema) == []


PNG = Picture("/a.png", "image/png", b"\x89PNG")


@each_row(
    ("face", "outcome", "said"),
    [
        pytest.param("read_file", FileText("/a", 9, ("x", "")), "L9: x\nL10: ", id="lines"),
        pytest.param("read_file", FileText("/a", 1, (), 0), "The file is empty.", id="empty"),
        pytest.param("read_file", FileText("/a", 9, (), 3), "The file has 3 lines; line 9 is past its end.", id="past"),
        pytest.param(
            "apply_patch",
            PatchApplied(
                (
                    Patched("add", "/w/a", None, ""),
                    Patched("update", "/w/b", None, ""),
                    Patched("update", "/w/c", "/w/d", ""),
                    Patched("delete", "/w/e", None, ""),
                )
            ),
            "Success. Updated the following files:\nA /w/a\nM /w/b\nM /w/d\nD /w/e",
            id="patched",
        ),
        pytest.param("update_plan", Planned(()), "Plan updated", id="planned"),
        pytest.param(
            "view_image",
            PNG,
            [
                {"type": "text", "text": "/a.png"},
                {"type": "image", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG").decode()},
            ],
            id="picture",
        ),
        pytest.param(
            "list_dir",
            FolderTree("/w", (ListDirEntry("a", "folder"), ListDirEntry("a/b", "file"), ListDirEntry("c", "link")), 0),
            "Absolute path: /w\na/\n  b\nc@",
            id="listed",
        ),
        pytest.param(
            "list_dir",
            FolderTree("/w", (ListDirEntry("a", "file"),), 3),
            "Absolute path: /w\na\nMore than 1 entries found; use offset for the others",
            id="listed-in-part",
        ),
        pytest.param("list_dir", FolderTree("/w", (), 0), "Absolute path: /w\n(nothing here)", id="nothing-listed"),
        pytest.param("grep_files", Matching((("b", 0), ("a", 0)), 2), "b\na", id="files"),
        pytest.param("grep_files", Matching((), 0), "No matches found.", id="no-files"),
        *(
            pytest.param(
                name,
                CommandResult("x", "/w", "out\n", 3, took=1.24),
                "Exit code: 3\nWall time: 1.2 seconds\nOutput:\nout\n",
                id=name,
            )
            for name in ("shell", "shell_command")
        ),
        pytest.param(
            "shell_command",
            CommandResult("x", "/w", "out\n", 143, 2.0, took=2.04),
            "Exit code: 143\nWall time: 2.0 seconds\nStopped after 2 seconds.\nOutput:\nout\n",
            id="stopped",
        ),
    ],
)
def test_outcomes_are_said_as_its_models_know_them(face, outcome, said):
    assert FACES[face].says(outcome) == said


@each_row(
    ("face", "values", "heard"),
    [
        pytest.param(
            "shell_command",
            {"command": "ls", "workdir": "/w", "timeout_ms": 1500, "justification": "Why?", "login": True},
            {"command": "ls", "cwd": "/w", "seconds": 1.5, "description": "Why?"},
            id="shell_command",
        ),
        pytest.param("shell", {"command": ["ls", "-l"]}, {"command": "ls -l"}, id="words"),
        pytest.param(
            "shell", {"command": ["echo", "a b", "$x"]}, {"command": "echo 'a b' '$x'"}, id="words-with-blanks"
        ),
        pytest.param("shell", {"command": ["bash", "-lc", "a | b"]}, {"command": "a | b"}, id="bash"),
        pytest.param("shell", {"command": ["/bin/sh", "-c", "a > b"]}, {"command": "a > b"}, id="sh"),
        pytest.param("shell", {"command": ["bash", "-c", "a", "b"]}, {"command": "bash -c a b"}, id="bash-with-more"),
        pytest.param("shell", {"command": ["bash", "-xc", "a b"]}, {"command": "bash -xc 'a b'"}, id="bash-otherwise"),
        pytest.param("shell", {"command": ["./bash", "-c", "a b"]}, {"command": "./bash -c 'a b'"}, id="another-bash"),
        pytest.param("shell", {"command": ["zsh", "-lc", "a b"]}, {"command": "zsh -lc 'a b'"}, id="another-shell"),
        pytest.param("shell", {"command": ["git status"]}, {"command": "git status"}, id="a-line-as-one-word"),
        pytest.param(
            "update_plan",
            {"plan": [{"step": "a", "status": "pending"}], "explanation": "x"},
            {"steps": [{"text": "a", "status": "pending"}], "explanation": "x"},
            id="plan",
        ),
        pytest.param("view_image", {"path": "a", "detail": "original"}, {"path": "a", "original": True}, id="original"),
        pytest.param("view_image", {"path": "a", "detail": "high"}, {"path": "a", "original": False}, id="high"),
        pytest.param("view_image", {"path": "a", "environment_id": "x"}, {"path": "a"}, id="usual-detail"),
        pytest.param("grep_files", {"pattern": "x", "include": "*.py"}, {"pattern": "x", "glob": "*.py"}, id="grep"),
        pytest.param(
            "read_file",
            {"file_path": "a", "mode": "indentation", "indentation": {"anchor_line": 3}},
            {"path": "a", "mode": "indentation", "block": {"anchor_line": 3}},
            id="block",
        ),
    ],
)
def test_arguments_become_canonical(face, values, heard):
    assert FACES[face].heard(values) == heard


@given(st.lists(st.text("ab -'\"$;|\\\n", max_size=6), min_size=1, max_size=4))
def test_the_words_of_a_program_reach_it_as_they_are(words):
    heard = FACES["shell"].heard({"command": words})["command"]

    is_line = len(words) == 1 and any(character.isspace() for character in words[0])
    assert heard == words[0] if is_line else shlex.split(heard) == words


@given(st.text("ab -'\"$;|\\\n", min_size=1, max_size=20))
def test_any_command_line_can_be_shown_as_words(line):
    shell = FACES["shell"]

    assert shell.heard(shell.advertised({"command": line})) == {"command": line}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param([], "command: is empty; give a program and its arguments.", id="nothing"),
        pytest.param(
            ["apply_patch", "*** Begin Patch"],
            "command: apply_patch is a tool and not a program; call it with the patch as its input.",
            id="a-tool-as-a-program",
        ),
    ],
)
def test_words_that_run_nothing_are_refused(words, message):
    with pytest.raises(BadArguments) as caught:
        FACES["shell"].heard({"command": words})

    assert caught.value.message == message


def test_a_long_output_loses_its_middle():
    for name in ("shell", "shell_command"):
        assert FACES[name].bound == Middle(40_000)
        assert min(FACES[name].fill["head_chars"], FACES[name].fill["tail_chars"]) >= 80_000


@pytest.fixture
async def session(tmp_path):
    async with Engine(tmp_path, dialect="codex", ask=lambda question: question.kind == "call") as engine:
        yield engine


@pytest.fixture
def root(tmp_path):
    """The real folder of the session, with a few files."""
    real = Path(os.path.realpath(tmp_path))
    (real / "a.py").write_bytes(b"x = 1\n\n# about f\ndef f():\n    if x:\n        return 1\n    return 2\n\ny = 2\n")
    (real / "sub").mkdir()
    (real / "sub" / "b.py").write_bytes(b"x = 2\n")
    (real / "empty").write_bytes(b"")
    for age, name in enumerate(["a.py", "sub/b.py"]):
        os.utime(real / name, (1_700_000_000 + age, 1_700_000_000 + age))
    return real


def block(**more: Any) -> dict[str, Any]:
    return {"file_path": "a.py", "mode": "indentation", "indentation": more}


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        pytest.param(
            "read_file", {"file_path": "a.py", "offset": 4, "limit": 2}, "L4: def f():\nL5:     if x:", id="read"
        ),
        pytest.param("read_file", {"file_path": "empty"}, "The file is empty.", id="read-empty"),
        pytest.param(
            "read_file",
            {"file_path": "a.py", "offset": 99},
            "The file has 9 lines; line 99 is past its end.",
            id="past",
        ),
        pytest.param(
            "read_file",
            block(anchor_line=6),
            "L3: # about f\nL4: def f():\nL5:     if x:\nL6:         return 1\nL7:     return 2",
            id="block",
        ),
        pytest.param(
            "read_file",
            block(anchor_line=6, max_levels=1),
            "L5:     if x:\nL6:         return 1",
            id="block-of-one-level",
        ),
        pytest.param(
            "read_file",
            block(anchor_line=6, include_header=False, max_lines=3),
            "L5:     if x:\nL6:         return 1\nL7:     return 2",
            id="block-of-few-lines",
        ),
        pytest.param(
            "read_file",
            {"file_path": "a.py", "mode": "indentation", "offset": 9},
            "L9: y = 2",
            id="block-at-the-offset",
        ),
        pytest.param(
            "read_file", {"file_path": "empty", "mode": "indentation"}, "The file is empty.", id="block-of-nothing"
        ),
        pytest.param(
            "list_dir", {"dir_path": "."}, "Absolute path: {root}\na.py\nempty\nsub/\n  b.py", id="list-two-levels"
        ),
        pytest.param("list_dir", {"dir_path": "sub", "depth": 1}, "Absolute path: {root}/sub\nb.py", id="list-one"),
        pytest.param(
            "list_dir",
            {"dir_path": "{root}", "offset": 2, "limit": 1},
            "Absolute path: {root}\nempty\nMore than 1 entries found; use offset for the others",
            id="list-a-page",
        ),
        pytest.param("grep_files", {"pattern": "x ="}, "sub/b.py\na.py", id="grep-newest-first"),
        pytest.param("grep_files", {"pattern": "x =", "include": "a.*"}, "a.py", id="grep-some"),
        pytest.param("grep_files", {"pattern": "x =", "limit": 1}, "sub/b.py", id="grep-the-first"),
        pytest.param("grep_files", {"pattern": "X ="}, "No matches found.", id="grep-nothing"),
        pytest.param("update_plan", {"plan": [{"step": "a", "status": "in_progress"}]}, "Plan updated", id="plan"),
    ],
)
async def test_calls_that_fit_are_answered(session, root, name, values, said):
    filled = {
        key: value.replace("{root}", str(root)) if isinstance(value, str) else value for key, value in values.items()
    }
    reply = await session.call(name, **filled)

    assert (reply.status, reply.result) == ("done", said.replace("{root}", str(root)))


@pytest.mark.parametrize(
    ("name", "values", "start"),
    [
        pytest.param("read_file", {}, "file_path: required, but missing.", id="read-what"),
        pytest.param(
            "read_file", {"file_path": "b.py"}, "{root}/b.py is not there. Did you mean {root}/a.py?", id="read-missing"
        ),
        pytest.param("read_file", {"file_path": "sub"}, "{root}/sub is a folder.", id="read-folder"),
        pytest.param(
            "read_file", {"file_path": "a.py", "offset": 0}, "offset: must be at least 1, not 0.", id="read-from-0"
        ),
        pytest.param(
            "read_file",
            block(anchor_line=10),
            "indentation: the file has 9 lines; line 10 is past its end.",
            id="block-past",
        ),
        pytest.param(
            "read_file", block(anchor_line=0), "indentation.anchor_line: must be at least 1", id="block-before"
        ),
        pytest.param("read_file", block(max_lines=0), "indentation.max_lines: must be at least 1", id="block-of-none"),
        pytest.param(
            "read_file", {"file_path": "a.py", "mode": "tree"}, 'mode: must be one of "slice"', id="read-mode"
        ),
        pytest.param("list_dir", {"dir_path": "a.py"}, "{root}/a.py is not a folder.", id="list-a-file"),
        pytest.param("list_dir", {"dir_path": "nope"}, "{root}/nope is not there", id="list-nowhere"),
        pytest.param(
            "list_dir", {"dir_path": ".", "depth": 0}, "depth: must be at least 1, not 0.", id="list-no-level"
        ),
        pytest.param("grep_files", {"pattern": "("}, "regex parse error: unclosed group", id="grep-bad"),
        pytest.param(
            "grep_files", {"pattern": "x", "limit": 2001}, "limit: must be at most 2000, not 2001.", id="grep-many"
        ),
        pytest.param("view_image", {"path": "a.py"}, "{root}/a.py is not a PNG", id="view-a-text"),
        pytest.param("view_image", {"path": "a.png"}, "{root}/a.png is not there.", id="view-nothing"),
        pytest.param("view_image", {"path": "a.png", "detail": "low"}, 'detail: must be one of "high"', id="view-how"),
        pytest.param("shell", {"command": []}, "command: is empty; give a program", id="run-nothing"),
        pytest.param(
            "shell", {"command": ["x"], "timeout_ms": 0}, "timeout_ms: must be more than 0.", id="run-no-time"
        ),
        pytest.param("apply_patch", {"input": "x"}, 'input: line 1: expected "*** Begin Patch"', id="no-patch"),
        pytest.param(
            "spawn_agent",
            {"message": "x", "task_name": "y"},
            "The subagent general-purpose cannot be run: this session has no model to run it.",
            id="no-model",
        ),
    ],
)
async def test_calls_that_do_not_fit_say_why(session, root, name, values, start):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    reply = await session.call(name, **values)

    assert reply.status == "error"
    assert reply.error.message.startswith(start.replace("{root}", str(root)))
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-y = 2\n+y = 3\n*** Add File: new/c.py\n+z = 1\n*** End Patch"


@pytest.mark.parametrize("dialect", ["codex", "claude", "amp", "gemini"])
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(PATCH, id="free-text"),
        pytest.param(PATCH + "\n", id="free-text-with-a-line-end"),
        pytest.param("\n" + PATCH, id="free-text-after-a-blank-line"),
        pytest.param({"input": PATCH}, id="an-object"),
        pytest.param(json.dumps({"input": PATCH}), id="an-object-as-json"),
        pytest.param(f"```\n{PATCH}\n```", id="free-text-in-a-fence"),
    ],
)
async def test_a_patch_comes_as_free_text_or_as_an_argument(tmp_path, root, dialect, raw):
    async with Engine(tmp_path, dialect=dialect, ask=lambda question: True) as engine:
        await engine.call("Read", file_path="a.py")
        [reply] = await engine.run([Call("apply_patch", raw)])

    assert reply.result == f"Success. Updated the following files:\nM {root}/a.py\nA {root}/new/c.py"
    assert (root / "a.py").read_bytes().endswith(b"\n\ny = 3\n")
    assert (root / "new" / "c.py").read_bytes() == b"z = 1\n"


@pytest.mark.parametrize(
    ("raw", "start"),
    [
        pytest.param("", 'input: line 1: expected "*** Begin Patch"', id="nothing"),
        pytest.param("rubbish", "input: line 1: expected", id="rubbish"),
        pytest.param(
            PATCH.replace("y = 2", "y = 9"), "a.py: the hunk at line 3 of the patch has no place.", id="no-place"
        ),
        pytest.param(PATCH.replace("new/c.py", "sub/b.py"), "sub/b.py exists already", id="there-already"),
        pytest.param(PATCH.replace("a.py", "q.py"), "There is no file q.py to update", id="not-there"),
        pytest.param("{", "The arguments are not valid JSON", id="broken-json"),
    ],
)
async def test_a_patch_that_does_not_fit_changes_nothing(session, root, raw, start):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    [reply] = await session.run([Call("apply_patch", raw)])

    assert reply.status == "error"
    assert reply.error.message.startswith(start)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_the_patch_tool_shows_its_grammar():
    definition = FACES["apply_patch"].definition()

    assert definition["grammar"].startswith("start: begin_patch hunk+ end_patch\n")
    assert [face.name for face in CODEX.faces if face.grammar] == ["apply_patch"]


async def test_an_image_is_shown_with_its_path(session, root):
    file = io.BytesIO()
    Image.new("RGB", (2000, 2)).save(file, "PNG")
    (root / "a.png").write_bytes(file.getvalue())
    high = await session.call("view_image", path="a.png")
    original = await session.call("view_image", path="a.png", detail="original")
    shown = [Image.open(io.BytesIO(base64.b64decode(reply.result[1]["data"]))) for reply in (high, original)]

    assert high.result[0] == {"type": "text", "text": f"{root}/a.png"}
    assert [image.size for image in shown] == [(1568, 2), (2000, 2)]


@pytest.mark.parametrize(
    ("name", "command", "asked"),
    [
        pytest.param("shell_command", "git status", [], id="plain-line"),
        pytest.param("shell", ["git", "status"], [], id="plain-words"),
        pytest.param("shell", ["bash", "-lc", "git status"], [], id="plain-line-in-a-shell"),
        pytest.param("container.exec", ["bash", "-lc", "git status"], [], id="by-an-older-name"),
        pytest.param("shell", ["bash", "-lc", "git status; touch x"], ["git status; touch x"], id="more-in-a-shell"),
        pytest.param("shell", ["touch", "a b"], ["touch 'a b'"], id="words"),
        pytest.param("shell", ["git", "status;touch x"], ["git 'status;touch x'"], id="an-operator-in-a-word"),
        pytest.param("shell", ["git", "$(touch x)"], ["git '$(touch x)'"], id="an-expansion-in-a-word"),
        pytest.param(
            "shell", ["./bash", "-lc", "git status"], ["./bash -lc 'git status'"], id="the-workspace-s-own-shell"
        ),
    ],
)
@pytest.mark.usefixtures("asking")
async def test_who_is_asked_about_a_command_sees_what_runs(tmp_path, root, name, command, asked):
    asker = Scripted(*[YES] * len(asked))
    async with Engine(tmp_path, dialect="codex", ask=asker) as engine:
        reply = await engine.call(name, command=command)

    assert reply.status == "done"
    assert [question.summary for question in asker.questions] == [f"run `{line}`" for line in asked]


@pytest.mark.parametrize(
    ("name", "values", "output"),
    [
        pytest.param("shell", {"command": ["printf", "%s-", "a b", "$x;"]}, "a b-$x;-", id="words-as-they-are"),
        pytest.param("shell", {"command": ["bash", "-lc", "echo a | tr a b"]}, "b\n", id="a-pipe"),
        pytest.param("shell", {"command": ["echo a b"]}, "a b\n", id="a-line-as-one-word"),
        pytest.param("shell", {"command": "echo a b"}, "a b\n", id="a-line"),
        pytest.param("shell", {"command": ["pwd"], "workdir": "sub"}, "{root}/sub\n", id="elsewhere"),
        pytest.param("shell_command", {"command": "echo a >&2"}, "a\n", id="errors-too"),
    ],
)
async def test_commands_run(session, root, name, values, output):
    reply = await session.call(name, **values)

    head, _, printed = reply.result.partition("Output:\n")
    assert re.fullmatch(r"Exit code: 0\nWall time: \d+\.\d seconds\n", head)
    assert printed == output.replace("{root}", str(root))


async def test_an_exit_code_is_no_failure_and_a_timeout_says_so(session):
    failed = await session.call("shell_command", command="exit 3")
    stopped = await session.call("shell_command", command="sleep 60", timeout_ms=200)

    assert (failed.status, failed.result.split("\n")[0]) == ("done", "Exit code: 3")
    assert stopped.result.endswith("\nStopped after 0.2 seconds.\nOutput:\n")


async def test_both_ends_of_a_long_output_come_back(session):
    for name, command in (("shell_command", "seq 100000 150000"), ("shell", ["seq", "100000", "150000"])):
        reply = await session.call(name, command=command)

        assert reply.result.startswith("Exit code: 0\n")
        assert reply.result.endswith("\n150000\n")
        assert "... [truncated " in reply.result
        assert len(reply.result) < 40_100
        assert reply.output_id is not None


async def test_long_lines_are_cut_after_500_characters(session, root):
    (root / "wide.txt").write_text("é" * 600 + "\nend\n")
    reply = await session.call("read_file", file_path="wide.txt")

    assert reply.result == "L1: " + "é" * 500 + "\nL2: end"
    assert reply.notes == ("1 line was cut after 500 characters.",)


async def test_only_the_lines_of_a_block_count_as_cut(session, root):
    (root / "wide.py").write_text("z" * 600 + "\ndef f():\n    pass\n")
    reply = await session.call("read_file", file_path="wide.py", mode="indentation", indentation={"anchor_line": 3})

    assert reply.result == "L2: def f():\nL3:     pass"
    assert reply.notes == ("These are lines 2 to 3 of 3. Give offset and limit for others.",)
