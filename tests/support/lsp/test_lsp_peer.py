"""Questions and answers on one line: many at once, taken back, refused, and none left when the other end is gone."""

import asyncio
import json
from typing import Any

import pytest

from ferrule.tools.lsp.protocol import Framing, Gone, LspPeer, LspResponseError, NoMethod
from tests.rows import each_row

SECONDS = 60.0


class Other:
    """The other end: it keeps what it is sent, and says what the test says."""

    def __init__(self, answer: Any = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self.told: list[tuple[str, Any]] = []
        self.peer = LspPeer(
            self._take, answer or self._refuse, lambda method, params: self.told.append((method, params))
        )
        self._framing = Framing()

    def say(self, **message: Any) -> None:
        self.peer.hear(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def asked(self, count: int) -> None:
        async with asyncio.timeout(SECONDS):
            while len(self.sent) < count:
                await asyncio.sleep(0)

    def _take(self, data: bytes) -> None:
        self.sent += [json.loads(one) for one in self._framing.feed(data)]

    @staticmethod
    def _refuse(method: str, params: Any) -> Any:
        raise NoMethod


async def test_answers_come_in_any_order():
    other = Other()
    asking = [asyncio.create_task(other.peer.ask("m", {"n": number}, seconds=SECONDS)) for number in range(3)]
    await other.asked(3)
    for message in reversed(other.sent):
        other.say(id=message["id"], result=message["params"]["n"])

    assert await asyncio.gather(*asking) == [0, 1, 2]
    assert other.peer.pending_count == 0


async def test_an_error_is_raised_with_its_code():
    other = Other()
    asking = asyncio.create_task(other.peer.ask("m", None, seconds=SECONDS))
    await other.asked(1)
    other.say(id=other.sent[0]["id"], error={"code": -5, "message": "no", "data": [1]})

    with pytest.raises(LspResponseError) as caught:
        await asking
    assert (caught.value.code, caught.value.message, caught.value.data) == (-5, "no", [1])
    assert "params" not in other.sent[0]


async def test_a_question_that_takes_too_long_is_taken_back():
    other = Other()
    with pytest.raises(TimeoutError):
        await other.peer.ask("m", {}, seconds=0.01)

    assert other.sent[1] == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": other.sent[0]["id"]}}
    other.say(id=other.sent[0]["id"], result="late")
    assert other.peer.pending_count == 0


async def test_a_question_that_is_given_up_is_taken_back():
    other = Other()
    asking = asyncio.create_task(other.peer.ask("m", {}, seconds=SECONDS))
    await other.asked(1)
    asking.cancel()
    await asyncio.wait([asking])

    assert asking.cancelled()
    assert [message["method"] for message in other.sent] == ["m", "$/cancelRequest"]


async def test_all_who_wait_are_told_when_the_other_end_is_gone():
    other = Other()
    asking = [asyncio.create_task(other.peer.ask("m", {}, seconds=SECONDS)) for _ in range(2)]
    await other.asked(2)
    other.peer.fail("fell over")
    other.peer.fail("again")

    for one in asking:
        with pytest.raises(Gone, match="fell over"):
            await one
    with pytest.raises(Gone, match="fell over"):
        await other.peer.ask("m", {}, seconds=SECONDS)
    with pytest.raises(Gone, match="fell over"):
        other.peer.tell("m", {})
    assert len(other.sent) == 2


def _answer(method: str, params: Any) -> Any:
    if method == "unknown":
        raise NoMethod
    return params["a"]


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        pytest.param({"id": "x", "method": "m", "params": {"a": 5}}, {"result": 5}, id="answered"),
        pytest.param({"id": 7, "method": "m", "params": {}}, {"error": -32602}, id="parameters-of-another-form"),
        pytest.param({"id": 7, "method": "m"}, {"error": -32602}, id="no-parameters"),
        pytest.param({"id": 7, "method": "unknown"}, {"error": -32601}, id="unknown"),
    ],
)
async def test_a_question_of_the_other_end_gets_an_answer(message, answer):
    other = Other(_answer)
    other.say(**message)
    (sent,) = other.sent

    assert sent["id"] == message["id"]
    if "error" in answer:
        assert sent["error"]["code"] == answer["error"]
    else:
        assert sent["result"] == answer["result"]


async def test_what_needs_no_answer_is_heard():
    other = Other()
    other.say(method="m", params=[1])

    assert other.told == [("m", [1])]
    assert other.sent == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"{", "not JSON", id="cut"),
        pytest.param(b"[]", "not an object", id="a-list"),
        pytest.param(b"\xff", "not JSON", id="no-text"),
        pytest.param(b"[" * 200_000, "not JSON", id="too-deep"),
    ],
)
async def test_what_is_no_message_ends_the_conversation(body, why):
    other = Other()
    other.peer.hear(body)

    assert why in other.peer.why


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"id": 99, "result": 1}, id="never-asked"),
        pytest.param({"id": None, "error": {"code": 1, "message": "?"}}, id="without-a-number"),
        pytest.param({}, id="empty"),
        pytest.param({"id": [1], "result": 1}, id="strange-number"),
        pytest.param({"method": 7}, id="strange-method"),
    ],
)
async def test_an_answer_to_nothing_is_passed_over(message):
    other = Other()
    other.say(**message)

    assert other.peer.why == ""
    assert other.sent == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"id": 1, "result": ["\\ud83d"]}', id="half-of-a-pair"),
        pytest.param(b'{"id": 1, "result": ["\xff"]}', id="another-encoding"),
    ],
)
async def test_a_text_that_was_cut_within_a_character_is_mended(body):
    other = Other()
    asking = asyncio.create_task(other.peer.ask("m", None, seconds=SECONDS))
    await other.asked(1)
    other.peer.hear(body)

    assert await asking in (["?"], ["\ufffd"])
    assert other.peer.why == ""


@each_row("number", [True, "1", 1.0, None, -1, 10**30, [1], 2])
async def test_only_the_number_of_a_question_is_answered(number):
    other = Other()
    asking = asyncio.create_task(other.peer.ask("m", None, seconds=SECONDS))
    await other.asked(1)
    other.say(id=number, result="wrong")
    other.say(id=1, result="right")
    other.say(id=1, result="late")

    assert await asking == "right"
    assert other.peer.why == ""


@pytest.mark.parametrize("number", [["a"], {"a": 1}, "x" * 5000, True, 1.5])
def test_a_question_with_a_name_that_is_none_is_not_answered(number):
    other = Other()
    other.say(id=number, method="m")
    other.say(id="named", method="m" * 5000)

    assert [message["id"] for message in other.sent] == ["named"]
    assert len(other.sent[0]["error"]["message"]) < 1100


def test_what_is_said_together_is_sent_at_once():
    sent: list[bytes] = []
    peer = LspPeer(sent.append, lambda *_: None, lambda *_: None)
    with peer.batch():
        peer.tell("a", None)
        with peer.batch():
            peer.tell("b", None)
        assert sent == []
    peer.tell("c", None)

    assert [len(Framing().feed(data)) for data in sent] == [2, 1]
