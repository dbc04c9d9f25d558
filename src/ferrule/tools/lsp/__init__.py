"""Define the results of language servers and checks: places in code, symbols and problems.

They hold data only; each family words them for the model.
"""

from typing import Literal, NamedTuple

from ferrule.core.content import Hits

Operation = Literal[
    "goToDefinition",
    "findReferences",
    "hover",
    "documentSymbol",
    "workspaceSymbol",
    "goToImplementation",
    "prepareCallHierarchy",
    "incomingCalls",
    "outgoingCalls",
]


class CodeQuery(NamedTuple):
    """What a server was asked about: a name at a position, or a file."""

    operation: Operation
    path: str
    """As the session shows it."""
    line: int
    character: int
    name: str
    """The name at the position, or the one that was looked for; empty where it is about the whole file."""
    server: str = ""
    """Who has answered."""


class Site(NamedTuple):
    """Where something is called."""

    path: str
    line: int
    character: int
    text: str = ""


class Occurrence(NamedTuple):
    """A place in code."""

    path: str
    """As the session shows it; absolute outside of the workspace, and an address where it is no file."""
    line: int
    """From 1; 0 where nobody said."""
    character: int
    """From 1, in code points; 0 where it is not known."""
    text: str = ""
    """The line of code, without the blanks around it; empty where it is not shown."""
    is_outside: bool = False
    """Does it lie outside the workspace? Then nothing of it is shown."""
    is_definition: bool = False
    """Among references: is this where the name is defined?"""
    kind: str = ""
    """What it is, as `method`, where the server says so."""
    name: str = ""
    container: str = ""
    """What it belongs to, as the server says."""
    sites: tuple[Site, ...] = ()
    """For calls: where they are made."""
    owner: str = ""
    """The server whose own copy it lies in, where nobody else can open that; then the path is a bare name."""


class Occurrences(NamedTuple):
    """Places in code that answer a question, in the order of files and lines, definitions first."""

    asked: CodeQuery
    places: tuple[Occurrence, ...]
    more: int = 0
    """How many were found beside these."""
    about: Occurrence | None = None
    """For calls: who calls, or is called."""
    more_sites: int = 0
    """How many calls were found beside the sites that are given."""


class OutlineRow(NamedTuple):
    """A symbol of a file, and how deep it lies in others."""

    depth: int
    kind: str
    name: str
    first: int
    """Its first line, from 1; 0 where nobody said."""
    last: int
    container: str = ""


class Outline(NamedTuple):
    """The symbols of a file."""

    asked: CodeQuery
    rows: tuple[OutlineRow, ...]
    more: int = 0


class Hovered(NamedTuple):
    """What a server says of a name: mostly its type and its documentation."""

    asked: CodeQuery
    text: str
    """Empty where it says nothing."""
    missing: int = 0
    """How many characters were cut off."""


class InText(NamedTuple):
    """What a text search finds where no server could be asked."""

    asked: CodeQuery
    why: str
    """Why it is one, and who would know better, as whole sentences."""
    hits: Hits


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
