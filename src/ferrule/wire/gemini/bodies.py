"""Gemini: definitions, choices, whole bodies and whole answers, in both directions.

Schemas go out as `parametersJsonSchema`, which takes JSON Schema as it is. The older `parameters` takes a part of
OpenAPI; `subset=True` writes that, for backends that know nothing else.
"""

from collections.abc import Iterable
from typing import Any, Literal

from ferrule.wire.cleanup import LIMIT_DEPTH
from ferrule.wire.content import json_text, reason_of
from ferrule.wire.gemini.schema import subset as written_in_subset
from ferrule.wire.gemini.turns import (
    parts_in,
    parts_out,
    pick,
    pick_object,
    pick_text,
    turns_in,
    turns_out,
)
from ferrule.wire.shape import (
    WireError,
    as_list,
    as_object,
    as_text,
    count_or_none,
    number_or_none,
    refuse_failure,
    texts_of,
    tokens,
)
from ferrule.wire.turn import Asked, Choice, Definition, Reason, Said, Turn, Usage, Use

_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE", "tool": "ANY"}
_KINDS: dict[str, Literal["auto", "any", "none"]] = {
    "": "auto",
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "VALIDATED": "auto",
    "ANY": "any",
    "NONE": "none",
}
_OWN = {"nullable", "propertyOrdering", "property_ordering", "any_of", "example"}
"""Words of Gemini's own schema that JSON Schema does not have."""
_REFUSED = {
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
}
_STOPS: dict[Reason, str] = {
    "end": "STOP",
    "tools": "STOP",
    "length": "MAX_TOKENS",
    "refused": "SAFETY",
    "stopped": "STOP",
}


def definitions_out(definitions: Iterable[Definition], *, subset: bool = False) -> list[dict[str, Any]]:
    """One tool that declares all functions; none where there are none."""
    declared = [_declared(one, subset=subset) for one in definitions]
    return [{"functionDeclarations": declared}] if declared else []


def _declared(one: Definition, *, subset: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": one.name, "description": one.words}
    if not subset:
        whole = one.schema if one.schema.get("type") == "object" else {**one.schema, "type": "object"}
        return {**out, "parametersJsonSchema": whole}
    # An object without members is refused; a function without parameters says nothing of them.
    written = written_in_subset({**one.schema, "type": "object"})
    return {**out, "parameters": written} if written.get("properties") else out


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    out: list[Definition] = []
    for at, one in enumerate(as_list(definitions, "tools")):
        tool, where = as_object(one, f"tools[{at}]"), f"tools[{at}]"
        declared = pick(tool, "functionDeclarations")
        if declared is None:
            raise WireError(f"{where} declares no functions: what runs inside of its own API cannot be carried over.")
        for number, function in enumerate(as_list(declared, f"{where}.functionDeclarations")):
            inside = f"{where}.functionDeclarations[{number}]"
            out.append(_definition_in(as_object(function, inside), inside))
    return tuple(out)


def _definition_in(function: dict[str, Any], where: str) -> Definition:
    schema = pick_object(function, "parametersJsonSchema", where)
    if not schema:
        schema = _plain(pick_object(function, "parameters", where), 0) or {"type": "object", "properties": {}}
    return Definition(as_text(function.get("name"), f"{where}.name"), pick_text(function, "description", where), schema)


def _plain(schema: Any, depth: int) -> Any:
    """Gemini's own schema as JSON Schema: types in small letters, null as a type, no word on order."""
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    if not isinstance(schema, dict):
        return schema
    out = {key: value for key, value in schema.items() if key not in _OWN and value is not None}
    if isinstance(kind := schema.get("type"), str):
        out["type"] = [kind.lower(), "null"] if schema.get("nullable") else kind.lower()
    if isinstance(properties := schema.get("properties"), dict):
        out["properties"] = {name: _plain(about, depth + 1) for name, about in properties.items()}
    if "items" in out:
        out["items"] = _plain(out["items"], depth + 1)
    branches = pick(schema, "anyOf")
    if isinstance(branches, list):
        out["anyOf"] = [_plain(one, depth + 1) for one in branches]
    return out


def choice_out(choice: Choice) -> dict[str, Any]:
    """The whole `toolConfig`. Whether several may be used at once cannot be said here."""
    config: dict[str, Any] = {"mode": _MODES[choice.kind]}
    if choice.kind == "tool":
        config["allowedFunctionNames"] = [choice.name]
    return {"functionCallingConfig": config}


def choice_in(choice: Any) -> Choice | None:
    if choice is None:
        return None
    config = pick(as_object(choice, "toolConfig"), "functionCallingConfig")
    if config is None:
        return None
    given, where = as_object(config, "toolConfig.functionCallingConfig"), "toolConfig.functionCallingConfig"
    kind = _KINDS.get(pick_text(given, "mode", where))
    if kind is None:
        raise WireError(f"{where}.mode must be AUTO, ANY, NONE or VALIDATED, and is {given['mode']!r}.")
    names = as_list(pick(given, "allowedFunctionNames") or (), f"{where}.allowedFunctionNames")
    if kind == "any" and len(names) == 1:
        return Choice("tool", str(names[0]))
    return Choice(kind)


def asked_out(asked: Asked, *, subset: bool = False) -> dict[str, Any]:
    """A body for `generateContent`. The model is also part of the address, and streaming is only that."""
    out: dict[str, Any] = {"model": asked.model, **turns_out(asked.turns)}
    if asked.definitions:
        out["tools"] = definitions_out(asked.definitions, subset=subset)
        if asked.choice is not None:
            out["toolConfig"] = choice_out(asked.choice)
    settings: dict[str, Any] = {}
    if asked.max_tokens is not None:
        settings["maxOutputTokens"] = asked.max_tokens
    if asked.temperature is not None:
        settings["temperature"] = asked.temperature
    if asked.stop:
        settings["stopSequences"] = list(asked.stop)
    if asked.thinking_tokens is not None:
        settings["thinkingConfig"] = {
            "thinkingBudget": asked.thinking_tokens,
            "includeThoughts": asked.thinking_tokens > 0,
        }
    if settings:
        out["generationConfig"] = settings
    return out


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    settings = {_camel(key): value for key, value in pick_object(given, "generationConfig", "body").items()}
    thinking = pick_object(settings, "thinkingConfig", "generationConfig")
    return Asked(
        model=pick_text(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(given.get("tools") or ()),
        choice=choice_in(pick(given, "toolConfig")),
        max_tokens=count_or_none(settings, "maxOutputTokens", "generationConfig"),
        thinking_tokens=count_or_none(
            {"thinkingBudget": pick(thinking, "thinkingBudget")}, "thinkingBudget", "thinkingConfig"
        ),
        temperature=number_or_none(settings, "temperature", "generationConfig"),
        stop=texts_of(settings, "stopSequences", "generationConfig"),
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def said_in(answer: Any) -> Said:
    """Calls without ids get ones made from the answer's own id, or from what it says where it has none."""
    given = as_object(answer, "answer")
    refuse_failure(given)
    candidates = as_list(given.get("candidates") or (), "candidates")
    first = as_object(candidates[0], "candidates[0]") if candidates else {}
    content = pick_object(first, "content", "candidates[0]")
    id_ = pick_text(given, "responseId", "answer")
    parts = parts_in(content, "candidates[0].content", seed=id_ or json_text(content))
    return Said(
        id=id_,
        model=pick_text(given, "modelVersion", "answer"),
        parts=parts,
        reason=reason_of(_reason_in(given, first), parts),
        usage=_usage_in(pick_object(given, "usageMetadata", "answer")),
    )


def _reason_in(answer: dict[str, Any], candidate: dict[str, Any]) -> Reason:
    if pick(pick_object(answer, "promptFeedback", "answer"), "blockReason") and not candidate:
        return "refused"
    why = pick_text(candidate, "finishReason", "candidates[0]")
    if why in _REFUSED:
        return "refused"
    return "length" if why == "MAX_TOKENS" else "end"


def said_out(said: Said) -> dict[str, Any]:
    """An answer for a client of this API."""
    content = {"role": "model", "parts": list(parts_out(Turn("assistant", said.parts), {}))}
    return {
        "responseId": said.id,
        "modelVersion": said.model,
        "candidates": [{"index": 0, "content": content, "finishReason": _STOPS[said.reason]}],
        "usageMetadata": {
            "promptTokenCount": said.usage.input,
            "candidatesTokenCount": said.usage.output,
            "cachedContentTokenCount": said.usage.cache_read,
            "totalTokenCount": said.usage.input + said.usage.output,
        },
    }


def calls_in(answer: Any) -> tuple[Use, ...]:
    return tuple(part for part in said_in(answer).parts if isinstance(part, Use))


def _usage_in(usage: dict[str, Any]) -> Usage:
    counted = {_camel(key): value for key, value in usage.items()}
    return Usage(
        tokens(counted, "promptTokenCount") + tokens(counted, "toolUsePromptTokenCount"),
        tokens(counted, "candidatesTokenCount") + tokens(counted, "thoughtsTokenCount"),
        tokens(counted, "cachedContentTokenCount"),
    )
