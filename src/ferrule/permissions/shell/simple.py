"""Simple commands, made from the nodes of the tree."""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ferrule.permissions.shell.effects import assigned, effect, harmless_name, stops_early
from ferrule.permissions.shell.folders import MOVES, Exits, Folders, certain, moved, stays
from ferrule.permissions.shell.grammar import RESERVED
from ferrule.permissions.shell.line import Redirect, Simple, Word
from ferrule.permissions.shell.redirects import REDIRECTS, redirect
from ferrule.permissions.shell.unwrap import TOO_WRAPPED, strip
from ferrule.permissions.shell.words import OPEN, Variables, closed, home, own, word
from ferrule.support.environment import is_telling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

KEYWORD = "a word of the shell's own grammar stands where bash may read it in another way"
_EXPRESSIONS = frozenset(
    {"binary_expression", "unary_expression", "parenthesized_expression", "negation_expression", "postfix_expression"}
)
_BY_NUMBER = frozenset({b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-v", b"-R"})
_COUNTABLE = frozenset({"word", "number", "simple_expansion", "test_operator", "variable_name"})
_UNKNOWN_MOVE = frozenset({"eval", "source", ".", "exec", "trap", "unset", "shopt", "set", "alias", "enable"})


@cache
def _assignment() -> re.Pattern[bytes]:
    return re.compile(rb"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.DOTALL)


@cache
def _told_by_bash() -> re.Pattern[bytes]:
    # Bash itself puts words of the line into these: the last word, what matched, the line as a whole, the folder.
    return re.compile(
        rb"(?<!\w)(?:_|BASH\w*|COMP\w*|READLINE\w*|DIRSTACK|FUNCNAME|MAPFILE|OLDPWD|OPTARG|PWD|REPLY|PS\d)(?!\w)"
    )


class Tail(NamedTuple):
    """What stands behind a command in the tree and belongs to it."""

    redirects: tuple[Redirect, ...] = ()
    words: tuple["Node", ...] = ()


NOTHING = Tail()


class Simples:
    """The simple commands of one tree, as they are found."""

    def __init__(self, source: bytes, known: Mapping[str, Word]) -> None:
        self.source = source
        self.commands: list[Simple] = []
        self.doubts: dict[str, None] = {}
        self.sets = False
        """Does the line give a variable a value?"""
        self.calculates = False
        self.bound: dict[str, Word] = dict(known)
        """What variables of the environment and of the loops around stand for."""
        self._closed = closed(source)
        self._own = own(source)

    def variables(self, here: Folders) -> Variables:
        """What is known of variables where a command runs."""
        places = {"HOME": home(), "PWD": certain(here)}
        known = {name: Word(path, single=True) for name, path in places.items() if path is not None}
        return Variables({**known, **self.bound}, self._closed, self._own)

    def text(self, node: "Node") -> bytes:
        return self.source[node.start_byte : node.end_byte]

    def doubt(self, why: str) -> None:
        if why:
            self.doubts[why] = None

    def calculate(self, text: bytes) -> None:
        """Take in what is evaluated as a number: a variable's value is evaluated in turn, and may run a command."""
        self.calculates |= re.search(rb"[^\W\d]", text) is not None
        if re.search(rb"(?<![<>=!])=(?!=)|\+\+|--", text):
            self.doubt("it sets a variable in a calculation")
        if _told_by_bash().search(text):
            self.doubt("it calculates with a text that bash keeps of the line")

    def set(self, name: str) -> None:
        self.sets = True
        self.doubt(assigned(name))

    def command(self, node: "Node", here: Folders, tail: Tail) -> Exits:
        """A command node, its words in the order in which they stand."""
        nodes: list[Node] = []
        redirects: list[Redirect] = []
        assigns: list[tuple[str, Word]] = []
        declares = node.type != "command"
        variables = self.variables(here)
        for child in node.children:
            if child.type in REDIRECTS:
                made, extra = redirect(child, self.source, variables)
                redirects.append(made)
                nodes.extend(extra)
            elif child.type == "variable_assignment" and not declares:
                assigns.append(self._assign(child, variables))
            elif child.type == "command_name":
                nodes.extend(child.children)
            elif child.type not in {"comment", "ERROR"}:
                nodes.append(child)
        nodes.extend(tail.words)
        words = tuple(self._word(child, variables) for child in nodes)
        head = self.text(nodes[0]) if nodes else b""
        if words and b"$'" in head:
            # A name that is spelled in codes is never what it seems.
            words = (words[0]._replace(known=False), *words[1:])
        self._keywords([self.text(child) for child in nodes[:3]])
        if _assignment().match(head):
            self.doubt(KEYWORD)
        source = (
            self.text(node)
            if not redirects and not tail.words
            else b" ".join(
                self.text(child) for child in [*(c for c in node.children if c.type == "variable_assignment"), *nodes]
            )
        )
        return self.add(words, here, source, tuple(redirects) + tail.redirects, tuple(assigns))

    def add(
        self,
        words: tuple[Word, ...],
        here: Folders,
        source: bytes,
        redirects: tuple[Redirect, ...] = (),
        assigns: tuple[tuple[str, Word], ...] = (),
    ) -> Exits:
        """Take the command in; say where the shell is after it."""
        stripped = strip(words)
        if stripped is None:
            self.doubt(TOO_WRAPPED)
            stripped = words
        self.doubt(effect(words))
        self.doubt(effect(stripped))
        simple = Simple(
            words=words,
            source=source.decode(errors="replace"),
            redirects=redirects,
            assigns=assigns,
            cwd=certain(here),
            stripped=stripped,
        )
        self.commands.append(simple)
        if not stripped:
            return stays(here)
        name = stripped[0].text
        self.sets |= name == "read"
        looks_up = [word.text for word in stripped[1:2]] in (["-v"], ["-V"])
        if stops_early(stripped):
            return stays(here)
        if not stripped[0].known or name in _UNKNOWN_MOVE or (name in {"command", "builtin"} and not looks_up):
            return stays(None)
        if name not in MOVES:
            return stays(here)
        # Behind `command` or `time`, or with `HOME=` before it, it may go elsewhere or nowhere.
        fresh = all(one.words and one.words[0].text in MOVES for one in self.commands)
        return moved(here, words, fresh=fresh) if stripped == words and not assigns else stays(None)

    def assignments(self, node: "Node", here: Folders, tail: Tail) -> Exits:
        """Assignments without a command: they stay."""
        parts = node.children if node.type == "variable_assignments" else [node]
        variables = self.variables(here)
        assigns = tuple(self._assign(part, variables) for part in parts if part.type == "variable_assignment")
        for name, _ in assigns:
            self.set(name)
        if tail.words:
            self.doubt(KEYWORD)
        return self.add(
            tuple(self._word(child, variables) for child in tail.words),
            here,
            self.text(node),
            tail.redirects,
            assigns,
        )

    def group(self, tail: Tail, here: Folders) -> None:
        """Redirections of a whole group, or of no command at all."""
        if tail.words:
            self.doubt(KEYWORD)
        if tail.redirects or tail.words:
            words = tuple(self._word(child, self.variables(here)) for child in tail.words)
            self.add(words, here, b"", tail.redirects)

    def test(self, node: "Node", here: Folders, tail: Tail) -> Exits:
        """`[[ ]]` runs nothing by itself; `[ ]` is a command like any other."""
        opening, *_ = node.children
        parts = list(self._operands(node))
        if opening.type == "[[":
            if not any(
                self.text(part) in {b"-n", b"-z"} for part in parts[:3]
            ):  # whether it is there, anybody may know
                self.compare(*parts)
            if any(self.text(part) in _BY_NUMBER for part in parts):
                self.calculates = True
                for part in parts[1:-1]:
                    self.calculate(self.text(part))
                # An operand of these is evaluated: a text in which a subscript holds a substitution would run it.
                if any(part.type not in _COUNTABLE or b"[" in self.text(part) for part in parts[1:-1] if part.is_named):
                    self.doubt("it calculates with a text")
            self.group(tail, here)
            return stays(here)
        # The tree has comparisons and brackets where bash sees redirections and subshells.
        if b"\n" in self.text(node) or any(part.type in {"<", ">", "(", ")", "&&", "||", "<=", ">="} for part in parts):
            self.doubt("bash may read it in another way")
        words = tuple(self._word(part, self.variables(here)) for part in (*parts, *tail.words))
        if tail.words:
            self.doubt(KEYWORD)
        return self.add(words, here, self.text(node), tail.redirects)

    def compare(self, *nodes: "Node") -> None:
        """Take in what is compared: which way it turns out tells of a variable what nobody else would tell."""
        for name in re.findall(rb"\$\{?[#!]?([A-Za-z_]\w*)", b" ".join(map(self.text, nodes))):
            text = name.decode()
            if is_telling(text) and text not in OPEN | self._own and not harmless_name(text):
                self.doubt("it compares a variable that may hold a secret")

    def _operands(self, node: "Node") -> "Iterator[Node]":
        pending = list(reversed(node.children))
        while pending:
            child = pending.pop()
            if child.type in _EXPRESSIONS:
                pending.extend(reversed(child.children))
            elif child.type not in {"comment", "ERROR"}:
                yield child

    def _keywords(self, texts: list[bytes]) -> None:
        if not texts or texts[0] not in RESERVED:
            return
        rest = [text for text in texts[1:] if text not in {b"-p", b"--"}]
        # `time` before a simple command is the one that reads the same either way.
        if texts[0] != b"time" or not rest or rest[0] in RESERVED or _assignment().match(rest[0]):
            self.doubt(KEYWORD)

    def _assign(self, node: "Node", variables: Variables) -> tuple[str, Word]:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        named = self.text(name).decode(errors="replace") if name is not None else ""
        return named, Word("", single=True) if value is None else word(
            value, self.source, assigned=True, variables=variables
        )

    def _word(self, node: "Node", variables: Variables) -> Word:
        if node.is_named:
            return word(node, self.source, variables=variables)
        text = self.text(node).decode(errors="replace")
        return Word(text, known="$" not in text, single=True)
