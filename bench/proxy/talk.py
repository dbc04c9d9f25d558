"""The nouns of the table: what a model says and what a client asks, in no API's words."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

APIS = ("anthropic", "openai-chat", "openai-responses", "gemini")

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE_URL = "https://pictures.example/cat.png"
PDF = "JVBERi0xLjQKMSAwIG9iago8PC9UeXBlL0NhdGFsb2c+PgplbmRvYmoKdHJhaWxlcjw8L1Jvb3QgMSAwIFI+Pg=="


@dataclass(frozen=True)
class Think:
    """Thinking, in the pieces in which it arrives."""

    pieces: tuple[str, ...]
    signature: str = ""


@dataclass(frozen=True)
class Words:
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A call whose arguments arrive in pieces of JSON."""

    id: str
    name: str
    pieces: tuple[str, ...]
    is_text: bool = False
    """Is it a custom tool of OpenAI's, whose input is one text and no JSON?"""
    bundle: str = ""
    """The bundle that the tool is of, for the Responses API."""

    @property
    def arguments(self) -> Any:
        return json.loads("".join(self.pieces) or "{}")


Saying = Think | Words | Call


@dataclass(frozen=True)
class Counted:
    """Tokens; `input` counts the cached ones too."""

    input: int = 1200
    output: int = 34
    cached: int = 0
    written: int = 0


@dataclass(frozen=True)
class Answer:
    """What the model says."""

    says: tuple[Saying, ...]
    reason: str = ""
    """end, tools, length, stopped or refused; by what is said if it is empty."""
    counted: Counted = Counted()
    id: str = "answer_1"

    @property
    def stop(self) -> str:
        return self.reason or ("tools" if any(isinstance(one, Call) for one in self.says) else "end")

    @property
    def text(self) -> str:
        return "".join("".join(one.pieces) for one in self.says if isinstance(one, Words))

    @property
    def thinking(self) -> str:
        return "".join("".join(one.pieces) for one in self.says if isinstance(one, Think))

    @property
    def calls(self) -> list[tuple[str, Any]]:
        return [(one.name, one.arguments) for one in self.says if isinstance(one, Call)]


def words(*pieces: str) -> Answer:
    return Answer((Words(pieces),))


def calls(*made: Call, before: tuple[Saying, ...] = (), **more: Any) -> Answer:
    return Answer((*before, *made), **more)


@dataclass(frozen=True)
class Part:
    """A part of a turn: text, image, image-url, pdf, document, call, result or thinking."""

    kind: str
    text: str = ""
    name: str = ""
    id: str = ""
    value: Any = None
    parts: tuple["Part", ...] = ()
    failed: bool = False


def text(said: str) -> Part:
    return Part("text", said)


def image() -> Part:
    return Part("image", IMAGE)


def call(id_: str, name: str, **arguments: Any) -> Part:
    return Part("call", id=id_, name=name, value=arguments)


def result(id_: str, name: str, *parts: Part | str, failed: bool = False) -> Part:
    made = tuple(text(one) if isinstance(one, str) else one for one in parts)
    return Part("result", id=id_, name=name, parts=made, failed=failed)


@dataclass(frozen=True)
class Turn:
    role: str
    parts: tuple[Part, ...]


def user(*parts: Part | str) -> Turn:
    return Turn("user", tuple(text(one) if isinstance(one, str) else one for one in parts))


def model(*parts: Part | str) -> Turn:
    return Turn("assistant", tuple(text(one) if isinstance(one, str) else one for one in parts))


@dataclass(frozen=True)
class Tool:
    name: str
    words: str
    schema: dict[str, Any]


READ = Tool(
    "Read",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}, "required": ["path"]},
)
WRITE = Tool(
    "Write",
    "Writes a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
)
NOW = Tool("Now", "Tells the time.", {"type": "object", "properties": {}})
TOOLS = (READ, WRITE, NOW)


@dataclass(frozen=True)
class Ask:
    """What a client asks for."""

    turns: tuple[Turn, ...] = (user("Say hello."),)
    system: str = ""
    tools: tuple[Tool, ...] = ()
    choice: str = ""
    """auto, any, none, or the name of a tool."""
    parallel: bool | None = None
    max_tokens: int | None = 1000
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    schema: dict[str, Any] | None = None
    thinking: int | None = None
    own: dict[str, Any] = field(default_factory=dict)
    """Fields in the API's own words, over all others."""

    def but(self, **changes: Any) -> "Ask":
        return replace(self, **changes)
