"""New errors after a message's edits: told once, with the reply that made them, where a server runs already."""

import asyncio
import os
import sys

import pytest

from ferrule import Call, Done, Engine, Event, Settings
from ferrule.permissions import ModeConfig
from ferrule.settings import LspSettings
from ferrule.tools.lsp.diagnostics import Noticing

GOOD = "def double(value: int) -> int:\n    return value * 2\n"
USER = "from given import double\n\nNUMBER: int = double(2)\n"


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    """The language servers of the dev requirements."""
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "sample"\nversion = "1"\n')
    (folder / "given.py").write_text(GOOD)
    (folder / "user.py").write_text(USER)
    return folder


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit_file", {"path": path, "old_str": old, "new_str": new})


def said(reply) -> str:
    return "\n".join(note for note in reply.notes if "New errors" in note)


async def test_a_new_error_is_told_once_with_the_last_edit_of_its_file(project):
    async with Engine(project, ask=lambda _: True) as engine:
        await engine.call("get_diagnostics", path="given.py")
        replies = await engine.run(
            [
                edit("given.py", "value * 2", "value * 3"),
                edit("given.py", "value * 3", "str(value)"),
                Call("Read", {"path": "user.py"}),
            ]
        )
        again = await engine.run([edit("given.py", "def double", "# The same.\ndef double")])

    assert [bool(said(reply)) for reply in replies] == [False, True, False]
    assert "2:12" in said(replies[1])
    assert said(again[0]) == ""


async def test_whoever_listens_is_told_of_the_end_once_and_with_what_is_new(project):
    told: list[Event] = []
    async with Engine(project, ask=lambda _: True, on_event=told.append) as engine:
        await engine.call("get_diagnostics", path="given.py")
        del told[:]
        replies = await engine.run(
            [
                edit("given.py", "value * 2", "str(value)"),
                Call("Read", {"path": "user.py"}),
                Call("Read", {"path": "no"}),
            ]
        )

    ended = [event.reply for event in told if isinstance(event, Done)]
    assert sorted(reply.id for reply in ended) == sorted(reply.id for reply in replies)
    assert said(next(reply for reply in ended if reply.name == "edit_file"))


async def test_an_error_in_another_open_file_is_told_with_the_edit_that_made_it(project):
    async with Engine(project, ask=lambda _: True) as engine:
        await engine.call("get_diagnostics", path="user.py")
        (reply,) = await engine.run([edit("given.py", "-> int", "-> str"), *[]])

    assert "user.py" in said(reply)


async def test_nothing_is_told_and_nothing_started_where_no_server_runs(project):
    async with Engine(project, ask=lambda _: True) as engine:
        (reply,) = await engine.run([edit("given.py", "value * 2", "str(value)")])

        assert engine._flow.notices is None
    assert reply.notes == ()


async def test_whoever_does_not_want_it_is_told_nothing(project):
    settings = Settings(lsp=LspSettings(after_edits=False))
    async with Engine(project, ask=lambda _: True, settings=settings) as engine:
        await engine.call("get_diagnostics", path="given.py")
        (reply,) = await engine.run([edit("given.py", "value * 2", "str(value)")])

    assert said(reply) == ""


async def test_what_a_command_changed_is_known_to_the_server_afterwards(project):
    async with Engine(project, ask=lambda _: True) as engine:
        before = await engine.call("get_diagnostics", path="user.py")
        await engine.call("Bash", cmd="printf 'def double(value: int) -> str:\\n    return str(value)\\n' > given.py")
        after = await engine.call("get_diagnostics", path="user.py")

    assert "No problems" in str(before.result)
    assert "user.py:3" in str(after.result)


async def test_a_subagents_edits_are_told_of_too(project):
    async with Engine(project, ask=lambda _: True) as engine:
        await engine.call("get_diagnostics", path="given.py")
        branch = engine.branch("child", ModeConfig())
        try:
            (reply,) = await branch.run([edit("given.py", "value * 2", "str(value)")])
        finally:
            await branch.close()

    assert "2:12" in said(reply)


async def test_cancelling_spares_only_the_waiting(project, monkeypatch):
    told: list[Event] = []
    async with Engine(project, ask=lambda _: True, on_event=told.append) as engine:
        await engine.call("get_diagnostics", path="given.py")
        waits = asyncio.Event()

        async def endless(*_):
            waits.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(Noticing, "end", endless)
        running = asyncio.create_task(engine.run([edit("given.py", "value * 2", "str(value)")]))
        await asyncio.wait_for(waits.wait(), 30)
        engine.cancel()
        (reply,) = await asyncio.wait_for(running, 30)

        again = asyncio.create_task(engine.run([edit("given.py", "str(value)", "value")]))
        waits.clear()
        await asyncio.wait_for(waits.wait(), 30)
        again.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(again, 30)

    assert reply.status == "done"
    assert [event.reply.status for event in told if isinstance(event, Done)] == ["done"] * 3
    assert "return value\n" in (project / "given.py").read_text()
