"""Read tool calls that a model wrote as text, including malformed JSON.

Each model family was taught its own form of calls. The JSON reader accepts single quotes, trailing commas, line
breaks in strings, Python's constants and missing closing brackets.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

_DEPTH_LIMIT = 64
_STRICT = json.JSONDecoder(strict=False)
_BLANKS = re.compile(r"\s*")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
_CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_FOLLOWING = re.compile(r"\s*(?:,\s*[\"'][\w-]+[\"']\s*:|[}\]]\s*(?:[}\]]\s*)*(?:\Z|```|</|<\||,\s*\{))")
"""What stands behind the end of a text, where there may be quotes in it."""
_UNICODE = re.compile(r"u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?")


class LooseError(ValueError):
    """The text is no JSON, not even nearly; the message says where and why."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.at = at


class LenientJsonValue(NamedTuple):
    """A value, where it ends, and whether braces at its end are missing."""

    value: Any
    end: int
    is_open: bool = False


def read(text: str, at: int = 0) -> LenientJsonValue:
    """Read the value that begins at a place; what follows it does not matter. Raises: LooseError."""
    at = _skip(text, at)
    try:
        value, end = _STRICT.raw_decode(text, at)
        return LenientJsonValue(value, end)
    except (ValueError, RecursionError):
        pass
    reading = _LooseParser(text)
    try:
        value, end = reading.value(at, 0)
    except LooseError:
        # Code in a text has quotes of its own, and not every model escapes them.
        reading = _LooseParser(text, inner_quotes=True)
        try:
            value, end = reading.value(at, 0)
        except LooseError:
            value, end = _LooseParser(text).value(at, 0)  # what is wrong with it as it stands
    return LenientJsonValue(value, end, reading.is_open)


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


class _LooseParser:
    """Reads by recursive descent, and forgives."""

    def __init__(self, text: str, *, inner_quotes: bool = False) -> None:
        """With `inner_quotes` only those end a text that a name, a brace or a bracket follows."""
        self._text = text
        self._inner_quotes = inner_quotes
        self.is_open = False

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > _DEPTH_LIMIT:
            raise LooseError("it is nested too deeply", at)
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at + 1, depth)
        if first == "[":
            return self._array(at + 1, depth)
        if first in {'"', "'"}:
            return self._string(at)
        if number := _NUMBER.match(self._text, at):
            digits = number[0]
            return (float(digits) if re.search(r"[.eE]", digits) else int(digits[:300])), number.end()
        if (word := _WORD.match(self._text, at)) and word[0] in _CONSTANTS:
            return _CONSTANTS[word[0]], word.end()
        raise LooseError("it stops in the middle" if not first else f"{first!r} stands where a value belongs", at)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        out: dict[str, Any] = {}
        while True:
            at = _skip(self._text, at)
            if (end := self._end(at, "}")) is not None:
                return out, end
            key, at = self._key(at)
            at = _skip(self._text, at)
            if self._text[at : at + 1] != ":":
                raise LooseError(f"a colon is missing behind {key!r}", at)
            out[key], at = self.value(_skip(self._text, at + 1), depth + 1)
            at = self._comma(at, "}")

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        out: list[Any] = []
        while True:
            at = _skip(self._text, at)
            if (end := self._end(at, "]")) is not None:
                return out, end
            one, at = self.value(at, depth + 1)
            out.append(one)
            at = self._comma(at, "]")

    def _end(self, at: int, closing: str) -> int | None:
        """Where the container is over: behind its brace, or where the text or the tag around it ends without one."""
        if self._text.startswith(closing, at):
            return at + 1
        if at >= len(self._text) or self._text.startswith(("</", "< /", "```", "<|"), at):
            self.is_open = True
            return at
        return None

    def _comma(self, at: int, closing: str) -> int:
        at = _skip(self._text, at)
        if self._text.startswith(",", at):
            return at + 1
        if self._text.startswith(closing, at) or self._end(at, closing) is not None:
            return at
        raise LooseError(f"a comma or {closing!r} is missing", at)

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in {'"', "'"}:
            return self._string(at, is_key=True)
        if word := _WORD.match(self._text, at):
            return word[0], word.end()
        raise LooseError("a name in quotes is missing", at)

    def _string(self, at: int, *, is_key: bool = False) -> tuple[str, int]:
        quote = self._text[at]
        if self._text.startswith(quote * 3, at) and not self._inner_quotes:
            end = self._text.find(quote * 3, at + 3)
            if end >= 0:
                return self._text[at + 3 : end], end + 3
        pieces: list[str] = []
        start = at = at + 1
        while at < len(self._text):
            char = self._text[at]
            if char == "\\":
                pieces.append(self._text[start:at])
                piece, at = self._escape(at + 1)
                pieces.append(piece)
                start = at
            elif char == quote and (is_key or self._is_last(at, quote)):
                return "".join([*pieces, self._text[start:at]]), at + 1
            else:
                at += 1
        raise LooseError("a text in quotes has no end", len(self._text))

    def _is_last(self, at: int, quote: str) -> bool:
        """Does this quote end a text? An apostrophe in the middle of it does not."""
        if self._inner_quotes:
            return _FOLLOWING.match(self._text, at + 1) is not None
        if quote == '"':
            return True
        behind = _skip(self._text, at + 1)
        return behind >= len(self._text) or self._text[behind] in ",:}]" or self._text.startswith("</", behind)

    def _escape(self, at: int) -> tuple[str, int]:
        char = self._text[at : at + 1]
        if found := _UNICODE.match(self._text, at):
            high = int(found[1], 16)
            if found[2] and 0xD800 <= high < 0xDC00:
                return chr(0x10000 + ((high - 0xD800) << 10) + int(found[2], 16) - 0xDC00), found.end()
            return chr(high), at + 5
        # A backslash that escapes nothing is one of the text, as in an expression that was not escaped.
        return _ESCAPES.get(char, "\\" + char), at + len(char)


_NAME_KEYS = ("name", "tool", "tool_name", "function_name", "function", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "tool_input")
_BESIDE = {*_NAME_KEYS, *_ARGUMENT_KEYS, "id", "type", "index", "call_id"}
_LISTS = ("tool_calls", "tool_uses", "calls")
_FENCES = frozenset(
    {"", "json", "json5", "jsonc", "tool_call", "tool_calls", "tool_code", "tool", "xml", "function_call"}
)
"""The languages of fenced blocks that may hold a call."""
_ROLES = re.compile(r"(?i)\W*(?:user|assistant|system|human|model|ai|tool|bot|developer)\b[^:\n]{0,40}:\s*$")
_BEFORE = frozenset(" \t.:!?;,)>*_…")
"""What a call in the middle of a line may stand behind. Behind anything else it is part of a sentence about calls."""
END = re.compile(
    r"(?:\s|<\|[\w ]{1,30}\|>|</s>|<eos>|<\s?/?[\w:]*(?:tool_calls?|function_calls?|function|tool_use)>|`{3,})*\Z"
)
"""What may follow the last call of an answer that ends with it."""
GAP = re.compile(r"(?:[\s,;]|<\|[\w ]{1,30}\|>|<\s?/?[\w:]*(?:tool_calls?|function_calls?|tool_use)>|`{3,}\w*)*\Z")
"""What may stand between two calls."""

_OPENING = re.compile(
    r"""
    ^[ ]{0,3}(?P<fence>`{3,}|~{3,})(?P<lang>[^\n`]*)(?:\n|\Z)
    | <\s?(?P<tag>tool_calls?|function_calls?|toolcall|functioncall|tool_use|\|tool_call\|)>
    | <function(?:=|\ name=["']?)(?P<function>[\w.:-]+)["']?>
    | <(?:\w+:)?invoke\s+name=["'](?P<invoke>[\w.:-]+)["']\s*>
    | (?P<mistral>\[TOOL_CALLS\])
    | (?:<\|start\|>assistant\s*)?<\|channel\|>[\w\ ]*?\bto=(?:functions\.)?(?P<channel>[\w.-]+)[^<\n]*
      (?:<\|constrain\|>[^<\n]*)?<\|message\|>
    | <\|start\|>assistant\s+to=(?:functions\.)?(?P<recipient>[\w.-]+)\s*<\|channel\|>[^<\n]*
      (?:<\|constrain\|>[^<\n]*)?<\|message\|>
    | <\|python_(?:tag|start)\|>(?P<python>)
    | ^[ ]{0,3}(?P<list>\[)(?=\s*[A-Za-z_][\w.]*\()
    | ^[ ]{0,3}(?P<bare>[\[{])(?=[\s{]*["']?(?:name|tool|tool_name|function_name|function|recipient_name|type
      |tool_calls)["']?\s*:)
    """,
    re.VERBOSE | re.MULTILINE,
)
_PARAMETER = re.compile(
    r"<(?:\w+:)?parameter(?:=|\s+name=)[\"']?(?P<name>[^>\"']+)[\"']?>(?P<value>.*?)"
    r"(?:</(?:\w+:)?parameter>|(?=<(?:\w+:)?parameter[=\s])|(?=</(?:function|(?:\w+:)?invoke|tool_call)>)|\Z)",
    re.DOTALL,
)
_LIKE_A_CALL = re.compile(
    r"[\s\[{]*[\"']?(?:name|tool|tool_name|function_name|function)[\"']?\s*[:=]\s*[\"']?([\w.:-]+)[\"']?"
    r"(?P<arguments>\s*,?\s*[\"']?(?:arguments|parameters|args|params|input|tool_input)[\"']?\s*[:=]\s*[\"{])?"
)
_CLOSING = re.compile(r"\s*(?:<\s?/[\w:|]+>|<\|/\w+\|>|`{3,}(?=\s*<))")


class TextCall(NamedTuple):
    """A tool's name and its arguments, as they were written."""

    name: str
    values: dict[str, Any]


class CallBlock(NamedTuple):
    """A part of a text that is a call, or several, or meant to be one."""

    start: int
    end: int
    form: str
    calls: tuple[TextCall, ...] = ()
    fault: str = ""
    """Why it is no call; empty where it is one."""
    name: str = ""
    """Of one with a fault: the tool that seems to be meant."""
    payload: str = ""
    """The call without what marks it as one."""


def find(text: str) -> list[CallBlock]:
    """Every call in a text, in order. What is quoted, in code of other languages or in a table, is none."""
    out: list[CallBlock] = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        block = None
        if opening["fence"]:
            if opening["lang"].strip().lower() in _FENCES:
                block = _read_fence(text, opening)
            at = _fence_end(text, opening, opening.end())[1]
        else:
            if _is_said(text, opening):
                block = _read(text, opening)
            at = opening.end()
        if block is not None:
            out.append(block)
            at = max(at, block.end)
    return out


def find_trailing_calls(text: str, blocks: list[CallBlock]) -> list[CallBlock]:
    """The calls that a text ends with."""
    run: list[CallBlock] = []
    for block in reversed(blocks):
        if not (GAP.match(text, block.end, run[0].start) if run else END.match(text, block.end)):
            break
        run.insert(0, block)
    return run


def find_leading_calls(text: str, blocks: list[CallBlock]) -> list[CallBlock]:
    """The first calls of a text, up to the first words behind them. Objects without a mark do not count."""
    run: list[CallBlock] = []
    for block in blocks:
        if run and not GAP.match(text, run[-1].end, block.start):
            break
        if not run and block.form == "bare":
            continue
        run.append(block)
    return run


def example(form: str, name: str, parameters: Mapping[str, str]) -> str:
    """How a call is written in a form, with something to fill in for each parameter."""
    return _EXAMPLES.get(form, _EXAMPLES["tag"])(name, parameters)


def _text_calls_skip(text: str, at: int, what: str = r"\s*") -> int:
    found = re.compile(what).match(text, at)
    return found.end() if found is not None else at


def _is_said(text: str, opening: re.Match[str]) -> bool:
    """Does the model say it, rather than quote it?"""
    start = opening.start()
    before = text[text.rfind("\n", 0, start) + 1 : start]
    if not before.strip():
        return len(before.expandtabs(4)) < 4
    if before.lstrip().startswith((">", "|")) or before.count("`") % 2 or _ROLES.match(before):
        return False
    return before[-1] in _BEFORE


def _fence_end(text: str, opening: re.Match[str], at: int) -> tuple[int, int]:
    """Where the inside of a fenced block ends, and where the block does, seen from a place in it."""
    close = re.compile(rf"^[ ]{{0,3}}{re.escape(opening['fence'])}+[ \t]*$", re.MULTILINE).search(text, at)
    if close is None:
        # Some close it on the last line of what is inside.
        close = re.compile(re.escape(opening["fence"]) + r"\s*\Z").search(text, at)
    return close.span() if close is not None else (len(text), len(text))


def _read_fence(text: str, opening: re.Match[str]) -> CallBlock | None:
    """The call that is all that a fenced block holds."""
    inside = _text_calls_skip(text, opening.end())
    if text[inside : inside + 1] in {"{", "["} and (found := _objects(text, inside, "fence")) is not None:
        # From behind the call: what it writes into a file may have fences of its own.
        close, end = _fence_end(text, opening, found.end)
        is_alone = bool(found.fault) or not text[found.end : close].strip()
        return found._replace(start=opening.start(), end=end) if is_alone else None
    close, end = _fence_end(text, opening, opening.end())
    body = text[inside:close].strip()
    blocks: list[CallBlock] = []
    if opening["lang"].strip().lower() == "tool_code":
        python = _python(re.sub(r"\Aprint\((.*)\)\Z", r"\1", body, flags=re.DOTALL), 0)
        blocks = [python] if python is not None else []
    if not blocks:
        blocks = find_trailing_calls(body, find(body)) if body.startswith(("<", "[")) else []
        blocks = blocks if blocks and not body[: blocks[0].start].strip() else []
    if not blocks:
        return None
    calls = tuple(call for block in blocks for call in block.calls)
    fault = next((block.fault for block in blocks if block.fault), "")
    name = next((block.name for block in blocks if block.name), "")
    return CallBlock(opening.start(), end, "fence", () if fault else calls, fault, name, body)


def _read(text: str, opening: re.Match[str]) -> CallBlock | None:
    start, at = opening.span()
    if opening["tag"]:
        block = _read_tag(text, at)
    elif name := opening["function"] or opening["invoke"]:
        block = _parameters(text, at, "function" if opening["function"] else "invoke", name)
    elif opening["mistral"]:
        block = _mistral(text, at)
    elif name := opening["channel"] or opening["recipient"]:
        block = _arguments(text, at, "harmony", name)
    elif opening["python"] is not None:
        block = _python(text, at) if text[at : at + 1] != "{" else _objects(text, at, "python")
    elif opening["list"]:
        block = _python(text, opening.start("list"))
    else:
        block = _objects(text, opening.start("bare"), "bare")
    return block._replace(start=start, payload=block.payload or text[start : block.end]) if block is not None else None


def _read_tag(text: str, at: int) -> CallBlock | None:
    """What stands in `<tool_call>` and its like: an object, several, a list, or one of the other forms."""
    at = _text_calls_skip(text, at)
    inner = _OPENING.match(text, at)
    if inner is not None and not (inner["fence"] or inner["bare"] or inner["list"]):
        block = _read(text, inner)
        return _include_closing_tags(text, block) if block is not None else None
    at = _text_calls_skip(text, at, r"(?:`{3,}\w*)?\s*")
    if text[at : at + 1] in {"{", "["}:
        found = _objects(text, at, "tag", is_marked=True)
        return _include_closing_tags(text, found) if found is not None else None
    # `<tool_call>read{"path": "a"}` and its like: a name, then its arguments.
    if named := re.compile(r"([\w.-]+)\s*(?:<arg_key>|(?=\{))").match(text, at):
        return _include_closing_tags(text, _arguments(text, named.end(1), "tag", named[1]))
    return None


def _include_closing_tags(text: str, block: CallBlock) -> CallBlock:
    """The block with the tags that close it."""
    end = block.end
    while (closing := _CLOSING.match(text, end)) is not None:
        end = closing.end()
    return block._replace(end=end)


def _objects(text: str, at: int, form: str, *, is_marked: bool = False) -> CallBlock | None:
    """Objects with a name and arguments, one after the other, or a list of them."""
    calls: list[TextCall] = []
    start = end = at
    while text[at : at + 1] in {"{", "["}:
        try:
            value, end, is_open = read(text, at)
        except LooseError as error:
            return _faulty_block(text, at, form, f"its JSON cannot be read: {error}", is_marked=is_marked)
        named = list(_find_calls(value, is_marked=is_marked))
        if not named or None in named:
            why = "it names no tool with its arguments"
            return _faulty_block(text, at, form, why, is_marked=True) if is_marked else None
        if is_open and not is_marked and form == "bare":
            return _faulty_block(text, at, form, "braces are missing at its end", is_marked=False)
        calls += [one for one in named if one is not None]
        at = _text_calls_skip(text, end, r"[\s,;]*")
    return CallBlock(at, end, form, tuple(calls), payload=text[start:end]) if calls else None


def _faulty_block(text: str, at: int, form: str, fault: str, *, is_marked: bool) -> CallBlock | None:
    """Something that is no call; None where it does not even look like one."""
    like = _LIKE_A_CALL.match(text, at)
    if like is None or not (is_marked or like["arguments"]):
        return None
    return CallBlock(at, len(text), form, (), fault, _plain(like[1]))


def _find_calls(value: Any, *, is_marked: bool) -> Iterator[TextCall | None]:
    """The calls that a value holds; None for what is none."""
    if isinstance(value, list):
        for one in value:
            yield from _find_calls(one, is_marked=is_marked) if isinstance(one, dict) else (None,)
    elif not isinstance(value, dict):
        yield None
    elif key := next((key for key in _LISTS if isinstance(value.get(key), list) and len(value) == 1), ""):
        yield from _find_calls(value[key], is_marked=is_marked)
    elif isinstance(value.get("function"), dict):
        yield from _find_calls(value["function"], is_marked=is_marked)
    else:
        yield _call_of(value, is_marked=is_marked)


def _call_of(value: dict[str, Any], *, is_marked: bool) -> TextCall | None:
    """The call that an object is. Without a mark it has arguments, and nothing that calls do not have."""
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), "")
    given = next((key for key in _ARGUMENT_KEYS if key in value), "")
    if not name or not (is_marked or (given and value.keys() <= _BESIDE)):
        return None
    if not given:
        return TextCall(
            _plain(name), {key: one for key, one in value.items() if key not in {*_NAME_KEYS, "id", "type"}}
        )
    arguments = value[given] or {}
    if isinstance(arguments, str):
        try:
            arguments = read(arguments).value
        except LooseError:
            return None
    return TextCall(_plain(name), arguments) if isinstance(arguments, dict) else None


def _plain(name: str) -> str:
    return name.removeprefix("functions.").removeprefix("default_api.")


def _arguments(text: str, at: int, form: str, name: str) -> CallBlock:
    """A name that is known already, and its arguments as an object."""
    at = _text_calls_skip(text, at)
    name = _plain(name)
    try:
        value, end, is_open = read(text, at)
    except LooseError as error:
        return CallBlock(at, len(text), form, (), f"its JSON cannot be read: {error}", name)
    if is_open and not value:
        return CallBlock(at, end, form, (), "its JSON stops in the middle", name)
    if not isinstance(value, dict):
        return CallBlock(at, end, form, (), "its arguments are no object", name)
    return CallBlock(at, end, form, (TextCall(name, value),))


def _parameters(text: str, at: int, form: str, name: str) -> CallBlock:
    """`<parameter=x>value</parameter>` and its like, or an object in their place."""
    name = _plain(name)
    at = _text_calls_skip(text, at)
    if text[at : at + 1] == "{":
        return _include_closing_tags(text, _arguments(text, at, form, name))
    values: dict[str, Any] = {}
    while one := _PARAMETER.match(text, _text_calls_skip(text, at)):
        # With a line of its own for the tags, the line ends beside them are not the value's.
        own_lines = re.fullmatch(r"\r?\n(.*?)\r?\n?", one["value"], re.DOTALL)
        values[one["name"].strip()] = own_lines[1] if own_lines is not None else one["value"]
        at = one.end()
    block = _include_closing_tags(text, CallBlock(at, at, form, (TextCall(name, values),)))
    if not values and block.end == at:
        return block._replace(calls=(), fault="it has neither parameters nor an end", name=name)
    return block


def _mistral(text: str, at: int) -> CallBlock | None:
    at = _text_calls_skip(text, at)
    if text[at : at + 1] in {"{", "["}:
        return _objects(text, at, "mistral", is_marked=True)
    calls: list[TextCall] = []
    end = at
    while named := re.compile(
        r"\s*(?:\[TOOL_CALLS\]\s*)?([\w.-]+)\s*(?:\[CALL_ID\]\w*\s*)?(?:\[ARGS\]\s*)?(?=\{)"
    ).match(text, end):
        block = _arguments(text, named.end(), "mistral", named[1])
        if block.fault:
            return block
        calls += block.calls
        end = block.end
    return CallBlock(at, end, "mistral", tuple(calls)) if calls else None


def _python(text: str, at: int) -> CallBlock | None:
    """`[read(path="a"), ...]`, or one call of that kind."""
    end = _find_closing_bracket(text, at)
    if end is None:
        name = re.compile(r"\[?\s*([A-Za-z_][\w.]*)\(").match(text, at)
        return CallBlock(at, len(text), "python", (), "its brackets have no end", _plain(name[1])) if name else None
    try:
        tree = ast.parse(text[at:end].strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        name = re.compile(r"\[?\s*([A-Za-z_][\w.]*)\(").match(text, at)
        return CallBlock(at, end, "python", (), "it is no list of calls", _plain(name[1])) if name else None
    calls = []
    for one in tree.elts if isinstance(tree, ast.List) else [tree]:
        if not isinstance(one, ast.Call):
            return None
        name_of = _plain(ast.unparse(one.func))
        if one.args or any(keyword.arg is None for keyword in one.keywords):
            return CallBlock(at, end, "python", (), "its arguments have no names", name_of)
        try:
            values = {str(keyword.arg): _literal(keyword.value) for keyword in one.keywords}
        except (ValueError, TypeError, RecursionError):
            return CallBlock(at, end, "python", (), "its arguments are no plain values", name_of)
        calls.append(TextCall(name_of, values))
    if not calls:
        return None
    closing = re.compile(r"\s*<\|python_end\|>").match(text, end)
    return CallBlock(at, closing.end() if closing else end, "python", tuple(calls), payload=text[at:end])


class _Constants(ast.NodeTransformer):
    """JSON's words for constants as Python's."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known = {"true": True, "false": False, "null": None}
        return ast.Constant(known[node.id]) if node.id in known else node


def _literal(node: ast.expr) -> Any:
    """A plain value. Raises: ValueError."""
    return ast.literal_eval(_Constants().visit(node))


def _find_closing_bracket(text: str, at: int) -> int | None:
    """Where the brackets that begin here are closed; texts in quotes do not count."""
    depth, place = 0, at
    while place < len(text):
        char = text[place]
        if char in {'"', "'"}:
            quote = char * 3 if text.startswith(char * 3, place) else char
            end = re.compile(rf"(?:\\.|(?!{quote}).)*{quote}", re.DOTALL).match(text, place + len(quote))
            if end is None:
                return None
            place = end.end()
            continue
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    return None


def _json_of(parameters: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}": "{value}"' for name, value in parameters.items())


def _tag_example(name: str, parameters: Mapping[str, str]) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{{_json_of(parameters)}}}}}\n</tool_call>'


def _function_example(name: str, parameters: Mapping[str, str]) -> str:
    inner = "".join(f"<parameter={one}>\n{value}\n</parameter>\n" for one, value in parameters.items())
    return f"<function={name}>\n{inner}</function>"


def _invoke_example(name: str, parameters: Mapping[str, str]) -> str:
    inner = "".join(f'<parameter name="{one}">{value}</parameter>\n' for one, value in parameters.items())
    return f'<invoke name="{name}">\n{inner}</invoke>'


def _python_example(name: str, parameters: Mapping[str, str]) -> str:
    given = ", ".join(f'{one}="{value}"' for one, value in parameters.items())
    return f"[{name}({given})]"


_EXAMPLES: dict[str, Callable[[str, Mapping[str, str]], str]] = {
    "tag": _tag_example,
    "function": _function_example,
    "invoke": _invoke_example,
    "mistral": lambda name, given: f'[TOOL_CALLS][{{"name": "{name}", "arguments": {{{_json_of(given)}}}}}]',
    "python": _python_example,
    "harmony": lambda name, given: (
        f"<|channel|>commentary to=functions.{name} <|message|>{{{_json_of(given)}}}<|call|>"
    ),
    "fence": lambda name, given: f'```json\n{{"name": "{name}", "arguments": {{{_json_of(given)}}}}}\n```',
    "bare": lambda name, given: f'{{"name": "{name}", "arguments": {{{_json_of(given)}}}}}',
}
"""Each form as it is shown to a model that has missed it."""


_PARTS = re.compile(
    r"(?:<\s?\w{0,14}|<\|(?:channel|start)\|>[^\n{]{0,160}|<\|?[\w:=.|-]{0,80}|<(?:\w+:)?(?:invoke|function)\s[^>\n]{0,80}"
    r"|\[[A-Z_]{0,11})\Z"
)
"""What the beginning of a mark may look like at the end of what came so far."""
_KEYS = (*_NAME_KEYS, *_LISTS, "type")
_LONGEST_LINE = 1 << 16
_LONGEST_MARK = 240


class Holdback:
    """Lets words of an answer through as they come, and holds back what may turn out to be a call."""

    def __init__(self) -> None:
        self.length = 0
        """Of all that came."""
        self._line = ""
        """What came since the last line that was looked through."""
        self._told = 0
        """So much of it was let through."""
        self._held: list[str] | None = None
        """What came behind the beginning of a call."""
        self._fence = ""
        """What closes the block of code that it is in."""
        self._is_plain = False
        """Is the line too long for a call to be in it?"""

    def feed(self, piece: str) -> str:
        """What may be shown now."""
        self.length += len(piece)
        if self._held is not None:
            self._held.append(piece)
            return ""
        self._line += piece
        words = ""
        while (end := self._line.find("\n")) >= 0:
            limit = self._limit(end + 1)
            words += self._let(limit)
            if limit <= end:
                return words
            self._line, self._told, self._is_plain = self._line[end + 1 :], 0, False
        words += self._let(len(self._line) if self._is_plain else self._limit(len(self._line)))
        if len(self._line) > _LONGEST_LINE and self._held is None:
            words += self._let(len(self._line))
            self._line, self._told, self._is_plain = "", 0, True
        return words

    def rest(self, upto: int | None = None) -> str:
        """What is left to show of the whole, or of its beginning."""
        waiting = self._line + "".join(self._held or ())
        start = self.length - len(waiting)
        self._line, self._held = waiting, None
        return self._let(len(waiting) if upto is None else upto - start)

    def _let(self, limit: int) -> str:
        words, self._told = self._line[self._told : max(0, limit)], max(self._told, limit)
        return words

    def _limit(self, end: int) -> int:
        """How far the current line may be shown."""
        if self._is_plain:
            return end
        line = self._line[:end]
        bare = line.strip()
        if self._fence:
            if bare.startswith(self._fence) and not bare.strip(self._fence[0]) and line.endswith("\n"):
                self._fence = ""
            return end
        indent = len(line) - len(line.lstrip(" "))
        if indent < 4 and bare[:1] in {"`", "~", "{", "["}:
            verdict = _is_call_begun(self._line[indent:])
            if verdict is not False:
                self._held = [] if verdict else None
                return 0
            if line.endswith("\n") and bare[:3] in {"```", "~~~"}:
                self._fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
                return end
        return self._inline(end)

    def _inline(self, end: int) -> int:
        opening = _OPENING.search(self._line, self._told, end)
        while opening is not None:
            if not (opening["fence"] or opening["bare"] or opening["list"]) and _is_said(self._line, opening):
                self._held = []
                return opening.start()
            opening = _OPENING.search(self._line, opening.end(), end)
        part = _PARTS.search(self._line, max(self._told, end - _LONGEST_MARK), end)
        return part.start() if part is not None and end == len(self._line) else end


def _is_call_begun(text: str) -> bool | None:
    """Does a text that begins like a block of code, an object or a list begin a call? None: more has to come first."""
    if re.match(r"([`~])\1{0,2}\Z|(?:`{3,}|~{3,})[\w-]*\Z", text):
        return None
    if fence := re.match(r"(?:`{3,}|~{3,})([^\n`]*)\n\s*", text):
        if fence[1].strip().lower() not in _FENCES:
            return False
        text = text[fence.end() :]
        if not text or text[0] == "<" or fence[1].strip().lower() == "tool_code":
            return True if text else None
    if re.match(r"\[\s*[A-Za-z_][\w.]*\(", text):
        return True
    key = re.match(r"[\[{][\s{\[]*[\"']?(\w*)", text)
    if key is None:
        return False
    if key.end() == len(text):
        return None if any(one.startswith(key[1]) for one in _KEYS) or text[0] == "[" else False
    return key[1] in _KEYS
