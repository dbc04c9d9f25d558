"""The other end of a line on which both sides ask and answer: JSON-RPC 2.0, with many questions at once."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ferrule.support.lsp.framing import frame

NO_METHOD = -32601
_BAD_PARAMS = -32602
_MENDED_BYTES = 4 << 20
_NAME_CHARS = 1000
"""Of what the other end calls its questions, so much is sent back to it."""


class Gone(Exception):  # noqa: N818 - the state of the other end
    """The other end answers no more. The message is the end of a sentence about it."""


class Refusal(Exception):  # noqa: N818 - what it answered
    """The other end answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class NoMethod(Exception):  # noqa: N818 - the state of the question
    """Raised by whoever answers: such a question is not answered here."""


def _decoded(body: bytes) -> Any:
    """Raises ValueError, RecursionError."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if len(body) > _MENDED_BYTES:
            raise
        import json  # for programs that cut texts in the middle of a character, and send the half of it

        text = json.dumps(json.loads(body.decode(errors="replace")), ensure_ascii=False)
        return msgspec.json.decode(text.encode(errors="replace"))


class Peer:
    """Asks and is asked; the bytes come and go by others."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        answer: Callable[[str, Any], Any],
        told: Callable[[str, Any], None],
    ) -> None:
        """`answer` answers the other end's questions, or raises NoMethod; `told` hears what needs no answer."""
        self.why = ""
        """Why it answers no more, as the end of a sentence; empty while it does."""
        self._send_now = send
        self._gathered: list[bytes] | None = None
        self._answer = answer
        self._told = told
        self._number = 0
        self._asked: dict[int, asyncio.Future[Any]] = {}

    @property
    def waiting(self) -> int:
        """How many questions have no answer yet."""
        return len(self._asked)

    async def ask(self, method: str, params: Mapping[str, Any] | None, *, seconds: float) -> Any:
        """The answer. Whoever gives up waiting, or waits for longer than that, has the question taken back.

        Raises: Refusal, Gone, TimeoutError.
        """
        if self.why:
            raise Gone(self.why)
        self._number += 1
        number = self._number
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = future  # before it is sent: sending may be what shows that nobody is there
        try:
            self._post({"id": number, "method": method}, params)
            async with asyncio.timeout(seconds):
                return await future
        except (asyncio.CancelledError, TimeoutError):
            if not future.done() or future.cancelled():
                self.take_back(number)
            raise
        finally:
            self._asked.pop(number, None)
            if future.done() and not future.cancelled():
                future.exception()  # seen: whoever asked may have been cancelled at the same moment

    def take_back(self, number: int) -> None:
        """The answer is not wanted any more."""
        if not self.why:
            self._post({"method": "$/cancelRequest"}, {"id": number})

    def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Say something that needs no answer. Raises Gone."""
        if self.why:
            raise Gone(self.why)
        self._post({"method": method}, params)

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """What is said in here is sent at once when all of it was said: each sending wakes the other end."""
        if self._gathered is not None:
            yield
            return
        self._gathered = []
        try:
            yield
        finally:
            said, self._gathered = self._gathered, None
            if said and not self.why:
                self._send_now(b"".join(said))

    def hear(self, body: bytes) -> None:
        """Take one message. What is no message at all ends the conversation."""
        if self.why:
            return
        try:
            message = _decoded(body)
        except (ValueError, RecursionError):
            self.fail("sent a message that is not JSON")
            return
        if not isinstance(message, dict):
            self.fail("sent a message that is not an object")
            return
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if number is None:
                self._told(method, message.get("params"))
            else:
                self._reply(number, method, message.get("params"))
        elif type(number) is int:  # a bool is none
            self._settle(number, message)

    def fail(self, why: str) -> None:
        """Nothing more is answered; all who wait are told."""
        if self.why:
            return
        self.why = why
        for future in self._asked.values():
            if not future.done():
                future.set_exception(Gone(why))

    def _settle(self, number: int, message: dict[str, Any]) -> None:
        future = self._asked.get(number)
        if future is None or future.done():
            return  # given up meanwhile, or never asked
        error = message.get("error")
        if isinstance(error, dict):
            code, said = error.get("code"), error.get("message")
            refusal = Refusal(
                code if isinstance(code, int) else 0, said if isinstance(said, str) else "no reason given"
            )
            refusal.data = error.get("data")
            future.set_exception(refusal)
        else:
            future.set_result(message.get("result"))

    def _reply(self, number: object, method: str, params: Any) -> None:
        if type(number) is not int and not (isinstance(number, str) and len(number) <= _NAME_CHARS):
            return  # no question has such a name
        try:
            outcome: dict[str, Any] = {"result": self._answer(method, params)}
        except NoMethod:
            outcome = {"error": {"code": NO_METHOD, "message": f"{method[:_NAME_CHARS]} is not answered here"}}
        except (TypeError, ValueError, KeyError, AttributeError):  # its parameters have another form than is said
            message = f"The parameters of {method[:_NAME_CHARS]} are not understood"
            outcome = {"error": {"code": _BAD_PARAMS, "message": message}}
        if not self.why:
            self._send(frame({"jsonrpc": "2.0", "id": number, **outcome}))

    def _send(self, data: bytes) -> None:
        if self._gathered is None:
            self._send_now(data)
        else:
            self._gathered.append(data)

    def _post(self, head: dict[str, Any], params: Mapping[str, Any] | None) -> None:
        self._send(frame({"jsonrpc": "2.0", **head, **({} if params is None else {"params": params})}))
