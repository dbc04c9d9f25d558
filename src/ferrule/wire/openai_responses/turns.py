"""OpenAI Responses: conversations, item by item, in both directions.

A call and its result are tied by `call_id`, which is the id that the model gave the call. Calls that go out carry no
item id: the API would look for the item that it names.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeGuard

from msgspec.structs import replace

from ferrule.wire.content import (
    arguments_in,
    arguments_out,
    attached,
    document_address,
    document_at,
    document_words,
    left_out,
    marked,
    picture,
    picture_address,
    unmarked_parts,
    words,
)
from ferrule.wire.conversation import Role, grouped, ordered, system_words, uses_of
from ferrule.wire.fields import cache_in, known, others, own
from ferrule.wire.shape import WireError, as_list, as_object, list_or, text_of, text_or
from ferrule.wire.thinking import is_own, uncarried
from ferrule.wire.turn import Cache, Document, Extra, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "openai-responses"
_ITEMS = {
    kind: known(NAME, f"item:{kind}")
    for kind in ("message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
}
_TEXT = frozenset(("type", "text"))
_IMAGE = frozenset(("type", "image_url", "detail"))
_FILE = frozenset(("type", "file_data", "file_url", "filename"))
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = {"input_text", "output_text", "text", "summary_text", "reasoning_text"}


def turns_out(turns: Sequence[Turn], *, marks: str = "") -> dict[str, Any]:
    """`instructions` and `input`. System turns at the beginning are instructions, later ones a developer's messages.

    What this API has no place for is left out: pictures of the model's, thinking that is not sealed or not its own.
    With `marks`, marks for the cache are written; a caller's own go back in any case.
    """
    uses, given = uses_of(turns), list(turns)
    first = next((at for at, turn in enumerate(given) if turn.role != "system" or not _is_plain(turn)), len(given))
    instructions = "\n\n".join(text for text in map(system_words, given[:first]) if text)
    items = [item for turn in ordered(given[first:]) for item in _items_out(turn, uses, marks)]
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _is_plain(turn: Turn) -> bool:
    return own(turn, NAME) is None and all(own(part, NAME) is None for part in turn.parts if isinstance(part, Text))


def _items_out(turn: Turn, uses: dict[str, Use], marks: str) -> Iterator[dict[str, Any]]:
    more = own(turn, NAME) or {}
    if turn.role == "system":
        texts = [_content_out(part, marks) for part in turn.parts if isinstance(part, Text)]
        said = texts if any(text.keys() != _TEXT for text in texts) else system_words(turn)
        yield {"type": "message", "role": "developer", "content": said, **more}
    elif turn.role == "assistant":
        yield from (item for part in turn.parts if (item := _item_out(part)))
    else:
        yield from (result_item(part, uses) for part in turn.parts if isinstance(part, Result))
        rest = [part for part in turn.parts if not isinstance(part, Result)]
        # An item of a kind of its own stands by itself, not among what the user says.
        yield from (part.block for part in rest if _is_item(part))
        if content := [_content_out(part, marks) for part in rest if not _is_item(part)]:
            is_words = len(content) == 1 and content[0].keys() == _TEXT
            said = content[0]["text"] if is_words else content
            yield {"type": "message", "role": "user", "content": said, **more}


def _is_item(part: Part) -> TypeGuard[Foreign]:
    return isinstance(part, Foreign) and part.wire == NAME and part.kind.endswith("_output")


def _item_out(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else None
    if (kept := own(part, NAME)) is not None:
        return kept  # nothing, for what stands in the message of the part before
    if isinstance(part, Text):
        return {"type": "message", "role": "assistant", "content": part.text} if part.text else None
    if isinstance(part, Use):
        return call_item(part)
    if isinstance(part, Thinking):
        # Nothing is stored, so reasoning that is not sealed could not be found by its id.
        return reasoning_item(part) if part.sealed and is_own(part, NAME) else None
    return None


def call_item(use: Use) -> dict[str, Any]:
    bundle = {"namespace": use.namespace} if use.namespace else {}
    if use.is_text:
        return {"type": "custom_tool_call", "call_id": use.id, "name": use.name, **bundle, "input": str(use.input)}
    return {"type": "function_call", "call_id": use.id, "name": use.name, **bundle, "arguments": arguments_out(use)}


def reasoning_item(part: Thinking) -> dict[str, Any]:
    """Reasoning as this API keeps it. Its id is held as the signature; a made-up one would not fit the seal."""
    out: dict[str, Any] = {"type": "reasoning"}
    if part.signature:
        out["id"] = part.signature
    out["summary"] = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {**out, "encrypted_content": part.sealed} if part.sealed else out


def result_item(result: Result, uses: dict[str, Use]) -> dict[str, Any]:
    if (kept := own(result, NAME)) is not None:
        return kept
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


def _content_out(part: Part, marks: str = "") -> dict[str, Any]:
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else {"type": "input_text", "text": left_out(part)}
    if (kept := own(part, NAME)) is not None:
        return kept
    assert isinstance(part, Text | Image | Document), "A turn of the user holds nothing else."
    return _with_mark(_bare_out(part), part.cache, marks)


def _bare_out(part: Text | Image | Document) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": picture_address(part), "detail": part.detail or "auto"}
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if part.text:
        return {"type": "input_text", "text": document_words(part)}
    if part.url:
        return {"type": "input_file", "file_url": part.url, **({"filename": part.title} if part.title else {})}
    # The API wants a name; from its ending it tells what the file is.
    name = part.title or ("document.pdf" if part.media_type == "application/pdf" else "document.txt")
    return {"type": "input_file", "filename": name, "file_data": document_address(part)}


def _with_mark(block: dict[str, Any], cache: Cache | None, marks: str) -> dict[str, Any]:
    if cache is None or not marks:
        return block
    span = {"ttl": cache.ttl} if cache.ttl in {"30m", "12h"} else {}
    return {**block, "prompt_cache_breakpoint": {"mode": "explicit", **span}}


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `instructions` and its `input`."""
    given = as_object(body, "body")
    if given.get("previous_response_id"):
        raise WireError("previous_response_id names a conversation that only the API has; send its items as input.")
    return whole_turns_in(given)


def whole_turns_in(body: dict[str, Any]) -> tuple[Turn, ...]:
    """The same, whatever else the body names."""
    instructions = text_or(body, "instructions", "body")
    system = (Turn("system", (Text(instructions),)),) if instructions else ()
    said = body.get("input")
    items = [{"role": "user", "content": said}] if isinstance(said, str) else list_or(body, "input", "body")
    turns = grouped(items_in(items, "input"))
    first = next((at for at, turn in enumerate(turns) if turn.role != "system"), len(turns))
    # At the beginning it would be taken for instructions, and stays a message.
    leading = (replace(turn, extra=turn.extra or Extra(NAME, {"role": "developer"})) for turn in turns[:first])
    return (*system, *leading, *turns[first:])


def items_in(items: Iterable[Any], name: str) -> Iterator[Turn]:
    """Who said it and what, for each item."""
    for at, item in enumerate(items):
        where = f"{name}[{at}]"
        yield _item_in(as_object(item, where), where)


def _item_in(item: dict[str, Any], where: str) -> Turn:
    # What has neither a type nor a speaker refers to an item that the API keeps.
    kind = text_or(item, "type", where) or ("item_reference" if "role" not in item and "id" in item else "message")
    if kind == "message":
        return _message_in(item, where)
    names = _ITEMS.get(kind)
    extra = Extra(NAME, item) if names is not None and others(item, names) else None
    if kind == "function_call":
        values = arguments_in(text_or(item, "arguments", where))
        if isinstance(values, str):
            extra = Extra(NAME, item)  # a caller's own goes back as it came
        id_, bundle = text_of(item, "call_id", where), text_or(item, "namespace", where)
        use = Use(id_, text_of(item, "name", where), values, extra=extra, namespace=bundle)
        return Turn("assistant", (use,))
    if kind == "custom_tool_call":
        text, id_ = text_of(item, "input", where), text_of(item, "call_id", where)
        name, bundle = text_of(item, "name", where), text_or(item, "namespace", where)
        return Turn("assistant", (Use(id_, name, text, is_text=True, extra=extra, namespace=bundle),))
    if kind in {"function_call_output", "custom_tool_call_output"}:
        return Turn("user", (_result_in(item, where, extra),))
    if kind == "reasoning":
        return Turn("assistant", (_reasoning_in(item, where),))
    return Turn("user" if kind.endswith("_output") else "assistant", (Foreign(NAME, kind, item),))


def _result_in(item: dict[str, Any], where: str, extra: Extra | None) -> Result:
    given = _content_in(item.get("output"), f"{where}.output")
    parts, failed = unmarked_parts(given)
    is_list = isinstance(item.get("output"), list) and not any(isinstance(part, Image | Document) for part in parts)
    if item.get("name") or is_list or any(not isinstance(part, Foreign) and part.extra is not None for part in given):
        extra = Extra(NAME, item)
    return Result(text_of(item, "call_id", where), parts, failed, text_or(item, "name", where), extra=extra)


def _reasoning_in(item: dict[str, Any], where: str) -> Thinking:
    told = _content_in(item.get("summary"), f"{where}.summary") or _content_in(item.get("content"), f"{where}.content")
    text = "\n\n".join(part.text for part in told if isinstance(part, Text))
    sealed = text_or(item, "encrypted_content", where)
    if found := uncarried(text, sealed, NAME):
        return found
    made = Thinking(text, text_or(item, "id", where), sealed, NAME)
    # Reasoning that is not sealed is found by its id, which only a caller of this API can mean.
    return made if sealed and reasoning_item(made) == item else replace(made, extra=Extra(NAME, item))


def _message_in(item: dict[str, Any], where: str) -> Turn:
    said = text_of(item, "role", where)
    role = _ROLES.get(said)
    if role is None:
        raise WireError(f"{where}.role must be user, assistant, system or developer, and is {said!r}.")
    parts = _content_in(item.get("content"), f"{where}.content")
    more = others(item, _ITEMS["message"])
    if role == "assistant":
        if not more and all(not isinstance(part, Foreign) and part.extra is None for part in parts):
            return Turn(role, parts)
        # A message that has an id is one item, however many parts it has: the first of them holds it.
        parts = parts or (Text(""),)  # one that was cut before its first word
        holders = (Extra(NAME, item), *(Extra(NAME, {}) for _ in parts[1:]))
        texts = [part for part in parts if isinstance(part, Text)]
        if len(texts) != len(parts):
            return Turn(role, (Foreign(NAME, "message", item),))
        return Turn(role, tuple(replace(text, extra=one) for text, one in zip(texts, holders, strict=True)))
    if role == "user":
        return Turn(role, parts, Extra(NAME, more) if more else None)
    words = tuple(part for part in parts if isinstance(part, Text))
    if all(text.extra is None for text in words):
        words = (Text("\n\n".join(text.text for text in words)),)
    if said == "system" or more:
        more = {"role": said, **more}
    return Turn(role, words, Extra(NAME, more) if more else None)


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
        if part.keys() == _TEXT:
            return Text(text_of(part, "text", where))
        return Text(text_of(part, "text", where), cache_in(part), _kept(part, _TEXT))
    if kind == "refusal":
        return Text(text_of(part, "refusal", where), extra=Extra(NAME, part))
    if kind == "input_image" and part.get("image_url") is not None:
        detail = text_or(part, "detail", where)
        found = picture(text_of(part, "image_url", where))
        return replace(
            found, detail="" if detail == "auto" else detail, cache=cache_in(part), extra=_kept(part, _IMAGE)
        )
    if kind == "input_file":
        return _file_in(part, where)
    return Foreign(NAME, kind, part)


def _kept(part: dict[str, Any], names: frozenset[str]) -> Extra | None:
    return Extra(NAME, part) if others(part, names) else None


def _file_in(part: dict[str, Any], where: str) -> Document | Foreign:
    """A file that the API itself keeps is known only to this API."""
    title, url = text_or(part, "filename", where), text_or(part, "file_url", where)
    found = document_at(text_or(part, "file_data", where), title)
    if url and not part.get("file_data"):
        found = Document("application/pdf", url=url, title=title)
    if found is None or part.get("file_id") or (url and part.get("file_data")):
        return Foreign(NAME, "input_file", part)
    is_whole = (title or url) and not others(part, _FILE)
    return replace(found, cache=cache_in(part), extra=None if is_whole else Extra(NAME, part))
