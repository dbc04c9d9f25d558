"""Paths against patterns of names, as lax file systems compare them: any case, no trailing dots, no streams."""

import functools
import os
import re
from collections.abc import Callable

_TRAILING = ". \t\n\v\f\r"
# HFS+ drops these from names before it compares them.
_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def plain(name: str) -> str:
    """A name as lax file systems see it: any case, no trailing dots or blanks, no stream, no invisible characters."""
    if not name.isascii():
        name = _INVISIBLE.sub("", name).casefold()
    return name.split(":", 1)[0].rstrip(_TRAILING).lower() or name


def normal(path: str) -> str:
    """A path whose components are all plain, with a slash before each."""
    return "/" + "/".join([plain(part) for part in path.split(os.sep) if part])


def listed(path: str, patterns: tuple[str, ...]) -> bool:
    """Does a pattern fit the path, or its end from some component on?"""
    return bool(joined(patterns).search(normal(path)))


@functools.lru_cache(maxsize=16)
def joined(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all patterns, each anchored at a component boundary and at the end of the path."""
    return re.compile("|".join(rf"(?:/{_expression(pattern)}\Z)" for pattern in patterns), re.DOTALL)


def in_folder(folder: str, patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """May one of these patterns fit a name in this folder? It never says no where one does, and is quick.

    `**` stands only at the end of a pattern here, and no slash within braces.
    """
    trees = joined(_trees(patterns))
    return (lambda _: True) if trees.search(normal(folder).rstrip("/") + "/x") else _last(patterns)


@functools.lru_cache(maxsize=4)
def _trees(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(pattern for pattern in patterns if pattern.endswith("**"))


@functools.lru_cache(maxsize=4)
def _last(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    ends = dict.fromkeys(_expression(one.rpartition("/")[2]) for one in patterns if not one.endswith("**"))
    fits = re.compile("|".join(f"(?:{end})" for end in ends), re.DOTALL).fullmatch
    return lambda name: fits(plain(name)) is not None


def _expression(pattern: str) -> str:
    """The notation of the lists: `*` within a component, `**` for all below, `{a,b}` for a choice."""
    pattern, out, at = pattern.lower(), [], 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**", at):
            out.append(".+")
            at += 1
        elif char == "*":
            out.append("[^/]*")
        elif char == "{" and (end := pattern.find("}", at)) > 0:
            out.append("(?:" + "|".join(map(re.escape, pattern[at + 1 : end].split(","))) + ")")
            at = end
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)
