"""Format a file as its project does."""

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Formatted
from ferrule.core.tool import Context, Tool
from ferrule.support import process
from ferrule.support.beneath import describe
from ferrule.support.diff import diff
from ferrule.support.environment import quiet_environment
from ferrule.support.pipe import Piped, pipe
from ferrule.support.roster import Roster
from ferrule.support.sandbox.profile import nothing
from ferrule.support.threads import Threads
from ferrule.workspace.confinement import Confinement
from ferrule.workspace.formatters import MOST_BYTES, choose, explain_missing, upwards
from ferrule.workspace.guarded import Guard
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail
from ferrule.workspace.textfile import Binary, TextFile, Unencodable, is_binary, parse
from ferrule.workspace.transaction import Contents, Writer, read_file

if TYPE_CHECKING:
    from ferrule.support.starter import Starter

_SECONDS = 30.0
_MOST_FILE_BYTES = 8 << 20
_MOST_ANSWER_BYTES = 32 << 20
_COMPLAINT_LINES = 10
_COMPLAINT_CHARS = 2000


class FormatArgs(Args, frozen=True, kw_only=True):
    path: str


class Command(NamedTuple):
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
        answer = await _confined(command, file.text.encode(), path, ctx)
        if answer.exit_code and (
            why := ctx.need(Confinement).denied(answer.stderr.decode(errors="replace"), answer.exit_code)
        ):
            ctx.note(why)
        text = _text(answer, file, command.program, path)
        return await threads.finish(_write, command.program, path, file, text, ctx)


async def _confined(command: Command, text: bytes, path: str, ctx: Context) -> Piped:
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
        raise _failed(path, f"{command.argv[0]} cannot be run in {command.folder}: {describe(error)}.") from error
    finally:
        for descriptor in wrapped.descriptors:
            os.close(descriptor)
        if wrapped.done is not nothing:
            await ctx.need(Threads).finish(wrapped.done)


def _access(command: Command) -> Access:
    return Access.command(shlex.join(command.in_place), command.folder)


def _command(path: str, ctx: Context) -> Command:
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
    installed = process.program(formatter.program, outside=roots)
    program = installed or _own(formatter.own, os.path.dirname(path), root)
    if program is None:
        raise ToolFailure(
            f"{formatter.program} formats this file (configured in {chosen.folder}), but it is not installed. "
            f"Get it with: {formatter.install}.",
            code="no-formatter",
            path=path,
        )
    called = formatter.program if installed else os.path.relpath(program, chosen.folder)
    return Command(formatter.program, (program, *chosen.words), chosen.folder, (called, *chosen.in_place))


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
        raise _failed(path, f"{program} did not finish within {_SECONDS:g} seconds and was stopped.")
    if answer.stopped == "size":
        raise _failed(path, f"{program} wrote more than {_MOST_ANSWER_BYTES:,} bytes and was stopped.")
    if answer.exit_code != 0:
        raise _failed(path, f"{program} ended with exit code {answer.exit_code}{_complaint(answer.stderr)}")
    if not answer.stdout.strip() and file.text.strip():
        raise _failed(path, f"{program} answered with nothing for a file that is not empty{_complaint(answer.stderr)}")
    if is_binary(answer.stdout):
        raise _failed(path, f"{program} answered with something that is not a text.")
    try:
        return answer.stdout.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _failed(path, f"{program} answered with something that is not UTF-8.") from error


def _failed(path: str, why: str) -> ToolFailure:
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
    return Formatted(path, program, diff(ctx.need(Jail).shown(path), file.text, text))
