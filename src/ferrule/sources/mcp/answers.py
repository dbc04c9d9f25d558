"""A server's answers as outcomes: texts, pictures, and words in place of what cannot be shown."""

import binascii
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ferrule.arguments.judge import judge
from ferrule.core.elsewhere import Mixed, Part
from ferrule.core.errors import ConfigError
from ferrule.core.outcomes import Picture
from ferrule.support.picture import BadPicture, fit

if TYPE_CHECKING:
    from jsonschema_rs import Validator
    from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult

_PARTS = 1_000
_SHOWN_CHARS = 200
_TEXT_ENDS = ("+json", "+xml", "+yaml")
_TEXTS = frozenset(
    f"application/{kind}"
    for kind in (
        *("json", "x-ndjson", "jsonl", "json5", "xml", "yaml", "x-yaml", "toml", "x-toml", "csv", "sql", "graphql"),
        *(
            "javascript",
            "x-javascript",
            "ecmascript",
            "typescript",
            "x-typescript",
            "x-python",
            "x-sh",
            "x-shellscript",
        ),
        *("x-httpd-php", "x-tex", "x-latex", "rtf", "x-www-form-urlencoded", "x-sql", "x-ruby", "x-perl"),
    )
)
"""Media types that are text though their names do not begin so."""


class Answers:
    """Reads what one server answers; it remembers the output schemas that it has seen."""

    def __init__(self) -> None:
        self._judges: dict[str, tuple[Mapping[str, Any], Validator | None]] = {}

    async def mixed(self, tool: str, result: "CallToolResult", output_schema: Mapping[str, Any] | None) -> Mixed:
        """A tool's answer. What does not fit the tool's own output schema is delivered, and said.

        The call has run, and may have changed something: to hide its answer would only make a model call it again.
        """
        parts = await _parts(result.content)
        structured = result.structured_content
        if output_schema is not None and not result.is_error:
            misfit = self._misfit(tool, structured, output_schema)
            if misfit:
                parts.append(f"[{misfit}]")
        return Mixed(tuple(parts), structured, failed=result.is_error)

    def _misfit(self, tool: str, structured: Any, schema: Mapping[str, Any]) -> str:
        if structured is None:
            return "The tool has an output schema, and its answer has no structured content."
        known = self._judges.get(tool)
        if known is None or known[0] is not schema:
            try:
                known = (schema, judge(dict(schema)))
            except ConfigError:
                known = (schema, None)
            self._judges[tool] = known
        try:
            error = None if known[1] is None else next(iter(known[1].iter_errors(structured)), None)
        except ValueError:
            return "The structured content could not be compared with the tool's output schema."
        if error is None:
            return ""
        return f"The structured content does not fit the tool's output schema: {error.message[:_SHOWN_CHARS]}"


async def contents(result: "ReadResourceResult") -> Mixed:
    """What a resource holds."""
    return Mixed(tuple([await _resource(one, {}) for one in result.contents[:_PARTS]]))


async def prompt_text(result: "GetPromptResult") -> str:
    """A prompt's messages as one text; who says what is told where more than one says something."""
    said = []
    for message in result.messages[:_PARTS]:
        part = (await _parts([message.content]))[0]
        if isinstance(part, Picture):
            part = f"[An image of the type {part.media_type}.]"
        said.append((message.role, part if isinstance(part, str) else part.words))
    if len(said) == 1:
        return said[0][1]
    return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in said)


async def _parts(content: Any) -> list[str | Picture | Part]:
    parts: list[str | Picture | Part] = []
    for block in content[:_PARTS]:
        if block.type == "text":
            parts.append(block.text)
        elif block.type == "image":
            parts.append(await _picture(block.data, block.mime_type, "image", _block(block)))
        elif block.type == "audio":
            size_bytes = len(_decoded(block.data) or b"")
            words = f"[Audio of the type {block.mime_type[:_SHOWN_CHARS]}, {size_bytes:,} bytes.]"
            parts.append(Part("audio", _block(block), words))
        elif block.type == "resource_link":
            about = f": {block.description}" if block.description else ""
            parts.append(
                Part("resource_link", _block(block), f"[A link to the resource {block.uri} ({block.name}){about}]")
            )
        else:
            parts.append(await _resource(block.resource, _block(block)))
    if len(content) > _PARTS:
        parts.append(f"[{len(content) - _PARTS:,} more parts are left out.]")
    return parts


async def _resource(resource: Any, block: dict[str, Any]) -> str | Picture | Part:
    block = block or {"type": "resource", "resource": _block(resource)}
    text = getattr(resource, "text", None)
    if text is not None:
        return Part("resource", block, text)
    media_type = resource.mime_type or "application/octet-stream"
    data = _decoded(resource.blob)
    words = None if data is None else _text(data, media_type)
    if words is None and media_type.startswith("image/"):
        return await _picture(resource.blob, media_type, "resource", block)
    if data is None:
        return Part("resource", block, f"[The resource {resource.uri}, which is not valid base64.]")
    if words is None:
        words = f"[The resource {resource.uri} of the type {media_type[:_SHOWN_CHARS]}, {len(data):,} bytes.]"
    return Part("resource", block, words)


def _text(data: bytes, media_type: str) -> str | None:
    """Bytes as the text that their media type says that they are; None where it does not say so, or they are none."""
    kind, _, parameters = media_type.lower().partition(";")
    kind = kind.strip()
    if not kind.startswith("text/") and not kind.endswith(_TEXT_ENDS) and kind not in _TEXTS:
        return None
    charset = re.search(r'(?:^|[;\s])charset\s*=\s*"?([\w.:-]+)', parameters)
    try:
        text = data.decode("utf-8-sig" if charset is None or charset[1] in {"utf-8", "utf8"} else charset[1])
    except (LookupError, ValueError):
        return None
    return None if "\0" in text else text


async def _picture(data: str, media_type: str, kind: str, block: dict[str, Any]) -> Picture | Part:
    """A picture as model APIs take it; one that they would refuse would cost every later turn of the session."""
    raw = _decoded(data)
    if raw is None:
        return Part(kind, block, "[An image that is not valid base64.]")
    try:
        fitted = await fit(raw)
    except BadPicture as error:
        words = f"[An image of the type {media_type[:_SHOWN_CHARS]}, {len(raw):,} bytes, that cannot be shown. {error}]"
        return Part(kind, block, words)
    return Picture("", fitted.media_type, fitted.data)


def _decoded(data: str) -> bytes | None:
    try:
        return binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        return None


def _block(block: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = block.model_dump(by_alias=True, exclude_none=True, mode="json")
    return dumped
