"""Gemini: conversations, part by part, in both directions.

Calls may come without ids here. They get ones that depend only on where they stand, and results without ids answer the
open calls by name and in order. A signature on a part that is no thought is kept as a thought without words before it.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from ferrule.wire import ids
from ferrule.wire.content import attached, json_text, label, left_out, object_out, plain_text, words_or_pointer
from ferrule.wire.conversation import Role, apart, name_of, uses_of
from ferrule.wire.fields import camel, is_document, known, others, own
from ferrule.wire.shape import WireError, as_list, as_object, as_text
from ferrule.wire.thinking import is_own
from ferrule.wire.turn import Document, Extra, Foreign, Image, Part, Result, Text, Thinking, Turn, Use

NAME = "gemini"
_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}
_STANDARD = str.maketrans("-_", "+/")
_PART = known(NAME, "part")
_CALL = known(NAME, "call")
_ANSWER = known(NAME, "response")
_BLOB = {"image": frozenset(("mimeType", "data", "fileUri")), "document": known(NAME, "blob:document") | {"fileUri"}}
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
        if part.__class__ is not Foreign and own(part, NAME) is not None:
            signature = ""  # it is in the part itself
        if signature:
            written, signature = {**written, "thoughtSignature": signature}, ""
        yield written
    if signature:
        yield {"text": "", "thoughtSignature": signature}


def _part_out(part: Part, *, is_user: bool) -> dict[str, Any] | None:
    if not isinstance(part, Foreign | Result) and (kept := own(part, NAME)) is not None:
        return _with_id(kept, part.id) if isinstance(part, Use) else kept
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


def _with_id(part: dict[str, Any], id_: str) -> dict[str, Any]:
    """A call or a result as it came, under the id that both have now: it may have come without one."""
    key = next(key for key in part if camel(key) in {"functionCall", "functionResponse"})
    return part if part[key].get("id") == id_ else {**part, key: {**part[key], "id": id_}}


def _thought_out(part: Thinking) -> dict[str, Any]:
    thought: dict[str, Any] = {"text": part.text, "thought": True}
    return {**thought, "thoughtSignature": part.signature} if part.signature else thought


def _file_out(part: Image | Document) -> dict[str, Any]:
    if (kept := own(part, NAME)) is not None:
        return kept
    kind = {"mimeType": part.media_type} if part.media_type else {}
    if part.url:
        return {"fileData": {**kind, "fileUri": part.url}}
    data = part.data
    if isinstance(part, Document) and part.text:
        data = base64.b64encode(plain_text(part).encode(errors="replace")).decode()
    return {"inlineData": {"mimeType": part.media_type, "data": data}}


def _results_out(results: Sequence[Result], uses: dict[str, Use]) -> Iterator[dict[str, Any]]:
    """All results first; the API counts them against the calls. Pictures and files follow, with a word on whose."""
    for result in results:
        if (kept := own(result, NAME)) is not None:
            yield _with_id(kept, result.id)
            continue
        name = name_of(result, uses)
        if not name:
            raise WireError(
                f"The result of call {result.id} must say its tool's name: this API wants to hear it again."
            )
        said = {"name": name, "response": {"error" if result.failed else "output": words_or_pointer(result)}}
        yield {"functionResponse": {"id": result.id, **said} if result.id else said}
    for result in results:
        if own(result, NAME) is None and (files := attached(result)):
            yield {"text": label(result, name_of(result, uses))}
            yield from map(_file_out, files)


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
    extra = Extra(NAME, part) if others(_named(part), _PART) else None
    if part.get("thought"):
        yield Thinking(pick_text(part, "text", where), signature, wire=NAME, extra=extra)
        return
    found = _held(part, where, id_, waiting, extra)
    if found is None:
        if kinds := [key for key, value in part.items() if value is not None and key not in _META]:
            yield Foreign(NAME, kinds[0], part)
        elif signature:
            yield Thinking("", signature, wire=NAME)
        return
    if signature and (isinstance(found, Foreign) or found.extra is None):
        yield Thinking("", signature, wire=NAME)
    yield found


def _named(part: dict[str, Any]) -> dict[str, Any]:
    """The part under the names of the API's JSON."""
    return {camel(key): value for key, value in part.items()}


def _held(
    part: dict[str, Any], where: str, id_: str, waiting: list[Use], extra: Extra | None
) -> Use | Result | Image | Document | Text | None:
    call, answer = pick_object(part, "functionCall", where), pick_object(part, "functionResponse", where)
    if call:
        args = pick_object(call, "args", f"{where}.functionCall")
        name = as_text(call.get("name"), f"{where}.functionCall.name")
        if others(_named(call), _CALL):
            extra = Extra(NAME, part)
        return Use(pick_text(call, "id", f"{where}.functionCall") or id_, name, args, extra=extra)
    if answer:
        return _result_in(answer, f"{where}.functionResponse", waiting, part)
    if file := _file_in(part, where, extra):
        return file
    text = pick_text(part, "text", where)
    return Text(text, extra=extra) if text else None


def _file_in(part: dict[str, Any], where: str, extra: Extra | None = None) -> Image | Document | None:
    inline, file = pick_object(part, "inlineData", where), pick_object(part, "fileData", where)
    held = inline or file
    kind = pick_text(held, "mimeType", where)
    is_image = kind.startswith("image/") or (bool(file) and not kind)
    if not held or not (is_image or is_document(kind)):
        return None
    if others(_named(held), _BLOB["image" if is_image else "document"]) or held.get("displayName"):
        extra = Extra(NAME, part)
    # The API's own libraries write the other alphabet of base64.
    data = pick_text(inline, "data", f"{where}.inlineData").translate(_STANDARD)
    url = pick_text(file, "fileUri", f"{where}.fileData") if not inline else ""
    if is_image:
        return Image(kind, data, url, extra=extra)
    return Document(kind, data, url=url, title=pick_text(held, "displayName", where), extra=extra)


def _result_in(answer: dict[str, Any], where: str, waiting: list[Use], part: dict[str, Any]) -> Result:
    name, id_ = as_text(answer.get("name"), f"{where}.name"), pick_text(answer, "id", where)
    use = _answered(name, id_, waiting)
    held = pick_object(answer, "response", where)
    failed = "error" in held and held["error"] is not None and "output" not in held
    only = len(held) == 1 and next(iter(held)) in {"output", "result", "error"}
    value = next(iter(held.values())) if only else held
    text = value if isinstance(value, str) else json_text(value) if held else ""
    nested = as_list(answer.get("parts") or (), f"{where}.parts")
    files = (_file_in(as_object(one, f"{where}.parts[{at}]"), f"{where}.parts[{at}]") for at, one in enumerate(nested))
    parts = (*((Text(text),) if text else ()), *(file for file in files if file is not None))
    # An object that is not the one that would be written for its text goes back as it came.
    is_ours = isinstance(value, str) and only and ("error" if failed else "output") in held
    is_ours = is_ours and not nested and not others(_named(answer), _ANSWER) and not others(_named(part), _PART)
    extra = None if is_ours else Extra(NAME, part)
    return Result(id_ or (use.id if use else ""), parts, failed, name, extra=extra)


def _answered(name: str, id_: str, waiting: list[Use]) -> Use | None:
    """The call that a result answers, taken out of those that wait: by its id, else by its name, else the first."""
    if id_:
        fits = [at for at, use in enumerate(waiting) if use.id == id_]
    else:
        fits = [at for at, use in enumerate(waiting) if use.name == name] or [*range(len(waiting))]
    return waiting.pop(fits[0]) if fits else None
