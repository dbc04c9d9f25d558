"""How a caller's own names and values are quoted in a sentence: short, on one line, and never a secret."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

Path = tuple[str | int, ...]
"""Where a value stands inside the arguments: names of members and positions of items."""

LIMIT_CHARACTERS = 60
LIMIT_NAMES = 30

_PLAIN_NAME = re.compile(r"[\w$.@/-]+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SECRET = re.compile(
    r"(^|_)(passwords?|passwd|passphrase|secrets?|token|credentials?|authorization|cookies?"
    r"|(api|access|private)_?keys?)(_|$)"
)


def shown(value: Any, path: Path = ()) -> str:
    """The value in a few words; containers are described, and a value under a secret's name is hidden."""
    if isinstance(value, dict):
        return f"an object of {_count(len(value), 'member')}"
    if isinstance(value, list | tuple):
        return f"an array of {_count(len(value), 'item')}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if any(isinstance(part, str) and _names_secret(part) for part in path):
        return "(hidden)"
    return quoted(value) if isinstance(value, str) else _cut(str(value))


def quoted(text: str) -> str:
    """The text in double quotes, cut to its first characters, with what is not printable escaped."""
    # Cut first: the text may be a whole file.
    body = "".join(_visible(character) for character in text[:LIMIT_CHARACTERS])
    return f'"{body}{"…" if len(text) > LIMIT_CHARACTERS else ""}"'


def spelled(path: Path) -> str:
    """The parameter as its caller would write it, for example `edits[2].old`."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            parts.append(("." if parts else "") + named(part))
    return "".join(parts) or "The arguments"


def named(name: str) -> str:
    """A parameter's name: as it is where it is plain and short, quoted otherwise."""
    plain = len(name) <= LIMIT_CHARACTERS and _PLAIN_NAME.fullmatch(name) and name.isprintable()
    return name if plain else quoted(name)


def listed(names: Iterable[str]) -> str:
    """The names with commas between them; a long list is cut."""
    names = list(names)
    more = len(names) - LIMIT_NAMES
    return ", ".join(names[:LIMIT_NAMES]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= LIMIT_CHARACTERS else text[:LIMIT_CHARACTERS] + "…"


def _visible(character: str) -> str:
    if character in '"\\\n\r\t':
        return msgspec.json.encode(character).decode()[1:-1]
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def _names_secret(name: str) -> bool:
    # Whole words, so that `max_tokens` and `author` stay readable.
    words = _WORDS.findall(name[:LIMIT_CHARACTERS])
    return _SECRET.search("_".join(word.lower() for word in words)) is not None
