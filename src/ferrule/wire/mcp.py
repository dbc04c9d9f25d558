"""MCP: definitions, calls and results of `tools/list` and `tools/call`, in both directions."""

import base64
from collections.abc import Iterable
from typing import Any

from ferrule.core.content import Document, Image, Picture, Text
from ferrule.core.services import McpContent, Mixed
from ferrule.wire import (
    Content,
    Definition,
    Foreign,
    Result,
    Use,
    as_list,
    as_object,
    flag_or,
    list_or,
    object_or,
    text_of,
    text_or,
)
from ferrule.wire.conversation import json_text, object_out, omission_note

NAME = "mcp"


def definitions_out(definitions: Iterable[Definition]) -> list[dict[str, Any]]:
    """The schemas in it are the definitions' own: whoever wants to change one copies it first."""
    return [_definition_out(one) for one in definitions]


def _definition_out(one: Definition) -> dict[str, Any]:
    schema = one.schema if one.schema.get("type") == "object" else {**one.schema, "type": "object"}
    out: dict[str, Any] = {"name": one.name, "description": one.words, "inputSchema": schema}
    return out if one.annotations is None else {**out, "annotations": dict(one.annotations)}


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    out = []
    for at, given in enumerate(as_list(definitions, "tools")):
        where = f"tools[{at}]"
        tool = as_object(given, where)
        schema = as_object(tool.get("inputSchema"), f"{where}.inputSchema")
        hints = None if tool.get("annotations") is None else object_or(tool, "annotations", where)
        out.append(
            Definition(text_of(tool, "name", where), text_or(tool, "description", where), schema, annotations=hints)
        )
    return tuple(out)


def call_in(params: Any, id_: str = "") -> Use:
    """The parameters of `tools/call`; `id_` is the message's, which stands outside of them."""
    given = as_object(params, "params")
    return Use(id_, text_of(given, "name", "params"), object_or(given, "arguments", "params"))


def call_out(use: Use) -> dict[str, Any]:
    return {"name": use.name, "arguments": object_out(use)}


def result_out(result: Result) -> dict[str, Any]:
    return {"content": [_content_out(part) for part in result.parts], "isError": result.failed}


def _content_out(part: Content) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        if not part.url:
            return {"type": "image", "data": part.data, "mimeType": part.media_type}
        return {"type": "resource_link", "name": "image", "uri": part.url, "mimeType": part.media_type or "image/*"}
    if isinstance(part, Document):
        return _document_out(part)
    return part.block if part.wire == NAME else {"type": "text", "text": omission_note(part)}


def _document_out(document: Document) -> dict[str, Any]:
    """A file as a resource: its address, its words or its bytes."""
    name = document.title or "document"
    if document.url:
        return {"type": "resource_link", "name": name, "uri": document.url, "mimeType": document.media_type}
    held = {"text": document.text} if document.text else {"blob": document.data}
    return {"type": "resource", "resource": {"uri": f"document:{name}", "mimeType": document.media_type, **held}}


def blocks_of(outcome: Any) -> tuple[dict[str, Any], ...]:
    """What a tool from elsewhere answered, block by block; none where text and pictures say all of it."""
    if not isinstance(outcome, Mixed) or not any(isinstance(part, McpContent) for part in outcome.parts):
        return ()
    return tuple(_block(part) for part in outcome.parts)


def _block(part: str | Picture | McpContent) -> dict[str, Any]:
    if isinstance(part, McpContent):
        return part.block
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image", "data": base64.b64encode(part.data).decode(), "mimeType": part.media_type}


def result_in(result: Any, id_: str = "", name: str = "") -> Result:
    """What `tools/call` came back with; `id_` and `name` are the call's. Structure without content is told as JSON."""
    given = as_object(result, "result")
    content = list_or(given, "content", "result")
    parts = tuple(_content_in(one, f"content[{at}]") for at, one in enumerate(content))
    structured = given.get("structuredContent")
    if not parts and structured is not None:
        parts = (Text(json_text(structured)),)
    return Result(id_, parts, bool(flag_or(given, "isError", "result", otherwise=False)), name)


def _content_in(given: Any, where: str) -> Text | Image | Foreign:
    block = as_object(given, where)
    kind = text_of(block, "type", where)
    if kind == "text":
        return Text(text_of(block, "text", where))
    if kind == "image":
        return Image(text_of(block, "mimeType", where), text_of(block, "data", where))
    if kind == "resource_link" and text_or(block, "mimeType", where).startswith("image/"):
        return Image(text_or(block, "mimeType", where).replace("image/*", ""), "", text_of(block, "uri", where))
    if kind == "resource":
        return _resource_in(block, where)
    return Foreign(NAME, kind, block)


def _resource_in(block: dict[str, Any], where: str) -> Text | Image | Foreign:
    """What is embedded is text or bytes; of bytes, only pictures can be shown."""
    held, inside = as_object(block.get("resource"), f"{where}.resource"), f"{where}.resource"
    if held.get("text") is not None:
        return Text(text_of(held, "text", inside))
    media_type = text_or(held, "mimeType", inside)
    if media_type.startswith("image/"):
        return Image(media_type, text_of(held, "blob", inside))
    return Foreign(NAME, "resource", block)
