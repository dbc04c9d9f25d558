"""What comes in from other commands and is then deleted: the names that `xargs`, a loop or a substitution hands on."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ferrule.permissions.shell.line import Simple, Word
from ferrule.permissions.shell.lost.expression import Act, Acting
from ferrule.permissions.shell.lost.searches import Search, fd, find, lost_by_search
from ferrule.permissions.shell.lost.unkept import NAMES, Unkept, deletes, doubted, spellings
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.unwrap import GIVEN
from ferrule.workspace.remade import CACHES

_SUBSTITUTION = r"\"?(?:\$\((.*)\)|`([^`]*)`)\"?"
_KEPT_NAMES = {
    "git": r"(?:grep|diff|log|show|rev-parse|merge-base|describe|tag|branch)\b"
    r"|ls-files\b(?!.*\s(?:--ignored|--others|-\w*[io]))|ls-files\b(?=.*\s--exclude-standard)(?!.*\s(?:--ignored|-\w*i))",
    "rg": r".*",
    "mktemp": r".*",
    "seq": r".*",
    "date": r".*",
}
"""Programs that name nothing that git ignores, with words like these."""


class Taken(NamedTuple):
    """What becomes of the names that are handed on."""

    act: Act
    acting: Acting
    word: Word
    """The word in whose place they come."""


def lost_by_source(source: Sequence[Simple], taken: Taken, cwd: str, unkept: Unkept) -> str:
    """What is lost, as the end of a sentence; `source` are the commands of the pipe, none where nobody knows."""
    first = source[0] if source else None
    words = (first.stripped or first.words) if first is not None else ()
    here = (first.cwd if first is not None else None) or cwd
    name = os.path.basename(words[0].text) if words else ""
    said = " ".join(word.text for word in words[1:])
    if name in {"find", "fd", "fdfind"}:
        search = (find if name == "find" else _fd)(words[1:], here, taken.acting, taken.act)
        why = lost_by_search(search, here, [taken.act.program], unkept) if search is not None else ""
        return doubted(why) if len(source) > 1 else why
    if name in {"echo", "printf", "ls"}:
        named = [word for word in words[1:] if not word.text.startswith("-") and "%" not in word.text]
        opens = name == "ls" and not any(re.fullmatch(r"-[A-Za-z]*d[A-Za-z]*", word.text) for word in words[1:])
        if named or name == "ls":
            return _listed(named, taken, here, unkept, opens=opens, is_sure=len(source) == 1 and name != "ls")
    if re.match(_KEPT_NAMES.get(name, r"(?!)"), said):
        return ""
    # A list of files with all that is ignored reaches them one by one.
    reaches = taken.act.is_deep or (name == "git" and said.startswith("ls-files"))
    if not reaches or taken.act.program not in {"rm", "rimraf"}:
        return ""
    return unknown(taken.word, cwd, unkept)


def _fd(words: Sequence[Word], _: str, acting: Acting, handed: Act | None) -> Search | None:
    return fd(words, acting, handed)


def _listed(named: Sequence[Word], taken: Taken, cwd: str, unkept: Unkept, *, opens: bool, is_sure: bool) -> str:
    """What a list of words names, or with `opens` the names in the folders among them."""
    places: list[str] = []
    for word in named or [Word(".")]:
        for text in spellings(cwd, word):
            place = os.path.normpath(os.path.join(cwd, text))
            places += _children(place) if opens and os.path.isdir(place) else [place]
            places += [os.path.join(cwd, one) for one in text.split()]
    for place in places:
        if not os.path.lexists(place) or (not is_sure and os.path.basename(place) in CACHES):
            continue
        if unkept.left_out(place) and (taken.act.is_deep or not os.path.isdir(place)):
            return deletes(place, is_sure=is_sure)
        if taken.act.is_deep and os.path.isdir(place) and (inner_path := unkept.below(place).path):
            return deletes(inner_path, is_sure=is_sure)
    return ""


def _children(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if not name.startswith(".")]
    except OSError:
        return []


def substituted(word: Word, cwd: str, roots: Sequence[str]) -> tuple[Simple, ...]:
    """The commands whose output a word is."""
    found = re.fullmatch(_SUBSTITUTION, word.text, re.DOTALL)
    return parse(found[1] or found[2], cwd=cwd, roots=roots).commands if found else ()


def unknown(word: Word, cwd: str, unkept: Unkept) -> str:
    """What may be lost where a folder is deleted whose name only the shell knows."""
    text = re.sub(r"['\"]", "", word.text)
    tail = "" if word == GIVEN else text.rstrip("/").rpartition("/")[2]
    is_told = bool(tail) and not re.search(r"[$`*?\[{}()]", tail)
    if is_told and tail not in NAMES:
        return ""
    start = "" if word == GIVEN else word.start
    if os.path.isabs(start) and not unkept.inside(start):
        return ""
    place = os.path.normpath(os.path.join(cwd, os.path.dirname(start)))
    begins = os.path.join(place, os.path.basename(start)) if os.path.basename(start) else ""
    if is_told:
        found = unkept.below(place, only=lambda path: os.path.basename(path) == tail and path.startswith(begins)).path
    elif begins:
        found = unkept.below(place, keeps=lambda path: not path.startswith(begins)).path
    else:
        found = unkept.below(place).path
    return deletes(found, is_sure=False) if found else ""
