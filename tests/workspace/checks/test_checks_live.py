"""Real projects from end to end: what is found is run by a shell, and what it prints is understood."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.tools.checks import Check
from ferrule.tools.checks.find import find
from ferrule.tools.checks.manifests import reader
from ferrule.tools.checks.parse_output import problems

PROGRAMS = Path(sys.executable).parent
PROJECT = (
    "[tool.ruff.format]\n[tool.ruff.lint]\nselect=['F']\n[tool.ty]\n[tool.pytest.ini_options]\naddopts='--color=no'\n"
)
CODE = "import os\n\n\ndef total(values: list[int]) -> str:\n    return sum( values )\n"
TEST = "from app import total\n\n\ndef test_total():\n    assert total([1, 2]) == 4\n"


@pytest.fixture
def checks(tmp_path) -> dict[str, Check]:
    files = {"pyproject.toml": PROJECT, "app.py": CODE, "test_app.py": TEST, "Makefile": "verify:\n\tsh ./verify.sh\n"}
    files["verify.sh"] = 'echo "app.py:1: error: found by a script"; exit 3\n'
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    jail = Jail(str(tmp_path))
    found = find(reader(jail, Guard((), jail)), jail.folder)
    jail.close()
    return {check.name: check for check in found.checks}


def run(check: Check) -> tuple[int, str]:
    env = {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "CI": "1",
        "PYTHONPATH": check.folder,
    }
    env["HOME"] = check.folder
    ended = subprocess.run(
        ["bash", "-c", check.command], cwd=check.folder, env=env, capture_output=True, timeout=120, check=False
    )
    return ended.returncode, (ended.stdout + ended.stderr).decode()


@pytest.mark.parametrize(
    ("name", "place", "code", "words"),
    [
        pytest.param("ruff", ("app.py", 1), "F401", "`os` imported but unused", id="ruff"),
        pytest.param("ruff format", ("app.py", 5), "unformatted", "File would be reformatted", id="ruff-format"),
        pytest.param("ty", ("app.py", 5), "invalid-return-type", "Return type does not match returned value", id="ty"),
        pytest.param("pytest", ("test_app.py", 5), "", "test_total: assert 3 == 4", id="pytest"),
        pytest.param("make verify", ("app.py", 1), "", "found by a script", id="make"),
    ],
)
def test_a_check_that_is_found_runs_and_its_complaint_is_placed(name, place, code, words, checks):
    check = checks[name]

    status, output = run(check)

    assert status != 0, output
    (problem, *_) = problems(check, output, root=check.folder)
    assert (os.path.relpath(problem.path, check.folder), problem.line) == place
    assert (problem.code, problem.message) == (code, words)
