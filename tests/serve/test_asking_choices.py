"""What a model asks the user to choose, asked through MCP as a form."""

import pytest

from ferrule.core.services import Choice, Option
from ferrule.permissions import Answer, Question, schema_of
from ferrule.serve.mcp.client import _answer, _form, _key, _message
from tests.rows import each_row
from tests.serve.connected import ERAS, User, connected

OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
WHICH = {"question": "Which?", "header": "Colour", "options": OPTIONS}


@each_row("era", ERAS)
@each_row(
    ("answer", "text"),
    [
        pytest.param({"Which?": "Blue"}, '"Which?": Blue', id="label"),
        pytest.param({"Which? (in your own words)": "green\x1b[2J"}, '"Which?": green', id="own-words"),
        pytest.param("decline", "The MCP client declined the question", id="declined"),
        pytest.param({}, "The user did not answer.", id="nothing"),
    ],
)
async def test_a_choice_is_put_to_the_user_of_the_client(tmp_path, era, answer, text):
    user = User(answer)
    async with connected(tmp_path, era, ask=user, dialect="opencode") as (_, _, client):
        done = await client.call_tool("question", {"questions": [WHICH]})

    assert text in done.content[0].text
    (asked,) = user.asked
    assert asked.message == "The model asks: Which?"
    assert list(asked.requested_schema["properties"]) == ["Which?", "Which? (in your own words)"]
    assert asked.requested_schema["properties"]["Which?"]["enum"] == ["Red", "Blue"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_be_asked_has_its_model_decide(tmp_path, era):
    async with connected(tmp_path, era, dialect="opencode") as (_, _, client):
        done = await client.call_tool("question", {"questions": [WHICH]})

    assert done.is_error is True
    assert "this MCP client cannot be asked. Decide yourself" in done.content[0].text


def question(*options: str) -> Question:
    choices = (Choice(question="Which?", options=tuple(map(Option, options))),)
    return Question(
        kind="choose",
        call_id="1",
        name="x",
        summary="The model asks: Which?",
        touches=(),
        choices=choices,
        schema=schema_of(choices),
    )


def test_the_form_is_the_question_s_own():
    asked = question("a", "b")

    assert _form(asked) == asked.schema
    assert _message(asked) == "The model asks: Which?"
    assert _answer(asked, "accept", {"Which?": "a\x1b[2J"}) == Answer(allow=True, values={"Which?": "a"})
    assert _answer(asked, "cancel", {"Which?": "a"}).allow is False


def test_an_answer_is_to_the_question_with_the_same_options_only():
    assert _key(question("a", "b")) == _key(question("a", "b")) != _key(question("a", "c"))
