"""The way through a line's tree: which commands it holds, and which folder each would run in."""

from typing import TYPE_CHECKING

from ferrule.permissions.shell.folders import Exits, Folders, stays, union
from ferrule.permissions.shell.looped import looped
from ferrule.permissions.shell.redirects import HERE, REDIRECTS, redirect
from ferrule.permissions.shell.simple import NOTHING, Simples, Tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tree_sitter import Node

    from ferrule.permissions.shell.line import Simple, Word

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


class Walker:
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

    def _statement(self, node: "Node", here: Folders, tail: Tail = NOTHING) -> Exits:
        if self._depth >= DEPTH:
            self.found.doubt(TOO_DEEP)
            self._flat(node, tail)
            return stays(None)
        self._depth += 1
        exits = self._dispatch(node, here, tail)
        self._depth -= 1
        return exits

    def _dispatch(self, node: "Node", here: Folders, tail: Tail) -> Exits:
        kind = node.type
        if kind in _COMMANDS:
            exits = self.found.command(node, here, tail)
        elif kind in _ASSIGNMENTS:
            exits = self.found.assignments(node, here, tail)
        elif kind == "test_command":
            exits = self.found.test(node, here, tail)
        elif kind == "redirected_statement" or kind in REDIRECTS:
            return self._redirected(node, here, tail)
        elif kind == "list":
            return self._list(node, here, tail)
        elif kind == "pipeline":
            return self._piped(node, here, tail)
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

    def _piped(self, node: "Node", here: Folders, tail: Tail) -> Exits:
        parts = [child for child in node.children if child.type in _STATEMENTS]
        before: tuple[Simple, ...] | None = ()
        for part in parts:
            first = len(self.found.commands)
            self._statement(part, here, tail if part is parts[-1] else NOTHING)
            added = self.found.commands[first:]
            if before and added and added[0].words and added[0].words[0].text in {"xargs", "parallel"}:
                self.found.commands[first] = added[0]._replace(fed=before)
            if before and part.type == "while_statement":
                self._heard(first, before)
            before = (*before, added[0]) if before is not None and len(added) == 1 and part.type == "command" else None
        return stays(here)

    def _list(self, node: "Node", here: Folders, tail: Tail) -> Exits:
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

    def _links(self, node: "Node", tail: Tail) -> "list[tuple[str, Node, Tail]]":
        """The commands of a list, each with the operator before it and what belongs to it from behind."""
        links: list[tuple[str, Node, Tail]] = []
        pending = [("", node, tail)]
        while pending:
            operator, current, end = pending.pop()
            body = _listed(current)
            if body is None:
                links.append((operator, current, end))
                continue
            if body is not current:
                own = self._behind(current)
                end = Tail(own.redirects + end.redirects, own.words + end.words)
                for child in current.children:
                    if child.type in REDIRECTS:
                        self._substitutions(child, None)
            parts: list[tuple[str, Node, Tail]] = []
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
        elif name is not None and (values := looped(node, self.found.source, self.found.variables(here), self._rounds)):
            end = self._rounds_of(node, name, values, here)
        else:
            body = node.child_by_field_name("body")
            end = self._sequence([child for child in node.children if child != body], here).either
            named, inner = tuple(self.found.commands[first:]), len(self.found.commands)
            end = self._sequence([] if body is None else [body], end).either
            if name is not None and len(node.children_by_field_name("value")) == 1:
                self._heard(inner, named)
        if end == here:
            return stays(here)
        self.found.commands[first:] = [simple._replace(cwd=None) for simple in self.found.commands[first:]]
        return stays(None)

    def _heard(self, first: int, before: "tuple[Simple, ...]") -> None:
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

    def _behind(self, node: "Node") -> Tail:
        """The redirections below a node, and the words that the tree hangs on them."""
        children = node.children if node.type == "redirected_statement" else [node]
        variables = self.found.variables(None)
        made = [redirect(child, self.found.source, variables) for child in children if child.type in REDIRECTS]
        return Tail(tuple(one for one, _ in made), tuple(word for _, extra in made for word in extra))

    def _redirected(self, node: "Node", here: Folders, tail: Tail) -> Exits:
        own = self._behind(node)
        tail = Tail(own.redirects + tail.redirects, own.words + tail.words)
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

    def _flat(self, node: "Node", tail: Tail) -> None:
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


def _listed(node: "Node") -> "Node | None":
    """The list that a node is, or that it only adds redirections to."""
    if node.type == "redirected_statement" and all(child.type != HERE for child in node.children):
        body = node.child_by_field_name("body")
        return body if body is not None and body.type == "list" else None
    return node if node.type == "list" else None
