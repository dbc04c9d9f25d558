"""What copies and moves put something over, and what they take away: `cp`, `mv`, `install`, `ln` and `rsync`."""

import functools
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.lost.unkept import (
    Unkept,
    changes_git,
    deletes,
    is_pinned,
    overwrites,
    spellings,
    too_large,
)
from ferrule.permissions.shell.scene import FEW

_VALUED = {
    "cp": "-t --target-directory -S --suffix",
    "mv": "-t --target-directory -S --suffix",
    "ln": "-t --target-directory -S --suffix",
    "install": "-t --target-directory -S --suffix -m --mode -o --owner -g --group --strip-program",
    "rsync": "-e --rsh -f --filter --exclude --include --exclude-from --include-from --files-from --max-size --min-size"
    " --bwlimit --timeout --log-file --backup-dir -T --temp-dir --partial-dir --compare-dest --copy-dest --link-dest"
    " --info --debug --out-format --chmod --chown --rsync-path --port -B --block-size --suffix --password-file -M"
    " --remote-option --usermap --groupmap --max-delete --iconv --log-file-format --skip-compress --sockopts",
}
COPIES = frozenset(_VALUED)
_KEEPS = {
    "cp": r"-[^tS-]*n[A-Za-z]*|--no-clobber|--update=none(?:-fail)?",
    "mv": r"-[^tS-]*n[A-Za-z]*|--no-clobber|--update=none(?:-fail)?",
    "install": r"-[^mogtS-]*d|--directory",
    "rsync": r"-[^efTBM-]*n[A-Za-z]*|--dry-run|--list-only",
}
"""With such a flag nothing is put over anything."""
_FORCES = r"-[A-Za-z]*f[A-Za-z]*|--force"
"""Of `mv -n -f` the last one counts."""
_INTO = r"(-t|--target-directory)"


class Given(NamedTuple):
    """The words of such a program, told apart."""

    flags: tuple[tuple[str, str], ...]
    """Each with its value."""
    sources: tuple[Word, ...]
    target: Word | None

    def has(self, pattern: str) -> bool:
        return any(re.fullmatch(pattern, flag) for flag, _ in self.flags)


def given(program: str, words: Sequence[Word]) -> Given:
    """The words behind the program's name."""
    valued = _VALUED[program].split()
    flags: list[tuple[str, str]] = []
    operands: list[Word] = []
    into: Word | None = None
    rest = list(words)
    while rest:
        word = rest.pop(0)
        text = word.text if word.known else word.start
        if text == "--":
            operands += rest
            break
        if not text.startswith("-") or text == "-":
            operands.append(word)
            continue
        flag, joint, value = text.partition("=") if text.startswith("--") else (text, "", "")
        short = next((one for one in valued if len(one) == 2 and re.fullmatch(rf"-[A-Za-z]*{one[1]}", text)), "")
        if not joint and (flag in valued or short) and rest:
            behind = rest.pop(0)
            value = behind.text
            if re.fullmatch(_INTO, short or flag):
                into = behind
        elif joint and re.fullmatch(_INTO, flag):
            into = Word(value, single=True)
        flags.append((text if joint and flag not in valued else flag, value))
    if into is None and operands:
        into = operands.pop()
    return Given(tuple(flags), tuple(operands), into)


def lost_by_copy(program: str, words: Sequence[Word], cwd: str, unkept: Unkept) -> str:
    """What is lost, as the end of a sentence; empty where nothing is."""
    said = given(program, words)
    forces = program in {"mv", "ln"} and said.has(_FORCES)
    keeps = (program == "ln" or said.has(_KEEPS.get(program, r"(?!)"))) and not forces
    if said.target is None or keeps:
        return ""
    if program == "rsync":
        return _mirrored(said, cwd, unkept)
    targets = _places(cwd, said.target)
    if program == "mv" and (why := _moved_away(said, cwd, targets, unkept)):
        return why
    as_file = said.has(r"-[A-Za-z]*T[A-Za-z]*|--no-target-directory")
    for target in targets:
        for source in said.sources:
            for text in spellings(cwd, source):
                place = os.path.join(cwd, text)
                for over in _put_over(place, target, as_file=as_file, is_link=program == "ln"):
                    if program == "cp" and is_pinned(over):
                        return changes_git(over)
                    if unkept.left_out(over) or unkept.left_out(os.path.realpath(over)):
                        return overwrites(over)
    return ""


def leaves(program: str, words: Sequence[str], cwd: str, unkept: Unkept) -> bool:
    """Does it lose the files that stand where `{}` does: by moving them away, or by putting something over them?"""
    said = given(program, [Word(text, single=True) for text in words])
    if said.target is None or said.target.text == "{}":
        return program != "ln" or said.has(_FORCES)
    if program == "rsync":
        return said.has("--remove-source-files")
    return program == "mv" and not unkept.inside(os.path.join(cwd, said.target.text))


def _places(cwd: str, word: Word) -> list[str]:
    return [os.path.normpath(os.path.join(cwd, text)) for text in spellings(cwd, word)]


def _moved_away(said: Given, cwd: str, targets: Sequence[str], unkept: Unkept) -> str:
    """What leaves the workspace is in no checkpoint afterwards. What is called another name is still there."""
    if targets and all(unkept.inside(os.path.dirname(target) or target) for target in targets):
        return ""
    for source in said.sources:
        for text in spellings(cwd, source):
            place = os.path.normpath(os.path.join(cwd, text))
            if not os.path.lexists(place):
                continue
            lost = place if unkept.left_out(place) else unkept.below(place).path
            if lost:
                return deletes(lost, is_sure=bool(targets))
    return ""


def _put_over(source: str, target: str, *, as_file: bool, is_link: bool) -> Iterator[str]:
    """The files that are there and come to lie under what is copied. No program puts a file over a folder."""
    name = os.path.basename(source.rstrip("/"))
    place = os.path.join(target, name) if os.path.isdir(target) and not as_file and name not in {"", "."} else target
    if is_link or not os.path.isdir(source):
        if os.path.lexists(place) and (os.path.islink(place) or not os.path.isdir(place)):
            yield place
        return
    seen = 0
    for folder, _, files in os.walk(source):
        seen += 1
        for file in files:
            seen += 1
            if seen > FEW:
                return
            over = os.path.join(place, os.path.relpath(os.path.join(folder, file), source))
            if os.path.isfile(over):
                yield over


def _mirrored(said: Given, cwd: str, unkept: Unkept) -> str:
    """`rsync` deletes what its source lacks, or its source."""
    if said.has("--remove-source-files"):
        for place in [place for source in said.sources for place in _places(cwd, source)]:
            if lost := place if unkept.left_out(place) else unkept.below(place).path:
                return deletes(lost)
    target = said.target
    if target is None or not said.has(r"--del.*") or re.match(r"[\w.@-]+:", target.text):
        return ""
    kept = [] if said.has("--delete-excluded") else list(_excluded(said))
    for place in _places(cwd, target):
        if not os.path.isdir(place):
            continue
        if unkept.left_out(place):
            return overwrites(place)
        found = unkept.below(place, keeps=functools.partial(fits_ignored, top=place, patterns=kept))
        if found.path or found.is_cut:
            return deletes(found.path) if found.path else too_large(place)
    return ""


def _excluded(said: Given) -> Iterator[str]:
    for flag, value in said.flags:
        if flag == "--exclude":
            yield value
        elif flag in {"-f", "--filter"} and value[:2] in {"- ", "P "}:
            yield value[2:]


def fits_ignored(path: str, top: str, patterns: Sequence[str]) -> bool:
    """Is a path one of those that patterns leave alone, such as `node_modules`, `/dist` or `crates/*/target`?"""
    name, within = os.path.basename(path), os.path.relpath(path, top)
    for pattern in patterns:
        plain = pattern.rstrip("/")
        if "/" in plain.lstrip("/") or plain.startswith("/"):
            if fnmatchcase(within, plain.lstrip("/")):
                return True
        elif fnmatchcase(name, plain):
            return True
    return False
