"""What "always" saves covers the line that it was asked about, and nothing that never needed a rule."""

from collections.abc import Callable, Sequence

import pytest

from ferrule.core.access import Access
from ferrule.permissions import Case, Decision
from ferrule.permissions.gate import proposals
from ferrule.permissions.shell.judge import CommandVerdict
from ferrule.permissions.shell.parse import MOST, is_handed, parse
from tests.rows import each_kept_row, each_row

from .everyday import DATA, Row, Workshop, everyday
from .judged import Bench, corpus, furnish

ASKING = [row for row in everyday() if row.asks]
CORPUS = [row for row in corpus(DATA / "shell") if row["expect"] == "ask"]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("covering").resolve())


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(furnish(tmp_path_factory.mktemp("covered")))


def offered(command: str, top: str, say: Callable[..., CommandVerdict], allow: Sequence[str] = ()) -> tuple[str, ...]:
    """The rules that "always" would save, as the gate asks for them."""
    case = Case("1", "Bash", "shell", (Access.command(command, top),), input={"command": command})

    def decide(_: Case) -> Decision:
        return say(command, allow=allow).decision

    def allows(_: Case, rules: Sequence[str]) -> bool:
        return say(command, allow=[*allow, *rules]).decision.verdict == "allow"

    return () if decide(case).fixed else proposals(case, decide, [top], allows)


def unoffered(command: str, top: str, decision: Decision) -> str:
    """Why no "always" is offered for a line; there are no other reasons."""
    line = parse(command, cwd=top, roots=[top])
    if decision.fixed:
        return "it touches a secret or protected file, which no rule opens"
    if line.doubts:
        return "what it runs cannot be decided"
    if not command.isprintable():
        return "it is more than one line, which no rule is"
    if any(map(is_handed, line.commands)):
        return "a shell or an interpreter runs what it is handed, or another user's rights are taken"
    return ""


@each_row("row", [pytest.param(row, id=row.command[:60]) for row in ASKING])
def test_after_always_an_everyday_command_asks_no_more(workshop: Workshop, row: Row) -> None:
    rules = offered(row.command, workshop.top, workshop.say)

    assert bool(rules) == (not row.never), rules
    if rules:
        assert workshop.say(row.command, allow=rules).decision.verdict == "allow"


@each_row("row", [pytest.param(row, id=str(row["id"])) for row in CORPUS])
def test_after_always_no_command_of_the_corpus_asks_again(bench: Bench, row: dict[str, object]) -> None:
    command, lists = str(row["command"]), {name: row.get(name, ()) for name in ("allow", "ask", "deny")}

    def say(command: str, *, allow: Sequence[str]) -> CommandVerdict:
        return bench.judge(command, **{**lists, "allow": allow})  # type: ignore[arg-type]

    rules = offered(command, bench.top, say, lists["allow"])  # type: ignore[arg-type]
    if rules:
        assert say(command, allow=[*lists["allow"], *rules]).decision.verdict == "allow"  # type: ignore[misc]
        assert len(rules) <= MOST
    else:
        assert unoffered(command, bench.top, say(command, allow=lists["allow"]).decision)  # type: ignore[arg-type]


@each_kept_row
def test_the_narrowest_useful_rules_are_proposed(workshop: Workshop, command: str, expected: list[str]) -> None:
    assert offered(command, workshop.top, workshop.say) == tuple(f"Bash({one})" for one in expected)
