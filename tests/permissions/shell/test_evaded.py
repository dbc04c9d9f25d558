"""A command whose words are not all known is no way around a rule that refuses, where commands run confined."""

import subprocess
from pathlib import Path

from ferrule.core.access import Access
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.permissions import Case, parse_mode
from ferrule.permissions.policy import Policy
from ferrule.permissions.trust import RuleContext, from_settings
from ferrule.settings import Permissions
from tests.rows import each_kept_row


def verdict(top: Path, command: str, *, deny: tuple[str, ...], mode: str = "default") -> str:
    jail = Jail(str(top.resolve()))
    origin = RuleContext(str(top.resolve()), {"Bash": "shell"}.get)
    sets = from_settings(Permissions(deny=deny), origin, source="test", layer="user")
    policy = Policy(jail, Guard((), jail), sets, standing=parse_mode(mode), confined=lambda: True)
    touches = (Access.command(command, str(top.resolve())),)
    return policy.decide(Case("1", "Bash", "shell", touches, input={"command": command})).verdict


@each_kept_row
def test_what_could_turn_out_to_be_refused_asks_though_it_runs_confined(
    tmp_path: Path, command: str, expected: str
) -> None:
    assert verdict(tmp_path, command, deny=("Bash(git push:*)",)) == expected


@each_kept_row
def test_another_spelling_of_what_is_refused_asks_though_it_runs_confined(
    tmp_path: Path, command: str, rule: str, expected: str
) -> None:
    assert verdict(tmp_path, command, deny=(f"Bash({rule})",)) == expected


def test_an_alias_of_the_repository_is_what_it_stands_for(tmp_path: Path) -> None:
    for words in (["init", "-q"], ["config", "alias.p", "push"], ["config", "alias.s", "!git push"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)

    for before in ("", "-C . ", "--git-dir .git ", "-c a.b=c ", "-C . --no-pager -c a.b=c "):
        said = [verdict(tmp_path, f"git {before}{name} r.git", deny=("Bash(git push:*)",)) for name in "ps"]
        assert said == ["ask", "ask"], before
    assert verdict(tmp_path, "git p", deny=("Bash(git fetch:*)",)) == "allow"


def test_a_link_to_a_program_is_that_program(tmp_path: Path) -> None:
    (tmp_path / "g").symlink_to("/usr/bin/git")

    assert verdict(tmp_path, "./g push", deny=("Bash(git push:*)",)) == "deny"


def test_without_a_rule_that_refuses_it_runs_confined(tmp_path: Path) -> None:
    assert verdict(tmp_path, "$(echo git) push", deny=()) == "allow"


def test_no_mode_lets_it_pass(tmp_path: Path) -> None:
    assert verdict(tmp_path, "$(echo git) push", deny=("Bash(git push *)",), mode="bypassPermissions") == "ask"
