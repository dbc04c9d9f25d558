"""A call in any dialect is accepted in every session, and does there what it does at home."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferrule import Answer, Call, Engine, ModeConfig, Question
from ferrule.core.call import Reply
from ferrule.core.tool import Face
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.tools import BUILTIN
from tests.crew import Crew
from tests.rows import each_row

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NOTEBOOK = {
    "cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "source": "x", "outputs": [], "execution_count": None}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FILES = {
    "a.txt": b"one\ntwo\nthree\n",
    "a.png": PNG,
    "a.ipynb": json.dumps(NOTEBOOK).encode(),
    ".env": b"KEY=secret\n",
    ".claude/skills/greet/SKILL.md": b"---\nname: greet\ndescription: Greets.\n---\nSay hello.\n",
}
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch\n"

CALLS: dict[str, dict[str, Any]] = {
    "read": {"path": "a.txt"},
    "write": {"path": "a.txt", "content": "new\n"},
    "edit": {"path": "a.txt", "old": "two", "new": "2"},
    "multi_edit": {"path": "a.txt", "edits": [{"old": "on", "new": "On"}, {"old": "two", "new": "2"}]},
    "patch": {"patch": PATCH},
    "delete": {"path": "a.txt"},
    "undo": {"path": "a.txt"},
    "format": {"path": "a.txt"},
    "check": {},
    "notebook_edit": {"path": "a.ipynb", "source": "y", "cell_id": "c1"},
    "glob": {"pattern": "*.txt"},
    "grep": {"pattern": "two"},
    "diagnostics": {"path": "a.txt"},
    "lsp": {"operation": "findReferences", "path": "a.txt", "line": 2, "character": 1},
    "list_dir": {"path": "."},
    "read_many": {"include": ["a.txt"]},
    "view_image": {"path": "a.png"},
    "shell": {"command": "echo hi"},
    "shell_session": {"command": "echo hi", "seconds": 20.0},
    "shell_list": {},
    "request_permissions": {"read": ["a.txt"]},
    "plan": {"steps": [{"text": "look", "status": "pending", "priority": "low"}]},
    "ask_user": {
        "questions": [
            {
                "question": "Which?",
                "header": "Colour",
                "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
                "multiple": False,
                "id": "Which?",
                "kind": "choice",
                "placeholder": "",
            }
        ]
    },
    "todo_create": {"subject": "Look", "description": "at it"},
    "todo_get": {"todo_id": "1"},
    "todo_update": {"todo_id": "2", "subject": "Again"},
    "todo_list": {},
    "todos": {"action": "create", "subject": "Look"},
    "skill": {"skill": "greet"},
    "tool_search": {"query": "anything"},
    "find_thread": {"query": "anything"},
    "finder": {"query": "which text says two"},
    "delegate": {"prompt": "Look around.", "description": "a look", "kind": "general-purpose"},
}
"""A small call of every tool, in canonical words."""
PARTS = {"tracker_add_dependency": {"todo_id": "2", "add_blocked_by": ["1"]}}
"""The same of faces that can say only a part of what their tool does."""

EDITED = b"one\n2\nthree\n"
AFTER: dict[str, bytes | None] = {
    "write": b"new\n",
    "edit": EDITED,
    "multi_edit": b"One\n2\nthree\n",
    "patch": EDITED,
    "delete": None,
}
"""What it makes of a.txt, where it makes something of it."""

SAYS = {
    "read": "two",
    "glob": "a.txt",
    "grep": "a.txt",
    "lsp": "a.txt:2:two",
    "list_dir": "a.txt",
    "read_many": "two",
    "shell": "hi",
    "shell_session": "hi",
    "skill": "Say hello.",
    "ask_user": "Red",
}
ELSEWHERE = (
    *("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
    *("oracle", "librarian", "kraken", "agent_wait", "agent_list", "agent_send", "agent_stop"),
    "read_thread",
    *("web_fetch", "web_search"),
    *("enter_plan", "exit_plan"),
)
"""What needs a server or a model, or changes what holds for all that follows, has tests of its own."""
"""What stands in the reply, whoever answers."""


LACKING = {"format": "no-formatter", "diagnostics": "no-language-server"}
"""What needs a program that nobody has for such a file says so."""
BORROWED = ("skill", "tool_search")
"""Where a family has no words for them, another's are advertised: nothing is said about that."""


def faces(family: str) -> list[Face]:
    """Those whose tools are here."""
    return [face for face in load_dialect(family).faces if face.tool in BUILTIN and face.tool not in ELSEWHERE]


def yes(question: Question) -> bool | Answer:
    """Everything is allowed, and whoever asks gets the first of their answers."""
    return Answer(allow=True, values={question.choices[0].key: "Red"}) if question.kind == "choose" else True


def own(family: str, *tools: str) -> Face:
    """The family's own face for one of the tools, else the one of whoever has it."""
    found = (face for tool in tools for name in (family, *FAMILIES) for face in faces(name) if face.tool == tool)
    return next(found)


def lay_out(folder: Path) -> None:
    for name, raw in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)


def is_own(session: str, call: Call) -> bool:
    """Are both the name and the parameters this family's?"""
    dialect = load_dialect(session)
    for face in dialect.faces:
        names = {face.name, *face.aliases, *(alias for alias, name in dialect.aliases.items() if name == face.name)}
        properties, required = face.schema["properties"], face.schema.get("required", ())
        if call.name in names and isinstance(call.input, dict) and set(required) <= set(call.input) <= set(properties):
            return True
    return False


async def left_running(engine: Engine, face: Face) -> dict[str, Any]:
    """A call about a command that was left running, by whichever name the face has for it."""
    # To look at one that goes on takes five seconds in Codex's words, and no longer than it runs.
    command = "echo hi; sleep 2" if face.tool == "shell_write" else "echo hi; sleep 300"
    begun = await engine.call("Bash", command=command, run_in_background=True)
    assert begun.ok, begun
    task = engine._services._one("Tasks").list()[-1]
    known = {face.params.get(name, name) for name in face.schema["properties"]}
    by = next(name for name in ("task_id", "number", "pid") if name in known)
    usual = {"block": False, "seconds": 0.0} if face.tool == "shell_output" else {}
    return {by: getattr(task, by.removeprefix("task_")), **usual}


async def run(engine: Engine, folder: Path, session: str, face: Face) -> tuple[Call, Reply]:
    """One call in the words of the face, with everything there that it needs."""
    lay_out(folder)
    read = own(session, "read")
    if face.tool in ("write", "edit", "multi_edit", "notebook_edit", "patch"):
        seen = await engine.run([Call(read.name, read.advertised({"path": name})) for name in ("a.txt", "a.ipynb")])
        assert all(reply.ok for reply in seen), seen
    if face.tool.startswith("todo"):
        for subject in ("one", "two"):
            assert (await engine.call("TaskCreate", subject=subject, description="")).ok
    if face.tool == "undo":
        (folder / "a.txt").write_bytes(b"before\n")
        await engine.run([Call(read.name, read.advertised({"path": "a.txt"}))])
        write = own(session, "write")
        (written,) = await engine.run([Call(write.name, write.advertised({"path": "a.txt", "content": "after\n"}))])
        assert written.ok, written
    sample = PARTS.get(face.name, CALLS.get(face.tool))
    values = await left_running(engine, face) if sample is None else sample
    call = Call(face.name, face.advertised(values))
    (reply,) = await engine.run([call])
    return call, reply


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("session", FAMILIES)
async def test_a_call_in_any_dialect_is_accepted_in_every_session(tmp_path, session, family):
    async with Engine(tmp_path, dialect=session, ask=yes, subagents=Crew()) as engine:
        for face in faces(family):
            call, reply = await run(engine, tmp_path, session, face)
            where = (session, family, face.name, reply)

            if face.tool in LACKING:
                assert reply.error is not None, where
                assert reply.error.error_code == LACKING[face.tool], where
                continue
            assert reply.status == "done", where
            if face.tool not in BORROWED:
                assert any(_is_about(call, note) for note in reply.notes) != is_own(session, call), where
            assert SAYS.get(face.tool, "") in reply.text, where
            path = tmp_path / "a.txt"
            left = path.read_bytes() if path.exists() else None
            expected = {"undo": b"before\n"}.get(face.tool, AFTER.get(face.tool, FILES["a.txt"]))
            assert left == expected, where
            if face.tool == "notebook_edit":
                assert json.loads((tmp_path / "a.ipynb").read_bytes())["cells"][0]["source"] == "y", where


def _is_about(call: Call, note: str) -> bool:
    """Does the note say in whose words the call was?"""
    said = ("was understood as", "was given parameters of another dialect", "is a tool of the")
    return note.startswith(tuple(f"{call.name} {words}" for words in said))


def meanings(face: Face) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each parameter with what it means: the canonical one, how many make a unit, and where counting begins."""
    for name in face.schema["properties"]:
        canonical = face.params.get(name, name)
        yield name, (canonical, face.per.get(canonical, 1), face.shift.get(canonical, 0))


def conflicts() -> set[tuple[str, str, frozenset[str]]]:
    """Names that two families use for two things: name, parameter ("" for the tool itself), and the families."""
    out = set()
    every = [(family, face) for family in FAMILIES for face in faces(family)]
    for family, face in every:
        for other, theirs in every:
            if family >= other or face.name != theirs.name:
                continue
            if face.tool != theirs.tool:
                out.add((face.name, "", frozenset({family, other})))
                continue
            there = dict(meanings(theirs))
            for name, meaning in meanings(face):
                if there.get(name, meaning) != meaning:
                    out.add((face.name, name, frozenset({family, other})))
    return out


def test_these_are_all_the_names_with_two_meanings():
    assert conflicts() == {
        ("edit", "", frozenset({"ah", "pi"})),
        ("edit", "", frozenset({"opencode", "pi"})),
        ("bash", "timeout", frozenset({"ah", "pi"})),
        ("bash", "timeout", frozenset({"opencode", "pi"})),
        ("Read", "offset", frozenset({"claude", "wayland"})),
    }


@each_row(
    ("session", "name", "values", "tool", "canonical"),
    [
        pytest.param("pi", "bash", {"command": "x", "timeout": 5}, "shell", {"seconds": 5}, id="seconds-in-pi"),
        pytest.param("ah", "bash", {"command": "x", "timeout": 5}, "shell", {"seconds": 0.005}, id="ms-in-ah"),
        pytest.param(
            "opencode", "bash", {"command": "x", "timeout": 5}, "shell", {"seconds": 0.005}, id="ms-in-opencode"
        ),
        pytest.param(
            "pi",
            "bash",
            {"command": "x", "timeout": 5, "workdir": "."},
            "shell",
            {"seconds": 5, "cwd": "."},
            id="seconds-in-pi-though-another-parameter-is-opencode-s",
        ),
        pytest.param(
            "pi", "Bash", {"command": "x", "timeout": 5}, "shell", {"seconds": 0.005}, id="ms-by-claude-s-name-in-pi"
        ),
        pytest.param(
            "pi",
            "Bash",
            {"command": "x", "timeout": 5, "description": "y", "why": "z"},
            "shell",
            {"seconds": 0.005},
            id="ms-by-claude-s-name-in-pi-with-something-unknown",
        ),
        pytest.param("claude", "Read", {"file_path": "a", "offset": 3}, "read", {"offset": 3}, id="from-1-in-claude"),
        pytest.param("wayland", "Read", {"file_path": "a", "offset": 3}, "read", {"offset": 4}, id="from-0-in-wayland"),
        pytest.param(
            "wayland",
            "Read",
            {"file_path": "a", "offset": 3, "pages": "1"},
            "read",
            {"offset": 4, "pages": "1"},
            id="from-0-in-wayland-though-another-parameter-is-claude-s",
        ),
        pytest.param(
            "pi", "edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}, "multi_edit", {}, id="edits-in-pi"
        ),
        pytest.param(
            "opencode",
            "edit",
            {"filePath": "a", "oldString": "x", "newString": "y"},
            "edit",
            {"old": "x"},
            id="one-edit-in-opencode",
        ),
    ],
)
async def test_the_session_s_own_meaning_wins(tmp_path, session, name, values, tool, canonical):
    async with Engine(tmp_path, dialect=session, ask=lambda question: True) as engine:
        face, found, spoken, values, _ = engine.registry.hear(name, values)
    complete = face.completed(spoken.heard(values))

    assert found.name == tool
    assert {key: complete[key] for key in canonical} == canonical


@pytest.mark.parametrize("session", FAMILIES)
async def test_a_secret_stays_secret_in_whatever_words_it_is_asked_for(tmp_path, session):
    lay_out(tmp_path)
    async with Engine(tmp_path, dialect=session, ask=lambda question: True) as engine:
        for family in FAMILIES:
            for face in faces(family):
                harmless = ("glob", "list_dir", "read_many", "plan", "skill", "tool_search", "finder", "find_thread")
                if face.tool in (*harmless, "delegate", "ask_user") or face.tool.startswith(("shell", "todo")):
                    continue
                values = CALLS[face.tool]
                secret: dict[str, dict[str, object]] = {
                    "patch": {"patch": PATCH.replace("a.txt", ".env")},
                    "grep": {"pattern": "K", "path": ".env"},
                    "request_permissions": {"read": [".env"]},
                }
                call = Call(face.name, face.advertised(secret.get(face.tool, {**values, "path": ".env"})))
                (reply,) = await engine.run([call])

                assert reply.error is not None, (session, call)
                assert reply.error.error_code in ("reading-secret-file", "writing-secret-file"), (session, call, reply)
    assert (tmp_path / ".env").read_bytes() == FILES[".env"]


@pytest.mark.parametrize("session", FAMILIES)
@pytest.mark.parametrize(
    "key", ["path", "file_path", "filePath", "relative_path", "absolute_path", "file", "filename", "dir_path"]
)
async def test_a_secret_stays_secret_under_any_name_of_a_path(tmp_path, session, key):
    lay_out(tmp_path)
    name = own(session, "read").name
    async with Engine(tmp_path, dialect=session, ask=lambda question: True) as engine:
        replies = await engine.run([Call(name, {key: ".env"}), Call(name, {key: ".env", "junk": 1, "offset": 1})])

    assert all(reply.status == "error" and "KEY" not in reply.text for reply in replies)


@pytest.mark.parametrize("session", FAMILIES)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(Call("shell", {"command": "ls", "flags": ["-c", "touch PWNED"]}), id="canonical"),
        pytest.param(Call("run_terminal_command", {"command": "ls", "flags": ["-c", "touch PWNED"]}), id="amp"),
        pytest.param(Call("Bash", {"command": "ls", "flags": ["-c", "touch PWNED"]}), id="claude"),
        pytest.param(Call("bash", {"command": "ls", "flags": ["-c", "touch PWNED"]}), id="pi"),
        pytest.param(Call("shell", {"command": ["ls"], "flags": ["-c", "touch PWNED"]}), id="codex"),
        pytest.param(Call("run_shell_command", {"command": "ls", "flags": ["-c", "touch PWNED"]}), id="gemini"),
    ],
)
async def test_no_caller_says_what_is_the_engine_s_to_say(tmp_path, session, call):
    async with Engine(tmp_path, dialect=session) as engine:
        await engine.run([call])

    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("session", FAMILIES)
@pytest.mark.usefixtures("asking")
async def test_a_question_is_about_what_will_be_done(tmp_path, session):
    lay_out(tmp_path)
    asked: list[Question] = []

    def ask(question: Question) -> bool:
        asked.append(question)
        return False

    read = own(session, "read")
    async with Engine(tmp_path, dialect=session, ask=ask) as engine:
        await engine.run([Call(read.name, read.advertised({"path": "a.txt"}))])
        replies = await engine.run(
            [
                Call("replace", {"file_path": "a.txt", "instruction": "", "old_string": "two", "new_string": "2"}),
                Call("bash", {"command": "rm -rf b", "workdir": "."}),
            ]
        )

    edit, shell = asked
    assert [reply.status for reply in replies] == ["rejected-by-user"] * 2
    assert edit.summary == f"{own(session, 'edit').name}: write a.txt" or session == "codex"
    assert {key: edit.input[key] for key in ("path", "old", "new")} == {"path": "a.txt", "old": "two", "new": "2"}
    assert shell.summary == "run `rm -rf b`"
    assert (tmp_path / "a.txt").read_bytes() == FILES["a.txt"]


@pytest.mark.parametrize("session", FAMILIES)
async def test_a_mode_takes_names_of_every_family(tmp_path, session):
    lay_out(tmp_path)
    mode = ModeConfig(include_tools=("read_file", "Grep"))
    async with Engine(tmp_path, dialect=session, ask=lambda question: True, mode=mode) as engine:
        replies = await engine.run(
            [
                Call("Read", {"file_path": "a.txt"}),
                Call("grep", {"pattern": "two"}),
                Call("Write", {"file_path": "b", "content": "x"}),
                Call("bash", {"command": "echo x > b"}),
                Call("apply_patch", {"input": PATCH}),
                Call("edit", {"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]}),
            ]
        )

    assert [reply.status for reply in replies] == ["done"] * 2 + ["rejected-by-user"] * 4
    assert (tmp_path / "a.txt").read_bytes() == FILES["a.txt"]
