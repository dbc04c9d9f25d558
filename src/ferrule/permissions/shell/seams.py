"""Where the tree could differ from how bash itself reads the line.

The grammar is more lenient than bash: it takes a carriage return for a blank, joins what bash separates and separates
what bash joins. So every token of the tree is held against bash's own rules for tokens, and so is what stands between
them. Nothing is read anew here: a token that bash might see in another way is a doubt about the whole line.
"""

from typing import TYPE_CHECKING

from ferrule.permissions.shell.grammar import (
    ATOMS,
    CONTAINERS,
    KEYWORDS,
    LOOSE,
    OPERATORS,
    PARTS_OF_COMMANDS,
    SEQUENCES,
    TIGHT,
    WORDS_ONLY,
)
from ferrule.permissions.shell.tokens import AMBIGUOUS, COMPLICATED, UNKNOWN, Tokens, pattern

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
