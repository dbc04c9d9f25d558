"""An answer may give a call another input, or end the work: what holds for any call holds for that one too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ferrule import Call, Engine, Hook, Settings
from ferrule.core.call import Prepared
from ferrule.core.errors import ConfigError
from ferrule.permissions import Answer, Question
from ferrule.settings import Permissions, SandboxSettings

WRITE = Call("Write", {"file_path": "a.txt", "content": "x"}, "c1")


class Asked(list[Question]):
    """Somebody who remembers the questions, and gives the same input to each."""

    def __init__(self, **changed: Any) -> None:
        self._changed = changed

    async def ask(self, question: Question) -> Answer:
        self.append(question)
        given = {key: value for key, value in {**(question.given or {}), **self._changed}.items() if value is not None}
        return Answer(allow=True, input=given)


def opened(tmp_path: Path, asker: Any, **more: Any) -> Engine:
    (tmp_path / "work").mkdir(exist_ok=True)
    settings = Settings(
        sandbox=SandboxSettings(use="none"),
        permissions=Permissions(deny=("Edit(no.txt)", "Bash(rm *)")),
        **more.pop("set", {}),
    )
    return Engine(tmp_path / "work", dialect="claude", ask=asker, settings=settings, state=tmp_path / "state", **more)


def files(tmp_path: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((tmp_path / "work").iterdir()) if path.is_file()}


@pytest.mark.parametrize(
    ("changed", "written", "code"),
    [
        ({"content": "y"}, {"a.txt": "y"}, None),
        ({"file_path": "b.txt"}, {"b.txt": "x"}, None),
        ({"content": None}, {}, "bad-arguments"),
        ({"file_path": "no.txt"}, {}, "denied-by-rule"),
        ({"file_path": ".git/hooks/pre-commit"}, {}, "writing-protected-file"),
        ({"file_path": ".env"}, {}, "writing-secret-file"),
    ],
    ids=["other-content", "other-file", "misfit", "denied", "protected", "secret"],
)
async def test_a_call_is_made_with_the_input_of_the_answer_or_refused_as_any_call_is(tmp_path, changed, written, code):
    asker = Asked(**changed)
    async with opened(tmp_path, asker) as engine:
        reply = (await engine.run([WRITE]))[0]

    assert (files(tmp_path), reply.error.error_code if reply.error else None) == (written, code)
    assert (reply.id, reply.name, len(asker)) == ("c1", "Write", 1)


async def test_an_input_that_would_ask_is_not_asked_about_again(tmp_path):
    asker = Asked(command="mv a.txt b.txt")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("x")
    async with opened(tmp_path, asker) as engine:
        done, denied = [
            (await engine.run([Call("Bash", {"command": "touch c"})]))[0],
            (await opened_again(engine, asker))[0],
        ]

    assert (done.status, files(tmp_path), len(asker)) == ("done", {"b.txt": "x"}, 2)
    assert denied.status == "rejected-by-user"


async def opened_again(engine: Engine, asker: Asked) -> Any:
    """The same with a command that a rule denies."""
    asker._changed = {"command": "rm b.txt"}
    return await engine.run([Call("Bash", {"command": "touch c"})])


async def test_the_model_and_the_events_say_which_command_was_run_instead(tmp_path):
    told: list[Any] = []
    async with opened(tmp_path, Asked(command="touch b.txt"), on_event=told.append) as engine:
        reply = (await engine.run([Call("Bash", {"command": "touch a.txt"})]))[0]

    prepared = [event.arguments["command"] for event in told if isinstance(event, Prepared)]
    assert (files(tmp_path), prepared) == ({"b.txt": ""}, ["touch a.txt", "touch b.txt"])
    assert reply.notes == ("The user changed your command to `touch b.txt` before they allowed it.",)


async def test_hooks_are_told_of_what_was_done(tmp_path):
    told: list[Any] = []
    hook = Hook("PostToolUse", function=lambda given: told.append(given["tool_input"]))
    async with opened(tmp_path, Asked(content="y"), hooks=[hook]) as engine:
        await engine.run([WRITE])

    assert [given["content"] for given in told] == ["y"]


async def test_calls_beside_it_keep_their_order_on_the_files_that_they_share(tmp_path):
    asker = Asked(file_path="shared.txt")
    calls = [Call("Write", {"file_path": f"{name}.txt", "content": name}, name) for name in "abc"]
    async with opened(tmp_path, asker) as engine:
        replies = await engine.run(calls)

    assert [reply.status for reply in replies] == ["done"] * 3
    assert files(tmp_path)["shared.txt"] in {"a", "b", "c"}
    assert len(asker) == 3


async def test_a_no_that_ends_the_work_says_so_in_its_reply(tmp_path):
    async with opened(tmp_path, lambda _: Answer(allow=False, message="Enough.", stop=True)) as engine:
        reply = (await engine.run([WRITE]))[0]

    assert reply.stop is not None
    assert (reply.stop.by, reply.error.message if reply.error else "") == ("user", "Enough.")


async def test_a_hook_that_ends_the_work_says_so_in_the_reply_of_its_call(tmp_path):
    hook = Hook("PreToolUse", function=lambda _: {"continue": False, "stopReason": "Enough."})
    async with opened(tmp_path, None, hooks=[hook]) as engine:
        reply = (await engine.run([WRITE]))[0]

    assert reply.stop is not None
    assert (reply.stop.by, reply.stop.why, reply.status) == ("hook", "Enough.", "rejected-by-user")


class Steering:
    """A person who gives the same input to every question about a call of another input, and says yes to the rest."""

    is_person = True

    def __init__(self, given: Any, *, always: bool = False) -> None:
        self._given = given
        self._always = always
        self.kinds: list[str] = []

    async def ask(self, question: Question) -> Answer:
        self.kinds.append(question.kind)
        return Answer(allow=True, always=self._always, input=self._given)


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("name", ["outside", "secret"])
async def test_another_input_is_no_yes_to_what_was_asked_about(tmp_path, name, always):
    outside = tmp_path / "elsewhere" / "x.txt"
    outside.parent.mkdir()
    outside.write_text("OUTSIDE\n")
    person = Steering({"file_path": "in.txt"}, always=always)
    async with opened(tmp_path, person) as engine:
        (tmp_path / "work" / "in.txt").write_text("IN\n")
        (tmp_path / "work" / "secrets.yaml").write_text("key: hunter2\n")
        asked_for = str(outside) if name == "outside" else "secrets.yaml"
        replies = [(await engine.run([Call("Read", {"file_path": asked_for})]))[0] for _ in range(2)]
        roots = [root.path for root in engine.jail.roots]

    assert ["IN" in reply.text for reply in replies] == [True, True]
    assert not any("hunter2" in reply.text or "OUTSIDE" in reply.text for reply in replies)
    assert len(person.kinds) == 2  # the first answer has opened nothing
    assert str(outside.parent) not in roots


async def test_always_with_another_input_saves_nothing_of_the_call_that_was_replaced(tmp_path):
    person = Steering({"command": "ls"}, always=True)
    async with opened(tmp_path, person) as engine:
        for _ in range(2):
            await engine.run([Call("Bash", {"command": "touch made"})])

    assert (person.kinds, files(tmp_path)) == (["call", "call"], {})


async def test_an_input_that_leads_outside_opens_no_folder_by_itself(tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    person = Steering({"file_path": str(outside / "n.txt"), "content": "x"})
    async with opened(tmp_path, person) as engine:
        reply = (await engine.run([WRITE]))[0]
        roots = [root.path for root in engine.jail.roots]

    assert (reply.status, person.kinds) == ("rejected-by-user", ["call", "folder"])
    assert str(outside) not in roots


async def test_an_input_that_is_no_object_is_a_no(tmp_path):
    async with opened(tmp_path, Steering("x")) as engine:
        reply = (await engine.run([WRITE]))[0]

    assert reply.status == "rejected-by-user"
    assert "no object" in reply.text


async def test_hooks_have_their_word_on_the_input_of_the_answer(tmp_path):
    def refuses(given: dict[str, Any]) -> Any:
        if "evil" in given["tool_input"].get("command", ""):
            denied = {"permissionDecision": "deny", "permissionDecisionReason": "No evil."}
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}
        return None

    hook = Hook("PreToolUse", function=refuses)
    async with opened(tmp_path, Steering({"command": "touch evil"}), hooks=[hook]) as engine:
        reply = (await engine.run([Call("Bash", {"command": "touch ok"})]))[0]

    assert (reply.status, files(tmp_path)) == ("rejected-by-user", {})
    assert "No evil." in reply.text


async def test_an_approved_id_is_that_of_one_call_of_one_message(tmp_path):
    async with opened(tmp_path, lambda _: False) as engine:
        both = [Call("Bash", {"command": f"touch {name}"}, "call_0") for name in ("a", "b")]
        with pytest.raises(ConfigError, match="two calls"):
            await engine.run(both, approved=["call_0"])
        slow = Call("Bash", {"command": "touch a"}, "call_0")
        replies = await asyncio.gather(engine.run([slow], approved=["call_0"]), engine.run([both[1]]))

    assert [one.status for (one,) in replies] == ["done", "rejected-by-user"]
    assert [*files(tmp_path)] == ["a"]
