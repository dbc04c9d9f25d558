"""Rows that say which flags and words of a program are known, and the reader that holds a command against a row.

A flag is known only as the row spells it: an abbreviation, an unlisted letter of a cluster or a value that a flag does
not take is a doubt, because the program might take it for something else.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from ferrule.permissions.shell.line import GIVEN, Word


class CommandArguments(NamedTuple):
    """The words of a command, told apart."""

    flags: tuple[tuple[str, Word | None], ...] = ()
    operands: tuple[Word, ...] = ()
    touched: tuple[tuple[str, Word], ...] = ()
    """The values of flags that name paths: `read`, `write` or `folder`, and the word."""
    doubt: str = ""
    mild: bool = False
    """Is there a flag that only a rule of the user's makes certain?"""
    certain: bool = True
    """Are all words known?"""

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.flags)

    def values(self, *names: str) -> list[Word]:
        return [value for name, value in self.flags if name in names and value is not None]


class ArgumentAnalysis(NamedTuple):
    """What a closer look at one program's words adds."""

    doubt: str = ""
    harmless: bool = True
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    into: tuple[str, ...] = ()
    unhides: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    deep: bool = False
    names_only: bool = False
    unruled: str = ""
    """Why a pattern of the user's does not cover it, though it may be harmless."""


class Form(NamedTuple):
    """What may follow a program."""

    flags: str = ""
    """`-abc` are three flags, `-n:n` takes a value, `--color?` may have one behind `=`, `!` before a flag means that
    it is no longer harmless without a rule, `-#` stands for numbers. Values: `n` number, `x` text, `xx` two texts,
    `r` read, `w` written, `d` a folder to go to, `=…` a pattern."""
    operands: str = ""
    """Kinds in order, `*` for any number and `?` for one or none: `text`, `read`, `write`, `rev`, `url`."""
    harmless: bool = False
    project: bool = False
    unsure: bool = False
    here: bool = False
    """Does it read its folder where no operand names one?"""
    deep: bool = False
    globs: bool = False
    """May a glob that cannot become a flag stand for the files that it reads?"""
    tame: bool = False
    """Does no flag at all, listed or not, make it do more than read and print? Then also one that can."""
    prints: bool = False
    """Does it only print its words? Then it matters what these may tell, and not what they are."""
    names_only: bool = False
    """Does it tell names, sizes and dates of what it reads, and nothing of what is in it?"""
    ends: bool = False
    """Does the first operand end the flags?"""
    plain: bool = False
    """Are all words just words, flags or not, known or not?"""
    whole: bool = False
    """Are flags whole words with one dash, as in `find -name`? Otherwise letters cluster."""
    skipped: str = ""
    """Words that are neither flags nor operands, such as the brackets of `find`."""
    also: str = ""
    """A pattern of further flags, for those that are many: `-Wall`, `-O2`."""
    expands: bool = False
    """Does it take a word `@file`, wherever it stands, for the words in that file?"""
    shape: str = ""
    """A pattern that every `text` operand has."""
    instead: str = ""
    """Flags that take the place of the first operand, as `-e` does for `grep`."""
    dangers: str = ""
    """Why some unlisted flags are unlisted: `-o --output=writes a file; -f=loads a file`."""
    leads: bool = False
    """Are the operands a command of their own?"""
    elsewhere: bool = False
    """Does the command among its operands run on another machine?"""
    subs: bool = False
    """Is the first operand a sub-command with a row of its own?"""
    check: Callable[[CommandArguments], ArgumentAnalysis] | None = None
    prepare: Callable[[Sequence[Word]], Sequence[Word]] | None = None


class Flag(NamedTuple):
    value: str = ""
    """Its kind; empty where it takes none."""
    optional: bool = False
    mild: bool = False


@cache
def parse_flags(text: str, *, whole: bool) -> dict[str, Flag]:
    """The flags of a row by their names."""
    found = {}
    for token in text.split():
        name, colon, kind = token.lstrip("!").partition(":")
        optional = name.endswith("?")
        flag = Flag(kind if colon else ("x" if optional else ""), optional, mild=token.startswith("!"))
        name = name.rstrip("?")
        single = whole or name.startswith("--") or name == "-#" or len(name) == 2
        for each in [name] if single else [f"-{letter}" for letter in name[1:]]:
            found[each] = flag
    return found


@cache
def _dangers(text: str) -> dict[str, str]:
    rows = [row.partition("= ") for row in text.split("; ") if row]
    return {name: why for names, _, why in rows for name in names.split()}


_SHAPES = {"n": r"[+-]?\d+[a-zA-Z]{0,3}", "x": r"(?s:.*)", "r": r"(?!@|\w+://)(?s:.+)", "w": r"(?s:.+)"}
_KINDS = {"r": "read", "w": "write", "d": "folder"}
# A folder to go to stays below the present one.
_SHAPES["d"] = r"(?!/)(?!.*(?:^|/)\.\.(?:/|$))[^~].*"


class ArgumentReader:
    """Tells flags, values and operands of one command apart."""

    def __init__(self, form: Form, name: str) -> None:
        self.form = form
        self.name = name
        self.table = parse_flags(form.flags, whole=form.whole)
        self.flags: list[tuple[str, Word | None]] = []
        self.operands: list[Word] = []
        self.touched: list[tuple[str, Word]] = []
        self.doubt = ""
        self.mild = False

    def read(self, words: Sequence[Word]) -> CommandArguments:
        """The words after the program's name."""
        if self.form.plain:
            return CommandArguments(
                operands=tuple(words),
                certain=all(
                    word.known or word.told or says_numbers(word) or (self.form.prints and word == GIVEN)
                    for word in words
                ),
            )
        words = [self._plain_word(word) for word in words]
        rest, skipped, ended = list(words), self.form.skipped.split(), False
        ends = self.form.ends or self.form.subs or self.form.leads
        while rest and not self.doubt:
            word = rest.pop(0)
            if ended or (word.known and word.text in skipped):
                if ended:
                    self.operands.append(word)
            elif not word.known:
                self._unknown(word)
                ended = ends and bool(self.operands)
            elif word.text == "--" and not self.form.whole:
                ended = True
                # What follows is no sub-command then: `git stash -- list` stashes a file called list.
                self.doubt = f"{self.name} takes no word behind -- for a sub-command" if self.form.subs else ""
            elif word.text == "-" or not word.text.startswith("-"):
                self.operands.append(word)
                ended = ends
            elif self.form.also and re.fullmatch(self.form.also, word.text):
                self.flags.append((word.text, None))
            elif self.form.whole or word.text.startswith("--"):
                self._word(word.text, rest)
            else:
                self._cluster(word.text, rest)
        return CommandArguments(
            flags=tuple(self.flags),
            operands=tuple(self.operands),
            touched=tuple(self.touched),
            doubt=self.doubt,
            mild=self.mild,
            certain=all(word.known or word.stream or (self.form.prints and word.told) for word in words),
        )

    def _plain_word(self, word: Word) -> Word:
        """`--include=*.py` as it is written: whatever files it finds, each is a word that begins with this flag."""
        if self.form.expands and _may_begin(word, "@"):
            self.doubt = f"{self.name} may take the word {word.text} for a file of more words"
        name, equals, _ = word.start.partition("=")
        flag = self.table.get(name)
        plain = is_glob(word) and name.startswith("--") and equals and flag is not None and flag.value == "x"
        return Word(word.text, single=True) if plain else word

    def _unknown(self, word: Word) -> None:
        """A word that the shell makes up may be an operand, or the value of a flag that it begins with."""
        name, equals, start = word.start.partition("=")
        flag = self.table.get(name)
        if is_single(word) and name.startswith("--") and equals and flag is not None and flag.value:
            self._value(name, flag, word._replace(start=start))
        elif self.form.tame and (word == GIVEN or (is_glob(word) and not word.start)):
            self.operands.append(word)
        elif not word.start or word.start.startswith("-"):
            self.doubt = f"{what(word)} could become a flag of {self.name}"
        elif not is_single(word) and not is_glob(word):
            self.doubt = f"{what(word)} could become several words of {self.name}"
        else:
            self.operands.append(word)

    def _word(self, text: str, rest: list[Word]) -> None:
        name, equals, value = text.partition("=")
        flag = self.table.get(name)
        if flag is None and self.form.whole and re.fullmatch(r"-\d+", text):
            flag = self.table.get("-#")
        if flag is None or (equals and not flag.value):
            self._doubt_flag(name)
        elif flag.value and not (flag.optional and not equals):
            self._value(name, flag, Word(value) if equals else None, rest)
        else:
            self._plain(name, flag)

    def _cluster(self, text: str, rest: list[Word]) -> None:
        if "-#" in self.table and re.fullmatch(r"-\d+", text):
            self._plain("-#", self.table["-#"])
            return
        letters = text[1:]
        while letters and not self.doubt:
            name, letters = f"-{letters[0]}", letters[1:]
            flag = self.table.get(name)
            if flag is None:
                self._doubt_flag(name)
            elif flag.value and (letters or not flag.optional):
                self._value(name, flag, Word(letters) if letters else None, rest)
                letters = ""
            else:
                self._plain(name, flag)

    def _plain(self, name: str, flag: Flag) -> None:
        self.flags.append((name, None))
        self.mild |= flag.mild

    def _value(self, name: str, flag: Flag, value: Word | None, rest: list[Word] | None = None) -> None:
        self.mild |= flag.mild
        apart = value is None
        for kind in flag.value if flag.value == "xx" else [flag.value]:
            value = (rest.pop(0) if rest else None) if apart else value
            if value is None:
                self.doubt = f"{self.name} {name} lacks its value"
                return
            self.flags.append((name, value))
            self._weigh(name, kind, value, apart=apart)

    def _weigh(self, name: str, kind: str, value: Word, *, apart: bool) -> None:
        shape = kind[1:] if kind.startswith("=") else _SHAPES[kind]
        if not value.known and (kind in _KINDS or kind.startswith("=") or not is_single(value)):
            self.doubt = f"{what(value)} after {self.name} {name} is not certain"
        elif value.known and not re.fullmatch(shape, value.text):
            self.doubt = f"{self.name} {name} with such a value is not listed"
        elif kind in _KINDS:
            self.touched.append((_KINDS[kind], value))
        elif apart and not self.form.whole and kind != "n":
            self._doubtful(name, value)

    def _doubtful(self, name: str, value: Word) -> None:
        """The program may take the value only behind `=`, or no flags after its first operand."""
        if name not in {"-e", "--regexp", "--expression"} and re.match(r"-[\w-]", value.text):
            self.doubt = f"{self.name} {name} may leave {value.text} for a flag"
        elif self.name.startswith("git"):
            return
        elif (re.match(r"/.|\.\./|~", value.text) and name != "-e") or (self.operands and "/" in value.text):
            self.touched.append(("read", value))

    def _doubt_flag(self, name: str) -> None:
        why = _dangers(self.form.dangers).get(name)
        self.doubt = f"{self.name} {name} {why}" if why else f"an unknown flag {name} of {self.name}"


def _may_begin(word: Word, character: str) -> bool:
    """Is the first character of the word this one, or not certain?"""
    return (word.text if word.known else word.start or character).startswith(character)


def is_single(word: Word) -> bool:
    """Is it one word, whatever it becomes?"""
    return word.known or bool(getattr(word, "single", False))


def is_glob(word: Word) -> bool:
    """Is it a pattern of file names, and nothing else that the shell expands? It is looked up as it is: no quotes."""
    return not word.known and word.glob and not re.search(r"[$`{~'\"\\]", word.text)


def says_numbers(word: Word) -> bool:
    """Is all that the shell puts in the exit status, a count or a process number? These tell nothing."""
    return is_single(word) and not re.search(r"[$`*?\[{~\\]", re.sub(r"\$[?#$!](?![A-Za-z0-9_{(])", "", word.text))


def what(word: Word) -> str:
    return "a glob" if is_glob(word) else "a word that only the shell knows"
