"""Find the files that `find`, `fd` and commands fed by a search would lose for good.

The tests of a `find` are evaluated for each file before it runs, as far as that is possible. A test has three
answers, yes, no and unknown, and so has an expression. Files that may be acted on are distinguished from files
that surely are.

Names may also come from other commands, through `xargs`, a loop or a substitution, and be deleted then.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ferrule.checkpoints import CACHES
from ferrule.permissions.shell.line import GIVEN, Simple, Word
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.unkept import (
    LOST_HERE,
    MOST,
    NAMES,
    Unkept,
    changes_git,
    deletes,
    is_pinned,
    overwrites,
    soften_reason,
    spellings,
)

Answer = bool | None

_VALUED = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-regextype",
        "-type",
        "-xtype",
        "-size",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-newer",
        "-anewer",
        "-cnewer",
        "-newermt",
        "-perm",
        "-user",
        "-group",
        "-uid",
        "-gid",
        "-links",
        "-inum",
        "-samefile",
        "-lname",
        "-ilname",
        "-maxdepth",
        "-mindepth",
        "-used",
        "-fstype",
        "-printf",
        "-fprint",
        "-fprint0",
        "-fls",
        "-context",
    ]
)
_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_PRINTS = frozenset({"-print", "-print0", "-printf", "-ls"})
_NESTS = frozenset({"(", "\\(", "!", "-not"})
_MOST_NESTED = 100
_ENDS = frozenset({";", "+", "\\;"})
_UNITS = {"c": 1, "w": 2, "b": 512, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class FindMatch(NamedTuple):
    """One file or folder that is found."""

    entry: "os.DirEntry[str]"
    path: str
    """As the search spells it."""


class Act(NamedTuple):
    """What is done to a file."""

    program: str
    is_deep: bool
    """With all that is in it, if it is a folder?"""
    is_sure: bool = True


class FindOutcome(NamedTuple):
    """What a search makes of one file."""

    acts: tuple[Act, ...] = ()
    is_pruned: bool = False


Acting = Callable[[Sequence[str]], Act | None]
"""What a command with these words does to the files that it is given, if it loses them."""


class FindExpression:
    """The tests and actions of one `find`."""

    def __init__(self, words: Sequence[str], acting: Acting, handed: Act | None = None) -> None:
        """`handed`: what is done to the files that it prints."""
        if sum(word in _NESTS for word in words) > _MOST_NESTED:  # deeper than anybody writes: it may act on all
            words = list(_actions(words))
        self._words = list(words)
        self._acting = acting
        self._handed = handed
        self._at = 0
        self.deepest = self._number("-maxdepth")
        self.shallowest = self._number("-mindepth") or 0
        self._acts = "-delete" in words or any(word in _EXECUTES for word in words)
        self._prints = any(word in _PRINTS for word in words)
        self.names = frozenset(self._words[at + 1] for at, word in enumerate(words[:-1]) if word in {"-name", "-iname"})
        """The names and patterns of names that it looks for."""
        self._avoided = [
            words[at + 2]
            for at, word in enumerate(words[:-2])
            if word in {"!", "-not"}
            and words[at + 1] in {"-path", "-ipath", "-wholename"}
            and words[at + 2].endswith("*")
        ]
        self._test = self._either()

    def avoids(self, folder: str) -> bool:
        """Is nothing below a folder acted on, by what the expression says of paths?"""
        return any(fnmatchcase(os.path.join(folder, "x"), pattern) for pattern in self._avoided)

    def see(self, file: FindMatch) -> FindOutcome:
        acts: list[Act] = []
        pruned: list[bool] = []
        found = self._test(file, _Marks(acts, pruned, is_sure=True))
        if self._handed is not None and not self._prints and found is not False:
            acts.append(self._handed._replace(is_sure=found is True))
        return FindOutcome(tuple(acts), any(pruned))

    def _number(self, name: str) -> int | None:
        words = self._words
        at = words.index(name) + 1 if name in words else len(words)
        return int(words[at]) if at < len(words) and words[at].isdigit() else None

    def _either(self) -> "_Test":
        tests = [self._all()]
        while self._take({"-o", "-or", ","}):
            tests.append(self._all())
        return tests[0] if len(tests) == 1 else _or(tests)

    def _all(self) -> "_Test":
        tests: list[_Test] = []
        while self._at < len(self._words) and self._words[self._at] not in {"-o", "-or", ",", ")", "\\)"}:
            if not self._take({"-a", "-and"}):
                tests.append(self._one())
        return tests[0] if len(tests) == 1 else _and(tests)

    def _take(self, words: set[str]) -> bool:
        if self._at < len(self._words) and self._words[self._at] in words:
            self._at += 1
            return True
        return False

    def _one(self) -> "_Test":
        if self._take({"!", "-not"}):
            return _not(self._one()) if self._at < len(self._words) else _unknown
        if self._take({"(", "\\("}):
            inner = self._either()
            self._take({")", "\\)"})
            return inner
        name = self._words[self._at]
        self._at += 1
        if name in _EXECUTES:
            return self._run()
        value = ""
        if name in _VALUED and self._at < len(self._words):
            value = self._words[self._at]
            self._at += 1
        if name == "-delete":
            return _act(Act("-delete", is_deep=False))
        if name in _PRINTS:
            return _act(self._handed) if self._handed is not None else _yes
        return _SIMPLE[name](value) if name in _SIMPLE else _unknown

    def _run(self) -> "_Test":
        words, begin = self._words, self._at
        end = next((at for at in range(begin, len(words)) if words[at] in _ENDS), len(words))
        self._at = end + 1
        act = self._acting(words[begin:end])
        return _unknown if act is None else _act(act)


def _actions(words: Sequence[str]) -> Iterator[str]:
    """What a search does, without its tests."""
    is_inside = False
    for word in words:
        is_inside = (is_inside or word in _EXECUTES) and word not in _ENDS
        if is_inside or word in _ENDS or word in _PRINTS or word == "-delete":
            yield word


class _Marks(NamedTuple):
    acts: list[Act]
    pruned: list[bool]
    is_sure: bool


_Test = Callable[[FindMatch, _Marks], Answer]


def _yes(_file: FindMatch, _marks: _Marks) -> Answer:
    return True


def _no(_file: FindMatch, _marks: _Marks) -> Answer:
    return False


def _unknown(_file: FindMatch, _marks: _Marks) -> Answer:
    return None


def _act(act: Act) -> _Test:
    def test(_file: FindMatch, marks: _Marks) -> Answer:
        marks.acts.append(act._replace(is_sure=act.is_sure and marks.is_sure))
        return True

    return test


def _prune(_file: FindMatch, marks: _Marks) -> Answer:
    if marks.is_sure:
        marks.pruned.append(True)
    return True


def _not(inner: _Test) -> _Test:
    def test(file: FindMatch, marks: _Marks) -> Answer:
        answer = inner(file, marks)
        return None if answer is None else not answer

    return test


def _and(tests: Sequence[_Test]) -> _Test:
    return _join_tests(tests, decides=False)


def _or(tests: Sequence[_Test]) -> _Test:
    return _join_tests(tests, decides=True)


def _join_tests(tests: Sequence[_Test], *, decides: bool) -> _Test:
    """One test of several: the first that says `decides` is the answer. Behind one that does not know, none is sure."""

    def test(file: FindMatch, marks: _Marks) -> Answer:
        found: Answer = not decides
        for one in tests:
            answer = one(file, marks)
            if answer is decides:
                return decides
            if answer is None:
                found, marks = None, marks._replace(is_sure=False)
        return found

    return test


def _name_test(pattern: str, *, lower: bool = False) -> _Test:
    wanted = pattern.lower() if lower else pattern
    return lambda file, _: fnmatchcase(file.entry.name.lower() if lower else file.entry.name, wanted)


def _at_path(pattern: str, *, lower: bool = False) -> _Test:
    wanted = pattern.lower() if lower else pattern
    return lambda file, _: fnmatchcase(file.path.lower() if lower else file.path, wanted)


def _of_kind(kinds: str) -> _Test:
    def test(file: FindMatch, _: _Marks) -> Answer:
        kind = "l" if file.entry.is_symlink() else "d" if file.entry.is_dir() else "f" if file.entry.is_file() else "?"
        return kind in kinds.split(",")

    return test


def _like(pattern: str) -> _Test:
    # Only what a glob could say as well is tried: any other pattern may take longer than a question.
    if not re.fullmatch(r"(?:[\w/ -]|\\\.|\.\*)*", pattern):
        return _unknown
    return _at_path(pattern.replace(".*", "*").replace("\\.", "."))


def _empty(file: FindMatch, _: _Marks) -> Answer:
    try:
        if file.entry.is_dir(follow_symlinks=False):
            return not os.listdir(file.entry.path)
        return file.entry.stat(follow_symlinks=False).st_size == 0
    except OSError:
        return None


def _of_size(text: str) -> _Test:
    given = re.fullmatch(r"([+-]?)(\d+)([cwbkMG]?)", text)
    if given is None:
        return _unknown
    sign, count, unit = given[1], int(given[2]), _UNITS[given[3] or "b"]

    def test(file: FindMatch, _: _Marks) -> Answer:
        try:
            units = -(-file.entry.stat(follow_symlinks=False).st_size // unit)
        except OSError:
            return None
        return units > count if sign == "+" else units < count if sign == "-" else units == count

    return test


_SIMPLE: dict[str, Callable[[str], _Test]] = {
    "-name": _name_test,
    "-iname": lambda value: _name_test(value, lower=True),
    **dict.fromkeys(("-path", "-wholename"), _at_path),
    **dict.fromkeys(("-ipath", "-iwholename"), lambda value: _at_path(value, lower=True)),
    "-regex": _like,
    "-type": _of_kind,
    "-size": _of_size,
    "-empty": lambda _: _empty,
    "-prune": lambda _: _prune,
    "-false": lambda _: _no,
    **dict.fromkeys(("-true", "-maxdepth", "-mindepth", "-depth", "-xdev", "-mount", "-follow"), lambda _: _yes),
}


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


class FindSearch(NamedTuple):
    """What one search looks at, and what becomes of it."""

    tops: tuple[str, ...]
    see: Callable[[FindMatch], FindOutcome]
    avoids: Callable[[str], bool] = lambda _: False
    names: frozenset[str] = frozenset()
    deepest: int | None = None
    shallowest: int = 0


def find(words: Sequence[Word], cwd: str, acting: Acting, handed: Act | None = None) -> FindSearch:
    """The search of a `find` with these words behind its name; `handed` is what is done to what it prints."""
    rest = list(words)
    while rest and (rest[0].text in {"-H", "-L", "-P"} or rest[0].text.startswith("-O")):
        rest.pop(0)
    tops: list[str] = []
    while rest and not rest[0].text.startswith(("-", "(", "\\(", "!")):
        # A folder that only the shell knows may be any below this one.
        tops += spellings(cwd, rest.pop(0)) or ["."]
    expression = FindExpression([word.text for word in rest], acting, handed)
    return FindSearch(
        tuple(tops) or (".",),
        expression.see,
        expression.avoids,
        expression.names,
        expression.deepest,
        expression.shallowest,
    )


def fd(words: Sequence[Word], acting: Acting, handed: Act | None = None) -> FindSearch | None:
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
    fits = _build_matcher(pattern, is_glob=bool({"-g", "--glob"} & set(flags)))

    def see(file: FindMatch) -> FindOutcome:
        kind = "d" if file.entry.is_dir(follow_symlinks=False) else "f"
        wanted = fits(file.entry.name) and (not kinds or kind in kinds)
        wanted = wanted and (not endings or file.entry.name.endswith(tuple(endings)))
        # It leaves out what git ignores unless it is told: whether that is so here is not looked at.
        return FindOutcome((act._replace(is_sure=False),)) if wanted else FindOutcome()

    return FindSearch(tuple(tops) or (".",), see, names=frozenset({pattern}))


def _build_matcher(pattern: str, *, is_glob: bool) -> Callable[[str], bool]:
    if is_glob:
        return lambda name: fnmatchcase(name, pattern)
    plain = re.fullmatch(r"(\^?)((?:[\w-]|\\?\.)*)(\$?)", pattern)
    if plain is None:  # only plain patterns are tried: any other may take longer than a question
        return lambda _: True
    glob = f"{'' if plain[1] else '*'}{plain[2].replace(chr(92), '')}{'' if plain[3] else '*'}"
    is_exact = re.search(r"[A-Z]", pattern) is not None
    return lambda name: fnmatchcase(name if is_exact else name.lower(), glob)


def search_loss(search: FindSearch, cwd: str, programs: Sequence[str], unkept: Unkept) -> str:
    """What is lost of all that it finds, as the end of a sentence; empty where nothing is."""
    for top in search.tops:
        real = os.path.realpath(os.path.join(cwd, top))
        if IN_PLACE.intersection(programs) and is_pinned(os.path.join(real, "x")):
            return changes_git(top)
        if why := _scan_folders(search, real, top, unkept):
            return why
    return ""


class _SearchFolder(NamedTuple):
    real: str
    shown: str
    depth: int
    is_out: bool
    is_cache: bool


def _scan_folders(search: FindSearch, top: str, spelled: str, unkept: Unkept) -> str:
    seen, large = 0, ""
    folders = [_SearchFolder(top, spelled, 1, unkept.left_out(top), is_cache=False)]
    later: list[_SearchFolder] = []
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
            found = search.see(FindMatch(entry, path))
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
            (later if is_out else folders).append(_SearchFolder(entry.path, path, folder.depth + 1, is_out, is_cache))
    return ""


def _says(act: Act, path: str) -> str:
    return (overwrites if act.program in IN_PLACE else deletes)(path, is_sure=act.is_sure)


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


class FileNamesAction(NamedTuple):
    """What becomes of the names that are handed on."""

    act: Act
    acting: Acting
    word: Word
    """The word in whose place they come."""


def source_loss(source: Sequence[Simple], taken: FileNamesAction, cwd: str, unkept: Unkept) -> str:
    """What is lost, as the end of a sentence; `source` are the commands of the pipe, none where nobody knows."""
    first = source[0] if source else None
    words = (first.stripped or first.words) if first is not None else ()
    here = (first.cwd if first is not None else None) or cwd
    name = os.path.basename(words[0].text) if words else ""
    said = " ".join(word.text for word in words[1:])
    if name in {"find", "fd", "fdfind"}:
        search = (find if name == "find" else _fd)(words[1:], here, taken.acting, taken.act)
        why = search_loss(search, here, [taken.act.program], unkept) if search is not None else ""
        return soften_reason(why) if len(source) > 1 else why
    if name in {"echo", "printf", "ls"}:
        named = [word for word in words[1:] if not word.text.startswith("-") and "%" not in word.text]
        opens = name == "ls" and not any(re.fullmatch(r"-[A-Za-z]*d[A-Za-z]*", word.text) for word in words[1:])
        if named or name == "ls":
            return _list_loss(named, taken, here, unkept, opens=opens, is_sure=len(source) == 1 and name != "ls")
    if re.match(_KEPT_NAMES.get(name, r"(?!)"), said):
        return ""
    # A list of files with all that is ignored reaches them one by one.
    reaches = taken.act.is_deep or (name == "git" and said.startswith("ls-files"))
    if not reaches or taken.act.program not in {"rm", "rimraf"}:
        return ""
    return unknown(taken.word, cwd, unkept)


def _fd(words: Sequence[Word], _: str, acting: Acting, handed: Act | None) -> FindSearch | None:
    return fd(words, acting, handed)


def _list_loss(
    named: Sequence[Word], taken: FileNamesAction, cwd: str, unkept: Unkept, *, opens: bool, is_sure: bool
) -> str:
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


def substitution_commands(word: Word, cwd: str, roots: Sequence[str]) -> tuple[Simple, ...]:
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
