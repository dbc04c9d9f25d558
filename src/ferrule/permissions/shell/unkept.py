"""Find the files that no checkpoint keeps, and describe how a command would lose them.

This includes the files that `cp`, `mv`, `install`, `ln` and `rsync` overwrite or take away.
"""

import functools
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ferrule.checkpoints import BESIDE, CACHES, HOLDING, REMADE
from ferrule.core.access import within
from ferrule.permissions.shell.cover import texts
from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.scene import FEW

LeftOut = Callable[[str], bool]
"""Does no checkpoint keep what lies there?"""

MOST = 5_000
"""In a folder with more entries, looking takes longer than a question."""
NAMES = frozenset(name.rpartition("/")[2] for name in (*REMADE, *BESIDE, *HOLDING))
"""What folders are called that a tool makes."""
LOST_HERE = "which no checkpoint keeps"


class UnkeptScan(NamedTuple):
    """What a look below a folder has come upon."""

    path: str = ""
    """The first that no checkpoint keeps; empty where there is none."""
    is_cut: bool = False
    """Was there too much to look at?"""


def _any(_: str) -> bool:
    return True


def _none(_: str) -> bool:
    return False


class ScanBudget:
    """How much may still be looked at for one command line."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> bool:
        """One more; is anything left?"""
        self.left = max(0, self.left - 1)
        return self.left > 0


class Unkept(NamedTuple):
    """What no checkpoint keeps of a workspace."""

    left_out: LeftOut
    roots: tuple[str, ...]
    budget: ScanBudget

    def inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(within(real, root) for root in self.roots)

    def below(
        self, folder: str, *, only: Callable[[str], bool] = _any, keeps: Callable[[str], bool] = _none
    ) -> UnkeptScan:
        """The first below a folder, outermost first; `only` some paths count, and what somebody `keeps` does not.

        Caches come again by themselves: they are no reason to ask, unless `only` is about their name.
        """
        for path, is_out in self._each(folder, keeps):
            if not path:
                return UnkeptScan(is_cut=True)
            if is_out and only(path) and (only is not _any or os.path.basename(path) not in CACHES):
                return UnkeptScan(path)
        return UnkeptScan()

    def every(self, folder: str, *, keeps: Callable[[str], bool] = _none, most: int) -> list[str]:
        """All below a folder, as far as there is not too much; caches are no reason to ask."""
        found = (path for path, is_out in self._each(folder, keeps) if is_out and os.path.basename(path) not in CACHES)
        return list(itertools.islice(found, most))

    def homes(self, folder: str, most: int) -> list[str]:
        """The folders below one in which something lies that no checkpoint keeps."""
        return list(dict.fromkeys(map(os.path.dirname, self.every(folder, most=most))))

    def _each(self, folder: str, keeps: Callable[[str], bool]) -> Iterator[tuple[str, bool]]:
        """Each path, and whether it is left out; an empty one where there is too much. Below those nobody looks."""
        seen = 0
        folders = [folder]
        for one in folders:  # grows on the way
            try:
                entries = sorted(os.scandir(one), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if seen > MOST or not self.budget.spend():
                    yield "", False
                    return
                if keeps(entry.path):
                    continue
                is_out = self.left_out(entry.path)
                yield entry.path, is_out
                if entry.is_dir(follow_symlinks=False) and not is_out:
                    folders.append(entry.path)


def spellings(cwd: str, word: Word) -> list[str]:
    """The paths that a word may become, as far as that is known; a slash at the end of a glob finds folders."""
    bare = word if word.known else word._replace(text=word.text.rstrip("/") or "/")
    return list(texts(cwd, bare))


def deletes(path: str, *, is_sure: bool = True) -> str:
    return f"{'deletes' if is_sure else 'may delete'} {path}, {LOST_HERE}"


def overwrites(path: str, *, is_sure: bool = True) -> str:
    return f"{'overwrites' if is_sure else 'may overwrite'} {path}, {LOST_HERE}"


def changes_git(path: str) -> str:
    return f"changes {path} in place, where git keeps its objects and checkpoints rely on them"


def too_large(folder: str) -> str:
    return f"deletes {folder}, which is too large to be looked through"


def soften_reason(why: str) -> str:
    """The same where it is not certain."""
    for sure, maybe in (("deletes ", "may delete "), ("overwrites ", "may overwrite "), ("changes ", "may change ")):
        if why.startswith(sure):
            return maybe + why[len(sure) :]
    return why


def in_cache(path: str) -> bool:
    """Does it lie in a folder that a run makes anew by itself, and that holds nothing that anybody wrote?

    A folder of byte code counts only as long as there is nothing else in it.
    """
    folder, name = path, os.path.basename(path)
    while name and name not in CACHES:
        folder = os.path.dirname(folder)
        name = os.path.basename(folder)
    if not name or os.path.islink(folder):
        return False
    if name != "__pycache__":
        return True
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return len(names) < MOST and all(one.endswith((".pyc", ".pyo")) or re.search(r"\.pyc\.\d+$", one) for one in names)


def is_pinned(path: str) -> bool:
    """Is it one of the files in which git keeps its objects? Checkpoints may share them, as they are."""
    folder = os.path.dirname(path)
    while os.path.dirname(folder) != folder:
        git = os.path.dirname(folder)
        if os.path.basename(folder) == "objects" and os.path.lexists(os.path.join(git, "HEAD")):
            return True
        folder = git
    return False


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


class CopyArguments(NamedTuple):
    """The words of such a program, told apart."""

    flags: tuple[tuple[str, str], ...]
    """Each with its value."""
    sources: tuple[Word, ...]
    target: Word | None

    def has(self, pattern: str) -> bool:
        return any(re.fullmatch(pattern, flag) for flag, _ in self.flags)


def parse_copy_arguments(program: str, words: Sequence[Word]) -> CopyArguments:
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
    return CopyArguments(tuple(flags), tuple(operands), into)


def copy_loss(program: str, words: Sequence[Word], cwd: str, unkept: Unkept) -> str:
    """What is lost, as the end of a sentence; empty where nothing is."""
    said = parse_copy_arguments(program, words)
    forces = program in {"mv", "ln"} and said.has(_FORCES)
    keeps = (program == "ln" or said.has(_KEEPS.get(program, r"(?!)"))) and not forces
    if said.target is None or keeps:
        return ""
    if program == "rsync":
        return _rsync_loss(said, cwd, unkept)
    targets = _places(cwd, said.target)
    if program == "mv" and (why := _move_loss(said, cwd, targets, unkept)):
        return why
    as_file = said.has(r"-[A-Za-z]*T[A-Za-z]*|--no-target-directory")
    for target in targets:
        for source in said.sources:
            for text in spellings(cwd, source):
                place = os.path.join(cwd, text)
                for over in _find_overwritten(place, target, as_file=as_file, is_link=program == "ln"):
                    if program == "cp" and is_pinned(over):
                        return changes_git(over)
                    if unkept.left_out(over) or unkept.left_out(os.path.realpath(over)):
                        return overwrites(over)
    return ""


def leaves(program: str, words: Sequence[str], cwd: str, unkept: Unkept) -> bool:
    """Does it lose the files that stand where `{}` does: by moving them away, or by putting something over them?"""
    said = parse_copy_arguments(program, [Word(text, single=True) for text in words])
    if said.target is None or said.target.text == "{}":
        return program != "ln" or said.has(_FORCES)
    if program == "rsync":
        return said.has("--remove-source-files")
    return program == "mv" and not unkept.inside(os.path.join(cwd, said.target.text))


def _places(cwd: str, word: Word) -> list[str]:
    return [os.path.normpath(os.path.join(cwd, text)) for text in spellings(cwd, word)]


def _move_loss(said: CopyArguments, cwd: str, targets: Sequence[str], unkept: Unkept) -> str:
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


def _find_overwritten(source: str, target: str, *, as_file: bool, is_link: bool) -> Iterator[str]:
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


def _rsync_loss(said: CopyArguments, cwd: str, unkept: Unkept) -> str:
    """`rsync` deletes what its source lacks, or its source."""
    if said.has("--remove-source-files"):
        for place in [place for source in said.sources for place in _places(cwd, source)]:
            if lost := place if unkept.left_out(place) else unkept.below(place).path:
                return deletes(lost)
    target = said.target
    if target is None or not said.has(r"--del.*") or re.match(r"[\w.@-]+:", target.text):
        return ""
    kept = [] if said.has("--delete-excluded") else list(_exclude_patterns(said))
    for place in _places(cwd, target):
        if not os.path.isdir(place):
            continue
        if unkept.left_out(place):
            return overwrites(place)
        found = unkept.below(place, keeps=functools.partial(fits_ignored, top=place, patterns=kept))
        if found.path or found.is_cut:
            return deletes(found.path) if found.path else too_large(place)
    return ""


def _exclude_patterns(said: CopyArguments) -> Iterator[str]:
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
