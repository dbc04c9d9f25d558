"""What a body has besides the conversation, as each API and each model takes it: thinking, cache marks, limits."""

from collections.abc import Callable
from typing import Any

from ferrule.agent_settings import Models
from ferrule.models.catalog import About
from ferrule.models.hosts import Host
from ferrule.wire.thinking import effort
from ferrule.wire.turn import Asked

MARK: dict[str, Any] = {"type": "ephemeral"}
BINDING = "thinking-binding-controls-2026-08-01"
"""The beta that lets a conversation be made smaller although thinking is tied to it."""
_EFFORT = "effort-2025-11-24"
_TASK = "task-budgets-2026-03-13"
_EFFORT_BESIDE = ("claude-opus-4-5",)
"""Models that have a budget for thinking, and are told of an effort all the same."""
_PLAIN_EFFORTS = {"xhigh": "high", "max": "high"}
"""What an effort is to hosts that know three of them."""

_Shape = Callable[[dict[str, Any], Asked, Host, About, str], dict[str, Any]]


def shaped(
    body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str, *, marks: bool = True
) -> dict[str, Any]:
    """The body of a codec, made to fit. The keys stay in their order; the conversation itself is not looked at.

    Without `marks`, what is to be cached is what the caller has marked.
    """
    body = _SHAPES[host.api](body, asked, host, about, conversation)
    return _marked(body, asked, host) if marks else body


def _marked(body: dict[str, Any], asked: Asked, host: Host) -> dict[str, Any]:
    """The body with marks behind what stays the same in every turn."""
    if host.api == "anthropic":
        if system := body.get("system"):
            blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
            body["system"] = [*blocks[:-1], {**blocks[-1], "cache_control": MARK}]
        if tools := body.get("tools"):
            body["tools"] = mark_last(tools)
    elif host.takes_marks(asked.model):
        body["cache_control"] = MARK
    return body


def mark_last(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools with a mark on the last one that may have one: those that are loaded later may not."""
    at = next((at for at in range(len(tools) - 1, -1, -1) if not tools[at].get("defer_loading")), None)
    if at is None:
        return tools
    return [*tools[:at], {**tools[at], "cache_control": MARK}, *tools[at + 1 :]]


def betas(api: str, model: str, about: About, settings: Models) -> list[str]:
    """What of Anthropic's API has to be switched on for what is asked of the model."""
    if api != "anthropic":
        return []
    is_needed = {
        BINDING: about.thinks == "bound",
        _EFFORT: bool(settings.effort) and model.startswith(_EFFORT_BESIDE),
        _TASK: settings.task_tokens is not None,
    }
    return [*(beta for beta, needed in is_needed.items() if needed), *settings.betas]


def _anthropic(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:  # noqa: ARG001 - one shape for all
    if told := _told(asked, about):
        body["output_config"] = told
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
    elif wanted is not None and not asked.effort:
        body["output_config"] = {**body.get("output_config", {}), "effort": _effort(wanted)}
    if about.thinks == "bound":
        # The loop makes old turns smaller; what was thought behind them is then left out instead of refused.
        body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        if asked.choice is not None and asked.choice.kind in {"any", "tool"}:
            body["tool_choice"] = {"type": "auto"}
    return body


def _told(asked: Asked, about: About) -> dict[str, Any]:
    """What the model is told about how to work, besides its thinking."""
    told: dict[str, Any] = {}
    if asked.task_tokens is not None:
        told["task_budget"] = {"type": "tokens", "total": asked.task_tokens}
    if asked.effort and (about.thinks not in {"", "budget"} or asked.model.startswith(_EFFORT_BESIDE)):
        told["effort"] = asked.effort
    return told


def _chat(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:
    row = host.row
    if row.max_tokens != "max_completion_tokens" and "max_completion_tokens" in body:
        body[row.max_tokens] = body.pop("max_completion_tokens")
    if word := _worded(asked):
        body["reasoning_effort"] = word
    if about.thinks == "effort":
        body.pop("temperature", None)
    if row.conversation and conversation:
        body["prompt_cache_key"] = conversation
    return body


def _responses(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:
    if about.thinks == "effort":
        body["include"] = ["reasoning.encrypted_content"]
        body.pop("temperature", None)
    elif not about.thinks and asked.thinking_tokens is None and not asked.effort:
        body.pop("include", None)
    if word := _worded(asked):
        body["reasoning"] = {**body.get("reasoning", {}), "effort": word}
    if host.row.conversation and conversation:
        body["prompt_cache_key"] = conversation
    return body


def _generate(body: dict[str, Any], asked: Asked, host: Host, about: About, conversation: str) -> dict[str, Any]:  # noqa: ARG001 - as above
    body.pop("model", None)
    if (word := _worded(asked)) and about.thinks == "level":
        level = "LOW" if word == "low" else "HIGH"
        body["generationConfig"]["thinkingConfig"] = {"thinkingLevel": level, "includeThoughts": True}
    return body


def _worded(asked: Asked) -> str:
    """The effort that is wanted, in words that every host knows; empty where nothing is said about it."""
    if asked.effort:
        return _PLAIN_EFFORTS.get(asked.effort, asked.effort)
    return "" if asked.thinking_tokens is None else _effort(asked.thinking_tokens)


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
