"""A command line taken apart.

What bash would run is listed whatever else is wrong with the line, so that rules that deny are always held against
it; whatever is not certain about the line as a whole is a doubt, and a line with a doubt is never covered by rules.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from ferrule.permissions.shell.grammar import tree
from ferrule.permissions.shell.inside import SHELLS, Argv, Script, inside
from ferrule.permissions.shell.line import Line, Simple, Word
from ferrule.permissions.shell.seams import Seams
from ferrule.permissions.shell.unwrap import TOO_WRAPPED, strip
from ferrule.permissions.shell.walk import Walker

CHARACTERS = 10_000
READ_CHARACTERS = 100_000
"""A longer one is not even read: it is refused by its length alone, and its words are only split."""
PARTS = 200
NESTED = 6

_COMMANDS_IN = "COMMAND|PAGER|EDITOR|VISUAL|SHELL|BROWSER|ASKPASS|DIFF|SSH|RSH"
"""How variables are named that hold a command line which a program runs."""

_NOTHING: Mapping[str, str] = {}
BROKEN = "it does not parse"
CONTROL = "it has control characters or hidden ones, which bash does not read as they look"
TOO_LONG = f"it is longer than {CHARACTERS} characters"
TOO_MANY = f"it has more than {PARTS} commands"


@cache
def _control() -> re.Pattern[str]:
    # Blanks and marks of direction that are not ASCII among them: some builds of bash split words at the former.
    return re.compile(
        "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\xa0\\xad\\u061c\\u1680\\u180e\\u2000-\\u200b\\u200e\\u200f\\u2028-\\u202f"
        "\\u205f-\\u206f\\u3000\\ufeff\\ud800-\\udfff]"
    )


def parse(command: str, *, cwd: str, roots: Sequence[str], known: Mapping[str, str] = _NOTHING) -> Line:
    """Every simple command of the line, and every doubt about it; `known` are variables of its environment."""
    values = {name: Word(value, single=True) for name, value in known.items()}
    commands, doubts = _read(command, os.path.normpath(cwd), nested=0, known=values)
    return Line(tuple(commands), tuple(doubts), tuple(roots))


def _read(
    command: str, cwd: str | None, *, nested: int, known: Mapping[str, Word]
) -> tuple[list[Simple], dict[str, None]]:
    doubts: dict[str, None] = {}
    if len(command) > CHARACTERS:
        doubts[TOO_LONG] = None
    if _control().search(command):
        doubts[CONTROL] = None
        command = _control().sub(" ", command)
    if len(command) > READ_CHARACTERS:
        return list(_split(command)), doubts
    source = command.encode(errors="replace")
    root = tree(source)
    walker = Walker(source, known)
    walker.walk(root, None if cwd is None else frozenset({cwd}))
    commands = walker.found.commands
    doubts |= walker.found.doubts
    if root.has_error:
        doubts[BROKEN] = None
    else:
        seams = Seams(source)
        seams.check(root)
        doubts |= seams.doubts
    if len(commands) > PARTS:
        doubts[TOO_MANY] = None
    commands = [_filled(simple, doubts, nested, known) for simple in commands]
    if nested < NESTED and any(map(_takes_code, commands)):
        for text in _handed(commands):
            commands += _read(text, None, nested=nested + 1, known=known)[0]
    if root.has_error or doubts.keys() & Seams.LOST:
        # What bash would make of it is not in the tree: a rough look, so that rules that deny see the words.
        seen = {simple.source for simple in commands}
        commands += [simple for simple in _split(command) if simple.source not in seen]
    return commands, doubts


def _takes_code(simple: Simple) -> bool:
    """Is it a shell, or does it read more commands?"""
    words = simple.stripped or simple.words
    return bool(words) and os.path.basename(words[0].text) in SHELLS | {"source", ".", "at", "batch"}


def _handed(commands: Sequence[Simple]) -> list[str]:
    """The texts of a line that a shell in it could be handed as commands."""
    said = [simple.words[1:] for simple in commands if simple.words and simple.words[0].text in {"echo", "printf"}]
    texts = [" ".join(word.text for word in words if not word.text.startswith("-")) for words in said]
    given = [one for simple in commands for one in simple.redirects if one.operator in {"<<", "<<<"}]
    return [*texts, *(one.target.text for one in given)]


def _filled(simple: Simple, doubts: dict[str, None], nested: int, known: Mapping[str, Word]) -> Simple:
    """The command with those that it runs by itself."""
    found = list(inside(simple.words, simple.redirects))
    found += [Script(value.text, sure=False) for name, value in simple.assigns if re.search(_COMMANDS_IN, name)]
    if not found:
        return simple
    if nested >= NESTED:
        doubts[TOO_WRAPPED] = None
        return simple
    inner: list[Simple] = []
    for one in found:
        cwd = None if one.moves else simple.cwd
        if isinstance(one, Script):
            commands, more = _read(one.text, cwd, nested=nested + 1, known=known)
            doubts |= more if one.sure else {}
            inner += commands
        else:
            inner.append(_made(one, cwd, doubts, nested + 1, known))
    return simple._replace(inside=tuple(_flattened(inner)))


def _made(argv: Argv, cwd: str | None, doubts: dict[str, None], nested: int, known: Mapping[str, Word]) -> Simple:
    stripped = strip(argv.words)
    if stripped is None:
        doubts[TOO_WRAPPED] = None
    made = Simple(
        words=argv.words,
        source=" ".join(word.text for word in argv.words),
        assigns=argv.assigns,
        cwd=cwd,
        stripped=argv.words if stripped is None else stripped,
    )
    return _filled(made, doubts, nested, known)


def _flattened(commands: Iterable[Simple]) -> Iterable[Simple]:
    """Outermost first, each once."""
    for simple in commands:
        yield simple._replace(inside=())
        yield from simple.inside


def _split(command: str) -> Iterable[Simple]:
    """The line cut at everything that could end a command, quotes or not."""
    for piece in re.split(r"[;&|()`\n{}]|\$\(|<\(|>\(", command[:READ_CHARACTERS]):
        texts = re.sub(r"['\"\\]", "", piece).split()
        if texts:
            words = tuple(Word(text, known=False, start=text) for text in texts)
            yield Simple(words=words, source=piece.strip(), stripped=words)
