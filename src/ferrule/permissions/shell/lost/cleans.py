"""What `git clean` deletes of what no checkpoint keeps."""

import os
import re
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.lost.copies import fits_ignored
from ferrule.permissions.shell.lost.unkept import Unkept, deletes, spellings, too_large
from ferrule.support.git_environment import top_of
from ferrule.support.git_settings import calm_git

_SECONDS = 10
_MOST = 200
_TELLS, _FAILED = frozenset({0, 1}), 128
"""The exit codes of git."""


class _Given(NamedTuple):
    letters: str
    kept: tuple[str, ...]
    """The patterns behind `-e`."""
    operands: tuple[Word, ...]


def lost_by_clean(words: Sequence[Word], cwd: str, unkept: Unkept) -> str:
    """What is lost, as the end of a sentence; `words` stand behind `clean`."""
    said = _given(words)
    if "n" in said.letters:
        return ""
    # With `-X` the patterns say what to delete as well.
    kept = () if "X" in said.letters else said.kept
    takes_folders = "d" in said.letters or bool(said.operands)
    top = top_of(cwd) or cwd
    is_sure = all(word.known or word.glob for word in said.operands)
    for place in _places(said.operands, cwd, top):

        def keeps(path: str) -> bool:
            is_left = not takes_folders and os.path.isdir(path) and unkept.left_out(path)
            return is_left or os.path.basename(path) == ".git" or fits_ignored(path, top, kept)

        is_one = os.path.lexists(place) and unkept.left_out(place)
        found = [place] if is_one and not keeps(place) else unkept.every(place, keeps=keeps, most=_MOST)
        if cleaned := _cleaned(found, top, said.letters, unkept.roots):
            return deletes(cleaned, is_sure=is_sure)
        if not found and re.search("[xX]", said.letters) and unkept.below(place, keeps=keeps).is_cut:
            return too_large(place)
    return ""


def _given(words: Sequence[Word]) -> _Given:
    letters, kept, operands = "", list[str](), list[Word]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        text = word.text if word.known else word.start
        if text == "--":
            operands += rest
            break
        if text.startswith("--"):
            flag, joint, value = text.partition("=")
            if len(flag) > 3 and "--exclude".startswith(flag):
                kept.append(value if joint or not rest else rest.pop(0).text)
            letters += "n" if len(flag) > 3 and "--dry-run".startswith(flag) else ""
        elif text.startswith("-") and len(text) > 1:
            before, mark, value = text[1:].partition("e")
            letters += before
            if mark:
                kept.append(value if value or not rest else rest.pop(0).text)
        else:
            operands.append(word)
    return _Given(letters, tuple(one for one in kept if not one.startswith("!")), tuple(operands))


def _places(operands: Sequence[Word], cwd: str, top: str) -> list[str]:
    """The folders and files that it is told to look at; where a word may mean others, the whole repository."""
    if not operands:
        return [os.path.realpath(cwd)]
    places: list[str] = []
    for word in operands:
        named = list(spellings(cwd, word))
        if not named or any(re.search(r"[*?\[]|^:", text) for text in (named if word.known else ())):
            return [top]
        places += [os.path.realpath(os.path.join(cwd, text)) for text in named]
    return places


def _cleaned(paths: Sequence[str], top: str, letters: str, roots: Sequence[str]) -> str:
    """The first of these that git would delete: it is not tracked, and as much ignored as the letters say."""
    git = calm_git(outside=roots)
    if git is None or not paths:
        return paths[0] if paths and re.search("[xX]", letters) else ""
    names = [os.path.relpath(path, top) for path in paths]
    tracked = _said([*git, "ls-files", "-z", "--", *(f":(literal){name}" for name in names)], top)[1].split("\0")
    code, said = _said([*git, "check-ignore", "-z", "--no-index", "--stdin"], top, "\0".join(names))
    # Where git cannot tell, all are: what a tool makes is ignored nearly everywhere.
    ignored = set(said.split("\0")) if code in _TELLS else set(names)
    for path, name in zip(paths, names, strict=True):
        if any(one == name or one.startswith(f"{name}/") for one in tracked):
            continue
        if "x" in letters or (name in ignored) == ("X" in letters):
            return path
    return ""


def _said(words: Sequence[str], cwd: str, given: str = "") -> tuple[int, str]:
    try:
        ran = subprocess.run(
            words,
            cwd=cwd,
            input=given,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return _FAILED, ""
    return ran.returncode, ran.stdout
