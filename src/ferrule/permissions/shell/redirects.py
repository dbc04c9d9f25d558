"""Redirections, read from the tree."""

import re
from typing import TYPE_CHECKING

from ferrule.permissions.shell.line import Redirect, Word
from ferrule.permissions.shell.words import Variables, word

if TYPE_CHECKING:
    from tree_sitter import Node

HERE = "heredoc_redirect"
REDIRECTS = frozenset({"file_redirect", HERE, "herestring_redirect"})
_PARTS = frozenset({"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor", "comment", "ERROR"})


def redirect(node: "Node", source: bytes, variables: Variables) -> tuple[Redirect, tuple["Node", ...]]:
    """The redirection of a node, and the words behind it: the tree hangs a command's further words on it."""
    operator = next((child.type for child in node.children if not child.is_named), "<")
    if node.type == HERE:
        extra = tuple(node.children_by_field_name("argument"))
        return Redirect("<<", _text(node, source, variables)), extra
    words = [child for child in node.named_children if child.type not in _PARTS]
    if operator.endswith("&-"):
        return Redirect(operator[:-1], Word("-", single=True)), tuple(words)
    if not words:
        # Only in a tree with errors: what it would open is not known.
        return Redirect(operator, Word("", known=False)), ()
    return Redirect(operator, word(words[0], source, variables=variables)), tuple(words[1:])


def _text(node: "Node", source: bytes, variables: Variables) -> Word:
    parts = {child.type: child for child in node.children}
    body, start = parts.get("heredoc_body"), parts.get("heredoc_start")
    if body is None or start is None:
        return Word("", single=True)
    text = source[body.start_byte : body.end_byte].decode(errors="replace")
    literal = source[start.start_byte : start.start_byte + 1] in b"'\"\\" or not any(mark in text for mark in "$`\\")
    # Commands in it are decided on by themselves.
    names = re.findall(r"(?<!\\)\$(?!\()(?:(\w+|[?#$!])|\{(\w+)\}|(.?))", text)
    told = all(not odd and variables.tells(bare or braced) for bare, braced, odd in names)
    return Word(text, known=literal, single=True, told=told and not literal)
