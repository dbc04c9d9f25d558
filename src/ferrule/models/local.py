"""Run a model from a file on this machine (`local:FILE.gguf`) with `xllamacpp`.

The model runs in this process, off the event loop.

The head of the GGUF file is parsed before any library opens the file.

Answers are constrained by a grammar: text, or calls that fit the schemas of the tools. It is written in the
language of llguidance, which `xllamacpp` is built with.
"""

import asyncio
import json
import os
import re
import stat
import struct
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from ferrule.core.content import Document, Image, Text
from ferrule.models import ModelError, Prices, RetryNotice
from ferrule.models.cues import each_text
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Definition,
    Delta,
    ModelRequest,
    Reason,
    Result,
    TextPiece,
    ToolChoice,
    Turn,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.conversation import apart, document_words, json_text, object_out
from ferrule.wire.stream import make_id

_Found = TypeVar("_Found")
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""The bytes of each kind of number."""
_STRING, _ARRAY = 8, 9
_NUMBERS = {4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_CONTROL, _USER_DEFINED = 3, 4
"""Kinds of tokens."""
_VERSIONS = (2, 3)
_MOST_MEMBERS = 1 << 16
_LONGEST = 1 << 22


class LocalFile(NamedTuple):
    """A model in a file."""

    path: str
    context_length: int
    """The window that it was trained for; 0 where it does not say."""
    template: str
    """How a conversation is written for it, in Jinja."""
    specials: tuple[str, ...] = ()
    """Texts that are more than text to it: the ends of turns, and other marks."""


def look(path: str) -> LocalFile:
    """Raises: ModelError where there is no such file, or no model in it."""
    path = os.path.abspath(os.path.expanduser(path))
    try:
        # To open a pipe would wait for whoever writes into it, and nothing could stop that.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelError(f"The model {path} is no file. Name one as local:FILE.gguf.", "no-model")
        with open(path, "rb") as file:
            import mmap  # only who has a model here pays for it

            if os.fstat(file.fileno()).st_size < 24:
                raise _no_model(path, "it is too short")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                reading = _Head(memory, path)
                found = reading.read()
                specials = reading.specials()
    except FileNotFoundError as error:
        raise ModelError(f"There is no file {path}. Name a model as local:FILE.gguf.", "no-model") from error
    except OSError as error:
        raise ModelError(f"The model {path} cannot be read: {error.strerror}.", "no-model") from error
    architecture = found.get("general.architecture", "")
    length = found.get(f"{architecture}.context_length", 0)
    template = found.get("tokenizer.chat_template", "")
    return LocalFile(
        path, length if isinstance(length, int) else 0, template if isinstance(template, str) else "", specials
    )


class _Head:
    """Reads member after member; whatever a length says, nothing is read behind the end of the file."""

    def __init__(self, memory: Any, path: str) -> None:
        self._memory = memory
        self._path = path
        self._at = 0
        self._arrays: dict[str, int] = {}
        """Where each array begins."""

    def read(self) -> dict[str, int | str]:
        return self._safely(self._read)

    def specials(self) -> tuple[str, ...]:
        """The tokens of the kinds control and user-defined; of the latter those that look like a mark."""
        return self._safely(self._specials)

    def _safely(self, read: Callable[[], _Found]) -> _Found:
        try:
            return read()
        except (struct.error, UnicodeDecodeError, KeyError, OverflowError) as error:
            raise _no_model(self._path, "its head is damaged") from error

    def _specials(self) -> tuple[str, ...]:
        if "tokenizer.ggml.tokens" not in self._arrays or "tokenizer.ggml.token_type" not in self._arrays:
            return ()
        self._at = self._arrays["tokenizer.ggml.token_type"]
        self._number("<I")
        count = self._number("<Q")
        if count * 4 > len(self._memory):
            raise _no_model(self._path, "its head is damaged")
        kinds = struct.unpack_from(f"<{count}i", self._memory, self._at)
        self._at = self._arrays["tokenizer.ggml.tokens"] + 12
        found = []
        for kind in kinds:
            length = self._number("<Q")
            if kind in {_CONTROL, _USER_DEFINED}:
                text = self._memory[self._at : self._at + length].decode(errors="replace").strip()
                if len(text) >= 3 and (kind == _CONTROL or text[0] in "<["):
                    found.append(text)
            self._at += length
        return tuple(found)

    def _read(self) -> dict[str, int | str]:
        if self._memory[:4] != b"GGUF":
            raise _no_model(self._path, "it does not begin with GGUF")
        self._at = 4
        version = self._number("<I")
        if version not in _VERSIONS:
            raise _no_model(self._path, f"its version is {version}, and {' and '.join(map(str, _VERSIONS))} are known")
        self._number("<Q")
        count = self._number("<Q")
        if count > _MOST_MEMBERS:
            raise _no_model(self._path, "its head is damaged")
        found: dict[str, int | str] = {}
        for _ in range(count):
            name = self._text()
            kind = self._number("<I")
            if kind == _STRING:
                found[name] = self._text()
            elif kind in _NUMBERS:
                found[name] = self._number(_NUMBERS[kind])
            else:
                self._arrays[name] = self._at
                self._skip(kind)
        return found

    def _number(self, form: str) -> int:
        value: int = struct.unpack_from(form, self._memory, self._at)[0]
        self._at += struct.calcsize(form)
        return value

    def _text(self) -> str:
        length = self._number("<Q")
        if length > _LONGEST or self._at + length > len(self._memory):
            raise _no_model(self._path, "its head is damaged")
        raw: bytes = self._memory[self._at : self._at + length]
        self._at += length
        return raw.decode()

    def _skip(self, kind: int) -> None:
        if kind != _ARRAY:
            self._at += _SIZES[kind]
            return
        member, count = self._number("<I"), self._number("<Q")
        if member == _STRING:
            # Each has at least the eight bytes of its length: more than the file holds cannot be.
            if count * 8 > len(self._memory):
                raise _no_model(self._path, "its head is damaged")
            for _ in range(count):
                length = self._number("<Q")
                self._at += length
        else:
            self._at += _SIZES[member] * count


def _no_model(path: str, why: str) -> ModelError:
    return ModelError(f"{path} is no GGUF model: {why}. Name a model as local:FILE.gguf.", "no-model")


OPEN, CLOSE = "<tool_call>", "</tool_call>"
"""What stands around a call. Most small models that know tools at all were taught this."""
_SMALL_WINDOW = 8192
_MOST_CALLS = 8
_FORM = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
"""White space would be a place to go astray in. Of a keyword that the grammar does not know only the engine hears."""
_CLOSED = ("enum", "const", "pattern")
"""What says enough about a value."""
_ABOUT = {"description", "title", "default", "examples", "$comment"}
_LARGEST = 10**9
_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


class GrammarBounds(NamedTuple):
    """How long a value may become whose schema does not say it."""

    characters: int
    members: int
    is_small: bool

    @classmethod
    def of(cls, window: int) -> Self:
        """A model with a small window is a small model, and does not find an end by itself."""
        return cls(window // 64, 4, True) if window <= _SMALL_WINDOW else cls(window // 2, 64, False)


def head(name: str) -> str:
    """What stands before the arguments of a call, to the letter."""
    return f'{OPEN}\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '


TAIL = "}\n" + CLOSE


def grammar(definitions: Sequence[Definition], choice: ToolChoice | None, bounds: GrammarBounds) -> str:
    """Empty where anything may be said. What has no limit of its own in a schema has that of `bounds`.

    Raises: ModelError.
    """
    chosen = choice or ToolChoice()
    if chosen.kind == "tool":
        definitions = [one for one in definitions if one.name == chosen.name]
        if not definitions:
            raise ModelError(f"The model is to call {chosen.name}, and there is no such tool.", "bad")
    if not definitions or chosen.kind == "none":
        return ""
    lines = [
        "%llguidance {}",
        f"start: {_start(chosen, bounds)}",
        "call: " + " | ".join(map(_rule, range(len(definitions)))),
    ]
    for at, one in enumerate(definitions):
        schema = {**bound_schema(one.schema, bounds), "x-guidance": _FORM}
        lines.append(f"{_rule(at)}: {_literal(head(one.name))} arguments_{at} {_literal(TAIL)}")
        lines.append(f"arguments_{at}: %json {json.dumps(schema)}")
    if chosen.kind == "auto":
        lines.append(rf"WORDS: /(.|\n)+/ & ~/(.|\n)*{OPEN}(.|\n)*/")
    return "\n".join(lines)


def _start(choice: ToolChoice, bounds: GrammarBounds) -> str:
    # Who must call and cannot stop would call until the end of its tokens.
    is_several = choice.parallel or (choice.parallel is None and choice.kind == "auto" and not bounds.is_small)
    calls = f'call ("\\n" call){{0,{_MOST_CALLS - 1}}}' if is_several else "call"
    return f"WORDS | WORDS? {calls}" if choice.kind == "auto" else calls


def _rule(at: int) -> str:
    return f"call_{at}"


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def bound_schema(schema: Mapping[str, Any], bounds: GrammarBounds) -> dict[str, Any]:
    """The schema, such that whatever fits it comes to an end, and with no member that it does not name."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, Mapping):
            out[key] = {name: _inner(member, bounds) for name, member in value.items()}
        elif key in _LISTS and isinstance(value, Sequence):
            out[key] = [_inner(member, bounds) for member in value]
        elif key == "items" or (key == "additionalProperties" and value is not False):
            out[key] = _inner(value, bounds)
        else:
            out[key] = value
    kinds = out.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "string" in kinds and not any(key in out for key in _CLOSED):
        out.setdefault("maxLength", bounds.characters)
    if "integer" in kinds and not any(key in out for key in _CLOSED):
        out.setdefault("minimum", out.get("exclusiveMinimum", -_LARGEST))
        out.setdefault("maximum", out.get("exclusiveMaximum", _LARGEST))
    if "array" in kinds:
        out.setdefault("maxItems", max(bounds.members, out.get("minItems", 0)))
    if "object" in kinds and out.get("properties") and schema.get("additionalProperties", True) is True:
        out["additionalProperties"] = False
    return out


def _inner(value: Any, bounds: GrammarBounds) -> Any:
    if isinstance(value, Mapping) and (value.keys() - _ABOUT or not bounds.is_small):
        return bound_schema(value, bounds)
    # Anything at all has no end that a small model would find.
    if bounds.is_small and (value is True or isinstance(value, Mapping)):
        return bound_schema({"type": ["string", "integer", "boolean", "null"]}, bounds)
    return value


_HEAD = r'\s*\{"name": ("(?:[^"\\]|\\.)*"), "arguments": (?=\{)'


class LocalReader:
    """Reads one answer piece by piece. Without tools all of it is words."""

    def __init__(self, *, has_tools: bool) -> None:
        self._has_tools = has_tools
        self._text = ""
        """What came and was not said yet."""
        self._step = self._words
        """What is expected now. False where more has to come first."""
        self._at = -1
        self._whole = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> list[Delta]:
        if not self._has_tools:
            return [TextPiece(text)] if text else []
        self._text += text
        out: list[Delta] = []
        while self._text and self._step(out):
            pass
        return out

    def end(self, finish: str, usage: Usage) -> list[Delta]:
        """What is left, and the end; a call that is not complete is said to be cut."""
        out: list[Delta] = []
        if self._at >= self._whole:
            out.append(UseEnded(self._at, cut=True))
        elif self._text and self._step == self._words:
            out.append(TextPiece(self._text))
        reason: Reason = "length" if finish == "length" else "tools" if self._whole else "end"
        return [*out, AnswerEnd(reason, usage)]

    def _words(self, out: list[Delta]) -> bool:
        words, mark, rest = self._text.partition(OPEN)
        if not mark:
            kept = _overlap(words)
            words, rest = words[: len(words) - kept], words[len(words) - kept :]
        if words:
            out.append(TextPiece(words))
        self._text = rest
        if mark:
            self._step = self._head
        return bool(mark)

    def _head(self, out: list[Delta]) -> bool:
        match = re.match(_HEAD, self._text)
        if match is None:
            return False
        self._at += 1
        self._text = self._text[match.end() :]
        out.append(UseBegun(self._at, make_id("call_"), str(msgspec.json.decode(match[1]))))
        self._step = self._arguments
        return True

    def _arguments(self, out: list[Delta]) -> bool:
        length = self._object()
        piece = self._text if length is None else self._text[:length]
        self._text = self._text[len(piece) :]
        out.append(UsePiece(self._at, piece))
        if length is None:
            return False
        self._whole += 1
        out.append(UseEnded(self._at))
        self._step = self._tail
        return True

    def _tail(self, out: list[Delta]) -> bool:  # noqa: ARG002 - a step like the others; the end of a call is no delta
        if len(self._text) < len(TAIL):
            return False
        self._text = self._text.removeprefix(TAIL)
        self._step = self._gap
        return True

    def _gap(self, out: list[Delta]) -> bool:  # noqa: ARG002 - the same
        """Line breaks between two calls are no words."""
        self._text = self._text.lstrip("\n")
        if self._text:
            self._step = self._words
        return bool(self._text)

    def _object(self) -> int | None:
        """How far the object goes that is being read; None where it goes on."""
        for at, character in enumerate(self._text, 1):
            if self._in_string:
                self._in_string = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if not self._depth:
                    return at
        return None


def _overlap(text: str) -> int:
    """How much at the end of a text may be the beginning of a call."""
    return next((size for size in range(min(len(text), len(OPEN) - 1), 0, -1) if OPEN.startswith(text[-size:])), 0)


_HOW = f"""To use a tool, write only this:
{OPEN}
{{"name": "NAME", "arguments": {{"PARAMETER": "VALUE"}}}}
{CLOSE}
The tools:"""
RESULT = ("<tool_response>", "</tool_response>")
_MARKS = (OPEN, CLOSE, *RESULT)
_LINE_CHARACTERS = 160


def knows_tools(template: str) -> bool:
    """Does the template itself tell the model about tools, in the form that the grammar demands?"""
    return bool(re.search(r"\btools\b", template)) and OPEN in template and "<function=" not in template


class Telling:
    """Tells one model a conversation.

    What others wrote cannot pose as a mark: the ends of turns and of results are broken up by a space in it, wherever
    it comes from. For the model they would otherwise be the real ones, and a file could speak as the user.
    """

    def __init__(self, template: str, specials: Sequence[str]) -> None:
        self._is_known = knows_tools(template)
        marks = sorted({*specials, *_MARKS}, key=len, reverse=True)
        self._marks = re.compile("|".join(map(re.escape, marks)))

    def conversation(self, turns: Sequence[Turn], definitions: Sequence[Definition]) -> dict[str, Any]:
        """The members of the body that say what was said. A template that does not know tools is told in words."""
        system, rest = apart(turns)
        system = self._plain(system)
        body: dict[str, Any] = {}
        if definitions and self._is_known:
            body["chat_template_kwargs"] = {"tools": [self._function(one) for one in definitions]}
        elif definitions:
            told = "\n".join([_HOW, *map(self._line, definitions)])
            system = f"{system}\n\n{told}" if system else told
        messages = [{"role": "system", "content": system}] if system else []
        for turn in rest:
            for message in self._with_calls(turn) if self._is_known else self._in_words(turn):
                # Many templates insist on turns that alternate.
                if messages and _are_one(messages[-1], message):
                    messages[-1]["content"] += "\n\n" + message["content"]
                else:
                    messages.append(message)
        return {**body, "messages": messages}

    def _plain(self, text: str) -> str:
        return self._marks.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)

    def _function(self, one: Definition) -> dict[str, Any]:
        function = {"name": one.name, "description": one.words, "parameters": dict(one.schema)}
        return {"type": "function", "function": each_text(function, self._plain)}

    def _line(self, one: Definition) -> str:
        """A tool in one line: its parameters, and the first sentence about it. The grammar knows the rest."""
        required = set(one.schema.get("required", ()))
        names = (name if name in required else f"{name}?" for name in one.schema.get("properties", {}))
        about = re.split(r"(?<=[.!?])\s|\n", one.words.strip(), maxsplit=1)[0]
        return self._plain(f"{one.name}({', '.join(names)}): {about[:_LINE_CHARACTERS]}")

    def _with_calls(self, turn: Turn) -> Iterator[dict[str, Any]]:
        for part in turn.parts:
            if isinstance(part, Result):
                yield {"role": "tool", "tool_call_id": part.id, "content": self._words(part)}
        text = self._words(turn)
        called = [
            {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": self._arguments(use)}}
            for use in turn.parts
            if isinstance(use, Use)
        ]
        if called:
            yield {"role": "assistant", "content": text, "tool_calls": called}
        elif text:
            yield {"role": turn.role, "content": text}

    def _in_words(self, turn: Turn) -> Iterator[dict[str, Any]]:
        texts = []
        for part in turn.parts:
            if isinstance(part, Result):
                texts.append(f"{RESULT[0]}\n{self._words(part)}\n{RESULT[1]}")
            elif isinstance(part, Use):
                texts.append(f"{head(part.name)}{self._arguments(part)}{TAIL}")
            elif text := self._text(part):
                texts.append(text)
        if texts:
            yield {"role": turn.role, "content": "\n".join(texts)}

    def _arguments(self, use: Use) -> str:
        return self._plain(json_text(object_out(use)))

    def _words(self, holder: Turn | Result) -> str:
        return "\n".join(text for part in holder.parts if (text := self._text(part)))

    def _text(self, part: object) -> str:
        """Pictures are not shown to local models."""
        if isinstance(part, Text):
            return self._plain(part.text)
        if isinstance(part, Document):
            return self._plain(document_words(part) if part.text else "[A file, which this model cannot read.]")
        return "[A picture, which this model cannot see.]" if isinstance(part, Image) else ""


def _are_one(last: dict[str, Any], message: dict[str, Any]) -> bool:
    return last["role"] == message["role"] != "tool" and "tool_calls" not in last and "tool_calls" not in message


MOST_WINDOW = 32_768
"""Of a longer window only so much is taken where nothing else is said: all of it is memory from the start."""
_UNKNOWN_WINDOW = 4096
_BATCH_TOKENS = 128
"""Between two batches of the prompt it is looked whether anybody still wants the answer."""
_SEED = 1


def load(path: str, *, window: int | None = None) -> "LocalModel":
    """The model `local:PATH`; the file is only looked at, and loaded with the first question.

    Raises: ModelError.
    """
    if find_spec("xllamacpp") is None:
        raise ModelError("Models on this machine need an extra: pip install 'ferrule[local]'.", "no-model")
    return LocalModel(look(path), window=window)


class LocalModel:
    """Answers one question at a time; others wait. Nothing is left to chance where no temperature is asked for."""

    wire = "local"
    prices: Prices | None = None
    vision = False

    def __init__(
        self, file: LocalFile, *, window: int | None = None, start: "Callable[[LocalFile, int], Any] | None" = None
    ) -> None:
        self.name = f"local:{file.path}"
        self.model = os.path.basename(file.path)
        trained = file.context_length or _UNKNOWN_WINDOW
        self.window = min(window or MOST_WINDOW, trained)
        self.most_output = max(1, self.window // 4)
        self._file = file
        self._telling = Telling(file.template, file.specials)
        self._start = start or start_server
        self._server: Any = None
        self._worker: ThreadPoolExecutor | None = ThreadPoolExecutor(1, thread_name_prefix="ferrule-model")
        self._stops: set[_Stop] = set()

    async def ask(self, asked: ModelRequest) -> AsyncGenerator[Delta | RetryNotice, None]:
        """The answer as it is made. Whoever stops listening stops it.

        Raises: ModelError.
        """
        if self._worker is None:
            raise ModelError(f"{self.name} is closed.", "no-model")
        body = self.body(asked)
        reader = LocalReader(has_tools="grammar" in body)
        stop = _Stop(asyncio.get_running_loop())
        self._stops.add(stop)
        job = self._worker.submit(self._answer, body, stop)
        job.add_done_callback(stop.on_done)
        finish, usage, begun = "stop", Usage(), False
        try:
            while (chunk := await stop.chunks.get()) is not None:
                if not begun:
                    begun = True
                    yield AnswerStart(str(chunk.get("id", "")), self.model)
                usage = _usage(chunk) or usage
                for choice in chunk.get("choices", ()):
                    finish = choice.get("finish_reason") or finish
                    for delta in reader.feed(choice["delta"].get("content") or ""):
                        yield delta
            _check(job, self.name)
            for delta in reader.end(finish, usage):
                yield delta
        finally:
            stop.is_set = True
            self._stops.discard(stop)

    async def close(self) -> None:
        """Stops what it is saying and gives its memory back."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        for stop in self._stops:
            stop.is_set = True
        await asyncio.wrap_future(worker.submit(self._unload))
        worker.shutdown(wait=False)

    def body(self, asked: ModelRequest) -> dict[str, Any]:
        """What the library is asked. Raises: ModelError."""
        most = min(asked.max_tokens or self.most_output, self.most_output)
        held = grammar(asked.definitions, asked.choice, GrammarBounds.of(self.window))
        body = self._telling.conversation(asked.turns, asked.definitions if held else ())
        body |= {
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
            "cache_prompt": True,
            "max_tokens": most,
            "temperature": asked.temperature or 0.0,
            "seed": _SEED,
        }
        # A model that goes on as if it were the tool has nothing more to say.
        stops = [*asked.stop, *([RESULT[0]] if held else ())]
        if stops:
            body["stop"] = stops
        if held:
            body["grammar"] = held
        return body

    def _answer(self, body: dict[str, Any], stop: "_Stop") -> None:
        """On the worker's thread."""
        if self._server is None and not stop.is_set:
            self._server = self._start(self._file, self.window)
        if self._server is None or stop.is_set:
            return
        try:
            self._server.handle_chat_completions(body, stop.take)
        except Exception as error:
            raise ModelError(f"The model could not be asked: {_words(error)}.", "bad") from error
        stop.check()

    def _unload(self) -> None:
        """On the worker's thread: giving back takes a while too."""
        self._server = None


class _Stop:
    """Between the thread that makes an answer and whoever listens to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.chunks: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.is_set = False
        """Does nobody listen any more?"""
        self.error: ModelError | None = None
        self._loop = loop

    def take(self, chunk: dict[str, Any]) -> bool:
        """A piece of the answer, from the thread; True stops it."""
        if "error" in chunk:
            self.error = _trouble(chunk["error"])
            return True
        return self.is_set or not self._tell(lambda: self.chunks.put_nowait(chunk))

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def on_done(self, _: Future[None]) -> None:
        self._tell(lambda: self.chunks.put_nowait(None))

    def _tell(self, what: Callable[[], None]) -> bool:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            return False  # the loop is closed: nobody listens
        return True


def start_server(file: LocalFile, window: int) -> Any:
    """The library's server with the model in it. Raises: ModelError."""
    try:
        library: Any = import_module("xllamacpp")
    except ImportError as error:
        raise ModelError(f"xllamacpp cannot be used on this machine: {error}.", "no-model") from error
    parameters = library.CommonParams()
    parameters.model.path = file.path
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.chat_template = file.template
    parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    parameters.offline = True
    parameters.verbosity = -1
    threads = max(1, (os.cpu_count() or 2) // 2)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    # The library also listens on a port of this machine. Nobody has the key, so nobody else can ask the model.
    parameters.api_keys = [os.urandom(32).hex()]
    parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = parameters.endpoint_metrics = False
    try:
        return library.Server(parameters)
    except Exception as error:
        raise ModelError(
            f"The model {file.path} cannot be loaded: {_words(error)}. It may be damaged, or too large for this "
            "machine.",
            "no-model",
        ) from error


def _check(job: Future[None], name: str) -> None:
    error = job.exception()
    if isinstance(error, ModelError):
        raise error
    if error is not None:
        raise ModelError(f"{name} could not be asked: {_words(error)}.", "server") from error


def _words(error: BaseException) -> str:
    """What the library says, for the middle of a sentence."""
    return str(error).strip().rstrip(".") or type(error).__name__


def _trouble(error: dict[str, Any]) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        return ModelError(
            f"The conversation has {error.get('n_prompt_tokens', 'too many')} tokens, and the model on this machine "
            f"takes {error.get('n_ctx', 'fewer')}. Make it smaller with /compact, or offer it fewer tools.",
            "too-long",
        )
    said = str(error.get("message") or "it does not say why").strip().rstrip(".")
    return ModelError(f"The model on this machine failed: {said}.", "server")


def _usage(chunk: dict[str, Any]) -> Usage | None:
    usage = chunk.get("usage")
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details") or {}
    return Usage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), details.get("cached_tokens", 0))
