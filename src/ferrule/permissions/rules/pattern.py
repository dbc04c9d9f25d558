"""Match the patterns of Amp rules: globs, and `/regex/` in JavaScript syntax, within a time limit.

In globs, `*` is any text. JavaScript expressions are translated for the `regex` package, which supports a time
limit.

If a match is not decided in time, it counts against the call: a rule that allows does not match, and every other
rule does.
"""

import importlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

_DEPTH = 50
_WEIGHT = 20_000
"""How long the expression may become with its counts written out: the package does write some of them out."""
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_BLANK = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_SETS = {"d": ((0x30, 0x39),), "w": _WORD, "s": _BLANK}
_ENDS = r"\n\r\u2028\u2029"
_CONTROLS = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D, "0": 0x00}
_NEVER = "(?!)"


class BadRulePattern(ValueError):  # noqa: N818 - the reader is a person who writes rules
    """The pattern cannot be used; the message says why."""


def literal(text: str) -> str:
    """An expression for just this text."""
    return "".join(f"\\x{ord(char):02x}" if char.isascii() and not char.isalnum() else char for char in text)


def _within(code: int) -> int:
    if code > 0x10FFFF:
        raise BadRulePattern("it has a number that is no character's")
    return code


def _char(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise BadRulePattern("it has half of a character")
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _ranges(pairs: Sequence[tuple[int, int]]) -> str:
    # Halves of characters lie in the ranges of what is not a digit, so they are written without a look at them.
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in pairs)


def _others(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    starts = [0, *(high + 1 for _, high in pairs)]
    ends = [*(low - 1 for low, _ in pairs), 0x10FFFF]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start <= end]


class JavaScriptRegex:
    """A JavaScript expression, read once from left to right and said in the words of the `regex` package.

    Only what both mean alike is passed on; every character is passed on as its number, so that nothing that is
    special only here (possessive and fuzzy quantifiers, POSIX classes, flags in the text) can come through.
    """

    def __init__(self, body: str, flags: str) -> None:
        self._body = body
        self._at = 0
        self._flags = flags
        self._said: list[str] = []
        self._open: list[bool] = []
        """For every open group: may it be repeated?"""
        self._weights = [0]
        """For the whole and for every open group: how much is in it so far."""
        self._last = 0
        """How much the last thing was."""
        self._groups = 0
        self._names: dict[str, int] = {}
        self._meant: list[int | str] = []
        """The groups that are referred to."""
        self.negates = False

    def read(self) -> str:
        while self._at < len(self._body):
            self._last = 1
            repeatable = self._atom()
            self._weigh(self._last)
            if repeatable:
                self._repeat()
        if self._open:
            raise BadRulePattern("a parenthesis is not closed")
        for group in self._meant:
            if group not in self._names and not (isinstance(group, int) and group <= self._groups):
                raise BadRulePattern(f"there is no group {group}")
        return "".join(self._said)

    def _next(self) -> str:
        if self._at >= len(self._body):
            raise BadRulePattern("it ends too early")
        self._at += 1
        return self._body[self._at - 1]

    def _take(self, pattern: str) -> re.Match[str] | None:
        found = re.compile(pattern).match(self._body, self._at)
        if found:
            self._at = found.end()
        return found

    def _atom(self) -> bool:
        """One thing; may it be repeated?"""
        if self._take(r"[*+?]|\{[0-9]+(?:,[0-9]*)?\}"):
            raise BadRulePattern(f"nothing to repeat at character {self._at}")
        char = self._next()
        match char:
            case "\\":
                return self._atom_escape()
            case "[":
                self._said.append(self._choice())
            case "(":
                return self._group()
            case ")":
                return self._close()
            case ".":
                self._said.append("(?s:.)" if "s" in self._flags else f"[^{_ENDS}]")
            case "^":
                self._said.append(rf"(?:\A|(?<=[{_ENDS}]))" if "m" in self._flags else r"\A")
                return False
            case "$":
                self._said.append(rf"(?=[{_ENDS}]|\Z)" if "m" in self._flags else r"\Z")
                return False
            case "|":
                self._said.append("|")
                return False
            case _:
                self._said.append(_char(ord(char)))
        return True

    def _repeat(self) -> None:
        if found := self._take(r"(?:[*+?]|\{([0-9]{1,5})(?:,([0-9]{0,5}))?\})\??"):
            self._said.append(found[0])
            most = max(int(found[1] or 1), int(found[2] or 1))
            self._weigh(self._last * (most - 1))

    def _weigh(self, more: int) -> None:
        self._weights[-1] += more
        if self._weights[-1] > _WEIGHT:
            raise BadRulePattern("it repeats too much")

    def _group(self) -> bool:
        if len(self._open) >= _DEPTH:
            raise BadRulePattern("its parentheses are too deep")
        opens = "("
        looks = False
        if found := self._take(r"\?(?::|<?[=!]|-?i:)"):
            opens += found[0]
            looks = found[0][-1] in "=!"
            self.negates |= found[0][-1] == "!"
        elif found := self._take(r"\?<([A-Za-z_]\w*)>"):
            self._groups += 1
            if found[1] in self._names:
                raise BadRulePattern(f"two groups are called {found[1]}")
            self._names[found[1]] = self._groups
        elif self._take(r"\?"):
            raise BadRulePattern(f"JavaScript has no such group at character {self._at}")
        else:
            self._groups += 1
        self._said.append(opens)
        self._open.append(not looks)
        self._weights.append(0)
        self._last = 1
        return False

    def _close(self) -> bool:
        if not self._open:
            raise BadRulePattern(f"a parenthesis too many at character {self._at}")
        self._said.append(")")
        self._last = self._weights.pop()
        return self._open.pop()

    def _atom_escape(self) -> bool:
        if found := self._take(r"[bB]"):
            inner = _ranges(_WORD)
            same = f"(?<=[{inner}])(?=[{inner}])|(?<![{inner}])(?![{inner}])"
            edge = f"(?<=[{inner}])(?![{inner}])|(?<![{inner}])(?=[{inner}])"
            self._said.append(f"(?:{edge if found[0] == 'b' else same})")
            self.negates |= found[0] == "B"
            return False
        if found := self._take(r"[1-9][0-9]?"):
            self._refer(int(found[0]))
        elif found := self._take(r"k<(\w+)>"):
            self._refer(self._names.get(found[1], found[1]))
        else:
            value = self._escape()
            self._said.append(_char(value) if isinstance(value, int) else f"[{value}]")
        return True

    def _refer(self, group: int | str) -> None:
        self._meant.append(group)
        # To JavaScript, a group that has not matched yet is empty text.
        self._said.append(f"(?({group})\\{group})" if isinstance(group, int) else "")

    def _escape(self) -> int | str:
        """The character, or the inside of a class, that a backslash and what follows stand for."""
        if found := self._take(r"[dwsDWS]"):
            pairs = _SETS[found[0].lower()]
            self.negates |= found[0].isupper()
            return _ranges(pairs if found[0].islower() else _others(pairs))
        if found := self._take(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})"):
            return int(found[1] or found[2], 16)
        if "u" in self._flags and (found := self._take(r"u\{([0-9a-fA-F]{1,6})\}")):
            return _within(int(found[1], 16))
        if found := self._take(r"c([A-Za-z])"):
            return ord(found[1]) % 32
        if "u" in self._flags and (found := self._take(r"[pP]\{[A-Za-z_]+(?:=[A-Za-z_]+)?\}")):
            self.negates |= found[0][0] == "P"
            return "\\" + found[0]
        if found := self._take(r"[tnvfr]|0(?![0-9])"):
            return _CONTROLS[found[0]]
        char = self._next()
        if char.isalnum():
            raise BadRulePattern(f"\\{char} is not known here")
        return ord(char)

    def _choice(self) -> str:
        """A class of characters, after its bracket."""
        negated = self._take(r"\^") is not None
        self.negates |= negated
        said: list[str] = []
        while not self._take(r"\]"):
            low = self._member()
            if isinstance(low, int) and self._take(r"-(?!\])"):
                high = self._member()
                if not isinstance(high, int) or high < low:
                    raise BadRulePattern(f"a range runs backwards at character {self._at}")
                said.append(f"{_char(low)}-{_char(high)}")
            else:
                said.append(_char(low) if isinstance(low, int) else low)
        if not said:
            return "(?s:.)" if negated else _NEVER
        return f"[{'^' * negated}{''.join(said)}]"

    def _member(self) -> int | str:
        char = self._next()
        if char != "\\":
            return ord(char)
        return 0x08 if self._take("b") else self._escape()


_SECONDS = 0.2
_LEAST_SECONDS = 0.005
_LENGTH = 10_000
_HOME = r"(?<!\\)\$(?:HOME(?![A-Za-z0-9_])|\{HOME\})"


class _Compiled(Protocol):
    """What the `regex` package makes of an expression."""

    def search(self, text: str, *, timeout: float) -> object: ...


class RulePattern(NamedTuple):
    """A pattern as it was written, and how it reads."""

    text: str
    kind: Literal["glob", "regex", "either"]
    """`either`: a path such as `/srv/sim` that is also an expression with flags. To allow, both readings must match."""
    homes: tuple[str, ...] = ()
    """What `$HOME` stands for: the folder as it is called, and where it really is."""

    @property
    def negates(self) -> bool:
        """Does it also match by what is not there? Then one form of a value that matches proves nothing."""
        return self.kind != "glob" and any(_compile(self.text, home)[1] for home in self.homes or ("",))

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


def read(text: str, homes: Sequence[str] = (), *, of_paths: bool = True) -> RulePattern:
    """The pattern that a text stands for; `homes` are the names of the home folder.

    Raises: BadPattern.
    """
    if len(text) > _LENGTH:
        raise BadRulePattern(f"it is longer than {_LENGTH} characters")
    used = tuple(dict.fromkeys(home.rstrip("/") for home in homes)) if re.search(_HOME, text) else ()
    if re.search(_HOME, text) and not any(homes):
        raise BadRulePattern("it has $HOME and there is no home folder")
    split = _split(text)
    if split is None:
        return RulePattern(text, "glob", used)
    body, flags = split
    # Without a sign that only expressions have, a path that ends like flags do, or has folders, may be meant.
    doubtful = of_paths and re.fullmatch(r"[\w./*-]*", body) is not None and (flags != "" or "/" in body)
    try:
        for home in used or ("",):
            _compile(text, home)
    except BadRulePattern:
        if doubtful:
            return RulePattern(text, "glob", used)
        raise
    return RulePattern(text, "either" if doubtful else "regex", used)


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
        found = _compile(written, home)[0].search(text, timeout=_PATIENCE.seconds) is not None
    except (TimeoutError, MemoryError):
        _PATIENCE.wears()
        return otherwise
    _PATIENCE.gains()
    return found


@lru_cache(maxsize=1024)
def _compile(text: str, home: str) -> tuple[_Compiled, bool]:
    """The expression in our engine's words, and whether it negates."""
    regex: Any = importlib.import_module("regex")
    split = _split(text)
    assert split is not None
    body, flags = split
    if wrong := set(flags) & set("vy"):
        raise BadRulePattern(f"the flag {min(wrong)} is not known here")
    reader = JavaScriptRegex(re.sub(_HOME, lambda _: literal(home), body), flags)
    said = reader.read()
    options = regex.V0
    if "i" in flags:
        # Among letters of ASCII only: to JavaScript, the long s is not an s.
        options |= regex.IGNORECASE | (regex.ASCII if body.isascii() else regex.UNICODE)
    try:
        compiled: _Compiled = regex.compile(said, options)
    except (regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise BadRulePattern(f"it is not a regular expression ({error})") from error
    return compiled, reader.negates
