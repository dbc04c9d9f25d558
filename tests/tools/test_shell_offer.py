"""What confines commands has stopped one, or a session wants more than it may: the user says whether it may be."""

import asyncio
import os
from typing import TYPE_CHECKING, cast

import pytest
from tests.rows import each_row

from ferrule import Engine
from ferrule.core.content import CommandResult
from ferrule.sandbox.confinement import Confinement
from ferrule.sandbox.network import ListenerAddress
from ferrule.system.tasks import Tasks
from ferrule.tools.shell import Left, TaskSeen
from ferrule.tools.shell.command import run_with_approval

if TYPE_CHECKING:
    from ferrule.core.tool import Context

RAN = CommandResult("make", "/w", "touch: /etc/x: Read-only file system\n", 1)
GOES_ON = Left(TaskSeen("b1", 1, 2, "make", "/w", "running"))


class Confined(Confinement):
    """Confines nothing, and takes every failure for its own."""

    def __init__(self, name: str = "landlock", *, names: tuple[str, ...] = ()) -> None:
        self._name = name
        self._names = names
        self.allowed: list[tuple[str, bool]] = []

    @property
    def name(self) -> str:
        return self._name

    async def names_asked(self) -> None:
        if not self._names:
            await asyncio.Event().wait()

    def unresolved_hosts(self) -> list[str]:
        return list(self._names)

    def allow_host(self, host: str, *, for_good: bool = False) -> None:
        self.allowed.append((host, for_good))

    def set_aside(self):
        return []

    async def describe_skipped_files(self, command):
        return ""

    def warnings(self) -> list[str]:
        return []

    def take_new_listeners(self) -> list[ListenerAddress]:
        return []

    def explain_denial(self, output: str, exit_code: int) -> str:
        return f"The sandbox seems to have stopped it ({exit_code})." if exit_code and "Read-only" in output else ""


class Around:
    """What a call reaches."""

    def __init__(self, confinement, *, agrees=False, says="no"):
        self.confinement = confinement
        self.agrees = agrees
        self.says = says
        self.asked, self.notes, self.dropped = [], [], 0
        self.answered = asyncio.Event()

    def need(self, service):
        return Tasks() if service is Tasks else self.confinement

    async def approve(self, sentence, *, planted=()):
        self.asked.append(sentence)
        return self.agrees

    async def approve_hosts(self, sentence):
        self.asked.append(sentence)
        self.answered.set()
        return self.says

    def note(self, sentence):
        self.notes.append(sentence)

    def param(self, name):
        return name

    def drop_log(self):
        self.dropped += 1


QUESTION = "run `make` in /w again, outside the sandbox. The sandbox seems to have stopped it (1)."


@pytest.mark.parametrize(
    ("outcome", "name", "outside", "agrees", "ran", "asked"),
    [
        pytest.param(RAN, "landlock", False, True, [False, True], [QUESTION], id="the-user-agrees"),
        pytest.param(RAN, "landlock", False, False, [False], [QUESTION], id="the-user-does-not"),
        pytest.param(RAN, "landlock", True, True, [True], [], id="it-was-outside"),
        pytest.param(RAN, "none", False, True, [False], [], id="nothing-confines"),
        pytest.param(RAN._replace(exit_code=0), "landlock", False, True, [False], [], id="it-ended-well"),
        pytest.param(RAN._replace(output="no"), "landlock", False, True, [False], [], id="it-failed-by-itself"),
        pytest.param(GOES_ON, "landlock", False, True, [False], [], id="it-goes-on"),
    ],
)
async def test_a_denied_command_runs_again_outside_only_if_the_user_says_so(outcome, name, outside, agrees, ran, asked):
    around, runs = Around(Confined(name), agrees=agrees), []

    async def once(is_outside):
        runs.append(is_outside)
        return outcome

    assert await run_with_approval(once, cast("Context", around), outside=outside) == outcome
    assert (runs, around.asked) == (ran, asked)
    assert len(around.notes) == len(asked)
    assert around.dropped == len(ran) - 1


@each_row(
    ("says", "ran", "allowed"),
    [
        pytest.param("no", [False], [], id="no"),
        pytest.param("yes", [False, False], [("pypi.example", False)], id="for-the-session"),
        pytest.param("always", [False, False], [("pypi.example", True)], id="for-good"),
        pytest.param("outside", [False, True], [], id="outside"),
    ],
)
@each_row("gives_up", [False, True])
async def test_a_host_that_a_command_asks_for_is_offered(says, ran, allowed, gives_up, monkeypatch):
    monkeypatch.setattr("ferrule.tools.shell.command._GRACE_SECONDS", 0.01)
    around, runs = Around(Confined(names=("pypi.example",)), says=says, agrees=True), []

    async def once(is_outside):
        runs.append(is_outside)
        if len(runs) > 1:
            return RAN._replace(exit_code=0)
        if not gives_up:
            await around.answered.wait()  # it goes on trying while the user is asked
            await asyncio.sleep(0 if says == "no" else 60)
        return RAN

    outcome = await run_with_approval(once, cast("Context", around), outside=False)

    assert (runs, around.confinement.allowed) == (ran, allowed)
    assert isinstance(outcome, CommandResult)
    assert outcome.exit_code == (1 if says == "no" else 0)
    assert len(around.asked) == 1  # who refused the host is not asked about the sandbox as well
    assert any("With outside the user is asked" in note for note in around.notes) is (says == "no")
    assert "pypi.example" in around.asked[0]


@pytest.fixture
def folders(tmp_path):
    for name in ("ws", "more"):
        (tmp_path / name).mkdir()
    return os.path.realpath(tmp_path / "ws"), os.path.realpath(tmp_path / "more")


async def test_a_folder_is_opened_for_the_session_if_the_user_says_so(folders):
    workspace, more = folders
    asked = []

    def ask(question):
        asked.append(question.kind)
        return True

    async with Engine(workspace, dialect="codex", ask=ask) as engine:
        reply = await engine.call(
            "request_permissions", permissions={"file_system": {"read": [more], "write": [more]}}, reason="To look."
        )
        listed = await engine.call("list_dir", dir_path=more)

    assert reply.result == {"permissions": {"file_system": {"read": [more], "write": [more]}}, "scope": "session"}
    assert listed.ok
    assert asked == ["folder"]


async def test_nothing_is_opened_if_the_user_does_not(folders):
    workspace, more = folders
    async with Engine(workspace, dialect="codex", ask=lambda _: False) as engine:
        reply = await engine.call("request_permissions", permissions={"file_system": {"read": [more]}})
        network = await engine.call("request_permissions", permissions={"network": {"enabled": True}})
        listed = await engine.call("list_dir", dir_path=more)

    assert (reply.status, listed.status) == ("rejected-by-user", "rejected-by-user")
    assert network.result == {"permissions": {}, "scope": "session"}
    assert network.notes == ("The user did not allow the network.",)


async def test_the_network_is_opened_if_the_user_says_so(folders):
    asked = []

    def ask(question):
        asked.append(question.summary)
        return True

    async with Engine(folders[0], dialect="codex", ask=ask) as engine:
        reply = await engine.call(
            "request_permissions", permissions={"network": {"enabled": True}}, reason="To fetch\npackages."
        )

    assert reply.result == {"permissions": {"network": {"enabled": True}}, "scope": "session"}
    assert asked == ["let commands use the network for the rest of this session (To fetch packages.)"]


@pytest.mark.parametrize(
    ("permissions", "code"),
    [
        pytest.param({}, "bad-arguments", id="nothing"),
        pytest.param({"network": {"enabled": False}}, "bad-arguments", id="no-network"),
        pytest.param({"file_system": {"read": [".env"]}}, "reading-secret-file", id="a-secret"),
        pytest.param({"file_system": {"read": [f"/x{n}" for n in range(21)]}}, "bad-arguments", id="too-many"),
    ],
)
async def test_what_cannot_be_asked_for(folders, permissions, code):
    async with Engine(folders[0], dialect="codex", ask=lambda _: True) as engine:
        reply = await engine.call("request_permissions", permissions=permissions)

    assert (reply.error and reply.error.error_code) == code
