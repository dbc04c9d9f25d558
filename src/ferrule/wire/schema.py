"""Adapt JSON Schemas and tool definitions to APIs and hosts that accept less than all of JSON Schema.

Nothing here changes the schema that it is given; parts that stay as they are, are not copied. A schema is walked
as one: the names under `properties` are parameters and never keywords, and values in `enum`, `const`, `default`
or `examples` are data.

The module also defines Anthropic's tools that are named by a type and carry no schema, lists the limits of hosts
that speak another's API, and holds the code that the two OpenAI APIs share.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ferrule.core.content import Extra
from ferrule.core.errors import ConfigError
from ferrule.wire import (
    Definition,
    ModelRequest,
    ResponseFormat,
    ToolChoice,
    WireError,
    as_object,
    count_or_none,
    flag_or,
    number_or_none,
    object_or,
    text_of,
    text_or,
)
from ferrule.wire.conversation import FREE
from ferrule.wire.fields import others, present, refuse_hosted, tier_in, tier_out

Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]

LIMIT_DEPTH = 100
"""No tool needs more, and a schema that is deeper is an attack."""

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords that hold schemas by name."""
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
"""Keywords that hold several schemas."""
ONES = (
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
)
"""Keywords that hold one schema."""
_HOLDERS = frozenset((*MAPS, *LISTS, *ONES))
_COMBINED = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "dependentSchemas", "dependencies")
)
"""Keywords by which other schemas speak about the same object."""

_OPTIONAL = (
    "optional",
    "if not specified",
    "defaults to",
    "set to true to",
    "set to false to",
    "if provided",
    "when provided",
    "can be omitted",
    "not required",
)
"""Words by which a description takes back what `required` says."""
_OPTIONAL_IN_CHAT = (*_OPTIONAL, "only provide if")

_NOT_STRICT = frozenset(
    (
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "oneOf",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
        "prefixItems",
        "minLength",
        "maxLength",
        "default",
    )
)
"""What strict mode refuses."""


def transform_schema(schema: Mapping[str, Any], change: Change, depth: int = 0) -> Mapping[str, Any]:
    """The schema with `change` done to every schema in it, the inner ones first."""
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    inner = {key: value for key, value in schema.items() if key in _HOLDERS}
    new = {key: _transform_keyword(key, value, change, depth + 1) for key, value in inner.items()}
    if any(new[key] is not inner[key] for key in inner):
        schema = {**schema, **new}
    return change(schema)


def _transform_keyword(key: str, value: Any, change: Change, depth: int) -> Any:
    if key in MAPS and isinstance(value, Mapping):
        members = {name: _transform_member(member, change, depth) for name, member in value.items()}
        return members if any(members[name] is not value[name] for name in value) else value
    if isinstance(value, list):
        listed = [_transform_member(member, change, depth) for member in value]
        return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
    return _transform_member(value, change, depth)


def _transform_member(value: Any, change: Change, depth: int) -> Any:
    # `true` and `false` are schemas too, and have nothing to change.
    return transform_schema(value, change, depth) if isinstance(value, Mapping) else value


def loosen_schema(schema: Mapping[str, Any], *, chat: bool) -> Mapping[str, Any]:
    """A foreign tool's schema with `required` as it is meant, and without keywords that OpenAI's APIs stumble over."""
    phrases = _OPTIONAL_IN_CHAT if chat else _OPTIONAL
    return transform_schema(schema, lambda one: _loosen_one(one, phrases))


def _loosen_one(schema: Mapping[str, Any], phrases: tuple[str, ...]) -> Mapping[str, Any]:
    unwanted = {key for key in ("strict", "format") if key in schema and (key == "strict" or schema[key] == "uri")}
    required = schema.get("required")
    if isinstance(required, list):
        kept = truly_required(schema, phrases)
        if kept != required:
            schema = {**schema, "required": kept}
        if not kept:
            unwanted.add("required")
    return {key: value for key, value in schema.items() if key not in unwanted} if unwanted else schema


def truly_required(schema: Mapping[str, Any], phrases: tuple[str, ...] = _OPTIONAL_IN_CHAT) -> list[str]:
    """The required parameters that nothing else in their schema calls optional."""
    described = mapping_of(schema, "properties")
    return [name for name in required_of(schema) if not _is_optional(described.get(name), phrases)]


def _is_optional(about: Any, phrases: tuple[str, ...]) -> bool:
    if not isinstance(about, Mapping):
        return False
    if "default" in about or takes_null(about) or "boolean" in types_of(about):
        return True
    said = about.get("description")
    return isinstance(said, str) and any(phrase in said.lower() for phrase in phrases)


def list_of(schema: Mapping[str, Any], key: str) -> list[Any]:
    """What a keyword lists; nothing where it holds something else, since schemas come from anywhere."""
    value = schema.get(key)
    return value if isinstance(value, list) else []


def mapping_of(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """What a keyword holds by name; nothing where it holds something else."""
    value = schema.get(key)
    return value if isinstance(value, Mapping) else {}


def required_of(schema: Mapping[str, Any]) -> list[str]:
    return [name for name in list_of(schema, "required") if isinstance(name, str)]


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    return tuple(member for member in kind if isinstance(member, str)) if isinstance(kind, list) else ()


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Does a schema itself, or one of its alternatives, allow null?"""
    if schema.get("nullable") is True or "null" in types_of(schema):
        return True
    branches = [member for key in ("anyOf", "oneOf") for member in list_of(schema, key)]
    return any(isinstance(branch, Mapping) and "null" in types_of(branch) for branch in branches)


def close_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Objects with named members take no others, unless they say otherwise.

    An object that several schemas describe together stays open: each of them names only some of its members.
    """
    has_definitions = not {"$defs", "definitions"}.isdisjoint(schema)
    done: Mapping[str, Any] = _close_value(schema, shared=has_definitions and _shares_definitions(schema, 0), depth=0)
    return done


def _close_value(schema: Any, *, shared: bool, depth: int) -> Any:
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    if not isinstance(schema, Mapping):
        return schema
    new: dict[str, Any] = {}
    for key in ("items", "additionalProperties", "contains"):
        if isinstance(schema.get(key), Mapping):
            new[key] = _close_value(schema[key], shared=shared, depth=depth + 1)
    for key in ("properties", "patternProperties", *(() if shared else ("$defs", "definitions"))):
        if isinstance(schema.get(key), Mapping):
            new[key] = {name: _close_value(one, shared=shared, depth=depth + 1) for name, one in schema[key].items()}
    for key in ("anyOf", "oneOf", "prefixItems", "items"):
        if isinstance(schema.get(key), list) and (key not in _COMBINED or not _names_members(schema)):
            new[key] = [_close_value(one, shared=shared, depth=depth + 1) for one in schema[key]]
    if _names_members(schema) and not _COMBINED & schema.keys() and not _says_otherwise(schema):
        new["additionalProperties"] = False
    return {**schema, **new} if new else schema


def _names_members(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("properties"), Mapping)


def _says_otherwise(schema: Mapping[str, Any]) -> bool:
    return any(key in schema for key in ("additionalProperties", "unevaluatedProperties", "patternProperties"))


def _shares_definitions(schema: Any, depth: int) -> bool:
    """May a definition be only one of several that describe the same object?"""
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    if isinstance(schema, list):
        return any(_shares_definitions(one, depth) for one in schema if isinstance(one, Mapping))
    if not isinstance(schema, Mapping):
        return False
    if "allOf" in schema or ("$ref" in schema and (_names_members(schema) or len(_COMBINED & schema.keys()) > 1)):
        return True
    held = ((key, value) for key, value in schema.items() if key in _HOLDERS)
    return any(
        _shares_definitions(list(value.values()) if key in MAPS and isinstance(value, Mapping) else value, depth + 1)
        for key, value in held
    )


def allows_strict(schema: Mapping[str, Any]) -> bool:
    """Could this schema, once closed, be sent in strict mode? Every member is required there, at any depth."""
    refused: list[Mapping[str, Any]] = []

    def look(one: Mapping[str, Any]) -> Mapping[str, Any]:
        if not _is_strict(one):
            refused.append(one)
        return one

    transform_schema(schema, look)
    return not refused and schema.get("type") == "object" and not {"anyOf", "$ref"} & schema.keys()


def _is_strict(schema: Mapping[str, Any]) -> bool:
    if _NOT_STRICT & schema.keys():
        return False
    if "object" not in types_of(schema) and "properties" not in schema:
        return True
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or schema.get("additionalProperties", False) is not False:
        return False
    return set(properties) == set(required_of(schema))


def _text(words: str) -> dict[str, Any]:
    return {"type": "string", "description": words}


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_POINT = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_ACTIONS = [
    "key",
    "type",
    "mouse_move",
    "left_click",
    "left_click_drag",
    "right_click",
    "middle_click",
    "double_click",
    "screenshot",
    "cursor_position",
]

_COMPUTER = Definition(
    "computer",
    "Use the mouse and the keyboard of a computer, and take pictures of its screen. "
    "Take a picture first to see where things are.",
    _object(
        ["action"],
        action={"type": "string", "enum": _ACTIONS, "description": "What to do."},
        coordinate={**_POINT, "description": "Where on the screen: pixels from the left, then from the top."},
        text=_text("What to type, or the key to press."),
    ),
)
_EDITOR = Definition(
    "str_replace_editor",
    "View, create and edit text files. In str_replace, old_str must occur exactly once in the file.",
    _object(
        ["command", "path"],
        command={
            "type": "string",
            "enum": ["view", "create", "str_replace", "insert", "undo_edit"],
            "description": "What to do with the file.",
        },
        path=_text("The absolute path of the file or folder."),
        file_text=_text("For create: the content of the new file."),
        old_str=_text("For str_replace: the text to replace."),
        new_str=_text("For str_replace: the new text. For insert: the text to insert."),
        insert_line={"type": "integer", "description": "For insert: the line after which the text is inserted."},
        view_range={
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 2,
            "maxItems": 2,
            "description": "For view: the first and the last line, from 1; -1 is the end of the file.",
        },
    ),
)
_BASH = Definition(
    "bash",
    "Run a command in a shell that keeps its state from one call to the next.",
    _object(
        [],
        command=_text("The command to run. It is needed unless the shell is restarted."),
        restart={"type": "boolean", "description": "Start the shell anew."},
    ),
)

_KINDS = {"computer_": _COMPUTER, "text_editor_": _EDITOR, "bash_": _BASH}


def builtin(kind: str, name: str) -> Definition | None:
    """The tool that a type such as `bash_20241022` stands for, under the name that the caller gave it."""
    for prefix, definition in _KINDS.items():
        if kind.startswith(prefix) and kind.removeprefix(prefix).isdigit():
            return Definition(name or definition.name, definition.words, definition.schema)
    return None


_CHECKS = frozenset(("format", "pattern", "minimum", "maximum"))


class HostSchemaRules(NamedTuple):
    """What holds for some models of a host."""

    host: str
    models: tuple[str, ...] = ()
    """The row holds for models whose name contains one of these; for all where there are none."""
    drops: frozenset[str] = frozenset()
    """Keywords that its schemas do without."""
    strict: bool = False
    """Does it want strict definitions, where the schema allows that?"""
    closes: bool = False
    """Does it want `additionalProperties: false`?"""
    describes: bool = False
    """Does it want every parameter described?"""
    tools: bool = True
    """Can it call tools at all?"""


HOSTS = (
    HostSchemaRules("deepseek", ("speciale",), tools=False),
    HostSchemaRules("deepseek", ("v3.2",), strict=True, closes=True),
    HostSchemaRules("deepseek", ("v3",), strict=True),
    HostSchemaRules("deepseek"),
    HostSchemaRules("gemini", ("gemini-3",), strict=True, describes=True),
    HostSchemaRules("gemini", describes=True),
    HostSchemaRules("ollama", ("llama3", "mistral", "mixtral", "command-r"), drops=_CHECKS),
    HostSchemaRules("ollama", drops=_CHECKS, tools=False),
    HostSchemaRules("openai"),
)
"""The first row that fits holds."""


def host_row(host: str, model: str = "") -> HostSchemaRules:
    """The row of a model at a host."""
    found = (row for row in HOSTS if row.host == host)
    for row in found:
        if not row.models or any(part in model.lower() for part in row.models):
            return row
    known = ", ".join(dict.fromkeys(row.host for row in HOSTS))
    raise ConfigError(f"No host is called {host!r}. There are: {known}.")


def for_host(schema: Mapping[str, Any], host: str, model: str = "") -> Mapping[str, Any]:
    """A schema as a host takes it."""
    row = host_row(host, model)
    if row.drops:
        schema = transform_schema(schema, lambda one: _without(one, row.drops))
    if row.describes:
        schema = transform_schema(schema, _fill_descriptions)
    return close_schema(schema) if row.closes else schema


def _without(schema: Mapping[str, Any], keys: frozenset[str]) -> Mapping[str, Any]:
    return {key: value for key, value in schema.items() if key not in keys} if keys & schema.keys() else schema


def _fill_descriptions(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return schema
    silent = {
        name: {**about, "description": f"The {name.replace('_', ' ')}."}
        for name, about in properties.items()
        if isinstance(about, Mapping) and not about.get("description")
    }
    return {**schema, "properties": {**properties, **silent}} if silent else schema


ANYTHING = "start: /[\\s\\S]*/"
"""The grammar of a free-text tool that takes any text."""

_WORDS: dict[str, Literal["auto", "any", "none"]] = {"auto": "auto", "required": "any", "none": "none"}
_SPOKEN: dict[str, str] = {kind: word for word, kind in _WORDS.items()}


class ToolSchema(NamedTuple):
    """A definition with the schema that is sent."""

    definition: Definition
    schema: Mapping[str, Any]
    strict: bool


def ready(
    definitions: Iterable[Definition],
    *,
    strict: bool,
    loosen: bool,
    chat: bool,
    close: bool,
    host: str,
    model: str,
    wire: str,
) -> Iterator[ToolSchema]:
    """Definitions as a host takes them; none where it takes no tools. Strict only where the schema can be strict."""
    row = host_row(host, model) if host else None
    if row is not None and not row.tools:
        return
    wanted = strict or (row is not None and row.strict)
    for at, one in enumerate(definitions):
        if one.hosted and (one.extra is None or one.extra.wire != wire):
            refuse_hosted(one, at)
        schema = loosen_schema(one.schema, chat=chat) if loosen else one.schema
        schema = for_host(schema, host, model) if host else schema
        is_strict = (wanted or bool(one.strict)) and allows_strict(schema)
        if not one.grammar and (close or is_strict):
            schema = close_schema(schema)
        if schema.get("type") != "object" or "properties" not in schema:
            schema = {"properties": {}, **schema, "type": "object"}
        yield ToolSchema(one, schema, is_strict)


def function_in(holder: dict[str, Any], where: str) -> Definition:
    """A tool with a schema; without parameters it takes none."""
    schema = object_or(holder, "parameters", where) or {"type": "object", "properties": {}}
    strict = flag_or(holder, "strict", where, otherwise=None)
    # Not to be strict is what is said in any case.
    return Definition(
        text_of(holder, "name", where), text_or(holder, "description", where), schema, strict=strict or None
    )


def free_text(name: str, words: str, grammar: str) -> Definition:
    """A tool that takes free text, with the schema under which other APIs know it."""
    about = {"type": "string", "description": "The whole input of the tool, as text."}
    schema = {"type": "object", "properties": {FREE: about}, "required": [FREE], "additionalProperties": False}
    return Definition(name, words, schema, grammar)


def grammar_in(given: dict[str, Any], where: str) -> str:
    """The grammar that a format names, in lark; a format that names none lets any text pass."""
    if not given:
        return ANYTHING
    syntax, definition = text_of(given, "syntax", where), text_of(given, "definition", where)
    if syntax == "regex":
        return "start: /" + definition.replace("/", "\\/") + "/"
    if syntax != "lark":
        raise WireError(f"{where}.syntax must be lark or regex, and is {syntax!r}.")
    return definition


def is_regex(grammar: Any) -> bool:
    """Is a grammar written in other words than lark's? It is understood, and goes back as it came."""
    return isinstance(grammar, dict) and grammar.get("syntax") == "regex"


def word_out(choice: ToolChoice) -> str:
    """A choice that names no tool, in one word."""
    return _SPOKEN[choice.kind]


def choice_word(choice: Any) -> ToolChoice:
    """The inverse of `word_out`."""
    kind = _WORDS.get(choice)
    if kind is None:
        raise WireError(f"tool_choice must be auto, required, none or an object, and is {choice!r}.")
    return ToolChoice(kind)


def tool_subset_in(given: dict[str, Any], where: str) -> ToolChoice:
    """A choice among some tools: that it must be one is kept, and which ones only where it is a single one."""
    mode = text_of(given, "mode", where)
    tools = given.get("tools")
    if mode != "required":
        return ToolChoice("auto")
    if not isinstance(tools, list) or len(tools) != 1:
        return ToolChoice("any")
    tool = as_object(tools[0], f"{where}.tools[0]")
    named = tool if "name" in tool else object_or(tool, str(tool.get("type")), f"{where}.tools[0]")
    return ToolChoice("tool", text_of(named, "name", f"{where}.tools[0]"))


def tools_out(
    asked: ModelRequest, tools: list[dict[str, Any]], choice_out: Callable[[ToolChoice, Collection[str]], Any]
) -> dict[str, Any]:
    """What a body says about its tools; nothing where it has none."""
    if not tools:
        return {}
    out: dict[str, Any] = {"tools": tools}
    if asked.choice is not None:
        free = {one.name for one in asked.definitions if one.grammar}
        out["tool_choice"] = choice_out(asked.choice, free)
        if asked.choice.parallel is not None:
            out["parallel_tool_calls"] = asked.choice.parallel
    return out


def parallel(choice: ToolChoice | None, value: bool | None) -> ToolChoice | None:  # noqa: FBT001 - what the body says
    """A choice together with what the body says about several calls at once."""
    if value is None:
        return choice
    chosen = choice or ToolChoice()
    return ToolChoice(chosen.kind, chosen.name, value, chosen.extra)


def settings_out(asked: ModelRequest, wire: str) -> dict[str, Any]:
    """The settings that both APIs call by one name."""
    return present(
        temperature=asked.temperature,
        top_p=asked.top_p,
        top_logprobs=asked.top_logprobs,
        user=asked.user,
        metadata=asked.metadata,
        service_tier=tier_out(asked, wire),
        prompt_cache_key=asked.cache_key,
        stream=asked.stream or None,
    )


def settings_in(body: dict[str, Any], wire: str) -> dict[str, Any]:
    """The inverse, as fields of `Asked`."""
    return {
        "temperature": number_or_none(body, "temperature", "body"),
        "top_p": number_or_none(body, "top_p", "body"),
        "top_logprobs": count_or_none(body, "top_logprobs", "body"),
        "user": text_or(body, "user", "body"),
        "metadata": object_or(body, "metadata", "body") or None,
        "service_tier": tier_in(text_or(body, "service_tier", "body"), wire),
        "cache_key": text_or(body, "prompt_cache_key", "body"),
        "stream": bool(flag_or(body, "stream", "body", otherwise=False)),
    }


def tier_extra(body: dict[str, Any], wire: str) -> dict[str, Any]:
    """How urgent a request is, in a word that only this API has."""
    word = text_or(body, "service_tier", "body")
    return {"service_tier": word} if word and not tier_in(word, wire) else {}


_FORMATS: dict[str, Literal["text", "json", "schema"]] = {
    "text": "text",
    "json_object": "json",
    "json_schema": "schema",
}
_FORMS = {kind: word for word, kind in _FORMATS.items()}
_SCHEMA = frozenset(("type", "name", "schema", "strict", "description"))
NAMELESS = "answer"
"""The name of a schema that came without one: these APIs want one."""


def format_out(form: ResponseFormat) -> tuple[str, dict[str, Any]]:
    """The type of a format, and its fields."""
    if form.kind != "schema":
        return _FORMS[form.kind], {}
    about = present(name=form.name or NAMELESS, schema=form.schema, strict=form.strict, description=form.words)
    return "json_schema", about


def format_in(kind: str, about: dict[str, Any], where: str) -> ResponseFormat | None:
    """The inverse; None for a format that only one API knows."""
    known = _FORMATS.get(kind)
    if known is None or others(about, _SCHEMA):
        return None
    if known != "schema":
        return ResponseFormat(known)
    name = text_or(about, "name", where)
    strict = flag_or(about, "strict", where, otherwise=None)
    schema = about.get("schema")
    return ResponseFormat(
        "schema",
        None if schema is None else as_object(schema, f"{where}.schema"),
        "" if name == NAMELESS else name,
        text_or(about, "description", where),
        strict,
    )


def own_choice(choice: Any, wire: str, meant: ToolChoice) -> ToolChoice:
    """A choice of which a noun holds only a part: it goes back as it came."""
    return ToolChoice(meant.kind, meant.name, meant.parallel, Extra(wire, {"tool_choice": choice}))
