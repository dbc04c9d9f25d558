"""A server that an agent starts is reached by whoever should reach it, and leaves nothing."""

import os

import pytest

from tests.ordinary import serving
from tests.ordinary.session import HIDES, session

PAGE = "<html><body><h1>the page of the server</h1></body></html>\n"
WORDS = "the page of the server"


@pytest.mark.parametrize("way", HIDES)
def test_a_server_in_the_background_is_reached_and_leaves_nothing(person, needs, way):
    needs(person, way)
    work = person.folder("work")
    (work / "index.html").write_text(PAGE)
    person.give(work)
    port = serving.free_port()
    settings = serving.forwarding()
    with session(person, work, way, settings=settings) as opened:
        said, task = serving.started(opened, serving.PYTHON.format(port=port))
        command = serving.from_command(opened, port)
        tool = serving.from_tool(opened, port)
        outside = {host: serving.from_outside(port, host, seconds=5) for host in ("127.0.0.1", "::1")}
        meanwhile = sorted(os.listdir(work)), opened.bash("ls -A").output.split()
        stopped = opened.call("TaskStop", task_id=task)
        late = serving.once_from_command(opened, port), serving.from_tool(opened, port)
        is_free = not serving.listens_outside(port)
    told = " ".join((said.text, *said.notes, command.text, *command.notes))

    assert (said.status, stopped.status) == ("done", "done")
    assert WORDS in command.text
    assert f"127.0.0.1:{port}" in told
    assert WORDS in tool.text, tool
    assert settings, "no setting forwards ports"
    assert all(WORDS in text for text in outside.values()), outside
    assert meanwhile == (["index.html"], ["index.html"])
    assert [WORDS in one.text for one in late] == [False, False], late
    assert serving.processes(str(port)) == []
    assert os.listdir(work) == ["index.html"]
    assert is_free, "it is still forwarded after its end"
    assert not serving.listens_outside(port)
