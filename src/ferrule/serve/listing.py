"""The engine's tools as `tools/list` names them, put together once and again only when they have changed."""

import logging
from typing import Any

from ferrule.core.face import copied
from ferrule.engine import Engine
from ferrule.output.clean import clean_value
from ferrule.serve.hints import annotations
from ferrule.serve.results import FRESH

_log = logging.getLogger("ferrule.serve")


class Listing:
    """What clients are shown, by the version of the protocol that they speak."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tools: list[dict[str, Any]] | None = None
        self._by_version: dict[str, dict[str, Any]] = {}

    def forget(self) -> None:
        """The engine has other tools now."""
        self._tools = None
        self._by_version.clear()

    def result(self, version: str) -> dict[str, Any]:
        """The answer to `tools/list`; a tool that this version has no words for is left out and named in the log."""
        made = self._by_version.get(version)
        if made is None:
            made = self._by_version[version] = {**FRESH, "tools": self._fitting(version)}
        return made

    def schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of an advertised tool."""
        return next((tool["inputSchema"] for tool in self._all() if tool["name"] == name), None)

    def _all(self) -> list[dict[str, Any]]:
        if self._tools is None:
            self._tools = [self._described(one) for one in self._engine.definitions("mcp")]
        return self._tools

    def _described(self, definition: dict[str, Any]) -> dict[str, Any]:
        tool = self._engine.registry.resolve(definition["name"]).tool
        out: dict[str, Any] = copied(definition)
        hints = annotations(tool)
        if hints is not None:
            out["annotations"] = hints
            if "title" in hints:
                out["title"] = hints["title"]
        # Older versions of the protocol know structured results only as objects.
        if tool.output_schema is not None and tool.output_schema.get("type") == "object":
            out["outputSchema"] = copied(tool.output_schema)
        cleaned: dict[str, Any] = clean_value(out)
        return cleaned

    def _fitting(self, version: str) -> list[dict[str, Any]]:
        """The tools that the protocol can carry: one schema that it cannot must not take the others with it."""
        tools = self._all()
        if _fits(tools, version):
            return tools
        kept = []
        for tool in tools:
            if _fits([tool], version):
                kept.append(tool)
            else:
                _log.warning("%s is left out: MCP %s cannot describe its schema.", tool["name"], version)
        return kept


def _fits(tools: list[dict[str, Any]], version: str) -> bool:
    from mcp_types.methods import serialize_server_result  # for servers only
    from pydantic import ValidationError

    try:
        serialize_server_result("tools/list", version, {**FRESH, "tools": tools})
    except (ValidationError, KeyError):
        return False
    return True
