"""What git loses for good: commits that others have, and with `git clean` what no checkpoint keeps."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.lost.cleans import lost_by_clean
from ferrule.permissions.shell.lost.pushes import (
    PUSHES,
    Setting,
    alias_of,
    lost_by_config,
    lost_by_push,
    lost_by_remote,
    setting,
    split,
)
from ferrule.permissions.shell.lost.unkept import Unkept
from ferrule.permissions.shell.programs import table

_VALUED = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--attr-source"}
)
_MOST_ALIASES = 5
_IN_ENVIRONMENT = r"GIT_CONFIG_KEY_\d+|GIT_CONFIG_PARAMETERS|GIT_CONFIG_GLOBAL|GIT_CONFIG_SYSTEM|GIT_CONFIG"


class _Given(NamedTuple):
    folder: str
    settings: tuple[Setting, ...]
    rest: tuple[Word, ...]
    """The sub-command and all behind it."""


def lost_by_git(
    words: Sequence[Word], environment: Mapping[str, str], cwd: str, unkept: Unkept, *, line: Callable[[str, str], str]
) -> str:
    """What is lost, as the end of a sentence; `words` stand behind the program, `line` judges a line of the shell."""
    given = _given(words, cwd, [Setting(name, None) for name in _from_environment(environment)])
    folder, settings, rest = given
    for _ in range(_MOST_ALIASES):
        name = rest[0].text if rest else ""
        if not name or not rest[0].known or f"git {name}" in table() or name in PUSHES:
            break
        alias = alias_of(name, settings, folder, unkept.roots)
        if alias.startswith("!"):
            return line(" ".join([alias[1:], *(word.text for word in rest[1:])]), folder)
        if not alias:
            break
        folder, more, rest = _given([*split(alias), *rest[1:]], folder, settings)
        settings = more
    if not rest:
        return ""
    name, behind = rest[0].text, rest[1:]
    if name == "subtree" and behind and behind[0].text == "push":
        name, behind = "push", behind[1:]
    if name in PUSHES:
        return lost_by_push(behind, settings, folder, unkept.roots)
    if name == "clean":
        return lost_by_clean(behind, folder, unkept)
    return {"config": lost_by_config, "remote": lost_by_remote}.get(name, lambda _: "")(behind)


def _given(words: Sequence[Word], folder: str, settings: Sequence[Setting]) -> _Given:
    found = list(settings)
    rest = list(words)
    while rest and (rest[0].text if rest[0].known else rest[0].start).startswith("-"):
        word = rest.pop(0)
        text = word.text if word.known else word.start
        flag, joint, joined = text.partition("=")
        value = rest.pop(0) if text in _VALUED and rest else None
        if flag == "-C" and value is not None and value.known:
            folder = os.path.join(folder, value.text)
        elif flag == "-c" and value is not None:
            found.append(setting(value))
        elif flag == "--config-env":
            key = joined if joint else value.text if value is not None else ""
            found.append(Setting(key.rpartition("=")[0], None))
        elif re.match(r"-c[A-Za-z]", text):
            found.append(setting(word._replace(text=word.text[2:], start=word.start[2:])))
    return _Given(folder, tuple(found), tuple(rest))


def _from_environment(environment: Mapping[str, str]) -> list[str]:
    """The keys of settings that variables give to git; an empty one where it is not known which."""
    found: list[str] = []
    for name, value in environment.items():
        if re.fullmatch(_IN_ENVIRONMENT, name):
            named = re.findall(r"remote\.[^'\"=]+", value, re.IGNORECASE)
            found += named or ([] if "KEY" in name and "$" not in value else [""])
    return found
