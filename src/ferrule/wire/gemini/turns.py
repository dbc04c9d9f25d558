"""Gemini: conversations, part by part, in both directions.

Calls may come without ids here. They get ones that depend only on where they stand, and results without ids answer the
open calls by name and in order. A signature on a part that is no thought is kept as a thought without words before it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from ferrule.wire import ids
from ferrule.wire.content import attached, document_words, json_text, label, left_out, object_out, words_or_pointer
from ferrule.wire.conversation import Role, apart, name_of, uses_of
from ferrule.wire.shape import WireError, as_list, as_object, as_text
from ferrule.wire.thinking import is_own
from ferrule.wire.turn import Document, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "gemini"
_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}
_STANDARD = str.maketrans("-_", "+/")
_META = {"text", "thought", "thoughtSignature", "thought_signature", "videoMetadata", "partMetadata", "mediaResolution"}


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: "_" + found.group().lower(), name)


def pick(holder: dict[str, Any], key: str) -> Any:
    """A field by either of the two spellings that this API takes."""
    value = holder.get(key)
    return holder.get(_snake(key)) if value is None else value


def pick_object(holder: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """An object by either spelling; an empty one where it is missing."""
    value = pick(holder, key)
    return {} if value is None else as_object(value, f"{where}.{key}")


def pick_text(holder: dict[str, Any], key: str, where: str) -> str:
    """A string by either spelling; an empty one where it is missing."""
    value = pick(holder, key)
    return "" if value is None else as_text(value, f"{where}.{key}")


def turns_out(turns: Sequence[Turn]) -> dict[str, Any]:
    """`systemInstruction` and `contents`."""
    uses = uses_of(turns)
    system, rest = apart(turns)
    contents = [
        {"role": "model" if turn.role == "assistant" else "user", "parts": parts}
        for turn in rest
        if (parts := list(parts_out(turn, uses)))
    ]
    return (
        {"systemInstruction": {"parts": [{"text": system}]}, "contents": contents} if system else {"contents": contents}
    )


def parts_out(turn: Turn, uses: dict[str, Use]) -> Iterator[dict[str, Any]]:
    """The parts of one turn; a signature goes onto the part that it came with."""
    signature = ""
    results = [part for part in turn.parts if isinstance(part, Result)]
    yield from _results_out(results, uses)
    for part in turn.parts:
        if isinstance(part, Thinking) and not part.text:
            signature = part.signature if is_own(part, NAME) else ""
            continue
        written = _part_out(part, is_user=turn.role == "user")
        if written is None:
            continue
        if signature:
            written, signature = {**written, "thoughtSignature": signature}, ""
        yield written
    if signature:
        yield {"text": "", "thoughtSignature": signature}


def _part_out(part: Part, *, is_user: bool) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"text": part.text} if part.text else None
    if isinstance(part, Image | Document):
        return _file_out(part)
    if isinstance(part, Thinking):
        return _thought_out(part) if is_own(part, NAME) else None
    if isinstance(part, Use):
        call = {"name": part.name, "args": object_out(part)}
        return {"functionCall": {"id": part.id, **call} if part.id else call}
    if isinstance(part, Foreign) and part.wire == NAME:
        return part.block
    return {"text": left_out(part)} if isinstance(part, Foreign) and is_user else None


def _thought_out(part: Thinking) -> dict[str, Any]:
    thought: dict[str, Any] = {"text": part.text, "thought": True}
    return {**thought, "thoughtSignature": part.signature} if part.signature else thought


def _file_out(part: Image | Document) -> dict[str, Any]:
    if part.url:
        kind = {"mimeType": part.media_type} if part.media_type else {}
        return {"fileData": {**kind, "fileUri": part.url}}
    if isinstance(part, Document) and part.text:
        return {"text": document_words(part)}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _results_out(results: Sequence[Result], uses: dict[str, Use]) -> Iterator[dict[str, Any]]:
    """All results first; the API counts them against the calls. Pictures follow, with a word on where they belong."""
    for result in results:
        name = name_of(result, uses)
        if not name:
            raise WireError(
                f"The result of call {result.id} must say its tool's name: this API wants to hear it again."
            )
        said = {"name": name, "response": {"error" if result.failed else "output": words_or_pointer(result)}}
        yield {"functionResponse": {"id": result.id, **said} if result.id else said}
    for result in results:
        if images := attached(result):
            yield {"text": label(result, name_of(result, uses))}
            yield from map(_file_out, images)


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:
    """The one content that answers the calls of the turn before; `uses` tells the names that the results do not."""
    parts = list(_results_out(results, {use.id: use for use in uses}))
    return [{"role": "user", "parts": parts}] if parts else []


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `systemInstruction` and its `contents`."""
    given = as_object(body, "body")
    turns: list[Turn] = []
    if system := _system_in(pick(given, "systemInstruction")):
        turns.append(Turn("system", (Text(system),)))
    contents = pick(given, "contents")
    listed = [contents] if isinstance(contents, dict | str) else as_list(contents or (), "contents")
    waiting: list[Use] = []
    for at, one in enumerate(listed):
        where = f"contents[{at}]"
        content = {"parts": [{"text": one}]} if isinstance(one, str) else as_object(one, where)
        role = _ROLES.get(pick_text(content, "role", where) or "user")
        if role is None:
            raise WireError(f"{where}.role must be user or model, and is {content['role']!r}.")
        parts = parts_in(content, where, seed=str(at), waiting=waiting)
        if role == "assistant":
            waiting = [part for part in parts if isinstance(part, Use)]
        turns.append(Turn(role, parts))
    return tuple(turns)


def _system_in(given: Any) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    parts = parts_in(as_object(given, "systemInstruction"), "systemInstruction", seed="")
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def parts_in(content: dict[str, Any], where: str, *, seed: str, waiting: list[Use] | None = None) -> tuple[Part, ...]:
    """The parts of one content. `waiting` are the calls that no result has answered yet; answered ones leave it."""
    out: list[Part] = []
    for at, one in enumerate(as_list(content.get("parts") or (), f"{where}.parts")):
        inside = f"{where}.parts[{at}]"
        out += _part_in(as_object(one, inside), inside, ids.made(seed, at), [] if waiting is None else waiting)
    return tuple(out)


def _part_in(part: dict[str, Any], where: str, id_: str, waiting: list[Use]) -> Iterator[Part]:
    signature = pick_text(part, "thoughtSignature", where)
    if part.get("thought"):
        yield Thinking(pick_text(part, "text", where), signature, wire=NAME)
        return
    if signature:
        yield Thinking("", signature, wire=NAME)
    call, answer = pick_object(part, "functionCall", where), pick_object(part, "functionResponse", where)
    if call:
        args = pick_object(call, "args", f"{where}.functionCall")
        name = as_text(call.get("name"), f"{where}.functionCall.name")
        yield Use(pick_text(call, "id", f"{where}.functionCall") or id_, name, args)
    elif answer:
        yield _result_in(answer, f"{where}.functionResponse", waiting)
    elif image := _image_in(part, where):
        yield image
    elif text := pick_text(part, "text", where):
        yield Text(text)
    elif kinds := [key for key, value in part.items() if value is not None and key not in _META]:
        yield Foreign(NAME, kinds[0], part)


def _image_in(part: dict[str, Any], where: str) -> Image | None:
    inline, file = pick_object(part, "inlineData", where), pick_object(part, "fileData", where)
    kind = pick_text(inline or file, "mimeType", where)
    if inline and kind.startswith("image/"):
        # The API's own libraries write the other alphabet of base64.
        return Image(kind, pick_text(inline, "data", f"{where}.inlineData").translate(_STANDARD))
    if file and (not kind or kind.startswith("image/")):
        return Image(kind, "", pick_text(file, "fileUri", f"{where}.fileData"))
    return None


def _result_in(answer: dict[str, Any], where: str, waiting: list[Use]) -> Result:
    name, id_ = as_text(answer.get("name"), f"{where}.name"), pick_text(answer, "id", where)
    use = _answered(name, id_, waiting)
    held = pick_object(answer, "response", where)
    failed = "error" in held and held["error"] is not None and "output" not in held
    only = len(held) == 1 and next(iter(held)) in {"output", "result", "error"}
    value = next(iter(held.values())) if only else held
    text = value if isinstance(value, str) else json_text(value) if held else ""
    nested = as_list(answer.get("parts") or (), f"{where}.parts")
    images = (
        _image_in(as_object(one, f"{where}.parts[{at}]"), f"{where}.parts[{at}]") for at, one in enumerate(nested)
    )
    parts = (*((Text(text),) if text else ()), *(image for image in images if image is not None))
    return Result(id_ or (use.id if use else ""), parts, failed, name)


def _answered(name: str, id_: str, waiting: list[Use]) -> Use | None:
    """The call that a result answers, taken out of those that wait: by its id, else by its name, else the first."""
    if id_:
        fits = [at for at, use in enumerate(waiting) if use.id == id_]
    else:
        fits = [at for at, use in enumerate(waiting) if use.name == name] or [*range(len(waiting))]
    return waiting.pop(fits[0]) if fits else None
