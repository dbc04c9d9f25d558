"""Anthropic Messages: conversations, block by block, in both directions."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ferrule.wire import ids
from ferrule.wire.content import left_out, object_out, plain_text
from ferrule.wire.conversation import Role, ordered
from ferrule.wire.fields import cache_in, known, others, own
from ferrule.wire.shape import WireError, as_list, as_object, flag_or, list_or, text_of, text_or
from ferrule.wire.thinking import carried, is_own, uncarried
from ferrule.wire.turn import Cache, Content, Document, Extra, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "anthropic"
_SILENT = "The tool failed and said nothing."
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_MESSAGE = known(NAME, "message")
_KNOWN = {kind: known(NAME, f"block:{kind}") for kind in ("text", "image", "document", "tool_use", "tool_result")} | {
    "thinking": frozenset(("type", "thinking", "signature")),
    "redacted_thinking": frozenset(("type", "data")),
}
_PDF = "application/pdf"


def turns_out(turns: Sequence[Turn]) -> dict[str, Any]:
    """`system` and `messages`. What this API refuses is left out: blank text, and thinking without a signature."""
    given = list(turns)
    # What a caller of this API has said in the middle as the system stays there; all else stands above.
    above = [turn for turn in given if turn.role == "system" and own(turn, NAME) is None]
    rest = ordered(turn for turn in given if turn.role != "system" or own(turn, NAME) is not None)
    messages = [_message_out(turn, blocks) for turn in rest if (blocks := _blocks_out(turn))]
    system = _system_out(ordered(above))
    return {"system": system, "messages": messages} if system else {"messages": messages}


def _system_out(turns: Sequence[Turn]) -> str | list[dict[str, Any]]:
    """One text, or blocks where something is said of one of them."""
    texts = [part for turn in turns for part in turn.parts if isinstance(part, Text) and part.text]
    if all(text.cache is None and text.extra is None for text in texts):
        return "\n\n".join(text.text for text in texts)
    return [block for text in texts if (block := _block_out(text, is_user=True)) is not None]


def _message_out(turn: Turn, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": turn.role, "content": blocks, **(own(turn, NAME) or {})}


def _blocks_out(turn: Turn) -> list[dict[str, Any]]:
    return [block for part in turn.parts if (block := _block_out(part, is_user=turn.role == "user")) is not None]


def _block_out(part: Part, *, is_user: bool) -> dict[str, Any] | None:
    if not isinstance(part, Foreign) and (kept := own(part, NAME)) is not None:
        return kept
    if isinstance(part, Text):
        return marked({"type": "text", "text": part.text}, part.cache) if part.text.strip() else None
    if isinstance(part, Use):
        use = {"type": "tool_use", "id": ids.outgoing(part.id, ids.PLAIN), "name": part.name, "input": object_out(part)}
        return marked(use, part.cache)
    if isinstance(part, Result):
        return _result_out(part)
    if isinstance(part, Thinking):
        return _thinking_out(part) if is_own(part, NAME) else None
    if isinstance(part, Image):
        return marked({"type": "image", "source": _source_out(part)}, part.cache) if is_user else None
    if isinstance(part, Document):
        return _document_out(part) if is_user else None
    if part.wire == NAME:
        return part.block
    return {"type": "text", "text": left_out(part)} if is_user else None


def _thinking_out(part: Thinking) -> dict[str, Any] | None:
    if part.sealed and not part.signature:
        return {"type": "redacted_thinking", "data": part.sealed}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature} if part.signature else None


def marked(block: dict[str, Any], cache: Cache | None) -> dict[str, Any]:
    """A block with the mark that has the API keep what it has read until there."""
    if cache is None:
        return block
    # Other APIs have other spans of time; this one refuses them.
    span = {"ttl": cache.ttl} if cache.ttl in {"5m", "1h"} else {}
    return {**block, "cache_control": {"type": "ephemeral", **span}}


def _source_out(image: Image) -> dict[str, Any]:
    if image.url:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.data}


def _document_out(document: Document) -> dict[str, Any]:
    if document.url:
        source = {"type": "url", "url": document.url}
    elif document.media_type == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": document.data}
    elif text := plain_text(document):
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        return {"type": "text", "text": left_out(Foreign("", f"document ({document.media_type})", {}))}
    block = {"type": "document", "source": source}
    return marked({**block, "title": document.title} if document.title else block, document.cache)


def _result_out(result: Result) -> dict[str, Any]:
    if (kept := own(result, NAME)) is not None:
        return kept
    content = [block for part in result.parts if (block := _block_out(part, is_user=True)) is not None]
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": ids.outgoing(result.id, ids.PLAIN)}
    if result.failed:
        out["is_error"] = True
        # The API refuses a failure without words.
        content = content or [{"type": "text", "text": _SILENT}]
    if content:
        out["content"] = content
    return marked(out, result.cache)


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `system` and its `messages`."""
    given = as_object(body, "body")
    system = content_in(given.get("system"), "system") if given.get("system") else ()
    turns = [Turn("system", tuple(_only_text(part) for part in system))] if system else []
    for at, one in enumerate(list_or(given, "messages", "body")):
        where = f"messages[{at}]"
        message = as_object(one, where)
        role = _ROLES.get(text_of(message, "role", where))
        if role is None:
            raise WireError(f"{where}.role must be user or assistant, and is {message['role']!r}.")
        more = others(message, _MESSAGE)
        extra = Extra(NAME, more) if more or role == "system" else None
        turns.append(Turn(role, content_in(message.get("content"), f"{where}.content"), extra))
    return tuple(turns)


def _only_text(part: Part) -> Text:
    if isinstance(part, Text):
        return part
    raise WireError("system must be text only.")


def content_in(content: Any, where: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_block_in(block, f"{where}[{at}]") for at, block in enumerate(as_list(content, where)))


def _block_in(given: Any, where: str) -> Part:
    block = as_object(given, where)
    kind = text_of(block, "type", where)
    names = _KNOWN.get(kind)
    if names is None:
        return Foreign(NAME, kind, block)
    part = _known_in(block, kind, where)
    # What has more fields than the noun goes back whole.
    if isinstance(part, Foreign) or not others(block, names):
        return part
    return msgspec.structs.replace(part, extra=Extra(NAME, block))


def _known_in(block: dict[str, Any], kind: str, where: str) -> Part:
    cache = cache_in(block) if "cache_control" in block else None
    if kind == "text":
        return Text(text_of(block, "text", where), cache)
    if kind == "tool_use":
        values = as_object(block.get("input", {}), f"{where}.input")
        id_ = ids.incoming(text_of(block, "id", where), ids.PLAIN)
        return Use(id_, text_of(block, "name", where), values, cache=cache)
    if kind == "tool_result":
        return _result_in(block, where, cache)
    if kind == "image":
        return _image_in(block, where, cache)
    if kind == "document":
        return _document_in(block, where, cache)
    if kind == "thinking":
        words, signature = text_of(block, "thinking", where), text_or(block, "signature", where)
        return uncarried(words, signature, NAME) or Thinking(words, signature, wire=NAME)
    return Thinking("", sealed=text_of(block, "data", where), wire=NAME)


def _image_in(block: dict[str, Any], where: str, cache: Cache | None) -> Image | Foreign:
    source = as_object(block.get("source"), f"{where}.source")
    kind = text_of(source, "type", f"{where}.source")
    if kind == "base64":
        media_type, data = text_of(source, "media_type", f"{where}.source"), text_of(source, "data", f"{where}.source")
        return Image(media_type, data, cache=cache)
    if kind == "url":
        return Image("", "", text_of(source, "url", f"{where}.source"), cache=cache)
    return Foreign(NAME, "image", block)


def _document_in(block: dict[str, Any], where: str, cache: Cache | None) -> Document | Foreign:
    """A file that the API itself keeps, or one that is made of blocks, is known only to this API."""
    source, inside = as_object(block.get("source"), f"{where}.source"), f"{where}.source"
    title = text_or(block, "title", where)
    kind = source.get("type")
    if kind == "base64":
        return Document(
            text_or(source, "media_type", inside, _PDF), text_of(source, "data", inside), title=title, cache=cache
        )
    if kind == "text":
        media_type = text_or(source, "media_type", inside, "text/plain")
        return Document(media_type, text=text_of(source, "data", inside), title=title, cache=cache)
    if kind == "url":
        return Document(_PDF, url=text_of(source, "url", inside), title=title, cache=cache)
    return Foreign(NAME, "document", block)


def _result_in(block: dict[str, Any], where: str, cache: Cache | None) -> Result:
    content = block.get("content")
    given = () if content is None or content == "" else content_in(content, f"{where}.content")
    parts = tuple(part for part in given if isinstance(part, Content))
    if len(parts) != len(given):
        raise WireError(f"{where}.content must be text, images and documents only.")
    failed = bool(flag_or(block, "is_error", where, otherwise=False))
    if failed and parts == (Text(_SILENT),):
        parts = ()
    return Result(ids.incoming(text_of(block, "tool_use_id", where), ids.PLAIN), parts, failed, cache=cache)


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
