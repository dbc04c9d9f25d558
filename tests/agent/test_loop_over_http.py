"""The whole loop over real HTTP, in the words of each of the four APIs, with a server that fails in every usual way."""

import asyncio
import json
from collections.abc import Callable

import pytest

from ferrule.agent import Retrying, Spoke
from ferrule.models.cues import Cue, calls, said
from ferrule.models.recorder import Scripted
from ferrule.wire import ModelRequest, Turn, Usage
from ferrule.wire.anthropic_stream import AnthropicWriter
from ferrule.wire.gemini_stream import GeminiWriter
from ferrule.wire.openai_chat_stream import ChatWriter
from ferrule.wire.openai_responses_stream import ResponsesWriter
from ferrule.wire.stream import StreamWriter, text
from tests.models.conftest import Asker, asker, server
from tests.models.spoken import ANTHROPIC, CHAT, GEMINI, RESPONSES

from .stage import Stage, check_valid

__all__ = ["asker", "server"]

WRITERS: dict[str, Callable[[], StreamWriter]] = {
    "anthropic": AnthropicWriter,
    "openai-chat": ChatWriter,
    "openai-responses": ResponsesWriter,
    "gemini": GeminiWriter,
}
EACH = pytest.mark.parametrize("api", [ANTHROPIC, RESPONSES, CHAT, GEMINI], ids=lambda one: one.api)
READ = calls(
    ("Read", {"file_path": "a.py"}, "call_1"),
    ("Grep", {"pattern": "x"}, "call_2"),
    text="I look.",
    usage=Usage(900, 20),
)
DONE = said("It is 1.", usage=Usage(1_000, 5))


async def stream(api: str, cue: Cue) -> bytes:
    """What an API sends for a cue."""
    writer = WRITERS[api]()
    asked = ModelRequest(model="", turns=(Turn("user", ()),))
    deltas = [delta async for delta in Scripted(cue).ask(asked)]
    return b"".join(text(event) for delta in deltas for event in writer.write(delta))  # type: ignore[arg-type]


def plays(raw: bytes):
    async def play(exchange):
        await exchange.stream(raw)

    return play


def fails(status: int, **headers: str):
    async def play(exchange):
        await exchange.whole(status, {"error": {"message": "not now", "type": "x"}}, **headers)

    return play


def cut(raw: bytes, at: int):
    async def play(exchange):
        await exchange.begin()
        await exchange.chunk(raw[:at])
        exchange.cut()

    return play


def drips(raw: bytes, size: int):
    async def play(exchange):
        await exchange.begin()
        for at in range(0, len(raw), size):
            await exchange.chunk(raw[at : at + size])
            await asyncio.sleep(0)
        await exchange.end()

    return play


@EACH
async def test_a_call_goes_out_and_its_result_comes_back_in_the_apis_words(tmp_path, asker: Asker, api):
    (tmp_path / "a.py").write_text("x = 1\n")
    asker.server.play(plays(await stream(api.api, READ)), plays(await stream(api.api, DONE)))
    async with Stage(tmp_path, model=asker.model(api)) as stage:
        ended = await stage.run("What is x?")

        assert (ended.reason, ended.text, ended.spent.turns) == ("end", "It is 1.", 2)
        assert ended.spent.usage.output == 25
        check_valid(stage.agent.turns)
    first, second = asker.server.asked
    assert "x = 1" in json.dumps(second.value, ensure_ascii=False)
    assert "What is x?" in json.dumps(first.value)
    assert asker.server.connections == 1


@EACH
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(lambda _: fails(429, retry_after="3"), id="429"),
        pytest.param(lambda _: fails(500), id="500"),
        pytest.param(lambda _: fails(529), id="529"),
        pytest.param(lambda raw: cut(raw, len(raw) // 2), id="a cut stream"),
        pytest.param(lambda raw: cut(raw, 1), id="cut at its first byte"),
    ],
)
async def test_what_passes_is_tried_again_and_no_call_is_made_twice(tmp_path, asker: Asker, api, trouble):
    write = calls(("Bash", {"command": "echo once >> log.txt"}, "call_1"), text="I write.")
    raw = await stream(api.api, write)
    asker.server.play(trouble(raw), plays(raw), trouble(raw), plays(await stream(api.api, DONE)))
    async with Stage(tmp_path, model=asker.model(api)) as stage:
        ended = await stage.run()

    assert ended.reason == "end"
    assert (tmp_path / "log.txt").read_text() == "once\n"
    assert len(stage.of(Retrying)) == 2
    assert len(asker.sleeps.seconds) == 2


@EACH
async def test_a_slow_drip_is_told_as_it_comes(tmp_path, asker: Asker, api):
    asker.server.play(drips(await stream(api.api, said("one two three four")), 7))
    async with Stage(tmp_path, model=asker.model(api)) as stage:
        ended = await stage.run()

    assert ended.text == "one two three four"
    assert len(stage.of(Spoke)) > 1


@EACH
async def test_interrupting_closes_the_line_and_the_next_prompt_opens_another(tmp_path, asker: Asker, api):
    seen = asyncio.Event()
    raw = await stream(api.api, said("one two three four five six seven eight"))

    async def hang(exchange):
        await exchange.begin()
        await exchange.chunk(raw[: 3 * len(raw) // 4])
        seen.set()
        await exchange.gone()

    asker.server.play(hang, plays(await stream(api.api, DONE)))
    async with Stage(tmp_path, model=asker.model(api)) as stage:
        running = asyncio.create_task(stage.run())
        await asyncio.wait_for(seen.wait(), 20)
        stage.agent.interrupt()
        assert (await asyncio.wait_for(running, 20)).reason == "interrupted"
        assert (await stage.run("Again.")).text == "It is 1."


@EACH
async def test_what_does_not_pass_is_told_at_once(tmp_path, asker: Asker, api):
    asker.server.play(fails(401), plays(await stream(api.api, DONE)))
    async with Stage(tmp_path, model=asker.model(api)) as stage:
        ended = await stage.run()

        assert ended.reason == "error"
        assert "key" in ended.error.lower()
        assert (await stage.run("Again.")).reason == "end"
    assert asker.sleeps.seconds == []
