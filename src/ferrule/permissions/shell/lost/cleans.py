"""What `git clean` deletes of what no checkpoint keeps."""

import os
import re
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.loose import texts
from ferrule.permissions.shell.lost.copies import fits_ignored
from ferrule.permissions.shell.lost.unkept import Unkept, deletes, too_large
from ferrule.support.git_environment import top_of
from ferrule.support.git_settings import calm_git

_SECONDS = 10
_NOT_IGNORED, _FAILED = 1, 128
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
    for place in _places(said.operands, cwd, top):

        def keeps(path: str) -> bool:
            return fits_ignored(path, top, kept) or (not takes_folders and os.path.isdir(path) and unkept.left_out(path))

        if os.path.lexists(place) and unkept.left_out(place):
            if not keeps(place) and _is_cleaned(place, top, said.letters, unkept):
                return deletes(place)
        elif os.path.isdir(place):
            found = unkept.below(
                place, keeps=lambda path: keeps(path) or not _may_be_cleaned(path, top, said.letters, unkept)
            )
            if found.path or (found.is_cut and re.search("[xX]", said.letters)):
                return deletes(found.path) if found.path else too_large(place)
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
        named = list(texts(cwd, word))
        if not named or any(re.search(r"[*?\[]|^:", text) for text in (named if word.known else ())):
            return [top]
        places += [os.path.realpath(os.path.join(cwd, text)) for text in named]
    return places


def _may_be_cleaned(path: str, top: str, letters: str, unkept: Unkept) -> bool:
    return not unkept.left_out(path) or _is_cleaned(path, top, letters, unkept)


def _is_cleaned(path: str, top: str, letters: str, unkept: Unkept) -> bool:
    """Would git delete it: is it not tracked, and as much ignored as the letters say?"""
    git = calm_git(outside=unkept.roots)
    if git is None:
        return bool(re.search("[xX]", letters))
    name = os.path.relpath(path, top)
    if _said([*git, "ls-files", "-z", "--", f":(literal){name}"], top)[1]:
        return False
    if "x" in letters:
        return True
    # Where git cannot tell, it is: what a tool makes is ignored nearly everywhere.
    is_ignored = _said([*git, "check-ignore", "-q", "--no-index", "--", name], top)[0] != _NOT_IGNORED
    return is_ignored == ("X" in letters)


def _said(words: Sequence[str], cwd: str) -> tuple[int, bytes]:
    try:
        ran = subprocess.run(
            words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return _FAILED, b""
    return ran.returncode, ran.stdout
