"""Define dialects: the faces of one model family under its own tool names, and the choice of one for a model.

A dialect is picked by the model's id. A family's words and schemas are kept as prose (`words.md`) and JSON
(`schemas.json`) beside its code. `COMING` lists canonical tools that faces name already but that do not exist yet,
with the issue that brings each.
"""

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.core.tool import Face

FAMILIES = ("amp", "claude", "wayland", "ah", "codex", "gemini", "opencode", "pi")
"""In the order in which their words are tried when a call is not in those of the session."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One model family's tools."""

    name: str
    faces: tuple[Face, ...]
    notes: str = ""
    """The folder, in the workspace, that the family's agents write their notes in; that needs no question."""
    protects: str = ""
    """The environment variable with folders, between colons, that no call of a session may write in."""
    short_names: bool = False
    """Is a tool of a server shown under its own name, as long as no other tool has that?"""
    defers: bool = False
    """Are tools of servers deferred also where they are few?"""
    deferred: tuple[str, ...] = ()
    """Names of faces that are found by a search and not advertised, as long as the settings say nothing else."""
    asks_programs: bool = False
    """Is every program in a folder of tools a tool, also one that nothing describes? It is asked."""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Another name → the name of a face; also for faces that are not here yet."""


_loaded: dict[str, Dialect] = {}


def load_dialect(name: str) -> Dialect:
    """A family's dialect by name; it is read once, when somebody first speaks it."""
    if name not in FAMILIES:
        raise ConfigError(f"There is no dialect called {name!r}. The dialects are {', '.join(sorted(FAMILIES))}.")
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = importlib.import_module(f"ferrule.dialects.{name}").dialect()
    return found


USUAL = "claude"
SMALLEST = "ah"
"""The dialect whose tools take the fewest tokens: four of them, with a line or two about each."""
SMALL_WINDOW = 16_000
"""A model that takes fewer tokens has no room for many tools."""
_FILE = re.compile(r"local:.|.\.gguf$")

NAMES: tuple[tuple[str, str], ...] = (
    (r"claude", "claude"),
    (r"codex|gpt|chatgpt|o\d", "codex"),
    (r"gemini", "gemini"),
)
"""How a model's name begins, as an expression → its dialect."""


def is_small(model: str, window: int | None = None) -> bool:
    """True for a model in a GGUF file, and for one with a window under 16,000 tokens."""
    return bool(_FILE.search(model.strip().lower())) or (window is not None and window < SMALL_WINDOW)


def pick(model: str, overrides: Mapping[str, str] | None = None, *, window: int | None = None) -> str:
    """The dialect for a model id such as `claude-opus-4-5`, `openai:gpt-5.2` or `models/gemini-3-pro`.

    A small model, by its id or its `window`, gets the dialect with the fewest tokens.

    What stands around a model's own name does not count, as in `us.anthropic.claude-x-v1:0` or `openai/gpt-5:free`.
    `overrides` maps beginnings of ids, with or without the provider, to dialects; the longest one that fits counts.
    """
    whole = model.strip().lower()
    fitting = [
        (len(start), dialect)
        for start, dialect in (overrides or {}).items()
        if any(name.startswith(start.strip().lower()) for name in (whole, *_names(whole, apart="/:.@")))
    ]
    if fitting:
        return max(fitting)[1]
    if is_small(whole, window):
        return SMALLEST
    own = whole.rpartition("/")[2]
    chosen = (dialect for name in _names(own, apart=":.@") for start, dialect in NAMES if re.match(start, name))
    return next(chosen, USUAL)


def _names(model: str, *, apart: str) -> Iterator[str]:
    """Each part of the id that may begin the model's own name, with all that follows it."""
    return (model[part.start() :] for part in re.finditer(f"[^{apart}]+", model))


_HEADING = "# "


def rows(folder: str) -> Callable[..., Face]:
    """What makes the faces of a family: the canonical tool, the family's name for it, and in what it differs."""
    schema, word = schemas(folder), words(folder)

    def face(tool: str, name: str, *, like: str = "", also: Mapping[str, Any] | None = None, **rest: Any) -> Face:
        """`like` is the name of the face whose words it shares; `also` are parameters that are understood besides.

        Models come to know parameters that the family's schema, which is a contract, does not have.
        """
        if also:
            rest["accepts"] = {**schema[name], "properties": {**schema[name]["properties"], **also}}
        return Face(tool=tool, name=name, schema=schema[name], words=word[like or name], **rest)

    return face


def words(folder: str) -> dict[str, str]:
    """`words.md` as its sections: tool name → what the model reads about it. A section begins with `# NAME`."""
    with open(os.path.join(folder, "words.md"), encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n" + _HEADING)
    pairs = (section.partition("\n") for section in sections[1:])
    return {name.strip(): text.strip() for name, _, text in pairs}


def schemas(folder: str) -> dict[str, dict[str, Any]]:
    """`schemas.json`: tool name → its JSON Schema."""
    with open(os.path.join(folder, "schemas.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, dict[str, Any]])


COMING: Mapping[str, int] = {}
