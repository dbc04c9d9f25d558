"""Tools that a served engine is given in tests: the fixtures of the conformance suite, and some that misbehave."""

import asyncio
import base64
import os
import sys
from typing import Any

from ferrule import Access, ToolFailure, ToolsChanged, tool
from ferrule.core.content import Picture
from ferrule.core.services import McpContent, Mixed
from ferrule.core.tool import Args, Context, Tool

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
SOUND = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0").decode()
SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool(touches=[], name="test_simple_text", inline=True)
async def simple_text() -> str:
    """Says something simple."""
    return "This is a simple text response for testing."


@tool(touches=[], name="test_error_handling", inline=True)
async def error_handling() -> str:
    """Always fails."""
    raise ToolFailure("This tool intentionally returns an error for testing")


@tool(touches=[], name="test_tool_with_progress", inline=True)
async def with_progress(ctx: Context) -> str:
    """Says three times how far it is."""
    for part in ("0/100", "50/100", "100/100"):
        ctx.progress(part)
        await asyncio.sleep(0)
    return "Done."


async def ask(message: str = "") -> str:
    """Touches anything, so that its user is asked."""
    return f"Allowed: {message}"


ASKING = tuple(
    tool(name=name, inline=True)(ask)
    for name in (
        "test_elicitation",
        "test_streaming_elicitation",
        "test_input_required_result_elicitation",
        "test_input_required_result_request_state",
        "test_input_required_result_tampered_state",
    )
)


@tool(touches=lambda path: [Access.read(path)], name="wait_here", inline=True)
async def wait_here(path: str, ctx: Context) -> str:
    """Waits until it is cancelled, and leaves a file then."""
    ctx.progress("waiting")
    try:
        await asyncio.Event().wait()
    finally:
        with open(ctx.path(path), "w", encoding="utf-8") as file:
            file.write("cancelled")
    return "never"


@tool(touches=[], inline=True)
async def prints() -> str:
    """Prints to where it should not, and reads from there."""
    print("on standard output", flush=True)
    os.write(1, b"and once more\n")
    return f"printed, and read: {sys.stdin.read()!r}"


@tool(touches=[], name="test_trigger_tool_change", inline=True)
async def change_tools(ctx: Context) -> str:
    """Says in the engine's place that there are other tools now."""
    ctx._emit(ToolsChanged(id="", name="", at=0.0))  # type: ignore[attr-defined]
    return "Changed."


class Answering(Tool[Args, Any]):
    """A tool that always answers the same."""

    args = Args

    def __init__(self, name: str, outcome: Any, **more: Any) -> None:
        self.name = name
        self.words = f"Answers as {name} does."
        self._outcome = outcome
        for key, value in {"schema": {"type": "object", "properties": {}}, **more}.items():
            setattr(self, key, value)

    def access(self, args: Args, ctx: Context) -> tuple[Access, ...]:
        return ()

    async def run(self, args: Args, ctx: Context) -> Any:
        return self._outcome


def resource(uri: str, media_type: str, text: str) -> McpContent:
    inside = {"uri": uri, "mimeType": media_type, "text": text}
    return McpContent("resource", {"type": "resource", "resource": inside}, f"[{uri}]\n{text}")


PICTURE = Picture("pixel.png", "image/png", PIXEL)
AUDIO = McpContent("audio", {"type": "audio", "data": SOUND, "mimeType": "audio/wav"}, "[sound, audio/wav]")
TOOLS = (
    simple_text,
    error_handling,
    with_progress,
    *ASKING,
    wait_here,
    prints,
    change_tools,
    Answering("test_image_content", Mixed((PICTURE,))),
    Answering("test_audio_content", Mixed((AUDIO,))),
    Answering(
        "test_embedded_resource",
        Mixed((resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),)),
    ),
    Answering(
        "test_multiple_content_types",
        Mixed(
            (
                "Multiple content types test:",
                PICTURE,
                resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
            )
        ),
    ),
    Answering("test_logging_tool", "Nothing was logged."),
    Answering("test_reconnection", "The result, after all."),
    Answering(
        "with_a_header",
        "Done.",
        schema={"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    ),
    Answering("json_schema_2020_12_tool", "Done.", schema=SCHEMA_2020_12),
    Answering(
        "weather",
        Mixed(("12 degrees",), {"degrees": 12}),
        output_schema={"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]},
        hints={"readOnlyHint": True, "title": "Look out\x1b[2J of the window", "destructiveHint": "yes", "other": 1},
    ),
    Answering("broken_part", Mixed(("words", McpContent("audio", {"type": "audio"}, "[no sound]")))),
    Answering("failing", Mixed(("It is closed.",), failed=True)),
)
