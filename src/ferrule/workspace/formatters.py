"""Which formatter a project uses for a file: a table of programs and of the configuration that speaks for each.

The lookup goes from the file's folder up to the root. A setting that can only be about formatting counts more than one
that may be about something else, wherever it lies; then the nearer folder counts, then the order of the table. So a
project that configures black and has ruff only for linting is formatted by black, and one with `[tool.ruff.format]` by
ruff; with nothing but `[tool.ruff]` it is ruff again.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MOST_BYTES = 1 << 18
"""Larger configuration files are not read: who parses them would hold up the event loop."""
MOST_BYTES_TOGETHER = 1 << 19
"""Of all that are parsed for one file, the nearest first."""

Reader = Callable[[str], bytes | None]
"""Absolute path → the bytes of the file; None where there is none that may be read."""


class Mark(NamedTuple):
    """A sign of a formatter: a file, or a key in it."""

    file: str
    key: tuple[str, ...] = ()
    sure: bool = True
    """Is it about formatting and nothing else?"""


class Formatter(NamedTuple):
    """One program. It reads a text from standard input and writes it formatted to standard output."""

    program: str
    endings: frozenset[str]
    marks: tuple[Mark, ...]
    words: tuple[str, ...]
    """What follows the program. `{path}` stands for the file, which the program does not open itself, `{edition}` for
    the edition of the language; a word whose edition nobody knows is left out."""
    in_place: tuple[str, ...]
    """What follows the program where somebody has it write the file itself: the command that permissions judge."""
    install: str
    """How to get it."""
    looked_for: str = ""
    """The marks in words; empty where no configuration is needed."""
    add: str = ""
    """What to add to a project that has none of them."""
    own: tuple[str, ...] = ()
    """Where projects keep a copy of their own."""


class Chosen(NamedTuple):
    """The formatter for a file."""

    formatter: Formatter
    folder: str
    """Where its configuration lies, and where it runs."""
    words: tuple[str, ...]
    """What follows the program."""
    in_place: tuple[str, ...]
    """The same where it writes the file itself."""


def _endings(names: str) -> frozenset[str]:
    return frozenset(f".{name}" for name in names.split())


_MODULES = ("js", "cjs", "mjs", "ts", "cts", "mts")
_PRETTIER = (
    ".prettierrc",
    *(f".prettierrc.{ending}" for ending in ("json", "json5", "yaml", "yml", "toml", *_MODULES)),
    *(f"prettier.config.{ending}" for ending in _MODULES),
)

TABLE: tuple[Formatter, ...] = (
    Formatter(
        "ruff",
        _endings("py pyi pyw"),
        (
            Mark("pyproject.toml", ("tool", "ruff", "format")),
            Mark("ruff.toml", ("format",)),
            Mark(".ruff.toml", ("format",)),
            Mark("pyproject.toml", ("tool", "ruff"), sure=False),
            Mark("ruff.toml", sure=False),
            Mark(".ruff.toml", sure=False),
        ),
        ("format", "--stdin-filename", "{path}", "-"),
        ("format", "{path}"),
        install="pip install ruff",
        looked_for="[tool.ruff] in pyproject.toml, ruff.toml, .ruff.toml",
        add="[tool.ruff.format] to pyproject.toml",
        own=(".venv/bin/ruff", "venv/bin/ruff"),
    ),
    Formatter(
        "black",
        _endings("py pyi pyw"),
        (Mark("pyproject.toml", ("tool", "black")),),
        ("-q", "--stdin-filename", "{path}", "-"),
        ("{path}",),
        install="pip install black",
        looked_for="[tool.black] in pyproject.toml",
        add="[tool.black] to pyproject.toml",
        own=(".venv/bin/black", "venv/bin/black"),
    ),
    Formatter(
        "prettier",
        _endings(
            "js jsx mjs cjs ts tsx mts cts vue css scss less html htm json json5 jsonc yaml yml md mdx markdown"
            " graphql gql"
        ),
        (
            *map(Mark, _PRETTIER),
            Mark("package.json", ("prettier",)),
            Mark("package.json", ("devDependencies", "prettier"), sure=False),
            Mark("package.json", ("dependencies", "prettier"), sure=False),
        ),
        ("--stdin-filepath", "{path}"),
        ("--write", "{path}"),
        install="npm install --save-dev prettier",
        looked_for=".prettierrc*, prettier.config.*, prettier in package.json",
        add="a .prettierrc",
        own=("node_modules/.bin/prettier",),
    ),
    Formatter(
        "gofmt",
        _endings("go"),
        (Mark("go.mod"),),
        (),
        ("-w", "{path}"),
        install="install Go from go.dev/dl, which brings it along",
    ),
    Formatter(
        "rustfmt",
        _endings("rs"),
        (Mark("rustfmt.toml"), Mark(".rustfmt.toml"), Mark("Cargo.toml", sure=False)),
        ("--edition={edition}",),
        ("{path}",),
        install="rustup component add rustfmt",
        looked_for="rustfmt.toml, .rustfmt.toml, Cargo.toml",
        add="a Cargo.toml or a rustfmt.toml",
    ),
    Formatter(
        "clang-format",
        _endings("c h cc hh cpp hpp cxx hxx c++ h++ m mm java proto"),
        (Mark(".clang-format"), Mark("_clang-format")),
        ("--assume-filename={path}",),
        ("-i", "{path}"),
        install="pip install clang-format",
        looked_for=".clang-format, _clang-format",
        add="a .clang-format",
        own=(".venv/bin/clang-format", "venv/bin/clang-format"),
    ),
)


def known(path: str) -> tuple[Formatter, ...]:
    """The formatters that there are for files like this one."""
    ending = os.path.splitext(path)[1].lower()
    return tuple(one for one in TABLE if ending in one.endings)


def choose(path: str, root: str, read: Reader) -> Chosen | None:
    """The formatter that is configured for the file, from its folder up to `root`; both are absolute and normal."""
    project = _Project(read)
    folders = tuple(upwards(os.path.dirname(path), root))
    found = [
        (not mark.sure, distance, place, folder)
        for place, formatter in enumerate(TABLE)
        if formatter in known(path)
        for distance, folder in enumerate(folders)
        for mark in formatter.marks
        if project.has(os.path.join(folder, mark.file), mark.key)
    ]
    if found:
        _, _, place, folder = min(found)
        return _chosen(TABLE[place], folder, path, folders, project)
    bare = next((one for one in known(path) if not one.looked_for), None)
    return _chosen(bare, folders[0], path, folders, project) if bare else None


def upwards(folder: str, root: str) -> Iterator[str]:
    """The folder and those above it, up to the root."""
    while folder != root and os.path.dirname(folder) != folder:
        yield folder
        folder = os.path.dirname(folder)
    yield folder


def explain_missing(path: str, root: str) -> str:
    """What was looked for in vain, and what would help."""
    name, formatters = os.path.basename(path), known(path)
    if not formatters:
        endings = " ".join(sorted({ending for one in TABLE for ending in one.endings}))
        return f"No formatter is known for {name}. These endings have one: {endings}."
    looked = "; ".join(f"for {one.program}: {one.looked_for}" for one in formatters)
    return (
        f"No formatter is configured for {name}. Looked from {os.path.dirname(path)} up to {root} {looked}. "
        f"Add {', or '.join(one.add for one in formatters)}."
    )


def _chosen(formatter: Formatter, folder: str, path: str, folders: tuple[str, ...], project: "_Project") -> Chosen:
    words = formatter.words
    if any("{edition}" in word for word in words):
        edition = _edition([project.content(os.path.join(one, "Cargo.toml")) for one in folders])
        words = tuple(word.replace("{edition}", edition or "") for word in words if edition or "{edition}" not in word)
    near = os.path.relpath(path, folder)
    near = os.path.join(os.curdir, near) if near.startswith("-") else near
    return Chosen(
        formatter,
        folder,
        tuple(word.replace("{path}", path) for word in words),
        tuple(word.replace("{path}", near) for word in formatter.in_place),
    )


def _edition(manifests: Sequence[Mapping[str, Any]]) -> str | None:
    """The edition of the nearest package; one that names none is of the first, one may leave it to its workspace."""
    package = next((one["package"] for one in manifests if isinstance(one.get("package"), dict)), None)
    edition = None if package is None else package.get("edition", "2015")
    if not isinstance(edition, str):
        edition = next((found for one in manifests if (found := _at(one, ("workspace", "package", "edition")))), None)
    return edition if isinstance(edition, str) and re.fullmatch(r"[0-9]{4}", edition) else None


class _Project:
    """Configuration files, each read and understood once."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._raw: dict[str, bytes | None] = {}
        self._contents: dict[str, Mapping[str, Any]] = {}
        self._left = MOST_BYTES_TOGETHER

    def has(self, file: str, key: tuple[str, ...]) -> bool:
        raw = self._bytes(file)
        if raw is None or not key:
            return raw is not None
        # Parsing costs a thousand times as much as this look.
        return key[-1].encode() in raw and _at(self.content(file), key) is not None

    def content(self, file: str) -> Mapping[str, Any]:
        """What is in a TOML or JSON file; nothing where it cannot be understood."""
        if file not in self._contents:
            raw = self._bytes(file) or b""
            self._left -= len(raw)
            self._contents[file] = _parsed(file, raw) if self._left >= 0 else {}
        return self._contents[file]

    def _bytes(self, file: str) -> bytes | None:
        if file not in self._raw:
            self._raw[file] = self._read(file)
        return self._raw[file]


def _parsed(file: str, raw: bytes) -> Mapping[str, Any]:
    if len(raw) > MOST_BYTES:
        return {}
    try:
        if file.endswith(".toml"):
            import tomllib  # only projects that have one

            content: object = tomllib.loads(raw.decode())
        else:
            import json  # as above

            content = json.loads(raw)
    except (ValueError, RecursionError):  # no such text, or nested to overflow the reader
        return {}
    return content if isinstance(content, dict) else {}


def _at(content: Mapping[str, Any], key: tuple[str, ...]) -> Any:
    found: Any = content
    for name in key:
        found = found.get(name) if isinstance(found, dict) else None
    return found
