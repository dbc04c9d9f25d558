"""Deciding on a command line: the corpus, trees with something uncovered in them, and what decides in between."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.permissions.shell.scene import FEW
from tests.rows import each_kept_row, each_row

from .judged import Bench, corpus, furnish

CORPUS = corpus(Path(__file__).parents[2] / "data" / "shell")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(furnish(tmp_path_factory.mktemp("work")))


@each_row("row", [pytest.param(row, id=str(row["id"])) for row in CORPUS])
def test_a_command_of_the_corpus_is_decided_as_it_should_be(bench: Bench, row: dict[str, object]) -> None:
    lists = {name: row.get(name, ()) for name in ("allow", "ask", "deny")}
    decision = bench.judge(str(row["command"]), **lists).decision  # type: ignore[arg-type]

    assert decision.verdict == row["expect"], decision.why
    assert decision.why.endswith(".")
    assert "\n" not in decision.why.strip()


COVERED = ("git status", "ls -la src", "echo done", "cat README.md", "wc -l README.md", "npm test")
UNCOVERED = ("rm -rf src", "curl example.org", "touch x", "python -c pass", "./run.sh", "npm install left-pad")

_joins = st.sampled_from([" && ", " || ", "; ", " | ", " & ", "\n"])


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.builds(lambda one, join, other: f"{one}{join}{other}", inner, _joins, inner)
    return st.one_of(
        joined,
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"{{ {text}; }}"),
        inner.map(lambda text: f'echo "$({text})"'),
        inner.map(lambda text: f"echo `{text}`" if "`" not in text else text),
        inner.map(lambda text: f"if {text}; then {text}; fi"),
        inner.map(lambda text: f"while {text}; do break; done"),
        inner.map(lambda text: f"for i in 1 2; do {text}; done"),
        inner.map(lambda text: f"! {text}"),
        inner.map(lambda text: f"cat <({text})"),
        inner.map(lambda text: f"cat <<E\n$({text})\nE\n"),
        inner.map(lambda text: f"time {text}"),
    )


trees = st.recursive(st.sampled_from(COVERED), _wrapped, max_leaves=5)


@settings(max_examples=300, deadline=None)
@given(before=trees, after=trees, join=_joins, bad=st.sampled_from(UNCOVERED), around=st.integers(0, 6))
def test_an_uncovered_command_placed_anywhere_is_never_allowed(
    bench: Bench, before: str, after: str, join: str, bad: str, around: int
) -> None:
    forms = (
        bad,
        f"({bad})",
        f'echo "$({bad})"',
        f"if true; then {bad}; fi",
        f"for x in a; do {bad}; done",
        f"cat <({bad})",
        f"{{ {bad}; }}",
    )
    command = f"{before}{join}{forms[around]}{join}{after}"

    allow = ["Bash(git status)", "Bash(npm test)", "Bash(echo *)", "Bash(cat *)", "Bash(ls *)", "Bash(wc *)"]
    assert bench.judge(command, allow=allow).decision.verdict != "allow"


@settings(max_examples=200, deadline=None)
@given(tree=trees)
def test_a_denied_command_is_denied_wherever_it_stands(bench: Bench, tree: str) -> None:
    command = f"{tree} && rm -rf src"
    judged = bench.judge(command, allow=["Bash"], deny=["Bash(rm *)"]).decision

    assert judged.verdict == "deny"
    assert judged.rule == "Bash(rm *)"


@settings(max_examples=100, deadline=None)
@given(commands=st.lists(st.sampled_from(COVERED), min_size=1, max_size=6), join=st.sampled_from([" && ", "; ", " | "]))
def test_chains_of_covered_commands_are_allowed(bench: Bench, commands: list[str], join: str) -> None:
    assert bench.judge(join.join(commands), allow=["Bash(npm test)"]).decision.verdict == "allow"


@pytest.mark.parametrize(
    ("command", "deny", "expected"),
    [
        pytest.param("cat docs/secret.md", ["Read(docs/**)"], "deny", id="cat"),
        pytest.param("head -n 3 < docs/secret.md", ["Read(docs/**)"], "deny", id="redirection"),
        pytest.param("cd docs && cat secret.md", ["Read(docs/**)"], "deny", id="after-cd"),
        pytest.param("grep -n x docs/secret.md", ["Read(docs/**)"], "deny", id="grep"),
        pytest.param("echo x > src/main.py", ["Edit(src/**)"], "deny", id="written"),
        pytest.param("cp README.md src/copy.md", ["Edit(src/**)"], "deny", id="copied"),
        pytest.param("cat README.md", ["Read(docs/**)"], "allow", id="elsewhere"),
    ],
)
def test_file_rules_bind_what_commands_read_and_write(
    bench: Bench, command: str, deny: list[str], expected: str
) -> None:
    assert bench.judge(command, deny=deny).decision.verdict == expected


RUNNERS = (
    *("python -m pytest", "python -m unittest", "pytest", "jest", "mocha", "npm test", "npm run", "make", "cargo test"),
    *("go test", "tsc", "eslint", "cmake", "node", "python", "uv run", "npx", "bundle exec", "rspec", "coverage run"),
    *("deno test", "bun test", "dotnet test", "pip install", "npm", "vitest"),
)


@each_kept_row
def test_a_rule_for_a_runner_covers_no_code_from_outside(bench: Bench, command: str) -> None:
    assert bench.judge(command, allow=[f"Bash({name}:*)" for name in RUNNERS]).decision.verdict == "ask"


@each_row(
    ("command", "rule"),
    [
        ("python -m pytest tests", "Bash(python -m pytest:*)"),
        ("npm test -- src/app.test.ts", "Bash(npm test:*)"),
        ("npm run start -- /tmp/x", "Bash(npm run:*)"),
        ("python src/app.py /tmp/x", "Bash(python src/app.py:*)"),
        ("python /opt/t/x.py", "Bash(python /opt/t/*)"),
        ("python /opt/t/x.py a", "Bash(python /opt/t/x.py:*)"),
        ("python -m pytest ../other/tests", "Bash(python -m pytest ../other/tests:*)"),
        ("python -m pytest ../other/tests/a.py", "Bash(python -m pytest ../other/*)"),
        ("python -m pytest /srv/x", "Bash(python -m pytest /srv/x)"),
    ],
)
def test_a_rule_that_names_code_outside_covers_it(bench: Bench, command: str, rule: str) -> None:
    assert bench.judge(command, allow=[rule]).decision.verdict == "allow"


@pytest.mark.parametrize("command", ["python /opt/t/../x.py", "python /opt/tx.py", "python /opt/t"])
def test_what_begins_like_code_that_a_rule_names_is_not_covered(bench: Bench, command: str) -> None:
    assert bench.judge(command, allow=["Bash(python /opt/t/*)", "Bash(python:*)"]).decision.verdict == "ask"


@each_row(
    ("command", "expected"),
    [
        pytest.param("cat README.md | head -2", True, id="reads"),
        pytest.param("ls > /dev/null 2>&1", True, id="loses-output"),
        pytest.param("ls > out.txt", False, id="writes"),
        pytest.param("npm test", False, id="tests"),
        pytest.param("cat .env", False, id="secret"),
        pytest.param("cat /etc/hostname", False, id="outside"),
        pytest.param("ls; rm x", False, id="one-writes"),
        pytest.param("cd sub && cat b.txt", True, id="cd"),
    ],
)
def test_what_only_reads_is_known(bench: Bench, command: str, expected: bool) -> None:
    assert bench.judge(command).reads_only is expected


@pytest.mark.parametrize(
    ("command", "inside"),
    [
        pytest.param("mkdir -p src/new && touch src/new/a.py", True, id="made"),
        pytest.param("rm a.txt", True, id="removed"),
        pytest.param("rm /etc/passwd", False, id="outside"),
        pytest.param("mv a.txt .git/hooks/pre-commit", False, id="protected"),
        pytest.param("rm a.txt; curl x", False, id="more"),
        pytest.param('touch "$x"', False, id="unknown"),
    ],
)
def test_plain_changes_inside_the_workspace_are_known(bench: Bench, command: str, inside: bool) -> None:
    assert bench.judge(command).decision.edits_inside is inside


def test_an_exact_rule_covers_its_line_with_all_its_flags(bench: Bench) -> None:
    line = "find . -name '*.tmp' -delete"

    assert bench.judge(line, allow=["Bash(find *)"]).decision.verdict == "ask"
    assert bench.judge(line, allow=[f"Bash({line})"]).decision.verdict == "allow"


def test_a_redirection_into_a_file_that_a_rule_opens_is_covered(bench: Bench) -> None:
    assert bench.judge("echo x > build/log.txt", allow=["Bash(echo *)"]).decision.verdict == "ask"
    assert bench.judge("echo x > build/log.txt", allow=["Bash(echo *)", "Edit(build/**)"]).decision.verdict == "allow"


@pytest.mark.parametrize("command", ["cp -r sub .vscode", "cp -r sub/. .", "mv sub .claude", "rsync -a sub/ ."])
def test_a_folder_is_copied_with_what_programs_obey_in_it(tmp_path: Path, command: str) -> None:
    bench = Bench(furnish(tmp_path))
    (tmp_path / "sub/.mcp.json").write_text("{}", encoding="utf-8")
    (tmp_path / "sub/settings.json").write_text("{}", encoding="utf-8")

    decision = bench.judge(command, allow=["Bash(cp *)", "Bash(mv *)", "Bash(rsync *)"]).decision

    assert decision.verdict == "ask", decision.why


def test_a_glob_that_finds_too_many_files_to_look_at_is_not_known_to_only_read(tmp_path: Path) -> None:
    bench = Bench(furnish(tmp_path))
    for number in range(FEW):
        (tmp_path / f"docs/a{number}").touch()
    assert bench.judge("cat docs/a*").decision.verdict == "allow"

    (tmp_path / "docs/a-more").touch()

    assert bench.judge("cat docs/a*").decision.verdict == "ask"


def test_a_file_that_says_what_not_to_ignore_shows_hidden_files_to_a_search(tmp_path: Path) -> None:
    bench = Bench(furnish(tmp_path))
    assert bench.judge("rg KEY").decision.verdict == "allow"

    (tmp_path / ".gitignore").write_text("*.log\n!.env\n", encoding="utf-8")

    assert bench.judge("rg KEY").decision.verdict == "ask"


@each_row(
    ("command", "verdict"),
    [
        ('echo "$API_KEY"', "ask"),
        ('cat <<< "$API_KEY"', "ask"),
        ("tr a b <<< $API_KEY", "ask"),
        ("cat <<E\n$API_KEY\nE", "ask"),
        ("sort <<E\n${API_KEY}\nE", "ask"),
        ("cat <<E\n${API_KEY:-x}\nE", "ask"),
        ("x=$API_KEY; cat <<E\n$x\nE", "ask"),
        ("cat <<'E'\n$API_KEY\nE", "allow"),
        ("cat <<E\n$HOME ${PATH} \\$API_KEY\nE", "allow"),
        ("x=$(cat a.txt); cat <<E\n$x\nE", "allow"),
        ('cat <<< "$(cat a.txt)"', "allow"),
        ('cat <<< "$HOME"', "allow"),
        ("bc <<< 1+2", "allow"),
    ],
)
def test_text_that_is_handed_over_tells_no_more_than_echo_may(bench, command, verdict):
    assert bench.judge(command).decision.verdict == verdict
