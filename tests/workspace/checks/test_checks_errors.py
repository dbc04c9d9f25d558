"""What the outputs of real programs say, as places in files.

The outputs in `outputs/` were recorded from the programs that they are named after; those in `outputs/written/` were
written after their documentation, for programs that are not on every machine. Beside each lies what is found in it.
"""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.tools.checks import Check
from ferrule.tools.checks.parse_output import MOST_CHARS, MOST_PROBLEMS, problems
from ferrule.tools.lsp import Problem

OUTPUTS = Path(__file__).parent / "outputs"
RECORDED = sorted(OUTPUTS.rglob("*.txt"))
FILES = (
    *("src/app.py", "tests/test_app.py", "tests/test_bad_import.py", "tests/test_syntax.py", "unit_case.py"),
    *("src/a.ts", "src/b.js", "test/sum.test.js", "test/v.spec.mjs", "test/node.mjs", "test/mocha.cjs", "src/lib.rs"),
    *("a.c", "b.h", "A.java", "main.go", "pkg/sum.go", "pkg/sum_test.go", "src/main/kotlin/App.kt", "Program.cs"),
    *("src/main/java/A.java", "tests/SumTest.php", "src/Sum.php", "spec/sum_spec.rb", "lib/sum.rb", "lib/sum.ex"),
    *("main.tf", "Sources/App/main.swift"),
)


@pytest.fixture
def root(tmp_path) -> str:
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return str(tmp_path.resolve())


def found(output: str, root: str, *, name: str = "check", folder: str = "") -> tuple[Problem, ...]:
    return problems(Check(name, "lint", "", os.path.join(root, folder) if folder else root), output, root=root)


def line(problem: Problem, root: str) -> str:
    path = os.path.relpath(problem.path, root) if problem.path.startswith(root) else f"? {problem.path}"
    words = (problem.severity, problem.source, problem.code)
    return f"{path}:{problem.line}:{problem.character}: {' '.join(filter(None, words))}: {problem.message}"


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in RECORDED])
def test_an_output_says_what_is_written_beside_it(path, root):
    output = path.read_text(encoding="utf-8").replace("{root}", root)

    said = [line(one, root) for one in found(output, root, name=path.stem)]

    assert said == path.with_suffix(".problems").read_text(encoding="utf-8").splitlines()


def test_every_output_has_what_is_found_in_it_beside_it():
    assert {path.with_suffix("") for path in RECORDED} == {path.with_suffix("") for path in OUTPUTS.rglob("*.problems")}


@pytest.mark.parametrize("stem", ["nothing"])
def test_what_only_looks_like_a_place_is_none(stem):
    assert (OUTPUTS / "written" / f"{stem}.problems").read_text(encoding="utf-8") == ""


def test_a_path_is_from_the_folder_of_the_check_first_and_then_from_the_root(root):
    Path(root, "api/src").mkdir(parents=True)
    Path(root, "api/src/app.py").touch()

    near, far = found("src/app.py:1: error: x\nunit_case.py:2: error: y\n", root, folder="api")

    assert near.path == os.path.join(root, "api/src/app.py")
    assert far.path == os.path.join(root, "unit_case.py")


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.py", "src/../../outside.py"])
def test_a_file_outside_the_workspace_is_named_as_it_was_written(path, root):
    Path(root).parent.joinpath("outside.py").touch()

    (problem,) = found(f"{path}:1: error: x [misc]\n", root)

    assert problem.path == path


def test_whether_a_file_outside_is_there_changes_nothing(root):
    Path(root).parent.joinpath("there.py").touch()

    assert found("../there.py:1: told\n../gone.py:1: told\n", root) == ()


def test_the_same_complaint_is_given_once(root):
    assert len(found("a.c:1:2: error: x\n" * 50, root)) == 1


def test_colours_and_lines_that_were_redrawn_do_not_matter(root):
    output = "10%\r50%\r\x1b[1msrc/app.py\x1b[0m:\x1b[36m3\x1b[0m: \x1b[31merror:\x1b[0m no\x1b[K\r\n"

    (problem,) = found(output, root)

    assert (problem.line, problem.message) == (3, "no")


def test_a_message_is_one_line_without_what_cannot_be_seen(root):
    (problem,) = found("src/app.py:3: error: a\u202eb\u200b\tc\x07\n", root)

    assert problem.message == "ab c"


def test_a_flood_of_complaints_is_cut(root):
    output = "".join(f"src/app.py:{number}: error: x\n" for number in range(1, 5000))

    assert len(found(output, root)) == MOST_PROBLEMS


def test_of_a_long_output_the_two_ends_count(root):
    filling = "quiet\n" * (MOST_CHARS // 3)

    said = found(f"src/app.py:1: error: x\n{filling}src/app.py:2: error: y\n", root)

    assert [one.line for one in said] == [1, 2]


def test_complaints_in_installed_code_are_laid_at_the_door_of_the_project(root):
    Path(root, ".venv/lib").mkdir(parents=True)
    Path(root, ".venv/lib/deep.py").touch()
    frames = '  File "unit_case.py", line 8, in f\n    x()\n  File ".venv/lib/deep.py", line 3, in x\n    y\n'

    (problem,) = found(f"Traceback (most recent call last):\n{frames}KeyError: 'gone'\n", root)

    assert (os.path.basename(problem.path), problem.line, problem.message) == ("unit_case.py", 8, "KeyError: 'gone'")


def test_output_of_several_programs_is_told_apart(root):
    output = "".join(
        (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8")
        for name in ("ruff", "mypy", "pytest", "cargo-check", "tsc")
    )

    said = found(output.replace("{root}", root), root)

    counted = {os.path.relpath(one.path, root) for one in said}
    assert counted == {"src/app.py", "tests/test_app.py", "src/lib.rs", "src/a.ts"}
    assert len(said) == 3 + 3 + 6 + 3 + 2


MARKS = (
    *("=== FAILURES ===", "=== short test summary info ===", "___ test_x ___", "E   assert", "FAILED a::b - c"),
    *(
        '  File "src/app.py", line 1, in x',
        "Traceback (most recent call last):",
        "  --> src/app.py:1:1",
        "error[E1]: x",
    ),
    *(
        "thread 'x' panicked at src/lib.rs:1:1:",
        "src/a.ts:1:2 lint/x ━━━━━",
        "--- FAIL: TestX (0.00s)",
        "    a_test.go:1: x",
    ),
    *(
        "FAIL\ta/b\t0.1s",
        "  ● a › b",
        " FAIL  a > b",
        "not ok 1 - x",
        "✖ failing tests:",
        "  1) a",
        "  1:2  error  x  y",
    ),
    *(
        "│ Error: x",
        "│   on main.tf line 3:",
        "└─ src/app.py:3",
        "src/a.ts(1,2): error TS1: x",
        "a.c:1:2: warning: x [-Wx]",
    ),
    *("[warn] src/b.js", "would reformat x", "[ERROR] A.java:[1,2] x", "", "\x1b[31m", "\r", "    at x (src/a.ts:1:2)"),
)
LINES = st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=40)), max_size=30)


@settings(max_examples=150)
@given(lines=LINES)
def test_any_output_gives_problems_of_a_good_form(lines):
    for one in found("\n".join(lines), "/nowhere/at/all"):
        assert one.message
        assert one.path
        assert one.message.isprintable()
        assert one.path.isprintable()
        assert one.line >= 0
        assert one.character >= 0
        assert one.severity in {"error", "warning", "information", "hint"}


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(piece, id=f"{number}")
        for number, piece in enumerate(
            (
                *(f"{mark}\n" for mark in MARKS if mark),
                ":1",
                "(1",
                "): ",
                " - error",
                "a:1:1: ",
                "1" * 5000,
                "\x1b[",
                " " * 99,
            )
        )
    ],
)
def test_a_megabyte_of_anything_is_read_in_one_go(piece, root):
    """Each of these takes a fraction of a second; a pattern that walks back would not come to an end at all."""
    head = "".join(f"{mark}\n" for mark in MARKS)

    assert len(found(head + piece * (MOST_CHARS // len(piece) // 4), root)) <= MOST_PROBLEMS


@pytest.mark.parametrize(
    "quoted",
    [
        '3 | print("src/app.py:3: warning: smoke!")',
        "  12 | src/app.py:3: error: smoke",
        "> 7 | src/app.py:3: error: smoke",
        "3 │ src/app.py:3: error: smoke",
    ],
)
def test_a_line_of_a_source_that_is_quoted_is_no_complaint(quoted, root):
    output = f"T201 `print` found\n --> src/app.py:3:1\n  |\n{quoted}\n  | ^^^^^\n"

    assert [(one.line, one.code) for one in found(output, root)] == [(3, "T201")]


@pytest.mark.parametrize("path", ['print("gone/basket.py', "say src/x.py", "a|b.py", "(src/x.py"])
def test_what_cannot_be_a_path_is_none_where_no_such_file_is_there(path, root):
    assert found(f"{path}:3: warning: smoke!\n", root) == ()


def test_an_assertion_of_rust_without_words_has_its_values(root):
    output = "thread 't' panicked at src/lib.rs:3:5:\nassertion `left == right` failed\n  left: 2\n right: 3\n"

    assert [one.message for one in found(output, root)] == ["t: assertion `left == right` failed (left: 2, right: 3)"]


def test_a_comparison_of_node_s_over_several_lines_has_its_differences(root):
    output = (
        "✖ failing tests:\n\n✖ adds (1.2ms)\n"
        "  AssertionError [ERR_ASSERTION]: Expected values to be strictly deep-equal:\n"
        "  + actual - expected\n  \n    {\n  +   a: 1\n  -   a: 2\n    }\n"
        "      at TestContext.<anonymous> (file://" + root + "/test/node.mjs:4:10)\n"
    )

    (problem,) = found(output, root)
    assert problem.message.endswith("strictly deep-equal: + a: 1, - a: 2")
