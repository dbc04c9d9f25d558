"""Replies as results of `tools/call`: text, pictures, other parts, structured content, notes, links to full outputs."""

from typing import Any

import msgspec

from ferrule.core.reply import Reply
from ferrule.wire.mcp import result_out
from ferrule.wire.wire import result_of

COMPLETE = {"resultType": "complete"}
"""What every result says from 2026-07-28 on; older versions leave it out."""
FRESH = {**COMPLETE, "ttlMs": 60_000, "cacheScope": "private"}
"""The same, for what a client may keep for a while."""
_ANY_STRUCTURE = "2026-07-28"
"""Before this version, a structured result is an object."""
_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""A kind of part → the first version of the protocol that has it; the package does not look."""
_STRUCTURED_BYTES = 4 << 20
"""A JSON value cannot be cut: what is larger is an error, with the text that was cut beside it."""


def result(reply: Reply, version: str) -> dict[str, Any]:
    """A reply as a client of that version reads it; everything but success is an error that the model can read."""
    plain: dict[str, Any] = {**COMPLETE, **result_out(result_of(reply))}
    structured = reply.structured
    if reply.ok and structured is not None and (isinstance(structured, dict) or version >= _ANY_STRUCTURE):
        if len(msgspec.json.encode(structured)) > _STRUCTURED_BYTES:
            told = f"The structured result of {reply.name} is larger than {_STRUCTURED_BYTES:,} bytes and was left out."
            plain["content"] = [*plain["content"], {"type": "text", "text": told}]
            plain["isError"] = True
        else:
            plain["structuredContent"] = structured
    if not reply.output_id and not reply.parts:
        return plain
    whole = {**plain, "content": _content(reply, plain["content"])}
    return whole if _fits(whole, version) else plain


def _content(reply: Reply, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the parts that have no words, and with a link to what was cut."""
    notes = told[-1:] if reply.notes else []
    if reply.ok and reply.parts:
        others = [part for part in reply.parts if part.get("type") not in ("text", "image")]
        # Where the text was cut, it stays cut.
        told = [*told[: len(told) - len(notes)], *others] if reply.output_id else list(reply.parts)
        told += notes
    return [*told, output_link(reply.output_id)] if reply.output_id else told


def output_link(output_id: str) -> dict[str, Any]:
    """Where the whole of a result that was cut can be read."""
    return {
        "type": "resource_link",
        "uri": output_uri(output_id),
        "name": f"output {output_id}",
        "description": "The full output.",
        "mimeType": "text/plain",
    }


def output_uri(output_id: str) -> str:
    return f"ferrule://output/{output_id}"


def _fits(out: dict[str, Any], version: str) -> bool:
    """Older versions know fewer kinds of parts, and a part that came from elsewhere may be anything."""
    from mcp_types.methods import serialize_server_result  # for servers only
    from pydantic import ValidationError

    if any(version < _SINCE.get(part.get("type", ""), "") for part in out["content"]):
        return False
    try:
        serialize_server_result("tools/call", version, out)
    except ValidationError:
        return False
    return True
