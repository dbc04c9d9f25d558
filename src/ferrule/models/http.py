"""Ask a model over HTTP, read its answer as it streams, and retry if that may help.

Bytes become deltas, and any failure becomes a fault. The wait before a retry follows the host's own headers or a
random backoff.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.core import __version__
from ferrule.core.errors import ConfigError, near
from ferrule.models import (
    LIMIT_BYTES,
    BrokenConnection,
    Fault,
    ModelError,
    RetryNotice,
    Silent,
    Trouble,
    Unreachable,
    classify_failure,
    classify_stream_error,
    clean_text,
    model_label,
)
from ferrule.models.bodies import SPEECH, Encoder, betas, parse_model_ids
from ferrule.models.catalog import DEFAULT_OUTPUT, ModelProfile
from ferrule.models.hosts import Host, is_near
from ferrule.settings import Models
from ferrule.wire import AnswerEnd, AnswerStart, Broke, Delta, ModelRequest, WireError
from ferrule.wire.stream import EventReader, EventTooLongError, ServerSentEvent, load_reader

if TYPE_CHECKING:
    from ferrule.models.connection import ConnectionPool, HttpResponse

Tap = Callable[[ServerSentEvent], object]
"""Whoever wants the events of an answer as they came."""
MOST_SILENT_BYTES = 64 * 1024 * 1024
"""So much may come that is nothing of an answer: comments, and events of kinds that are not known."""


class AnswerReader:
    """One answer as it arrives."""

    def __init__(
        self, incoming: "HttpResponse", host: Host, model: str, quiet_seconds: float, tap: Tap | None = None
    ) -> None:
        self._tap = tap
        self._incoming = incoming
        self._host = host
        self._model = model
        self._quiet_seconds = quiet_seconds
        self._events = EventReader()
        self._reader = load_reader(host.api)
        self._is_done = False
        self._silent_bytes = 0
        self._has_said = False

    async def more(self) -> list[Delta] | None:
        """What the next piece says; None when all is said. Raises Fault."""
        if self._is_done:
            return None
        piece = await self._piece()
        try:
            if piece is None:
                return self._last()
            deltas = self._read(self._events.feed(piece))
        except EventTooLongError as error:
            advice = f"sent what is no answer: {error}"
            raise fault(self._host, self._model, "bad", advice, passing=False, is_nonsense=True) from error
        self._silent_bytes = 0 if deltas else self._silent_bytes + len(piece)
        if self._silent_bytes > MOST_SILENT_BYTES:
            advice = f"sent {MOST_SILENT_BYTES:,} bytes that are nothing of an answer"
            raise fault(self._host, self._model, "bad", advice, passing=False, is_nonsense=True)
        if self._reader.is_over:
            self._is_done = True
            await self._incoming.finish()
        return deltas

    async def _piece(self) -> bytes | None:
        try:
            return await self._incoming.piece()
        except Silent:
            raise silent(self._host, self._model, self._quiet_seconds) from None
        except BrokenConnection:
            # A line that breaks behind the last word takes nothing with it.
            self._incoming.close()
            return None

    def _last(self) -> list[Delta]:
        """The line is at its end: either that is the end of the answer, or the answer was cut."""
        self._is_done = True
        deltas = self._read(self._events.end())
        if not self._reader.is_told:
            message = "broke off in the middle of its answer"
            raise fault(self._host, self._model, "cut", message, "the answer broke off")
        deltas += self._reader.end()
        if SPEECH[self._host.api].forgets and not self._has_said and deltas and _is_plain_end(deltas[-1]):
            message = "gave an answer with nothing in it; ask again, or in other words"
            raise fault(self._host, self._model, "server", message, "the answer was empty")
        return deltas

    def _read(self, events: list[ServerSentEvent]) -> list[Delta]:
        deltas: list[Delta] = []
        reader, tap = self._reader, self._tap
        for event in events:
            odd = reader.odd
            deltas += reader.read(event)
            if tap is None:
                continue
            if reader.odd != odd:
                # It can neither be passed on as it is nor be left out.
                raise fault(self._host, self._model, "server", "sent an event that is no JSON", "an event was no JSON")
            if not (deltas and type(deltas[-1]) is Broke):
                tap(event)
        for delta in deltas:
            if type(delta) is Broke:
                raise classify_stream_error(delta.message, delta.kind, self._host, self._model)
            if type(delta) is not AnswerStart:
                self._has_said = True
        return deltas


def _is_plain_end(delta: Delta) -> bool:
    return isinstance(delta, AnswerEnd) and delta.reason == "end"


def fault(host: Host, model: str, kind: Trouble, advice: str, why: str = "", **how: Any) -> Fault:
    """A fault that no status tells of."""
    message = f"{model_label(host, model)} {advice}" + ("" if advice.endswith("?") else ".")
    return Fault(kind, message, why, **{"passing": True, **how})


def silent(host: Host, model: str, quiet_seconds: float) -> Fault:
    advice = f"said nothing for {in_words(quiet_seconds)} and is taken to have broken off"
    return fault(host, model, "cut", advice, "the host fell silent")


def in_words(seconds: float) -> str:
    """A time in words."""
    if seconds < 120:
        return f"{seconds:g} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"


MOST_SECONDS = 60.0
"""A host that wants a longer wait is not waited for."""
_FIRST_SECONDS = 1.0
_CAP_SECONDS = 30.0


def chance() -> float:
    """A number from 0 up to 1."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


def pause(attempt: int, draw: Callable[[], float]) -> float:
    """Seconds before the `attempt`th repetition, counted from 1: anything up to a bound that doubles, so that many who
    failed at the same time do not come back at the same time."""
    return draw() * min(_CAP_SECONDS, _FIRST_SECONDS * 2.0 ** (attempt - 1))


def parse_retry_after(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """Seconds that a host asks us to wait; None where it does not say, or nobody can read it."""
    if (text := headers.get("retry-after-ms")) is not None and (seconds := _number(text)) is not None:
        return seconds / 1000
    text = headers.get("retry-after")
    if text is None:
        return None
    if (seconds := _number(text)) is not None:
        return seconds

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now())
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    text = text.strip()
    if len(text) > 12 or not text.isascii() or not text.replace(".", "", 1).isdigit():
        return None
    return float(text)


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """What a host says itself about asking again; None where it says nothing."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


_LIST_SECONDS = 5.0
_REFUSAL_SECONDS = 10.0
LIMIT_WHOLE_BYTES = 64 << 20
"""The longest answer that comes in one piece."""


class HttpModel:
    """One model at one host. The first turn opens the line, and the next ones use it."""

    def __init__(
        self,
        host: Host,
        model: str,
        about: ModelProfile,
        settings: Models,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        draw: Callable[[], float] = chance,
        now: Callable[[], float] = time.time,
        line: "ConnectionPool | None" = None,
        switched_on: Sequence[str] = (),
        marks: bool = True,
    ) -> None:
        """`switched_on` are betas of Anthropic's API beside those of the settings; for `marks` see `Encoder`."""
        self.name = f"{host.name}:{model}"
        self.model = model
        self.wire = host.api
        self.window = about.window
        self.most_output = about.most_output
        self.prices = about.prices
        self.vision = about.vision
        self.conversation = ""
        """A name of the conversation, the same for all of its turns: some hosts find by it what they keep."""
        self._host = host
        self._settings = settings
        self._speech = SPEECH[host.api]
        self._path = self._speech.path(model)
        self._machine = host.url.partition("://")[2].partition("/")[0]
        self._headers = (
            (b"host", self._machine.encode()),
            (b"user-agent", f"ferrule/{__version__}".encode()),
            (b"content-type", b"application/json"),
            (b"accept", b"text/event-stream, application/json"),
            (b"accept-encoding", b"identity"),
            *self._speech.build_headers(host, (*betas(host.api, model, about, settings), *switched_on)),
        )
        self._about = about
        self._is_guest = line is not None
        self._line = line
        self._encoder = Encoder(host, about, marks=marks)
        self._thoughts = True
        self._sleep = sleep
        self._draw = draw
        self._now = now

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be written anywhere."""
        return self._host.secrets

    @property
    def line(self) -> "ConnectionPool":
        if self._line is None:
            from ferrule.models.connection import ConnectionPool  # loads HTTP, which naming a model does not need

            self._line = ConnectionPool(self._host.url, quiet_seconds=self._settings.quiet_seconds)
        return self._line

    @property
    def host(self) -> Host:
        return self._host

    @property
    def about(self) -> ModelProfile:
        return self._about

    def beside(self, conversation: str = "", *, switched_on: Sequence[str] = (), marks: bool = True) -> "HttpModel":
        """The same model for another conversation, over the same line; it is of no use after this one is closed."""
        made = HttpModel(
            self._host,
            self.model,
            self._about,
            self._settings,
            sleep=self._sleep,
            draw=self._draw,
            now=self._now,
            line=self.line,
            switched_on=switched_on,
            marks=marks,
        )
        made.conversation = conversation
        return made

    async def close(self) -> None:
        if self._line is not None and not self._is_guest:
            await self._line.close()

    async def ask(self, asked: ModelRequest) -> AsyncIterator[Delta | RetryNotice]:
        """The answer as it arrives; see `Model.ask`."""
        async with aclosing(self.batches(asked)) as batches:
            async for batch in batches:
                if isinstance(batch, RetryNotice):
                    yield batch
                    continue
                for delta in batch:
                    yield delta

    async def batches(
        self, asked: ModelRequest, *, body: bytes | None = None, tap: Tap | None = None
    ) -> AsyncGenerator[list[Delta] | RetryNotice, None]:
        """The same in lists, one for each piece that arrives.

        `body` is sent as it is, instead of what is written for `asked`; `tap` is given every event that was understood.
        """
        asked = self._apply_settings(asked)
        attempt = 0
        while True:
            try:
                incoming = await self._open_answer(asked, body)
                try:
                    hearing = AnswerReader(incoming, self._host, self.model, self._settings.quiet_seconds, tap)
                    while (deltas := await hearing.more()) is not None:
                        if deltas or tap is not None:
                            yield deltas
                finally:
                    incoming.close()
            except Fault as error:
                failed = error
            else:
                return
            attempt += 1
            failed.unthinkable = failed.unthinkable and body is None
            seconds = await self._pause(failed, attempt)
            yield RetryNotice(failed.why, seconds, attempt, failed.kind)
            await self._sleep(seconds)

    async def whole(self, path: str, body: bytes, *, told: Callable[[RetryNotice], object] = lambda _: None) -> bytes:
        """Send a body that asks for no stream to a path of the API; `told` hears of every repetition before it.

        Returns the answer's body. Raises ModelError.
        """
        attempt = 0
        while True:
            try:
                return await self._whole(path, body)
            except Fault as error:
                failed = error
            attempt += 1
            failed.unthinkable = False
            seconds = await self._pause(failed, attempt)
            told(RetryNotice(failed.why, seconds, attempt, failed.kind))
            await self._sleep(seconds)

    async def _whole(self, path: str, body: bytes) -> bytes:
        incoming = await self._send("POST", path, (body,))
        try:
            if incoming.status != 200:
                raise await self._read_fault(incoming)
            return await incoming.head(LIMIT_WHOLE_BYTES)
        except Silent:
            raise silent(self._host, self.model, self._settings.quiet_seconds) from None
        except BrokenConnection:
            advice = "broke off in the middle of its answer"
            raise fault(self._host, self.model, "cut", advice, "the answer broke off") from None
        finally:
            incoming.close()

    async def _pause(self, fault: Fault, attempt: int) -> float:
        """Seconds before the next try. Raises ModelError where there is to be none."""
        if self.line.is_closed:
            raise ModelError(f"{self.name} was closed while it was asked.", "cut") from None
        if fault.unthinkable and self._thoughts:
            self._thoughts = False
            fault.why = "what was thought before is left out, as the host does not take it back"
            return 0.0
        if fault.kind == "no-model":
            raise await self._no_model_error(fault) from None
        if not fault.passing:
            raise fault.error() from None
        if attempt > self._settings.retries:
            times = f" It was asked {attempt} times." if attempt > 1 else ""
            raise ModelError(fault.message + times, fault.kind, fault.seconds) from None
        if fault.seconds is None:
            return pause(attempt, self._draw)
        if fault.seconds > MOST_SECONDS:
            when = time.strftime("%H:%M", time.localtime(self._now() + fault.seconds))
            wish = f"It wants to be left alone for {in_words(fault.seconds)}: try again after {when}."
            raise ModelError(f"{fault.message} {wish}", fault.kind, fault.seconds) from None
        return fault.seconds

    def _apply_settings(self, asked: ModelRequest) -> ModelRequest:
        settings = self._settings
        most = asked.max_tokens or settings.max_tokens or min(DEFAULT_OUTPUT, self.most_output)
        thinking = settings.thinking_tokens if asked.thinking_tokens is None else asked.thinking_tokens
        return msgspec.structs.replace(
            asked,
            model=self.model,
            stream=True,
            max_tokens=min(most, self.most_output),
            thinking_tokens=thinking,
            effort=asked.effort or settings.effort,
            task_tokens=asked.task_tokens or settings.task_tokens,
        )

    async def _open_answer(self, asked: ModelRequest, body: bytes | None) -> "HttpResponse":
        """The beginning of an answer. Raises Fault."""
        pieces: Sequence[bytes]
        try:
            if body is None:
                pieces = self._encoder.pieces(asked, self.conversation, thoughts=self._thoughts)
            else:
                pieces = (body,)
        except WireError as error:
            raise ModelError(f"The conversation cannot be sent to {self.name}: {error}", "bad") from error
        incoming = await self._send("POST", self._path, pieces)
        kind = incoming.headers.get("content-type", "").lower()
        packed = incoming.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}
        if incoming.status == 200 and not packed and "html" not in kind and "json" not in kind:
            return incoming
        try:
            if packed:
                advice = f"packed its answer (HTTP {incoming.status}) though it was asked not to"
                raise fault(self._host, self.model, "bad", advice, passing=False, is_nonsense=True)
            if incoming.status != 200:
                raise await self._read_fault(incoming)
            raise await self._not_a_stream(incoming, kind)
        finally:
            incoming.close()

    async def _send(self, method: str, path: str, pieces: Sequence[bytes] = ()) -> "HttpResponse":
        try:
            return await self.line.send(method, path, self._headers, pieces)
        except Silent:
            raise silent(self._host, self.model, self._settings.quiet_seconds) from None
        except BrokenConnection as error:
            reason = clean_text(str(error), self._host.secrets)
            advice = f"cannot be reached at {self._host.url}: {reason}"
            passing = not isinstance(error, Unreachable) or (error.passing and not self._is_absent(error))
            if not isinstance(error, Unreachable) or not error.has_advice:
                advice += f"; {self._hint()}"
            why = f"the host could not be reached: {reason}"
            raise fault(self._host, self.model, "network", advice, why, passing=passing) from None

    def _hint(self) -> str:
        """What to look at where nobody answers."""
        host = self._host
        if not is_near(self._machine):
            return f"look at the network, and at {host.where}"
        program = "its server" if host.key_env else host.name
        return f"is {program} running" + (f", and is {host.moved} right?" if host.moved else "?")

    def _is_absent(self, error: Unreachable) -> bool:
        """Was there never anybody? Waiting starts no program on a machine nearby, and mends no name."""
        nobody = (error.refused and is_near(self._machine)) or error.nameless
        return nobody and not self.line.has_stood

    async def _read_fault(self, incoming: "HttpResponse") -> Fault:
        fault = classify_failure(
            incoming.status,
            await self._body(incoming),
            incoming.headers.get("content-type", ""),
            self._host,
            self.model,
        )
        if (seconds := parse_retry_after(incoming.headers, self._now)) is not None:
            fault.seconds = seconds
        again = should_retry(incoming.headers)
        if again is False or (again and fault.kind in {"overloaded", "server"}):
            fault.passing = again
        return fault

    async def _not_a_stream(self, incoming: "HttpResponse", kind: str) -> Fault:
        """A success that is no stream: an error that somebody sent with a wrong status, or a page of a proxy."""
        fault = classify_failure(200, await self._body(incoming), kind, self._host, self.model)
        fault.passing = False
        return fault

    async def _body(self, incoming: "HttpResponse") -> bytes:
        """What a refusal says, if it says so soon: it is not worth more waiting."""
        try:
            async with asyncio.timeout(_REFUSAL_SECONDS):
                return await incoming.head(LIMIT_BYTES)
        except (BrokenConnection, TimeoutError):
            return b""

    async def names(self) -> list[str]:
        """The models that the host says it has. Raises ModelError."""
        try:
            incoming = await self._send("GET", self._speech.list_path)
            try:
                if incoming.status != 200:
                    raise await self._read_fault(incoming)
                body = await incoming.head(8 * 1024 * 1024)
            finally:
                incoming.close()
        except Fault as error:
            raise error.error() from None
        except BrokenConnection:
            raise ModelError(f"{self._host.name} broke off while it listed its models.", "cut") from None
        return parse_model_ids(body)

    async def _no_model_error(self, fault: Fault) -> ModelError:
        """The error about a model that is not there, with the names of those that are much like it."""
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                meant = near(self.model, await self.names())
        except (TimeoutError, ModelError, ConfigError):
            meant = []
        hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
        return ModelError(fault.message + hint, fault.kind)
