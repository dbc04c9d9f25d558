"""The public names: `ferrule.__all__`, where they come from, and what a type checker sees are one list."""

import ast
import importlib

import pytest

import ferrule
from tests.rows import each_row

from .project import PACKAGE, tree


def typed() -> dict[str, str]:
    """The names that the block for type checkers imports, with their homes."""
    block = next(
        node
        for node in tree(PACKAGE / "__init__.py").body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.asname or alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@each_row("name", ferrule.__all__)
def test_a_public_name_resolves(name):
    assert getattr(ferrule, name) is not None


@each_row("name", sorted(ferrule._HOMES))
def test_a_public_name_is_the_one_of_its_home(name):
    home = importlib.import_module(f"ferrule.{ferrule._HOMES[name]}")

    assert getattr(ferrule, name) is getattr(home, name)


def test_the_homes_and_the_public_names_are_one_list():
    assert set(ferrule._HOMES) == set(ferrule.__all__)


def test_a_type_checker_sees_what_a_program_gets():
    assert typed() == {name: f"ferrule.{home}" for name, home in ferrule._HOMES.items()}


def test_public_names_are_listed_once():
    assert len(set(ferrule.__all__)) == len(ferrule.__all__)
    assert dir(ferrule) == sorted(ferrule.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'ferrule' has no attribute 'Observation'"):
        ferrule.Observation  # noqa: B018 - the look itself is what fails


def test_a_type_checker_may_trust_the_installed_package():
    assert (PACKAGE / "py.typed").is_file()
