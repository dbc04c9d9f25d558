"""A command line as it reads with its own assignments in it: what it sets, what tells its folder, how it calls itself.

Nothing that is found this way opens anything: it only makes a loss seen that a variable would hide, or a question
needless whose answer stands in the line.
"""

import itertools
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.permissions.shell.folders import MADE
from ferrule.permissions.shell.line import Simple
from ferrule.permissions.shell.parse import CHARACTERS, parse
from ferrule.support.git_environment import top_of

_MOST = 10
"""So many readings of one line are looked at."""
_MOST_NAMES = 50
_QUIETLY = r"(?:\s+2>\s*/dev/null)?\s*"
_BRANCH = (
    r"branch\s+--show-current|rev-parse\s+--abbrev-ref\s+(?:--symbolic-full-name\s+)?HEAD"
    r"|symbolic-ref\s+(?:(?:--short|-q|--quiet)\s+)*HEAD"
)
_DECLARES = frozenset({"export", "local", "declare", "readonly", "typeset"})
_FUNCTION = r"(?:\bfunction\s+([\w-]+)|(?<![\w$-])([\w-]+)\s*\(\s*\))\s*(?:\(\s*\)\s*)?\{"
_SETS = (
    r"\b(?:read|mapfile|readarray|getopts|let|unset)\b[^;&|\n]*(?<![\w$]){name}(?!\w)|\b(?:for|select)\s+{name}(?!\w)"
    r"|-v\s*{name}(?!\w)|\(\([^)]*(?<![\w$]){name}(?!\w)|(?<![\w$]){name}\+="
)
"""Wherever else a variable is set than by a plain assignment."""
_LONE = r"\"?(\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`)\"?"


class Reading(NamedTuple):
    """One way to read a line."""

    command: str
    known: Mapping[str, str]
    """What its variables stand for."""


def readings(command: str, folder: str, roots: Sequence[str]) -> Iterator[Reading]:
    """Every way to read the line, with each of the values that a variable is given in it."""
    if len(command) > CHARACTERS:
        yield Reading(command, {})
        return
    said = _loops(_otherwise(_told(command, folder)))
    if "=" not in said and "(" not in said and "function " not in said:
        yield Reading(said, {})
        return
    commands = parse(said, cwd=folder, roots=roots).commands
    values = _assigned(said, commands)
    for name, given in values.items():
        use = rf"\$\{{{name}\}}|\${name}(?!\w)"
        if len(given) == 1 and (lone := re.fullmatch(_LONE, given[0])):
            said = lone[1].join(re.split(use, said))
        elif len(given) == 1 and re.fullmatch(r"[\w./-]+(?: [\w./-]+)+", given[0]):
            # Without quotes it is several words.
            said = given[0].join(re.split(rf"(?<=\s)(?:{use})(?=[\s;)]|$)", said))
    plain = {name: [one for one in given if not re.search(r"[$`]", one)] for name, given in values.items()}
    plain = {name: given for name, given in plain.items() if given}
    yield from _varied(said, plain, list(_calls(said, commands)))


def _varied(said: str, values: Mapping[str, Sequence[str]], calls: Sequence[Mapping[str, str]]) -> Iterator[Reading]:
    first = {"TMPDIR": tempfile.gettempdir(), **{name: given[0] for name, given in values.items()}}
    more = [{**first, name: one} for name, given in values.items() for one in given[1:]]
    called = [{**first, **call} for call in calls] or [first]
    for known in [*called, *more][:_MOST]:
        yield Reading(said, known)


def _told(command: str, folder: str) -> str:
    """The line with what its folder tells in the place of the commands that ask for it."""
    top = top_of(folder) or folder
    for pattern, value in (
        (r"\$\(\s*pwd(?:\s+-[LP])?\s*\)|`pwd`", "${PWD}"),
        (rf"\$\(\s*git\s+rev-parse\s+--show-toplevel{_QUIETLY}\)", top),
        (rf"\$\(\s*git\s+(?:{_BRANCH}){_QUIETLY}\)", "HEAD"),
        (r"\$\(\s*mktemp\b[^()]*\)", os.path.join(tempfile.gettempdir(), MADE)),
    ):
        if re.fullmatch(r"[\w./@%+$\{\}-]+", value):
            command = value.join(re.split(pattern, command))
    return command


def _otherwise(said: str) -> str:
    """A variable that nobody sets has the value behind `:-`, one that the line sets has its own."""

    def plain(found: re.Match[str]) -> str:
        is_set = re.search(rf"(?<!\w){found[1]}=", said) is not None
        return f"${{{found[1]}}}" if is_set or not found[2] else found[2]

    return re.sub(r"\$\{(\w+):?(?:\?[^{}]*|[-=]([\w./]+))\}", plain, said)


def _loops(said: str) -> str:
    """The variables of loops in quotes, so that each file of a glob is one word."""
    for name in set(re.findall(r"\bfor\s+(\w+)\s+in\b", said)):
        said = re.sub(rf"(?<=\s)\$(?:{name}|\{{{name}\}})(?=[\s;)]|$)", f'"${name}"', said)
    return said


def _assigned(said: str, commands: Sequence[Simple]) -> dict[str, list[str]]:
    """What each variable is given that only plain assignments set, as written where that is not certain."""
    found: dict[str, list[str]] = {}
    for simple in commands:
        for name, value in simple.assigns if not simple.words else ():
            found.setdefault(name, []).append(value.text)
        words = simple.words
        for word in words[1:] if words and words[0].text in _DECLARES else ():
            if given := re.fullmatch(r"(\w+)=(.*)", word.text, re.DOTALL):
                found.setdefault(given[1], []).append(re.sub(r"^(['\"])(.*)\1$", r"\2", given[2]))
    return {
        name: list(dict.fromkeys(values))
        for name, values in itertools.islice(found.items(), _MOST_NAMES)
        if not re.search(_SETS.format(name=name), said)
        and len(re.findall(rf"(?<![\w$\{{-]){name}=", said)) == len(values)
    }


def _calls(said: str, commands: Sequence[Simple]) -> Iterator[dict[str, str]]:
    """The words with which the line calls its own functions, as numbers stand for them there."""
    own = {one or other for one, other in re.findall(_FUNCTION, said)}
    for simple in commands if own else ():
        words = simple.words
        if words and words[0].text in own and len(words) > 1:
            yield {str(number): word.text for number, word in enumerate(words[1:], 1) if word.known}
