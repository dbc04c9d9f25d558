"""Whether `xargs` hands its command nothing but files of the workspace, with nothing secret in what is told of them."""

import os
import re
from typing import TYPE_CHECKING

from ferrule.permissions.shell.line import Simple
from ferrule.permissions.shell.programs import examine
from ferrule.permissions.shell.scene import Scene

if TYPE_CHECKING:
    from ferrule.permissions.shell.part import Part

_FILTERS = {
    "grep": frozenset(["-v", "-i", "-E", "-F", "-w", "-e", "-vE", "-iE", "-Ev", "-vi", "-iv"]),
    "sort": frozenset(["-u", "-r"]),
    "uniq": frozenset[str](),
    "head": frozenset(["-n"]),
    "tail": frozenset(["-n"]),
}
"""Programs that leave out some of the lines that they are given, and change none; with these flags."""
_NAMES = {
    "rg": (
        r"-[iwFS]*l[iwFS]*|--files(-with-matches|-without-match)?",
        r"-[ilwFSue]+|-[gt].*|--files.*|--hidden|--ignore-case|--fixed-strings|--word-regexp|--type=.*|--glob=.*",
    ),
    "grep": (
        r"-[riwEFInsP]*[lL][riwEFInsP]*|--files-(with-matches|without-match)",
        r"-[rlLiwEFInsPe]+|--files-.*|--include=.*|--exclude(-dir)?=.*|--recursive|--ignore-case",
    ),
}
"""With a flag like the first they print names of files and nothing else; only flags like the second may be there."""
_COUNTS = frozenset({"wc", "ls", "stat", "du", "md5sum", "sha1sum", "sha256sum", "cksum"})
"""Programs that tell nothing of a file but what can be counted."""


def hands_files(part: "Part", scene: Scene) -> bool:
    """Does a search of files in the workspace come before it, and can no name that it finds mean another file?"""
    if not part.simple.fed or not all(_is_filter(simple) for simple in part.simple.fed[1:]):
        return False
    first, cwd = part.simple.fed[0], part.simple.cwd
    words = [word.text for word in first.words]
    finding = examine(first.words, cwd=cwd)
    if cwd is None or not finding.harmless or not all(word.known for word in first.words) or first.redirects:
        return False
    counts = part.program in _COUNTS
    if not _prints_names(words, counts=counts):
        return False
    searched = (".",) if words[0] == "git" else finding.reads or (".",)
    folders = [os.path.realpath(os.path.join(cwd, one)) for one in searched]
    apart = {"-0", "--null"} & {word.text for word in part.simple.words} and {"-print0", "-z", "-0"} & set(words)
    return all(
        scene.inside(folder)
        and (counts or not scene.buries_secret(folder, hidden=True, only=_named(words), opens=True))
        and (apart or not scene.has_odd_names(folder))
        for folder in folders
    )


def _prints_names(words: list[str], *, counts: bool) -> bool:
    """Does it print names of files that are there, from where it runs? Git may also know of files that are not."""
    name = words[0]
    if name in _NAMES:
        wanted, allowed = _NAMES[name]
        flags = [word for word in words[1:] if word.startswith("-")]
        return any(re.fullmatch(wanted, flag) for flag in flags) and all(re.fullmatch(allowed, flag) for flag in flags)
    if name == "find":
        return not {"-printf", "-ls", "-L", "-follow"} & set(words) and not any("-exec" in word for word in words)
    return counts and words[:2] == ["git", "ls-files"] and not any(re.match("-(?!z$)", word) for word in words[2:])


def _named(words: list[str]) -> tuple[str, ...]:
    """The name that all files have that `find` prints."""
    if words[0] != "find" or {"!", "-not", "-o", "-or", ",", "("} & set(words) or "-name" not in words[:-1]:
        return ()
    return (words[words.index("-name") + 1],)


def _is_filter(simple: Simple) -> bool:
    words = [word.text for word in simple.words]
    if not words or words[0] not in _FILTERS or simple.redirects or not all(word.known for word in simple.words):
        return False
    flags = {word for word in words[1:] if word.startswith("-") and not word[1:].isdigit()}
    most = 1 if words[0] == "grep" or "-n" in flags else 0
    return flags <= _FILTERS[words[0]] and len([word for word in words[1:] if not word.startswith("-")]) <= most
