"""Anthropic Messages: conversations, block by block, in both directions."""

from collections.abc import Sequence
from typing import Any

from ferrule.wire import ids
from ferrule.wire.content import left_out, object_out
from ferrule.wire.conversation import Role, apart
from ferrule.wire.shape import WireError, as_list, as_object, flag_or, list_or, text_of, text_or
from ferrule.wire.thinking import carried, is_own, uncarried
from ferrule.wire.turn import Document, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "anthropic"
_SILENT = "The tool failed and said nothing."
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def turns_out(turns: Sequence[Turn]) -> dict[str, Any]:
    """`system` and `messages`. What this API refuses is left out: blank text, and thinking without a signature."""
    system, rest = apart(turns)
    messages = [{"role": turn.role, "content": blocks} for turn in rest if (blocks := _blocks_out(turn))]
    return {"system": system, "messages": messages} if system else {"messages": messages}


def _blocks_out(turn: Turn) -> list[dict[str, Any]]:
    return [block for part in turn.parts if (block := _block_out(part, is_user=turn.role == "user")) is not None]


def _block_out(part: Part, *, is_user: bool) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Use):
        return {
            "type": "tool_use",
            "id": ids.outgoing(part.id, ids.PLAIN),
            "name": part.name,
            "input": object_out(part),
        }
    if isinstance(part, Result):
        return _result_out(part)
    if isinstance(part, Thinking):
        return _thinking_out(part) if is_own(part, NAME) else None
    if isinstance(part, Image):
        return _image_out(part) if is_user else None
    if isinstance(part, Document):
        return _document_out(part) if is_user else None
    if part.wire == NAME:
        return part.block
    return {"type": "text", "text": left_out(part)} if is_user else None


def _thinking_out(part: Thinking) -> dict[str, Any] | None:
    if part.sealed and not part.signature:
        return {"type": "redacted_thinking", "data": part.sealed}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature} if part.signature else None


def _image_out(image: Image) -> dict[str, Any]:
    if image.url:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _document_out(document: Document) -> dict[str, Any]:
    if document.url:
        source = {"type": "url", "url": document.url}
    elif document.text:
        source = {"type": "text", "media_type": "text/plain", "data": document.text}
    else:
        source = {"type": "base64", "media_type": document.media_type, "data": document.data}
    block: dict[str, Any] = {"type": "document", "source": source}
    return {**block, "title": document.title} if document.title else block


def _result_out(result: Result) -> dict[str, Any]:
    content = [block for part in result.parts if (block := _block_out(part, is_user=True)) is not None]
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": ids.outgoing(result.id, ids.PLAIN)}
    if result.failed:
        out["is_error"] = True
        # The API refuses a failure without words.
        content = content or [{"type": "text", "text": _SILENT}]
    if content:
        out["content"] = content
    return out


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `system` and its `messages`."""
    given = as_object(body, "body")
    system = content_in(given.get("system"), "system") if given.get("system") else ()
    turns = [Turn("system", (Text("\n\n".join(_only_text(part) for part in system)),))] if system else []
    for at, one in enumerate(list_or(given, "messages", "body")):
        where = f"messages[{at}]"
        message = as_object(one, where)
        role = _ROLES.get(text_of(message, "role", where))
        if role is None:
            raise WireError(f"{where}.role must be user or assistant, and is {message['role']!r}.")
        turns.append(Turn(role, content_in(message.get("content"), f"{where}.content")))
    return tuple(turns)


def _only_text(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    raise WireError("system must be text only.")


def content_in(content: Any, where: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_block_in(block, f"{where}[{at}]") for at, block in enumerate(as_list(content, where)))


def _block_in(given: Any, where: str) -> Part:
    block = as_object(given, where)
    kind = text_of(block, "type", where)
    if kind == "text":
        return Text(text_of(block, "text", where))
    if kind == "tool_use":
        values = as_object(block.get("input", {}), f"{where}.input")
        return Use(ids.incoming(text_of(block, "id", where), ids.PLAIN), text_of(block, "name", where), values)
    if kind == "tool_result":
        return _result_in(block, where)
    if kind == "image":
        return _image_in(block, where)
    if kind == "thinking":
        words, signature = text_of(block, "thinking", where), text_or(block, "signature", where)
        return uncarried(words, signature, NAME) or Thinking(words, signature, wire=NAME)
    if kind == "redacted_thinking":
        return Thinking("", sealed=text_of(block, "data", where), wire=NAME)
    return Foreign(NAME, kind, _uncached(block))


def _image_in(block: dict[str, Any], where: str) -> Image | Foreign:
    source = as_object(block.get("source"), f"{where}.source")
    kind = text_of(source, "type", f"{where}.source")
    if kind == "base64":
        return Image(text_of(source, "media_type", f"{where}.source"), text_of(source, "data", f"{where}.source"))
    return (
        Image("", "", text_of(source, "url", f"{where}.source"))
        if kind == "url"
        else Foreign(NAME, "image", _uncached(block))
    )


def _result_in(block: dict[str, Any], where: str) -> Result:
    content = block.get("content")
    given = () if content is None or content == "" else content_in(content, f"{where}.content")
    parts = tuple(part for part in given if isinstance(part, Text | Image | Document | Foreign))
    if len(parts) != len(given):
        raise WireError(f"{where}.content must be text and images only.")
    failed = bool(flag_or(block, "is_error", where, otherwise=False))
    if failed and parts == (Text(_SILENT),):
        parts = ()
    return Result(ids.incoming(text_of(block, "tool_use_id", where), ids.PLAIN), parts, failed)


def _uncached(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:  # noqa: ARG001 - other wires look
    """The one message that answers the calls of the turn before."""
    return [{"role": "user", "content": [_result_out(result) for result in results]}] if results else []


def said_block(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Thinking) and not is_own(part, NAME):
        return {"type": "thinking", "thinking": part.text, "signature": carried(part)}
    if isinstance(part, Thinking) and not part.sealed:
        # Words without a signature may be shown, but not sent back; `turns_out` leaves them out.
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return _block_out(part, is_user=False)
