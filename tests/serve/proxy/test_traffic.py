"""Bodies that real client programs have sent, through the proxy onto every wire: see `bench/clients/record.py`."""

import contextlib
import json
import warnings
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from bench.proxy import rules, strict
from bench.proxy.hear import Clients
from bench.proxy.seen import Seen, seen
from bench.proxy.stage import HOSTS, TOKEN, Ours, ours
from bench.proxy.talk import APIS, Answer, Words
from bench.proxy.upstream import Upstream, says

FILES = sorted((Path(__file__).parent / "traffic").glob("*.json"))
_PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
}
_ANSWER = Answer((Words(("The answer ", "to a program.")),))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage() -> AsyncIterator[tuple[Upstream, Clients]]:
    async with contextlib.AsyncExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the makers' packages warn of is not ours to mend
            upstream, target = await stack.enter_async_context(ours())
            assert isinstance(target, Ours)
            clients = await target.clients("plain")
        yield upstream, clients


def _spoken(said: Seen) -> dict[str, Any]:
    """What a conversation is about, in whatever API it is held."""
    parts = [part for _, turn in said.turns for part in turn]
    results = [part for part in parts if part[0] == "result"]
    inside = [one for part in results for one in part[2]]
    words = Counter(one[1] for one in (*parts, *inside) if one[0] == "text" and "canary" in one[1])
    # An API without pictures in results has them behind the results.
    pictures = sum(one[0] == "image" for one in (*parts, *inside))
    called = [(part[1], part[2].rpartition("__")[2]) for part in parts if part[0] == "call"]
    return {"calls": called, "results": sorted(part[1] for part in results), "pictures": pictures, "canaries": words}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("wire", APIS)
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
async def test_what_a_real_program_sends_reaches_every_wire_whole(
    file: Path, wire: str, stage: tuple[Upstream, Clients]
) -> None:
    upstream, clients = stage
    kept = json.loads(file.read_text(encoding="utf-8"))
    api, model = kept["api"], f"{HOSTS[wire]}:m"
    for given in kept["bodies"]:
        body = {**given, "model": model} if api != "gemini" else given
        upstream.play(says(_ANSWER))

        answer = await clients.http.post(
            f"{clients.url}{_PATHS[api].format(model=model)}", json=body, headers={"authorization": f"Bearer {TOKEN}"}
        )

        assert answer.status_code == 200, answer.text
        rules.check(answer.content, api)
        assert upstream.got[0].wire == wire
        assert _spoken(strict.check(upstream.got[0].body, wire)) == _spoken(seen(body, api))


def test_every_client_has_been_recorded_with_all_that_it_does() -> None:
    kept = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in FILES}
    calls = {
        name: max(len(_spoken(seen(body, one["api"]))["calls"]) for body in one["bodies"]) for name, one in kept.items()
    }

    assert set(kept) == {"claude", "codex", "gemini", "opencode", "pi", "qwen"}
    assert {one["api"] for one in kept.values()} == set(APIS)
    assert min(calls.values()) >= 25


def test_the_recordings_hold_nothing_of_a_machine_or_a_person() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in FILES)

    assert not any(word in text for word in ("/home/", "/root", "/tmp/ferrule", "sk-", "authorization", "cookie"))
    assert len(text) < 400_000
