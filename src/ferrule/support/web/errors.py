"""What can go wrong on the way to a page, in a sentence and in a word."""

from typing import Literal

Code = Literal[
    "bad-address",
    "private-address",
    "no-such-host",
    "unreachable",
    "tls",
    "too-large",
    "timed-out",
    "too-many-redirects",
    "robots",
    "bad-answer",
    "no-package",
    "no-key",
    "wrong-key",
    "quota",
    "refused",
]


class WebError(Exception):
    """A page cannot be had; `message` is a whole sentence."""

    def __init__(self, message: str, code: Code) -> None:
        super().__init__(message)
        self.message = message
        self.code: Code = code


class CutOff(WebError):  # noqa: N818 - the state of a body
    """The other side broke off in the middle of a body. What came before is sound."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "bad-answer")


def no_package() -> WebError:
    """What is said where the packages for the web are not installed."""
    return WebError("Pages of the web need more packages: pip install 'ferrule[web]'.", "no-package")
