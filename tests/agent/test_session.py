"""What a session is given beside its model reaches the loop and the engine."""

import inspect

import pytest

from ferrule import Access, Answer, ConfigError, Context, Dialect, Engine, Session, tool
from ferrule.core.tool import Face
from ferrule.engine.build import EngineOptions
from ferrule.models.cues import calls, said
from ferrule.models.recorder import Scripted

from .stage import Stage


@tool(touches=lambda path: [Access.read(path)])
def count_lines(path: str, ctx: Context) -> int:
    """Count the lines of a file."""
    with open(ctx.path(path), encoding="utf-8") as file:
        return sum(1 for _ in file)


async def test_a_tool_of_ones_own_is_called_by_the_model_and_recall_stays(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    async with Stage(tmp_path, calls(("count_lines", {"path": "a.txt"})), said("Two."), tools=[count_lines]) as stage:
        names = {face.name for face in stage.session.engine.faces()}
        await stage.run()

        assert {"count_lines", "recall"} <= names
        assert [reply.result for reply in stage.replies] == [2]


async def test_something_else_among_the_tools_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="made with @tool"):
        async with Stage(tmp_path, said("x"), tools=[print]):
            pass


async def test_a_plain_function_answers_questions(tmp_path):
    asked = []

    def ask(question):
        asked.append(question.kind)
        return Answer(allow=False, message="Not today.")

    async with Stage(
        tmp_path, calls(("Write", {"file_path": "a", "content": "x"})), said("So be it."), ask=ask
    ) as stage:
        await stage.run()

        assert asked == ["call"]
        assert [reply.text for reply in stage.replies] == ["Not today."]


async def test_a_dialect_of_ones_own_is_spoken(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    schema = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
    cat = Face(tool="read", name="cat", words="Print a file.", schema=schema, params={"file": "path"})
    model = Scripted(calls(("cat", {"file": "a.txt"})), said("One."))
    async with Session(tmp_path, model=model, dialect=Dialect(name="terse", faces=(cat,))) as session:
        ended = await session.agent.run("What is in it?")

        assert (ended.reason, ended.text) == ("end", "One.")


def test_a_session_takes_what_an_engine_takes_but_what_is_its_own():
    taken = {*inspect.signature(Session).parameters, *EngineOptions.__annotations__}

    assert set(inspect.signature(Engine).parameters) - taken == {"session_id", "subagents"}
    assert set(EngineOptions.__annotations__) <= set(inspect.signature(Engine).parameters)


async def test_the_permission_mode_of_an_open_session_is_changed_in_place(tmp_path):
    async with Session(tmp_path, model=Scripted(), dialect="claude") as session:
        modes = [session.mode, session.set_mode("acceptEdits"), session.mode, session.set_mode("plan"), session.mode]
        with pytest.raises(ConfigError, match="whatever"):
            session.set_mode("whatever")

        assert modes == ["default", "acceptEdits", "acceptEdits", "plan", "plan"]
