"""A model behind an address: asked over HTTP, heard as it speaks, and asked again where that may help."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

import msgspec

from ferrule.agent_settings import Models
from ferrule.core.errors import ConfigError
from ferrule.core.version import __version__
from ferrule.models.catalog import DEFAULT_OUTPUT, About
from ferrule.models.encoding import Encoder
from ferrule.models.errors import LIMIT_BYTES, Fault, cleaned, judged
from ferrule.models.hearing import Hearing, Tap, fault, in_words, silent
from ferrule.models.hosts import Host, is_near
from ferrule.models.line import Incoming, Line
from ferrule.models.model import Again, ModelError
from ferrule.models.retry import MOST_SECONDS, chance, pause, should, wanted
from ferrule.models.shaping import betas
from ferrule.models.sockets import Broken, Silent, Unreachable
from ferrule.models.speech import SPEECH, listed
from ferrule.wire.delta import Delta
from ferrule.wire.shape import WireError
from ferrule.wire.turn import Asked

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
        about: About,
        settings: Models,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        draw: Callable[[], float] = chance,
        now: Callable[[], float] = time.time,
        line: Line | None = None,
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
            *self._speech.signed(host, (*betas(host.api, model, about, settings), *switched_on)),
        )
        self._about = about
        self._is_guest = line is not None
        self._line = line or Line(host.url, quiet_seconds=settings.quiet_seconds)
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
    def line(self) -> Line:
        return self._line

    @property
    def host(self) -> Host:
        return self._host

    @property
    def about(self) -> About:
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
            line=self._line,
            switched_on=switched_on,
            marks=marks,
        )
        made.conversation = conversation
        return made

    async def close(self) -> None:
        if not self._is_guest:
            await self._line.close()

    async def ask(self, asked: Asked) -> AsyncIterator[Delta | Again]:
        """The answer as it arrives; see `Model.ask`."""
        async with aclosing(self.batches(asked)) as batches:
            async for batch in batches:
                if isinstance(batch, Again):
                    yield batch
                    continue
                for delta in batch:
                    yield delta

    async def batches(
        self, asked: Asked, *, body: bytes | None = None, tap: Tap | None = None
    ) -> AsyncGenerator[list[Delta] | Again, None]:
        """The same in lists, one for each piece that arrives.

        `body` is sent as it is, instead of what is written for `asked`; `tap` is given every event that was understood.
        """
        asked = self._filled(asked)
        attempt = 0
        while True:
            try:
                incoming = await self._begun(asked, body)
                try:
                    hearing = Hearing(incoming, self._host, self.model, self._settings.quiet_seconds, tap)
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
            yield Again(failed.why, seconds, attempt, failed.kind)
            await self._sleep(seconds)

    async def whole(self, path: str, body: bytes, *, told: Callable[[Again], object] = lambda _: None) -> bytes:
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
            told(Again(failed.why, seconds, attempt, failed.kind))
            await self._sleep(seconds)

    async def _whole(self, path: str, body: bytes) -> bytes:
        incoming = await self._sent("POST", path, (body,))
        try:
            if incoming.status != 200:
                raise await self._refused(incoming)
            return await incoming.head(LIMIT_WHOLE_BYTES)
        except Silent:
            raise silent(self._host, self.model, self._settings.quiet_seconds) from None
        except Broken:
            advice = "broke off in the middle of its answer"
            raise fault(self._host, self.model, "cut", advice, "the answer broke off") from None
        finally:
            incoming.close()

    async def _pause(self, fault: Fault, attempt: int) -> float:
        """Seconds before the next try. Raises ModelError where there is to be none."""
        if self._line.is_closed:
            raise ModelError(f"{self.name} was closed while it was asked.", "cut") from None
        if fault.unthinkable and self._thoughts:
            self._thoughts = False
            fault.why = "what was thought before is left out, as the host does not take it back"
            return 0.0
        if fault.kind == "no-model":
            raise await self._missing(fault) from None
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

    def _filled(self, asked: Asked) -> Asked:
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

    async def _begun(self, asked: Asked, body: bytes | None) -> Incoming:
        """The beginning of an answer. Raises Fault."""
        pieces: Sequence[bytes]
        try:
            if body is None:
                pieces = self._encoder.pieces(asked, self.conversation, thoughts=self._thoughts)
            else:
                pieces = (body,)
        except WireError as error:
            raise ModelError(f"The conversation cannot be sent to {self.name}: {error}", "bad") from error
        incoming = await self._sent("POST", self._path, pieces)
        kind = incoming.headers.get("content-type", "").lower()
        packed = incoming.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}
        if incoming.status == 200 and not packed and "html" not in kind and "json" not in kind:
            return incoming
        try:
            if packed:
                advice = f"packed its answer (HTTP {incoming.status}) though it was asked not to"
                raise fault(self._host, self.model, "bad", advice, passing=False, is_nonsense=True)
            if incoming.status != 200:
                raise await self._refused(incoming)
            raise await self._not_a_stream(incoming, kind)
        finally:
            incoming.close()

    async def _sent(self, method: str, path: str, pieces: Sequence[bytes] = ()) -> Incoming:
        try:
            return await self._line.send(method, path, self._headers, pieces)
        except Silent:
            raise silent(self._host, self.model, self._settings.quiet_seconds) from None
        except Broken as error:
            reason = cleaned(str(error), self._host.secrets)
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
        return nobody and not self._line.has_stood

    async def _refused(self, incoming: Incoming) -> Fault:
        fault = judged(
            incoming.status,
            await self._body(incoming),
            incoming.headers.get("content-type", ""),
            self._host,
            self.model,
        )
        if (seconds := wanted(incoming.headers, self._now)) is not None:
            fault.seconds = seconds
        again = should(incoming.headers)
        if again is False or (again and fault.kind in {"overloaded", "server"}):
            fault.passing = again
        return fault

    async def _not_a_stream(self, incoming: Incoming, kind: str) -> Fault:
        """A success that is no stream: an error that somebody sent with a wrong status, or a page of a proxy."""
        fault = judged(200, await self._body(incoming), kind, self._host, self.model)
        fault.passing = False
        return fault

    async def _body(self, incoming: Incoming) -> bytes:
        """What a refusal says, if it says so soon: it is not worth more waiting."""
        try:
            async with asyncio.timeout(_REFUSAL_SECONDS):
                return await incoming.head(LIMIT_BYTES)
        except (Broken, TimeoutError):
            return b""

    async def names(self) -> list[str]:
        """The models that the host says it has. Raises ModelError."""
        try:
            incoming = await self._sent("GET", self._speech.list_path)
            try:
                if incoming.status != 200:
                    raise await self._refused(incoming)
                body = await incoming.head(8 * 1024 * 1024)
            finally:
                incoming.close()
        except Fault as error:
            raise error.error() from None
        except Broken:
            raise ModelError(f"{self._host.name} broke off while it listed its models.", "cut") from None
        return listed(body)

    async def _missing(self, fault: Fault) -> ModelError:
        """The error about a model that is not there, with the names of those that are much like it."""
        from ferrule.support.near import near  # only a mistake pays for it

        try:
            async with asyncio.timeout(_LIST_SECONDS):
                meant = near(self.model, await self.names())
        except (TimeoutError, ModelError, ConfigError):
            meant = []
        hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
        return ModelError(fault.message + hint, fault.kind)
