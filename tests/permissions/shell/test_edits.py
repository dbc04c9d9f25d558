"""Edits by commands: in acceptEdits they need no question, where every file that they change is known and inside."""

from pathlib import Path

import pytest

from .everyday import Workshop


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("edits").resolve())


@pytest.mark.parametrize(
    "command",
    [
        "echo x > notes.txt",
        "echo x >> README.md",
        'echo "$(date)" > notes.txt',
        "cat > src/new.py <<'EOF'\nx = 1\nEOF",
        "cat <<'EOF' > src/new.py\n$(rm x)\nEOF",
        "cat > src/new.py <<EOF\n$HOME\nEOF",
        "> empty.txt",
        "pytest -q > out.txt 2>&1",
        "sort README.md > sorted.txt && cat sorted.txt",
        "{ echo a; echo b; } > both.txt",
        "for i in 1 2; do echo $i >> numbers.txt; done",
        "sed -i 's/foo/bar/g' src/app.py",
        "sed -i.bak 's/foo/bar/' src/app.py src/util.py",
        "sed -i -e 's/a/b/' -e '1d' README.md",
        "sed -Ei 's/a/b/' README.md",
        "sed --in-place 's/a/b/' README.md",
        "sed -i 's/a/b/' src/*.py",
        "mkdir -p build && touch build/x",
        "mkdir -p build > /dev/null",
    ],
)
def test_a_command_that_only_edits_is_one(workshop: Workshop, command: str) -> None:
    decision = workshop.say(command).decision

    assert decision.verdict == "ask"
    assert decision.edits_inside
    assert not decision.fixed


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .env",
        "echo x > .git/hooks/pre-commit",
        "echo x > .git/config",
        "cat > .vscode/tasks.json <<'EOF'\n{}\nEOF",
        "echo x > /tmp/x",
        "echo x > ../x",
        "echo x > links/out/x",
        'echo x > "$x"',
        "echo x > src/*.py",
        "echo x > >(sh)",
        "echo x > /dev/tcp/example.org/80",
        "echo $GITHUB_TOKEN > notes.txt",
        "cat .env > notes.txt",
        "cat /etc/passwd > notes.txt",
        "curl -s example.org > page.html",
        "python src/app.py > out.txt",
        "echo x > notes.txt; ./run.sh",
        "echo x > notes.txt | sh",
        "sh > notes.txt",
        "PATH=. echo x > notes.txt",
        "sed -i 's/a/b/' .env",
        "sed -i 's/a/b/' .git/config",
        "sed -i 's/a/b/' /etc/hosts",
        "sed -i 's/a/b/' ../x",
        "sed -i 's/a/b/' links/out/bin/git",
        "sed -i 's/a/b/e' src/app.py",
        "sed -i 's/a/b/w x' src/app.py",
        "sed -i '1e rm x' src/app.py",
        "sed -i 'r .env' src/app.py",
        "sed -i -f list.txt src/app.py",
        "sed -i'/tmp/*' 's/a/b/' src/app.py",
        "sed -i../x 's/a/b/' src/app.py",
        "sed -iv 's/a/b/' .en",
        "sed -i 's/a/b/'",
        "sed -i 's/a/b/' *",
        'sed -i "$x" src/app.py',
        "sed -i 's/a/b/' \"$x\"",
        "sed -i 's/a/b/' .e*",
        "find . -name '*.py' | xargs sed -i 's/a/b/'",
    ],
)
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
