"""What a body has besides the conversation, as each API and each model takes it: thinking, cache marks, limits."""

from collections.abc import Callable, Mapping
from typing import Any

from ferrule.models.catalog import About
from ferrule.models.hosts import Host
from ferrule.wire.thinking import effort
from ferrule.wire.turn import Asked

MARK: dict[str, Any] = {"type": "ephemeral"}
BINDING = "thinking-binding-controls-2026-08-01"
"""The beta that lets a conversation be made smaller although thinking is tied to it."""

_Shape = Callable[[dict[str, Any], Asked, Host, About, str], dict[str, Any]]


def shaped(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:
    """The body of a codec, made to fit. The keys stay in their order; the conversation itself is not looked at."""
    return _SHAPES[host.api](body, asked, host, about, conversation)


def extra_headers(api: str, about: About) -> Mapping[str, str]:
    """Headers that some models want."""
    return {"anthropic-beta": BINDING} if api == "anthropic" and about.thinks == "bound" else {}


def _anthropic(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:  # noqa: ARG001 - one shape for all
    if system := body.get("system"):
        blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
        body["system"] = [*blocks[:-1], {**blocks[-1], "cache_control": MARK}]
    if tools := body.get("tools"):
        body["tools"] = [*tools[:-1], {**tools[-1], "cache_control": MARK}]
    if about.thinks in {"", "budget"}:
        return body
    body.pop("thinking", None)
    # Models that decide themselves how much they think refuse every other temperature than their own.
    body.pop("temperature", None)
    wanted = asked.thinking_tokens
    if wanted or about.thinks in {"always", "bound"}:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    if wanted == 0 and about.thinks != "bound":
        body["thinking"] = {"type": "disabled"}
    elif wanted is not None:
        body["output_config"] = {"effort": _effort(wanted)}
    if about.thinks == "bound":
        # The loop makes old turns smaller; what was thought behind them is then left out instead of refused.
        body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        if asked.choice is not None and asked.choice.kind in {"any", "tool"}:
            body["tool_choice"] = {"type": "auto"}
    return body


def _chat(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:
    row = host.row
    if row.max_tokens != "max_completion_tokens" and "max_completion_tokens" in body:
        body[row.max_tokens] = body.pop("max_completion_tokens")
    if asked.thinking_tokens is not None:
        body["reasoning_effort"] = _effort(asked.thinking_tokens)
    if about.thinks == "effort":
        body.pop("temperature", None)
    if row.marks and row.marks in asked.model.lower():
        body["cache_control"] = MARK
    if row.conversation and conversation:
        body["prompt_cache_key"] = conversation
    return body


def _responses(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:
    if about.thinks == "effort":
        body["include"] = ["reasoning.encrypted_content"]
        body.pop("temperature", None)
    elif not about.thinks and asked.thinking_tokens is None:
        body.pop("include", None)
    if asked.thinking_tokens is not None:
        body["reasoning"] = {**body["reasoning"], "effort": _effort(asked.thinking_tokens)}
    if host.row.conversation and conversation:
        body["prompt_cache_key"] = conversation
    return body


def _generate(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:  # noqa: ARG001 - as above
    body.pop("model", None)
    if asked.thinking_tokens is not None and about.thinks == "level":
        level = "LOW" if asked.thinking_tokens < 16_000 else "HIGH"
        body["generationConfig"]["thinkingConfig"] = {"thinkingLevel": level, "includeThoughts": True}
    return body


def _effort(tokens: int) -> str:
    """An effort in words that all of the newer models know."""
    word = effort(tokens)
    return "low" if word == "minimal" else word


_SHAPES: dict[str, _Shape] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _generate,
}
