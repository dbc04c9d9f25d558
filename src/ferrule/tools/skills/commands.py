"""Commands that files describe: `NAME.md` in a folder of commands, with a front matter and a prompt below it.

A project's files count only with the bytes that the user trusts. Of two with one name the project's counts.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ferrule.files.frontmatter import front_matter
from ferrule.tools.skills.skills import clean_line, rules

FOLDERS = (".claude/commands", ".agents/commands", ".ferrule/commands")
"""In a project and in the home folder; the later one overrides the earlier one."""
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
    for name in FOLDERS:
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
