"""What goes wrong: refusals of the host, streams that break, fall silent or talk nonsense, and clients that leave. The
client reads an error of its own API, and never half a call."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from bench.proxy import speak
from bench.proxy.cases.kit import Table, equal, is_answer
from bench.proxy.hear import Heard
from bench.proxy.stage import Scene
from bench.proxy.talk import APIS, TOOLS, Answer, Ask, Call, Think, Words, words
from bench.proxy.upstream import SECONDS, Play, cuts, ends, holds, refuses, says, streams

TABLE = Table("failures")
_ASK = Ask(tools=TOOLS)

_FORMS: dict[str, dict[str, tuple[int, set[str]]]] = {
    "bad": {
        "anthropic": (400, {"invalid_request_error"}),
        "openai-chat": (400, {"invalid_request_error"}),
        "openai-responses": (400, {"invalid_request_error"}),
        "gemini": (400, {"INVALID_ARGUMENT"}),
    },
    "key": {
        "anthropic": (403, {"permission_error"}),
        "openai-chat": (403, {"permission_denied"}),
        "openai-responses": (403, {"permission_denied"}),
        "gemini": (403, {"PERMISSION_DENIED"}),
    },
    "model": {
        "anthropic": (404, {"not_found_error"}),
        "openai-chat": (404, {"model_not_found"}),
        "openai-responses": (404, {"model_not_found"}),
        "gemini": (404, {"NOT_FOUND"}),
    },
    "limit": {
        "anthropic": (429, {"rate_limit_error"}),
        "openai-chat": (429, {"rate_limit_exceeded"}),
        "openai-responses": (429, {"rate_limit_exceeded"}),
        "gemini": (429, {"RESOURCE_EXHAUSTED"}),
    },
    "server": {
        "anthropic": (502, {"api_error"}),
        "openai-chat": (502, {"server_error"}),
        "openai-responses": (502, {"server_error"}),
        "gemini": (502, {"INTERNAL"}),
    },
    "overloaded": {
        "anthropic": (529, {"overloaded_error"}),
        "openai-chat": (503, {"server_is_overloaded"}),
        "openai-responses": (503, {"server_is_overloaded"}),
        "gemini": (503, {"UNAVAILABLE"}),
    },
}
"""Each kind of failure, and its status and word in each API. That a host refuses the proxy's key is not the
client's doing: it reads that something is not permitted, and not of a wrong token."""

_FITTING: dict[str, set[int]] = {
    "bad": {400, 422},
    "key": {401, 403},
    "model": {400, 404},
    "limit": {429},
    "server": {500, 502, 503, 504},
    "overloaded": {429, 500, 502, 503, 529},
}
"""What would do for each kind, whoever decides it."""


def _refused(heard: Heard, kind: str, scene: Scene) -> None:
    assert heard.failed is not None, f"no error, but {heard.text!r}"
    status, kinds = _FORMS[kind][scene.client]
    assert heard.failed.message, "an error without a word"
    if not scene.is_ours:
        assert heard.failed.status in _FITTING[kind], f"status {heard.failed.status} ({heard.failed.message[:100]})"
        return
    equal(heard.failed.status, status, f"status ({heard.failed.message})")
    assert heard.failed.kind in kinds, f"{heard.failed.kind!r} is none of {kinds}"
    equal(heard.headers["content-type"], "application/json", "type of the error")


def _refuses(name: str, kind: str, play: Play, **more: Any) -> None:
    async def act(scene: Scene) -> None:
        scene.play(play)
        heard = await scene.ask()
        _refused(heard, kind, scene)
        for header, value in more.get("headers", {}).items():
            equal(heard.headers.get(header), value, header)
        equal(len(scene.got), 1, "times that the host was asked")

    TABLE.case(name, modes=more.get("modes", (True, False)), own=more.get("own", False))(act)


_refuses("400: a body that the host does not take", "bad", refuses(400, "messages: something is wrong"))
_refuses("401: a key that the host does not take", "key", refuses(401, "invalid x-api-key"))
_refuses("403: a key that may not", "key", refuses(403, "not allowed here"))
_refuses("404: a model that is not there", "model", refuses(404, "The model `m` does not exist", "model_not_found"))
_refuses("429: too many requests", "limit", refuses(429, "slow down", retry_after="7"), headers={"retry-after": "7"})
_refuses(
    "429: retry-after in milliseconds",
    "limit",
    refuses(429, "slow down", retry_after_ms="1500"),
    headers={"retry-after": "2"},
    modes=(True,),
)
_refuses(
    "429: too many requests for an hour",
    "limit",
    refuses(429, "slow down", retry_after="3600"),
    headers={"retry-after": "3600"},
    modes=(True,),
)
_refuses("500: a host that fails", "server", refuses(500, "internal error"))
_refuses(
    "503: a host without room", "overloaded", refuses(503, "try later", retry_after="3"), headers={"retry-after": "3"}
)
_refuses("529: a host that is overloaded", "overloaded", refuses(529, "Overloaded"))
_refuses(
    "a refusal that should not be repeated says so",
    "bad",
    refuses(400, "no"),
    headers={"x-should-retry": "false"},
    own=True,
)


@TABLE.case("an error that is a page of HTML")
async def _page(scene: Scene) -> None:
    async def play(got: Any) -> None:
        page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
        await got.whole(502, page, {"content-type": "text/html", "content-length": str(len(page))})

    scene.play(play)
    heard = await scene.ask()
    _refused(heard, "server", scene)
    assert heard.failed is not None
    assert "<" not in heard.failed.message or not scene.is_ours, "a page went to the client"


_WORDS = {
    "anthropic": "prompt is too long",
    "openai-chat": "maximum context length",
    "openai-responses": "context window",
    "gemini": "exceeds the maximum number of tokens",
}
_TOLD = {
    "anthropic": "prompt is too long: 250000 tokens > 200000 maximum",
    "openai-chat": "This model's maximum context length is 128000 tokens. However, you asked for 250000 tokens",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
}


@TABLE.case("a conversation that is too long is told in the words that programs look for")
async def _too_long(scene: Scene) -> None:
    code = "context_length_exceeded" if scene.wire.startswith("openai") else ""
    scene.play(refuses(400, _TOLD[scene.wire], code))
    heard = await scene.ask()
    assert heard.failed is not None
    equal(heard.failed.status, 400, "status")
    assert _WORDS[scene.client] in heard.failed.message, heard.failed.message
    if scene.client.startswith("openai"):
        equal(heard.failed.kind, "context_length_exceeded", "code")


@TABLE.case("a body that is too large for the host")
async def _large(scene: Scene) -> None:
    scene.play(refuses(413, "Request exceeds the maximum size", "request_too_large"))
    heard = await scene.ask()
    assert heard.failed is not None
    assert heard.failed.status in {400, 413}, heard.failed
    assert _WORDS[scene.client] in heard.failed.message or not scene.is_ours, heard.failed.message


_ANSWER = Answer(
    (
        Think(("Hm, ", "well."), "c2ln"),
        Words(("I ", "look ", "first.")),
        Call("call_a", "Write", ('{"path":"a",', '"content":"half', ' and whole"}')),
    )
)


def _until(wire: str, mark: str) -> list[bytes]:
    """The events of an answer up to the one with a mark in it, that one too."""
    events = speak.stream(_ANSWER, wire)
    at = next(at for at, one in enumerate(events) if mark.encode() in one)
    return events[: at + 1]


def _broken(heard: Heard, scene: Scene, *, begins: bool = True) -> None:
    """Raises AssertionError unless the answer ended with an error, and with no call."""
    assert heard.failed is not None, f"no error, but {heard.text!r} {heard.calls}"
    equal(heard.calls, [], "calls of an answer that broke")
    if scene.stream and begins and (scene.is_ours or heard.status == 200):
        equal(heard.status, 200, "status")
        last = heard.raw.strip().rpartition(b"\n\n")[2]
        assert b"error" in last, last
        assert b"[DONE]" not in heard.raw
        assert b"message_stop" not in heard.raw
        assert b"response.completed" not in heard.raw
        assert b"finishReason" not in heard.raw
    else:
        assert heard.status >= 400, heard.status


_BREAKS: dict[str, Callable[[str], list[bytes]]] = {
    "in the thinking": lambda wire: _until(wire, "Hm, "),
    "in the words": lambda wire: _until(wire, "look "),
    "in a call": lambda wire: _until(wire, "half"),
}
_CUT_CALLS = ("anthropic", "openai-chat", "openai-responses")
for _where, _events in _BREAKS.items():
    for _how, _ending in (("the connection breaks", cuts), ("the stream ends too early", ends)):

        def _act(events: Callable[[str], list[bytes]], ending: Callable[[list[bytes]], Play]) -> Any:
            async def act(scene: Scene) -> None:
                scene.play(ending(events(scene.wire)))
                heard = await scene.ask(_ASK)
                _broken(heard, scene)

            return act

        TABLE.case(
            f"{_how} {_where}",
            # Gemini's calls come whole: none can be cut.
            wires=_CUT_CALLS if _where == "in a call" else APIS,
            where=lambda client, wire, stream: stream or client != wire,
        )(_act(_events, _ending))


@TABLE.case("the connection breaks before the first byte", modes=(True, False))
async def _nothing(scene: Scene) -> None:
    async def play(got: Any) -> None:
        got.cut()

    scene.play(play)
    _refused(await scene.ask(_ASK), "server", scene)


@TABLE.case("an answer whose body breaks off", modes=(False,), where=lambda client, wire, _s: client == wire)
async def _half(scene: Scene) -> None:
    async def play(got: Any) -> None:
        data = json.dumps(speak.whole(_ANSWER, got.wire)).encode()
        await got._send(
            f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode()
            + data[: len(data) // 2]
        )
        got.cut()

    scene.play(play)
    _broken(await scene.ask(_ASK), scene, begins=False)


@TABLE.case("a stream that ends before it has begun", modes=(True,))
async def _empty(scene: Scene) -> None:
    scene.play(ends([]))
    heard = await scene.ask(_ASK)
    assert heard.failed is not None, "an empty stream is taken for an answer"
    assert heard.status in _FITTING["server"], heard.status


@TABLE.case("the host tells of an error in the middle of its words", modes=(True, False))
async def _told(scene: Scene) -> None:
    events = [*_until(scene.wire, "look "), speak.error_event(scene.wire, "Overloaded, sorry")]
    if scene.client == scene.wire and not scene.stream:
        return  # asked for in one piece there is no middle
    scene.play(streams(events))
    heard = await scene.ask(_ASK)
    _broken(heard, scene)
    assert heard.failed is not None
    assert "Overloaded, sorry" in heard.failed.message, heard.failed.message


@TABLE.case("the host tells of an error in the middle of a call", modes=(True,), wires=_CUT_CALLS)
async def _told_in_call(scene: Scene) -> None:
    scene.play(streams([*_until(scene.wire, "half"), speak.error_event(scene.wire, "failed")]))
    _broken(await scene.ask(_ASK), scene)


@TABLE.case("the host tells of an error as its first event", modes=(True,))
async def _told_first(scene: Scene) -> None:
    scene.play(streams([speak.error_event(scene.wire, "Overloaded, sorry")]))
    heard = await scene.ask(_ASK)
    assert heard.failed is not None
    assert heard.status >= 400, "an error before the first word has a status of its own"


@TABLE.case("an event that is no JSON ends the answer, or is passed over", modes=(True,))
async def _no_json(scene: Scene) -> None:
    events = speak.stream(Answer((Words(("Hel", "lo")),)), scene.wire)
    begun = next(at for at, event in enumerate(events, 1) if b"Hel" in event)
    scene.play(streams([*events[:begun], b"data: {oops\n\n", *events[begun:]]))
    heard = await scene.ask()
    if heard.failed is None:
        equal(heard.text, "Hello", "text")


@TABLE.case("bytes that are no events", modes=(True,))
async def _noise(scene: Scene) -> None:
    scene.play(streams([bytes(range(256)) * 8, b"\xff\xfe{}[]<html>\n\n"]))
    heard = await scene.ask()
    assert heard.failed is not None, "noise is taken for an answer"
    assert heard.status in _FITTING["server"], heard.status


@TABLE.case("noise in the middle of an answer ends it, or is passed over", modes=(True,))
async def _noise_inside(scene: Scene) -> None:
    events = _until(scene.wire, "look ")
    scene.play(ends([*events, b"\x00\xff\xfe noise\n\n"]))
    _broken(await scene.ask(_ASK), scene)


@TABLE.case("a whole answer that is no JSON", modes=(False,), where=lambda client, wire, _s: client == wire)
async def _whole_noise(scene: Scene) -> None:
    async def play(got: Any) -> None:
        await got.whole(200, b"{not json")

    scene.play(play)
    _refused(await scene.ask(), "server", scene)


@TABLE.case("a whole answer of another shape", modes=(False,), where=lambda client, wire, _s: client == wire)
async def _shape(scene: Scene) -> None:
    async def play(got: Any) -> None:
        await got.whole(200, {"hello": [1, 2]})

    scene.play(play)
    heard = await scene.ask()
    assert heard.failed is not None, "another shape is taken for an answer"


@TABLE.case("a silent stream is kept alive, and goes on", modes=(True,), variant="pings")
async def _pings(scene: Scene) -> None:
    until = asyncio.Event()
    answer = Answer((Words(("I ", "look ", "first.")),))
    events = speak.stream(answer, scene.wire)
    at = next(at for at, one in enumerate(events) if b"look " in one) + 1
    scene.play(holds(events[:at], until, events[at:]))

    async def heard_ping(piece: bytes) -> None:
        if b"ping" in piece.partition(b"message_start")[0] or piece.startswith((b":", b"\n")):
            until.set()

    scene.clients.tap.heard = heard_ping
    heard = await scene.ask()
    assert until.is_set(), "no ping"
    is_answer(heard, answer, scene)


@TABLE.case("a host that is silent from the start is kept alive", modes=(True,), variant="pings")
async def _silent_start(scene: Scene) -> None:
    until = asyncio.Event()
    answer = words("Hello")

    async def play(got: Any) -> None:
        async with asyncio.timeout(20):
            await until.wait()
        await streams(speak.stream(answer, got.wire))(got)

    scene.play(play)

    async def heard_ping(piece: bytes) -> None:  # noqa: ARG001 - any byte is one
        until.set()

    scene.clients.tap.heard = heard_ping
    heard = await scene.ask()
    assert heard.failed is None, heard.failed
    equal(heard.text, "Hello", "text")


@TABLE.case("a refusal behind a ping is told in the stream", modes=(True,), variant="pings")
async def _late_refusal(scene: Scene) -> None:
    until = asyncio.Event()

    async def play(got: Any) -> None:
        async with asyncio.timeout(20):
            await until.wait()
        await refuses(429, "slow down")(got)

    scene.play(play)

    async def heard_ping(piece: bytes) -> None:  # noqa: ARG001 - any byte is one
        until.set()

    scene.clients.tap.heard = heard_ping
    heard = await scene.ask()
    assert heard.failed is not None
    equal(heard.status, 200, "status")
    word = {"anthropic": "rate_limit_error", "gemini": "RESOURCE_EXHAUSTED"}
    equal(heard.failed.kind, word.get(scene.client, "rate_limit_exceeded"), "kind")


@TABLE.case("a stream that falls silent in its words ends with an error", modes=(True,), variant="quiet")
async def _stalls(scene: Scene) -> None:
    scene.play(holds(_until(scene.wire, "look ")))
    heard = await scene.ask(_ASK)
    _broken(heard, scene)
    async with asyncio.timeout(20):
        await scene.got[0].left.wait()


@TABLE.case("a stream that falls silent in a call ends with an error", modes=(True,), variant="quiet", wires=_CUT_CALLS)
async def _stalls_in_call(scene: Scene) -> None:
    scene.play(holds(_until(scene.wire, "half")))
    _broken(await scene.ask(_ASK), scene)


@TABLE.case("asked again before the first word", variant="again")
async def _again(scene: Scene) -> None:
    scene.play(refuses(503, "no room", retry_after_ms="1"), refuses(529, "no room", retry_after_ms="1"), says(_ANSWER))
    heard = await scene.ask(_ASK)
    is_answer(heard, _ANSWER, scene)
    equal(len(scene.got), 3, "times that the host was asked")
    equal(scene.got[2].raw, scene.got[0].raw, "the body of the repetition")


@TABLE.case("never asked again after the first word", modes=(True,), variant="again")
async def _never(scene: Scene) -> None:
    scene.play(cuts(_until(scene.wire, "look ")), says(_ANSWER))
    heard = await scene.ask(_ASK)
    _broken(heard, scene)
    equal(len(scene.got), 1, "times that the host was asked")


@TABLE.case("never asked again for what would fail again", variant="again")
async def _no_use(scene: Scene) -> None:
    scene.play(refuses(400, "messages: wrong"), says(_ANSWER))
    _refused(await scene.ask(_ASK), "bad", scene)
    equal(len(scene.got), 1, "times that the host was asked")


_CHAINED: dict[str, Any] = {"variant": "chain", "model": "chain", "wires": ("anthropic",)}


@TABLE.case("the next model of the chain answers", **_CHAINED)
async def _next(scene: Scene) -> None:
    scene.play(refuses(529, "Overloaded"), says(_ANSWER))
    heard = await scene.ask(_ASK)
    equal([got.wire for got in scene.got], ["anthropic", "openai-chat"], "who was asked")
    equal((heard.text, heard.calls), (_ANSWER.text, _ANSWER.calls), "said")
    equal(heard.headers.get("x-ferrule-model"), "vllm:second", "who answered")


@TABLE.case("the last model of the chain answers", **_CHAINED)
async def _third(scene: Scene) -> None:
    missing = refuses(404, "The model `first` does not exist", "model_not_found")
    scene.play(missing, refuses(500, "broken"), says(_ANSWER))
    heard = await scene.ask(_ASK)
    equal([got.wire for got in scene.got], ["anthropic", "openai-chat", "gemini"], "who was asked")
    equal(heard.calls, _ANSWER.calls, "calls")


@TABLE.case("a chain that fails to its end tells the last error", **_CHAINED)
async def _all_fail(scene: Scene) -> None:
    scene.play(refuses(500, "one"), refuses(500, "two"), refuses(429, "three"))
    _refused(await scene.ask(_ASK), "limit", scene)
    equal(len(scene.got), 3, "times that hosts were asked")


@TABLE.case("no other model after the first word", modes=(True,), **_CHAINED)
async def _no_other(scene: Scene) -> None:
    scene.play(cuts(_until("anthropic", "look ")), says(_ANSWER))
    _broken(await scene.ask(_ASK), scene)
    equal(len(scene.got), 1, "times that hosts were asked")


@TABLE.case("no other model for a body that is wrong", **_CHAINED)
async def _wrong_body(scene: Scene) -> None:
    scene.play(refuses(400, "messages: wrong"), says(_ANSWER))
    _refused(await scene.ask(_ASK), "bad", scene)
    equal(len(scene.got), 1, "times that hosts were asked")


@TABLE.case("a client that leaves closes the connection to the host", modes=(True, False))
async def _leaves(scene: Scene) -> None:
    scene.play(holds(_until(scene.wire, "look ") if scene.stream else []))
    asking = asyncio.ensure_future(scene.ask(_ASK))
    got = await scene.upstream.came()
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(SECONDS if scene.is_ours else 2):
        await got.left.wait()


@TABLE.case("a token that is wrong", wires=("openai-chat",), modes=(True, False))
async def _token(scene: Scene) -> None:
    from bench.proxy.hear import Clients

    scene.play(says(words("ok")))
    url = str(scene.clients.anthropic.base_url).rstrip("/")
    others = Clients(url, "a-wrong-token")
    try:
        heard = await others.ask(scene.client, scene.name, scene.body(), stream=scene.stream)
    finally:
        await others.close()
    assert heard.failed is not None
    equal(heard.failed.status, 401, "status")
    words_ = {"anthropic": "authentication_error", "gemini": "UNAUTHENTICATED"}
    equal(heard.failed.kind, words_.get(scene.client, "invalid_api_key"), "kind")
    equal(len(scene.got), 0, "times that the host was asked")


@TABLE.case("a body that is wrong is refused before any host is asked", wires=("anthropic", "openai-chat"))
async def _nonsense(scene: Scene) -> None:
    if scene.client in {"gemini", scene.wire}:
        return  # the package writes no wrong body; and what is its own API's is passed on to be judged there
    scene.play(says(words("ok")))
    key = "input" if scene.client == "openai-responses" else "messages"
    own: dict[str, Any] = {key: [{"role": "nobody", "content": 7}]}
    heard = await scene.ask(**own)
    _refused(heard, "bad", scene)
    equal(len(scene.got), 0, "times that the host was asked")
