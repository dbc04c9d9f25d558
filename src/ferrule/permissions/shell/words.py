"""What a word becomes, where that is certain before anything is run."""

import os
import re
from functools import cache
from typing import TYPE_CHECKING

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.tokens import begins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

# One mark per character of a word beside the character itself: what is quoted, and what is not known.
QUOTED = "q"
KEPT = "Q"
"""Unknown, and one piece of one word whatever it becomes."""
SPLIT = "$"
"""Unknown, and any number of words."""

UNKNOWN = "\0"
"""Stands for what is not known, so that characters and marks stay side by side."""

_SIMPLE_ESCAPES = dict(zip("ntrabeEfv\\'\"?", "\n\t\r\a\b\x1b\x1b\f\v\\'\"?", strict=True))


@cache
def _plain() -> re.Pattern[bytes]:
    return re.compile(rb"[A-Za-z0-9_./:@%+,^=-]+")


@cache
def _braces() -> re.Pattern[str]:
    return re.compile(r"\{.*(?:,|\.\.|[$Q]).*\}", re.DOTALL)


@cache
def _codes() -> re.Pattern[str]:
    return re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.DOTALL)


def home() -> str | None:
    """The folder that `~` stands for."""
    folder = os.path.expanduser("~")
    return os.path.normpath(folder) if os.path.isabs(folder) else None


def word(node: "Node", source: bytes, *, assigned: bool = False) -> Word:
    """The word of a node; `assigned` where it is the value of an assignment."""
    raw = source[node.start_byte : node.end_byte]
    if node.type in {"word", "number"} and _plain().fullmatch(raw):
        return Word(raw.decode(), single=True)
    pieces = list(_pieces(node, source))
    shape = "".join(mark for _, mark in pieces)
    text = "".join(character for character, _ in pieces)
    written = raw.decode(errors="replace")
    unknown = [index for index, mark in enumerate(shape) if mark in {SPLIT, KEPT}]
    single = SPLIT not in shape
    if shape.startswith("~"):
        folder = home()
        # As it is written: even an empty pair of quotes keeps bash from expanding it.
        if folder is not None and (written == "~" or written.startswith("~/")):
            # Only what follows is looked at further: the home's own name is not expanded again.
            text, shape = folder + text[1:], QUOTED * len(folder) + shape[1:]
            unknown = [index + len(folder) - 1 for index in unknown]
        else:
            unknown.append(0)
    if re.search("[=:]~" if assigned or "=" in shape else "=~", shape):
        unknown.append(shape.index("~"))
    glob = not assigned and re.search(r"[*?\[]", shape) if shape != "[" else None
    braces = None if assigned else _braces().search(shape)
    # An unquoted blank cannot be inside of a word: the reading is not bash's.
    if re.search(r"[\s\\'\"`&|;<>()]", shape):
        unknown.append(0)
        single = False
    only_glob = glob is not None and not unknown and not braces
    unknown += [found.start() for found in (glob, braces) if found]
    if not unknown:
        return Word(text, single=True)
    return Word(
        written,
        known=False,
        start=text[: min(unknown)],
        single=(single or assigned) and not glob and not braces,
        glob=only_glob,
    )


def _pieces(node: "Node", source: bytes) -> "Iterator[tuple[str, str]]":
    for part in node.children if node.type == "concatenation" else [node]:
        raw = source[part.start_byte : part.end_byte].decode(errors="replace")
        match part.type:
            case "word" | "number" | "extglob_pattern" | "variable_name" | "test_operator" | "brace_expression":
                yield from _bare(raw)
            case "raw_string":
                yield from ((character, QUOTED) for character in raw[1:-1])
            case "ansi_c_string":
                decoded = ansi(raw[2:-1])
                yield from [(UNKNOWN, KEPT)] if decoded is None else [(character, QUOTED) for character in decoded]
            case "string":
                yield from _double(part, source)
            case "process_substitution" | "arithmetic_expansion":
                yield UNKNOWN, KEPT
            case _:
                yield UNKNOWN, SPLIT


def _bare(raw: str) -> "Iterator[tuple[str, str]]":
    characters = iter(raw)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following != "\n":
                yield following, QUOTED
        else:
            # The marks for what is unknown are letters and a dollar here.
            yield character, QUOTED if character in "qQ" else SPLIT if character == "$" else character


def _double(node: "Node", source: bytes) -> "Iterator[tuple[str, str]]":
    at = node.start_byte + 1
    for child in node.named_children:
        if child.type == "string_content":
            continue
        yield from _in_double(source[at : begins(child, source)].decode(errors="replace"))
        many = b"@" in source[child.start_byte : child.end_byte] and child.type in {"simple_expansion", "expansion"}
        yield UNKNOWN, SPLIT if many else KEPT
        at = child.end_byte
    yield from _in_double(source[at : node.end_byte - 1].decode(errors="replace"))


def _in_double(raw: str) -> "Iterator[tuple[str, str]]":
    characters = iter(raw)
    for character in characters:
        if character != "\\":
            yield character, QUOTED
            continue
        following = next(characters, "")
        if following == "\n":
            continue
        if following not in '$`"\\':
            yield "\\", QUOTED
        if following:
            yield following, QUOTED


def ansi(body: str) -> str | None:
    """What is between the quotes of `$'…'`, where it is the same in every locale."""
    out: list[str] = []
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out.append(body[at])
            at += 1
            continue
        found = _codes().match(body, at)
        if found is None:
            return None
        octal, *hexadecimal, letter = found.groups()
        if letter is not None:
            character = _SIMPLE_ESCAPES.get(letter)
        else:
            code = int(octal, 8) if octal else int(next(digits for digits in hexadecimal if digits), 16)
            character = chr(code) if 0 < code < 127 else None
        if character is None:
            return None
        out.append(character)
        at = found.end()
    return "".join(out)
