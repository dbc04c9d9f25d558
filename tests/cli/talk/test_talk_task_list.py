"""`/tasks` and `/ports`: what runs in the background, what it has printed, where it listens, and its end."""

import re
import socket
import sys
from itertools import pairwise

import pytest
from tests.cli.talk.typing_front import talk

from ferrule.models.cues import calls, said
from ferrule.models.recorder import Scripted

SERVE = (
    "import socket; s = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen(); print('up', flush=True); s.accept()"
)


def left(command, **more):
    return calls(("Bash", {"command": command, "run_in_background": True, **more}))


async def test_without_any_nothing_is_said_to_run(tmp_path):
    front = await talk(tmp_path, Scripted(), "/tasks", "/tasks stop", "/ports", "/tasks x", "/tasks a b")

    assert "Nothing runs in the background, and nothing is left to do." in front.after("/tasks")
    assert "Nothing runs in the background." in front.after("/tasks stop")
    assert "No command of this session listens on a port." in front.after("/ports")
    assert "There is no task x. Nothing was left running." in front.after("/tasks x")
    assert "Write /tasks, /tasks ID" in front.after("/tasks a b")


async def test_a_task_is_shown_by_its_command_read_and_stopped(tmp_path):
    scripted = Scripted(left("echo first; sleep 300", description="Wait"), said("Left."), said("I see."))
    front = await talk(tmp_path, scripted, "wait", "/tasks", "/tasks b", "/tasks stop", "/tasks stop b", "go on")

    assert re.search(r"running +b\w{6}  echo first; sleep 300  \(Wait\)", front.after("/tasks"))
    assert re.search(r"b\w{6}  echo first; sleep 300\n.* · it runs · .*\n\nfirst\n", front.after("/tasks b"))
    assert "(echo first; sleep 300)." in front.after("/tasks stop")
    assert "had ended already" in front.after("/tasks stop b")
    told = [part.text for turn in scripted.asked[-1].turns for part in turn.parts if hasattr(part, "text")]
    assert any("The user has stopped the task" in text for text in told)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells whose port it is")
async def test_a_port_is_shown_with_the_command_that_has_opened_it(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f'{sys.executable} -c "{SERVE.format(port=port)}"'
    scripted = Scripted(left(f"{command} & {command.replace(str(port), '0')}; sleep 300"), said("Left."))
    front = await talk(tmp_path, scripted, "!sleep 1", "serve", "!sleep 1", "/ports", "/tasks stop")

    rows = front.after("/ports").splitlines()
    row = next(below for row, below in pairwise(rows) if f":{port} " in row)
    assert re.search(r"b\w{6}  ", row)
    assert sys.executable in row
