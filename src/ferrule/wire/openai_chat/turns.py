"""OpenAI Chat Completions: conversations, message by message, in both directions.

The messages of the results come right behind the calls, before anything that the user wrote. They hold only text, so
pictures follow in a message of the user, behind all results.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ferrule.wire.content import (
    arguments_in,
    arguments_out,
    attached,
    document_address,
    document_words,
    json_text,
    label,
    left_out,
    marked,
    picture,
    picture_address,
    unmarked_parts,
    words_or_pointer,
)
from ferrule.wire.conversation import Role, grouped, name_of, ordered, system_words, uses_of
from ferrule.wire.shape import WireError, as_list, as_object, list_or, text_of, text_or
from ferrule.wire.thinking import is_own
from ferrule.wire.turn import Document, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "openai-chat"


def turns_out(turns: Sequence[Turn]) -> dict[str, Any]:
    """`messages`. What this API has no place for is left out: pictures of the model's, and other APIs' thinking."""
    uses = uses_of(turns)
    return {"messages": [message for turn in ordered(turns) for message in _messages_out(turn, uses)]}


def _messages_out(turn: Turn, uses: dict[str, Use]) -> Iterator[dict[str, Any]]:
    if turn.role == "system":
        yield {"role": "system", "content": system_words(turn)}
    elif turn.role == "assistant":
        if message := message_out(turn):
            yield message
    else:
        results = [part for part in turn.parts if isinstance(part, Result)]
        yield from _results_out(results, uses)
        if content := [_content_out(part) for part in turn.parts if not isinstance(part, Result)]:
            is_words = len(content) == 1 and content[0].get("type") == "text"
            yield {"role": "user", "content": content[0]["text"] if is_words else content}


def _results_out(results: Sequence[Result], uses: dict[str, Use]) -> Iterator[dict[str, Any]]:
    for result in results:
        text = marked(words_or_pointer(result), failed=result.failed)
        yield {"role": "tool", "tool_call_id": result.id, "content": text}
    shown: list[dict[str, Any]] = []
    for result in results:
        if images := attached(result):
            shown.append({"type": "text", "text": label(result, name_of(result, uses))})
            shown += map(_content_out, images)
    if shown:
        yield {"role": "user", "content": shown}


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:
    """The messages that answer the calls of the turn before."""
    return list(_results_out(results, {use.id: use for use in uses}))


def _content_out(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": picture_address(part)}}
    if isinstance(part, Document):
        return _document_out(part)
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else {"type": "text", "text": left_out(part)}
    assert isinstance(part, Text), "A turn of the user holds nothing else."
    return {"type": "text", "text": part.text}


def _document_out(document: Document) -> dict[str, Any]:
    if document.text or document.url:  # this API fetches pictures, and no files
        return {"type": "text", "text": document_words(document) if document.text else left_out(document)}
    file = {"filename": document.title or "document.pdf", "file_data": document_address(document)}
    return {"type": "file", "file": file}


def message_out(turn: Turn, *, is_answer: bool = False) -> dict[str, Any] | None:
    """What the model said, as one message; None where nothing of it has a place here.

    `reasoning_content` is not OpenAI's own word, but the one of the servers that think in this format. It goes back
    only to them; an answer shows it to the client in any case.
    """
    texts = [part.text for part in turn.parts if isinstance(part, Text)]
    calls = [_call_out(part) for part in turn.parts if isinstance(part, Use)]
    thoughts = [
        part.text
        for part in turn.parts
        if isinstance(part, Thinking) and part.text and (is_answer or (part.wire and is_own(part, NAME)))
    ]
    if not texts and not calls and not thoughts:
        return None
    out: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    if details := [] if is_answer else _details_out(turn):
        out["reasoning_details"] = details
    elif thoughts:
        out["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        out["tool_calls"] = calls
    return out


def _details_out(turn: Turn) -> list[Any]:
    """What a host had said of its thinking, as it came."""
    for part in turn.parts:
        if isinstance(part, Thinking) and part.sealed and part.wire == NAME:
            try:
                return msgspec.json.decode(part.sealed, type=list[Any])
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                continue  # another's seal
    return []


def _call_out(use: Use) -> dict[str, Any]:
    if use.is_text:
        return {"id": use.id, "type": "custom", "custom": {"name": use.name, "input": str(use.input)}}
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments_out(use)}}


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `messages`."""
    given = as_object(body, "body")
    messages = list_or(given, "messages", "body")
    return grouped(_turn_in(message, f"messages[{at}]") for at, message in enumerate(messages))


def _turn_in(given: Any, where: str) -> tuple[Role, tuple[Part, ...]]:
    message = as_object(given, where)
    role = text_of(message, "role", where)
    if role == "assistant":
        refusal = text_or(message, "refusal", where)
        return "assistant", (*message_in(message, where), *((Text(refusal),) if refusal else ()))
    if role == "tool":
        parts, failed = unmarked_parts(_content_in(message.get("content"), f"{where}.content"))
        return "user", (Result(text_of(message, "tool_call_id", where), parts, failed),)
    if role in {"system", "developer"}:
        texts = (
            part.text for part in _content_in(message.get("content"), f"{where}.content") if isinstance(part, Text)
        )
        return "system", (Text("\n\n".join(texts)),)
    if role == "user":
        return "user", _content_in(message.get("content"), f"{where}.content")
    raise WireError(f"{where}.role must be system, developer, user, assistant or tool, and is {role!r}.")


def message_in(message: dict[str, Any], where: str) -> tuple[Part, ...]:
    """What the model said: its thinking, its words, its calls."""
    thought = text_or(message, "reasoning_content", where) or text_or(message, "reasoning", where)
    details = list_or(message, "reasoning_details", where)
    sealed = json_text(details) if details else ""
    parts: list[Part] = [Thinking(thought, sealed=sealed, wire=NAME)] if thought or sealed else []
    if message.get("content"):
        parts += _content_in(message["content"], f"{where}.content")
    calls = list_or(message, "tool_calls", where)
    parts += (_call_in(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls))
    return tuple(parts)


def _call_in(given: Any, where: str) -> Use:
    call = as_object(given, where)
    id_, kind = text_of(call, "id", where), text_or(call, "type", where, "function")
    if kind == "custom":
        custom, inside = as_object(call.get("custom"), f"{where}.custom"), f"{where}.custom"
        return Use(id_, text_of(custom, "name", inside), text_of(custom, "input", inside), is_text=True)
    function, inside = as_object(call.get("function"), f"{where}.function"), f"{where}.function"
    arguments = function.get("arguments")
    # Some servers send the object itself.
    values = arguments if isinstance(arguments, dict) else arguments_in(text_or(function, "arguments", inside))
    return Use(id_, text_of(function, "name", inside), values)


def _content_in(content: Any, where: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part_in(part, f"{where}[{at}]") for at, part in enumerate(as_list(content, where)))


def _part_in(given: Any, where: str) -> Part:
    part = as_object(given, where)
    kind = text_of(part, "type", where)
    if kind == "text":
        return Text(text_of(part, "text", where))
    if kind == "refusal":
        return Text(text_of(part, "refusal", where))
    if kind == "image_url":
        address = part.get("image_url")
        holder = {"url": address} if isinstance(address, str) else as_object(address, f"{where}.image_url")
        return picture(text_of(holder, "url", f"{where}.image_url"))
    return Foreign(NAME, kind, part)
