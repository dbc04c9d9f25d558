"""What only changes how a command runs, taken off its front: `timeout 5`, `nice`, `nohup`, `time` and their like."""

import re
from collections.abc import Sequence
from functools import cache

from ferrule.permissions.shell.line import Word

MOST = 10
TOO_WRAPPED = "it wraps a command too many times"
GIVEN = Word("…", known=False)
"""The words that `xargs` adds from its input: any number, and any at all."""

_DURATION = r"(?:\d+(?:\.\d*)?|\.\d+)[smhd]?"
_SIGNAL = r"(?:\d+|[A-Z][A-Z0-9+-]*)"
_MODE = r"(?:L|\d+[KMG]?B?)"
# For each program: its flags that are known to be harmless, those whose value is the next word, and what must follow.
_SHAPES = {
    "timeout": (
        rf"--preserve-status|--foreground|-v|--verbose|-k{_DURATION}|--kill-after={_DURATION}|-s{_SIGNAL}|--signal={_SIGNAL}",
        {"-k": _DURATION, "--kill-after": _DURATION, "-s": _SIGNAL, "--signal": _SIGNAL},
        _DURATION,
    ),
    "time": ("-p|--", {}, ""),
    "nice": (r"-n-?\d+|--adjustment=-?\d+|-\d+|--", {"-n": r"-?\d+", "--adjustment": r"-?\d+"}, ""),
    "nohup": ("--", {}, ""),
    "stdbuf": (
        rf"-[ioe]{_MODE}|--(?:input|output|error)={_MODE}",
        {"-i": _MODE, "-o": _MODE, "-e": _MODE},
        "",
    ),
    "command": ("--", {}, ""),
    "builtin": ("--", {}, ""),
    "noglob": ("", {}, ""),
    "xargs": (
        r"-0|--null|-r|--no-run-if-empty|-t|--verbose|-[nPL]\d+|-I\{\}|-d\\n|--",
        {"-n": r"\d+", "-P": r"\d+", "-L": r"\d+", "-I": r"\{\}", "-d": r"\\n"},
        "",
    ),
}
WRAPPERS = frozenset(_SHAPES)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def strip(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The words of the command itself; None where the wrappers do not end.

    A wrapper with a flag that is not known is left on: no rule about the inner command then speaks about it.
    """
    rest = tuple(words)
    for _ in range(MOST + 1):
        inner = _inner(rest)
        if inner is None:
            return rest
        rest = inner
    return None


def _inner(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    if not words or not words[0].known or words[0].text not in _SHAPES:
        return None
    name = words[0].text
    flags, valued, operand = _SHAPES[name]
    at = 1
    while at < len(words) and words[at].known and words[at].text.startswith("-"):
        text = words[at].text
        if text in valued:
            if at + 1 >= len(words) or not _is(words[at + 1], valued[text]):
                return None
            at += 2
        elif _compiled(flags).fullmatch(text):
            at += 1
            if text == "--":
                break
        else:
            return None
    if operand:
        if at >= len(words) or not _is(words[at], operand):
            return None
        at += 1
    # What follows must be the command and nothing that could be another flag.
    if at >= len(words) or not words[at].known or words[at].text.startswith("-"):
        return None
    return words[at:] if name != "xargs" else _given(words[:at], words[at:])


def _given(before: tuple[Word, ...], words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command of `xargs` with what it adds: at the end, or with `-I` wherever the mark stands."""
    if any(word.known and word.text.startswith("-I") for word in before):
        return tuple(GIVEN if word.text == "{}" else _marked(word) for word in words)
    return (*words, GIVEN)


def _marked(word: Word) -> Word:
    before, mark, _ = word.text.partition("{}")
    return Word(word.text, known=False, start=before, single=True) if word.known and mark else word


def _is(word: Word, pattern: str) -> bool:
    return word.known and _compiled(pattern).fullmatch(word.text) is not None
