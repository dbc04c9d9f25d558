"""Convert whole Gemini requests and answers to and from neutral turns.

Streams are handled by `gemini_stream`.

Calls may come without ids. They get ids that depend only on their position, and results without ids answer the
open calls by name and in order. A signature on a part that is not a thought is kept as a thought without words
before it.

Schemas go out as `parametersJsonSchema`, which takes JSON Schema as it is. The older `parameters` takes Gemini's
own `Schema`, a part of OpenAPI 3.0; `subset=True` writes that, for backends that know nothing else. There
references are written out in place, keywords with an equivalent are translated, and the rest is left out: the
engine still checks every call against the whole schema.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from ferrule.core.content import Document, Extra, Image, Text
from ferrule.wire import (
    Definition,
    Foreign,
    ModelRequest,
    ModelResponse,
    Part,
    Reason,
    ResponseFormat,
    Result,
    Thinking,
    ToolChoice,
    Turn,
    Usage,
    Use,
    WireError,
    as_list,
    as_object,
    as_text,
    budget,
    conversation,
    count_or_none,
    flag_or,
    is_own,
    number_or_none,
    own_word,
    refuse_failure,
    texts_of,
    tokens,
)
from ferrule.wire.conversation import (
    Role,
    apart,
    find_attachments,
    json_text,
    label,
    name_of,
    object_out,
    omission_note,
    plain_text,
    reason_of,
    uses_of,
    words_or_pointer,
)
from ferrule.wire.fields import (
    bare,
    body_fields,
    camel,
    field_names,
    is_document,
    others,
    own,
    present,
    refuse_hosted,
    tier_in,
    tier_out,
)
from ferrule.wire.schema import LIMIT_DEPTH, list_of, mapping_of, required_of, takes_null, types_of

NAME = "gemini"
_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}
_STANDARD = str.maketrans("-_", "+/")
_PART = field_names(NAME, "part")
_CALL = field_names(NAME, "call")
_ANSWER = field_names(NAME, "response")
_BLOB = {
    "image": frozenset(("mimeType", "data", "fileUri")),
    "document": field_names(NAME, "blob:document") | {"fileUri"},
}
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
    return {"text": omission_note(part)} if isinstance(part, Foreign) and is_user else None


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
        if own(result, NAME) is None and (files := find_attachments(result)):
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
        out += _part_in(
            as_object(one, inside), inside, conversation.derive_id(seed, at), [] if waiting is None else waiting
        )
    return tuple(out)


def _part_in(part: dict[str, Any], where: str, id_: str, waiting: list[Use]) -> Iterator[Part]:
    signature = pick_text(part, "thoughtSignature", where)
    extra = Extra(NAME, part) if others(_camelize_keys(part), _PART) else None
    if part.get("thought"):
        yield Thinking(pick_text(part, "text", where), signature, wire=NAME, extra=extra)
        return
    found = _parse_part(part, where, id_, waiting, extra)
    if found is None:
        if kinds := [key for key, value in part.items() if value is not None and key not in _META]:
            yield Foreign(NAME, kinds[0], part)
        elif signature:
            yield Thinking("", signature, wire=NAME)
        return
    if signature and (isinstance(found, Foreign) or found.extra is None):
        yield Thinking("", signature, wire=NAME)
    yield found


def _camelize_keys(part: dict[str, Any]) -> dict[str, Any]:
    """The part under the names of the API's JSON."""
    return {camel(key): value for key, value in part.items()}


def _parse_part(
    part: dict[str, Any], where: str, id_: str, waiting: list[Use], extra: Extra | None
) -> Use | Result | Image | Document | Text | None:
    call, answer = pick_object(part, "functionCall", where), pick_object(part, "functionResponse", where)
    if call:
        args = pick_object(call, "args", f"{where}.functionCall")
        name = as_text(call.get("name"), f"{where}.functionCall.name")
        if others(_camelize_keys(call), _CALL):
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
    if others(_camelize_keys(held), _BLOB["image" if is_image else "document"]) or held.get("displayName"):
        extra = Extra(NAME, part)
    # The API's own libraries write the other alphabet of base64.
    data = pick_text(inline, "data", f"{where}.inlineData").translate(_STANDARD)
    url = pick_text(file, "fileUri", f"{where}.fileData") if not inline else ""
    if is_image:
        return Image(kind, data, url, extra=extra)
    return Document(kind, data, url=url, title=pick_text(held, "displayName", where), extra=extra)


def _result_in(answer: dict[str, Any], where: str, waiting: list[Use], part: dict[str, Any]) -> Result:
    name, id_ = as_text(answer.get("name"), f"{where}.name"), pick_text(answer, "id", where)
    use = _take_call(name, id_, waiting)
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
    is_ours = (
        is_ours
        and not nested
        and not others(_camelize_keys(answer), _ANSWER)
        and not others(_camelize_keys(part), _PART)
    )
    extra = None if is_ours else Extra(NAME, part)
    return Result(id_ or (use.id if use else ""), parts, failed, name, extra=extra)


def _take_call(name: str, id_: str, waiting: list[Use]) -> Use | None:
    """The call that a result answers, taken out of those that wait: by its id, else by its name, else the first."""
    if id_:
        fits = [at for at, use in enumerate(waiting) if use.id == id_]
    else:
        fits = [at for at, use in enumerate(waiting) if use.name == name] or [*range(len(waiting))]
    return waiting.pop(fits[0]) if fits else None


_WORDS = ("title", "description", "pattern")
_NUMBERS = (
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
)
_FORMATS = {
    "string": {"date-time", "enum"},
    "integer": {"int32", "int64"},
    "number": {"float", "double"},
}
LIMIT_NODES = 5_000
"""References written out may double a schema with every level; this is where that ends."""


def in_subset(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as Gemini's own."""
    return _Writer(schema).write(schema, ())


class _Writer:
    """One schema on its way; it holds what references point into."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def write(self, schema: Any, behind: tuple[str, ...], depth: int = 0) -> dict[str, Any]:
        """`behind` are the references that led here."""
        self._nodes += 1
        if depth > LIMIT_DEPTH or self._nodes > LIMIT_NODES:
            raise WireError("A schema is too large once its references are written out.")
        if not isinstance(schema, Mapping):
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            return self._resolve_reference(schema, reference, behind, depth)
        schema = self._merge_all_of(schema, behind, depth)
        out = {key: schema[key] for key in _WORDS if isinstance(schema.get(key), str)}
        out |= {key: schema[key] for key in _NUMBERS if _is_number(schema.get(key))}
        kinds = [kind for kind in types_of(schema) or _guess_types(schema) if kind != "null"]
        if takes_null(schema):
            out["nullable"] = True
        _bounds(schema, kinds, out)
        branches = self._branches(schema, behind, depth)
        if len(kinds) > 1 and not branches:
            return {**out, "anyOf": [self.write({**schema, "type": kind}, behind, depth + 1) for kind in kinds]}
        if branches:
            out["anyOf"] = branches
        if len(kinds) == 1:
            self._write_type(schema, kinds[0], out, behind, depth)
        return out

    def _resolve_reference(
        self, schema: Mapping[str, Any], reference: str, behind: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        words = {key: schema[key] for key in ("description", "title") if key in schema}
        if reference in behind:
            # A schema that contains itself has no end; the model still hears what kind of value stands here.
            return {"type": "OBJECT", **words}
        target = self._target(reference)
        rest = {key: value for key, value in schema.items() if key not in {"$ref", "$defs", "definitions"}}
        return {**self.write({**target, **rest}, (*behind, reference), depth + 1), **words}

    def _target(self, reference: str) -> Mapping[str, Any]:
        if not reference.startswith("#"):
            raise WireError(
                f"A schema refers to {reference!r}, and only references inside of the schema can be followed."
            )
        found: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise WireError(f"A schema refers to {reference!r}, which is not in it.")
        return found

    def _merge_all_of(self, schema: Mapping[str, Any], behind: tuple[str, ...], depth: int) -> Mapping[str, Any]:
        """`allOf` as one schema: members and demands of all of them."""
        together = list_of(schema, "allOf")
        if depth > LIMIT_DEPTH:
            raise WireError("A schema is too large once its references are written out.")
        merged = {key: value for key, value in schema.items() if key != "allOf"} if together else schema
        for one in together:
            part, seen = self._follow_references(one, behind)
            part = self._merge_all_of(part, seen, depth + 1)
            both = {
                "properties": {**mapping_of(part, "properties"), **mapping_of(merged, "properties")},
                "required": list(dict.fromkeys([*required_of(merged), *required_of(part)])),
            }
            merged = {**part, **merged, **{key: value for key, value in both.items() if value}}
        return merged

    def _follow_references(self, schema: Any, behind: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """What a schema refers to, with its own words on top, and the references that led there."""
        part = schema if isinstance(schema, Mapping) else {}
        while isinstance(reference := part.get("$ref"), str):
            own = {key: value for key, value in part.items() if key != "$ref"}
            if reference in behind:
                return own, behind
            behind = (*behind, reference)
            part = {**self._target(reference), **own}
        return part, behind

    def _branches(self, schema: Mapping[str, Any], behind: tuple[str, ...], depth: int) -> list[dict[str, Any]]:
        given = [one for key in ("anyOf", "oneOf") for one in list_of(schema, key)]
        valued = [one for one in given if not (isinstance(one, Mapping) and types_of(one) == ("null",))]
        return [self.write(one, behind, depth + 1) for one in valued]

    def _write_type(
        self, schema: Mapping[str, Any], kind: str, out: dict[str, Any], behind: tuple[str, ...], depth: int
    ) -> None:
        out["type"] = kind.upper()
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS.get(kind, ()):
            out["format"] = form
        _values(schema, kind, out)
        if kind == "array":
            out["items"] = self._items(schema, behind, depth)
        properties = mapping_of(schema, "properties")
        if kind == "object" and properties:
            out["properties"] = {name: self.write(about, behind, depth + 1) for name, about in properties.items()}
            out["propertyOrdering"] = list(properties)
            if required := [name for name in required_of(schema) if name in properties]:
                out["required"] = required

    def _items(self, schema: Mapping[str, Any], behind: tuple[str, ...], depth: int) -> dict[str, Any]:
        items = schema.get("items")
        several = list_of(schema, "items") or list_of(schema, "prefixItems")
        if several:
            written = [self.write(one, behind, depth + 1) for one in several]
            distinct = [one for at, one in enumerate(written) if one not in written[:at]]
            return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        # An array must say what is in it.
        return self.write(items, behind, depth + 1) or {"type": "STRING"}


def _guess_types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if "properties" in schema:
        return ("object",)
    if "items" in schema or "prefixItems" in schema:
        return ("array",)
    values = _enum_values(schema)
    return ("string",) if values and all(isinstance(value, str) for value in values) else ()


def _bounds(schema: Mapping[str, Any], kinds: list[str], out: dict[str, Any]) -> None:
    """Exclusive bounds as inclusive ones: exactly for whole numbers, and nearly for others."""
    for key, bound, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        value = schema.get(key)
        if _is_number(value) and bound not in out:
            out[bound] = value + step if kinds == ["integer"] and isinstance(value, int) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _enum_values(schema: Mapping[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else list_of(schema, "enum")


def _values(schema: Mapping[str, Any], kind: str, out: dict[str, Any]) -> None:
    """The values that are allowed. Only strings can be listed; others are told in the description."""
    values = _enum_values(schema)
    if not values:
        return
    spoken = [value for value in values if value is not None]
    if kind == "string" and all(isinstance(value, str) and value for value in spoken):
        out["enum"] = spoken
        return
    told = "One of: " + ", ".join(json_text(value) for value in values) + "."
    out["description"] = " ".join(filter(None, (out.get("description"), told)))


_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE", "tool": "ANY"}
_KINDS: dict[str, Literal["auto", "any", "none"]] = {
    "": "auto",
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "VALIDATED": "auto",
    "ANY": "any",
    "NONE": "none",
}
_BODY = field_names(NAME, "body")
_SETTINGS = field_names(NAME, "settings")
_THINKING = field_names(NAME, "thinking")
_DECLARATION = field_names(NAME, "declaration")
_HOSTED = frozenset(
    (
        "retrieval",
        "computerUse",
        "fileSearch",
        "googleSearch",
        "googleMaps",
        "codeExecution",
        "enterpriseWebSearch",
        "googleSearchRetrieval",
        "parallelAiSearch",
        "urlContext",
        "mcpServers",
        "exaAiSearch",
    )
)
"""Tools that run inside of the API."""
_OWN = {"nullable", "propertyOrdering", "property_ordering", "any_of", "example"}
"""Words of Gemini's own schema that JSON Schema does not have."""
_REFUSED = {
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
}
_STOPS: dict[Reason, str] = {
    "end": "STOP",
    "tools": "STOP",
    "length": "MAX_TOKENS",
    "refused": "SAFETY",
    "stopped": "STOP",
}


def definitions_out(definitions: Iterable[Definition], *, subset: bool = False) -> list[dict[str, Any]]:
    """One tool that declares all functions; none where there are none. What runs inside of the API stands behind."""
    declared, hosted = [], []
    for at, one in enumerate(definitions):
        if (kept := own(one, NAME)) is None:
            refuse_hosted(one, at)
            declared.append(_declare_function(one, subset=subset))
        elif one.hosted:
            hosted.append(kept)
        else:
            declared.append(kept)
    return ([{"functionDeclarations": declared}] if declared else []) + hosted


def _declare_function(one: Definition, *, subset: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": one.name, "description": one.words}
    if not subset:
        whole = one.schema if one.schema.get("type") == "object" else {**one.schema, "type": "object"}
        return {**out, "parametersJsonSchema": whole}
    # An object without members is refused; a function without parameters says nothing of them.
    written = in_subset({**one.schema, "type": "object"})
    return {**out, "parameters": written} if written.get("properties") else out


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    """A tool that runs inside of the API is read too, but goes back only there."""
    out: list[Definition] = []
    for at, one in enumerate(as_list(definitions, "tools")):
        tool, where = as_object(one, f"tools[{at}]"), f"tools[{at}]"
        declared = pick(tool, "functionDeclarations")
        hosted = {camel(key): value for key, value in tool.items() if value is not None}
        hosted.pop("functionDeclarations", None)
        if declared is None and not hosted.keys() & _HOSTED:
            raise WireError(f"{where} declares no functions, and names nothing that runs inside of this API.")
        for number, function in enumerate(as_list(declared or (), f"{where}.functionDeclarations")):
            inside = f"{where}.functionDeclarations[{number}]"
            out.append(_definition_in(as_object(function, inside), inside))
        out += (Definition(name, "", {}, extra=Extra(NAME, {name: hosted[name]}), hosted=True) for name in hosted)
    return tuple(out)


def _definition_in(function: dict[str, Any], where: str) -> Definition:
    schema = pick_object(function, "parametersJsonSchema", where)
    written = pick_object(function, "parameters", where)
    if not schema:
        schema = _plain(written, 0) or {"type": "object", "properties": {}}
    # The older form of a schema goes back as it came.
    more = others({camel(key): value for key, value in function.items()}, _DECLARATION)
    extra = Extra(NAME, function) if more or written else None
    name = as_text(function.get("name"), f"{where}.name")
    return Definition(name, pick_text(function, "description", where), schema, extra=extra)


def _plain(schema: Any, depth: int) -> Any:
    """Gemini's own schema as JSON Schema: types in small letters, null as a type, no word on order."""
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    if not isinstance(schema, dict):
        return schema
    out = {key: value for key, value in schema.items() if key not in _OWN and value is not None}
    if isinstance(kind := schema.get("type"), str):
        out["type"] = [kind.lower(), "null"] if schema.get("nullable") else kind.lower()
    if isinstance(properties := schema.get("properties"), dict):
        out["properties"] = {name: _plain(about, depth + 1) for name, about in properties.items()}
    if "items" in out:
        out["items"] = _plain(out["items"], depth + 1)
    branches = pick(schema, "anyOf")
    if isinstance(branches, list):
        out["anyOf"] = [_plain(one, depth + 1) for one in branches]
    return out


def choice_out(choice: ToolChoice) -> dict[str, Any]:
    """The whole `toolConfig`. Whether several may be used at once cannot be said here."""
    if (kept := own(choice, NAME)) is not None:
        return kept
    config: dict[str, Any] = {"mode": _MODES[choice.kind]}
    if choice.kind == "tool":
        config["allowedFunctionNames"] = [choice.name]
    return {"functionCallingConfig": config}


def choice_in(choice: Any) -> ToolChoice | None:
    if choice is None:
        return None
    config = pick(as_object(choice, "toolConfig"), "functionCallingConfig")
    if config is None:
        return None
    given, where = as_object(config, "toolConfig.functionCallingConfig"), "toolConfig.functionCallingConfig"
    kind = _KINDS.get(pick_text(given, "mode", where))
    if kind is None:
        raise WireError(f"{where}.mode must be AUTO, ANY, NONE or VALIDATED, and is {given['mode']!r}.")
    names = as_list(pick(given, "allowedFunctionNames") or (), f"{where}.allowedFunctionNames")
    found = ToolChoice("tool", str(names[0])) if kind == "any" and len(names) == 1 else ToolChoice(kind)
    # What is said besides, and a choice among several, go back as they came.
    return (
        found
        if choice_out(found) == _normalize(choice)
        else ToolChoice(found.kind, found.name, extra=Extra(NAME, choice))
    )


def _normalize(value: Any) -> Any:
    """An object without the fields that say nothing, under the names of the API's JSON."""
    if not isinstance(value, dict):
        return value
    return {camel(key): _normalize(member) for key, member in value.items() if member is not None}


def asked_out(asked: ModelRequest, *, subset: bool = False) -> dict[str, Any]:
    """A body for `generateContent`. The model is also part of the address, and streaming is only that."""
    more = body_fields(asked, NAME)
    out: dict[str, Any] = {"model": asked.model, **turns_out(asked.turns)}
    if asked.definitions:
        out["tools"] = definitions_out(asked.definitions, subset=subset)
        if asked.choice is not None:
            out["toolConfig"] = choice_out(asked.choice)
    if settings := _settings_out(asked, more.get("generationConfig") or {}):
        out["generationConfig"] = settings
    out |= present(serviceTier=tier_out(asked, NAME), store=asked.store)
    return out | {name: value for name, value in more.items() if name != "generationConfig"}


def _settings_out(asked: ModelRequest, more: dict[str, Any]) -> dict[str, Any]:
    out = present(
        maxOutputTokens=asked.max_tokens,
        temperature=asked.temperature,
        topP=asked.top_p,
        topK=asked.top_k,
        stopSequences=list(asked.stop) or None,
        candidateCount=asked.n,
        seed=asked.seed,
        frequencyPenalty=asked.frequency_penalty,
        presencePenalty=asked.presence_penalty,
        responseLogprobs=asked.logprobs,
        logprobs=asked.top_logprobs,
    )
    if asked.format is not None and not _FORMAT & more.keys():
        out["responseMimeType"] = "text/plain" if asked.format.kind == "text" else "application/json"
        out |= present(responseJsonSchema=asked.format.schema)
    own_thinking = more.get("thinkingConfig")
    if own_thinking is not None and _budget_in(own_thinking)[0] == asked.thinking_tokens:
        out["thinkingConfig"] = own_thinking
    elif asked.thinking_tokens is not None:
        out["thinkingConfig"] = _thinking_out(asked.thinking_tokens)
    return out | {name: value for name, value in more.items() if name != "thinkingConfig"}


_FORMAT = frozenset(("responseMimeType", "responseSchema", "responseJsonSchema"))


def _thinking_out(tokens: int) -> dict[str, Any]:
    return {"thinkingBudget": tokens, "includeThoughts": tokens > 0}


def _budget_in(thinking: dict[str, Any]) -> tuple[int | None, str]:
    """The budget and the word that a caller has said: newer models take the word."""
    level = pick_text(thinking, "thinkingLevel", "thinkingConfig").lower()
    said = {"thinkingBudget": pick(thinking, "thinkingBudget")}
    tokens = count_or_none(said, "thinkingBudget", "thinkingConfig")
    return (budget(level), level) if tokens is None and level else (tokens, "")


def _format_in(settings: dict[str, Any]) -> ResponseFormat | None:
    kind = pick_text(settings, "responseMimeType", "generationConfig")
    schema = pick_object(settings, "responseJsonSchema", "generationConfig")
    schema = schema or _plain(pick_object(settings, "responseSchema", "generationConfig"), 0)
    if schema and kind in {"", "application/json"}:
        return ResponseFormat("schema", schema)
    return {"application/json": ResponseFormat("json"), "text/plain": ResponseFormat("text")}.get(kind)


def asked_in(body: Any) -> ModelRequest:
    given = as_object(body, "body")
    settings = {camel(key): value for key, value in pick_object(given, "generationConfig", "body").items()}
    thinking = pick_object(settings, "thinkingConfig", "generationConfig")
    tokens_, level = _budget_in(thinking)
    choice, config = choice_in(pick(given, "toolConfig")), pick(given, "toolConfig")
    where = "generationConfig"
    extra = _extra_in({camel(key): value for key, value in given.items()}, settings, thinking)
    if config and choice is None:
        extra["toolConfig"] = config
    return ModelRequest(
        model=pick_text(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(given.get("tools") or ()),
        choice=choice,
        max_tokens=count_or_none(settings, "maxOutputTokens", where),
        thinking_tokens=tokens_,
        effort=own_word(level),
        temperature=number_or_none(settings, "temperature", where),
        top_p=number_or_none(settings, "topP", where),
        top_k=_whole(number_or_none(settings, "topK", where)),
        stop=texts_of(settings, "stopSequences", where),
        n=count_or_none(settings, "candidateCount", where),
        seed=count_or_none(settings, "seed", where),
        frequency_penalty=number_or_none(settings, "frequencyPenalty", where),
        presence_penalty=number_or_none(settings, "presencePenalty", where),
        logprobs=flag_or(settings, "responseLogprobs", where, otherwise=None),
        top_logprobs=count_or_none(settings, "logprobs", where),
        format=_format_in(settings),
        service_tier=tier_in(pick_text(given, "serviceTier", "body").lower(), NAME),
        store=flag_or(given, "store", "body", otherwise=None),
        extra=Extra(NAME, extra) if extra else None,
    )


def _whole(number: float | None) -> int | None:
    """The API's own libraries write a count as a number with a point."""
    return None if number is None else int(number)


def _extra_in(body: dict[str, Any], settings: dict[str, Any], thinking: dict[str, Any]) -> dict[str, Any]:
    """What no noun holds, and what nouns hold only the meaning of."""
    more, rest = others(body, _BODY), others(settings, _SETTINGS)
    tier = pick_text(body, "serviceTier", "body")
    if tier and tier_in(tier, NAME) != tier:
        more["serviceTier"] = tier
    budgeted, level = _budget_in(thinking)
    if thinking and (level or budgeted is None or thinking != _thinking_out(budgeted)):
        rest["thinkingConfig"] = thinking
    form = _format_in(settings)
    if (settings.get("responseSchema") is not None) or (form is None and settings.get("responseMimeType")):
        rest |= {name: settings[name] for name in _FORMAT & settings.keys()}
    if rest:
        more["generationConfig"] = rest
    return more


def said_in(answer: Any) -> ModelResponse:
    """Calls without ids get ones made from the answer's own id, or from what it says where it has none."""
    given = as_object(answer, "answer")
    refuse_failure(given)
    candidates = as_list(given.get("candidates") or (), "candidates")
    if not candidates and not pick(given, "promptFeedback"):
        raise WireError("The answer must have candidates or promptFeedback.")
    first = as_object(candidates[0], "candidates[0]") if candidates else {}
    content = pick_object(first, "content", "candidates[0]")
    id_ = pick_text(given, "responseId", "answer")
    parts = bare(parts_in(content, "candidates[0].content", seed=id_ or json_text(content)))
    return ModelResponse(
        id=id_,
        model=pick_text(given, "modelVersion", "answer"),
        parts=parts,
        reason=reason_of(_reason_in(given, first), parts),
        usage=_usage_in(pick_object(given, "usageMetadata", "answer")),
    )


def _reason_in(answer: dict[str, Any], candidate: dict[str, Any]) -> Reason:
    if pick(pick_object(answer, "promptFeedback", "answer"), "blockReason") and not candidate:
        return "refused"
    why = pick_text(candidate, "finishReason", "candidates[0]")
    if why in _REFUSED:
        return "refused"
    return "length" if why == "MAX_TOKENS" else "end"


def said_out(said: ModelResponse) -> dict[str, Any]:
    """An answer for a client of this API."""
    # Another API's thinking may be shown; its signature is nothing that a client here could bring back.
    parts = tuple(
        Thinking(part.text, wire=NAME) if isinstance(part, Thinking) and not is_own(part, NAME) else part
        for part in said.parts
    )
    content = {"role": "model", "parts": list(parts_out(Turn("assistant", parts), {}))}
    return {
        "responseId": said.id,
        "modelVersion": said.model,
        "candidates": [{"index": 0, "content": content, "finishReason": _STOPS[said.reason]}],
        "usageMetadata": {
            "promptTokenCount": said.usage.input,
            "candidatesTokenCount": said.usage.output,
            "cachedContentTokenCount": said.usage.cache_read,
            "totalTokenCount": said.usage.input + said.usage.output,
        },
    }


def calls_in(answer: Any) -> tuple[Use, ...]:
    return tuple(part for part in said_in(answer).parts if isinstance(part, Use))


def _usage_in(usage: dict[str, Any]) -> Usage:
    counted = {camel(key): value for key, value in usage.items()}
    return Usage(
        tokens(counted, "promptTokenCount") + tokens(counted, "toolUsePromptTokenCount"),
        tokens(counted, "candidatesTokenCount") + tokens(counted, "thoughtsTokenCount"),
        tokens(counted, "cachedContentTokenCount"),
    )


__all__ = [
    "NAME",
    "asked_in",
    "asked_out",
    "calls_in",
    "choice_in",
    "choice_out",
    "definitions_in",
    "definitions_out",
    "results_out",
    "said_in",
    "said_out",
    "turns_in",
    "turns_out",
]
