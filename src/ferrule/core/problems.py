"""A problem in a file, as a language server or a check tells it."""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "information", "hint"]


class Problem(NamedTuple):
    """One complaint about one place."""

    path: str
    """Absolute where it is known to be a file of the workspace; else as it was written."""
    line: int
    """From 1; 0 where it is about the whole file."""
    message: str
    """One line."""
    character: int = 0
    """From 1; 0 where nobody said."""
    severity: Severity = "error"
    source: str = ""
    """Who says so, such as `ty` or `ruff`."""
    code: str = ""
    """What they call it, such as `F401`."""


class Problems(NamedTuple):
    """What language servers say about a file, or about the files of a folder."""

    path: str
    """What was asked about, absolute."""
    problems: tuple[Problem, ...]
    """Errors first, then warnings and the rest."""
    files: int = 1
    """How many were looked at."""
    total: int = 0
    """How many problems there are, with those that are too many to be here."""
    left_out: int = 0
    """How many files were not looked at."""
    folder: str = ""
    """Where relative paths start: problems below it may be shown from there."""
