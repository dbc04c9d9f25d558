"""Which commands are seen to lose what nothing brings back: what checkpoints leave out, and what others have of us.

It is looked at where commands run confined and without a question. What a program does by itself is not seen here: a
package manager that makes `node_modules` anew, a build that overwrites its own folder. Those are meant to.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from ferrule.permissions.shell.line import Simple, Word
from ferrule.permissions.shell.loose import loose
from ferrule.permissions.shell.part import Part
from ferrule.permissions.shell.scene import at, found, harmless_redirect
from ferrule.workspace.remade import CACHES

LeftOut = Callable[[str], bool]
"""Does no checkpoint keep what lies there?"""

_MOST = 5_000
"""In a folder with more entries, looking takes longer than a question."""
_ALWAYS = frozenset({"rm", "rmdir", "unlink", "shred", "mv", "cp", "dd", "tee", "truncate", "install", "rimraf"})
_WITH_FLAG = {
    "sed": r"-[A-Za-z]*i.*|--in-place.*",
    "gsed": r"-[A-Za-z]*i.*|--in-place.*",
    "perl": r"-[A-Za-z0-9]*i.*",
    "ln": r"-[A-Za-z]*f[A-Za-z]*|--force",
    "rsync": r"--del.*|--remove-source-files",
}
"""Programs that delete or overwrite files where they have such a flag."""
_PLACES = frozenset({"mv", "cp", "install", "ln"})
"""What they put into a folder leaves all else there as it is."""
_DELETES = frozenset({"rm", "rmdir", "unlink", "mv", "rimraf"})
_IN_PLACE = frozenset({"dd", "tee", "truncate", "shred", "cp", "sed", "gsed", "perl"})
_DEEP = r"-[A-Za-z]*[rR][A-Za-z]*|--recursive|--del.*"
_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_PUSHES = frozenset({"push", "send-pack", "http-push"})
_FORCES = ("--force", "--force-with-lease", "--mirror", "--delete", "--prune")
_NAMES = frozenset({"-name", "-iname"})
_PATHS = frozenset({"-path", "-ipath", "-wholename", "-iwholename"})
_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def loss(parts: Iterable[Part], left_out: LeftOut) -> str:
    """Why somebody is to be asked about a command line, as a sentence; empty where it is seen to lose nothing."""
    return next((f"{part.shown} {why}." for part in parts if (why := _lost(part, left_out))), "")


def _lost(part: Part, left_out: LeftOut) -> str:
    words = part.simple.stripped or part.simple.words
    program = os.path.basename(part.program)
    rest = [word.text for word in words[1:]]
    if why := _redirected(part.simple, left_out):
        return why
    if program == "git":
        return _lost_by_git(words[1:], part.simple.cwd, left_out)
    if program == "shred":
        return "destroys files so that nothing can bring them back"
    if program == "find":
        return _lost_by_search(part.simple, rest, _executed(rest), left_out)
    if not _destroys(program, rest):
        return ""
    for before in part.simple.fed:
        fed = before.stripped or before.words
        if fed and fed[0].text == "find":
            return _lost_by_search(before, [word.text for word in fed[1:]], [program], left_out)
    return _lost_by_words(part, program, rest, left_out)


def _destroys(program: str, rest: Sequence[str]) -> bool:
    """Does it delete or overwrite the files among its words?"""
    flag = _WITH_FLAG.get(program)
    return program in _ALWAYS or (flag is not None and any(re.fullmatch(flag, text) for text in rest))


def _redirected(simple: Simple, left_out: LeftOut) -> str:
    for redirect in simple.redirects:
        if not redirect.writes or harmless_redirect(redirect) or not redirect.target.known:
            continue
        for path in at(simple.cwd, redirect.target.text, write=True):
            if not os.path.isfile(path.real):
                continue
            if _is_pinned(path.real):
                return _changes_git(path.spelled)
            if ">>" not in redirect.operator and left_out(path.real):
                return _overwrites(path.spelled)
    return ""


def _lost_by_words(part: Part, program: str, rest: Sequence[str], left_out: LeftOut) -> str:
    deep = program == "rimraf" or (program in {"rm", "rsync"} and any(re.fullmatch(_DEEP, text) for text in rest))
    for real, spelled in dict.fromkeys(_written(part, program)):
        if not os.path.lexists(spelled) and not os.path.lexists(real):
            continue
        if program in _IN_PLACE and os.path.isfile(real) and _is_pinned(real):
            return _changes_git(spelled)
        if left_out(real) or left_out(spelled):
            return _deletes(spelled) if program in _DELETES else _overwrites(spelled)
        if deep and os.path.isdir(real) and not os.path.islink(spelled) and (below := _below(real, left_out)):
            return below
    return ""


def _written(part: Part, program: str) -> Iterator[tuple[str, str]]:
    """The paths that it deletes or overwrites, real and as they are spelled."""
    simple, finding = part.simple, part.finding
    into = [path.real for path in at(simple.cwd, finding.writes[-1], write=True)] if finding.writes else []
    for path in part.paths:
        if path.mode == "write" and not (program in _PLACES and path.real in into and os.path.isdir(path.real)):
            yield path.real, path.spelled
    for pattern in finding.globs if program not in _PLACES else ():
        for text in found(simple.cwd, pattern, hidden=False):
            yield from ((path.real, path.spelled) for path in at(simple.cwd, text, write=True))
    for path, whole in loose(simple, finding):
        if whole and not (program in _PLACES and os.path.isdir(path.real) and path.real in into):
            yield path.real, path.spelled


def _below(folder: str, left_out: LeftOut) -> str:
    """What is lost with a whole folder."""
    seen = 0
    folders = [folder]
    for one in folders:  # grows on the way
        try:
            with os.scandir(one) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST:
                        return f"deletes {folder}, which is too large to be looked through"
                    if entry.name in CACHES:
                        continue
                    if left_out(entry.path):
                        return _deletes(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return ""


def _lost_by_git(words: Sequence[Word], cwd: str | None, left_out: LeftOut) -> str:
    folder, settings = cwd, False
    rest = list(words)
    while rest and rest[0].text.startswith("-"):
        flag = rest.pop(0).text
        value = rest.pop(0).text if flag in _VALUED and rest else ""
        if flag == "-C" and folder is not None:
            folder = os.path.join(folder, value)
        settings |= flag == "-c" and value.startswith(("remote.", "push."))
    name = rest[0].text if rest else ""
    if name in _PUSHES:
        return _lost_by_push(rest[1:], settings=settings)
    if name != "clean" or folder is None:
        return ""
    texts = [word.text for word in rest[1:]]
    flags = [text for text in texts if text.startswith("-")]
    letters = "".join(text[1:] for text in flags if not text.startswith("--"))
    if "n" in letters or "--dry-run" in flags or not {"x", "X"}.intersection(letters):
        return ""
    for text in [text for text in texts if not text.startswith("-")] or ["."]:
        real = os.path.realpath(os.path.join(folder, text))
        if os.path.lexists(real) and left_out(real):
            return _deletes(real)
        if os.path.isdir(real) and (below := _below(real, left_out)):
            return below
    return ""


def _lost_by_push(words: Sequence[Word], *, settings: bool) -> str:
    """Others may have the commits that it throws away, and nothing here brings them back there."""
    lost = "can take commits away from others, which nothing here brings back"
    for word in words:
        text = word.text
        if not word.known and not word.start:
            return f"is not certain in all of its words, and {lost}"
        if text.startswith(("+", ":")) and len(text) > 1:
            return lost
        if text.startswith("--") and len(text) > 3:  # git takes a flag also by its beginning
            flag = text.partition("=")[0]
            if any(forced.startswith(flag) for forced in _FORCES):
                return lost
        elif re.fullmatch(r"-[A-Za-z46]*[fd].*", text) and not text.startswith(("--", "-o")):
            return lost
    return lost if settings else ""


def _executed(rest: Sequence[str]) -> list[str]:
    """The programs that a search runs and that delete or overwrite what it finds."""
    programs = ["-delete"] if "-delete" in rest else []
    for index, text in enumerate(rest):
        if text in _EXECUTES and index + 1 < len(rest):
            end = next((one for one in range(index, len(rest)) if rest[one] in {";", "+", "\\;"}), len(rest))
            program = os.path.basename(rest[index + 1])
            if _destroys(program, rest[index + 2 : end]):
                programs.append(program)
    return programs


def _lost_by_search(simple: Simple, rest: Sequence[str], programs: Sequence[str], left_out: LeftOut) -> str:
    """What is lost of all that a search finds, as far as it says what it looks for."""
    if not programs or simple.cwd is None:
        return ""
    tops: list[str] = []
    for text in rest:
        if text.startswith(("-", "(", "!")):
            break
        tops.append(text)
    wanted, kept = _patterns(rest)
    for top in tops or ["."]:
        real = os.path.realpath(os.path.join(simple.cwd, top))
        if _IN_PLACE.intersection(programs) and _is_pinned(os.path.join(real, "x")):
            return _changes_git(top)
        if why := _searched(real, top, wanted, kept, left_out):
            return why
    return ""


def _patterns(rest: Sequence[str]) -> tuple[list[tuple[bool, str]], list[tuple[bool, str]]]:
    """What is looked for and what is passed over: each a pattern, and whether it is one of names."""
    wanted: list[tuple[bool, str]] = []
    kept: list[tuple[bool, str]] = []
    for index, text in enumerate(rest[:-1]):
        if text not in _NAMES and text not in _PATHS:
            continue
        negated = index > 0 and rest[index - 1] in {"!", "-not"}
        (kept if negated else wanted).append((text in _NAMES, rest[index + 1]))
        after = list(rest[index + 2 :])
        pruned = after[:1] == ["-prune"] and "-o" in after[:2]
        if pruned and not negated:
            kept.append(wanted.pop())
    return wanted, kept


def _searched(
    top: str,
    spelled: str,
    wanted: Sequence[tuple[bool, str]],
    kept: Sequence[tuple[bool, str]],
    left_out: LeftOut,
) -> str:
    seen, large = 0, ""
    folders = [(top, spelled, left_out(top), False)]
    for folder, shown, is_out, is_cache in folders:  # grows on the way
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > _MOST:
                return large
            path = os.path.join(shown, entry.name)
            if _fits(kept, entry.name, path):
                continue
            out = is_out or left_out(entry.path)
            cache = is_cache or entry.name in CACHES
            # Of caches only the whole is worth a question, and that somebody has named it.
            is_named = any(name and pattern == entry.name for name, pattern in wanted)
            if out and (not wanted or _fits(wanted, entry.name, path)) and (not cache or is_named):
                return _deletes(path)
            if out and not cache:
                large = f"may delete or overwrite what is in {path}, which no checkpoint keeps"
            if entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, path, out, cache))
    return ""


def _fits(patterns: Sequence[tuple[bool, str]], name: str, path: str) -> bool:
    return any(fnmatchcase(name if is_name else path, pattern) for is_name, pattern in patterns)


def _is_pinned(path: str) -> bool:
    """Is it one of the files in which git keeps its objects? Checkpoints may share them, as they are."""
    folder = os.path.dirname(path)
    while os.path.dirname(folder) != folder:
        git = os.path.dirname(folder)
        if os.path.basename(folder) == "objects" and os.path.lexists(os.path.join(git, "HEAD")):
            return True
        folder = git
    return False


def _deletes(path: str) -> str:
    return f"deletes {path}, which no checkpoint keeps"


def _overwrites(path: str) -> str:
    return f"overwrites {path}, which no checkpoint keeps"


def _changes_git(path: str) -> str:
    return f"changes {path} in place, where git keeps its objects and checkpoints rely on them"
