"""The errors that Ferrule raises on purpose, and near misses of names for their messages.

Anything else is a bug and is reported as one.

FerruleError
├── ConfigError      the program or its settings are wrong; a person must change something
├── ToolFailure      the call did not work; the message tells the model what to do next
│   ├── UnknownTool
│   └── BadArguments
├── Denied           the policy or the user said no
└── Cancelled        a call was given up before its turn
"""

from collections.abc import Iterable


class FerruleError(Exception):
    """The root of the tree."""


class ConfigError(FerruleError):
    """The engine cannot be built or started as it was asked to."""


class _CallFailure(FerruleError):  # noqa: N818 - the reader is a model: the state, not "Error"
    """An error that becomes the reply of a call."""

    code: str | None = None
    """A stable word for programs, for example `reading-secret-file`; a face may have its own sentence for it."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str | None = None,
        count: int = 0,
        hint: str = "",
        note: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        """A whole sentence, for faces that have none of their own."""
        self.code = code or self.code
        self.path = path
        """The absolute path that it is about."""
        self.count = count
        """How many of whatever it is about."""
        self.hint = hint
        """What may help, after a full stop; for faces that have their own sentence."""
        self.note = note
        """What is told beside the sentence, whichever that is."""


class ToolFailure(_CallFailure):
    """The call failed in a way that its caller can act on."""


class UnknownTool(ToolFailure):
    """No tool has that name."""

    code = "unknown-tool"


class BadArguments(ToolFailure):
    """The arguments do not fit the tool's schema; the message has one line per bad parameter."""

    code = "bad-arguments"


class Denied(_CallFailure):
    """The policy or the user refused the call before it ran."""

    stop = False
    """Does the user want the work to end with it?"""


class Cancelled(FerruleError):  # noqa: N818 - as above
    """The call was given up before its turn."""


_LEEWAY = 0.14


def near(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The known names that are much like this one, in upper or lower case; the nearest first."""
    from difflib import SequenceMatcher, get_close_matches  # only a mistake pays for it

    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_lower, n=most)
    likeness = [SequenceMatcher(None, match, name.lower()).ratio() for match in found]
    # Next to one that is almost the same, what shares some letters is no help.
    return [by_lower[match] for match, like in zip(found, likeness, strict=True) if like > likeness[0] - _LEEWAY]
