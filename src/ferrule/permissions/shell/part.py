"""One simple command with all that is known of it, and the texts that rules may name it by."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.permissions.repository import known_repository
from ferrule.permissions.rules.rule import Touched
from ferrule.permissions.shell.effects import may_be_set
from ferrule.permissions.shell.finding import Finding
from ferrule.permissions.shell.form import says_numbers
from ferrule.permissions.shell.handed import hands_files
from ferrule.permissions.shell.line import Simple, Word
from ferrule.permissions.shell.programs import examine, table
from ferrule.permissions.shell.scene import (
    FEW,
    Scene,
    found,
    harmless_before,
    harmless_redirect,
    opens_file,
    touched,
)

_BLANKS = str.maketrans(dict.fromkeys(" \t\n\v\f\r", "\x1f"))
"""What stands for a blank inside a word: no pattern's blank matches it, so that words are compared whole."""
_SHOWN_CHARS = 120
_LEADING = 50
"""So many words behind a flag are enough to tell a command by."""
_STREAMS = ("/dev/null", "/dev/stdin")


class Part(NamedTuple):
    """One simple command with all that is known of it."""

    simple: Simple
    finding: Finding
    paths: tuple[Touched, ...]
    forms: tuple[str, ...]
    """The texts that a rule may name the command by; all of them mean the same command."""
    spoken_for: bool = False
    """Is it run by a command whose rule speaks for it too, as `npx` and `docker exec` run others?"""

    @property
    def shown(self) -> str:
        return quoted(self.simple.source.strip() or "a redirection")

    @property
    def program(self) -> str:
        words = self.simple.stripped or self.simple.words
        return words[0].text if words and words[0].known else ""

    @property
    def is_known_repository(self) -> bool:
        """Will git find settings that no tool may write?"""
        if self.simple.cwd is None:
            return False
        folder = os.path.realpath(os.path.join(self.simple.cwd, self.finding.folder))
        return known_repository(folder, [word.text for word in self.simple.words])


def quoted(source: str) -> str:
    """A command on one line of a sentence."""
    text = " ".join(source.split())
    return f"`{text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + '…'}`"


def parts(simple: Simple, *, spoken_for: bool = False) -> Iterator[Part]:
    """The command itself, and those that it runs by itself."""
    finding = examine(simple.stripped or simple.words, cwd=simple.cwd)
    yield Part(simple, finding, touched(simple, finding), _forms(simple), spoken_for)
    for inner in simple.inside:
        yield from parts(inner, spoken_for=spoken_for or finding.covers_inside)


def _forms(simple: Simple) -> tuple[str, ...]:
    source = simple.source.strip()
    if not all(word.known for word in simple.words):
        return (source,)
    return tuple(dict.fromkeys((source, _joined(simple.words), _joined(simple.stripped or simple.words))))


def _joined(words: Sequence[Word]) -> str:
    return " ".join(word.text.translate(_BLANKS) for word in words)


def looser(simple: Simple) -> tuple[str, ...]:
    """More texts, for rules that refuse: as a person reads the words, and the program without its folder."""
    words = [word.text for word in simple.stripped or simple.words]
    if not words:
        return ()
    name = os.path.basename(words[0])
    texts = [" ".join(words), " ".join((name, *words[1:]))]
    if "/" in words[0] and simple.cwd is not None:
        # A link may stand for the program.
        meant = os.path.basename(os.path.realpath(os.path.join(simple.cwd, words[0])))
        texts.append(" ".join((meant, *words[1:])))
    form = table().get(name)
    if form is not None and form.subs:
        # The flags before a sub-command, with and without a value each: `git -C sub push` is `git push`.
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 1
            texts += [" ".join((name, *words[begin : begin + _LEADING])) for begin in (at, at + 1)]
            if at + 1 < len(words) and words[at + 1].startswith("-") and not words[at].startswith("-"):
                at += 1
    return tuple(dict.fromkeys(texts))


def reads_only(part: Part, scene: Scene) -> bool:
    """Is it one of the programs that only read, with nothing but what only reads, inside the workspace?"""
    simple, finding = part.simple, part.finding
    if not simple.words:
        sets = all(may_be_set(name) for name, _ in simple.assigns)
        return bool(simple.redirects or simple.assigns) and all(map(harmless_redirect, simple.redirects)) and sets
    # Of `find` the tables have looked at every program that it runs.
    looked_at = simple.stripped != simple.words or part.program == "find"
    runs_others = bool(simple.inside) and not looked_at
    if not part.program or simple.cwd is None or runs_others or not finding.harmless:
        return False
    if part.program in {"cd", "pushd"}:
        return len(part.paths) <= 1 and all(scene.inside(path.real) for path in part.paths)
    return (
        not finding.unsure
        and _is_calm(simple)
        and not scene.impostor(part.program, simple.cwd)
        and not (simple.stripped != simple.words and scene.impostor(simple.words[0].text, simple.cwd))
        and (part.program != "git" or part.is_known_repository)
        and scene.inside(os.path.realpath(simple.cwd))
        and all(_may_be_read(path, part, scene) for path in part.paths)
        and not any(len(found(simple.cwd, pattern, hidden=False)) > FEW for pattern in finding.globs)
        and not finds_flag(part)
        and (not finding.handed or hands_files(part, scene))
    )


def is_reading_git(part: Part) -> bool:
    """Is it a git that only reads, in a repository that is one? What it prints may go anywhere, and lie anywhere."""
    simple = part.simple
    if part.program != "git" or simple.assigns or not part.is_known_repository:
        return False
    if part.finding.harmless:
        return True
    # Another folder to start in is a matter of its own.
    words = list(simple.stripped or simple.words)
    while len(words) > 2 and words[1].text == "-C" and words[1].known:
        del words[1:3]
    return examine(words, cwd=os.path.join(simple.cwd or "", part.finding.folder)).harmless


def finds_flag(part: Part) -> str:
    """A file that a glob finds now and that the program would take for a flag; empty where there is none."""
    names = (name for pattern in part.finding.globs for name in found(part.simple.cwd, pattern, hidden=False))
    return next((name for name in names if name.startswith("-")), "")


def _is_calm(simple: Simple) -> bool:
    """Does nothing around it write, or change how it runs?"""
    for redirect in simple.redirects:
        if opens_file(redirect) and not redirect.target.known:
            return False
        if redirect.writes and not harmless_redirect(redirect):
            return False
        if redirect.operator.startswith("<<") and not _may_be_told(redirect.target):
            return False
    program = simple.words[0].text if simple.words else ""
    return all(harmless_before(program, name, value) for name, value in simple.assigns)


def _may_be_told(text: Word) -> bool:
    """Does the text that it hands over tell no more than `echo` might?"""
    return text.known or text.told or says_numbers(text)


def _may_be_read(path: Touched, part: Part, scene: Scene) -> bool:
    if path.real in _STREAMS:
        return True
    finding = part.finding
    if not scene.inside(path.real) or scene.off_limits(path, names_only=finding.names_only):
        return False
    # The sandbox would mask a secret file below it, and may not be there.
    # Git shows what was committed, whatever lies there now; ripgrep leaves hidden files out unless it is told.
    if not finding.deep or part.program == "git":
        return True
    told = any(word.text.startswith(("-u", "-.", "--hidden", "--no-ignore")) for word in part.simple.words)
    return not scene.buries_secret(
        path.real,
        hidden=part.program != "rg" or told,
        unhides=finding.unhides,
        only=finding.only,
        opens=part.program == "find",
    )
