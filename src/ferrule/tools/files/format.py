"""Format a file with the formatter that its project configures.

A table lists the programs and the configuration that speaks for each. The lookup goes from the file's folder up
to the root. A setting that can only be about formatting counts more than one that may be about something else,
wherever it lies; then the nearer folder counts, then the order of the table. So a project that configures black
and has ruff only for linting is formatted by black, and one with `[tool.ruff.format]` by ruff; with only
`[tool.ruff]` it is ruff again.
"""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ferrule.core.access import Access
from ferrule.core.content import Formatted
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import REPLACES, Args, Context, Tool
from ferrule.files.diff import diff
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.ledger import Ledger
from ferrule.files.text import Binary, TextFile, Unencodable, is_binary, parse
from ferrule.files.transaction import Contents, Writer, read_file
from ferrule.sandbox import do_nothing
from ferrule.sandbox.confinement import Confinement
from ferrule.system import Threads
from ferrule.system.environment import program_on_path, quiet_environment
from ferrule.system.folder import describe
from ferrule.system.run import Piped, pipe
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from ferrule.system.child import Starter


MOST_BYTES = 1 << 18
"""Larger configuration files are not read: who parses them would hold up the event loop."""
MOST_BYTES_TOGETHER = 1 << 19
"""Of all that are parsed for one file, the nearest first."""

Reader = Callable[[str], bytes | None]
"""Absolute path → the bytes of the file; None where there is none that may be read."""


class FormatterMarker(NamedTuple):
    """A sign of a formatter: a file, or a key in it."""

    file: str
    key: tuple[str, ...] = ()
    sure: bool = True
    """Is it about formatting and nothing else?"""


class Formatter(NamedTuple):
    """One program. It reads a text from standard input and writes it formatted to standard output."""

    program: str
    endings: frozenset[str]
    marks: tuple[FormatterMarker, ...]
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


class FormatterChoice(NamedTuple):
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
            FormatterMarker("pyproject.toml", ("tool", "ruff", "format")),
            FormatterMarker("ruff.toml", ("format",)),
            FormatterMarker(".ruff.toml", ("format",)),
            FormatterMarker("pyproject.toml", ("tool", "ruff"), sure=False),
            FormatterMarker("ruff.toml", sure=False),
            FormatterMarker(".ruff.toml", sure=False),
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
        (FormatterMarker("pyproject.toml", ("tool", "black")),),
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
            *map(FormatterMarker, _PRETTIER),
            FormatterMarker("package.json", ("prettier",)),
            FormatterMarker("package.json", ("devDependencies", "prettier"), sure=False),
            FormatterMarker("package.json", ("dependencies", "prettier"), sure=False),
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
        (FormatterMarker("go.mod"),),
        (),
        ("-w", "{path}"),
        install="install Go from go.dev/dl, which brings it along",
    ),
    Formatter(
        "rustfmt",
        _endings("rs"),
        (FormatterMarker("rustfmt.toml"), FormatterMarker(".rustfmt.toml"), FormatterMarker("Cargo.toml", sure=False)),
        ("--edition={edition}",),
        ("{path}",),
        install="rustup component add rustfmt",
        looked_for="rustfmt.toml, .rustfmt.toml, Cargo.toml",
        add="a Cargo.toml or a rustfmt.toml",
    ),
    Formatter(
        "clang-format",
        _endings("c h cc hh cpp hpp cxx hxx c++ h++ m mm java proto"),
        (FormatterMarker(".clang-format"), FormatterMarker("_clang-format")),
        ("--assume-filename={path}",),
        ("-i", "{path}"),
        install="pip install clang-format",
        looked_for=".clang-format, _clang-format",
        add="a .clang-format",
        own=(".venv/bin/clang-format", "venv/bin/clang-format"),
    ),
)


def find_formatters(path: str) -> tuple[Formatter, ...]:
    """The formatters that there are for files like this one."""
    ending = os.path.splitext(path)[1].lower()
    return tuple(one for one in TABLE if ending in one.endings)


def choose(path: str, root: str, read: Reader) -> FormatterChoice | None:
    """The formatter that is configured for the file, from its folder up to `root`; both are absolute and normal."""
    project = _Project(read)
    folders = tuple(upwards(os.path.dirname(path), root))
    found = [
        (not mark.sure, distance, place, folder)
        for place, formatter in enumerate(TABLE)
        if formatter in find_formatters(path)
        for distance, folder in enumerate(folders)
        for mark in formatter.marks
        if project.has(os.path.join(folder, mark.file), mark.key)
    ]
    if found:
        _, _, place, folder = min(found)
        return _build_choice(TABLE[place], folder, path, folders, project)
    bare = next((one for one in find_formatters(path) if not one.looked_for), None)
    return _build_choice(bare, folders[0], path, folders, project) if bare else None


def upwards(folder: str, root: str) -> Iterator[str]:
    """The folder and those above it, up to the root."""
    while folder != root and os.path.dirname(folder) != folder:
        yield folder
        folder = os.path.dirname(folder)
    yield folder


def explain_missing(path: str, root: str) -> str:
    """What was looked for in vain, and what would help."""
    name, formatters = os.path.basename(path), find_formatters(path)
    if not formatters:
        endings = " ".join(sorted({ending for one in TABLE for ending in one.endings}))
        return f"No formatter is known for {name}. These endings have one: {endings}."
    looked = "; ".join(f"for {one.program}: {one.looked_for}" for one in formatters)
    return (
        f"No formatter is configured for {name}. Looked from {os.path.dirname(path)} up to {root} {looked}. "
        f"Add {', or '.join(one.add for one in formatters)}."
    )


def _build_choice(
    formatter: Formatter, folder: str, path: str, folders: tuple[str, ...], project: "_Project"
) -> FormatterChoice:
    words = formatter.words
    if any("{edition}" in word for word in words):
        edition = _edition([project.content(os.path.join(one, "Cargo.toml")) for one in folders])
        words = tuple(word.replace("{edition}", edition or "") for word in words if edition or "{edition}" not in word)
    near = os.path.relpath(path, folder)
    near = os.path.join(os.curdir, near) if near.startswith("-") else near
    return FormatterChoice(
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
            self._contents[file] = _parse_config(file, raw) if self._left >= 0 else {}
        return self._contents[file]

    def _bytes(self, file: str) -> bytes | None:
        if file not in self._raw:
            self._raw[file] = self._read(file)
        return self._raw[file]


def _parse_config(file: str, raw: bytes) -> Mapping[str, Any]:
    if len(raw) > MOST_BYTES:
        return {}
    try:
        if file.endswith(".toml"):
            content: object = tomllib.loads(raw.decode())
        else:
            content = json.loads(raw)
    except (ValueError, RecursionError):  # no such text, or nested to overflow the reader
        return {}
    return content if isinstance(content, dict) else {}


def _at(content: Mapping[str, Any], key: tuple[str, ...]) -> Any:
    found: Any = content
    for name in key:
        found = found.get(name) if isinstance(found, dict) else None
    return found


_SECONDS = 30.0
_MOST_FILE_BYTES = 8 << 20
_MOST_ANSWER_BYTES = 32 << 20
_COMPLAINT_LINES = 10
_COMPLAINT_CHARS = 2000


class FormatArgs(Args, frozen=True, kw_only=True):
    path: str


class FormatCommand(NamedTuple):
    """What will run, and where."""

    program: str
    """The formatter's plain name."""
    argv: tuple[str, ...]
    folder: str
    in_place: tuple[str, ...]
    """The command that does the same to the file itself."""


class Format(Tool[FormatArgs, Formatted]):
    """The project's own formatter over one file: it is given the text, and its answer is a write like every other."""

    name = "format"
    args = FormatArgs
    title = "Format a file"
    hints = REPLACES

    def access(self, args: FormatArgs, ctx: Context) -> tuple[Access, ...]:
        """A formatter is code that the repository chooses or even brings along: it is judged as a command line is."""
        path = ctx.path(args.path)
        ctx.need(Guard).check_write(path)  # first: what is said about other files says whether they are there
        if not ctx.need(Jail).holds(path):
            return (Access.write(path),)  # nothing is looked at there before somebody has said yes
        command = _command(path, ctx)
        return (_access(command), Access.write(path))

    async def run(self, args: FormatArgs, ctx: Context) -> Formatted:
        path, threads = ctx.path(args.path), ctx.need(Threads)
        command = await threads.run(_command, path, ctx)
        if _access(command) not in ctx.touches:
            raise ToolFailure(
                "What formats this file is not what the call was let in with: its configuration was changed, or its "
                "folder has only now been opened. Nothing was run. Try again.",
                code="changed-meanwhile",
                path=path,
            )
        file = await threads.run(_read, path, ctx)
        ctx.need(Jail).check(command.folder)
        answer = await _run_confined(command, file.text.encode(), path, ctx)
        if answer.exit_code and (
            why := ctx.need(Confinement).explain_denial(answer.stderr.decode(errors="replace"), answer.exit_code)
        ):
            ctx.note(why)
        text = _text(answer, file, command.program, path)
        return await threads.finish(_write, command.program, path, file, text, ctx)


async def _run_confined(command: FormatCommand, text: bytes, path: str, ctx: Context) -> Piped:
    """What it answers. It runs as commands do: it, its plug-ins and its settings may come from what they can write."""
    wrapped = await ctx.need(Confinement).wrap(command.argv, cwd=command.folder)
    try:
        return await pipe(
            wrapped.argv,
            text,
            cwd=command.folder,
            env={**quiet_environment(os.environ), **wrapped.env},
            seconds=_SECONDS,
            limit_bytes=_MOST_ANSWER_BYTES,
            roster=ctx.need(Roster),
            starter=cast("Starter | None", wrapped.starter),
            descriptors=wrapped.descriptors,
        )
    except OSError as error:
        raise _build_failure(
            path, f"{command.argv[0]} cannot be run in {command.folder}: {describe(error)}."
        ) from error
    finally:
        for descriptor in wrapped.descriptors:
            os.close(descriptor)
        if wrapped.done is not do_nothing:
            await ctx.need(Threads).finish(wrapped.done)


def _access(command: FormatCommand) -> Access:
    return Access.command(shlex.join(command.in_place), command.folder)


def _command(path: str, ctx: Context) -> FormatCommand:
    """The command for a file inside the jail, as the project's configuration has it now."""
    jail = ctx.need(Jail)
    root = jail.place(path).root.path
    if path == root or not os.path.lexists(path):
        raise ToolFailure("There is no such file to format.", code="not-found", path=path)
    chosen = choose(path, root, lambda file: _configuration(file, jail))
    if chosen is None:
        raise ToolFailure(explain_missing(path, root), code="no-formatter", path=path)
    formatter = chosen.formatter
    roots = [one.path for one in jail.roots]
    installed = program_on_path(formatter.program, outside=roots)
    program = installed or _own(formatter.own, os.path.dirname(path), root)
    if program is None:
        raise ToolFailure(
            f"{formatter.program} formats this file (configured in {chosen.folder}), but it is not installed. "
            f"Get it with: {formatter.install}.",
            code="no-formatter",
            path=path,
        )
    called = formatter.program if installed else os.path.relpath(program, chosen.folder)
    return FormatCommand(formatter.program, (program, *chosen.words), chosen.folder, (called, *chosen.in_place))


def _own(names: Sequence[str], folder: str, root: str) -> str | None:
    """The copy that the project has for itself, the nearest one."""
    files = (os.path.join(above, name) for above in upwards(folder, root) for name in names)
    return next((file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)), None)


def _configuration(file: str, jail: Jail) -> bytes | None:
    """A regular file of the workspace, or one more byte than is wanted of it."""
    if not os.path.lexists(file):  # mostly: looking for marks is looking at what is not there
        return None
    try:
        place = jail.place(jail.real(file))
        with place.folder() as folder:
            return folder.read(place.name, MOST_BYTES)
    except (OSError, ToolFailure):  # not there, or not a file of the workspace
        return None


def _read(path: str, ctx: Context) -> TextFile:
    try:
        raw = read_file(ctx.need(Jail).place(path))
    except OSError as error:
        raise ToolFailure(f"{describe(error)}: {path}", path=path) from error
    if raw is None:
        raise ToolFailure("There is no such file to format.", code="not-found", path=path)
    if len(raw) > _MOST_FILE_BYTES:
        raise ToolFailure(
            f"The file has {len(raw):,} bytes; {_MOST_FILE_BYTES:,} is the most that is formatted.",
            code="too-large",
            path=path,
            count=len(raw),
        )
    try:
        return parse(raw)
    except Binary as error:
        raise ToolFailure("The file is binary and cannot be formatted.", code="binary", path=path) from error


def _text(answer: Piped, file: TextFile, program: str, path: str) -> str:
    """The formatted text; nothing that could be half of it or something else."""
    if answer.stopped == "time":
        raise _build_failure(path, f"{program} did not finish within {_SECONDS:g} seconds and was stopped.")
    if answer.stopped == "size":
        raise _build_failure(path, f"{program} wrote more than {_MOST_ANSWER_BYTES:,} bytes and was stopped.")
    if answer.exit_code != 0:
        raise _build_failure(path, f"{program} ended with exit code {answer.exit_code}{_complaint(answer.stderr)}")
    if not answer.stdout.strip() and file.text.strip():
        raise _build_failure(
            path, f"{program} answered with nothing for a file that is not empty{_complaint(answer.stderr)}"
        )
    if is_binary(answer.stdout):
        raise _build_failure(path, f"{program} answered with something that is not a text.")
    try:
        return answer.stdout.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _build_failure(path, f"{program} answered with something that is not UTF-8.") from error


def _build_failure(path: str, why: str) -> ToolFailure:
    return ToolFailure(f"{why} Nothing was changed.", code="format-failed", path=path)


def _complaint(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()[:_COMPLAINT_LINES]
    said = "\n".join(lines)[:_COMPLAINT_CHARS]
    return f":\n{said}\n" if said else "."


def _write(program: str, path: str, file: TextFile, text: str, ctx: Context) -> Formatted:
    try:
        raw = file.bom + text.encode(file.encoding)
    except UnicodeEncodeError as error:
        unencodable = Unencodable(text[error.start], file.encoding)
        raise ToolFailure(f"{unencodable} Nothing was changed.", code="unencodable", path=path) from error

    def plan(found: Contents) -> Contents:
        if found[path] != file.raw:
            raise ToolFailure(
                f"{path} was changed while {program} ran, by somebody else or by {program} itself; "
                "what it answered was not written. Read the file again.",
                code="changed-meanwhile",
                path=path,
            )
        return {path: raw}

    written = ctx.need(Writer).apply([path], plan, kind="format", call_id=ctx.call_id)
    ledger = ctx.need(Ledger)
    if ledger.knows(path) and not ledger.stale(path, file.raw):
        ledger.saw(path, raw)  # who knows the file and the diff knows the new one
    for note in written.notes:
        ctx.note(note)
    if not written.entry_id:
        return Formatted(path, program, "")
    ctx.track(path, (written.before[path], written.after[path]))
    return Formatted(path, program, diff(ctx.need(Jail).display_path(path), file.text, text))
