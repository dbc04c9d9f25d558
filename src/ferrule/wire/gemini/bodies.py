"""Gemini: definitions, choices, whole bodies and whole answers, in both directions.

Schemas go out as `parametersJsonSchema`, which takes JSON Schema as it is. The older `parameters` takes a part of
OpenAPI; `subset=True` writes that, for backends that know nothing else.
"""

from collections.abc import Iterable
from typing import Any, Literal

from ferrule.wire.cleanup import LIMIT_DEPTH
from ferrule.wire.content import json_text, reason_of
from ferrule.wire.fields import bare, body_fields, camel, known, others, own, present, refuse_hosted, tier_in, tier_out
from ferrule.wire.gemini.schema import subset as written_in_subset
from ferrule.wire.gemini.turns import (
    NAME,
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
    flag_or,
    number_or_none,
    refuse_failure,
    texts_of,
    tokens,
)
from ferrule.wire.thinking import budget, is_own, own_word
from ferrule.wire.turn import Asked, Choice, Definition, Extra, Format, Reason, Said, Thinking, Turn, Usage, Use

_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE", "tool": "ANY"}
_KINDS: dict[str, Literal["auto", "any", "none"]] = {
    "": "auto",
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "VALIDATED": "auto",
    "ANY": "any",
    "NONE": "none",
}
_BODY = known(NAME, "body")
_SETTINGS = known(NAME, "settings")
_THINKING = known(NAME, "thinking")
_DECLARATION = known(NAME, "declaration")
_HOSTED = frozenset(
    (
        "retrieval",
        "computerUse",
        "fileSearch",
        "googleSearch",
        "googleMaps",
        "codeExecution",
        "enterpriseWebSearch",
        "googleSearchRetrieval",
        "parallelAiSearch",
        "urlContext",
        "mcpServers",
        "exaAiSearch",
    )
)
"""Tools that run inside of the API."""
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
    """One tool that declares all functions; none where there are none. What runs inside of the API stands behind."""
    declared, hosted = [], []
    for at, one in enumerate(definitions):
        if (kept := own(one, NAME)) is None:
            refuse_hosted(one, at)
            declared.append(_declared(one, subset=subset))
        elif one.hosted:
            hosted.append(kept)
        else:
            declared.append(kept)
    return ([{"functionDeclarations": declared}] if declared else []) + hosted


def _declared(one: Definition, *, subset: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": one.name, "description": one.words}
    if not subset:
        whole = one.schema if one.schema.get("type") == "object" else {**one.schema, "type": "object"}
        return {**out, "parametersJsonSchema": whole}
    # An object without members is refused; a function without parameters says nothing of them.
    written = written_in_subset({**one.schema, "type": "object"})
    return {**out, "parameters": written} if written.get("properties") else out


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    """A tool that runs inside of the API is read too, but goes back only there."""
    out: list[Definition] = []
    for at, one in enumerate(as_list(definitions, "tools")):
        tool, where = as_object(one, f"tools[{at}]"), f"tools[{at}]"
        declared = pick(tool, "functionDeclarations")
        hosted = {camel(key): value for key, value in tool.items() if value is not None}
        hosted.pop("functionDeclarations", None)
        if declared is None and not hosted.keys() & _HOSTED:
            raise WireError(f"{where} declares no functions, and names nothing that runs inside of this API.")
        for number, function in enumerate(as_list(declared or (), f"{where}.functionDeclarations")):
            inside = f"{where}.functionDeclarations[{number}]"
            out.append(_definition_in(as_object(function, inside), inside))
        out += (Definition(name, "", {}, extra=Extra(NAME, {name: hosted[name]}), hosted=True) for name in hosted)
    return tuple(out)


def _definition_in(function: dict[str, Any], where: str) -> Definition:
    schema = pick_object(function, "parametersJsonSchema", where)
    written = pick_object(function, "parameters", where)
    if not schema:
        schema = _plain(written, 0) or {"type": "object", "properties": {}}
    # The older form of a schema goes back as it came.
    more = others({camel(key): value for key, value in function.items()}, _DECLARATION)
    extra = Extra(NAME, function) if more or written else None
    name = as_text(function.get("name"), f"{where}.name")
    return Definition(name, pick_text(function, "description", where), schema, extra=extra)


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
    if (kept := own(choice, NAME)) is not None:
        return kept
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
    found = Choice("tool", str(names[0])) if kind == "any" and len(names) == 1 else Choice(kind)
    # What is said besides, and a choice among several, go back as they came.
    return found if choice_out(found) == _said(choice) else Choice(found.kind, found.name, extra=Extra(NAME, choice))


def _said(value: Any) -> Any:
    """An object without the fields that say nothing, under the names of the API's JSON."""
    if not isinstance(value, dict):
        return value
    return {camel(key): _said(member) for key, member in value.items() if member is not None}


def asked_out(asked: Asked, *, subset: bool = False) -> dict[str, Any]:
    """A body for `generateContent`. The model is also part of the address, and streaming is only that."""
    more = body_fields(asked, NAME)
    out: dict[str, Any] = {"model": asked.model, **turns_out(asked.turns)}
    if asked.definitions:
        out["tools"] = definitions_out(asked.definitions, subset=subset)
        if asked.choice is not None:
            out["toolConfig"] = choice_out(asked.choice)
    if settings := _settings_out(asked, more.get("generationConfig") or {}):
        out["generationConfig"] = settings
    out |= present(serviceTier=tier_out(asked, NAME), store=asked.store)
    return out | {name: value for name, value in more.items() if name != "generationConfig"}


def _settings_out(asked: Asked, more: dict[str, Any]) -> dict[str, Any]:
    out = present(
        maxOutputTokens=asked.max_tokens,
        temperature=asked.temperature,
        topP=asked.top_p,
        topK=asked.top_k,
        stopSequences=list(asked.stop) or None,
        candidateCount=asked.n,
        seed=asked.seed,
        frequencyPenalty=asked.frequency_penalty,
        presencePenalty=asked.presence_penalty,
        responseLogprobs=asked.logprobs,
        logprobs=asked.top_logprobs,
    )
    if asked.format is not None and not _FORMAT & more.keys():
        out["responseMimeType"] = "text/plain" if asked.format.kind == "text" else "application/json"
        out |= present(responseJsonSchema=asked.format.schema)
    own_thinking = more.get("thinkingConfig")
    if own_thinking is not None and _budget_in(own_thinking)[0] == asked.thinking_tokens:
        out["thinkingConfig"] = own_thinking
    elif asked.thinking_tokens is not None:
        out["thinkingConfig"] = _thinking_out(asked.thinking_tokens)
    return out | {name: value for name, value in more.items() if name != "thinkingConfig"}


_FORMAT = frozenset(("responseMimeType", "responseSchema", "responseJsonSchema"))


def _thinking_out(tokens: int) -> dict[str, Any]:
    return {"thinkingBudget": tokens, "includeThoughts": tokens > 0}


def _budget_in(thinking: dict[str, Any]) -> tuple[int | None, str]:
    """The budget and the word that a caller has said: newer models take the word."""
    level = pick_text(thinking, "thinkingLevel", "thinkingConfig").lower()
    said = {"thinkingBudget": pick(thinking, "thinkingBudget")}
    tokens = count_or_none(said, "thinkingBudget", "thinkingConfig")
    return (budget(level), level) if tokens is None and level else (tokens, "")


def _format_in(settings: dict[str, Any]) -> Format | None:
    kind = pick_text(settings, "responseMimeType", "generationConfig")
    schema = pick_object(settings, "responseJsonSchema", "generationConfig")
    schema = schema or _plain(pick_object(settings, "responseSchema", "generationConfig"), 0)
    if schema and kind in {"", "application/json"}:
        return Format("schema", schema)
    return {"application/json": Format("json"), "text/plain": Format("text")}.get(kind)


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    settings = {camel(key): value for key, value in pick_object(given, "generationConfig", "body").items()}
    thinking = pick_object(settings, "thinkingConfig", "generationConfig")
    tokens_, level = _budget_in(thinking)
    choice, config = choice_in(pick(given, "toolConfig")), pick(given, "toolConfig")
    where = "generationConfig"
    extra = _extra_in({camel(key): value for key, value in given.items()}, settings, thinking)
    if config and choice is None:
        extra["toolConfig"] = config
    return Asked(
        model=pick_text(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(given.get("tools") or ()),
        choice=choice,
        max_tokens=count_or_none(settings, "maxOutputTokens", where),
        thinking_tokens=tokens_,
        effort=own_word(level),
        temperature=number_or_none(settings, "temperature", where),
        top_p=number_or_none(settings, "topP", where),
        top_k=_whole(number_or_none(settings, "topK", where)),
        stop=texts_of(settings, "stopSequences", where),
        n=count_or_none(settings, "candidateCount", where),
        seed=count_or_none(settings, "seed", where),
        frequency_penalty=number_or_none(settings, "frequencyPenalty", where),
        presence_penalty=number_or_none(settings, "presencePenalty", where),
        logprobs=flag_or(settings, "responseLogprobs", where, otherwise=None),
        top_logprobs=count_or_none(settings, "logprobs", where),
        format=_format_in(settings),
        service_tier=tier_in(pick_text(given, "serviceTier", "body").lower(), NAME),
        store=flag_or(given, "store", "body", otherwise=None),
        extra=Extra(NAME, extra) if extra else None,
    )


def _whole(number: float | None) -> int | None:
    """The API's own libraries write a count as a number with a point."""
    return None if number is None else int(number)


def _extra_in(body: dict[str, Any], settings: dict[str, Any], thinking: dict[str, Any]) -> dict[str, Any]:
    """What no noun holds, and what nouns hold only the meaning of."""
    more, rest = others(body, _BODY), others(settings, _SETTINGS)
    tier = pick_text(body, "serviceTier", "body")
    if tier and tier_in(tier, NAME) != tier:
        more["serviceTier"] = tier
    budgeted, level = _budget_in(thinking)
    if thinking and (level or budgeted is None or thinking != _thinking_out(budgeted)):
        rest["thinkingConfig"] = thinking
    form = _format_in(settings)
    if (settings.get("responseSchema") is not None) or (form is None and settings.get("responseMimeType")):
        rest |= {name: settings[name] for name in _FORMAT & settings.keys()}
    if rest:
        more["generationConfig"] = rest
    return more


def said_in(answer: Any) -> Said:
    """Calls without ids get ones made from the answer's own id, or from what it says where it has none."""
    given = as_object(answer, "answer")
    refuse_failure(given)
    candidates = as_list(given.get("candidates") or (), "candidates")
    if not candidates and not pick(given, "promptFeedback"):
        raise WireError("The answer must have candidates or promptFeedback.")
    first = as_object(candidates[0], "candidates[0]") if candidates else {}
    content = pick_object(first, "content", "candidates[0]")
    id_ = pick_text(given, "responseId", "answer")
    parts = bare(parts_in(content, "candidates[0].content", seed=id_ or json_text(content)))
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
    # Another API's thinking may be shown; its signature is nothing that a client here could bring back.
    parts = tuple(
        Thinking(part.text, wire=NAME) if isinstance(part, Thinking) and not is_own(part, NAME) else part
        for part in said.parts
    )
    content = {"role": "model", "parts": list(parts_out(Turn("assistant", parts), {}))}
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
    counted = {camel(key): value for key, value in usage.items()}
    return Usage(
        tokens(counted, "promptTokenCount") + tokens(counted, "toolUsePromptTokenCount"),
        tokens(counted, "candidatesTokenCount") + tokens(counted, "thoughtsTokenCount"),
        tokens(counted, "cachedContentTokenCount"),
    )
