"""The traffic as a recording: the user's alone, without keys, and played again to the same clients."""

import asyncio
import json
import os
import re
import stat

import pytest

from ferrule.core.errors import ConfigError
from ferrule.models.cues import read
from tests.models.server import serving
from tests.models.spoken import CHAT
from tests.serve.proxy.proxied import (
    APIS,
    TOKEN,
    Holding,
    call_piece,
    fails,
    happened,
    hosts,
    piece,
    proxied,
    says,
    talks,
    words,
)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "in one piece"])
async def test_what_is_recorded_is_played_again_to_the_same_clients(tmp_path, stream):
    tape = str(tmp_path / "talk.jsonl")
    questions = {api: f"A question over {api}." for api in APIS}
    async with serving() as server:
        server.play(*(talks(f"The answer over {api}.") for api in APIS))
        async with proxied(hosts(server), tape=tape) as proxy:
            first = {api: await proxy.ask(api, said, stream=stream) for api, said in questions.items()}
    async with serving() as nobody, proxied(hosts(nobody), models={"*": f"scripted:{tape}"}) as proxy:
        again = {api: await proxy.ask(api, said, stream=stream) for api, said in reversed(questions.items())}

    for api in APIS:
        assert first[api].status_code == again[api].status_code == 200
        assert f"The answer over {api}." in _words(again[api].text)
        assert f"The answer over {api}." in _words(first[api].text)
    assert nobody.asked == []


def _words(text: str) -> str:
    """The words of a stream, whatever its pieces were: each API has them under a name of its own."""
    if "The answer over" in text and "event" not in text[:6] and not text.startswith("data"):
        return text
    found = re.findall(r'"(?:text|content|delta)":"((?:[^"\\]|\\.)*)"', text)
    return "".join(json.loads(f'"{one}"') for one in found)


async def test_a_call_is_recorded_with_its_arguments_and_its_tokens(tmp_path):
    tape = str(tmp_path / "talk.jsonl")
    async with serving() as server:
        server.play(says(CHAT))
        async with proxied(hosts(server), tape=tape) as proxy:
            await proxy.ask("anthropic", stream=True)

    (cue,) = read(tape).cues
    use = next(part for part in cue.parts if part.use is not None)
    assert (use.use, use.input) == ("Read", {"path": "a/ü.py", "n": 3})
    assert cue.usage == CHAT.usage


async def test_the_file_is_the_users_alone_and_has_no_key_and_no_token(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-v1-the-secret-key-of-the-user")
    tape = tmp_path / "talk.jsonl"
    async with serving() as server:
        said = f"Your keys are sk-or-v1-the-secret-key-of-the-user and {TOKEN}."
        server.play(talks(said), fails(401, said))
        models = hosts(server)
        models.hosts["openrouter"] = type(models.hosts["up0"])(url=server.url)
        async with proxied(models, tape=str(tape), models={"*": "openrouter:m"}) as proxy:
            assert "secret-key" in (await proxy.ask("anthropic", f"Mine is {TOKEN}.")).text
            await proxy.ask("anthropic", "And another one.")

    assert stat.S_IMODE(os.stat(tape).st_mode) == 0o600
    raw = tape.read_text(encoding="utf-8")
    assert "Your keys are" in raw
    assert "sk-or-v1" not in raw
    assert TOKEN not in raw


async def test_an_answer_that_nobody_waited_for_is_left_out_and_a_repetition_is_kept(tmp_path):
    tape = str(tmp_path / "talk.jsonl")
    play = Holding(piece("half an answer"))
    async with serving() as server:
        server.play(play, fails(500), talks("whole"))
        async with proxied(hosts(server), tape=tape) as proxy:
            async with proxy.streaming("anthropic") as reading:
                await reading.until(b"half")
            await happened(play.gone)
            await proxy.ask("anthropic")

    cues = read(tape).cues
    assert [cue.again is not None for cue in cues] == [True, False]
    assert "half" not in str(cues)


async def test_a_recording_that_is_there_is_not_written_over(tmp_path):
    tape = tmp_path / "talk.jsonl"
    tape.write_text("mine")

    async with serving() as server:
        with pytest.raises(ConfigError, match="is there already"):
            async with proxied(hosts(server), tape=str(tape)):
                pass

    assert tape.read_text() == "mine"


async def test_answers_that_overlap_do_not_mix(tmp_path):
    tape = str(tmp_path / "talk.jsonl")

    async def echo(exchange):
        said = exchange.value["messages"][-1]["content"]
        await exchange.begin()
        await exchange.chunk(call_piece(f'{{"said": "{said}"}}', name="Say") + words(said))
        await exchange.end()

    async with serving() as server:
        server.play(echo)
        async with proxied(hosts(server), tape=tape) as proxy:
            await asyncio.gather(*(proxy.ask("anthropic", f"n{at}", stream=True) for at in range(30)))

    said: list[list[object]] = [
        [dict(part.input).get("said") if part.use else part.text for part in cue.parts]  # type: ignore[arg-type]
        for cue in read(tape).cues
    ]
    assert sorted(said) == sorted([f"n{at}", f"n{at}"] for at in range(30))
