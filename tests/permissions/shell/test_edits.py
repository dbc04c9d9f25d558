"""Edits by commands: in acceptEdits they need no question, where every file that they change is known and inside."""

from pathlib import Path

import pytest

from tests.rows import each_kept_row

from .everyday import Workshop


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("edits").resolve())


@each_kept_row
def test_a_command_that_only_edits_is_one(workshop: Workshop, command: str) -> None:
    decision = workshop.say(command).decision

    assert decision.verdict == "ask"
    assert decision.edits_inside
    assert not decision.fixed


@each_kept_row
def test_a_command_that_does_more_or_edits_elsewhere_is_none(workshop: Workshop, command: str) -> None:
    decision = workshop.say(command).decision

    assert decision.verdict == "ask"
    assert not decision.edits_inside or decision.fixed


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("echo x > src/app.py", "Edit(src/**)"),
        ("sed -i 's/a/b/' src/app.py", "Edit(src/**)"),
        ("sed -i 's/a/b/' src/*.py", "Edit(src/app.py)"),
        ("cat > src/new.py <<'EOF'\nx\nEOF", "Edit(src/**)"),
        ('for f in src/app.py; do echo x > "$f"; done', "Edit(src/**)"),
    ],
)
def test_rules_about_edits_bind_edits_by_commands(workshop: Workshop, command: str, rule: str) -> None:
    assert workshop.say(command, deny=[rule]).decision.verdict == "deny"


def test_what_is_edited_through_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path.resolve())
    (Path(workshop.top) / "linked.py").symlink_to("/etc/hosts")

    assert not workshop.say("sed -i 's/a/b/' linked.py").decision.edits_inside
    assert not workshop.say("echo x > linked.py").decision.edits_inside
