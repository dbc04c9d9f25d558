"""What a command wrote that other programs obey is set aside, and stays only if a person who sees it says so."""

import os
import subprocess
import sys

import pytest
from tests.scripted import NO, YES, Scripted
from tests.tools.confined import CONFINED, opened

from ferrule.permissions import Everybody

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls of other systems have tests of their own")

TASKS = ".vscode/tasks.json"
MAKE = f"mkdir .vscode; echo '{{}}' > {TASKS}"
USE = "namespaces"


class Program(Scripted):
    """It lets every call run; the script is for everything else."""

    async def ask(self, question):
        return YES if question.kind == "call" else await super().ask(question)


class Person(Program):
    is_person = True


@pytest.fixture
def work(tmp_path):
    made = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(made)], check=True, timeout=60)
    return made


@pytest.mark.parametrize("use", CONFINED)
async def test_it_stays_if_a_person_says_so(use, tmp_path, work):
    asker = Person(YES, NO)
    async with opened(tmp_path, use, ask=asker) as engine:
        reply = await engine.call("Bash", command=MAKE)
        again = await engine.call("Bash", command="touch other .vscode/more; cat .vscode/tasks.json")

    question = asker.questions[0]
    assert question.kind == "planted"
    assert question.summary == "A command made .vscode, which other programs obey"
    assert question.changes == ("(new file, 3 bytes)", "1 + {}")
    assert question.why == "VS Code runs its tasks and obeys its settings. Only a person's yes counts."
    assert (work / TASKS).read_text() == "{}\n"
    assert os.listdir(work / ".vscode") == ["tasks.json"]
    assert reply.notes == ("A command made .vscode, which other programs obey; the user lets it stay.",)
    assert "{}" in again.text
    assert (work / "other").exists()


@pytest.mark.parametrize(
    ("asker", "asked"),
    [
        pytest.param(Person(NO), 1, id="a-person-who-says-no"),
        pytest.param(Program(YES), 0, id="a-program"),
        pytest.param(Everybody(), 0, id="yes-beforehand"),
    ],
)
async def test_else_it_is_set_aside(asker, asked, tmp_path, work):
    async with opened(tmp_path, USE, ask=asker) as engine:
        reply = await engine.call("Bash", command=MAKE)

    assert not (work / ".vscode").exists()
    assert len(getattr(asker, "questions", ())) == asked
    (note,) = reply.notes
    with open(note.split(" as ")[-1].removesuffix(".") + "/tasks.json") as kept:
        assert kept.read() == "{}\n"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("mkdir .ferrule; echo 1 > .ferrule/settings.toml", id="what-decides-about-calls"),
        pytest.param("mkdir .vscode; ln -s /etc/passwd .vscode/tasks.json", id="a-link"),
        pytest.param("mkdir .vscode; head -c 4000 /dev/urandom > .vscode/tasks.json", id="no-text"),
        pytest.param("mkdir .vscode; for i in $(seq 30); do echo $i > .vscode/$i; done", id="too-many"),
        pytest.param("mkdir .vscode; seq 100000 > .vscode/tasks.json", id="too-long"),
    ],
)
async def test_nobody_is_asked_about_what_cannot_be_shown_or_is_never_allowed(command, tmp_path, work):
    asker = Person()
    async with opened(tmp_path, USE, ask=asker) as engine:
        reply = await engine.call("Bash", command=command)

    assert sorted(os.listdir(work)) == [".git"]
    assert "set aside" in str(reply.notes)


@pytest.mark.parametrize(("answer", "is_there"), [(YES, True), (NO, False)], ids=["yes", "no"])
async def test_a_change_of_what_git_runs_is_asked_about_too(answer, is_there, tmp_path, work):
    asker = Person(answer)
    async with opened(tmp_path, USE, ask=asker) as engine:
        await engine.call("Bash", command="git config user.name Ada; git config core.fsmonitor ./watch")

    said = subprocess.run(["git", "-C", work, "config", "--list"], capture_output=True, text=True, check=True).stdout
    assert "user.name=Ada" in said
    assert ("core.fsmonitor=./watch" in said) is is_there
    (question,) = asker.questions
    assert any(row.endswith("+     fsmonitor = ./watch") for row in question.changes)


async def test_what_came_into_its_place_meanwhile_is_not_overwritten(tmp_path, work):
    class Late(Person):
        async def ask(self, question):
            if question.kind == "planted":
                (work / ".vscode").mkdir()
                (work / TASKS).write_text("the user's own")
            return await super().ask(question)

    async with opened(tmp_path, USE, ask=Late(YES)) as engine:
        reply = await engine.call("Bash", command=MAKE)

    assert (work / TASKS).read_text() == "the user's own"
    assert "something else is there by now" in reply.notes[0]
    assert "set aside as" in reply.notes[1]
