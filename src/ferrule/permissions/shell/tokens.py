"""Single tokens of the tree, held against bash's own rules for where such a token ends."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

AMBIGUOUS = "bash may read it in another way"
COMPLICATED = "it uses an expansion that is too complicated to follow"
UNKNOWN = "it uses a construct that is not understood"

_LITERAL_DOLLAR = rb"\$(?=[ \t\n'/.|)%^,+=\]:;&<>~]|$)"
_PATTERNS = {
    "gap": rb"(?:[ \t\n]|\\\n)*",
    "word": rb"(?!#)(?:[^ \t\n\\'\"`$&|;<>()]|\\[^\n])+",
    "number": rb"-?\d+(?:#[0-9A-Za-z@_]+)?",
    "raw_string": rb"'[^']*'",
    "ansi_c_string": rb"\$'(?:[^'\\]|\\.)*'",
    "simple_expansion": rb"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])",
    # Only what cannot hide a quote or a bracket, does not assign, and does not read a value as code.
    "expansion": rb"\$\{(?:#?[A-Za-z_]\w*|[0-9@*#?$!-])(?:\[[@*]\])?"
    rb"(?:(?::?[-+?]|##?|%%?|//?|\^\^?|,,?)[^'\"`\\{}()\[\]<>&|;]*)?\}",
    # No brackets: `$((a) || (b))` is a list of commands.
    "arithmetic_expansion": rb"\$\(\([\w \t+\-*/%<>=!&|^~?:,$]*\)\)",
    "text": rb"(?:[^\"\\`$]|\\.|" + _LITERAL_DOLLAR + rb")*",
    "variable_name": rb"[A-Za-z_][A-Za-z0-9_]*",
    "special_variable_name": rb"[0-9@*#?$!-]",
    "file_descriptor": rb"\d+",
    "test_operator": rb"-[A-Za-z]+",
    "regex": rb"[^ \t\n\\'\"`&|;<>(){}]+",
    "extglob_pattern": rb"(?!#)(?:[^ \t\n\\'\"`$&|;<>()]|\\[^\n])+",
    "brace_expression": rb"\{-?\w+\.\.-?\w+(?:\.\.-?\w+)?\}",
    "heredoc_start": rb"[A-Za-z0-9_.-]+|'[^'\n]*'|\"[A-Za-z0-9_ .-]*\"|\\[A-Za-z0-9_]+",
    "comment": rb"#[^\n]*",
    "heredoc": rb"(?:[^\\`$]|\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\}|\\[^\n]|\$(?![A-Za-z0-9_{(\[@*#?$!'\"-]))*",
}


@cache
def pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(_PATTERNS[name], re.DOTALL)


def begins(node: "Node", source: bytes) -> int:
    """Where a token begins: inside of quotes the tree counts the blanks before an expansion to it."""
    start = node.start_byte
    while source[start : start + 1] in {b" ", b"\t", b"\n"} and start < node.end_byte:
        start += 1
    return start


class Tokens:
    """The tokens of one line, one by one."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.doubts: dict[str, None] = {}
        self.inner: list[Node] = []
        """Substitutions that were met, and whose commands are not looked at yet."""

    def doubt(self, why: str = AMBIGUOUS) -> None:
        self.doubts[why] = None

    def atom(self, node: "Node", *, quoted: bool = False) -> None:
        """Is the token one that bash too would begin and end just here?"""
        # Only between quotes are blanks before it a part of the text; elsewhere they would end a command.
        start = begins(node, self.source) if quoted else node.start_byte
        text = self.source[start : node.end_byte]
        match node.type:
            case "concatenation":
                self._concatenation(node)
            case "string":
                self._string(node, text)
            case "command_substitution" | "process_substitution":
                self._substitution(node, text)
            case "variable_assignment":
                self._assignment(node)
            case "simple_expansion":
                self._variable(node, text)
            case "expansion" | "arithmetic_expansion":
                if not pattern(node.type).fullmatch(text) or b"$(" in text[2:] or b"`" in text:
                    self.doubt(COMPLICATED)
            case "comment" if self.source[node.end_byte : node.end_byte + 1] not in {b"", b"\n"}:
                self.doubt()
            case kind if kind in _PATTERNS:
                self._match(kind, text)
            case _:
                self.doubt(COMPLICATED)

    def _concatenation(self, node: "Node") -> None:
        end = node.start_byte
        for part in node.children:
            if part.start_byte != end or part.type == "variable_assignment":
                self.doubt()
            self.atom(part)
            end = part.end_byte

    def _substitution(self, node: "Node", text: bytes) -> None:
        # Inside of backquotes a backslash, a quote and a comment each mean something else than elsewhere.
        if text.startswith(b"$((") or (text.startswith(b"`") and any(mark in text for mark in (b"\\", b"#", b'"'))):
            self.doubt(COMPLICATED)
        if not text.startswith((b"$(", b"`", b"<(", b">(")):
            self.doubt()
        self.inner.append(node)

    def _variable(self, node: "Node", text: bytes) -> None:
        following = self.source[node.end_byte : node.end_byte + 1]
        is_name = text[1:2].isalpha() or text[1:2] == b"_"
        if is_name and (following.isalnum() or following == b"_"):
            self.doubt()
        self._match(node.type, text)

    def _match(self, kind: str, text: bytes) -> None:
        if not pattern(kind).fullmatch(text):
            self.doubt()

    def _string(self, node: "Node", text: bytes) -> None:
        if len(text) < 2 or not text.startswith(b'"') or not text.endswith(b'"'):
            self.doubt()
            return
        at = node.start_byte + 1
        for child in node.named_children:
            if child.type == "string_content":
                continue
            self._match("text", self.source[at : begins(child, self.source)])
            self.atom(child, quoted=True)
            at = child.end_byte
        self._match("text", self.source[at : node.end_byte - 1])

    def _assignment(self, node: "Node") -> None:
        name, *rest = node.children
        end = name.end_byte
        if name.type != "variable_name":
            self.doubt(COMPLICATED)
        for part in rest:
            if part.start_byte != end:
                self.doubt()
            if part.is_named:
                self.atom(part)
            end = part.end_byte

    def here_document(self, node: "Node") -> None:
        """Does the text of the here-document begin and end where bash says it does?"""
        parts = {child.type: child for child in node.children}
        start, body, end = parts.get("heredoc_start"), parts.get("heredoc_body"), parts.get("heredoc_end")
        if start is None or end is None:
            self.doubt()
            return
        mark = self.source[start.start_byte : start.end_byte]
        strips = "<<-" in parts
        quoted = mark[:1] in b"'\"\\"
        mark = mark.strip(b"'\"\\")
        newline = self.source.find(b"\n", start.end_byte)
        at = newline + 1
        before = end.start_byte if body is None else body.start_byte
        # The tree leaves blanks at the beginning out of the text.
        if newline < 0 or self.source[at:before].strip(b" \t\n"):
            self.doubt()
        line_end = -1
        while at < len(self.source):
            found = self.source.find(b"\n", at)
            line_end = len(self.source) if found < 0 else found
            line = self.source[at:line_end]
            if (line.lstrip(b"\t") if strips else line) == mark:
                break
            at = line_end + 1
        if line_end != end.end_byte or at > end.start_byte:
            self.doubt()
        text = self.source[newline + 1 : at]
        if not quoted:
            self._expanded_text(body, text, newline + 1, at)

    def _expanded_text(self, body: "Node | None", text: bytes, at: int, end: int) -> None:
        if b"\\\n" in text:
            self.doubt()
        for child in body.named_children if body else ():
            if child.type == "heredoc_content":
                continue
            if not pattern("heredoc").fullmatch(self.source[at : begins(child, self.source)]):
                self.doubt(COMPLICATED)
            self.atom(child, quoted=True)
            at = child.end_byte
        if not pattern("heredoc").fullmatch(self.source[at:end]):
            self.doubt(COMPLICATED)
