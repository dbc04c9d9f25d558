"""A request in the words of each API, as a client program would write it."""

import json
from collections.abc import Callable
from typing import Any

from bench.proxy.talk import IMAGE_URL, PDF, Ask, Part, Turn


def body(ask: Ask, api: str, name: str, *, stream: bool) -> dict[str, Any]:
    """The body that asks the model called `name`."""
    made = _BODIES[api](ask)
    if api == "gemini":
        return {**made, **ask.own}
    return {"model": name, **made, **({"stream": True} if stream else {}), **ask.own}


def _some(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _anthropic(ask: Ask) -> dict[str, Any]:
    choice: dict[str, Any] | None = None
    if ask.choice or ask.parallel is not None:
        kind = ask.choice or "auto"
        choice = {"type": kind} if kind in {"auto", "any", "none"} else {"type": "tool", "name": kind}
        if ask.parallel is not None:
            choice["disable_parallel_tool_use"] = not ask.parallel
    tools = [{"name": one.name, "description": one.words, "input_schema": one.schema} for one in ask.tools]
    thinking = None
    if ask.thinking is not None:
        thinking = {"type": "enabled", "budget_tokens": ask.thinking} if ask.thinking else {"type": "disabled"}
    return _some(
        max_tokens=ask.max_tokens or 1000,
        system=ask.system or None,
        messages=[{"role": turn.role, "content": [_anthropic_part(one) for one in turn.parts]} for turn in ask.turns],
        tools=tools or None,
        tool_choice=choice,
        temperature=ask.temperature,
        top_p=ask.top_p,
        top_k=ask.top_k,
        stop_sequences=list(ask.stop) or None,
        thinking=thinking,
        output_config={"format": {"type": "json_schema", "schema": ask.schema}} if ask.schema else None,
    )


def _anthropic_part(part: Part) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    if part.kind == "image":
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": part.text}}
    if part.kind == "image-url":
        return {"type": "image", "source": {"type": "url", "url": IMAGE_URL}}
    if part.kind == "pdf":
        source = {"type": "base64", "media_type": "application/pdf", "data": PDF}
        return {"type": "document", "source": source, "title": "paper.pdf"}
    if part.kind == "document":
        source = {"type": "text", "media_type": "text/plain", "data": part.text}
        return {"type": "document", "source": source, "title": "notes.txt"}
    if part.kind == "call":
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.value}
    failed = {"is_error": True} if part.failed else {}
    content = [_anthropic_part(one) for one in part.parts]
    return {"type": "tool_result", "tool_use_id": part.id, "content": content, **failed}


def _schema_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "answer", "schema": schema, "strict": True}


def _chat(ask: Ask) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": ask.system}] if ask.system else []
    for turn in ask.turns:
        messages += _chat_messages(turn)
    choice: Any = {"auto": "auto", "any": "required", "none": "none", "": None}.get(ask.choice, ask.choice)
    if choice not in {"auto", "required", "none", None}:
        choice = {"type": "function", "function": {"name": choice}}
    tools = [
        {"type": "function", "function": {"name": one.name, "description": one.words, "parameters": one.schema}}
        for one in ask.tools
    ]
    return _some(
        messages=messages,
        max_completion_tokens=ask.max_tokens,
        tools=tools or None,
        tool_choice=choice,
        parallel_tool_calls=ask.parallel,
        temperature=ask.temperature,
        top_p=ask.top_p,
        stop=list(ask.stop) or None,
        seed=ask.seed,
        reasoning_effort=_effort(ask.thinking),
        response_format={"type": "json_schema", "json_schema": _schema_format(ask.schema)} if ask.schema else None,
    )


def _effort(tokens: int | None) -> str | None:
    if tokens is None:
        return None
    return "high" if tokens >= 32_000 else "medium" if tokens >= 16_000 else "low"


def _chat_messages(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "system":
        return [{"role": "system", "content": "".join(part.text for part in turn.parts)}]
    if turn.role == "assistant":
        said = "".join(part.text for part in turn.parts if part.kind == "text")
        made = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.value)}}
            for one in turn.parts
            if one.kind == "call"
        ]
        return [{"role": "assistant", "content": said or None, **({"tool_calls": made} if made else {})}]
    out: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for part in turn.parts:
        if part.kind == "result":
            # Programs that speak this API send a tool's pictures as the user's own.
            content = [{"type": "text", "text": one.text} for one in part.parts if one.kind == "text"]
            out.append({"role": "tool", "tool_call_id": part.id, "content": content})
            rest += [_chat_part(one) for one in part.parts if one.kind != "text"]
        else:
            rest.append(_chat_part(part))
    return [*out, {"role": "user", "content": rest}] if rest else out


def _chat_part(part: Part) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{part.text}"}}
    if part.kind == "image-url":
        return {"type": "image_url", "image_url": {"url": IMAGE_URL}}
    data = f"data:application/pdf;base64,{PDF}"
    return {"type": "file", "file": {"filename": "paper.pdf", "file_data": data}}


def _responses(ask: Ask) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for turn in ask.turns:
        items += _responses_items(turn)
    choice: Any = {"auto": "auto", "any": "required", "none": "none", "": None}.get(ask.choice, ask.choice)
    if choice not in {"auto", "required", "none", None}:
        choice = {"type": "function", "name": choice}
    tools = [
        {
            "type": "function",
            "name": one.name,
            "description": one.words,
            "parameters": one.schema,
            "strict": False,
        }
        for one in ask.tools
    ]
    return _some(
        input=items,
        instructions=ask.system or None,
        max_output_tokens=ask.max_tokens,
        tools=tools or None,
        tool_choice=choice,
        parallel_tool_calls=ask.parallel,
        temperature=ask.temperature,
        top_p=ask.top_p,
        store=False,
        reasoning={"effort": _effort(ask.thinking)} if ask.thinking is not None else None,
        text={"format": {"type": "json_schema", **_schema_format(ask.schema)}} if ask.schema else None,
    )


def _responses_items(turn: Turn) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []

    def flush() -> None:
        if content:
            out.append({"type": "message", "role": turn.role, "content": list(content)})
            content.clear()

    for part in turn.parts:
        if part.kind == "call":
            flush()
            values = {"call_id": part.id, "name": part.name, "arguments": json.dumps(part.value)}
            out.append({"type": "function_call", **values})
        elif part.kind == "result":
            flush()
            plain = all(one.kind == "text" for one in part.parts)
            output = (
                "".join(one.text for one in part.parts)
                if plain
                else [_responses_part(one, "user") for one in part.parts]
            )
            out.append({"type": "function_call_output", "call_id": part.id, "output": output})
        else:
            content.append(_responses_part(part, turn.role))
    flush()
    return out


def _responses_part(part: Part, role: str) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}
    if part.kind == "image":
        return {"type": "input_image", "image_url": f"data:image/png;base64,{part.text}", "detail": "auto"}
    if part.kind == "image-url":
        return {"type": "input_image", "image_url": IMAGE_URL, "detail": "auto"}
    data = f"data:application/pdf;base64,{PDF}"
    return {"type": "input_file", "filename": "paper.pdf", "file_data": data}


def _gemini(ask: Ask) -> dict[str, Any]:
    config = _some(
        maxOutputTokens=ask.max_tokens,
        temperature=ask.temperature,
        topP=ask.top_p,
        topK=ask.top_k,
        stopSequences=list(ask.stop) or None,
        seed=ask.seed,
        responseMimeType="application/json" if ask.schema else None,
        responseJsonSchema=ask.schema,
        thinkingConfig={"thinkingBudget": ask.thinking, "includeThoughts": bool(ask.thinking)}
        if ask.thinking is not None
        else None,
    )
    functions = [{"name": one.name, "description": one.words, "parametersJsonSchema": one.schema} for one in ask.tools]
    choice: dict[str, Any] | None = None
    if ask.choice:
        mode = {"auto": "AUTO", "any": "ANY", "none": "NONE"}.get(ask.choice)
        choice = {"mode": mode} if mode else {"mode": "ANY", "allowedFunctionNames": [ask.choice]}
    roles = {"user": "user", "assistant": "model"}
    return _some(
        contents=[
            {"role": roles[turn.role], "parts": [part for one in turn.parts for part in _gemini_parts(one)]}
            for turn in ask.turns
        ],
        systemInstruction={"parts": [{"text": ask.system}]} if ask.system else None,
        tools=[{"functionDeclarations": functions}] if functions else None,
        toolConfig={"functionCallingConfig": choice} if choice else None,
        generationConfig=config,
    )


def _gemini_parts(part: Part) -> list[dict[str, Any]]:
    if part.kind == "text":
        return [{"text": part.text}]
    if part.kind == "image":
        return [{"inlineData": {"mimeType": "image/png", "data": part.text}}]
    if part.kind == "image-url":
        return [{"fileData": {"mimeType": "image/png", "fileUri": IMAGE_URL}}]
    if part.kind == "pdf":
        return [{"inlineData": {"mimeType": "application/pdf", "data": PDF}}]
    if part.kind == "call":
        return [{"functionCall": {"id": part.id, "name": part.name, "args": part.value}}]
    said = "".join(one.text for one in part.parts if one.kind == "text")
    response = {"error": said} if part.failed else {"output": said}
    made: dict[str, Any] = {"id": part.id, "name": part.name, "response": response}
    pictures = [one for one in part.parts if one.kind == "image"]
    if pictures:
        made["parts"] = [{"inlineData": {"mimeType": "image/png", "data": one.text}} for one in pictures]
    return [{"functionResponse": made}]


_BODIES: dict[str, Callable[[Ask], dict[str, Any]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
