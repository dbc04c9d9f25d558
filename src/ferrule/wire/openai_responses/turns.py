"""OpenAI Responses: conversations, item by item, in both directions.

A call and its result are tied by `call_id`, which is the id that the model gave the call. Calls that go out carry no
item id: the API would look for the item that it names.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ferrule.wire.content import (
    arguments_in,
    arguments_out,
    attached,
    document_address,
    document_words,
    left_out,
    marked,
    picture,
    picture_address,
    unmarked_parts,
    words,
)
from ferrule.wire.conversation import Role, grouped, ordered, system_words, uses_of
from ferrule.wire.shape import WireError, as_list, as_object, list_or, text_of, text_or
from ferrule.wire.thinking import is_own, uncarried
from ferrule.wire.turn import Document, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "openai-responses"
_TEXTS = {"input_text", "output_text", "text", "summary_text", "reasoning_text"}


def turns_out(turns: Sequence[Turn]) -> dict[str, Any]:
    """`instructions` and `input`. System turns at the beginning are instructions, later ones a developer's messages.

    What this API has no place for is left out: pictures of the model's, thinking that is not sealed or not its own.
    """
    uses, given = uses_of(turns), list(turns)
    first = next((at for at, turn in enumerate(given) if turn.role != "system"), len(given))
    instructions = "\n\n".join(text for text in map(system_words, given[:first]) if text)
    items = [item for turn in ordered(given[first:]) for item in _items_out(turn, uses)]
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _items_out(turn: Turn, uses: dict[str, Use]) -> Iterator[dict[str, Any]]:
    if turn.role == "system":
        yield {"type": "message", "role": "developer", "content": system_words(turn)}
    elif turn.role == "assistant":
        yield from (item for part in turn.parts if (item := _item_out(part)) is not None)
    else:
        yield from (result_item(part, uses) for part in turn.parts if isinstance(part, Result))
        if content := [_content_out(part) for part in turn.parts if not isinstance(part, Result)]:
            is_words = len(content) == 1 and content[0].get("type") == "input_text"
            yield {"type": "message", "role": "user", "content": content[0]["text"] if is_words else content}


def _item_out(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"type": "message", "role": "assistant", "content": part.text} if part.text else None
    if isinstance(part, Use):
        return call_item(part)
    if isinstance(part, Thinking):
        # Nothing is stored, so reasoning that is not sealed could not be found by its id.
        return reasoning_item(part) if part.sealed and is_own(part, NAME) else None
    return part.block if isinstance(part, Foreign) and part.wire == NAME else None


def call_item(use: Use) -> dict[str, Any]:
    if use.is_text:
        return {"type": "custom_tool_call", "call_id": use.id, "name": use.name, "input": str(use.input)}
    return {"type": "function_call", "call_id": use.id, "name": use.name, "arguments": arguments_out(use)}


def reasoning_item(part: Thinking) -> dict[str, Any]:
    """Reasoning as this API keeps it. Its id is held as the signature; a made-up one would not fit the seal."""
    out: dict[str, Any] = {"type": "reasoning"}
    if part.signature:
        out["id"] = part.signature
    out["summary"] = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {**out, "encrypted_content": part.sealed} if part.sealed else out


def result_item(result: Result, uses: dict[str, Use]) -> dict[str, Any]:
    use = uses.get(result.id)
    kind = "custom_tool_call_output" if use is not None and use.is_text else "function_call_output"
    return {"type": kind, "call_id": result.id, "output": _output(result)}


def _output(result: Result) -> str | list[dict[str, Any]]:
    """Always there, even where it is empty; a list only where there are pictures or files."""
    if not attached(result):
        return marked(words(result), failed=result.failed)
    content = [_content_out(part) for part in result.parts]
    if not result.failed:
        return content
    if content[0]["type"] == "input_text":
        return [{**content[0], "text": marked(content[0]["text"], failed=True)}, *content[1:]]
    return [{"type": "input_text", "text": marked("", failed=True)}, *content]


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:
    """The items that answer the calls of the turn before; `uses` tells which of them were of free-text tools."""
    known = {use.id: use for use in uses}
    return [result_item(result, known) for result in results]


def _content_out(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": picture_address(part), "detail": "auto"}
    if isinstance(part, Document):
        return _document_out(part)
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else {"type": "input_text", "text": left_out(part)}
    assert isinstance(part, Text), "A turn of the user holds nothing else."
    return {"type": "input_text", "text": part.text}


def _document_out(document: Document) -> dict[str, Any]:
    if document.text:
        return {"type": "input_text", "text": document_words(document)}
    if document.url:
        return {"type": "input_file", "file_url": document.url}
    name = document.title or "document.pdf"
    return {"type": "input_file", "filename": name, "file_data": document_address(document)}


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `instructions` and its `input`."""
    given = as_object(body, "body")
    if given.get("previous_response_id"):
        raise WireError("previous_response_id names a conversation that only the API has; send its items as input.")
    instructions = text_or(given, "instructions", "body")
    system = (Turn("system", (Text(instructions),)),) if instructions else ()
    said = given.get("input")
    items = [{"role": "user", "content": said}] if isinstance(said, str) else list_or(given, "input", "body")
    return system + grouped(items_in(items, "input"))


def items_in(items: Iterable[Any], name: str) -> Iterator[tuple[Role, tuple[Part, ...]]]:
    """Who said it and what, for each item."""
    for at, item in enumerate(items):
        where = f"{name}[{at}]"
        yield _item_in(as_object(item, where), where)


def _item_in(item: dict[str, Any], where: str) -> tuple[Role, tuple[Part, ...]]:
    kind = text_or(item, "type", where, "message")
    if kind == "message":
        return _message_in(item, where)
    if kind == "function_call":
        values = arguments_in(text_or(item, "arguments", where))
        return "assistant", (Use(text_of(item, "call_id", where), text_of(item, "name", where), values),)
    if kind == "custom_tool_call":
        text = text_of(item, "input", where)
        return "assistant", (Use(text_of(item, "call_id", where), text_of(item, "name", where), text, is_text=True),)
    if kind in {"function_call_output", "custom_tool_call_output"}:
        parts, failed = unmarked_parts(_content_in(item.get("output"), f"{where}.output"))
        return "user", (Result(text_of(item, "call_id", where), parts, failed, text_or(item, "name", where)),)
    if kind == "reasoning":
        return "assistant", (_reasoning_in(item, where),)
    return "user" if kind.endswith("_output") else "assistant", (Foreign(NAME, kind, item),)


def _reasoning_in(item: dict[str, Any], where: str) -> Thinking:
    told = _content_in(item.get("summary"), f"{where}.summary") or _content_in(item.get("content"), f"{where}.content")
    text = "\n\n".join(part.text for part in told if isinstance(part, Text))
    sealed = text_or(item, "encrypted_content", where)
    return uncarried(text, sealed, NAME) or Thinking(text, text_or(item, "id", where), sealed, NAME)


def _message_in(item: dict[str, Any], where: str) -> tuple[Role, tuple[Part, ...]]:
    role = text_of(item, "role", where)
    parts = _content_in(item.get("content"), f"{where}.content")
    if role in {"system", "developer"}:
        return "system", (Text("\n\n".join(part.text for part in parts if isinstance(part, Text))),)
    if role == "assistant":
        return "assistant", parts
    if role == "user":
        return "user", parts
    raise WireError(f"{where}.role must be user, assistant, system or developer, and is {role!r}.")


def _content_in(content: Any, where: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part_in(part, f"{where}[{at}]") for at, part in enumerate(as_list(content, where)))


def _part_in(given: Any, where: str) -> Part:
    part = as_object(given, where)
    kind = text_of(part, "type", where)
    if kind in _TEXTS:
        return Text(text_of(part, "text", where))
    if kind == "refusal":
        return Text(text_of(part, "refusal", where))
    if kind == "input_image" and part.get("image_url") is not None:
        return picture(text_of(part, "image_url", where))
    return Foreign(NAME, kind, part)
