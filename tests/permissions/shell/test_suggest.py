"""What "always" would save for a command line."""

from ferrule.permissions.shell.parse import proposals
from tests.rows import each_kept_row

from .bash import taken


@each_kept_row
def test_the_narrowest_useful_rule_is_proposed(command: str, rules: list[str]) -> None:
    assert proposals(taken(command)) == tuple(rules)


@each_kept_row
def test_nothing_is_proposed_that_could_run_anything(command: str) -> None:
    assert proposals(taken(command)) == ()
