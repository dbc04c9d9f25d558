"""The page about fields, made of the official packages' types and of what the wires really write."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec.structs import replace

from ferrule.wire import Definition, ModelRequest, ResponseFormat, ToolChoice, load_wire
from ferrule.wire.fields import LACKS, NEEDED, SHAPES, TWINS, camel
from ferrule.wire.schema import builtin
from tests.golden import Golden
from tests.wire.sdk_bodies import SCHEMA, kinds

WIRES = list(SHAPES)
DOCS = Path(__file__).parent.parent.parent / "docs"
READ = Definition("read", "", SCHEMA)
NONE = ModelRequest(model="m", turns=(), definitions=(READ,))
SETTINGS: dict[str, dict[str, Any]] = {
    "sampling temperature": {"temperature": 0.5},
    "`top_p`": {"top_p": 0.5},
    "`top_k`": {"top_k": 20},
    "seed": {"seed": 7},
    "frequency penalty": {"frequency_penalty": 0.5},
    "presence penalty": {"presence_penalty": 0.5},
    "number of answers": {"n": 2},
    "log probabilities": {"logprobs": True},
    "how many of them": {"top_logprobs": 3},
    "stop sequences": {"stop": ("END",)},
    "thinking: a budget or an effort": {"thinking_tokens": 4_000},
    "answer in JSON of a schema": {"format": ResponseFormat("schema", SCHEMA)},
    "answer in any JSON": {"format": ResponseFormat("json")},
    "verbosity": {"verbosity": "low"},
    "which tool to use": {"choice": ToolChoice("any")},
    "several calls at once or not": {"choice": ToolChoice("auto", parallel=False)},
    "user": {"user": "u-1"},
    "metadata": {"metadata": {"team": "a"}},
    "service tier `auto`": {"service_tier": "auto"},
    "service tier `standard`": {"service_tier": "standard"},
    "service tiers `flex`, `priority`": {"service_tier": "flex"},
    "cache key": {"cache_key": "k"},
    "keep the answer": {"store": True},
}
NOUNS = {
    "said file": "pictures and files that the model made",
    "address": "a document at an address",
    "title": "a document's title",
    "cache": "marks for the cache (written with `marks=`)",
    "detail": "how closely to look at a picture",
    "grammar": "the grammar of a free-text tool",
    "namespace": "the bundle that a called tool is of",
    "strict": "strict tools",
    "tool": "the tool's name with its result",
}


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _has_a_place(wire: str, name: str) -> bool:
    if name in NOUNS:
        return name not in LACKS[wire]
    (field, value), codec = next(iter(SETTINGS[name].items())), load_wire(wire)
    found = getattr(codec.asked_in(codec.asked_out(replace(NONE, **{field: value}))), field)
    return getattr(found, "parallel", None) is False if name == "several calls at once or not" else found == value


def _settings() -> list[str]:
    out = [_row(("", *WIRES)), _row(["---"] * (len(WIRES) + 1))]
    return out + [
        _row((NOUNS.get(name, name), *("yes" if _has_a_place(wire, name) else "" for wire in WIRES)))
        for name in (*SETTINGS, *NOUNS)
    ]


def _unheld(hint: Any, wire: str, shape: str) -> list[str]:
    """The fields of a type that no noun holds."""
    forms = (SHAPES[wire][name] for name in (shape, f"{shape} at") if name in SHAPES[wire])
    held = {name for form in forms if not isinstance(form, str) for name in form}
    spelt = camel if wire == "gemini" else str
    return sorted(name for name in map(spelt, get_type_hints(hint)) if name not in held)


def _kinds(union: Any, wire: str, shape: str) -> tuple[list[str], list[str]]:
    """The kinds of a union that no noun holds, and the fields of the others that none holds."""
    found = {name: one for name, one in kinds(union).items() if name}
    own = sorted(name for name in found if f"{shape}:{name}" not in SHAPES[wire])
    held = {name: one for name, one in found.items() if isinstance(SHAPES[wire].get(f"{shape}:{name}"), dict)}
    fields = sorted(
        {f"{name}.{field}" for name, one in held.items() for field in _unheld(one, wire, f"{shape}:{name}")}
    )
    return own, fields


def _own() -> dict[str, dict[str, list[str]]]:
    import anthropic.types.beta as beta
    import anthropic.types.beta.message_create_params as messages
    import openai.types.chat as chat
    import openai.types.chat.completion_create_params as completions
    import openai.types.responses as responses
    import openai.types.responses.response_create_params as created
    import openai.types.responses.response_input_item_param as items
    import openai.types.responses.tool_param as tools
    from google.genai import types

    block_kinds, block_fields = _kinds(beta.BetaContentBlockParam, "anthropic", "block")
    part_kinds, part_fields = _kinds(chat.ChatCompletionContentPartParam, "openai-chat", "part")
    item_kinds, item_fields = _kinds(items.ResponseInputItemParam, "openai-responses", "item")
    content_kinds, content_fields = _kinds(responses.ResponseInputContentParam, "openai-responses", "content")
    top = ("safety_settings", "labels", "cached_content", "store", "service_tier")
    return {
        "anthropic": {
            "body": _unheld(messages.MessageCreateParamsBase, "anthropic", "body"),
            "blocks": block_kinds,
            "fields of blocks": block_fields,
            "fields of tools": _unheld(beta.BetaToolParam, "anthropic", "tool"),
            "tools that run inside": sorted(
                name for name in kinds(beta.BetaToolUnionParam) if name != "custom" and builtin(name, "") is None
            ),
        },
        "openai-chat": {
            "body": _unheld(completions.CompletionCreateParamsBase, "openai-chat", "body"),
            "parts": part_kinds,
            "fields of parts": part_fields,
            "fields of messages": sorted(
                f"{role}.{name}"
                for role, one in (
                    ("user", chat.ChatCompletionUserMessageParam),
                    ("assistant", chat.ChatCompletionAssistantMessageParam),
                    ("developer", chat.ChatCompletionDeveloperMessageParam),
                )
                for name in _unheld(one, "openai-chat", f"message:{role}")
            ),
        },
        "openai-responses": {
            "body": _unheld(created.ResponseCreateParamsBase, "openai-responses", "body"),
            "items": item_kinds,
            "fields of items": item_fields,
            "parts": content_kinds,
            "fields of parts": content_fields,
            "tools that run inside": sorted(set(kinds(tools.ToolParam)) - {"function", "custom"}),
        },
        "gemini": {
            "body": sorted({camel(name) for name in top} - set(SHAPES["gemini"]["body"])),
            "generationConfig": _unheld(types.GenerationConfigDict, "gemini", "settings"),
            "parts": _unheld(types.PartDict, "gemini", "part"),
            "functions": _unheld(types.FunctionDeclarationDict, "gemini", "declaration"),
            "tools that run inside": _unheld(types.ToolDict, "gemini", "tool"),
        },
    }


def page() -> str:
    """The whole page."""
    out = [
        "# Fields of the four APIs",
        "",
        "Made by `pytest --golden=write tests/wire/test_fields.py` of the official packages' types and of what the",
        "wires write; do not edit it. [wire.md](wire.md) says what it means.",
        "",
        "## What has a place where",
        "",
        *_settings(),
        "",
        "What has no place is named in `translate_body(...).dropped`.",
        "",
        "## What is an API's own",
        "",
        "It goes back to that API as it came. Onto another one it is dropped, and named. Of a body, "
        + ", ".join(f"`{name}`" for name in sorted(TWINS))
        + " go from one OpenAI API to the other.",
        "",
        _row(("API", "where", "names")),
        _row(["---"] * 3),
    ]
    for wire, places in _own().items():
        for place, names in places.items():
            if names:
                out.append(_row((wire, place, ", ".join(f"`{name}`" for name in names))))
    out += [
        "",
        "## What is refused elsewhere",
        "",
        "A request that depends on one of these means nothing to another API. Neither do tools that run inside of one.",
        "",
        _row(("API", "fields")),
        _row(["---"] * 2),
        *(_row((wire, ", ".join(f"`{name}`" for name in names))) for wire, names in NEEDED.items()),
    ]
    return "\n".join(out)


@pytest.mark.usefixtures("packages")
def test_the_page_lists_what_the_packages_and_the_wires_have_today(request):
    Golden(write=request.config.getoption("--golden") == "write", folder=DOCS).check("wire-fields.md", page())
