"""How each kind of question reads in the chat, at a terminal, over MCP and to a program that drives the session."""

import json
import os
from typing import Any

import msgspec
import pytest

from ferrule import Call, Engine
from ferrule.cli.driven import ByPeer
from ferrule.cli.prompts import TerminalAsker
from ferrule.cli.talk.questions import InPerson
from ferrule.core.access import Access
from ferrule.core.services import Choice, Option
from ferrule.permissions import NO, Answer, Question
from ferrule.serve.mcp.client import _answer, _form, _message

INTERNAL = ("seconds", "most_seconds", "head_chars", "tail_chars", "tail_bytes", "yields", "carry", "read_first")


class Person:
    """Looks at what the chat shows and says no."""

    width = 90

    def __init__(self) -> None:
        self.rows: list[str] = []

    def print_lines(self, *lines: Any) -> None:
        self.rows += ("".join(text for _, text in line).rstrip() for line in lines)

    def print(self, text: str) -> None:
        self.rows += text.rstrip("\n").split("\n")

    async def key(self, words: str, keys: Any, *, again: bool = False) -> str:
        self.rows.append(f"{words} " + " ".join(f"[{key}]{rest}" for key, rest in keys))
        return "n" if any(key == "n" for key, _ in keys) else keys[0][0]

    async def words(self, offer: str, start: str = "") -> str | None:
        self.rows.append(offer)
        return None

    async def edit(self, text: str, suffix: str) -> str | None: ...


class Driving:
    """Remembers what a driver is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def ask(self, subtype: str, **fields: Any) -> dict[str, Any]:
        self.asked.append({"subtype": subtype, **fields})
        return {"behavior": "deny"}


async def at_terminal(question: Question, capsys: Any) -> str:
    ours, theirs = os.pipe()
    os.close(theirs)  # the end of input: no
    with open(ours, encoding="utf-8") as source:
        await TerminalAsker(source).ask(question)
    return str(capsys.readouterr().err)


async def forms(question: Question, capsys: Any) -> str:
    person, peer = Person(), Driving()
    await InPerson(person, markdown=lambda text: text).ask(question)
    terminal = await at_terminal(question, capsys)
    await ByPeer(peer).ask(question)  # type: ignore[arg-type]
    driver = json.dumps(peer.asked, indent=2, ensure_ascii=False) if peer.asked else "(not asked: refused)"
    mcp = f"{_message(question)}\n{json.dumps(_form(question), ensure_ascii=False)}"
    parts = {"chat": "\n".join(person.rows), "terminal": terminal, "mcp": mcp, "driver": driver}
    return "\n".join(f"=== {name}\n{text.strip()}\n" for name, text in parts.items())


class Keeper:
    """A person who says no and remembers the question."""

    is_person = True

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return NO


CALLS = [
    pytest.param("Edit", {"file_path": "a.py", "old_string": "b = 2", "new_string": "b = 3"}, id="edit"),
    pytest.param("Write", {"file_path": "sub/new.py", "content": "x = 1\n"}, id="write"),
    pytest.param("Bash", {"command": "rm -rf build", "description": "Clean", "timeout": 5000}, id="command"),
    pytest.param("Bash", {"command": "python -m http.server", "run_in_background": True}, id="background"),
    pytest.param("Bash", {"command": "make", "dangerouslyDisableSandbox": True}, id="outside"),
    pytest.param("Read", {"file_path": "../other/b.txt"}, id="folder"),
    pytest.param("Write", {"file_path": ".vscode/tasks.json", "content": '{"tasks": []}\n'}, id="protected"),
    pytest.param("Write", {"file_path": ".claude/settings.json", "content": "{}\n"}, id="protected-ours"),
]


@pytest.mark.parametrize(("name", "values"), CALLS)
@pytest.mark.usefixtures("asking")
async def test_a_call_is_asked_about_in_words(tmp_path, golden, capsys, request, name, values):
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.txt").write_text("")
    (work / "a.py").write_text("".join(f"{letter} = {number}\n" for number, letter in enumerate("abcdefgh", 1)))
    keeper = Keeper()
    async with Engine(work, dialect="claude", ask=keeper, state=tmp_path / "state") as engine:
        await engine.call("Read", file_path="a.py")
        (reply,) = await engine.run([Call(name, values, id="call-1")])

    (question,) = keeper.questions
    top = str(tmp_path.resolve())
    summary, folder = (text.replace(top, "/home/me") for text in (question.summary, question.folder))
    text = await forms(msgspec.structs.replace(question, summary=summary, folder=folder), capsys)
    assert reply.status == "rejected-by-user"
    assert not any(f'"{word}"' in text or f"{word}:" in text for word in INTERNAL)
    golden.check(f"questions/{request.node.callspec.id}.txt", text)


OTHERS = [
    Question(
        kind="server",
        call_id="",
        name="docs",
        summary="The MCP server docs (project): start it?",
        touches=(),
        effects=("command: npx docs", "args: -y"),
    ),
    Question(
        kind="plan",
        call_id="1",
        name="ExitPlanMode",
        summary="Approve the plan?",
        touches=(),
        input={"plan": "# Do it\n\n1. First.", "mode": "default"},
        effects=("allows `make`",),
    ),
    Question(
        kind="values",
        call_id="",
        name="docs",
        summary="The MCP server docs asks: who are you?",
        touches=(),
        schema={"type": "object", "properties": {"name": {"type": "string"}}},
    ),
    Question(
        kind="choose",
        call_id="1",
        name="AskUserQuestion",
        summary="Which?",
        touches=(),
        choices=(Choice(id="c", question="Which?", options=(Option("Red"), Option("Blue"))),),
        schema={"type": "object", "properties": {"c": {"type": "string", "enum": ["Red", "Blue"]}}},
    ),
    Question(
        kind="host",
        call_id="1",
        name="Bash",
        tool="shell",
        summary="The command wants to reach pypi.example, which the sandbox does not allow",
        touches=(Access.command("pip download x", "/home/me"),),
        input={"command": "pip download x", "cwd": "/home/me"},
    ),
    Question(
        kind="planted",
        call_id="1",
        name="Bash",
        tool="shell",
        summary="A command made .vscode, which other programs obey",
        touches=(Access.command("make", "/home/me"),),
        input={"command": "make", "cwd": "/home/me"},
        changes=("(new file, 3 bytes)", "1 + {}"),
        why="VS Code runs its tasks and obeys its settings. Only a person's yes counts.",
    ),
]


@pytest.mark.parametrize("question", [pytest.param(one, id=one.kind) for one in OTHERS])
async def test_every_other_kind_has_its_form(golden, capsys, question):
    golden.check(f"questions/{question.kind}.txt", await forms(question, capsys))


HOST = next(one for one in OTHERS if one.kind == "host")
RUN_OUTSIDE = Answer(allow=False, values={"run": "outside"})


@pytest.mark.parametrize(
    ("key", "decision", "answer"),
    [
        pytest.param("y", "allow for this session", Answer(allow=True), id="session"),
        pytest.param("a", "always", Answer(allow=True, always=True), id="always"),
        pytest.param("o", "run it once outside the sandbox", RUN_OUTSIDE, id="outside"),
        pytest.param("n", "deny", NO, id="no"),
    ],
)
async def test_a_host_is_answered_alike_everywhere(key: str, decision: str, answer: Answer) -> None:
    class Chooses(Person):
        async def key(self, words: str, keys: Any, *, again: bool = False) -> str:
            assert key in dict(keys)
            return key

    ours, theirs = os.pipe()
    os.write(theirs, f"{key}\n".encode())
    os.close(theirs)
    with open(ours, encoding="utf-8") as source:
        assert await TerminalAsker(source).ask(HOST) == answer
    assert await InPerson(Chooses(), markdown=str).ask(HOST) == answer
    assert _answer(HOST, "accept", {"decision": decision}) == answer
