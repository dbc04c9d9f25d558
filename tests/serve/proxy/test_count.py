"""Tokens that are counted here are those of the text that a host puts before its model."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splintr import Tokenizer

from ferrule.serve.proxy.app import count_here
from ferrule.wire import anthropic, gemini, openai_chat, openai_responses
from tests.rows import each_row

_TOKENIZER = Tokenizer.from_pretrained("o200k_base")
_MOST_OFF = 0.03
_PROSE = (
    "The ring fixes any model to a machine. A model alone only writes text; tools let it read, edit, run and search. "
    "Ask for one thing at a time, and say what is true when it is done. "
) * 12
_CODE = (
    """
def total(prices: dict[str, float], *, tax: float = 0.19) -> float:
    \"\"\"The sum of all prices, with tax.\"\"\"
    return sum(prices.values()) * (1 + tax)
"""
    * 20
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The absolute path of the file that is to be read."},
        "offset": {"type": "integer", "description": "The line to begin at; the first one is 1."},
        "mode": {"type": "string", "enum": ["text", "picture", "notebook"]},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}
_TOOLS = [(f"tool_{number}", f"Does the work of number {number}. {_PROSE[:400]}", _SCHEMA) for number in range(24)]


def _reference(turns: list[tuple[str, str]], tools: list[tuple[str, str, dict[str, Any]]]) -> int:
    """The tokens of a conversation in the form of the models whose tokenizer this is: three marks round each turn."""
    told = "\n".join(
        json.dumps({"name": name, "description": words, "parameters": schema}, separators=(",", ":"))
        for name, words, schema in tools
    )
    marks = 3 * len(turns)
    texts = [text for turn in turns for text in turn]
    return marks + sum(len(_TOKENIZER.encode_ordinary(text)) for text in (*texts, told))


def _messages(turns: list[tuple[str, str]], tools: list[tuple[str, str, dict[str, Any]]]) -> int:
    body = {
        "model": "m",
        "max_tokens": 100,
        "system": turns[0][1],
        "messages": [{"role": role, "content": words} for role, words in turns[1:]],
        "tools": [{"name": name, "description": words, "input_schema": schema} for name, words, schema in tools],
    }
    return count_here(anthropic.asked_in(body))


def _chat(turns: list[tuple[str, str]], tools: list[tuple[str, str, dict[str, Any]]]) -> int:
    body = {
        "model": "m",
        "messages": [{"role": role, "content": words} for role, words in turns],
        "tools": [
            {"type": "function", "function": {"name": name, "description": words, "parameters": schema}}
            for name, words, schema in tools
        ],
    }
    return count_here(openai_chat.asked_in(body))


def _responses(turns: list[tuple[str, str]], tools: list[tuple[str, str, dict[str, Any]]]) -> int:
    body = {
        "model": "m",
        "instructions": turns[0][1],
        "input": [{"type": "message", "role": role, "content": words} for role, words in turns[1:]],
        "tools": [
            {"type": "function", "name": name, "description": words, "parameters": schema}
            for name, words, schema in tools
        ],
    }
    return count_here(openai_responses.asked_in(body))


def _contents(turns: list[tuple[str, str]], tools: list[tuple[str, str, dict[str, Any]]]) -> int:
    roles = {"user": "user", "assistant": "model"}
    body = {
        "model": "m",
        "systemInstruction": {"parts": [{"text": turns[0][1]}]},
        "contents": [{"role": roles[role], "parts": [{"text": words}]} for role, words in turns[1:]],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": name, "description": words, "parametersJsonSchema": schema}
                    for name, words, schema in tools
                ]
            }
        ]
        if tools
        else [],
    }
    return count_here(gemini.asked_in(body))


_COUNTS = {"anthropic": _messages, "openai-chat": _chat, "openai-responses": _responses, "gemini": _contents}
_CONVERSATIONS = {
    "prose": [("system", _PROSE), ("user", _PROSE), ("assistant", _PROSE), ("user", "Go on.")],
    "code": [("system", "You write code."), ("user", _CODE), ("assistant", _CODE), ("user", _CODE)],
    "short turns": [("system", _PROSE), *[("user", "And now?"), ("assistant", "It is done.")] * 40, ("user", "Good.")],
    "other scripts": [("system", "Répondez en français."), ("user", "長い文章を書いてください。" * 60)],
}


@each_row("with_tools", [False, True])
@each_row("conversation", _CONVERSATIONS.values())
@each_row("count", _COUNTS.values())
def test_the_count_is_that_of_the_tokenizer(count: Any, conversation: list[tuple[str, str]], with_tools: bool) -> None:
    tools = _TOOLS if with_tools else []
    assert count(conversation, tools) == pytest.approx(_reference(conversation, tools), rel=_MOST_OFF)


@given(words=st.lists(st.text(min_size=1), min_size=1, max_size=6))
def test_all_apis_count_the_same_conversation_alike(words: list[str]) -> None:
    roles = ("user", "assistant")
    turns = [("system", "Be brief."), *((roles[at % 2], said) for at, said in enumerate(words))]
    counts = {count(turns, []) for count in _COUNTS.values()}
    assert max(counts) - min(counts) <= 4  # a system prompt may be a turn of its own
