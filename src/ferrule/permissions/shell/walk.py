"""Walk the tree of a command line to collect its simple commands and the folders that each could run in.

Folders are followed through `cd` without running it.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ferrule.permissions.shell.line import (
    HERE,
    OPEN,
    REDIRECTS,
    RESERVED,
    TOO_WRAPPED,
    LineVariables,
    Redirect,
    Simple,
    Word,
    assignment_doubt,
    effect,
    harmless_name,
    home,
    own,
    redirect,
    stops_early,
    strip,
    uses_private_variables,
    word_of,
)
from ferrule.permissions.shell.nested import loop_values
from ferrule.system.environment import is_telling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node


Folders = frozenset[str] | None
"""Every folder that it could be, as the shell spells them; None where it could be any."""

MOVES = frozenset({"cd", "pushd", "popd"})
MADE = "made.by.mktemp"
"""The name that stands for what `mktemp` makes while the line runs."""
_MOST = 8


class Exits(NamedTuple):
    """Where the shell could be after a command that succeeded, and after one that failed."""

    done: Folders
    failed: Folders

    @property
    def either(self) -> Folders:
        return union(self.done, self.failed)


def union(one: Folders, other: Folders) -> Folders:
    if one is None or other is None:
        return None
    both = one | other
    return both if len(both) <= _MOST else None


def stays(here: Folders) -> Exits:
    """The exits of a command that goes nowhere."""
    return Exits(here, here)


def certain(here: Folders) -> str | None:
    """The one folder that it is; links on the way are resolved where the shell went through them."""
    return next(iter(here)) if here is not None and len(here) == 1 else None


def resolve_cd(here: Folders, words: tuple[Word, ...], *, fresh: bool = False) -> Exits:
    """Where `cd`, `pushd` or `popd` leads. `fresh`: no command before it can have made anything."""
    name, operands = words[0].text, list(words[1:])
    if name == "popd" or here is None:
        return _absolute(operands) if name != "popd" else Exits(None, None)
    while name == "cd" and operands and operands[0].known and operands[0].text in {"-L", "--"}:
        if operands.pop(0).text == "--":
            break
    if not operands and name == "cd":
        target: str | None = home()
    else:
        target = operands[0].text if len(operands) == 1 and operands[0].known else None
    # `cd -` goes to where it was before, `pushd +1` to somewhere on its stack.
    if target is None or target in {"", "-"} or target.startswith(("-", "+")):
        return Exits(None, None)
    if fresh and len(here) == 1 and (coming := _future_folder(next(iter(here)), target)):
        # It fails, and what is joined to it by `&&` does not run, unless somebody makes the folder until then.
        return Exits(frozenset({coming}), here)
    if os.path.basename(target) == MADE and os.path.isabs(target):
        return Exits(frozenset({target}), here)
    ends = {_end(folder, target) for folder in here}
    if not here or None in ends:
        return Exits(None, None)
    return Exits(frozenset(end for end in ends if end is not None), frozenset())


def _absolute(operands: list[Word]) -> Exits:
    """From anywhere, only an absolute path leads to a known place, and only if it is gone to."""
    if len(operands) != 1 or not operands[0].known or not os.path.isabs(operands[0].text):
        return Exits(None, None)
    end = _end("/", operands[0].text)
    return Exits(None, None) if end is None else Exits(frozenset({end}), None)


def _future_folder(folder: str, target: str) -> str:
    """The folder at a path where nothing is yet, not even a link; empty where something is."""
    path = os.path.normpath(os.path.join(folder, target))
    return path if ".." not in target.split(os.sep) and not os.path.lexists(path) else ""


def _end(folder: str, target: str) -> str | None:
    """The folder at a path, if there is one now and the shell and the kernel agree on which one it is."""
    path = os.path.join(folder, target)
    try:
        real = os.path.realpath(path, strict=True)
        # The shell takes `link/..` back to where the link stands, the kernel to above where it leads.
        agree = os.path.realpath(os.path.normpath(path), strict=True) == real
    except (OSError, ValueError):
        return None
    return os.path.normpath(path) if agree and os.path.isdir(real) and os.access(real, os.X_OK) else None


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
def _bash_variables() -> re.Pattern[bytes]:
    # Bash itself puts words of the line into these: the last word, what matched, the line as a whole, the folder.
    return re.compile(
        rb"(?<!\w)(?:_|BASH\w*|COMP\w*|READLINE\w*|DIRSTACK|FUNCNAME|MAPFILE|OLDPWD|OPTARG|PWD|REPLY|PS\d)(?!\w)"
    )


class CommandTail(NamedTuple):
    """What stands behind a command in the tree and belongs to it."""

    redirects: tuple[Redirect, ...] = ()
    words: tuple["Node", ...] = ()


NOTHING = CommandTail()


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
        self._closed = uses_private_variables(source)
        self._own = own(source)

    def variables(self, here: Folders) -> LineVariables:
        """What is known of variables where a command runs."""
        places = {"HOME": home(), "PWD": certain(here)}
        known = {name: Word(path, single=True) for name, path in places.items() if path is not None}
        return LineVariables({**known, **self.bound}, self._closed, self._own)

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
        if _bash_variables().search(text):
            self.doubt("it calculates with a text that bash keeps of the line")

    def set(self, name: str) -> None:
        self.sets = True
        self.doubt(assignment_doubt(name))

    def command(self, node: "Node", here: Folders, tail: CommandTail) -> Exits:
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
        return resolve_cd(here, words, fresh=fresh) if stripped == words and not assigns else stays(None)

    def assignments(self, node: "Node", here: Folders, tail: CommandTail) -> Exits:
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

    def group(self, tail: CommandTail, here: Folders) -> None:
        """Redirections of a whole group, or of no command at all."""
        if tail.words:
            self.doubt(KEYWORD)
        if tail.redirects or tail.words:
            words = tuple(self._word(child, self.variables(here)) for child in tail.words)
            self.add(words, here, b"", tail.redirects)

    def test(self, node: "Node", here: Folders, tail: CommandTail) -> Exits:
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

    def _assign(self, node: "Node", variables: LineVariables) -> tuple[str, Word]:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        named = self.text(name).decode(errors="replace") if name is not None else ""
        return named, Word("", single=True) if value is None else word_of(
            value, self.source, assigned=True, variables=variables
        )

    def _word(self, node: "Node", variables: LineVariables) -> Word:
        if node.is_named:
            return word_of(node, self.source, variables=variables)
        text = self.text(node).decode(errors="replace")
        return Word(text, known="$" not in text, single=True)


DEPTH = 50
TOO_DEEP = "it is nested too deeply"
ARITHMETIC = "it calculates with a variable that it sets"
_COUNTS = "it calculates in `(( ))`"
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_COMMANDS = frozenset({"command", "declaration_command", "unset_command"})
_ASSIGNMENTS = frozenset({"variable_assignment", "variable_assignments"})
_INNER = frozenset(
    {
        *("redirected_statement", "list", "pipeline", "negated_command", "compound_statement", "subshell"),
        *("if_statement", "while_statement", "for_statement", "c_style_for_statement", "case_statement"),
        *("function_definition", "test_command", "do_group", "elif_clause", "else_clause", "case_item", "ERROR"),
        *_COMMANDS,
    }
)
_STATEMENTS = _INNER | REDIRECTS | _ASSIGNMENTS


class ShellTreeWalker:
    """One walk through one tree."""

    def __init__(self, source: bytes, known: "Mapping[str, Word]") -> None:
        self.found = Simples(source, known)
        self._depth = 0
        self._rounds = 1
        """How often a command would be looked at, for all the loops around it."""

    def walk(self, root: "Node", here: Folders) -> None:
        self._sequence(root.children, here)
        if self.found.sets and self.found.calculates:
            self.found.doubt(ARITHMETIC)

    def _sequence(self, children: "Sequence[Node]", here: Folders) -> Exits:
        exits = stays(here)
        for index, child in enumerate(children):
            if child.type in _STATEMENTS:
                now = self._statement(child, exits.either)
                background = index + 1 < len(children) and children[index + 1].type == "&"
                exits = stays(exits.either) if background else now
            elif child.is_named:
                self._substitutions(child, exits.either)
        return exits

    def _statement(self, node: "Node", here: Folders, tail: CommandTail = NOTHING) -> Exits:
        if self._depth >= DEPTH:
            self.found.doubt(TOO_DEEP)
            self._flat(node, tail)
            return stays(None)
        self._depth += 1
        exits = self._dispatch(node, here, tail)
        self._depth -= 1
        return exits

    def _dispatch(self, node: "Node", here: Folders, tail: CommandTail) -> Exits:
        kind = node.type
        if kind in _COMMANDS:
            exits = self.found.command(node, here, tail)
        elif kind in _ASSIGNMENTS:
            exits = self.found.assignments(node, here, tail)
        elif kind == "test_command":
            exits = self.found.test(node, here, tail)
        elif kind == "redirected_statement" or kind in REDIRECTS:
            return self._redirection(node, here, tail)
        elif kind == "list":
            return self._list(node, here, tail)
        elif kind == "pipeline":
            return self._pipeline(node, here, tail)
        elif kind == "negated_command":
            inner = [self._statement(child, here, tail) for child in node.children if child.type in _STATEMENTS]
            return Exits(inner[0].failed, inner[0].done) if len(inner) == 1 else stays(None)
        else:
            self.found.group(tail, here)
            return self._compound(node, here)
        self._substitutions(node, here)
        return exits

    def _compound(self, node: "Node", here: Folders) -> Exits:
        match node.type:
            case "compound_statement" if node.children[0].type == "((":
                self.found.doubt(_COUNTS)
                self._substitutions(node, here)
                return stays(here)
            case "subshell":
                self._sequence(node.children, here)
                return stays(here)
            case "if_statement" | "elif_clause":
                return self._branches(node, here)
            case "while_statement" | "for_statement" | "c_style_for_statement" | "case_statement":
                return self._loop(node, here)
            case "function_definition":
                self.found.doubt("it defines a function")
                self._sequence(node.children, None)
                return stays(None)
        return self._sequence(node.children, here)

    def _pipeline(self, node: "Node", here: Folders, tail: CommandTail) -> Exits:
        parts = [child for child in node.children if child.type in _STATEMENTS]
        before: tuple[Simple, ...] | None = ()
        for part in parts:
            first = len(self.found.commands)
            self._statement(part, here, tail if part is parts[-1] else NOTHING)
            added = self.found.commands[first:]
            if before and added and added[0].words and added[0].words[0].text in {"xargs", "parallel"}:
                self.found.commands[first] = added[0]._replace(fed=before)
            if before and part.type == "while_statement":
                self._set_heard(first, before)
            before = (*before, added[0]) if before is not None and len(added) == 1 and part.type == "command" else None
        return stays(here)

    def _list(self, node: "Node", here: Folders, tail: CommandTail) -> Exits:
        exits = stays(here)
        # Left to right with equal rank, however the tree groups it.
        for operator, part, end in self._links(node, tail):
            start = {"||": exits.failed, "&&": exits.done}.get(operator, here)
            now = self._statement(part, start, end)
            if operator == "&&":
                exits = Exits(now.done, union(exits.failed, now.failed))
            elif operator == "||":
                exits = Exits(union(exits.done, now.done), now.failed)
            else:
                exits = now
        return exits

    def _links(self, node: "Node", tail: CommandTail) -> "list[tuple[str, Node, CommandTail]]":
        """The commands of a list, each with the operator before it and what belongs to it from behind."""
        links: list[tuple[str, Node, CommandTail]] = []
        pending = [("", node, tail)]
        while pending:
            operator, current, end = pending.pop()
            body = _find_list(current)
            if body is None:
                links.append((operator, current, end))
                continue
            if body is not current:
                own = self._behind(current)
                end = CommandTail(own.redirects + end.redirects, own.words + end.words)
                for child in current.children:
                    if child.type in REDIRECTS:
                        self._substitutions(child, None)
            parts: list[tuple[str, Node, CommandTail]] = []
            for child in body.children:
                if child.type in {"&&", "||"}:
                    operator = child.type
                elif child.type in _STATEMENTS:
                    parts.append((operator, child, NOTHING))
            if parts:
                parts[-1] = (parts[-1][0], parts[-1][1], end)
            pending.extend(reversed(parts))
        return links

    def _branches(self, node: "Node", here: Folders) -> Exits:
        """`if`: the branches run from where the conditions leave the shell."""
        children = node.children
        then = next((index for index, child in enumerate(children) if child.type == "then"), len(children))
        condition = self._sequence(children[:then], here)
        body = [child for child in children[then:] if child.type not in {"elif_clause", "else_clause"}]
        ends = self._sequence(body, condition.done).either
        clauses = [child for child in children[then:] if child.type in {"elif_clause", "else_clause"}]
        other = condition.failed
        for clause in clauses:
            after = self._statement(clause, other).either
            ends = union(ends, after)
            # A condition of `elif` that failed may have gone somewhere too.
            other = after
        return stays(ends if clauses and clauses[-1].type == "else_clause" else union(ends, other))

    def _loop(self, node: "Node", here: Folders) -> Exits:
        """What may run again or not at all: a folder that it changes is not certain anywhere in it."""
        if node.type == "c_style_for_statement":
            self.found.doubt(_COUNTS)
        name = node.child_by_field_name("variable")
        if name is not None:
            self.found.set(self.found.text(name).decode(errors="replace"))
        first = len(self.found.commands)
        end: Folders = here
        if node.type == "case_statement":
            self.found.compare(*node.children_by_field_name("value"))
            for child in node.children:
                end = union(end, self._sequence([child], here).either)
        elif name is not None and (
            values := loop_values(node, self.found.source, self.found.variables(here), self._rounds)
        ):
            end = self._rounds_of(node, name, values, here)
        else:
            body = node.child_by_field_name("body")
            end = self._sequence([child for child in node.children if child != body], here).either
            named, inner = tuple(self.found.commands[first:]), len(self.found.commands)
            end = self._sequence([] if body is None else [body], end).either
            if name is not None and len(node.children_by_field_name("value")) == 1:
                self._set_heard(inner, named)
        if end == here:
            return stays(here)
        self.found.commands[first:] = [simple._replace(cwd=None) for simple in self.found.commands[first:]]
        return stays(None)

    def _set_heard(self, first: int, before: "tuple[Simple, ...]") -> None:
        """What a loop goes over, for each of its commands that are not in another loop."""
        commands = self.found.commands
        commands[first:] = [one if one.heard else one._replace(heard=before) for one in commands[first:]]

    def _rounds_of(self, node: "Node", name: "Node", values: "Sequence[Word]", here: Folders) -> Folders:
        """A loop over words that are known, round by round, each with its own word in the place of the variable."""
        body = node.child_by_field_name("body")
        self._sequence([child for child in node.children if child != body], here)
        first, end, held = len(self.found.commands), here, dict(self.found.bound)
        self._rounds *= len(values)
        for value in values:
            self.found.bound[self.found.text(name).decode()] = value
            end = union(end, self._sequence([] if body is None else [body], here).either)
        self._rounds //= len(values)
        self.found.bound = held
        # A command without the variable is the same in every round.
        self.found.commands[first:] = dict.fromkeys(self.found.commands[first:])
        return end

    def _behind(self, node: "Node") -> CommandTail:
        """The redirections below a node, and the words that the tree hangs on them."""
        children = node.children if node.type == "redirected_statement" else [node]
        variables = self.found.variables(None)
        made = [redirect(child, self.found.source, variables) for child in children if child.type in REDIRECTS]
        return CommandTail(tuple(one for one, _ in made), tuple(word for _, extra in made for word in extra))

    def _redirection(self, node: "Node", here: Folders, tail: CommandTail) -> Exits:
        own = self._behind(node)
        tail = CommandTail(own.redirects + tail.redirects, own.words + tail.words)
        body = node.child_by_field_name("body") if node.type == "redirected_statement" else None
        if body is None:
            self.found.group(tail, here)
            exits = stays(here)
        else:
            exits = self._statement(body, here, tail)
            if body.type == "list" and exits.either != here:
                # It belongs to the last command of the list, and where that runs is not told apart here.
                here = None
        for child in node.children if node.type == "redirected_statement" else [node]:
            if child.type == HERE:
                exits = self._here_document(child, here, exits)
            elif child.type in REDIRECTS:
                self._substitutions(child, here)
        return exits

    def _here_document(self, node: "Node", here: Folders, exits: Exits) -> Exits:
        """The rest of the line hangs inside of the redirection."""
        for child in node.children:
            if child.type not in _STATEMENTS:
                self._substitutions(child, here)
                continue
            after = self._statement(child, exits.either if exits.either == here else None)
            # Whether it is piped to or comes after is not told apart here.
            exits = exits if after.either == exits.either == here else stays(None)
        return exits

    def _substitutions(self, node: "Node", here: Folders) -> None:
        """Run through the commands inside of words."""
        pending = [node]
        while pending:
            current = pending.pop()
            kind = current.type
            if kind in _SUBSTITUTIONS:
                self._sequence(current.children, here)
            elif kind in _INNER and current is not node:
                self._statement(current, None)
            elif current.child_count:
                if kind in {"arithmetic_expansion", "subscript"}:
                    self.found.calculate(self.found.text(current))
                pending.extend(reversed(current.children))

    def _flat(self, node: "Node", tail: CommandTail) -> None:
        """All that is below, without its structure: however deep it is, rules that deny still see it."""
        self.found.group(tail, None)
        pending = [node]
        while pending:
            current = pending.pop()
            if current.type in _COMMANDS:
                self.found.command(current, None, NOTHING)
            elif current.type in REDIRECTS:
                self.found.group(self._behind(current), None)
            pending.extend(reversed(current.children))


def _find_list(node: "Node") -> "Node | None":
    """The list that a node is, or that it only adds redirections to."""
    if node.type == "redirected_statement" and all(child.type != HERE for child in node.children):
        body = node.child_by_field_name("body")
        return body if body is not None and body.type == "list" else None
    return node if node.type == "list" else None
