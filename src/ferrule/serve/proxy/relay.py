"""Bodies that stay in their own API: what is changed in them on the way, and nothing else."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from ferrule.models.api import HttpModel
from ferrule.models.encoding import encoded
from ferrule.models.shaping import MARK, mark_last
from ferrule.serve.proxy.upstreams import Upstream, has_marks
from ferrule.wire.thinking import origin
from ferrule.wire.turn import Asked, Foreign, Text

_LIMITS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "anthropic": (("max_tokens",),),
    "openai-chat": (("max_tokens",), ("max_completion_tokens",)),
    "openai-responses": (("max_output_tokens",),),
    "gemini": (("generationConfig", "maxOutputTokens"), ("generation_config", "max_output_tokens")),
}
"""Where each API says how long an answer may be."""
_BETA = re.compile(r"[a-z0-9][a-z0-9._-]{0,80}")
BILLING = "x-anthropic-billing-header:"
"""Claude Code begins its system prompt with such a line; it changes with versions and is for one host alone."""


def relayed(body: Mapping[str, Any], asked: Asked, upstream: Upstream, *, stream: bool) -> bytes:
    """The client's own body for the same API: another model's name, marks for the cache if it has none."""
    http = upstream.http
    assert http is not None
    api = http.host.api
    out = _FITS[api](dict(body), asked, http, stream)
    # What is guessed of a model is no reason to change a request.
    if upstream.has_bound:
        for path in _LIMITS[api]:
            _clamp(out, path, http.most_output)
    return encoded(out)


def _messages(body: dict[str, Any], asked: Asked, http: HttpModel, stream: bool) -> dict[str, Any]:  # noqa: FBT001 - one form for all
    body |= {"model": http.model, "stream": stream, "messages": _own_thoughts(body.get("messages") or [])}
    if http.host.name != "anthropic":
        body = without_billing(body)
    if asked.definitions and not has_marks(asked) and not _has_own_marks(body, asked):
        _mark(body)
    return body


def _has_own_marks(body: Mapping[str, Any], asked: Asked) -> bool:
    """Marks in what has no noun: on the body as a whole, and on blocks of the API's own tools."""
    blocks = (part.block for turn in asked.turns for part in turn.parts if isinstance(part, Foreign))
    return any("cache_control" in holder for holder in (body, *blocks))


def _chat(body: dict[str, Any], _: Asked, http: HttpModel, stream: bool) -> dict[str, Any]:  # noqa: FBT001 - as above
    options = body.pop("stream_options", None)
    options = options if isinstance(options, dict) else {}
    usage = {"stream_options": {**options, "include_usage": True}} if stream else {}
    return {**body, "model": http.model, "stream": stream, **usage}


def _responses(body: dict[str, Any], _: Asked, http: HttpModel, stream: bool) -> dict[str, Any]:  # noqa: FBT001 - as above
    given = body.get("input")
    kept = [item for item in given if not _is_foreign(item, "openai-responses")] if isinstance(given, list) else given
    return {**body, "input": kept, "model": http.model, "stream": stream}


def _generate(body: dict[str, Any], _: Asked, __: HttpModel, ___: bool) -> dict[str, Any]:  # noqa: FBT001 - as above
    body.pop("model", None)
    return body


_FITS: Mapping[str, Callable[[dict[str, Any], Asked, HttpModel, bool], dict[str, Any]]] = {
    "anthropic": _messages,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _generate,
}
"""How a body of each API is sent on."""


def _is_foreign(block: Any, api: str) -> bool:
    """Is it thinking of another API, which was given to the client packed, when another model answered?"""
    return isinstance(block, dict) and block.get("type") in {"thinking", "reasoning"} and origin(block) not in {"", api}


def _own_thoughts(messages: list[Any]) -> list[Any]:
    """The conversation without what other APIs have signed, which this one would refuse."""
    out = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and any(_is_foreign(block, "anthropic") for block in content):
            kept = [block for block in content if not _is_foreign(block, "anthropic")]
            if kept:
                out.append({**message, "content": kept})
        else:
            out.append(message)
    return out


def _clamp(holder: dict[str, Any], path: tuple[str, ...], most: int) -> None:
    *outer, last = path
    for name in outer:
        inner = holder.get(name)
        if not isinstance(inner, dict):
            return
        holder[name] = holder = dict(inner)
    if isinstance(value := holder.get(last), int) and value > most:
        holder[last] = most


def _mark(body: dict[str, Any]) -> None:
    """Mark the end of the tools, of the system prompt and of the conversation for the cache."""
    body["tools"] = mark_last(body["tools"])
    if system := body.get("system"):
        blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
        body["system"] = [*blocks[:-1], {**blocks[-1], "cache_control": MARK}]
    messages = body.get("messages")
    if not messages:
        return
    last = messages[-1]
    content = last.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if last.get("role") == "user" and blocks and _can_be_marked(blocks[-1]):
        marked = {**last, "content": [*blocks[:-1], {**blocks[-1], "cache_control": MARK}]}
        body["messages"] = [*messages[:-1], marked]


def _can_be_marked(block: Any) -> bool:
    return (
        isinstance(block, dict)
        and block.get("type") in {"text", "tool_result", "image", "document"}
        and block.get("text") != ""
    )


def without_billing(body: dict[str, Any]) -> dict[str, Any]:
    """The body without the line that Claude Code writes for its own host."""
    system = body.get("system")
    if not isinstance(system, list):
        return body
    kept = [
        block
        for block in system
        if not (isinstance(block, dict) and str(block.get("text", "")).lstrip().startswith(BILLING))
    ]
    return body if len(kept) == len(system) else {**body, "system": kept}


def switched_on(header: str) -> tuple[str, ...]:
    """The betas that a client of Anthropic's API names in a header; what is no name of one is passed over."""
    return tuple(one for part in header.split(",") if _BETA.fullmatch(one := part.strip()))


def conversation_key(asked: Asked) -> str:
    """A name of the conversation, the same in each of its turns, by which a host finds what it has cached."""
    hashed = hashlib.sha256(asked.user.encode("utf-8", "replace"))
    for turn in asked.turns:
        hashed.update(turn.role.encode())
        for part in turn.parts:
            if isinstance(part, Text):
                hashed.update(part.text.encode("utf-8", "replace"))
        if turn.role == "user":
            break
    return hashed.hexdigest()[:32]
