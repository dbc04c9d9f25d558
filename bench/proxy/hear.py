"""A client program: asks through the maker's own package, and tells what the package read, in no API's words."""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from bench.proxy import rules

SECONDS = 20.0
"""No client waits longer."""


@dataclass
class Failed:
    """An error as the package raised it."""

    status: int
    kind: str
    """The API's own word for it."""
    message: str
    headers: dict[str, str]


@dataclass
class Heard:
    """What the client read."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    reason: str = ""
    input: int = 0
    """All tokens of the input, as the API counts them together."""
    output: int = 0
    cached: int = 0
    written: int = 0
    model: str = ""
    id: str = ""
    failed: Failed | None = None
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""
    first: int = 0
    """Tokens of the input as the beginning of a stream tells them, for the API that does."""
    echo: Any = None
    """The answer as a program sends it back with the next request."""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    """The parts of the answer as the package gives them."""


class _Tap(httpx2.AsyncBaseTransport):
    """The way to the proxy, which keeps what came over it."""

    def __init__(self) -> None:
        self._way = httpx2.AsyncHTTPTransport(verify=False)
        self.raw = bytearray()
        self.headers: dict[str, str] = {}
        self.status = 0
        self.sent = b""
        self.heard: Callable[[bytes], Awaitable[None]] | None = None
        """Told of each piece as it comes."""

    def clear(self) -> None:
        self.raw.clear()
        self.headers, self.status = {}, 0
        self.heard = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        self.sent = request.content
        response = await self._way.handle_async_request(request)
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Kept(response.stream, self),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._way.aclose()


class _Kept(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, tap: _Tap) -> None:
        self._stream = stream
        self._tap = tap

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with contextlib.aclosing(self._stream.__aiter__()) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                self._tap.raw += piece
                if self._tap.heard is not None:
                    await self._tap.heard(piece)
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class Clients:
    """The packages, each over the same tapped way."""

    def __init__(self, url: str, token: str, *, gemini_version: str | None = None) -> None:
        """`gemini_version` is the first part of the paths of Google's API; without it, the package's own choice."""
        import anthropic
        import openai
        from google import genai
        from google.genai import types

        self.url = url
        self.tap = _Tap()
        plain = {"accept-encoding": "identity"}  # what came is judged byte by byte
        self.http = httpx2.AsyncClient(transport=self.tap, timeout=SECONDS, headers=plain)
        self.anthropic = anthropic.AsyncAnthropic(
            base_url=url, api_key=token, max_retries=0, http_client=self.http, timeout=SECONDS
        )
        self.openai = openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key=token, max_retries=0, http_client=self.http, timeout=SECONDS
        )
        self.gemini = genai.Client(
            api_key=token,
            http_options=types.HttpOptions(
                base_url=url,
                api_version=gemini_version,
                httpx_async_client=self.http,
                timeout=int(SECONDS * 1000),
            ),
        )

    async def close(self) -> None:
        await self.http.aclose()

    async def ask(
        self, api: str, name: str, body: dict[str, Any], *, stream: bool, headers: dict[str, str] | None = None
    ) -> Heard:
        """The answer as the package reads it. Raises AssertionError for an answer that breaks the API's laws."""
        heard = Heard()
        heard_by = self.tap.heard
        self.tap.clear()
        self.tap.heard = heard_by
        try:
            await _ASKS[api](self, heard, name, body, stream, headers or {})
        except Exception as error:
            heard.failed = _failed(error, self.tap.headers)
            if heard.failed is None:
                raise
        heard.raw = bytes(self.tap.raw)
        heard.status, heard.headers = self.tap.status, self.tap.headers
        if stream and heard.status == 200:
            assert heard.headers["content-type"].startswith("text/event-stream"), heard.headers["content-type"]
            rules.check(heard.raw, api)
        return heard


def _failed(error: Exception, headers: dict[str, str]) -> Failed | None:
    """What kind of error of a package it is; None for one that is not the API's."""
    import anthropic
    import openai
    from google.genai import errors

    if isinstance(error, anthropic.APIStatusError):
        body = error.body if isinstance(error.body, dict) else {}
        inner = body.get("error") or {}
        return Failed(error.status_code, str(inner.get("type", "")), str(inner.get("message", "")), headers)
    if isinstance(error, openai.APIStatusError):
        body = error.body if isinstance(error.body, dict) else {}
        return Failed(error.status_code, str(body.get("code") or body.get("type")), str(body.get("message")), headers)
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        body = error.body if isinstance(error.body, dict) else {}
        return Failed(200, str(body.get("code") or body.get("type") or error.code), error.message, headers)
    if isinstance(error, errors.APIError):
        return Failed(error.code, str(error.status), str(error.message), headers)
    return None


async def _ask_anthropic(
    clients: Clients, heard: Heard, name: str, body: dict[str, Any], stream: bool, headers: dict[str, str]
) -> None:
    given = {key: value for key, value in body.items() if key != "stream"}
    messages = clients.anthropic.messages
    few = {"model": name, "max_tokens": 16, "messages": []}
    if stream:
        async with messages.stream(**few, extra_body=given, extra_headers=headers) as answer:  # type: ignore[arg-type]
            async for event in answer:
                if event.type == "message_start":
                    usage = event.message.usage
                    heard.first = _anthropic_input(usage)
            message: Any = await answer.get_final_message()
    else:
        message = await messages.create(**few, extra_body=given, extra_headers=headers)  # type: ignore[call-overload]
        _strict_whole(clients.tap.raw, "anthropic")
    for block in message.content:
        heard.blocks.append(block.model_dump(exclude_none=True))
        if block.type == "text":
            heard.text += block.text
        elif block.type == "thinking":
            heard.thinking += block.thinking
        elif block.type == "tool_use":
            heard.calls.append((block.name, block.input))
            heard.ids.append(block.id)
    heard.reason, heard.model, heard.id = message.stop_reason or "", message.model, message.id
    heard.input, heard.output = _anthropic_input(message.usage), message.usage.output_tokens
    heard.cached = message.usage.cache_read_input_tokens or 0
    heard.written = message.usage.cache_creation_input_tokens or 0
    heard.echo = {"role": "assistant", "content": [_sent_back(block) for block in heard.blocks]}


def _sent_back(block: dict[str, Any]) -> dict[str, Any]:
    """A block as programs send it back: without what only the package has put there."""
    return {key: value for key, value in block.items() if key not in {"parsed_output", "caller"}}


def _anthropic_input(usage: Any) -> int:
    return int(usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0))


def _strict_whole(raw: bytes | bytearray, api: str) -> None:
    """Raises for a whole answer that is not of the package's types."""
    if api == "anthropic":
        from anthropic.types import Message

        Message.model_validate(json.loads(raw))
    elif api == "openai-chat":
        from openai.types.chat import ChatCompletion

        ChatCompletion.model_validate(json.loads(raw))
    else:
        from openai.types.responses import Response

        Response.model_validate(json.loads(raw))


async def _ask_chat(
    clients: Clients, heard: Heard, name: str, body: dict[str, Any], stream: bool, headers: dict[str, str]
) -> None:
    from openai.lib.streaming.chat import ChatCompletionStreamState

    given = {key: value for key, value in body.items() if key != "stream"}
    create = clients.openai.chat.completions.create
    few: Any = {"model": name, "messages": [], "extra_headers": headers}
    thought = ""
    if stream:
        given.setdefault("stream_options", {"include_usage": True})
        state = ChatCompletionStreamState()
        async for chunk in await create(**few, stream=True, extra_body=given):
            for choice in chunk.choices:
                thought += getattr(choice.delta, "reasoning_content", None) or ""
            state.handle_chunk(chunk)
        # Its last step refuses answers that stopped for their length; the answer is what came before it.
        answer: Any = state.current_completion_snapshot
    else:
        answer = await create(**few, extra_body=given)
        _strict_whole(clients.tap.raw, "openai-chat")
        thought = getattr(answer.choices[0].message, "reasoning_content", None) or ""
    choice = answer.choices[0]
    heard.text, heard.thinking, heard.reason = choice.message.content or "", thought, choice.finish_reason or ""
    for one in choice.message.tool_calls or ():
        text = one.function.arguments
        heard.calls.append((one.function.name, _read(text)))
        heard.ids.append(one.id)
    heard.model, heard.id = answer.model, answer.id
    if answer.usage is not None:
        heard.input, heard.output = answer.usage.prompt_tokens, answer.usage.completion_tokens
        assert answer.usage.total_tokens == heard.input + heard.output
        details = answer.usage.prompt_tokens_details
        heard.cached = (details.cached_tokens or 0) if details else 0
    echo = choice.message.model_dump(exclude_none=True)
    echo.pop("parsed", None)
    for one in echo.get("tool_calls", ()):
        one["function"].pop("parsed_arguments", None)
    heard.echo = echo


def _read(arguments: str) -> Any:
    """Arguments as an object; as the text that they are if they are none."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


async def _ask_responses(
    clients: Clients, heard: Heard, name: str, body: dict[str, Any], stream: bool, headers: dict[str, str]
) -> None:
    given = {key: value for key, value in body.items() if key != "stream"}
    given.setdefault("include", ["reasoning.encrypted_content"])
    few: Any = {"model": name, "input": "", "extra_body": given, "extra_headers": headers}
    answer: Any = None
    if stream:
        async with clients.openai.responses.stream(**few) as running:
            async for event in running:
                if event.type in {"response.completed", "response.incomplete", "response.failed"}:
                    answer = event.response
        assert answer is not None, "no last event"
    else:
        answer = await clients.openai.responses.create(**few)
        _strict_whole(clients.tap.raw, "openai-responses")
    if answer.status == "failed":
        heard.failed = Failed(200, answer.error.code, answer.error.message, clients.tap.headers)
        return
    items = [item.model_dump(exclude_none=True) for item in answer.output]
    for item in items:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or ():
            part.pop("parsed", None)
        heard.blocks.append(item)
        if item["type"] == "message":
            heard.text += "".join(part.get("text", "") for part in item["content"])
        elif item["type"] == "reasoning":
            heard.thinking += "".join(part["text"] for part in item["summary"])
        elif item["type"] == "function_call":
            heard.calls.append((item["name"], _read(item["arguments"])))
            heard.ids.append(item["call_id"])
    why = answer.incomplete_details.reason if answer.incomplete_details else ""
    heard.reason = why or answer.status
    heard.model, heard.id, heard.echo = answer.model, answer.id, items
    heard.input, heard.output = answer.usage.input_tokens, answer.usage.output_tokens
    assert answer.usage.total_tokens == heard.input + heard.output
    heard.cached = answer.usage.input_tokens_details.cached_tokens


async def _ask_gemini(
    clients: Clients, heard: Heard, name: str, body: dict[str, Any], stream: bool, headers: dict[str, str]
) -> None:
    from google.genai import types

    config = types.GenerateContentConfig.model_validate(
        {
            **body.get("generationConfig", {}),
            **{key: body[key] for key in ("systemInstruction", "tools", "toolConfig", "safetySettings") if key in body},
            "automaticFunctionCalling": {"disable": True},
        }
    )
    if headers:
        config.http_options = types.HttpOptions(headers=headers)
    contents = [types.Content.model_validate(one) for one in body["contents"]]
    models = clients.gemini.aio.models
    pieces: list[Any] = []
    if stream:
        async for piece in await models.generate_content_stream(model=name, contents=contents, config=config):
            pieces.append(piece)  # noqa: PERF401 - an error in the middle must not lose the rest
    else:
        pieces.append(await models.generate_content(model=name, contents=contents, config=config))
    for answer in pieces:
        _take_gemini(heard, answer)
    heard.echo = {"role": "model", "parts": [one for one in heard.blocks if one != {"text": ""}]}


def _take_gemini(heard: Heard, answer: Any) -> None:
    """What one chunk, or a whole answer, says."""
    if answer.usage_metadata is not None and answer.usage_metadata.prompt_token_count:
        usage = answer.usage_metadata
        heard.input, heard.output = usage.prompt_token_count, usage.candidates_token_count or 0
        heard.output += usage.thoughts_token_count or 0
        heard.cached = usage.cached_content_token_count or 0
    heard.model, heard.id = answer.model_version or heard.model, answer.response_id or heard.id
    for candidate in answer.candidates or ():
        if candidate.finish_reason:
            heard.reason = candidate.finish_reason.value
        for part in (candidate.content.parts if candidate.content else None) or ():
            heard.blocks.append(part.model_dump(mode="json", by_alias=True, exclude_none=True))
            if part.function_call:
                heard.calls.append((part.function_call.name, part.function_call.args or {}))
                heard.ids.append(part.function_call.id or "")
            elif part.thought:
                heard.thinking += part.text or ""
            else:
                heard.text += part.text or ""


_ASKS: dict[str, Callable[[Clients, Heard, str, dict[str, Any], bool, dict[str, str]], Awaitable[None]]] = {
    "anthropic": _ask_anthropic,
    "openai-chat": _ask_chat,
    "openai-responses": _ask_responses,
    "gemini": _ask_gemini,
}


@contextlib.asynccontextmanager
async def clients_of(url: str, token: str) -> AsyncIterator[Clients]:
    made = Clients(url, token)
    try:
        yield made
    finally:
        await made.close()
