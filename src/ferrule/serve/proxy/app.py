"""Answer the requests of the proxy: messages, lists of models and counts of tokens."""

import asyncio
import hashlib
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec

from ferrule.core.content import Document, Image, Text
from ferrule.core.errors import ConfigError, FerruleError
from ferrule.models import ModelError, clean_text
from ferrule.models.bodies import encode_json, generate_path
from ferrule.models.http import HttpModel
from ferrule.registry import dynamic
from ferrule.serve.http_server import Scope, bearer, only
from ferrule.serve.proxy.apis import APIS, ClientApi, Kind, ProxyError
from ferrule.serve.proxy.body import fit_request
from ferrule.serve.proxy.exchange import Exchange, Request, Shop, send_error
from ferrule.serve.proxy.records import clean_client_text
from ferrule.wire import Foreign, ModelRequest, Part, Result, Thinking, Use, WireError, load_wire

_SECONDS = 15.0
"""A host that takes longer to count is not waited for."""
_SHORT = 31
"""What is no longer than a hash is its own key."""
_MOST_COUNTED = 20_000
_A_TURN = 4
"""Tokens around each turn: its role and its ends."""
_A_TOOL = 8
_AN_IMAGE = 1_500
_A_PAGE = 2_000
_PAGE_BYTES = 50_000
"""A PDF has about a page for so many bytes."""


class _CountEndpoint(NamedTuple):
    """Where an API counts, and what it wants to know."""

    path: Callable[[str], str]
    """From a model's id to where it is."""
    fields: tuple[str, ...]
    wrapped: bool = False
    """Does the body stand in another one, with the model?"""


_PLACES = {
    "anthropic": _CountEndpoint(
        lambda _: "/v1/messages/count_tokens", ("model", "system", "messages", "tools", "tool_choice", "thinking")
    ),
    "gemini": _CountEndpoint(
        lambda model: generate_path(model, "countTokens"), ("contents", "systemInstruction", "tools"), wrapped=True
    ),
    "openai-responses": _CountEndpoint(
        lambda _: "/responses/input_tokens",
        ("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text"),
    ),
}
_ANSWERS = ("input_tokens", "totalTokens")


class Counter:
    """Counts for all models, and remembers which hosts cannot."""

    def __init__(self) -> None:
        self._cannot: set[str] = set()

    async def count(self, asked: ModelRequest, http: HttpModel | None) -> int:
        """The tokens of a request. `http` is asked if its host counts; None counts here."""
        if http is not None and http.host.api in _PLACES and http.host.name not in self._cannot:
            try:
                async with asyncio.timeout(_SECONDS):
                    return await _ask(asked, http)
            except (TimeoutError, WireError):
                pass
            except ModelError as error:
                if error.kind == "bad":  # all others may pass
                    self._cannot.add(http.host.name)
            except (msgspec.DecodeError, ValueError):
                self._cannot.add(http.host.name)
        return await asyncio.to_thread(count_here, asked)


async def _ask(asked: ModelRequest, http: HttpModel) -> int:
    place = _PLACES[http.host.api]
    whole = load_wire(http.host.api).asked_out(msgspec.structs.replace(asked, model=http.model, stream=False))
    body = {name: whole[name] for name in place.fields if name in whole}
    if place.wrapped:
        name = http.model if "/" in http.model else f"models/{http.model}"
        body = {"generateContentRequest": {"model": name, **body}}
    data = msgspec.json.decode(await http.whole(place.path(http.model), encode_json(body)))
    found = next((data[name] for name in _ANSWERS if isinstance(data, dict) and name in data), None)
    if type(found) is not int:
        raise ValueError("no count")
    return found


def count_here(asked: ModelRequest) -> int:
    """The tokens of a request by the tokenizer that is installed."""
    total = 3
    for turn in asked.turns:
        total += _A_TURN + sum(_part(part) for part in turn.parts)
    for one in asked.definitions:
        total += _A_TOOL + _text(one.name) + _text(one.words) + _text(_json(one.schema))
    return total


def _part(part: Part) -> int:
    if isinstance(part, Image):
        return _AN_IMAGE
    if isinstance(part, Document):
        return _text(part.text) if part.text else max(_A_PAGE, _A_PAGE * len(part.data) // _PAGE_BYTES)
    if isinstance(part, Result):
        return _A_TURN + sum(_part(one) for one in part.parts)
    return sum(_text(words) for words in _words(part))


def _words(part: Part) -> Iterator[str]:
    if isinstance(part, Text | Thinking):
        yield part.text
    elif isinstance(part, Use):
        yield part.name
        yield part.input if isinstance(part.input, str) else _json(part.input)
    elif isinstance(part, Foreign):
        yield _json(part.block)


def _json(value: Any) -> str:
    return encode_json(value).decode()


def _text(words: str) -> int:
    """Most of a conversation was counted in the turn before; of what is long only the hash is kept."""
    if not words:
        return 0
    raw = words.encode("utf-8", "replace")
    key = raw if len(raw) <= _SHORT else hashlib.sha256(raw).digest()
    count = _counted.get(key)
    if count is None:
        count = dynamic.count(words)
        if len(_counted) >= _MOST_COUNTED:
            _counted.clear()
        _counted[key] = count
    return count


_counted: dict[bytes, int] = {}


OPEN_PATHS = frozenset(("/", "/health", "/api/hello"))
"""What anybody on this machine may ask: whether the proxy is there. Claude Code asks so before it has a token."""
_AGENT_CHARACTERS = 60
_LAST_SECONDS = 0.5
"""So long a client may take to hear that the proxy is being ended."""
_Send = Callable[[dict[str, Any]], Awaitable[None]]
_Receive = Callable[[], Awaitable[dict[str, Any]]]
_KINDS: dict[int, Kind] = {401: "token", 403: "forbidden"}


class ProxyRoute(NamedTuple):
    """What a path means."""

    api: ClientApi
    action: str
    """`answer`, `count` or `models`."""
    model: str = ""
    """The model, for the API that has it in the path."""
    stream: bool | None = None
    """None if the body says it."""


_POSTS = {
    "/messages": ("anthropic", "answer"),
    "/messages/count_tokens": ("anthropic", "count"),
    "/chat/completions": ("openai-chat", "answer"),
    "/responses": ("openai-responses", "answer"),
    "/responses/input_tokens": ("openai-responses", "count"),
}
_GEMINI = {
    "generateContent": ("answer", False),
    "streamGenerateContent": ("answer", True),
    "countTokens": ("count", False),
}


def api_of(path: str, headers: dict[str, str]) -> ClientApi:
    """The API whose client asks, by the path and, if that tells nothing, by the headers."""
    tail = path.removeprefix("/v1")
    if tail in _POSTS:
        return APIS[_POSTS[tail][0]]
    if path.startswith("/v1beta") or ":" in path or "x-goog-api-key" in headers:
        return APIS["gemini"]
    return APIS["anthropic" if "anthropic-version" in headers else "openai-chat"]


def target_of(method: str, path: str, headers: dict[str, str]) -> ProxyRoute:
    """What a request wants. Raises ProxyError for a path that the proxy does not have."""
    api = api_of(path, headers)
    tail = path.removeprefix("/v1")
    if tail in _POSTS:
        if headers.get("upgrade", "").lower() == "websocket":
            # codex tries it first, and goes on at once with plain HTTP when it reads this status.
            raise ProxyError("upgrade", f"{path} is not served over WebSocket: send it with POST.")
        if method != "POST":
            raise ProxyError("missing", f"{path} takes POST, not {method}.")
        return ProxyRoute(api, _POSTS[tail][1])
    version, _, rest = path.removeprefix("/").partition("/models")
    if version in {"v1", "v1beta"} and (not rest or rest.startswith("/")):
        name, _, action = rest.removeprefix("/").rpartition(":")
        if method == "POST" and action in _GEMINI and name:
            what, stream = _GEMINI[action]
            return ProxyRoute(APIS["gemini"], what, name, stream)
        if method == "GET":
            return ProxyRoute(api, "models", rest.removeprefix("/"))
    raise ProxyError(
        "missing",
        f"There is no {method} {path} here. The proxy has /v1/messages, /v1/messages/count_tokens, "
        "/v1/chat/completions, /v1/responses, /v1beta/models/MODEL:generateContent, :streamGenerateContent and "
        ":countTokens, /v1/models, /health, /metrics and /costs.",
    )


def credentials(scope: Scope) -> Iterator[str]:
    """The token of a request, wherever the client of an API puts it. Some send a key of their user's as well."""
    for header in (b"x-api-key", b"x-goog-api-key"):
        yield only(scope, header) or ""
    yield bearer(scope)
    yield from _query(scope).get("key", [])[:1]


def refusal(scope: Scope, status: int, said: str) -> tuple[bytes, bytes]:
    """A refusal in the form of the API that the client speaks."""
    if status == 401:
        said = "The proxy's token is missing or wrong: send the token that `ferrule proxy` has shown as the API key."
    api = api_of(scope["path"], _headers(scope))
    return b"application/json", api.error_body(ProxyError(_KINDS[status], said.strip()))


class App:
    """Answers every request of the clients, and those of whoever watches the proxy."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._counter = Counter()
        self._streams: set[_Out] = set()
        self._pings: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _live(self, receive: _Receive, send: _Send) -> None:
        await receive()
        pinger = asyncio.create_task(self._ping())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        pinger.cancel()
        with suppress(asyncio.CancelledError):
            await pinger
        await send({"type": "lifespan.shutdown.complete"})

    async def _ping(self) -> None:
        """Keep silent streams alive. A client that does not read holds up nobody but itself."""
        seconds = self._shop.settings.ping_seconds
        while True:
            await asyncio.sleep(seconds / 4)
            now = asyncio.get_running_loop().time()
            for stream in self._streams:
                if now - stream.last >= seconds and not stream.is_busy:
                    task = asyncio.ensure_future(stream.ping())
                    self._pings.add(task)
                    task.add_done_callback(self._pings.discard)

    async def _serve(self, scope: Scope, receive: _Receive, send: _Send) -> None:
        path, method = scope["path"].rstrip("/") or "/", scope["method"]
        if method in {"GET", "HEAD"} and (page := self._page(path)) is not None:
            kind, data = page
            await _plain(send, kind, b"" if method == "HEAD" else data, len(data))
            return
        headers = _headers(scope)
        api = api_of(path, headers)
        out = _Out(send)
        try:
            target = target_of(method, path, headers)
            api = target.api
            if target.action == "models":
                await out.send_json(self._models(target))
                return
            raw = await self._body(receive, headers)
            request = read_request(target, raw, headers, is_list=_query(scope).get("alt") != ["sse"])
            if target.action == "count":
                await self._send_count(request, out, receive)
                return
        except ProxyError as error:
            await send_error(api, error, out)
            return
        except Exception as error:  # noqa: BLE001 - the edge: a bug is answered too, and the proxy goes on
            await out.fail(api, self._bug(error))
            return
        await self._answer(request, out, receive)

    async def _answer(self, request: Request, out: "_Out", receive: _Receive) -> None:
        """Answer until the end, or until the client has gone."""
        records = self._shop.records
        record = records.begin(
            request.api.name, clean_client_text(request.headers.get("user-agent", "")[:_AGENT_CHARACTERS])
        )
        out.keep_alive(request.api.ping if request.stream and not request.as_list else b"", as_list=request.as_list)
        self._streams.add(out)
        try:
            if not await _until_gone(Exchange(self._shop, request, record, out).run(), receive):
                record.state, record.status, record.error = "cancelled", 499, "cancelled"
        except asyncio.CancelledError:
            record.state, record.status, record.error = "cancelled", 503, "ended"
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await out.fail(request.api, ProxyError("overloaded", "The proxy is being ended.", seconds=1.0))
            raise
        except Exception as error:  # noqa: BLE001 - as above
            record.state, record.status, record.error = "failed", 500, "bug"
            await out.fail(request.api, self._bug(error))
        finally:
            self._streams.discard(out)
            records.end(record)

    def _bug(self, error: Exception) -> ProxyError:
        """What is said of an error that nobody expected: without keys, whatever is in it."""
        said = str(error) if isinstance(error, FerruleError) else f"The proxy failed: {type(error).__name__}: {error}"
        return ProxyError("server", clean_text(said, self._shop.upstreams.secrets()))

    async def _send_count(self, request: Request, out: "_Out", receive: _Receive) -> None:
        async def count() -> None:
            await out.send_json(request.api.counted(await self._count(request)))

        await _until_gone(count(), receive)

    async def _count(self, request: Request) -> int:
        """The tokens of a request. A model that cannot be asked is no reason for none: they are counted here then."""
        shop, found = self._shop, None
        with suppress(ModelError, ConfigError):
            usable = filter(shop.upstreams.is_usable, shop.routes.chain(request.asked.model))
            found = next(map(shop.upstreams.find, usable), None)
        http = None if found is None else found.http
        asked = fit_request(request.asked, request.api.name, http)
        is_asked = shop.settings.count_upstream and found is not None and not found.breaker.is_open
        return await self._counter.count(asked, http if is_asked else None)

    def _models(self, target: ProxyRoute) -> dict[str, Any]:
        """The list of models, or one of them. Raises ProxyError."""
        if not target.model:
            return target.api.models(self._shop.routes.names())
        wanted = target.model.removeprefix("models/")
        rows = target.api.models([wanted])
        found: dict[str, Any] = next(iter(rows.get("data") or rows["models"]))
        try:
            self._shop.routes.chain(wanted)
        except (ModelError, ConfigError) as error:
            raise ProxyError("no-model", str(error)) from None
        return found

    async def _body(self, receive: _Receive, headers: dict[str, str]) -> bytes:
        """The whole body. Raises ProxyError for one that is too long or packed in an unknown way."""
        most = self._shop.settings.body_mb << 20
        packed = headers.get("content-encoding", "identity").strip().lower()
        if packed not in {"", "identity", "gzip", "deflate"}:
            raise ProxyError("bad", f"The body is packed with {packed[:40]!r}: send it plain, or with gzip.")
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ProxyError("bad", "The body broke off.")
            size += len(message.get("body", b""))
            if size > most:
                raise ProxyError("large", f"The request is longer than {most >> 20} MB; proxy.body_mb allows more.")
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        raw = b"".join(pieces)
        return raw if packed in {"", "identity"} else _decompress(raw, most)

    def _page(self, path: str) -> tuple[bytes, bytes] | None:
        """What whoever watches the proxy may ask."""
        shop = self._shop
        encode = msgspec.json.Encoder().encode
        if path in OPEN_PATHS:
            return b"application/json", encode({"status": "ok", "name": "ferrule proxy"})
        if path == "/metrics":
            text = shop.records.prometheus(shop.upstreams.list_upstreams(), shop.upstreams.limits())
            return b"text/plain; version=0.0.4; charset=utf-8", text.encode()
        if path == "/costs":
            return b"application/json", encode(shop.records.costs())
        if path == "/requests":
            return b"application/json", encode([*shop.records.open.values(), *reversed(shop.records.recent)])
        if path == "/hosts":
            rows = [
                {"model": one.name, "resting_seconds": round(one.breaker.seconds, 1), "is_open": one.breaker.is_open}
                for one in shop.upstreams.list_upstreams()
            ]
            return b"application/json", encode(rows)
        return None


def read_request(target: ProxyRoute, raw: bytes, headers: dict[str, str], *, is_list: bool) -> Request:
    """The request that a body makes. Raises ProxyError if it is none."""
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProxyError("bad", f"The body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise ProxyError("bad", "The body must be a JSON object.")
    if target.action == "count" and isinstance(inner := body.get("generateContentRequest"), dict):
        body = inner
    given = {**body, "model": target.model} if target.model else body
    try:
        asked = target.api.wire.asked_in(given)
    except (WireError, RecursionError) as error:
        raise ProxyError("bad", str(error)) from None
    stream = asked.stream if target.stream is None else target.stream
    return Request(
        api=target.api,
        body=given,
        asked=asked,
        stream=stream,
        size=len(raw),
        headers=headers,
        as_list=bool(target.stream) and is_list,
    )


class _Out:
    """One answer on its way to a client. What is sent at once stays together: pings come between, never within."""

    def __init__(self, send: _Send) -> None:
        self._send = send
        self._sending = asyncio.Lock()
        self._ping = b""
        self._as_list = False
        self._items = 0
        self._is_over = False
        self._first = b""
        """What was sent first, apart from pings."""
        self.has_begun = False
        self.last = asyncio.get_running_loop().time()
        """When something was sent last."""

    @property
    def is_busy(self) -> bool:
        """Is something being sent that the client has not taken yet?"""
        return self._sending.locked()

    def keep_alive(self, ping: bytes, *, as_list: bool) -> None:
        self._ping = ping
        self._as_list = as_list

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        async with self._sending:
            await self._begin(status, headers)

    async def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        if self.has_begun:
            return  # a ping has begun it
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        async with self._sending:
            await self._write(b"".join(self._format_list(data)) if self._as_list else data)

    async def _write(self, data: bytes) -> None:
        self.last = asyncio.get_running_loop().time()
        if not self._first and data is not self._ping:
            self._first = data
        if data and not self._is_over:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        async with self._sending:
            await self._end((b"]" if self._items else b"[]") if self._as_list else b"")

    async def _end(self, last: bytes) -> None:
        if not self._is_over:
            self._is_over = True
            await self._send({"type": "http.response.body", "body": last})

    async def whole(self, status: int, headers: list[tuple[bytes, bytes]], data: bytes) -> None:
        """An answer in one piece."""
        if self._as_list:
            data = b"[" + data + b"]"
        async with self._sending:
            await self._begin(status, [(b"content-length", str(len(data)).encode()), *headers])
            await self._end(data)

    async def fail(self, api: ClientApi, error: ProxyError) -> None:
        """End the answer with an error, wherever it is."""
        if self._is_over:
            return
        if not self.has_begun:
            await send_error(api, error, self)
            return
        await self.write(api.error_event(error, self._first))
        await self.end()

    async def ping(self) -> None:
        """Say that the connection is alive. The status is 200 from then on, and errors are told in the stream."""
        async with self._sending:
            if not self._ping or self._is_over:
                return
            kind = (b"content-type", b"text/event-stream; charset=utf-8")
            await self._begin(200, [kind, (b"cache-control", b"no-cache")])
            await self._write(self._ping)

    async def send_json(self, value: Any) -> None:
        await self.whole(200, [(b"content-type", b"application/json")], msgspec.json.encode(value))

    def _format_list(self, data: bytes) -> Iterator[bytes]:
        """Events as members of one JSON list."""
        for line in data.split(b"\n"):
            if line.startswith(b"data: "):
                yield (b",\n" if self._items else b"[") + line.removeprefix(b"data: ")
                self._items += 1


async def _until_gone(work: Coroutine[Any, Any, None], receive: _Receive) -> bool:
    """Do something until its end, or until the client has gone. Returns whether it came to its end."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        is_done = task.done()
        task.cancel()
        # Whoever holds a place at a host gives it back before the answer is over.
        await asyncio.wait((task, gone))
    if not task.cancelled():
        task.result()
    return is_done


async def _wait_for_disconnect(receive: _Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _plain(send: _Send, kind: bytes, data: bytes, size: int) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope.get("query_string", b"").decode("latin-1"))


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _decompress(raw: bytes, most: int) -> bytes:
    """A packed body, up to a size. Raises ProxyError."""
    reader = zlib.decompressobj(wbits=47)
    try:
        data = reader.decompress(raw, most + 1)
    except zlib.error as error:
        raise ProxyError("bad", f"The body cannot be unpacked: {error}") from None
    if len(data) > most:
        raise ProxyError("large", f"The request unpacks to more than {most >> 20} MB; proxy.body_mb allows more.")
    if not reader.eof:
        raise ProxyError("bad", "The packed body breaks off.")
    return data
