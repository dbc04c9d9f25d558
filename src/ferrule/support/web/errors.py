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


_QUOTED = 300
"""So much of an address is repeated."""


class WebError(Exception):
    """A page cannot be had; `message` is whole sentences, the last of them the `remedy` where a user has one."""

    def __init__(self, message: str, code: Code, *, remedy: str = "") -> None:
        self.message = f"{message} {remedy}".rstrip()
        super().__init__(self.message)
        self.code: Code = code
        self._told = message
        self._remedy = remedy

    def after(self, place: str, to: str, *, is_own: bool) -> "WebError":
        """The same where a redirect from `place` has led `to` it.

        What the user could do about it is said only where it `is_own`, a place of the user's own network.
        """
        told = f"{_shortened(place)} redirects to {_shortened(to)}: {self._told}"
        if isinstance(self, CutOff):
            return CutOff(told)
        return WebError(told, self.code, remedy=self._remedy if is_own else "")


class CutOff(WebError):  # noqa: N818 - the state of a body
    """The other side broke off in the middle of a body. What came before is sound."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "bad-answer")


def _shortened(address: str) -> str:
    return address if len(address) <= _QUOTED else f"{address[:_QUOTED]}…"


def no_package() -> WebError:
    """What is said where the packages for the web are not installed."""
    return WebError("Pages of the web need more packages: pip install 'ferrule[web]'.", "no-package")
