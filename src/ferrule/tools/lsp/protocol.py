"""Exchange messages with a language server process: framing, JSON-RPC 2.0 and the process itself.

A frame is a header with the length of the message, and then the message. Nothing is held without a bound. Both
sides may ask and answer, and many questions can be open at once. Ending the process leaves no child behind.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ferrule.system.command import Launch, Once
from ferrule.system.server_process import FRAME_BYTES, GRACE_SECONDS, Served
from ferrule.system.stream import OutputDecoder

MOST_BYTES = 24 << 20
"""A longer message is not taken: nothing else goes on in this process while it is decoded."""
_HEADER_BYTES = 4096
_SHOWN_BYTES = 300


class Garbled(Exception):  # noqa: N818 - the state of the stream
    """What came is no frame. The message is the end of a sentence about whoever sent it."""


class Framing:
    """Takes bytes as they come and gives the messages that are whole."""

    def __init__(self, limit_bytes: int = MOST_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._header = bytearray()
        self._length = -1
        """How long the message is that is being read; -1 while its header is."""
        self._pieces: list[bytes] = []
        self._missing = 0

    @property
    def rest(self) -> bytes:
        """What came of a header that is not whole: when the sender has ended, this is what it printed."""
        return bytes(self._header)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now. Raises Garbled; after that nothing can be read any more."""
        found: list[bytes] = []
        view = memoryview(data)
        while view:
            if self._length < 0:
                view = self._read_header(view)
                if self._length != 0:
                    continue
            else:
                piece = bytes(view[: self._missing])
                view = view[len(piece) :]
                self._pieces.append(piece)
                self._missing -= len(piece)
            if not self._missing:
                found.append(b"".join(self._pieces))
                self._pieces.clear()
                self._length = -1
        return found

    def _read_header(self, view: memoryview) -> memoryview:
        held = len(self._header)
        self._header += view[: _HEADER_BYTES - held]
        end = self._header.find(b"\r\n\r\n")
        if end < 0:
            _refuse_garbage(self._header, whole=False)
            if len(self._header) >= _HEADER_BYTES:
                raise Garbled("sent a header that does not end")
            return view[len(self._header) - held :]
        header = bytes(self._header[:end])
        _refuse_garbage(header + b"\r\n", whole=True)
        self._length = self._missing = _length(header)
        if self._length > self._limit_bytes:
            raise Garbled(
                f"sent a message of {self._length:,} bytes, and {self._limit_bytes:,} is the most that is taken"
            )
        self._header.clear()
        return view[end + 4 - held :]


def frame(message: object) -> bytes:
    """A message as it is sent."""
    body = msgspec.json.encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _refuse_garbage(header: bytes | bytearray, *, whole: bool) -> None:
    """Raise as soon as it cannot be a header: whoever prints words there will never send a frame."""
    *lines, last = bytes(header).split(b"\n")
    for line in lines:
        name = line.partition(b":")[0].lower()
        if name not in {b"content-length", b"content-type"} or not line.endswith(b"\r"):
            raise Garbled(f"wrote what is no message to its output: {_format_bytes(header)}")
    begun = last.partition(b":")[0].lower()
    names = (b"content-length", b"content-type")
    if not whole and last != b"\r" and not any(name.startswith(begun) for name in names):
        raise Garbled(f"wrote what is no message to its output: {_format_bytes(header)}")


def _length(header: bytes) -> int:
    found = [line.partition(b":")[2].strip() for line in header.lower().split(b"\r\n") if b"length" in line[:14]]
    if len(found) != 1 or not found[0].isdigit() or len(found[0]) > 12:
        raise Garbled(f"sent a header that says no length: {_format_bytes(header)}")
    return int(found[0])


def _format_bytes(data: bytes | bytearray) -> str:
    text = bytes(data[:_SHOWN_BYTES]).decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in text).strip()


NO_METHOD = -32601
_BAD_PARAMS = -32602
_MENDED_BYTES = 4 << 20
_NAME_CHARS = 1000
"""Of what the other end calls its questions, so much is sent back to it."""


class Gone(Exception):  # noqa: N818 - the state of the other end
    """The other end answers no more. The message is the end of a sentence about it."""


class LspResponseError(Exception):
    """The other end answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class NoMethod(Exception):  # noqa: N818 - the state of the question
    """Raised by whoever answers: such a question is not answered here."""


def _decode(body: bytes) -> Any:
    """Raises ValueError, RecursionError."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if len(body) > _MENDED_BYTES:
            raise

        text = json.dumps(json.loads(body.decode(errors="replace")), ensure_ascii=False)
        return msgspec.json.decode(text.encode(errors="replace"))


class LspPeer:
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
    def pending_count(self) -> int:
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
    def batch(self) -> Iterator[None]:
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
            message = _decode(body)
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
            refusal = LspResponseError(
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


_FIRST_CHARS, _COMPLAINTS_CHARS = 1024, 8192
_FIRST_LINES, _LAST_LINES = 3, 8
_SAID_CHARS = 800
"""Of its first lines, and of its last."""
_BACKLOG_BYTES = 256 << 20


class ProcessCallbacks(NamedTuple):
    """Whom a process tells what it says."""

    heard: Callable[[bytes], None]
    """Gets every message."""
    ended: Callable[[str], None]
    """Called once when it can answer no more, with the end of a sentence about why."""


class ServerProcess(Served):
    """One process from its start to its last child."""

    def __init__(self, launch: Launch, line: ProcessCallbacks) -> None:
        """Start it as any server, and tell the line of it."""
        self._line = line
        self._framing = Framing()
        self._complaints = OutputDecoder(_FIRST_CHARS, _COMPLAINTS_CHARS)
        self._tidied = Once(self._tidy)
        self._done = launch.done
        super().__init__(launch)

    @property
    def words(self) -> tuple[str, str]:
        """The first lines that it wrote to standard error, and the last; those alone, where there are no more."""
        lines = [line for line in self._complaints.text().splitlines() if line.strip()]
        last = "\n".join(lines[-_LAST_LINES:])
        first = "\n".join(lines[: min(_FIRST_LINES, len(lines) - _LAST_LINES)]) if len(lines) > _LAST_LINES else ""
        if not first and len(last) > _SAID_CHARS:
            first = last[:-_SAID_CHARS]
        return first[:_SAID_CHARS], last[-_SAID_CHARS:]

    def send(self, data: bytes) -> None:
        """Have it read this when it can."""
        if self.why or self._stopping or self._settled:
            return
        if not self._backlog:
            data = self._push(data)  # nearly always all of it, and at once
            if not data:
                return
        if self._backlog_bytes + len(data) > _BACKLOG_BYTES:
            self.fail("reads nothing of what it is sent")
        else:
            self._queue(data)

    async def stop(self) -> None:
        """Close its input and, after a while, end it and all that it has started."""
        try:
            if not self._settled:
                self._stopping = True
                await self._wind_up()
            self._part()
            if self._child.attended is not None or self._done is not None:
                await asyncio.to_thread(self._tidied)
        finally:
            self.close()

    async def _wind_up(self) -> None:
        await self._finish_writing()
        if self._child.input is not None:
            self._child.input.close()
        await self._wait_and_end()

    def close(self) -> None:
        """Kill all of it now, and let go of everything."""
        self._part()
        self._tidied()

    def _tidy(self) -> None:
        """What may take a moment: end what nobody can see from here, and take back what was put there for it."""
        if self._child.attended is not None:
            self._child.attended.end()
        if self._done is not None:
            self._done()

    def _hear(self, data: bytes) -> None:
        try:
            messages = self._framing.feed(data)
        except Garbled as error:
            self.fail(str(error))
            return
        for message in messages:
            self._pace.spend(len(message) + FRAME_BYTES)
            self._line.heard(message)

    def _complain(self, data: bytes) -> None:
        self._complaints.feed(data)

    def _on_exit(self) -> None:
        self._part()
        how, printed = self._how(), self._framing.rest.decode(errors="replace").strip()
        self.fail(f"{how} after it wrote {printed[:300]!r}" if printed else how)

    def _on_failure(self) -> None:
        self._tree.kill()
        self._line.ended(self.why)

    def _push(self, data: bytes) -> bytes:
        """Write what there is room for; the rest."""
        assert self._child.input is not None
        try:
            return data[self._child.input.push(data) :]
        except BrokenPipeError:
            return data  # whoever writes it then finds out why

    async def _finish_writing(self) -> None:
        """What it was told last, such as that it is to end, is still read if it reads at all."""
        if self._writer is not None and not self._writer.done():
            await asyncio.wait([self._writer], timeout=GRACE_SECONDS)
            self._writer.cancel()
