"""OpenAI Chat Completions: conversations, message by message, in both directions.

The messages of the results come right behind the calls, before anything that the user wrote. They hold only text, so
pictures follow in a message of the user, behind all results.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ferrule.wire.content import (
    arguments_in,
    arguments_out,
    attached,
    document_address,
    document_at,
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
from ferrule.wire.conversation import grouped, name_of, ordered, system_words, uses_of
from ferrule.wire.fields import cache_in, known, others, own
from ferrule.wire.shape import WireError, as_list, as_object, list_or, text_of, text_or
from ferrule.wire.thinking import is_own
from ferrule.wire.turn import Cache, Document, Extra, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "openai-chat"
_MESSAGES = {role: known(NAME, f"message:{role}") for role in ("system", "developer", "user", "tool", "assistant")}
_TEXT = frozenset(("type", "text"))
_ADDRESS = known(NAME, "address")
_FILE = known(NAME, "file")
_CALLS = {kind: known(NAME, f"call:{kind}") for kind in ("function", "custom")}


def turns_out(turns: Sequence[Turn], *, marks: str = "") -> dict[str, Any]:
    """`messages`. What this API has no place for is left out: pictures of the model's, and other APIs' thinking.

    `marks` says how marks for the cache are written: see `Marks`. A caller's own go back in any case.
    """
    uses = uses_of(turns)
    return {"messages": [message for turn in ordered(turns) for message in _messages_out(turn, uses, marks)]}


def _messages_out(turn: Turn, uses: dict[str, Use], marks: str) -> Iterator[dict[str, Any]]:
    more = own(turn, NAME) or {}
    if turn.role == "system":
        texts = [_content_out(part, marks) for part in turn.parts if isinstance(part, Text)]
        said = texts if any(text.keys() != _TEXT for text in texts) else system_words(turn)
        yield {"role": "system", "content": said, **more}
    elif turn.role == "assistant":
        if message := message_out(turn):
            yield {**message, **more}
    else:
        results = [part for part in turn.parts if isinstance(part, Result)]
        yield from _results_out(results, uses, marks)
        if content := [_content_out(part, marks) for part in turn.parts if not isinstance(part, Result)]:
            is_words = len(content) == 1 and content[0].keys() == _TEXT
            yield {"role": "user", "content": content[0]["text"] if is_words else content, **more}


def _results_out(results: Sequence[Result], uses: dict[str, Use], marks: str = "") -> Iterator[dict[str, Any]]:
    for result in results:
        text = marked(words_or_pointer(result), failed=result.failed)
        # A mark stands on the result, or on the last part of it.
        cache = result.cache or next((part.cache for part in result.parts[-1:] if not isinstance(part, Foreign)), None)
        block = _with_mark({"type": "text", "text": text}, cache, marks)
        content = text if block.keys() == _TEXT else [block]
        yield own(result, NAME) or {"role": "tool", "tool_call_id": result.id, "content": content}
    shown: list[dict[str, Any]] = []
    for result in results:
        if files := attached(result):
            shown.append({"type": "text", "text": label(result, name_of(result, uses))})
            shown += map(_content_out, files)
    if shown:
        yield {"role": "user", "content": shown}


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:
    """The messages that answer the calls of the turn before."""
    return list(_results_out(results, {use.id: use for use in uses}))


def _content_out(part: Part, marks: str = "") -> dict[str, Any]:
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else {"type": "text", "text": left_out(part)}
    if (kept := own(part, NAME)) is not None:
        return kept
    assert isinstance(part, Text | Image | Document), "A turn of the user holds nothing else."
    return _with_mark(_bare_out(part), part.cache, marks)


def _bare_out(part: Text | Image | Document) -> dict[str, Any]:
    if isinstance(part, Image):
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": picture_address(part), **detail}}
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.text:
        return {"type": "text", "text": document_words(part)}
    if part.url:
        return {"type": "text", "text": left_out(part)}
    # The API wants a name; from its ending it tells what the file is.
    name = part.title or ("document.pdf" if part.media_type == "application/pdf" else "document.txt")
    return {"type": "file", "file": {"filename": name, "file_data": document_address(part)}}


def _with_mark(block: dict[str, Any], cache: Cache | None, marks: str) -> dict[str, Any]:
    if cache is None or not marks:
        return block
    if marks == "breakpoint":
        span = {"ttl": cache.ttl} if cache.ttl in {"30m", "12h"} else {}
        return {**block, "prompt_cache_breakpoint": {"mode": "explicit", **span}}
    span = {"ttl": cache.ttl} if cache.ttl in {"5m", "1h"} else {}
    return {**block, "cache_control": {"type": "ephemeral", **span}}


def message_out(turn: Turn, *, is_answer: bool = False) -> dict[str, Any] | None:
    """What the model said, as one message; None where nothing of it has a place here.

    `reasoning_content` is not OpenAI's own word, but the one of the servers that think in this format. It goes back
    only to them; an answer shows it to the client in any case.
    """
    texts = [part for part in turn.parts if isinstance(part, Text)]
    calls = [_call_out(part) for part in turn.parts if isinstance(part, Use)]
    thoughts = [
        part.text
        for part in turn.parts
        if isinstance(part, Thinking) and part.text and (is_answer or (part.wire and is_own(part, NAME)))
    ]
    # Thinking alone is an answer, but no message: the API wants words or calls.
    if not texts and not calls and not (thoughts and is_answer):
        return None
    content: str | list[dict[str, Any]] | None = "".join(text.text for text in texts) if texts else None
    # What is said of one text keeps it apart from the others. An answer is one text in any case.
    if not is_answer and any(own(text, NAME) is not None for text in texts):
        content = [_content_out(text) for text in texts]
    out: dict[str, Any] = {"role": "assistant", "content": content}
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
    if (kept := own(use, NAME)) is not None:
        return kept
    if use.is_text:
        return {"id": use.id, "type": "custom", "custom": {"name": use.name, "input": str(use.input)}}
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments_out(use)}}


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `messages`."""
    given = as_object(body, "body")
    messages = list_or(given, "messages", "body")
    return grouped(_turn_in(message, f"messages[{at}]") for at, message in enumerate(messages))


def _turn_in(given: Any, where: str) -> Turn:
    message = as_object(given, where)
    role = text_of(message, "role", where)
    if role not in _MESSAGES:
        raise WireError(f"{where}.role must be system, developer, user, assistant or tool, and is {role!r}.")
    more = others(message, _MESSAGES[role])
    extra = Extra(NAME, more) if more else None
    if role == "assistant":
        refusal = text_or(message, "refusal", where)
        refused = {"type": "refusal", "refusal": refusal}
        said = message_in(message, where)
        return Turn("assistant", (*said, *((Text(refusal, extra=Extra(NAME, refused)),) if refusal else ())), extra)
    parts = _content_in(message.get("content"), f"{where}.content")
    if role == "tool":
        return Turn("user", (_result_in(message, parts, where, is_whole=not more),))
    if role == "user":
        return Turn("user", parts, extra)
    texts = tuple(part for part in parts if isinstance(part, Text))
    if all(text.extra is None for text in texts):
        texts = (Text("\n\n".join(text.text for text in texts)),)
    if role == "developer":
        extra = Extra(NAME, {"role": role, **more})
    return Turn("system", texts, extra)


def _result_in(message: dict[str, Any], parts: tuple[Part, ...], where: str, *, is_whole: bool) -> Result:
    kept, failed = unmarked_parts(parts)
    # A list of parts goes back as one, not as the text that is made of it.
    is_whole = is_whole and (len(parts) <= 1 and all(not isinstance(p, Text) or p.extra is None for p in parts))
    extra = None if is_whole else Extra(NAME, message)
    return Result(text_of(message, "tool_call_id", where), kept, failed, text_or(message, "name", where), extra=extra)


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
    extra = Extra(NAME, call) if kind in _CALLS and others(call, _CALLS[kind]) else None
    if kind == "custom":
        custom, inside = as_object(call.get("custom"), f"{where}.custom"), f"{where}.custom"
        return Use(id_, text_of(custom, "name", inside), text_of(custom, "input", inside), is_text=True, extra=extra)
    function, inside = as_object(call.get("function"), f"{where}.function"), f"{where}.function"
    arguments = function.get("arguments")
    # Some servers send the object itself.
    values = arguments if isinstance(arguments, dict) else arguments_in(text_or(function, "arguments", inside))
    if isinstance(values, str):
        extra = Extra(NAME, call)  # a caller's own goes back as it came
    return Use(id_, text_of(function, "name", inside), values, extra=extra)


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
        cache = None if part.keys() == _TEXT else cache_in(part)
        return Text(text_of(part, "text", where), cache, _kept(part, _TEXT))
    if kind == "refusal":
        return Text(text_of(part, "refusal", where), extra=Extra(NAME, part))
    if kind == "image_url":
        return _image_in(part, where)
    if kind == "file":
        return _file_in(part, where)
    return Foreign(NAME, kind, part)


def _kept(part: dict[str, Any], names: frozenset[str]) -> Extra | None:
    return Extra(NAME, part) if others(part, names) else None


def _image_in(part: dict[str, Any], where: str) -> Image:
    address = part.get("image_url")
    holder = {"url": address} if isinstance(address, str) else as_object(address, f"{where}.image_url")
    found = picture(text_of(holder, "url", f"{where}.image_url"))
    extra = _kept(part, frozenset(("type", "image_url"))) or (Extra(NAME, part) if others(holder, _ADDRESS) else None)
    return replace(found, detail=text_or(holder, "detail", f"{where}.image_url"), cache=cache_in(part), extra=extra)


def _file_in(part: dict[str, Any], where: str) -> Document | Foreign:
    """A file that the API itself keeps is known only to this API."""
    file = as_object(part.get("file"), f"{where}.file")
    address = text_or(file, "file_data", f"{where}.file")
    found = document_at(address, text_or(file, "filename", f"{where}.file"))
    if found is None or others(file, _FILE):
        return Foreign(NAME, "file", part)
    is_whole = found.title and not others(part, frozenset(("type", "file")))
    return replace(found, cache=cache_in(part), extra=None if is_whole else Extra(NAME, part))
