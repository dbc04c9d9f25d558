"""One request, from its body to the last byte of its answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.models import ModelError, RetryNotice
from ferrule.models.bodies import generate_path
from ferrule.models.catalog import NO_MODEL_IN_SHORT
from ferrule.registry.dynamic import BYTES_A_TOKEN
from ferrule.serve.proxy.apis import KINDS, ClientApi, ProxyError, from_model, retry_headers
from ferrule.serve.proxy.body import ClientCalls, conversation_key, find_left_out, fit_request, parse_betas, relay_body
from ferrule.serve.proxy.records import Record, RequestRecords, TrafficTape, clean_client_text
from ferrule.serve.proxy.upstreams import Routes, Upstream, Upstreams
from ferrule.settings import ProxySettings
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    ModelRequest,
    TextPiece,
    ThinkingPiece,
    Usage,
    Use,
    UseBegun,
    UsePiece,
    WireError,
)
from ferrule.wire.stream import Assembler, ServerSentEvent, make_id, text

_PATHS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "anthropic": lambda _: "/v1/messages",
        "openai-chat": lambda _: "/chat/completions",
        "openai-responses": lambda _: "/responses",
        "gemini": lambda model: generate_path(model, "generateContent"),
    }
)
"""Where each API is asked for an answer in one piece, by the model's id."""
_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
_QUICK_SECONDS = 2.0
"""A repetition that waits longer than this gives way to the next model of the chain."""


class ClientResponse(Protocol):
    """The answer on its way to a client."""

    @property
    def has_begun(self) -> bool: ...

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None: ...

    async def write(self, data: bytes) -> None: ...

    async def end(self) -> None: ...

    async def whole(self, status: int, headers: list[tuple[bytes, bytes]], data: bytes) -> None: ...

    async def fail(self, api: ClientApi, error: ProxyError) -> None: ...


class Request(NamedTuple):
    """What a client asks for."""

    api: ClientApi
    body: dict[str, Any]
    asked: ModelRequest
    stream: bool
    size: int
    """Bytes of the body."""
    headers: Mapping[str, str]
    as_list: bool = False
    """Are the events wanted as one JSON list? Gemini's older clients do not ask for server-sent events."""


class Shop(NamedTuple):
    """What all exchanges share."""

    settings: ProxySettings
    routes: Routes
    upstreams: Upstreams
    records: RequestRecords
    tape: TrafficTape | None = None


class Exchange:
    """Finds a model for one request, passes the answer on, and tells what happened in the client's own API."""

    def __init__(self, shop: Shop, request: Request, record: Record, out: ClientResponse) -> None:
        self._shop = shop
        self._request = request
        self._record = record
        self._out = out
        self._has_said = False
        """Has any of the answer gone to the client? Pings are none of it."""
        self._left_out: Callable[[], tuple[str, ...]] | None = None
        self._passed: ResponseTranslator | None = None
        """The way that the last answer took."""

    async def run(self) -> None:
        """Answer, in every case. Raises nothing but what the connection to the client raises."""
        record, request = self._record, self._request
        record.requested, record.stream = clean_client_text(request.asked.model), request.stream
        try:
            await self._first_that_answers()
        except ProxyError as error:
            await self.refuse(error)
        else:
            record.status, record.state = 200, "done"

    async def refuse(self, error: ProxyError) -> None:
        """Tell the client of an error: as a status if nothing was sent yet, else as the end of the stream."""
        record, api = self._record, self._request.api
        record.status, record.error, record.state = api.status(error), error.kind, "failed"
        await self._out.fail(api, error)

    async def _first_that_answers(self) -> None:
        """Go along the chain until a model answers. Raises ProxyError if none does."""
        record, chain = self._record, self._chain()
        passing: ProxyError | None = None
        for at, name in enumerate(chain):
            is_last = at == len(chain) - 1
            record.model = name
            try:
                upstream = self._find_upstream(name)
                record.model = upstream.name
                await self._try(upstream, is_last=is_last)
            except ProxyError as error:
                if self._has_said or error.kind == "bad":
                    raise
                if is_last:
                    # What will pass is what the client should hear of: then it asks again.
                    raise (error if error.is_passing else passing or error) from None
                if error.is_passing:
                    passing = passing or error
                record.tried = (*record.tried, record.model)
            else:
                return

    def _chain(self) -> tuple[str, ...]:
        try:
            return self._shop.routes.chain(self._request.asked.model)
        except (ModelError, ConfigError) as error:
            is_none = isinstance(error, ModelError) and error.kind == "none"
            raise ProxyError("no-model", NO_MODEL_IN_SHORT if is_none else str(error)) from None

    def _find_upstream(self, name: str) -> Upstream:
        try:
            return self._shop.upstreams.find(name)
        except ModelError as error:
            raise from_model(error) from None
        except ConfigError as error:
            raise ProxyError("no-model", str(error)) from None

    async def _try(self, upstream: Upstream, *, is_last: bool) -> None:
        """Ask one model. Raises ProxyError; if nothing was sent by then, another one may be asked."""
        breaker = upstream.breaker
        if breaker.is_open:
            wait = breaker.seconds
            until = f"is left alone for {wait:.0f} more seconds" if wait else "is just being tried again"
            said = f"{upstream.name} has failed too often and {until}."
            raise ProxyError("overloaded", said, seconds=wait)
        ticket = breaker.begin()
        upstream.busy += 1
        try:
            async with upstream.limits.place():
                self._record.state = "asking"
                if self._request.stream:
                    await self._stream(upstream, is_last=is_last)
                else:
                    await self._whole(upstream, is_last=is_last)
        except ProxyError as error:
            self._count_part(upstream)
            if error.is_passing and error.kind != "limit":
                breaker.fail(ticket)
            else:
                breaker.leave(ticket)
            raise
        except BaseException:
            self._count_part(upstream)
            breaker.leave(ticket)
            raise
        finally:
            upstream.busy -= 1
        breaker.succeed(ticket)

    async def _stream(self, upstream: Upstream, *, is_last: bool) -> None:
        request, out = self._request, self._out
        passage = self._passage(upstream)
        async with aclosing(self._stream_answer(upstream, passage)) as answer:
            async for batch in answer:
                if isinstance(batch, RetryNotice):
                    self._repeat(batch, upstream, is_last=is_last, has_said=passage.has_said)
                    passage.reset()
                    continue
                if data := passage.put(batch):
                    self._has_said = True
                    self._shop.records.first(self._record)
                    if not out.has_begun:
                        await out.begin(200, self._headers(upstream, request))
                    await out.write(data)
        if not out.has_begun:
            await out.begin(200, self._headers(upstream, request))
        await self._finish(upstream, passage)

    def _passage(self, upstream: Upstream) -> "ResponseTranslator":
        """The way of the answer. What is left out of the request is looked for while the host thinks."""
        request, source, http = self._request, self._request.api.name, upstream.http
        asked = fit_request(request.asked, source, http)
        self._left_out = lambda: find_left_out(request.body, request.asked, asked, source, http)
        asyncio.get_running_loop().call_soon(self._look)
        self._passed = ResponseTranslator(request, asked, upstream, self._record)
        return self._passed

    def _look(self) -> None:
        if self._left_out is not None:
            look, self._left_out = self._left_out, None
            self._record.dropped = look()

    async def _finish(self, upstream: Upstream, passage: "ResponseTranslator") -> None:
        if rest := passage.end():
            await self._out.write(rest)
        await self._out.end()
        self._count(upstream, passage.usage)

    async def _whole(self, upstream: Upstream, *, is_last: bool) -> None:
        """Answer in one piece."""
        request = self._request
        if upstream.is_exact(request.api.name) and self._is_own_model(upstream):
            data = await self._relay_whole(upstream, is_last=is_last)
        else:
            data = await self._assemble_answer(upstream, is_last=is_last)
        self._shop.records.first(self._record)
        await self._out.whole(200, self._headers(upstream, request), data)

    async def _relay_whole(self, upstream: Upstream, *, is_last: bool) -> bytes:
        request, http = self._request, upstream.http
        assert http is not None
        one = http.beside(switched_on=self._betas(upstream))
        path = _PATHS[request.api.name](http.model)
        body = relay_body(request.body, request.asked, upstream, stream=False)
        try:
            data = await one.whole(path, body, told=lambda again: self._repeat(again, upstream, is_last=is_last))
            said = request.api.wire.said_in(msgspec.json.decode(data))
        except ModelError as error:
            raise from_model(error) from None
        except (WireError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProxyError("server", f"{upstream.name} sent what is no answer: {error}") from None
        self._count(upstream, said.usage)
        if self._shop.tape is not None:
            await self._shop.tape.put_said(upstream.model, request.asked, said)
        return data

    async def _assemble_answer(self, upstream: Upstream, *, is_last: bool) -> bytes:
        request = self._request
        passage = self._passage(upstream)
        assembler = Assembler()
        async with aclosing(self._stream_answer(upstream, passage)) as answer:
            async for batch in answer:
                if isinstance(batch, RetryNotice):
                    self._repeat(batch, upstream, is_last=is_last)
                    passage.reset()
                    assembler = Assembler()
                    continue
                for delta in passage.adapt(batch):
                    assembler.put(delta)
        said = assembler.said()
        api = request.api
        said = msgspec.structs.replace(
            said, id=said.id or make_id(api.prefix), model=request.asked.model, usage=passage.usage
        )
        self._count(upstream, passage.usage)
        return msgspec.json.encode(api.said(said))

    async def _stream_answer(
        self, upstream: Upstream, passage: "ResponseTranslator"
    ) -> AsyncGenerator[list[Delta] | RetryNotice, None]:
        """The answer of a model, on the tape too if there is one. Raises ProxyError."""
        request = self._request
        body = None
        if passage.is_relay and self._is_own_model(upstream):
            body = relay_body(request.body, request.asked, upstream, stream=True)
        answer = upstream.answer(
            passage.asked,
            body=body,
            tap=passage.tap if passage.is_relay else None,
            switched_on=self._betas(upstream),
            conversation="" if passage.asked.cache_key else conversation_key(passage.asked),
        )
        if self._shop.tape is not None:
            answer = self._shop.tape.record_answer(upstream.model, request.asked, answer)
        try:
            async with aclosing(answer):
                async for batch in answer:
                    if not isinstance(batch, RetryNotice):
                        check(batch, upstream)
                    yield batch
        except ModelError as error:
            raise from_model(error) from None

    def _repeat(self, again: RetryNotice, upstream: Upstream, *, is_last: bool, has_said: bool = False) -> None:
        """Note a repetition. Raises ProxyError if the client has part of the answer, or another model can be asked."""
        if has_said:
            raise ProxyError("server", f"{self._record.model} broke off in the middle of its answer: {again.why}.")
        if not is_last and again.seconds > _QUICK_SECONDS:
            raise ProxyError(KINDS[again.kind], f"{self._record.model}: {again.why}.", seconds=again.seconds)
        self._record.retries += 1
        upstream.limits.repeat()

    def _is_own_model(self, upstream: Upstream) -> bool:
        """Does the client ask for this very model, so that its body fits as it is?"""
        return self._request.asked.model.removeprefix("models/").rpartition(":")[2] == upstream.model.model

    def _betas(self, upstream: Upstream) -> tuple[str, ...]:
        http = upstream.http
        if self._request.api.name != "anthropic" or http is None or http.host.api != "anthropic":
            return ()
        return parse_betas(self._request.headers.get("anthropic-beta", ""))

    def _count(self, upstream: Upstream, usage: Usage) -> None:
        self._record.count(usage, upstream.model.prices)
        upstream.limits.count(usage.input + usage.output)

    def _count_part(self, upstream: Upstream) -> None:
        """Count what was said of an answer that did not come to its end: it has to be paid for as well."""
        passed, self._passed = self._passed, None
        if passed is not None and (usage := passed.so_far()) is not None:
            self._count(upstream, usage)

    def _headers(self, upstream: Upstream, request: Request) -> list[tuple[bytes, bytes]]:
        is_events = request.stream and not request.as_list
        kind = b"text/event-stream; charset=utf-8" if is_events else b"application/json"
        headers = [
            (b"content-type", kind),
            (b"cache-control", b"no-cache"),
            (b"request-id", f"req_{self._record.number}".encode()),
            (b"x-ferrule-model", upstream.name.encode("ascii", "replace")),
        ]
        self._look()
        if self._record.dropped:
            headers.append((b"x-ferrule-dropped", ", ".join(self._record.dropped).encode("ascii", "replace")[:2000]))
        return headers


class ResponseTranslator:
    """An answer on its way from one API to another, or through the proxy as it is."""

    def __init__(self, request: Request, asked: ModelRequest, upstream: Upstream, record: Record) -> None:
        """`asked` is what the model is asked, as far as its API can carry it."""
        self._api = request.api
        self._request = request
        self.is_relay = upstream.is_exact(request.api.name) and request.stream
        self._record = record
        options = request.body.get("stream_options")
        self._wants_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self.asked = asked
        self.usage = Usage()
        self._is_translated = not upstream.is_exact(request.api.name)
        self._used = frozenset(part.id for turn in asked.turns for part in turn.parts if isinstance(part, Use))
        self.reset()

    def reset(self) -> None:
        """Begin anew: the model is asked once more."""
        self._writer = None if self.is_relay else self._api.writer()
        self._calls = ClientCalls(self._request.asked) if self._is_translated else None
        self._events: list[ServerSentEvent] = []
        self._held: list[bytes] = []
        self._characters = 0
        self._begun: Usage | None = None
        self._is_closed = False
        """Has the host sent the event that is the last one in its API?"""
        self.has_said = False
        """Has anything of the answer gone to the client?"""

    def tap(self, event: ServerSentEvent) -> None:
        # Data may come in several lines; between the tokens of JSON a blank is as good as a line's end.
        self._events.append(
            ServerSentEvent(event.name, event.data.replace(b"\n", b" ")) if b"\n" in event.data else event
        )
        closing = self._api.closing
        self._is_closed = closing is not None and (event.name, event.data) == (closing.name, closing.data)

    def adapt(self, batch: list[Delta]) -> list[Delta]:
        """The deltas as the client is told them, with numbers of tokens that are never zero."""
        out: list[Delta] = []
        for delta in batch:
            kind = type(delta)
            if kind is TextPiece or kind is ThinkingPiece or kind is UsePiece:
                self._characters += len(delta.text)  # type: ignore[union-attr]
                out.append(delta)
            elif isinstance(delta, AnswerStart):
                usage = delta.usage if delta.usage.input else Usage(input=estimate_request(self._request))
                # Some hosts give all answers the same id, and some clients take those for one.
                out.append(AnswerStart(make_id(self._api.prefix), self.asked.model, usage))
                self._begun = usage
            elif isinstance(delta, AnswerEnd):
                self._begun = None
                self.usage = self._estimate_usage(delta.usage)
                out.append(msgspec.structs.replace(delta, usage=self.usage))
            elif isinstance(delta, UseBegun):
                self._characters += len(delta.name)
                # Some hosts number the calls of each answer anew.
                out.append(msgspec.structs.replace(delta, id=make_id("call_")) if delta.id in self._used else delta)
            else:
                out.append(delta)
        return out if self._calls is None else [told for delta in out for told in self._calls.put(delta)]

    def put(self, batch: list[Delta]) -> bytes:
        """What goes to the client now. The mere beginning is held back: until then the model can be asked again."""
        deltas = self.adapt(batch)
        if self._writer is None:
            events, self._events = self._events, []
            data = [text(event) for event in events if self._is_wanted(event)]
            begins = len(self._held) + len(data) < 3
        else:
            write = self._writer.write
            data = [text(event) for delta in deltas for event in write(delta)]
            begins = True
        if self._api.ends_lines:
            data = [_one_line(one) for one in data]
        if not self.has_said:
            self._held += data
            if not data or (begins and all(type(delta) is AnswerStart for delta in deltas)):
                return b""
            self.has_said = True
            data, self._held = self._held, []
        return b"".join(data)

    def end(self) -> bytes:
        """What was held back of an answer that says nothing, and what the host has left out at its end."""
        held, self._held = self._held, []
        if self.is_relay and not self._is_closed and self._api.closing is not None:
            held = [*held, text(self._api.closing)]
        return b"".join(held)

    def _is_wanted(self, event: ServerSentEvent) -> bool:
        """All but the count of tokens in a Chat stream whose client has not asked for it."""
        if self._wants_usage or self._api.name != "openai-chat" or b'"usage"' not in event.data:
            return True
        return b'"choices":[]' not in event.data.replace(b" ", b"")

    def so_far(self) -> Usage | None:
        """The tokens of an answer that has begun and not ended, more or less; None if there is none."""
        begun = self._begun
        if begun is None:
            return None
        self._record.is_estimate = True
        return msgspec.structs.replace(begun, output=max(begun.output, self._characters // 4))

    def _estimate_usage(self, usage: Usage) -> Usage:
        if usage.input and (usage.output or not self._characters):
            return usage
        self._record.is_estimate = True
        return Usage(
            usage.input or estimate_request(self._request),
            usage.output or max(1, self._characters // 4),
            usage.cache_read,
            usage.cache_write,
        )


def _one_line(event: bytes) -> bytes:
    """An event whose text has no line ends of other scripts; see `Api.ends_lines`."""
    for raw, escaped in _LINE_ENDS:
        if raw in event:
            event = event.replace(raw, escaped)
    return event


def estimate_request(request: Request) -> int:
    """About how many tokens a body is."""
    return max(1, request.size // BYTES_A_TOKEN)


def check(batch: list[Delta], upstream: Upstream) -> None:
    """Raises ProxyError where the host reports an error, or has sent what nobody can read and is missing."""
    for delta in batch:
        if isinstance(delta, Broke):
            raise ProxyError("server", f"{upstream.name} broke off: {delta.message}")
        if isinstance(delta, AnswerEnd) and delta.skipped:
            raise ProxyError("server", f"{upstream.name} sent {delta.skipped} events that nobody can read.")


async def send_error(api: ClientApi, error: ProxyError, out: ClientResponse) -> None:
    """A whole answer that is an error."""
    headers = [(b"content-type", b"application/json"), *retry_headers(error)]
    await out.whole(api.status(error), headers, api.error_body(error))
