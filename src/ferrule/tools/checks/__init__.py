"""The checks of a project: what each one is, and what came of it."""

from typing import Literal, NamedTuple

from ferrule.tools.lsp import Problem

CheckKind = Literal["types", "lint", "format", "tests", "build", "other", "review"]
CheckStatus = Literal["passed", "failed", "stopped", "missing", "skipped"]
"""Found nothing; found something; was cancelled; its program is not there; was not let run or had nothing to do."""


class Check(NamedTuple):
    """One check of the project's own."""

    name: str
    """As the user calls it: `mypy`, `npm test`, `make lint`; unique within a project."""
    kind: CheckKind
    command: str
    """The command line; empty for a review."""
    folder: str
    """Absolute: where it runs."""
    source: str = ""
    """The file that speaks for it, from the workspace, such as `pyproject.toml`."""
    shares: str = ""
    """What it must have for itself, such as cargo's folder of builds; checks with the same word run one by one."""
    program: str = ""
    """The program without which it cannot run."""


class Checked(NamedTuple):
    """What came of one check."""

    check: Check
    status: CheckStatus
    seconds: float = 0.0
    exit_code: int | None = None
    problems: tuple[Problem, ...] = ()
    total_problems: int = 0
    """In all, where only some of them are here."""
    output: str = ""
    """The end of what it printed, where that says more than the problems do."""
    why: str = ""
    """Why it did not run, or was stopped, as a sentence."""


class CheckRun(NamedTuple):
    """All checks of one call, in the order in which they were found."""

    checks: tuple[Checked, ...]
    seconds: float = 0.0
    looked_in: tuple[str, ...] = ()
    """The manifests that were read, where no check was found in them."""
    root: str = ""
    """The workspace, from which paths are shown."""
    known: tuple[str, ...] = ()
    """Where nothing ran though there are checks: their names. None of them is of the kind that was asked for."""
    why_unreviewed: str = ""
    """Where nothing ran and there are reviews: why those were not done, as the end of a sentence."""
    covering: tuple[str, ...] = ()
    """Where nothing was found in a folder: the names of checks of folders above it, which are about its files too."""


class CheckWatch:
    """Told how checks go, for front ends that show more than a line: `ctx.need(CheckWatch)`, where a host gives one."""

    def began(self, check: Check) -> None:
        """It runs now."""

    def ended(self, checked: Checked) -> None:
        """It has ended, or will not run."""

    def done(self, run: CheckRun) -> None:
        """So have all of them."""
