"""The errors that Ferrule raises on purpose. Anything else is a bug and is reported as one.

FerruleError
├── ConfigError      the program or its settings are wrong; a person must change something
├── ToolFailure      the call did not work; the message tells the model what to do next
│   ├── UnknownTool
│   └── BadArguments
├── Denied           the policy or the user said no
└── Cancelled        the user stopped the call
"""


class FerruleError(Exception):
    """The root of the tree."""


class ConfigError(FerruleError):
    """The engine cannot be built or started as it was asked to."""


class ToolFailure(FerruleError):  # noqa: N818 - the reader is a model: the state, not "Error"
    """The call failed in a way that its caller can act on."""

    def __init__(self, message: str, *, code: str | None = None, path: str | None = None, count: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """A stable word for programs, for example `reading-secret-file`; a face may have its own sentence for it."""
        self.path = path
        """The absolute path that the failure is about."""
        self.count = count
        """How many of whatever the failure is about."""


class UnknownTool(ToolFailure):
    """No tool has that name."""


class BadArguments(ToolFailure):
    """The arguments do not fit the tool's schema; the message has one line per bad parameter."""

    def __init__(self, message: str, *, code: str | None = "bad-arguments", path: str | None = None) -> None:
        super().__init__(message, code=code, path=path)


class Denied(FerruleError):  # noqa: N818 - the reader is a model
    """The policy or the user refused the call before it ran."""

    def __init__(self, message: str, *, code: str | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.path = path


class Cancelled(FerruleError):  # noqa: N818 - the reader is a model
    """The user stopped the call; what it had started is cleaned up."""
