"""A secret file that is no environment file is read when a person says so, and only then."""

import os

import pytest

from ferrule import Answer, Engine
from ferrule.permissions import Everybody

SENTENCE = "Refusing to read env file. Reading secrets is not permitted."


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    for name in (".env", "deploy.env", "credentials.json", "id_rsa", "server.pem"):
        (folder / name).write_text("KEY=1\n")
    (folder / "link.txt").symlink_to("server.pem")
    (folder / "env.pem").symlink_to(".env")
    return folder


class Person:
    """Answers with what it is told to, and remembers what it was asked."""

    is_person = True

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def ask(self, question):
        self.asked.append((question.kind, question.summary, question.why))
        return self.answer


async def read(work, tmp_path, ask, *names, **more):
    async with Engine(work, dialect="amp", ask=ask, state=tmp_path / "state", **more) as engine:
        return [await engine.call("Read", path=name) for name in names]


async def test_a_person_is_asked_once_about_a_file_as_it_is(work, tmp_path):
    person = Person(Answer(allow=True))
    async with Engine(work, dialect="amp", ask=person, state=tmp_path / "state") as engine:
        first = await engine.call("Read", path="server.pem")
        again = await engine.call("Read", path="server.pem")
        (work / "server.pem").write_text("KEY=another\n")
        changed = await engine.call("Read", path="server.pem")

    assert [reply.status for reply in (first, again, changed)] == ["done"] * 3
    assert (
        person.asked
        == [
            (
                "secret",
                "Read wants to read server.pem, a secret file",
                "server.pem holds a private key, or cannot be told from one.",
            )
        ]
        * 2
    )


@pytest.mark.parametrize("name", ["credentials.json", "id_rsa", "link.txt"])
async def test_other_secret_files_are_asked_about_too(work, tmp_path, name):
    person = Person(Answer(allow=True))
    (reply,) = await read(work, tmp_path, person, name)

    assert (reply.status, [kind for kind, *_ in person.asked]) == ("done", ["secret"])


@pytest.mark.parametrize("name", [".env", "deploy.env", "env.pem"])
async def test_environment_files_are_not_even_asked_about(work, tmp_path, name):
    person = Person(Answer(allow=True))
    (reply,) = await read(work, tmp_path, person, name)

    assert (reply.error.message, reply.error.error_code, person.asked) == (SENTENCE, "reading-secret-file", [])


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(None, id="nobody"),
        pytest.param(Everybody(), id="yes-to-every-call"),
        pytest.param(lambda _: True, id="a-yes-to-whatever-is-asked"),
        pytest.param(Person(Answer(allow=False)), id="no"),
    ],
)
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_only_a_person_s_own_yes_opens_one(work, tmp_path, ask, mode):
    (reply,) = await read(work, tmp_path, ask, "server.pem", permission_mode=mode)

    assert (reply.status, reply.error.message, reply.error.error_code) == ("error", SENTENCE, "reading-secret-file")
    assert "files.guarded_allow" in reply.notes[0]


async def test_rules_open_none(work, tmp_path):
    rules = work / "rules.json"
    rules.write_text('[{"tool": "*", "action": "allow"}]')
    (reply,) = await read(work, tmp_path, None, "server.pem", rules=rules)

    assert reply.error.error_code == "reading-secret-file"


async def test_where_nothing_is_to_be_asked_nothing_is(work, tmp_path):
    person = Person(Answer(allow=True))
    (reply,) = await read(work, tmp_path, person, "server.pem", permission_mode="dontAsk")

    assert (reply.error.error_code, person.asked) == ("reading-secret-file", [])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Grep", {"pattern": "KEY", "path": "server.pem"}),
        ("edit_file", {"path": "server.pem", "old_str": "KEY", "new_str": "x"}),
        ("create_file", {"path": "id_rsa", "content": "x"}),
    ],
)
async def test_other_tools_do_not_ask(work, tmp_path, name, values):
    person = Person(Answer(allow=True))
    async with Engine(work, dialect="amp", ask=person, state=tmp_path / "state") as engine:
        reply = await engine.call(name, **values)

    assert reply.error is not None
    assert reply.error.error_code in {"reading-secret-file", "writing-secret-file"}
    assert person.asked == []
    assert os.path.getsize(work / "server.pem") == 6
