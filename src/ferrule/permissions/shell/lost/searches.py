"""What is lost of all that `find` or `fd` finds: by what they run, and by what is handed on to another program."""

import os
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.lost.expression import Act, Acting, Expression, File, Seen
from ferrule.permissions.shell.lost.unkept import (
    LOST_HERE,
    MOST,
    Unkept,
    changes_git,
    deletes,
    is_pinned,
    overwrites,
    spellings,
)
from ferrule.workspace.remade import CACHES

IN_PLACE = frozenset({"dd", "tee", "truncate", "shred", "cp", "sed", "gsed", "perl"})
"""Programs that write into files as they are."""
_FD_VALUED = frozenset(
    [
        "-t",
        "--type",
        "-e",
        "--extension",
        "-d",
        "--max-depth",
        "--min-depth",
        "--exact-depth",
        "-E",
        "--exclude",
        "-S",
        "--size",
        "-c",
        "--color",
        "-j",
        "--threads",
        "--max-results",
        "--changed-within",
        "--changed-before",
        "--owner",
        "--base-directory",
        "--search-path",
    ]
)
_FD_RUNS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


class Search(NamedTuple):
    """What one search looks at, and what becomes of it."""

    tops: tuple[str, ...]
    see: Callable[[File], Seen]
    avoids: Callable[[str], bool] = lambda _: False
    names: frozenset[str] = frozenset()
    deepest: int | None = None
    shallowest: int = 0


def find(words: Sequence[Word], cwd: str, acting: Acting, handed: Act | None = None) -> Search:
    """The search of a `find` with these words behind its name; `handed` is what is done to what it prints."""
    rest = list(words)
    while rest and (rest[0].text in {"-H", "-L", "-P"} or rest[0].text.startswith("-O")):
        rest.pop(0)
    tops: list[str] = []
    while rest and not rest[0].text.startswith(("-", "(", "\\(", "!")):
        # A folder that only the shell knows may be any below this one.
        tops += spellings(cwd, rest.pop(0)) or ["."]
    expression = Expression([word.text for word in rest], acting, handed)
    return Search(
        tuple(tops) or (".",),
        expression.see,
        expression.avoids,
        expression.names,
        expression.deepest,
        expression.shallowest,
    )


def fd(words: Sequence[Word], acting: Acting, handed: Act | None = None) -> Search | None:
    """The search of an `fd`; None where it runs nothing that loses what it finds."""
    all_texts = [word.text for word in words]
    runs = next((at for at, text in enumerate(all_texts) if text in _FD_RUNS), len(all_texts))
    act = acting([*all_texts[runs + 1 :], "{}"]) if runs < len(all_texts) else handed
    if act is None:
        return None
    flags: list[str] = []
    operands: list[str] = []
    kinds, endings = "", []
    rest = all_texts[:runs]
    while rest:
        text = rest.pop(0)
        if text in _FD_VALUED and rest:
            value = rest.pop(0)
            kinds += value[0] if text in {"-t", "--type"} else ""
            endings += [f".{value}"] if text in {"-e", "--extension"} else []
        else:
            (flags if text.startswith("-") else operands).append(text)
    pattern, *tops = operands or [""]
    fits = _fitting(pattern, is_glob=bool({"-g", "--glob"} & set(flags)))

    def see(file: File) -> Seen:
        kind = "d" if file.entry.is_dir(follow_symlinks=False) else "f"
        wanted = fits(file.entry.name) and (not kinds or kind in kinds)
        wanted = wanted and (not endings or file.entry.name.endswith(tuple(endings)))
        # It leaves out what git ignores unless it is told: whether that is so here is not looked at.
        return Seen((act._replace(is_sure=False),)) if wanted else Seen()

    return Search(tuple(tops) or (".",), see, names=frozenset({pattern}))


def _fitting(pattern: str, *, is_glob: bool) -> Callable[[str], bool]:
    if is_glob:
        return lambda name: fnmatchcase(name, pattern)
    plain = re.fullmatch(r"(\^?)((?:[\w-]|\\?\.)*)(\$?)", pattern)
    if plain is None:  # only plain patterns are tried: any other may take longer than a question
        return lambda _: True
    glob = f"{'' if plain[1] else '*'}{plain[2].replace(chr(92), '')}{'' if plain[3] else '*'}"
    is_exact = re.search(r"[A-Z]", pattern) is not None
    return lambda name: fnmatchcase(name if is_exact else name.lower(), glob)


def lost_by_search(search: Search, cwd: str, programs: Sequence[str], unkept: Unkept) -> str:
    """What is lost of all that it finds, as the end of a sentence; empty where nothing is."""
    for top in search.tops:
        real = os.path.realpath(os.path.join(cwd, top))
        if IN_PLACE.intersection(programs) and is_pinned(os.path.join(real, "x")):
            return changes_git(top)
        if why := _looked_through(search, real, top, unkept):
            return why
    return ""


class _Folder(NamedTuple):
    real: str
    shown: str
    depth: int
    is_out: bool
    is_cache: bool


def _looked_through(search: Search, top: str, spelled: str, unkept: Unkept) -> str:
    seen, large = 0, ""
    folders = [_Folder(top, spelled, 1, unkept.left_out(top), is_cache=False)]
    later: list[_Folder] = []
    # What is left out may be large: all else is looked at first.
    while folders or later:
        folder = folders.pop(0) if folders else later.pop(0)
        try:
            entries = sorted(os.scandir(folder.real), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > MOST or not unkept.budget.spend():
                return large
            path = os.path.join(folder.shown, entry.name)
            is_out = folder.is_out or unkept.left_out(entry.path)
            is_cache = folder.is_cache or entry.name in CACHES
            found = search.see(File(entry, path))
            is_dir = entry.is_dir(follow_symlinks=False)
            for act in found.acts if folder.depth >= search.shallowest else ():
                # Of caches only the whole is worth a question, and that somebody has named it.
                counts = is_out and (not is_cache or entry.name in search.names)
                if counts and (act.is_deep or not is_dir):
                    return _says(act, path)
                if act.is_deep and is_dir and not is_out and (inner := unkept.below(entry.path).path):
                    return _says(act, inner)
            if not is_dir or found.is_pruned or search.avoids(path) or folder.depth == search.deepest:
                continue
            if is_out and not is_cache:
                large = f"may delete or overwrite what is in {path}, {LOST_HERE}"
            (later if is_out else folders).append(_Folder(entry.path, path, folder.depth + 1, is_out, is_cache))
    return ""


def _says(act: Act, path: str) -> str:
    return (overwrites if act.program in IN_PLACE else deletes)(path, is_sure=act.is_sure)
