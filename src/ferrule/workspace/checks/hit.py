"""What a reader of outputs finds in some of their lines, before anybody knows which file is meant."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ferrule.core.problems import Severity


class Hit(NamedTuple):
    """A complaint, and the lines of the output that it was in."""

    first: int
    last: int
    path: str
    line: int
    message: str
    character: int = 0
    severity: Severity = "error"
    source: str = ""
    code: str = ""
    is_sure: bool = True
    """Is it a complaint even where nobody knows the file?"""


IsOwn = Callable[[str], bool]
"""Is it a file of the project's, and of none that was installed into it?"""
Reading = Callable[[Sequence[str], IsOwn], Iterator[Hit]]

_SEVERITIES: dict[str, Severity] = {
    **dict.fromkeys(("warning", "warn", "w", "c", "r", "convention", "refactor", "style", "medium"), "warning"),
    **dict.fromkeys(("info", "information", "note", "help", "i", "low"), "information"),
}


def severity(word: str) -> Severity:
    """What programs call it, as one of ours; whatever is not known to be less is an error."""
    return _SEVERITIES.get(word.lower(), "error")
