"""Patterns of Amp rules: globs where `*` is any text, and `/regex/` as JavaScript reads it, within a time limit.

What cannot be decided in time counts against the call: a rule that allows does not match, every other one does.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

from ferrule.permissions.rules.expression import BadPattern, Expression, literal

_SECONDS = 0.2
_LEAST_SECONDS = 0.005
_LENGTH = 10_000
_HOME = r"(?<!\\)\$(?:HOME(?![A-Za-z0-9_])|\{HOME\})"


class _Compiled(Protocol):
    """What the `regex` package makes of an expression."""

    def search(self, text: str, *, timeout: float) -> object: ...


class Pattern(NamedTuple):
    """A pattern as it was written, and how it reads."""

    text: str
    kind: Literal["glob", "regex", "either"]
    """`either`: a path such as `/srv/sim` that is also an expression with flags. To allow, both readings must match."""
    homes: tuple[str, ...] = ()
    """What `$HOME` stands for: the folder as it is called, and where it really is."""

    @property
    def negates(self) -> bool:
        """Does it also match by what is not there? Then one form of a value that matches proves nothing."""
        return self.kind != "glob" and any(_compiled(self.text, home)[1] for home in self.homes or ("",))

    @property
    def plain(self) -> bool:
        """Does it match one text only?"""
        return self.kind == "glob" and "*" not in self.text

    def matches(self, text: str, *, strictly: bool) -> bool:
        readings = []
        for home in self.homes or ("",):
            if self.kind != "regex":
                readings.append(_covers(_parts(self.text, home), text))
            if self.kind != "glob":
                readings.append(_search(self.text, home, text, otherwise=not strictly))
        if self.kind == "either" and strictly:
            return any(all(pair) for pair in zip(readings[::2], readings[1::2], strict=True))
        return any(readings)


def read(text: str, homes: Sequence[str] = (), *, of_paths: bool = True) -> Pattern:
    """The pattern that a text stands for; `homes` are the names of the home folder.

    Raises: BadPattern.
    """
    if len(text) > _LENGTH:
        raise BadPattern(f"it is longer than {_LENGTH} characters")
    used = tuple(dict.fromkeys(home.rstrip("/") for home in homes)) if re.search(_HOME, text) else ()
    if re.search(_HOME, text) and not any(homes):
        raise BadPattern("it has $HOME and there is no home folder")
    split = _split(text)
    if split is None:
        return Pattern(text, "glob", used)
    body, flags = split
    # Without a sign that only expressions have, a path that ends like flags do, or has folders, may be meant.
    doubtful = of_paths and re.fullmatch(r"[\w./*-]*", body) is not None and (flags != "" or "/" in body)
    try:
        for home in used or ("",):
            _compiled(text, home)
    except BadPattern:
        if doubtful:
            return Pattern(text, "glob", used)
        raise
    return Pattern(text, "either" if doubtful else "regex", used)


def is_expression(text: str) -> bool:
    """Does it look like `/regex/`, if perhaps only by chance?"""
    return _split(text) is not None


def _split(text: str) -> tuple[str, str] | None:
    """The body and the flags of `/body/flags`, if that is what the text looks like."""
    found = re.fullmatch(r"/(.+)/([dgimsuvy]*)", text, re.DOTALL)
    if found is None or len(set(found[2])) != len(found[2]):
        return None
    return found[1], found[2]


@lru_cache(maxsize=1024)
def _parts(text: str, home: str) -> tuple[str, ...]:
    # The home folder is put in after the split: a star in its name is no wildcard.
    return tuple(re.sub(_HOME.removeprefix(r"(?<!\\)"), lambda _: home, part) for part in text.split("*"))


def _covers(parts: Sequence[str], text: str) -> bool:
    first, *others = parts
    if not others:
        return text == first
    *middle, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


class _Patience:
    """How long an answer is waited for: less after each that did not come, so that a thousand take no minutes."""

    def __init__(self) -> None:
        self.seconds = _SECONDS

    def gains(self) -> None:
        self.seconds = min(_SECONDS, 2 * self.seconds)

    def wears(self) -> None:
        self.seconds = max(_LEAST_SECONDS, self.seconds / 2)


_PATIENCE = _Patience()


def _search(written: str, home: str, text: str, *, otherwise: bool) -> bool:
    try:
        found = _compiled(written, home)[0].search(text, timeout=_PATIENCE.seconds) is not None
    except (TimeoutError, MemoryError):
        _PATIENCE.wears()
        return otherwise
    _PATIENCE.gains()
    return found


@lru_cache(maxsize=1024)
def _compiled(text: str, home: str) -> tuple[_Compiled, bool]:
    """The expression in our engine's words, and whether it negates."""
    import importlib  # only rules with expressions need it, and the package has no types

    regex: Any = importlib.import_module("regex")
    split = _split(text)
    assert split is not None
    body, flags = split
    if wrong := set(flags) & set("vy"):
        raise BadPattern(f"the flag {min(wrong)} is not known here")
    reader = Expression(re.sub(_HOME, lambda _: literal(home), body), flags)
    said = reader.read()
    options = regex.V0
    if "i" in flags:
        # Among letters of ASCII only: to JavaScript, the long s is not an s.
        options |= regex.IGNORECASE | (regex.ASCII if body.isascii() else regex.UNICODE)
    try:
        compiled: _Compiled = regex.compile(said, options)
    except (regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise BadPattern(f"it is not a regular expression ({error})") from error
    return compiled, reader.negates
