"""The files that a command may touch where the tables do not know all of its words: for rules that refuse.

Here every word may name a file, also behind `=`, `@` or a flag's letter, and so may a piece of a longer text. What is
found this way opens nothing: it only brings rules that refuse to bear.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from ferrule.permissions.rules.rule import Touched
from ferrule.permissions.shell.finding import Finding
from ferrule.permissions.shell.line import Simple, Word
from ferrule.permissions.shell.scene import at, found, opens_file

_MOST = 200
_CHANGES = r"writes|deletes|turns the order|runs a program|is an editor"
_HERE = r"(?:\$PWD|\$\{PWD\}|~\+)(?=/|$)"


class Loose(NamedTuple):
    """A file that a command may touch."""

    path: Touched
    whole: bool
    """Is it a whole word or a flag's value? Otherwise it is a piece of a text, which may mean something else."""


def loose(simple: Simple, finding: Finding) -> Iterator[Loose]:
    """The files behind the words of a command that is not known for certain, at most some hundred of them."""
    for redirect in simple.redirects:
        if opens_file(redirect) and not redirect.target.known:
            for text in texts(simple.cwd, redirect.target):
                yield from (Loose(path, whole=True) for path in at(simple.cwd, text, write=redirect.writes))
    if finding.known and not finding.doubt:
        return
    write = re.search(_CHANGES, finding.doubt) is not None
    seen: dict[str, bool] = {}
    for word in (simple.stripped or simple.words)[1 : _MOST + 1]:
        for text in texts(simple.cwd, word):
            for name in _names(text):
                seen[name] = True
            for name in re.findall(r"[\w.~+-]*/[\w./~+-]+", text):
                seen.setdefault(name, False)
    for name, whole in list(seen.items())[: 2 * _MOST]:
        yield from (Loose(path, whole) for path in at(simple.cwd, name, write=write))


def texts(cwd: str | None, word: Word) -> Iterator[str]:
    """What a word may become: with the folder for `$PWD`, and with braces and globs expanded."""
    if word.known:
        yield word.text
        return
    text = re.sub(r"['\"]", "", word.text)
    if cwd is not None:
        text = re.sub(_HERE, cwd, text)
    if re.search(r"[$`]", text):
        return
    from ferrule.support.globs import BadGlob, expand  # only for words that the shell expands

    try:
        expanded = expand(text)
    except BadGlob:
        return
    for one in expanded[:_MOST]:
        yield one
        if re.search(r"[*?\[]", one):
            yield from found(cwd, one, hidden=False)


def _names(text: str) -> Iterator[str]:
    """The names that a word may hold: itself, and what stands behind `=`, `@`, `:` or a flag's letter."""
    if not text.startswith("-"):
        yield text
    elif not text.startswith("--") and len(text) > 2:
        yield text[2:]
    head, mark, behind = text.partition("=")
    if mark and not re.search(r"\s", head):
        yield behind.lstrip("@<")
    if text.startswith("@"):
        yield text[1:]
    if ":" in text:
        scheme, _, rest = text.partition("://")
        yield from (os.sep + rest.lstrip("/"),) if scheme == "file" else text.split(":")
