"""Plan mode against every tool of every family: what would change something does not run, what looks does."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ferrule import Call, Engine, Reply
from ferrule.core.tool import Face
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.tools import BUILTIN
from tests.tools.plan.planned import planning

Inputs = dict[str, Any]
_PATCH = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Delete File: a.txt\n*** End Patch\n"
CHANGES: dict[str, Inputs] = {
    "write": {"path": "new.txt", "content": "x"},
    "edit": {"path": "a.txt", "old": "before", "new": "after"},
    "multi_edit": {"path": "a.txt", "edits": [{"old": "bef", "new": "aft"}, {"old": "ore", "new": "er"}]},
    "patch": {"patch": _PATCH},
    "notebook_edit": {"path": "n.ipynb", "source": "x", "mode": "insert", "cell_type": "code"},
    "delete": {"path": "a.txt"},
    "undo": {"path": "undone.txt"},
    "format": {"path": "a.py"},
    "check": {},
    "shell": {"command": "touch new.txt"},
    "shell_session": {"command": "touch new.txt"},
    "request_permissions": {"network": True, "write": ["."]},
    "kraken": {"task": "Change all.", "files": ["a.txt"]},
}
"""Calls that would change something, in canonical words."""
LOOKING: dict[str, Inputs] = {
    "read": {"path": "a.txt"},
    "read_many": {"include": ["a.txt"]},
    "list_dir": {"path": "."},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "before"},
    "shell": {"command": "cat a.txt"},
    "shell_session": {"command": "cat a.txt"},
    "shell_list": {},
    "find_thread": {"query": "anything"},
    "plan": {"steps": [{"text": "Look.", "status": "pending", "priority": "low"}]},
    "todos": {"action": "create", "subject": "Look."},
    "todo_create": {"subject": "Look."},
    "todo_get": {"todo_id": "1"},
    "todo_update": {"todo_id": "1", "status": "in_progress"},
    "todo_list": {},
    "finder": {"query": "before"},
}
"""Calls that a planning session makes as ever."""
ELSEWHERE = {
    *("enter_plan", "exit_plan", "ask_user", "view_image", "read_thread", "tool_search", "skill", "lsp", "diagnostics"),
    *("web_fetch", "web_search", "delegate", "oracle", "librarian"),
    *("agent_wait", "agent_list", "agent_send", "agent_stop"),
    *("shell_output", "shell_write", "shell_stop"),
    *("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
}
"""What needs more than a workspace, such as a command that runs, a model or a server: it has tests of its own."""


def test_every_tool_is_in_a_table():
    assert CHANGES.keys() | LOOKING.keys() | ELSEWHERE == BUILTIN.keys()


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A workspace with something for every tool to spoil, and a formatter that would."""
    programs, folder = tmp_path / "programs", tmp_path / "work"
    for one in (programs, folder):
        one.mkdir()
    formatter = programs / "ruff"
    formatter.write_text(f"#!/bin/sh\ntouch {folder}/new.txt\ncat\n")
    formatter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    (folder / "a.txt").write_text("before\n")
    (folder / "a.py").write_text("x  =  1\n")
    (folder / "pyproject.toml").write_text("[tool.ruff]\n")
    (folder / "n.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    (folder / ".agents" / "checks").mkdir(parents=True)
    (folder / ".agents" / "checks" / "spoil.md").write_text("---\nname: spoil\n---\nSpoil it.\n")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def made(engine: Engine, face: Face, values: Inputs) -> Reply:
    """The reply to a call in the words of the face."""
    known = {*face.schema.get("properties", {}), *face.accepts.get("properties", {})}
    call = Call(face.name, {key: value for key, value in face.advertised(dict(values)).items() if key in known})
    (reply,) = await engine.run([call])
    return (await engine.run([call]))[0] if "had not been loaded" in reply.text else reply


async def replies(engine: Engine, table: dict[str, Inputs], families: Iterable[str]) -> dict[str, Reply]:
    return {
        f"{family} {face.name}": await made(engine, face, table[face.tool])
        for family in families
        for face in load_dialect(family).faces
        if face.tool in table
    }


SESSIONS = [*((one, (one,)) for one in FAMILIES), ("codex", FAMILIES)]
"""A session hears its own family's words, and those of all others."""


@pytest.mark.parametrize(("spoken", "families"), SESSIONS, ids=lambda value: value if isinstance(value, str) else "")
async def test_no_tool_of_any_family_changes_anything(tmp_path, work, spoken, families):
    async with Engine(work, dialect=spoken, permission_mode="bypassPermissions", state=tmp_path / "state") as engine:
        assert (await engine.call("write", path="undone.txt", content="x")).ok
        planning(engine).enter()
        before = contents(work)
        for name, reply in (await replies(engine, CHANGES, families)).items():
            assert reply.status == "rejected-by-user", (name, reply)
            assert "lan mode is on" in reply.text, (name, reply)

        assert contents(work) == before


@pytest.mark.parametrize(("spoken", "families"), SESSIONS, ids=lambda value: value if isinstance(value, str) else "")
async def test_whatever_looks_still_works_in_every_family(tmp_path, work, spoken, families):
    async with Engine(work, dialect=spoken, permission_mode="dontAsk", state=tmp_path / "state") as engine:
        planning(engine).enter()
        for name, reply in (await replies(engine, LOOKING, families)).items():
            assert reply.status != "rejected-by-user", (name, reply)
