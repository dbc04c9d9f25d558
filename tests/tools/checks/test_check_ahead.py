"""The project is walked through away from the event loop: it may have a thousand folders."""

import threading

import pytest

from ferrule import Engine
from ferrule.permissions import Everybody
from ferrule.tools.checks import choice
from ferrule.tools.checks.find import find


@pytest.mark.parametrize("given", [{}, {"only": ["tests"]}])
async def test_the_checks_of_a_project_are_not_looked_for_on_the_event_loop(tmp_path, monkeypatch, given):
    (tmp_path / "Makefile").write_text("test:\n\techo ran the tests\n")
    where: list[bool] = []

    def seen(*args, **more):
        where.append(threading.current_thread() is threading.main_thread())
        return find(*args, **more)

    monkeypatch.setattr(choice, "find", seen)
    async with Engine(tmp_path, dialect="claude", ask=Everybody()) as engine:
        reply = await engine.call("Check", **given)

    assert reply.ok, reply
    assert where == [False, False]


async def test_what_was_written_since_is_checked_by_the_next_call(tmp_path):
    async with Engine(tmp_path, dialect="claude", ask=Everybody()) as engine:
        before = await engine.call("Check")
        (tmp_path / "Makefile").write_text("test:\n\techo ran the tests\n")
        after = await engine.call("Check")

    assert "make test" not in before.text
    assert "make test" in after.text
