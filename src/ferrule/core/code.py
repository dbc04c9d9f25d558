"""What language servers have said about code, before any family has put it into words."""

from typing import Literal, NamedTuple

from ferrule.core.outcomes import Hits

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


class Asked(NamedTuple):
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

    asked: Asked
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

    asked: Asked
    rows: tuple[OutlineRow, ...]
    more: int = 0


class Hovered(NamedTuple):
    """What a server says of a name: mostly its type and its documentation."""

    asked: Asked
    text: str
    """Empty where it says nothing."""
    missing: int = 0
    """How many characters were cut off."""


class InText(NamedTuple):
    """What a text search finds where no server could be asked."""

    asked: Asked
    why: str
    """Why it is one, and who would know better, as whole sentences."""
    hits: Hits
