"""Questions about calls, asked through MCP: a yes is a yes of the client's user, and everything else is a no."""

import asyncio
from typing import Any

import anyio
import mcp_types as types
import msgspec
import pytest
from mcp.shared.exceptions import MCPError

from ferrule import tool
from ferrule.core.access import Access
from ferrule.permissions import Answer, Question
from ferrule.serve.mcp.client import Clients, _answer, _form, _message
from tests.serve.connected import ERAS, User, connected
from tests.serve.offered import TOOLS

LIMIT_SECONDS = 20


ONCE: Any
ALWAYS: Any
DENY: Any
ONCE, ALWAYS, DENY = ({"decision": one} for one in ("allow once", "always", "deny"))
WRITE = {"path": "b.txt", "content": "x\n"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        pytest.param(ONCE, True, id="once"),
        pytest.param(ALWAYS, True, id="always"),
        pytest.param(DENY, False, id="deny"),
        pytest.param("decline", False, id="declined"),
        pytest.param("cancel", False, id="cancelled"),
        pytest.param({}, False, id="nothing-chosen"),
        pytest.param({"decision": "yes"}, False, id="something-else"),
        pytest.param({"decision": "Allow once"}, False, id="nearly"),
        pytest.param({"decision": True}, False, id="true"),
        pytest.param({"username": "x", "email": "y"}, False, id="an-answer-to-another-question"),
    ],
)
async def test_only_a_plain_yes_is_one(tmp_path, era, answer, allowed):
    user = User(answer)
    async with connected(tmp_path, era, ask=user) as (_, _, client):
        done = await client.call_tool("create_file", WRITE)

    assert done.is_error is not allowed
    assert (tmp_path / "b.txt").exists() is allowed
    assert len(user.asked) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_says_what_would_happen_and_what_always_covers(tmp_path, era):
    user = User(DENY)
    async with connected(tmp_path, era, ask=user) as (_, _, client):
        await client.call_tool("create_file", {"path": "b.txt", "content": "x\x1b[2J"})

    (asked,) = user.asked
    assert "create_file: write b.txt" in asked.message
    assert "(new file, 6 bytes)\n1 + x\\x1b[2J\n" in asked.message
    assert "\x1b" not in asked.message
    assert "every create_file until this server ends" in asked.message
    assert asked.requested_schema["properties"]["decision"]["enum"] == ["allow once", "always", "deny"]
    assert asked.requested_schema["properties"]["decision"]["default"] == "deny"


@pytest.mark.parametrize("era", ERAS)
async def test_always_is_not_asked_again(tmp_path, era):
    user = User(ALWAYS)
    async with connected(tmp_path, era, ask=user) as (_, _, client):
        for name in ("b.txt", "c.txt"):
            assert (await client.call_tool("create_file", {**WRITE, "path": name})).is_error is False

    assert len(user.asked) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_once_is_asked_again(tmp_path, era):
    user = User(ONCE, DENY)
    async with connected(tmp_path, era, ask=user) as (_, _, client):
        done = [(await client.call_tool("create_file", WRITE)).is_error for _ in range(2)]

    assert done == [False, True]


@pytest.mark.parametrize("era", ERAS)
async def test_a_reason_reaches_the_model(tmp_path, era):
    user = User({"decision": "deny", "message": "use \x1b[31mthe other file"})
    async with connected(tmp_path, era, ask=user) as (_, _, client):
        done = await client.call_tool("create_file", WRITE)

    assert done.content[0].text == "The user did not allow this and says: use the other file"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param("decline", "The MCP client declined the question, by its user's choice or without", id="declined"),
        pytest.param("cancel", "The MCP client declined the question, by its user's choice or without", id="cancelled"),
        pytest.param(DENY, "The user did not allow this: ", id="denied"),
    ],
)
async def test_a_client_that_declines_is_not_taken_for_its_user(tmp_path, era, answer, said):
    async with connected(tmp_path, era, ask=User(answer)) as (_, _, client):
        done = await client.call_tool("create_file", WRITE)

    assert done.content[0].text.startswith(said)
    assert "write b.txt" in done.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_a_folder_outside_is_asked_for_and_then_the_call(tmp_path, era):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    user = User(ONCE, ONCE)
    async with connected(inside, era, ask=user) as (_, _, client):
        done = await client.call_tool("create_file", {"path": str(outside / "b.txt"), "content": "x\n"})

    assert done.is_error is False
    assert (outside / "b.txt").read_text() == "x\n"
    assert "outside the workspace" in user.asked[0].message
    assert [one.requested_schema["properties"]["decision"]["enum"] for one in user.asked] == [
        ["allow once", "deny"],
        ["allow once", "always", "deny"],
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_be_asked_is_told_what_to_do(tmp_path, era):
    async with connected(tmp_path, era) as (_, _, client):
        done = await client.call_tool("create_file", WRITE)

    assert done.is_error is True
    for word in ("--permission-mode", "--yes", "a rule that allows it", "supports elicitation"):
        assert word in done.content[0].text
    assert not (tmp_path / "b.txt").exists()


async def test_a_client_that_fails_while_it_is_asked_has_said_no(tmp_path):
    async def fails(context, params):
        return types.ErrorData(code=-32000, message="no window")

    async with connected(tmp_path, ask=fails) as (_, _, client):
        done = await client.call_tool("create_file", WRITE)

    assert "could not be answered" in done.content[0].text
    assert not (tmp_path / "b.txt").exists()


async def test_whoever_gives_up_the_request_takes_the_question_back(tmp_path):
    asked = asyncio.Event()

    async def never(context, params):
        asked.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(LIMIT_SECONDS), connected(tmp_path, ask=never, tools=TOOLS) as (_, _, client):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "create_file", WRITE)
            await asked.wait()
            group.cancel_scope.cancel()
        done = await client.call_tool("test_simple_text", {})

    assert done.is_error is False


async def test_an_answer_in_a_round_that_was_never_asked_for_counts_for_nothing(tmp_path):
    user = User(DENY)
    async with connected(tmp_path, "2026-07-28", ask=user) as (_, _, client):
        session = client.session
        first = await session.call_tool("create_file", WRITE, allow_input_required=True)
        (key,) = first.input_requests
        yes = {key: types.ElicitResult(action="accept", content=ONCE)}
        unasked = await session.call_tool("create_file", WRITE, input_responses=yes, allow_input_required=True)

        assert isinstance(unasked, types.InputRequiredResult)
        for changed in ({**WRITE, "path": "c.txt"}, {**WRITE, "content": "y\n"}):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await session.call_tool(
                    "create_file",
                    changed,
                    input_responses=yes,
                    request_state=first.request_state,
                    allow_input_required=True,
                )
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await session.call_tool(
                "create_file", WRITE, input_responses=yes, request_state="v1.forged", allow_input_required=True
            )
        assert list(tmp_path.iterdir()) == []
        asked = await session.call_tool(
            "create_file",
            WRITE,
            input_responses=yes,
            request_state=first.request_state,
            allow_input_required=True,
        )
        assert asked.is_error is False


async def test_a_question_that_has_changed_since_is_asked_again(tmp_path):
    async with connected(tmp_path, "2026-07-28", ask=User(), tools=TOOLS) as (_, _, client):
        call: dict[str, Any] = {"name": "test_elicitation", "arguments": {"message": "x"}}
        first = await client.session.call_tool(**call, allow_input_required=True)
        other = dict.fromkeys(["permission-other"], types.ElicitResult(action="accept", content=ONCE))
        again = await client.session.call_tool(
            **call, input_responses=other, request_state=first.request_state, allow_input_required=True
        )

    assert isinstance(again, types.InputRequiredResult)
    assert again.input_requests == first.input_requests


async def test_a_call_that_waits_for_its_user_holds_up_no_other(tmp_path):
    async with asyncio.timeout(LIMIT_SECONDS):
        async with connected(tmp_path, "2026-07-28", ask=User(ONCE)) as (_, _, client):
            waits = await client.session.call_tool("create_file", WRITE, allow_input_required=True)
            done = await client.call_tool("create_file", WRITE)

    assert isinstance(waits, types.InputRequiredResult)
    assert done.is_error is False


async def test_a_question_of_no_request_is_answered_with_no():
    question = Question(kind="call", call_id="7", name="x", summary="x", touches=())

    assert (await Clients().ask(question)).allow is False


ABOUT_A_SERVER = Question(
    kind="server",
    call_id="",
    name="files",
    summary="Start it?",
    touches=(),
    effects=tuple(f"line {n}" for n in range(9)),
)


async def while_calling(folder, era, user, then):
    """What `then` makes of the asker while a client's call runs."""
    begun, ends = asyncio.Event(), asyncio.Event()

    @tool(touches=[], inline=True)
    async def wait() -> str:
        """Waits for the test."""
        begun.set()
        await ends.wait()
        return "done"

    async with asyncio.timeout(LIMIT_SECONDS), connected(folder, era, ask=user, tools=[wait]) as (engine, _, client):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "wait", {})
            await begun.wait()
            said = await then(engine._asker)
            ends.set()
        return said


@pytest.mark.parametrize(("answer", "allowed"), [(ONCE, True), (ALWAYS, False), (DENY, False), ("decline", False)])
async def test_a_question_about_no_call_goes_to_the_one_client_that_calls(tmp_path, answer, allowed):
    user = User(answer)
    said = await while_calling(tmp_path, "legacy", user, lambda asker: asker.ask(ABOUT_A_SERVER))

    assert said.allow is allowed
    assert "line 8" in user.asked[0].message


async def test_a_question_that_cannot_be_shown_whole_is_not_asked(tmp_path):
    long = msgspec.structs.replace(ABOUT_A_SERVER, effects=("x" * 60_000,))
    said = await while_calling(tmp_path, "legacy", User(), lambda asker: asker.ask(long))

    assert said.allow is False


async def test_newer_clients_are_not_asked_about_anything_but_their_calls(tmp_path):
    said = await while_calling(tmp_path, "2026-07-28", User(), lambda asker: asker.ask(ABOUT_A_SERVER))

    assert said.allow is False


QUESTION: dict[str, Any] = {"call_id": "1", "name": "x", "summary": "do x", "touches": (Access.read("/x"),)}


def test_values_that_a_server_asks_for_are_asked_in_its_own_form():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    question = Question(kind="values", schema=schema, **QUESTION)

    assert _form(question) == schema
    assert _answer(question, "accept", {"name": "a\x1b[2J"}) == Answer(allow=True, values={"name": "a"})
    assert _answer(question, "decline", {"name": "a"}).allow is False


def test_a_long_question_shows_its_beginning_and_its_end():
    question = Question(kind="call", **{**QUESTION, "summary": "begin" + "x" * 100_000 + "end"})
    message = _message(question)

    assert len(message) < 21_000
    assert message.startswith("begin")
    assert "end\n" in message


def test_rules_that_always_would_save_are_named():
    question = Question(kind="call", proposals=("Bash(git push *)",), **QUESTION)

    assert "saves the rule Bash(git push *)" in _message(question)
