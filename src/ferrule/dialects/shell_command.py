"""A shell command made ready to run: no trailing `&`, and a leading `cd folder &&` as the working directory.

Both rewrites are made only where the reading of the command is certain; otherwise it stays as it was written.
What bash would read in another way than this file does must make `_tokens` give None.
"""

import re
from typing import Literal, NamedTuple

Kind = Literal["word", "operator", "newline"]

# A joined line only after a blank: anywhere else it may join two halves of an operator or an expansion.
_BLANKS = re.compile(r"[ \t]+(?:\\\n[ \t]*)*")
# The dash that closes a descriptor is a token of its own, so a `#` behind it begins a comment.
_CLOSE = re.compile(r"[<>]&(?:[ \t]|\\\n)*-")
_OPERATOR = re.compile(_CLOSE.pattern + r"|&&|&>>|&>|&|\|\||\|&|\||;;&|;;|;&|;|<<<|<<|<&|<>|<|>>|>&|>\||>|[()]")
_PLAIN = re.compile(r"[^\s\\'\"`$&|;<>()\0]+")
_ESCAPED = re.compile(r"\\[^\n]")
_SINGLE = re.compile(r"'[^']*'")
_ANSI = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
# Only expansions in which nothing can hide a quote, a comment or another bracket.
_EXPANSION = re.compile(r"\$\{[^'\"`\\{}()]*\}|\$\((?![^)]*\bcase\b)[^'\"`\\#()<]*\)")
_DOLLAR = re.compile(r"\$\$|\$(?![({\[\\'\"])")
# Each character begins one of them only, so that there is one way to read a text: Python up to 3.11.4 takes too much
# for a match where possessive repetitions stand in one another.
_DOUBLE = re.compile(
    r"\"(?:[^\"\\`$]|\\.|" + _EXPANSION.pattern + r"|\$\$|\$(?![({\[\\$]))*\"",
    re.DOTALL,
)
_PIECES = (_PLAIN, _ESCAPED, _SINGLE, _DOUBLE, _ANSI, _EXPANSION, _DOLLAR)

_ENDS_COMMAND = frozenset({"||", ";", "&", ";;", ";&", ";;&"})
# What tells a moved command apart from one that came here by `cd`.
_REMEMBERS_CD = re.compile(r"OLDPWD|DIRSTACK|BASH_EXECUTION_STRING|~-|\$_(?!\w)|\$\{!?_\W|\b(?:cd|pushd|popd|dirs)\b")

_UNQUOTED = re.compile(r"[^\s\\'\"`$&|;<>()*?\[\]{}!~^\0]")
_SPECIAL_IN_DOUBLE = frozenset('"\\$`')


class _Token(NamedTuple):
    kind: Kind
    text: str
    start: int
    end: int
    depth: int
    """How many parentheses stand open around it."""


def strip_background(command: str) -> str:
    """The command without its one trailing `&`, where that is what sends it to the background."""
    tokens = _between_newlines(_tokens(command) or [])
    if len(tokens) < 2:
        return command
    before, last = tokens[-2:]
    trailing = last.text == "&" and last.kind == "operator" and not command[last.end :].strip(" \t\n")
    if trailing and (before.kind == "word" or before.text == ")" or _CLOSE.match(before.text)):
        return command[: before.end]
    return command


def split_cd(command: str) -> tuple[str, str] | None:
    """`cd folder && rest` as (folder, rest), where running the rest in that folder means the same.

    The folder is literal but for a leading `~` or `~/`, which the caller expands. None where it is not, where
    something in the command would also run if `cd` failed, and wherever the reading is uncertain.
    """
    tokens = _between_newlines(_tokens(command) or [])
    words = [token.text for token in tokens[:2]]
    after = 2 if words[1:] == ["--"] else 1
    if words[:1] != ["cd"] or len(tokens) < after + 3:
        return None
    target, operator = tokens[after], tokens[after + 1]
    if target.kind != "word" or operator.text != "&&" or operator.kind != "operator":
        return None
    folder = _literal(target.text)
    if folder is None or not _is_plain_folder(folder, after_dashes=after == 2):
        return None
    rest = _between_newlines(tokens[after + 2 :])
    if not rest or not _runs_only_after_cd(rest):
        return None
    text = command[rest[0].start : rest[-1].end]
    return None if _REMEMBERS_CD.search(text) else (folder, text)


def _between_newlines(tokens: list[_Token]) -> list[_Token]:
    solid = [index for index, token in enumerate(tokens) if token.kind != "newline"]
    return tokens[solid[0] : solid[-1] + 1] if solid else []


def _runs_only_after_cd(rest: list[_Token]) -> bool:
    if rest[0].kind != "word" and rest[0].text != "(":
        return False
    return all(
        token.depth > 0 or not (token.kind == "newline" or (token.kind == "operator" and token.text in _ENDS_COMMAND))
        for token in rest
    )


def _is_plain_folder(folder: str, *, after_dashes: bool) -> bool:
    if folder in {"", "-"} or (folder.startswith("-") and not after_dashes):
        return False
    # `cd link/..` goes back to where the link stands, the kernel's `link/..` to above where it leads.
    names = [name for name in folder.split("/") if name not in {"", "."}]
    while names and names[0] == ".." and not folder.startswith(("/", "~")):
        names.pop(0)
    return ".." not in names


def _literal(word: str) -> str | None:
    """What the word means once its quotes are removed; None where it could be expanded to anything else."""
    out: list[str] = []
    index = 0
    if word == "~" or word.startswith("~/"):
        out.append("~")
        index = 1
    while index < len(word):
        character = word[index]
        if character in "'\"":
            close = _SINGLE.match(word, index) if character == "'" else _DOUBLE.match(word, index)
            inner = _unquote(close.group()) if close else None
            if close is None or inner is None:
                return None
            out.append(inner)
            index = close.end()
        elif character == "\\" and index + 1 < len(word):
            out.append(word[index + 1])
            index += 2
        elif _UNQUOTED.match(character):
            out.append(character)
            index += 1
        else:
            return None
    meaning = "".join(out)
    # A quoted tilde is a name; the caller would take it for the home folder.
    is_safe = meaning.isprintable() and (not meaning.startswith("~") or word[0] == "~")
    return meaning if is_safe else None


def _unquote(piece: str) -> str | None:
    body = piece[1:-1]
    if piece[0] == "'":
        return body
    out: list[str] = []
    characters = iter(body)
    for character in characters:
        if character in "$`":
            return None
        if character == "\\":
            following = next(characters)
            out.append(following if following in _SPECIAL_IN_DOUBLE else "\\" + following)
        else:
            out.append(character)
    return "".join(out)


def _tokens(command: str) -> list[_Token] | None:
    """The command's words and operators; None where it is unbalanced or more than this reader understands."""
    tokens: list[_Token] = []
    index = depth = 0
    bracket = command.find("[")
    while index < len(command):
        if blank := _BLANKS.match(command, index):
            index = blank.end()
            continue
        start, character = index, command[index]
        if character == "#":
            # Behind a word or an open bracket it may be a part of a subscript, where bash sees no comment.
            if tokens and (tokens[-1].kind != "newline" or 0 <= bracket < index):
                return None
            end = command.find("\n", index)
            index = len(command) if end < 0 else end
            continue
        kind: Kind = "word"
        if character == "\n":
            kind, index = "newline", index + 1
        elif operator := _OPERATOR.match(command, index):
            kind, index = "operator", operator.end()
            if operator.group() == "<<" or command.startswith("((", start):
                return None
            depth += {"(": 1, ")": -1}.get(operator.group(), 0)
            if depth < 0:
                return None
        else:
            end_of_word = _end_of_word(command, index)
            if end_of_word is None:
                return None
            index = end_of_word
        tokens.append(_Token(kind, command[start:index], start, index, depth))
    return None if depth else tokens


def _end_of_word(command: str, index: int) -> int | None:
    while index < len(command) and command[index] not in " \t\n&|;<>()":
        piece = next((found for piece in _PIECES if (found := piece.match(command, index))), None)
        if piece is None:
            return None
        index = piece.end()
    return index
