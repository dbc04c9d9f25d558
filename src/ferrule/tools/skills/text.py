"""Expand the instructions of a skill or of a command file with its arguments and commands.

The text is looked through once. What was put into it, an argument or the output of a command, is never looked at
again: a placeholder or a command in it stays text.

In a command an argument is one word, quoted for the shell. Where the command is written in a way that quoting is not
certain to work in, there is no command line at all. Whatever comes of it is judged as any other command line is.

A project's files count only with the bytes that the user trusts. Of two with one name the project's counts.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.files.frontmatter import front_matter
from ferrule.settings import COMMAND_FOLDERS
from ferrule.tools.skills import Parameter, clean_line, rules

MOST_COMMANDS = 20

# Patterns stay text until the first use: compiling them would be paid by every start of the program.
_PLACE = (
    r"\$ARGUMENTS\[(?P<at>\d{1,3})\]|\$(?P<short>\d{1,2})(?!\w|[.,]\d)|(?P<all>\$ARGUMENTS\b)"
    r"|(?P<session>\$\{CLAUDE_SESSION_ID\})|(?P<folder>\$\{CLAUDE_SKILL_DIR\})"
)
_COMMAND = r"(?<!\S)!`(?P<command>[^`\n]+)`"
_HAZARDS = ("$(", "${", "$'", '$"', "$[", "<<", "((", "[[", "#", "\\\n")
"""What a command must not have beside an argument: there a quotation mark may mean something else."""


class Unquotable(ValueError):  # noqa: N818 - the state
    """An argument cannot be put into a command; the message is the command."""


class SkillCommand(NamedTuple):
    """A command whose output belongs in the text."""

    line: str
    """In its final form."""


class Composed(NamedTuple):
    """The instructions, in pieces."""

    pieces: tuple[str | SkillCommand, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The command lines, in order."""
        return tuple(piece.line for piece in self.pieces if isinstance(piece, SkillCommand))

    def text(self, outputs: Sequence[str]) -> str:
        """The whole text, with an output for each command line."""
        rest = iter(outputs)
        return "".join(next(rest) if isinstance(piece, SkillCommand) else piece for piece in self.pieces)


class _Values:
    """What placeholders stand for."""

    def __init__(self, arguments: str, session: str, folder: str, first: int) -> None:
        self.arguments = arguments
        self.words = words(arguments)
        self.first = first
        self.named = {"session": session, "folder": folder}
        self.used = False
        """Has a placeholder of the arguments been met?"""

    def expand(self, place: re.Match[str]) -> list[str] | None:
        """The words that a placeholder stands for; None where there are none, so that it is no placeholder."""
        kind = place.lastgroup or ""
        if kind in self.named:
            return [self.named[kind]]
        if kind == "all":
            self.used = True
            return self.words
        at = int(place[kind]) - (self.first if kind == "short" else 0)
        if 0 <= at < len(self.words):
            self.used = True
            return [self.words[at]]
        self.used = self.used or kind == "at"
        return [] if kind == "at" else None


def words(arguments: str) -> list[str]:
    """Arguments as a shell would divide them; between blanks where their quotation marks do not match."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


def compose(body: str, *, arguments: str = "", session: str = "", folder: str = "", first: int = 0) -> Composed:
    """Put the arguments into the instructions, behind them where there is no place for them.

    `first` is the number of the first one: skills count from `$0`, commands from `$1`.

    Raises: Unquotable.
    """
    values = _Values(arguments, session, folder, first)
    pieces: list[str | SkillCommand] = []
    done = 0
    for found in re.finditer(f"{_COMMAND}|{_PLACE}", body):
        pieces.append(body[done : found.start()])
        done = found.end()
        if found["command"] is None:
            pieces.append(_in_prose(found, values))
        elif line := found["command"].strip():
            pieces.append(SkillCommand(_command(line, values)))
        else:
            pieces.append(found[0])
    pieces.append(body[done:])
    if arguments.strip() and not values.used:
        pieces.append(f"\n\nARGUMENTS: {arguments}")
    return Composed(tuple(piece for piece in pieces if piece))


def _in_prose(place: re.Match[str], values: _Values) -> str:
    meant = values.expand(place)
    if meant is None:
        return place[0]  # five dollars, and not the sixth argument
    return values.arguments if place.lastgroup == "all" else "".join(meant)


def _command(line: str, values: _Values) -> str:
    """The command line with its arguments quoted as the shell needs it where they stand."""
    done: list[str] = []
    quote, at, given = "", 0, False
    place = re.compile(_PLACE)
    while at < len(line):
        char = line[at]
        found = place.match(line, at) if char == "$" else None
        # Between single quotes `$1` is awk's, or whoever's the text is for.
        if found is not None and not (quote == "'" and found.lastgroup == "short"):
            meant = values.expand(found) or []
            given = given or any(meant)
            done.append(_quote(meant, values.arguments if found.lastgroup == "all" else "".join(meant), quote))
            at = found.end()
            continue
        width = 2 if (char == "\\" and quote != "'") or line.startswith("$$", at) else 1
        if width == 1 and char in "'\"":
            quote = "" if char == quote else quote or char
        done.append(line[at : at + width])
        at += width
    if given and any(hazard in place.sub("\0", line) for hazard in _HAZARDS):
        raise Unquotable(line)
    return "".join(done)


def _quote(meant: Sequence[str], whole: str, quote: str) -> str:
    """What stands in place of a placeholder: words of their own, or a part of the word that the quotes make."""
    if not quote:
        return shlex.join(meant)
    safe = shlex.quote(whole)
    return whole if safe == whole or not whole else f"{quote}{safe}{quote}"


def prompt_arguments(arguments: str, parameters: Sequence[Parameter]) -> dict[str, str]:
    """The arguments of a server's prompt: `name=value`, and the other words in order; the last one takes what is left.

    Raises: ValueError naming what is required and missing.
    """
    names = {one.name for one in parameters}
    given: dict[str, str] = {}
    loose: list[str] = []
    for word in words(arguments):
        name, equals, value = word.partition("=")
        if equals and name in names and name not in given:
            given[name] = value
        else:
            loose.append(word)
    free = [one.name for one in parameters if one.name not in given]
    for name in free[:-1]:
        if loose:
            given[name] = loose.pop(0)
    if free and loose:
        given[free[-1]] = " ".join(loose)
    missing = [one.name for one in parameters if one.is_required and one.name not in given]
    if missing:
        raise ValueError(", ".join(missing))
    return given


_MOST_FILES = 256
_MOST_DEPTH = 4
_FILE_BYTES = 1 << 18
_MOST_CHARS = 200


class CommandFile(msgspec.Struct, frozen=True, kw_only=True):
    """One command."""

    name: str
    """As it is typed behind the slash; folders stand before it, as in `sub:name`."""
    description: str
    layer: Literal["user", "project"]
    file: str
    body: str
    hint: str = ""
    """What it takes, for people."""
    rules: tuple[str, ...] = ()
    """Its `allowed-tools`."""
    model: str = ""


def read_command(text: str, name: str, layer: Literal["user", "project"], file: str) -> CommandFile:
    """Understand a file. One without a front matter, or with one that cannot be read, is all prompt."""
    header = front_matter(text, lenient=True)
    said = {key.strip().lower().replace("_", "-"): value for key, value in header.values.items()}
    body = header.body.strip()
    first = next((row.lstrip("# ") for row in body.splitlines() if row.strip()), "")
    return CommandFile(
        name=name,
        description=clean_line(_text(said.get("description")) or first)[:_MOST_CHARS],
        layer=layer,
        file=file,
        body=body,
        hint=clean_line(_text(said.get("argument-hint")))[:_MOST_CHARS],
        rules=rules(said.get("allowed-tools")),
        model=clean_line(_text(said.get("model")))[:_MOST_CHARS],
    )


def command_files(workspace: str, trusted: Mapping[str, bytes], folders: Sequence[str]) -> dict[str, CommandFile]:
    """All commands by name: those of the user's folders, then those of the project's whose bytes are trusted."""
    found: dict[str, CommandFile] = {}
    for folder in folders:
        for file in markdown_files(folder):
            if (raw := _read(file)) is not None:
                _take(found, raw, folder, "user", file)
    for name in COMMAND_FOLDERS:
        folder = os.path.join(workspace, name)
        for file, raw in sorted(trusted.items()):
            if file.startswith(folder + os.sep):
                _take(found, raw, folder, "project", file)
    return found


def markdown_files(folder: str, depth: int = _MOST_DEPTH) -> Iterator[str]:
    """The Markdown files of a folder and of those in it; links to folders are not followed."""
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda one: one.name)[:_MOST_FILES]
    except OSError:
        return
    for entry in inside:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth:
                yield from markdown_files(entry.path, depth - 1)
        elif entry.name.endswith(".md"):
            yield entry.path


def command_name(file: str, folder: str) -> str:
    """What is typed behind the slash for a file below a folder of commands."""
    return os.path.relpath(file, folder).removesuffix(".md").replace(os.sep, ":")


def _take(found: dict[str, CommandFile], raw: bytes, folder: str, layer: Literal["user", "project"], file: str) -> None:
    name = command_name(file, folder)
    if name.isprintable() and not any(char.isspace() for char in name):
        found[name] = read_command(raw.decode("utf-8", "replace"), name, layer, file)


def _read(file: str) -> bytes | None:
    try:
        if not os.path.isfile(file):  # a pipe would keep us waiting
            return None
        with open(file, "rb") as opened:
            raw = opened.read(_FILE_BYTES + 1)
    except OSError:
        return None
    return raw if len(raw) <= _FILE_BYTES else None


def _text(value: Any) -> str:
    """A value that is to be a text; `[file] [more]` is read as a list, and was meant as it is written."""
    if isinstance(value, list):
        return " ".join(f"[{one}]" for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""
