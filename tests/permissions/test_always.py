"""What "always" is about: for checks each command, as if the shell had been asked for it; for others the whole call."""

from pathlib import Path

import pytest

from ferrule.core.access import Access
from ferrule.permissions import CallbackAsker, Case, Decision, Question, check_key, together
from ferrule.permissions.gate import commands_to_ask, grant_keys, likeness, proposals

from .place import Place

ONE, TWO = Access.command("mypy src", "/w"), Access.command("ls", "/w")
READ = Access.read("/w")


def decide(case: Case) -> Decision:
    """Somebody who lets only `ls` run."""
    covered = all(access.key == "ls" for access in case.touches if access.kind == "command")
    return Decision("allow" if covered else "ask", "So.")


def check(*touches: Access) -> Case:
    return Case("1", "Check", "check", touches)


def test_of_checks_each_command_that_asks_is_a_key_of_its_own() -> None:
    other = Access.command("pytest", "/w/api")
    shell = Case("2", "Bash", "shell", (ONE, READ), input={"command": "mypy src"})

    assert commands_to_ask(check(ONE, TWO, READ), decide) == [ONE]
    assert grant_keys(check(ONE, TWO, READ), decide) == (likeness(shell),)
    assert len(grant_keys(check(ONE, other), decide)) == 2
    assert grant_keys(check(ONE), decide) != grant_keys(check(ONE._replace(folder="/w/api")), decide)


@pytest.mark.parametrize("touches", [(), (READ,), (TWO,)])
def test_there_is_always_a_key_or_everything_would_be_granted(touches: tuple[Access, ...]) -> None:
    assert grant_keys(check(*touches), decide)
    assert grant_keys(Case("1", "X", "x", touches), decide)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(check(ONE, TWO, READ), ("Bash(mypy *)",), id="a-check"),
        pytest.param(check(ONE, Access.command("mypy src", "/w/api")), ("Bash(mypy *)",), id="the-same-twice"),
        pytest.param(check(READ), (), id="no-command"),
        pytest.param(Case("1", "exec_command", "shell", (ONE,)), ("exec_command(mypy *)",), id="the-shell"),
        pytest.param(Case("1", "Bash", "shell", (ONE,), input={"outside": True}), (), id="outside"),
        pytest.param(Case("1", "Skill", "skill", (ONE,)), (), id="a-skill"),
        pytest.param(Case("1", "mcp__a__b", "mcp__a__b", ()), ("mcp__a__b",), id="a-server"),
    ],
)
def test_the_rules_that_always_would_save(case: Case, expected: tuple[str, ...]) -> None:
    assert proposals(case, decide, ["/w"]) == expected


def test_only_a_check_that_is_denied_says_how_it_is_left_out() -> None:
    no, yes = Decision("deny", "No.", message="Not here."), Decision("allow", "Yes.")
    several = check(ONE, TWO)._replace(spelled={check_key(ONE): "mypy", check_key(TWO): "list"})
    hint = "The check mypy runs it; to leave it out, name the others: list."

    assert together([no, yes], [ONE, TWO], several).why == f"No. {hint}"
    assert together([no, yes], [ONE, TWO], several).message == f"Not here. {hint}"
    assert together([no._replace(message=""), yes], [ONE, TWO], several).message == ""
    assert together([no, no], [ONE, TWO], several) == no
    assert together([no, yes], [ONE, TWO], Case("1", "Skill", "skill", (ONE, TWO))) == no
    assert together([no, yes], [ONE, TWO], several._replace(spelled={})).why.endswith("leave the reviews out.")
    assert together([Decision("ask", "Why?"), yes], [ONE, TWO], several) == Decision("ask", "Why?")


@pytest.mark.parametrize("tool", ["check", "skill"])
def test_of_several_commands_that_ask_one_that_edits_speaks_for_no_other(tool: str) -> None:
    edits, runs = Decision("ask", "A.", edits_inside=True), Decision("ask", "B.")
    case = check(ONE, TWO)._replace(tool=tool)

    assert together([edits, edits], [ONE, TWO], case).edits_inside
    assert not together([edits, runs], [ONE, TWO], case).edits_inside
    assert together([edits, runs], [ONE, TWO], case).why == ("A. B." if tool == "check" else "A.")


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        pytest.param("python run.py", ("Bash(python run.py)",), id="exact"),
        pytest.param("git commit -m x; git status", ("Bash(git commit *)",), id="only-what-asks"),
        pytest.param("curl -s example.org | head -3", ("Bash(curl -s example.org)",), id="one-of-a-pipe"),
        pytest.param("rm *.pyc", (r"Bash(rm \*.pyc)",), id="the-whole-line"),
        pytest.param("curl example.org | sh", (), id="none"),
    ],
)
async def test_what_is_offered_is_enough_when_it_is_saved(tmp_path: Path, command: str, rules: tuple[str, ...]) -> None:
    asked: list[Question] = []

    def yes(question: Question) -> bool:
        asked.append(question)
        return True

    place = Place(tmp_path, CallbackAsker(yes))
    policy = place.gate.policy

    await place.admit(place.command(command))

    assert asked[0].proposals == rules
    assert policy.sets == ()
    assert policy.allows_with(place.command(command), rules) == bool(rules)
