"""What `find` would act on: its tests, held against one file, as far as these can be answered before it runs.

A test has three answers, yes, no and nobody knows; so has an expression. What may be acted on is told apart from what
surely is.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

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


class File(NamedTuple):
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


class Seen(NamedTuple):
    """What a search makes of one file."""

    acts: tuple[Act, ...] = ()
    is_pruned: bool = False


Acting = Callable[[Sequence[str]], Act | None]
"""What a command with these words does to the files that it is given, if it loses them."""


class Expression:
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

    def see(self, file: File) -> Seen:
        acts: list[Act] = []
        pruned: list[bool] = []
        found = self._test(file, _Marks(acts, pruned, is_sure=True))
        if self._handed is not None and not self._prints and found is not False:
            acts.append(self._handed._replace(is_sure=found is True))
        return Seen(tuple(acts), any(pruned))

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


_Test = Callable[[File, _Marks], Answer]


def _yes(_file: File, _marks: _Marks) -> Answer:
    return True


def _no(_file: File, _marks: _Marks) -> Answer:
    return False


def _unknown(_file: File, _marks: _Marks) -> Answer:
    return None


def _act(act: Act) -> _Test:
    def test(_file: File, marks: _Marks) -> Answer:
        marks.acts.append(act._replace(is_sure=act.is_sure and marks.is_sure))
        return True

    return test


def _pruned(_file: File, marks: _Marks) -> Answer:
    if marks.is_sure:
        marks.pruned.append(True)
    return True


def _not(inner: _Test) -> _Test:
    def test(file: File, marks: _Marks) -> Answer:
        answer = inner(file, marks)
        return None if answer is None else not answer

    return test


def _and(tests: Sequence[_Test]) -> _Test:
    return _joined(tests, decides=False)


def _or(tests: Sequence[_Test]) -> _Test:
    return _joined(tests, decides=True)


def _joined(tests: Sequence[_Test], *, decides: bool) -> _Test:
    """One test of several: the first that says `decides` is the answer. Behind one that does not know, none is sure."""

    def test(file: File, marks: _Marks) -> Answer:
        found: Answer = not decides
        for one in tests:
            answer = one(file, marks)
            if answer is decides:
                return decides
            if answer is None:
                found, marks = None, marks._replace(is_sure=False)
        return found

    return test


def _named(pattern: str, *, lower: bool = False) -> _Test:
    wanted = pattern.lower() if lower else pattern
    return lambda file, _: fnmatchcase(file.entry.name.lower() if lower else file.entry.name, wanted)


def _at_path(pattern: str, *, lower: bool = False) -> _Test:
    wanted = pattern.lower() if lower else pattern
    return lambda file, _: fnmatchcase(file.path.lower() if lower else file.path, wanted)


def _of_kind(kinds: str) -> _Test:
    def test(file: File, _: _Marks) -> Answer:
        kind = "l" if file.entry.is_symlink() else "d" if file.entry.is_dir() else "f" if file.entry.is_file() else "?"
        return kind in kinds.split(",")

    return test


def _like(pattern: str) -> _Test:
    # Only what a glob could say as well is tried: any other pattern may take longer than a question.
    if not re.fullmatch(r"(?:[\w/ -]|\\\.|\.\*)*", pattern):
        return _unknown
    return _at_path(pattern.replace(".*", "*").replace("\\.", "."))


def _empty(file: File, _: _Marks) -> Answer:
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

    def test(file: File, _: _Marks) -> Answer:
        try:
            units = -(-file.entry.stat(follow_symlinks=False).st_size // unit)
        except OSError:
            return None
        return units > count if sign == "+" else units < count if sign == "-" else units == count

    return test


_SIMPLE: dict[str, Callable[[str], _Test]] = {
    "-name": _named,
    "-iname": lambda value: _named(value, lower=True),
    **dict.fromkeys(("-path", "-wholename"), _at_path),
    **dict.fromkeys(("-ipath", "-iwholename"), lambda value: _at_path(value, lower=True)),
    "-regex": _like,
    "-type": _of_kind,
    "-size": _of_size,
    "-empty": lambda _: _empty,
    "-prune": lambda _: _pruned,
    "-false": lambda _: _no,
    **dict.fromkeys(("-true", "-maxdepth", "-mindepth", "-depth", "-xdev", "-mount", "-follow"), lambda _: _yes),
}
