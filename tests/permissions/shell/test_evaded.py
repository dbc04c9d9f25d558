"""A command whose words are not all known is no way around a rule that refuses, where commands run confined."""

from pathlib import Path

import pytest

from ferrule.core.access import Access
from ferrule.permissions.case import Case
from ferrule.permissions.layers import Origin, from_settings
from ferrule.permissions.policy import Policy
from ferrule.permissions.standing import named
from ferrule.settings import Permissions
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail


def verdict(top: Path, command: str, *, deny: tuple[str, ...], mode: str = "default") -> str:
    jail = Jail(str(top.resolve()))
    origin = Origin(str(top.resolve()), {"Bash": "shell"}.get)
    sets = from_settings(Permissions(deny=deny), origin, source="test", layer="user")
    policy = Policy(jail, Guard((), jail), sets, standing=named(mode), confined=lambda: True)
    touches = (Access.command(command, str(top.resolve())),)
    return policy.decide(Case("1", "Bash", "shell", touches, input={"command": command})).verdict


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git push", "deny"),
        ("$(echo git) push", "ask"),
        ("g=git; $g push", "ask"),
        ('"$x" push', "ask"),
        ("echo push | xargs git", "ask"),
        ("echo push | xargs -n 1 git", "ask"),
        ("git $x", "ask"),
        ("git $x origin", "ask"),
        ("cat list | xargs sh", "ask"),
        ('bash "$x"', "ask"),
        ('git commit -m "$x"', "allow"),
        ("ls | xargs rm", "allow"),
        ("npm install", "allow"),
    ],
)
def test_what_could_turn_out_to_be_refused_asks_though_it_runs_confined(
    tmp_path: Path, command: str, expected: str
) -> None:
    assert verdict(tmp_path, command, deny=("Bash(git push:*)",)) == expected


def test_without_a_rule_that_refuses_it_runs_confined(tmp_path: Path) -> None:
    assert verdict(tmp_path, "$(echo git) push", deny=()) == "allow"


def test_no_mode_lets_it_pass(tmp_path: Path) -> None:
    assert verdict(tmp_path, "$(echo git) push", deny=("Bash(git push *)",), mode="bypassPermissions") == "ask"
