"""What a server may ask of us: values from the user, and the folders that the session is about. Nothing else."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.arguments.judge import judge
from ferrule.core.errors import ConfigError
from ferrule.output.clean import clean, clean_value

if TYPE_CHECKING:
    from mcp_types import ElicitResult, ListRootsResult

_MESSAGE_CHARS = 4_000
_FIELDS = 50

Elicit = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Server's name, its message and the JSON Schema of what it asks for → the values, or None for no."""


class Elicited:
    """Answers the questions of one server, one after the other."""

    def __init__(self, server: str, elicit: Elicit, note: Callable[[str], None], waiting: Callable[[], None]) -> None:
        """`waiting` is called while somebody is being asked, so that nobody's time runs out over it."""
        self._server = server
        self._elicit = elicit
        self._note = note
        self._waiting = waiting
        self._lock = asyncio.Lock()

    async def __call__(self, context: Any, params: Any) -> "ElicitResult":  # noqa: ARG002 - the package's way to ask
        import mcp_types as types  # whoever asks has been spoken to with it

        if params.mode != "form":
            self._note(
                f'The MCP server "{self._server}" wanted a page to be opened. It was told no: only forms are shown.'
            )
            return types.ElicitResult(action="decline")
        schema = clean_value(dict(params.requested_schema))
        properties = schema.get("properties")
        if not isinstance(properties, dict) or len(properties) > _FIELDS:
            self._note(f'A question of the MCP server "{self._server}" could not be shown. It was told no.')
            return types.ElicitResult(action="decline")
        values = await self._ask(clean(params.message)[:_MESSAGE_CHARS], schema)
        if values is None:
            return types.ElicitResult(action="decline")
        content = filled(schema, values)
        if content is None:
            self._note(f'The answer did not fit the question of the MCP server "{self._server}". It was told no.')
            return types.ElicitResult(action="cancel")
        return types.ElicitResult(action="accept", content=content)

    async def _ask(self, message: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        async with self._lock:
            asking = asyncio.ensure_future(self._elicit(self._server, message, schema))
            try:
                while not asking.done():
                    self._waiting()
                    await asyncio.wait([asking], timeout=1.0)
                return None if asking.cancelled() else asking.result()
            except Exception:  # noqa: BLE001 - whoever was asked is code that we do not know; no answer is a no
                return None
            finally:
                asking.cancel()


def filled(schema: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values that were asked for, with the defaults of those that were not given; None where they do not fit."""
    content: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        value = values.get(name)
        if value is None and isinstance(field, dict):
            value = field.get("default")
        if value is not None:
            content[name] = value
    try:
        return content if judge(dict(schema)).is_valid(content) else None
    except (ConfigError, ValueError):
        return None


def answering_roots(folders: Sequence[str]) -> "Callable[[Any], Awaitable[ListRootsResult]]":
    """Tells a server which folders the session is about."""

    async def answer(context: Any) -> "ListRootsResult":  # noqa: ARG001 - the package's way to ask
        from urllib.parse import quote

        import mcp_types as types  # as above

        named = [{"uri": f"file://{quote(os.path.abspath(one))}", "name": os.path.basename(one)} for one in folders]
        return types.ListRootsResult.model_validate({"roots": named})

    return answer
