"""An answer may give a call another input, or end the work: what holds for any call holds for that one too."""

from pathlib import Path
from typing import Any

import pytest

from ferrule import Call, Engine, Hook, Settings
from ferrule.permissions.asker import Answer, Question
from ferrule.settings import Permissions, Sandbox

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
        sandbox=Sandbox(use="none"), permissions=Permissions(deny=("Edit(no.txt)", "Bash(rm *)")), **more.pop("set", {})
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
