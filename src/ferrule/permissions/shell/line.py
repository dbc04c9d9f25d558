"""A command line taken apart: every simple command at every depth, and what is not certain about it."""

from typing import NamedTuple


class Word(NamedTuple):
    """One word of a command."""

    text: str
    """What the program is given, quotes removed, where that is known; otherwise as it was written."""
    known: bool = True
    """Is it exactly one word, and exactly this one, whatever the shell expands?"""
    start: str = ""
    """Where it is not known: the literal beginning, such as `--output=` or `src/`."""
    single: bool = False
    """Where it is not known: does it stay one word all the same, as `"$name.txt"` does? Always so where it is known."""
    glob: bool = False
    """Is it a pattern of file names, and nothing else about it unknown, as in `src/*.py`?"""
    told: bool = False
    """Where it is not known: does all that the shell puts in come from the line itself or from variables that anybody
    may see? Then it tells nothing that the line's own commands do not."""
    stream: bool = False
    """Is it the output of commands of the line under the name of a file, as in `<(sort a)`?"""


class Redirect(NamedTuple):
    """One redirection."""

    operator: str
    """`>`, `>>`, `>|`, `&>`, `&>>`, `<`, `<>`, `<<`, `<<<`, `>&`, `<&`."""
    target: Word
    """A file, a descriptor's number or `-`, or the text that is given as input."""

    @property
    def writes(self) -> bool:
        """Does it open a file for writing? The copy of a descriptor does not."""
        if self.operator in {">&", "<&"}:
            return not (self.target.known and self.target.text.rstrip("-").isdigit()) and self.target.text != "-"
        return ">" in self.operator


class Simple(NamedTuple):
    """One simple command: assignments, words, redirections."""

    words: tuple[Word, ...]
    source: str
    """As it was written, without its redirections."""
    redirects: tuple[Redirect, ...] = ()
    assigns: tuple[tuple[str, Word], ...] = ()
    cwd: str | None = None
    """The folder that it would run in; None where that is not certain."""
    inside: tuple["Simple", ...] = ()
    """The commands that it runs by itself: of `env`, `sudo`, `xargs`, `sh -c`, `find -exec`, outermost first."""
    stripped: tuple[Word, ...] = ()
    """The words without what only changes how it runs (`timeout 5`, `nice`, `nohup`, `time`); else the same words."""
    fed: tuple["Simple", ...] = ()
    """For `xargs`: the simple commands before it in its pipe, where there are no others."""
    heard: tuple["Simple", ...] = ()
    """In a loop: the simple commands whose output it goes over, where there are no others."""

    @property
    def literal(self) -> bool:
        """Is every word known? Then `words` is what the program is given."""
        return all(word.known for word in self.words)


class Line(NamedTuple):
    """A whole command line."""

    commands: tuple[Simple, ...]
    """In the order in which they stand, those in substitutions and loops among them."""
    doubts: tuple[str, ...] = ()
    """Why the line as a whole cannot be decided, each as a sentence without a full stop: `it does not parse`."""
    roots: tuple[str, ...] = ()
    """The folders of the workspace, the first one its own."""
