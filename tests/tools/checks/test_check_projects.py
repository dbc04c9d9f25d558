"""Check on sample projects of several languages: what their manifests speak of really runs, in the sandbox."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.tools.checks.checking import Session

BIN = os.path.dirname(sys.executable)
"""Where the tests' own ruff, mypy and pytest are."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture(autouse=True)
def found_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([BIN, os.environ["PATH"]]))


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


async def test_a_python_project_is_linted_type_checked_and_tested(root: Path) -> None:
    pyproject = (
        "[project]\nname = 'cart'\nversion = '1'\n"
        "[tool.ruff.lint]\nselect = ['F']\n"
        "[tool.mypy]\nfiles = ['cart.py']\ncache_dir = '/dev/null'\n"
        "[tool.pytest.ini_options]\npythonpath = ['.']\ntestpaths = ['tests']\naddopts = '-p no:cacheprovider'\n"
    )
    files = {
        "pyproject.toml": pyproject,
        "cart.py": "import os\n\n\ndef total(prices: list[int]) -> int:\n    return str(sum(prices))\n",
        "tests/test_cart.py": "from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
    }
    write(root, files)
    async with Session(root, confined=True) as session:
        reply = await session.check()
        write(root, {"cart.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n"})
        mended = await session.check()

    assert "cart.py:1: " in reply.text
    assert "F401" in reply.text
    assert "cart.py:5: Incompatible return value type" in reply.text
    assert "tests/test_cart.py:5: " in reply.text
    assert ": 3 failed." in reply.text.split("\n")[0]
    assert session.statuses == dict.fromkeys(session.statuses, "passed"), mended.text
    assert {"ruff", "mypy", "pytest"} <= set(session.statuses)


async def test_a_node_project_runs_its_scripts(root: Path) -> None:
    scripts = {
        "lint": 'node -e "process.exit(0)"',
        "test": "node -e \"console.log('src/a.js:3:1: error: no'); process.exit(1)\"",
        "start": "node -e \"require('fs').writeFileSync('started', '')\"",
    }
    write(root, {"package.json": json.dumps({"name": "shop", "version": "1.0.0", "scripts": scripts})})
    async with Session(root, confined=True) as session:
        reply = await session.check()

    assert not (root / "started").exists()
    statuses = {one.check.kind: one.status for one in session.run.checks}
    here = shutil.which("npm") is not None  # where it is not, that is what is told
    assert statuses == ({"lint": "passed", "tests": "failed"} if here else dict.fromkeys(statuses, "missing")), (
        reply.text
    )


async def test_a_rust_project_is_checked_and_tested_without_a_network(root: Path) -> None:
    manifest = '[package]\nname = "cart"\nversion = "0.1.0"\nedition = "2021"\n'
    source = "pub fn total(prices: &[u32]) -> u32 {\n    let text: String = prices.len();\n    0\n}\n"
    write(root, {"Cargo.toml": manifest, "src/lib.rs": source})
    async with Session(root, confined=True) as session:
        reply = await session.check(checks=["types"])

    here = shutil.which("cargo") is not None  # where it is not, that is what is told
    assert session.statuses == {"cargo check": "failed" if here else "missing"}
    assert ("src/lib.rs:2: mismatched types" if here else "Get it with: https://rustup.rs.") in reply.text


async def test_targets_of_a_makefile_run(root: Path) -> None:
    makefile = "build:\n\ttouch built\nlint:\n\t@echo all good\ntest:\n\t@echo 'a.c:7: error: off by one' && exit 1\n"
    write(root, {"Makefile": makefile, "a.c": "int x;\n" * 9})
    async with Session(root, confined=True) as session:
        reply = await session.check()

    kinds = {one.check.kind: one.status for one in session.run.checks}
    assert (kinds["lint"], kinds["tests"]) == ("passed", "failed")
    assert "a.c:7: " in reply.text
    assert not (root / "built").exists()


async def test_a_go_project_says_that_go_is_missing_where_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"go.mod": "module example.com/x\n\ngo 1.22\n", "x.go": "package x\n"})
    without = [folder for folder in os.environ["PATH"].split(os.pathsep) if not os.path.exists(f"{folder}/go")]
    monkeypatch.setenv("PATH", os.pathsep.join(without))
    async with Session(root, confined=True) as session:
        reply = await session.check()

    assert {one.status for one in session.run.checks} == {"missing"}
    assert "go is not installed, or not on PATH. Get it with: https://go.dev/dl." in reply.text
    assert session.questions == []
