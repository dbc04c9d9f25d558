"""What a word becomes, where that is certain before anything is run."""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ferrule.permissions.shell.effects import harmless_name, may_be_set
from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.tokens import begins
from ferrule.support.environment import is_telling

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
TOLD = "\1"
"""The same for what is not known and may be told."""

OPEN = frozenset(
    {
        *("HOME", "PWD", "OLDPWD", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "HOSTNAME", "CI"),
        *("HOSTTYPE", "OSTYPE", "MACHTYPE", "UID", "EUID", "PPID", "RANDOM", "SECONDS", "EPOCHSECONDS", "LINENO"),
        *("SHLVL", "BASH_VERSION", "VIRTUAL_ENV", "NODE_ENV", "EDITOR", "PAGER", "COLUMNS", "LINES", "TZ", "LC_ALL"),
    }
)
"""Variables of the environment whose values anybody may see."""


class Variables(NamedTuple):
    """What is known of a line's variables at one place."""

    values: Mapping[str, Word] = {}
    """What they stand for, where that is certain."""
    closed: bool = True
    """May a variable that the line sets hold what it should not tell?"""
    own: frozenset[str] = frozenset()
    """The names in capitals that the line sets itself."""

    def tells(self, name: str) -> bool:
        if name in OPEN or re.fullmatch(r"[\d?#$!]", name):
            return True
        return not self.closed and (harmless_name(name) or name in self.own)


NO_VARIABLES = Variables()


def closed(source: bytes) -> bool:
    """Does the line use a variable that it does not set itself, and that not everybody may see?"""
    names = {name.decode() for name in re.findall(rb"\$\{?[#!]?([A-Za-z_]\w*)", source)} - own(source)
    return any(name not in OPEN and not harmless_name(name) for name in names)


def own(source: bytes) -> frozenset[str]:
    """The names in capitals that the line sets before it uses them, and that no secret would have."""
    found: set[str] = set()
    for match in re.finditer(rb"(?:^|[;&|({\n]|\b(?:do|then|else))\s*([A-Z][A-Z0-9_]*)=", source):
        name = match[1]
        before = re.search(rb"\$\{?[#!]?" + name + rb"(?!\w)", source[: match.end()])
        value = re.match(rb"[^;&|\n]*\$\{?" + name + rb"(?!\w)", source[match.end() :])
        if not before and not value and may_be_set(name.decode()) and not is_telling(name.decode()):
            found.add(name.decode())
    return frozenset(found)


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


def word(node: "Node", source: bytes, *, assigned: bool = False, variables: Variables = NO_VARIABLES) -> Word:
    """The word of a node; `assigned` where it is the value of an assignment."""
    raw = source[node.start_byte : node.end_byte]
    if node.type in {"word", "number"} and _plain().fullmatch(raw):
        return Word(raw.decode(), single=True)
    if node.type == "process_substitution" and raw.startswith(b"<("):
        # Bash puts the name of an open file in its place, which never begins with a dash.
        return Word(raw.decode(errors="replace"), known=False, start="/dev/fd/", single=True, told=True, stream=True)
    if raw.startswith(b'"') and not assigned and (found := re.fullmatch(rb'"\$(?:(\w+)|\{(\w+)\})"', raw)):
        value = variables.values.get((found[1] or found[2]).decode())
        if value is not None and value.glob:  # each of the files that it finds, one at a time
            return value
    pieces = list(_pieces(node, source, variables))
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
    told = all(text[index] == TOLD for index in unknown)
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
        told=told and not glob,
    )


def _pieces(node: "Node", source: bytes, variables: Variables) -> "Iterator[tuple[str, str]]":
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
                yield from _double(part, source, variables)
            case "arithmetic_expansion":
                yield TOLD, KEPT
            case "process_substitution":
                yield UNKNOWN, KEPT
            case _:
                value, mark = _expanded(part, source, variables)
                # Unquoted, a value is split and expanded again: only plain ones stay what they are.
                if value is not None and _plain().fullmatch(value.encode()):
                    yield from ((character, QUOTED) for character in value)
                else:
                    yield mark, SPLIT


def _expanded(node: "Node", source: bytes, variables: Variables) -> tuple[str | None, str]:
    """The value of an expansion, where it is certain, and the mark of what is not."""
    raw = source[begins(node, source) : node.end_byte]
    if node.type == "command_substitution" and raw == b"$(nproc)":
        return str(os.cpu_count() or 1), TOLD
    if node.type == "command_substitution":
        return None, TOLD  # what its commands tell is decided on by themselves
    found = re.match(rb"\$\{?#?(\w+|[?#$!])", raw) if node.type in {"simple_expansion", "expansion"} else None
    if found is None:
        return None, UNKNOWN
    name = found[1].decode()
    value = variables.values.get(name)
    if value is not None and value.known:
        # What stands behind `:-` counts only where the variable is empty.
        otherwise = value.text and re.fullmatch(rb"\$\{\w+:?-[\w./]*\}", raw)
        if raw in {b"$" + found[1], b"${" + found[1] + b"}"} or otherwise:
            return value.text, UNKNOWN
    return None, TOLD if variables.tells(name) else UNKNOWN


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


def _double(node: "Node", source: bytes, variables: Variables) -> "Iterator[tuple[str, str]]":
    at = node.start_byte + 1
    for child in node.named_children:
        if child.type == "string_content":
            continue
        yield from _in_double(source[at : begins(child, source)].decode(errors="replace"))
        many = b"@" in source[child.start_byte : child.end_byte] and child.type in {"simple_expansion", "expansion"}
        value, mark = (None, TOLD) if child.type == "arithmetic_expansion" else _expanded(child, source, variables)
        if value is not None:
            yield from ((character, QUOTED) for character in value)
        else:
            yield mark, SPLIT if many else KEPT
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
