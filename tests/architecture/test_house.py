"""The laws of the house: each lists all that breaks it, and `house.toml` what may break it still, and why.

An exception that is no longer needed fails too: the list can only shrink.
"""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ferrule.core.access import Mode
from ferrule.tools import BUILTIN

from .project import ROOT, dotted, modules, tree

SOFT_LINES = 600
FLOOR_LINES = 80
MOST_TERMS = 45
_GERUND = re.compile(r"\w+ing")
_TOOL = re.compile(r"_?(?:\w+_)?tools?|canonical|_?TOOLS?|_?\w+_TOOLS?")
"""What is called so holds the canonical name of a tool, or several."""
_TAKES_TOOL = {"face_of", "facts_of", "canonical"}
"""Functions that are given one."""
_MODES = set(get_args(Mode))
_PARTICIPLE = re.compile(
    r"_*([a-z]+ed|said|told|found|meant|kept|held|known|given|taken|made|seen|heard|shown|written|spoken|done|sent|built|lost|met"
    r"|chosen|drawn|hidden|torn|begun|broken|gone|thought|caught|sought|fed|worn|grown|bought|brought)(_|$)"
)
_VERBS = {"need", "feed", "embed", "succeed", "exceed", "proceed", "sed"}
"""Words that only end as participles do."""
_NOUNS = {"string", "setting", "ring", "encoding"}
"""Words in -ing that name a thing."""


class Import(NamedTuple):
    """One module of the package, named by another."""

    source: str
    target: str
    is_inside: bool
    """Does it stand in a function?"""


class Shape(NamedTuple):
    """What the laws want to know of one file's tree."""

    imports: tuple[Import, ...]
    classes: tuple[str, ...]
    functions: tuple[str, ...]
    texts: frozenset[str]
    """Every text in it."""
    nested: int
    """Conditions in conditions."""
    multiplied: int
    """Texts that are multiplied by a condition."""


@cache
def shape(path: Path) -> Shape:
    """Read a file once for all laws."""
    parsed = tree(path)
    classes: list[str] = []
    functions: list[str] = []
    texts: set[str] = set()
    nested = multiplied = 0
    for node in ast.walk(parsed):
        match node:
            case ast.ClassDef(name=name):
                classes.append(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                functions.append(name)
            case ast.Constant(value=str() as text):
                texts.add(text)
            case ast.IfExp():
                nested += isinstance(node.body, ast.IfExp) or isinstance(node.orelse, ast.IfExp)
            case ast.BinOp(op=ast.Mult()):
                sides = (node.left, node.right)
                multiplied += any(map(_is_text, sides)) and any(map(_is_condition, sides))
    found = tuple(_imports(dotted(path), parsed, inside=False))
    return Shape(found, tuple(classes), tuple(functions), frozenset(texts), nested, multiplied)


@cache
def house() -> dict[str, Any]:
    """The exceptions, by law."""
    with open(Path(__file__).with_name("house.toml"), "rb") as file:
        return tomllib.load(file)


@cache
def names() -> dict[str, Path]:
    return {dotted(path): path for path in modules()}


@cache
def lines() -> dict[str, int]:
    return {name: path.read_text(encoding="utf-8").count("\n") for name, path in names().items()}


@cache
def imports() -> tuple[Import, ...]:
    """Every import of the package's own modules, wherever it stands."""
    return tuple(found for path in names().values() for found in shape(path).imports)


def _imports(source: str, node: ast.AST, *, inside: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom):
            base = str(child.module)
            for alias in child.names:
                target = f"{base}.{alias.name}" if f"{base}.{alias.name}" in names() else base
                if target in names():
                    yield Import(source, target, inside)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(source, child, inside=inside or is_function)


def room(name: str) -> str:
    """The folder that a module lies in."""
    return name if names()[name].name == "__init__.py" else name.rpartition(".")[0]


def plain() -> list[str]:
    """The modules that are no folder's own."""
    return [name for name, path in names().items() if path.name != "__init__.py"]


def test_a_long_module_has_a_reason():
    assert {name: count for name, count in lines().items() if count > SOFT_LINES}.keys() == set(house()["long"])


def test_a_small_module_with_one_importer_has_a_reason():
    importers = defaultdict(set)
    for one in imports():
        if one.source != one.target:
            importers[one.target].add(one.source)
    small = {name for name in plain() if lines()[name] < FLOOR_LINES and len(importers[name]) == 1}

    assert small == set(house()["small"])


def test_other_rooms_come_in_by_the_door():
    doors = defaultdict(set)
    for one in imports():
        there = room(one.target)
        if there != "ferrule" and one.target != there and not f"{room(one.source)}.".startswith(f"{there}."):
            doors[there].add(one.target.rpartition(".")[2])

    assert {name: sorted(found) for name, found in doors.items()} == house()["doors"]


def test_own_modules_are_imported_at_the_top():
    inside = Counter(one.source for one in imports() if one.is_inside)

    assert dict(inside) == house()["inside"]


def test_a_module_is_named_by_a_noun():
    gerunds = {name for name in plain() if _GERUND.fullmatch(base(name)) and base(name) not in _NOUNS}

    assert gerunds == set(house()["gerunds"])


def test_a_function_is_named_by_a_verb_or_a_noun():
    participles = {
        name: sorted({one for one in shape(path).functions if _PARTICIPLE.match(one) and _first(one) not in _VERBS})
        for name, path in names().items()
    }

    assert {name: found for name, found in participles.items() if found} == house()["participles"]


def _first(name: str) -> str:
    return name.strip("_").partition("_")[0]


def test_two_modules_share_a_name_only_in_parallel_sets():
    shared = Counter(base(name) for name in plain())

    assert {name: count for name, count in shared.items() if count > 1} == house()["basenames"]


def test_two_classes_never_share_a_name():
    classes = Counter(name for path in modules() for name in shape(path).classes)

    assert {name: count for name, count in classes.items() if count > 1} == house()["classes"]


def test_what_is_true_of_a_tool_stands_on_the_tool():
    found = {
        name: sorted(told)
        for name, path in names().items()
        if not f"{name}.".startswith(("ferrule.tools.", "ferrule.dialects.")) and (told := _tool_names(path))
    }

    assert found == house()["tools"]


def _tool_names(path: Path) -> set[str]:
    """Return the canonical names that a file writes out, other than those that are ordinary words in their place."""
    found = {text for text in shape(path).texts if "_" in text}
    for node in ast.walk(tree(path)):
        found.update(text for part in _about_tools(node) for text in _texts(part))
    return found & BUILTIN.keys()


def _about_tools(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is compared with a tool, looked up by one, given as one, or kept under a name that speaks of tools."""
    match node:
        case ast.Compare() if any(_is_tool(side) for side in (node.left, *node.comparators)):
            yield from (node.left, *node.comparators)
        case ast.Match() if _is_tool(node.subject):
            yield from (case.pattern for case in node.cases)
        case ast.Subscript() if _is_tool(node.slice):
            yield node.value
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]) if _is_tool(key):
            yield table
        case ast.Call(func=function, args=given) if _name_of(function) in _TAKES_TOOL:
            yield from given
        case ast.keyword(arg=str(name)) if _TOOL.fullmatch(name):
            yield node.value
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value) if (
            _is_tool(target)
        ):
            yield from (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
        case _ if _is_table(node):
            yield node


def _is_table(node: ast.AST) -> bool:
    """Return True for a container of nothing but canonical names, one of which is no mode of an access."""
    match node:
        case ast.Set(elts=members) | ast.Tuple(elts=members) | ast.List(elts=members):
            pass
        case ast.Dict(keys=keys):
            members = [key for key in keys if key is not None]
        case _:
            return False
    texts = {one.value for one in members if isinstance(one, ast.Constant)}
    return len(texts) == len(members) > 1 and texts <= BUILTIN.keys() and not texts <= _MODES


def _is_tool(node: ast.AST) -> bool:
    name = _name_of(node)
    return bool(_TOOL.fullmatch(name)) or (name == "name" and _name_of(getattr(node, "value", node)) == "entry")


def _name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield all texts in a tree."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def test_a_condition_is_not_nested_in_another():
    assert counted(_nested) == house()["nested"]


def _nested(path: Path) -> int:
    return shape(path).nested


def test_a_text_is_not_multiplied_by_a_condition():
    assert counted(_multiplied) == house()["multiplied"]


def _multiplied(path: Path) -> int:
    return shape(path).multiplied


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_condition(node: ast.expr) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool"
    return named or isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)


def test_the_glossary_is_short():
    rows = [line for line in (ROOT / "CONTEXT.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]

    assert len(rows) <= house()["glossary"]["most"]


def base(name: str) -> str:
    return name.rpartition(".")[2]


def counted(count: Callable[[Path], int]) -> Mapping[str, int]:
    """How often something is found, by module; modules without it are left out."""
    return {dotted(path): found for path in modules() if (found := count(path))}
