"""A client for the conformance suite: it lists what the server at its last argument offers, and uses all of it."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from ferrule.core.errors import ToolFailure
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.connection import McpConnection

_VALUES = {"string": "text", "number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}


async def accept(server: str, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in what must be there, and leave the rest to its defaults."""
    required = schema.get("required", ())
    return {name: invented(field) for name, field in schema["properties"].items() if name in required}


def invented(schema: Any) -> Any:
    """A value that fits a simple schema."""
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", "string")
    return _VALUES.get(kind if isinstance(kind, str) else kind[0], "text")


def planned(listed: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the scenario names, or one of each tool."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    wanted = context.get("toolCalls")
    if wanted:
        return [(call["name"], call.get("arguments") or {}) for call in wanted]
    calls = {
        tool.name: {name: invented(field) for name, field in tool.schema.get("properties", {}).items()}
        for tool in listed
    }
    for tool in listed:
        if tool.name == "json_schema_2020_12_tool":  # the suite wants to see what was kept of it
            calls["json_schema_echo"] = {"schema": tool.schema}
    return list(calls.items())


async def main(url: str) -> None:
    server = McpServerEntry(name="conformance", transport="http", layer="user", source="the suite", url=url)
    connection = McpConnection(server, environment={}, folder=os.getcwd(), elicit=accept)
    try:
        listing = await connection.listing()
        for name, arguments in planned(listing.tools):
            try:
                print(name, await connection.call(name, arguments, progress=print))
            except ToolFailure as failure:
                print(name, failure)
        for prompt in listing.prompts:
            await connection.prompt(prompt.name, {name: "text" for name, _, _ in prompt.arguments})
        if listing.has_resources:
            for resource in await connection.resources():
                await connection.read(resource.uri)
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
