"""Parse a command line into its simple commands and its doubts.

Every command that bash would run is listed, even if something else is wrong with the line, so that rules that
deny always apply. Any uncertainty about the line as a whole is a doubt, and a line with a doubt is never covered
by rules.

The grammar is more lenient than bash: it takes a carriage return for a blank, joins tokens that bash separates
and separates tokens that bash joins. So every token of the tree, and the text between tokens, is checked against
bash's own rules. Nothing is parsed again here: a token that bash might read in another way is a doubt about the
whole line.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ferrule.permissions.shell.line import (
    AMBIGUOUS,
    ATOMS,
    COMPLICATED,
    CONTAINERS,
    KEYWORDS,
    LOOSE,
    OPERATORS,
    PARTS_OF_COMMANDS,
    SEQUENCES,
    TIGHT,
    TOO_WRAPPED,
    UNKNOWN,
    WORDS_ONLY,
    CommandLine,
    Simple,
    Tokens,
    Word,
    pattern,
    strip,
    tree,
)
from ferrule.permissions.shell.nested import SHELLS, Argv, Script, inside
from ferrule.permissions.shell.walk import ShellTreeWalker

if TYPE_CHECKING:
    from tree_sitter import Node


_ENDS_LINE = frozenset({"comment", "heredoc_end", "heredoc_body"})


class Seams:
    """One look over a line's tree."""

    LOST = frozenset({AMBIGUOUS, COMPLICATED, UNKNOWN})
    """The doubts with which a command may be missing from the tree."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._tokens = Tokens(source)

    @property
    def doubts(self) -> dict[str, None]:
        return self._tokens.doubts

    def check(self, root: "Node") -> None:
        """Look at every token below; what is wrong is in `doubts` then."""
        self._tokens.inner.append(root)
        while self._tokens.inner and not self.doubts:
            stream = self._tokens.inner.pop()
            end = self._stream(stream)
            if stream is root and not pattern("gap").fullmatch(self.source[end:]):
                self._tokens.doubt()

    def _stream(self, stream: "Node") -> int:
        """The tokens of one list of commands, those in substitutions left for later."""
        top = stream.type == "program"
        previous: tuple[bytes, str] = (b";", "")
        end = 0 if top else stream.start_byte
        nodes = list(reversed(stream.children))
        self._siblings(stream)
        while nodes and not self.doubts:
            node = nodes.pop()
            kind = node.type
            if node.is_named and kind not in ATOMS:
                if kind not in CONTAINERS:
                    self._tokens.doubt(UNKNOWN)
                self._siblings(node)
                if kind == "heredoc_redirect":
                    self._tokens.here_document(node)
                nodes.extend(reversed(node.children))
                continue
            if kind in {"heredoc_body", "heredoc_end"}:
                end, previous = node.end_byte, (b"", kind)
                continue
            text = self.source[node.start_byte : node.end_byte]
            first = not top and end == stream.start_byte
            if not first:
                self._seam(previous, self.source[end : node.start_byte], text)
            if node.is_named:
                self._tokens.atom(node)
            elif text.startswith(b";") and len(text) > 1 and (not node.parent or node.parent.type != "case_item"):
                self._tokens.doubt()
            elif not first and node.end_byte != stream.end_byte and text not in OPERATORS and text not in KEYWORDS:
                self._tokens.doubt(UNKNOWN)
            # What opens a substitution is like an operator: a word may follow at once.
            end, previous = node.end_byte, ((b";", "") if first else (text, kind))
        return end

    def _siblings(self, node: "Node") -> None:
        """Newlines end commands: none may stand inside of what the tree takes for one."""
        kind = node.type
        before: Node | None = None
        for child in node.children:
            if kind in WORDS_ONLY and child.is_named and child.type not in PARTS_OF_COMMANDS:
                self._tokens.doubt()
            if before is not None:
                newline = b"\n" in self.source[before.end_byte : child.start_byte].replace(b"\\\n", b"")
                # The branches of an `if` end with what ends their last command.
                joined = before.is_named and child.is_named and kind in SEQUENCES and before.type != "elif_clause"
                after_operator = kind in {"list", "pipeline"} and not before.is_named
                if newline:
                    allowed = kind in LOOSE or after_operator or child.type in {"heredoc_body", "heredoc_end"}
                    if not allowed and before.type != "heredoc_body" and child.type != "comment":
                        self._tokens.doubt()
                elif joined and child.type != "comment":
                    self._tokens.doubt()
                if kind in TIGHT and child.type == "comment":
                    self._tokens.doubt()
            before = child

    def _seam(self, previous: tuple[bytes, str], gap: bytes, text: bytes) -> None:
        """What stands between two tokens: would bash too end the one there and begin the other?"""
        was, was_kind = previous
        if was in {b">&", b"<&"} and text.startswith(b"-"):
            # The dash alone closes the descriptor; what follows it is a word of its own.
            self._tokens.doubt()
        if gap:
            fine = pattern("gap").fullmatch(gap) and gap.replace(b"\\\n", b"") and was_kind != "file_descriptor"
            ended = was_kind not in _ENDS_LINE or gap.startswith(b"\n")
            if not fine or not ended:
                self._tokens.doubt()
        elif was_kind in _ENDS_LINE or not _touch(was, was_kind, text):
            self._tokens.doubt()


def _touch(was: bytes, was_kind: str, text: bytes) -> bool:
    """May these two stand side by side without a blank and still be two tokens?"""
    operator = text in OPERATORS
    if was not in OPERATORS:
        if not operator:
            return text == b"`"
        number = was.isdigit() and was_kind != "file_descriptor"
        return text != b"(" and not (text[:1] in b"<>" and (number or was.endswith(b"}")))
    if not operator:
        # `<>(a)` is the operator `<>` and a bracket, not `<` and a substitution.
        return was not in {b"<&-", b">&-"} and not (was[-1:] in b"<>&|" and text[:1] in b"<>")
    if text == b"(":
        return was in {b";", b"&", b"|", b"&&", b"||", b"|&", b";;"}
    if text[:1] in b"<>" and was in {b"(", b";", b"&&", b"||"}:
        return True
    return was == b")" or (was.endswith(b";") and text[:1] not in b";&")


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


def parse(command: str, *, cwd: str, roots: Sequence[str], known: Mapping[str, str] = _NOTHING) -> CommandLine:
    """Every simple command of the line, and every doubt about it; `known` are variables of its environment."""
    values = {name: Word(value, single=True) for name, value in known.items()}
    commands, doubts = _read(command, os.path.normpath(cwd), nested=0, known=values)
    return CommandLine(tuple(commands), tuple(doubts), tuple(roots))


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
    walker = ShellTreeWalker(source, known)
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
    commands = [_fill_inner(simple, doubts, nested, known) for simple in commands]
    if nested < NESTED and any(map(_takes_code, commands)):
        for text in _find_shell_input(commands):
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


def _find_shell_input(commands: Sequence[Simple]) -> list[str]:
    """The texts of a line that a shell in it could be handed as commands."""
    said = [simple.words[1:] for simple in commands if simple.words and simple.words[0].text in {"echo", "printf"}]
    texts = [" ".join(word.text for word in words if not word.text.startswith("-")) for words in said]
    given = [one for simple in commands for one in simple.redirects if one.operator in {"<<", "<<<"}]
    return [*texts, *(one.target.text for one in given)]


def _fill_inner(simple: Simple, doubts: dict[str, None], nested: int, known: Mapping[str, Word]) -> Simple:
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
            inner.append(_build_simple(one, cwd, doubts, nested + 1, known))
    return simple._replace(inside=tuple(_flatten(inner)))


def _build_simple(
    argv: Argv, cwd: str | None, doubts: dict[str, None], nested: int, known: Mapping[str, Word]
) -> Simple:
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
    return _fill_inner(made, doubts, nested, known)


def _flatten(commands: Iterable[Simple]) -> Iterable[Simple]:
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
