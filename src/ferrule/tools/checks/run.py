"""Run one check as a command and report the progress of all checks of a call."""

import contextlib
import os
import re
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.files.jail import Jail
from ferrule.sandbox.confinement import Confinement
from ferrule.system import Threads
from ferrule.system.command import Finished
from ferrule.system.environment import describe_limit, find
from ferrule.tools.checks import Check, Checked, CheckRun, CheckWatch
from ferrule.tools.checks.parse_output import problems
from ferrule.tools.lsp import Problem
from ferrule.tools.shell.command import CommandStart, begin

_SHOWN = 3
_MOST_CHARS = 200


class Board:
    """Knows which checks run and which have ended."""

    def __init__(self, ctx: Context, total: int) -> None:
        self._ctx = ctx
        self.total = total
        self._watch = _watch(ctx)
        self._running: dict[str, float] = {}
        self._ended: list[Checked] = []

    def began(self, check: Check) -> None:
        self._running[check.name] = time.monotonic()
        self._watch.began(check)
        self.tell()

    def ended(self, checked: Checked) -> None:
        self._running.pop(checked.check.name, None)
        self._ended.append(checked)
        self._watch.ended(checked)
        self.tell()

    def done(self, run: CheckRun) -> None:
        self._watch.done(run)

    def tell(self) -> None:
        self._ctx.progress(self.line())

    def line(self) -> str:
        """`2 of 5 done: mypy passed 3.2 s; running: pytest (41 s)`."""
        done = ", ".join(f"{one.check.name} {one.status} {one.seconds:.1f} s" for one in self._ended[-_SHOWN:])
        now = time.monotonic()
        running = ", ".join(f"{name} ({now - since:.0f} s)" for name, since in self._running.items())
        said = f"{len(self._ended)} of {self.total} done" + f": {done}" * bool(done)
        said += f"; running: {running}" * bool(running)
        return said if len(said) <= _MOST_CHARS else said[: _MOST_CHARS - 1] + "…"


def _watch(ctx: Context) -> CheckWatch:
    try:
        return ctx.need(CheckWatch)
    except TypeError:  # nobody watches
        return CheckWatch()


HALF_CHARS = 500_000
"""So much of the beginning and of the end of an output is looked at; the rest is in the log."""
MOST_PROBLEMS = 50
TAIL_LINES = 40
_TAIL_CHARS = 8_000
_DENIED_CHARS = 4_000
_NOT_FOUND = 127
_COMPLAINT_LINES = 30
_COMPLAINT_CHARS = 300
_ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {"CI": "1", "NO_COLOR": "1", "DOTNET_NOLOGO": "1", "npm_config_fetch_retries": "0"}
)
"""Nothing watches, asks or colours. `FORCE_COLOR` is not set: for some programs it means colour whatever it says.

What npm has not got at hand it does not get in a sandbox either, and would try for more than a minute.
"""
_NPM: Mapping[str, str] = MappingProxyType({**_ENVIRONMENT, "npm_config_loglevel": "silent"})
"""The same for npm, which tells the script's name before the script and advises people after it."""
_INSTALL = {
    "go": "https://go.dev/dl",
    "gofmt": "https://go.dev/dl",
    "golangci-lint": "https://golangci-lint.run",
    "cargo": "https://rustup.rs",
    "cargo-clippy": "rustup component add clippy",
    "cargo-fmt": "rustup component add rustfmt",
    "npm": "https://nodejs.org",
    "node": "https://nodejs.org",
    "pnpm": "npm install -g pnpm",
    "yarn": "npm install -g yarn",
    "bun": "https://bun.sh",
    "deno": "https://deno.com",
    "make": "your system's package manager",
    "just": "https://just.systems",
    "uv": "https://docs.astral.sh/uv",
    "pre-commit": "pip install pre-commit",
}
_NODE = {
    "tsc": "typescript",
    "eslint": "eslint",
    "biome": "@biomejs/biome",
    "vitest": "vitest",
    "jest": "jest",
    "prettier": "prettier",
}
_NOT_THERE = re.compile(
    r"(?:/\S*/)?(?:sh|bash|dash|ash)(?:\[\d+\])?: (?:line )?(?:\d+: )?([\w.@/+-]+): (?:command )?not found"
    r"|zsh:(?:\d+:)? command not found: ([\w.@/+-]+)"
    r"|(?:make|gmake)(?:\[\d+\])?: ([\w.@/+-]+): (?:No such file or directory|Command not found)"
)
"""What shells say of a program that is not there, and make, which starts plain ones without a shell."""
_PACKAGES = ("npm", "pnpm", "yarn", "bun")
_PYTHON = (
    "ruff",
    "mypy",
    "pytest",
    "black",
    "isort",
    "flake8",
    "pylint",
    "tox",
    "nox",
    "ty",
    "pyright",
    "basedpyright",
)


class CheckOutput(NamedTuple):
    """A check and all that it printed."""

    checked: Checked
    log: str = ""
    """The file with its whole output, where there is one."""
    is_whole: bool = True
    """Does the outcome hold all of it?"""


def is_missing(check: Check, ctx: Context) -> bool:
    """Is the program not there without which it cannot run?"""
    if not check.program:
        return False
    try:
        ctx.need(Jail).check(check.folder)
        find(check.program, cwd=check.folder, env=os.environ)
    except (OSError, ToolFailure):
        return True
    return False


def report_missing(check: Check, program: str = "") -> Checked:
    """What is said of one whose program is not there, or of one that misses another `program`."""
    program = program or check.program
    name = os.path.basename(program)
    install = f"pip install {name}" if name in _PYTHON else _INSTALL.get(name, "")
    if name in _NODE and program == check.program:
        install = f"npm install --save-dev {_NODE[name]}"
    if program != check.program and check.program in _PACKAGES:
        install = f"{check.program} install"  # what a script of the project wants is what the project asks for
    how = f" Get it with: {install}." if install else ""
    return Checked(check, "missing", why=f"{program} is not installed, or not on PATH.{how}")


async def run_check(check: Check, ctx: Context) -> CheckOutput:
    """Run it to its end, however long that takes. Cancelling ends all that it has started."""
    began = time.monotonic()
    try:
        begun = await begin(
            check.command,
            ctx,
            cwd=check.folder,
            head_chars=HALF_CHARS,
            tail_chars=HALF_CHARS,
            env=_NPM if check.program == "npm" else _ENVIRONMENT,
            tell=lambda _: None,
        )
    except ToolFailure as failure:
        return CheckOutput(Checked(check, "skipped", why=f"It was not run: {failure.message}"))
    try:
        await begun.running.wait()
    except BaseException:
        await begun.abandon()
        _forget(begun.log)
        raise
    begun.close()
    finished = begun.running.result()
    ended = Checked(check, "passed", time.monotonic() - began, finished.exit_code)
    if finished.exit_code:
        try:
            ended = await _parse_failure(ended, begun, finished, ctx)
        except BaseException:
            _forget(begun.log)
            raise
    _tell_log(check, finished, ctx)
    log = begun.log if begun.log is not None and finished.logged_bytes else ""
    shown = len(ended.output.strip()) >= len(finished.text.strip())
    return CheckOutput(ended, log, is_whole=shown and not finished.missing_chars)


async def _parse_failure(ended: Checked, begun: CommandStart, finished: Finished, ctx: Context) -> Checked:
    assert finished.exit_code is not None
    text, check = finished.text, ended.check
    problems: tuple[Problem, ...] = ()
    lacking = _not_found(text)
    if finished.exit_code != _NOT_FOUND or not lacking:
        problems = await ctx.need(Threads).run(_problems, check, text, ctx.need(Jail).folder)
    if lacking and not problems:
        # make and its like end with a code of their own where a shell of theirs has not found a program.
        return report_missing(check, lacking)._replace(
            seconds=ended.seconds, exit_code=finished.exit_code, output=_tail(text)
        )
    why = ctx.need(Confinement).explain_denial(text[-_DENIED_CHARS:], finished.exit_code)
    why = f"{lacking} was not found. {why}".rstrip() if lacking else why
    limit = describe_limit(begun.limits, finished.exit_code, text) or ""
    return ended._replace(
        status="failed",
        problems=problems[:MOST_PROBLEMS],
        total_problems=len(problems),
        output="" if problems else _tail(text),
        why=" ".join(filter(None, (why, limit))),
    )


def _problems(check: Check, text: str, root: str) -> tuple[Problem, ...]:

    return problems(check, text, root=root)


def _not_found(text: str) -> str:
    """The program that a shell has not found, by its complaint among the last lines."""
    for line in reversed(text[-_DENIED_CHARS:].splitlines()[-_COMPLAINT_LINES:]):
        said = _NOT_THERE.fullmatch(line.rstrip()) if len(line) <= _COMPLAINT_CHARS else None
        if said is not None:
            return str(said[1] or said[2] or said[3])
    return ""


def _tail(text: str) -> str:
    """The last lines, where those are not too long."""
    lines = text.rstrip().splitlines()[-TAIL_LINES:]
    return "\n".join(lines)[-_TAIL_CHARS:]


def _tell_log(check: Check, finished: Finished, ctx: Context) -> None:
    if finished.log_error:
        ctx.note(f"The whole output of {check.name} could not be kept: {finished.log_error}.")
    elif finished.logged_bytes < finished.total_bytes:
        ctx.note(
            f"Of {check.name}, only the first {finished.logged_bytes:,} of {finished.total_bytes:,} bytes of output "
            "were kept."
        )


def _forget(log: str | None) -> None:
    with contextlib.suppress(OSError):
        os.unlink(log or "")
