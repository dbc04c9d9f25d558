"""How checks read: a line that sums up, a row for each, and below what is wrong with those that did not pass."""

from ferrule.dialects.amp import check_report, format_problem, row
from ferrule.tools.checks import Check, Checked, CheckRun
from ferrule.tools.lsp import Problem

MYPY = Check("mypy", "types", "mypy .", "/w", "pyproject.toml")


def test_all_that_can_come_of_checks_reads_like_this() -> None:
    problems = (Problem("/w/src/a.py", 3, "wrong type", code="arg-type"), Problem("/w/b.py", 0, "no module"))
    run = CheckRun(
        (
            Checked(MYPY, "failed", 3.21, 1, problems, 9),
            Checked(MYPY._replace(name="ruff"), "passed", 0.04, 0),
            Checked(MYPY._replace(name="pytest", command="pytest"), "failed", 12.0, 2, output="oh\nno"),
            Checked(MYPY._replace(name="go vet"), "missing", why="go is not installed, or not on PATH."),
            Checked(Check("naming", "review", "", "/w"), "skipped", why="Nothing was changed that it is about."),
        ),
        15.25,
        root="/w",
    )

    assert check_report(run).split("\n") == [
        "5 checks in 15.2 s: 1 passed, 2 failed, 1 missing, 1 skipped.",
        "✗ mypy  3.2 s  9 problems",
        "✓ ruff  0.0 s",
        "✗ pytest  12.0 s  exit code 2",
        "? go vet  missing: go is not installed, or not on PATH.",
        "- naming  skipped: Nothing was changed that it is about.",
        "",
        "mypy (`mypy .`):",
        "src/a.py:3: wrong type [arg-type]",
        "b.py: no module",
        "… and 7 more",
        "",
        "pytest (`pytest`):",
        "oh",
        "no",
    ]


def test_what_the_sandbox_stopped_stands_in_the_row() -> None:
    denied = "The sandbox keeps /x read-only."

    assert row(Checked(MYPY, "failed", 1.0, 1, why=denied)) == f"✗ mypy  1.0 s  exit code 1  {denied}"


def test_a_path_outside_stays_as_it_was_said() -> None:
    assert format_problem(Problem("/elsewhere/a.py", 2, "x"), "/w") == "/elsewhere/a.py:2: x"
    assert format_problem(Problem("/w2/a.py", 2, "x"), "/w") == "/w2/a.py:2: x"
    assert format_problem(Problem("", 0, "x"), "/w") == "x"


def test_where_nothing_was_found_it_says_where_it_looked() -> None:
    assert check_report(CheckRun((), looked_in=("pyproject.toml", "Makefile"))).startswith(
        "No checks were found in pyproject.toml, Makefile. Run them with Bash"
    )
    assert check_report(CheckRun(())).startswith("No checks were found: nothing here speaks of any")
