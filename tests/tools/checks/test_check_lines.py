"""The command lines of all checks against the policy: none is let run that the shell would not be."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.tools.checks.checking import Session
from tests.tools.checks.test_check_policy import rules
from tests.workspace.checks.test_checks_found import PROJECTS, put

from ferrule import Call
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.tools.checks import Check
from ferrule.tools.checks.choice import find_known

_ORDER = {"allow": 0, "ask": 1, "deny": 2}
_STANDINGS: dict[str, dict[str, Any]] = {
    "nothing said": {},
    "the shell denied": {"settings": rules(deny=("Bash",))},
    "one program denied": {"settings": rules(deny=("Bash(pytest *)", "Bash(npm *)", "Bash(cargo test *)"))},
    "one program asks": {"settings": rules(ask=("Bash(pytest *)", "Bash(go *)", "Bash(npm test)"))},
    "the tool allowed": {"settings": rules(allow=("Check",))},
    "the tool and a program allowed": {"settings": rules(allow=("Check", "Bash(gradle *)"))},
    "edits accepted": {"permission_mode": "acceptEdits"},
    "nobody asked": {"permission_mode": "dontAsk"},
    "planning": {"permission_mode": "plan"},
}
_FILES: list[Any] = [files for files, _ in PROJECTS.values()]
_PASSES = (
    *("basedpyright", "black --check .", "flake8", "isort --check-only .", "mypy", "mypy .", "mypy src", "pyright"),
    *("pytest", "python3 -m unittest discover -s tests", "ruff check", "ruff format --check", "tsc --noEmit"),
    *("cargo check --workspace --all-targets", "cargo clippy --workspace --all-targets", "cargo fmt --all --check"),
    *("cargo test --workspace", "go vet ./...", "go test ./...", "go build -o /dev/null ./...", "eslint ."),
    *("npm test", "npm run lint", "npm run typecheck", "npm run format:check", "pnpm test", "pnpm run lint"),
    "yarn test",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside the workspace that is on PATH, for programs that do nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), "/usr/bin", "/bin")))
    return folder


def there(session: Session, root: Path, programs: Path) -> list[Check]:
    """All checks of the project, with every program that they need."""
    found = find_known(
        str(root), session.engine.need(Jail), session.engine.need(Guard), session.engine.settings.checks
    ).found
    checks = [*found.checks, *found.others]
    for check in checks:
        own = "/" in check.program
        program = root / check.program if own else programs / check.program
        if not own or program.is_file():
            program.write_text("#!/bin/sh\nexit 0\n")
            program.chmod(0o755)
    return checks


@pytest.mark.parametrize("standing", [pytest.param(more, id=name) for name, more in _STANDINGS.items()])
async def test_a_check_is_never_judged_more_mildly_than_its_line_in_the_shell(
    root: Path, programs: Path, standing: dict[str, Any]
) -> None:
    compared = 0
    for number, files in enumerate(_FILES):
        folder = root / f"p{number}"
        folder.mkdir()
        put(folder, files)
        async with Session(folder, **standing) as session:
            for check in there(session, folder, programs):
                line = await session.engine.decide(Call("Bash", {"cmd": check.command, "cwd": check.folder}))
                decided = await session.engine.decide(Call("Check", {"checks": [check.name]}))
                assert _ORDER[decided.verdict] >= _ORDER[line.verdict], (check.command, line, decided)
                compared += 1
    assert compared > 70


async def test_the_lines_of_well_known_programs_need_no_question(root: Path, programs: Path) -> None:
    passing = set()
    for number, files in enumerate(_FILES):
        folder = root / f"p{number}"
        folder.mkdir()
        put(folder, files)
        async with Session(folder) as session:
            for check in there(session, folder, programs):
                decided = await session.engine.decide(Call("Check", {"checks": [check.name]}))
                passing |= {check.command} if decided.verdict == "allow" else set()

    assert set(_PASSES) <= passing
    # What the project's own environment runs has the standing of the same program on the PATH; no other file has.
    by_path = [line.split()[0] for line in passing if "/" in line.split()[0]]
    assert all("/node_modules/.bin/" in f"/{program}" or "venv/bin/" in program for program in by_path), by_path


async def test_a_program_of_the_workspace_asks_wherever_it_leads(root: Path, programs: Path, tmp_path: Path) -> None:
    put(root, {"ruff.toml": "", "tsconfig.json": "{}", "package.json": "{}"})
    outside = tmp_path / "ruff"
    outside.write_text("#!/bin/sh\nexit 0\n")
    outside.chmod(0o755)
    for name in (".venv/bin/ruff", "node_modules/.bin/tsc"):
        (root / name).parent.mkdir(parents=True)
        (root / name).symlink_to(outside)
    async with Session(root, answer=False) as session:
        reply = await session.check()

    (question,) = session.questions
    assert reply.status == "rejected-by-user"
    assert question.summary.splitlines()[1:] == ["  .venv/bin/ruff check", "  node_modules/.bin/tsc --noEmit"]


async def test_whoever_decides_for_the_user_is_asked_about_every_command(root: Path, tmp_path: Path) -> None:
    judge = tmp_path / "judge"
    judge.write_text(
        f'#!/bin/sh\nin=$(cat)\necho "$AGENT_TOOL_NAME $in" >> {tmp_path}/told\n'
        'case "$in" in *bad*) echo "Not this." >&2; exit 2;; *odd*) exit 1;; esac\nexit 0\n'
    )
    judge.chmod(0o755)
    commands = {"good": "touch good", "fine": "touch fine", "bad": "touch bad", "odd": "touch odd"}
    ordered = rules(ordered=(f"delegate --to {judge} Bash",))
    async with Session(root, commands, answer=False, settings=ordered) as session:
        refused = await session.check(checks=["good", "bad"])
        asked = await session.check(checks=["good", "odd"])
        assert not (root / "good").exists()
        done = await session.check(checks=["good", "fine"])

    assert refused.status == asked.status == "rejected-by-user"
    assert "Not this." in refused.text
    assert done.ok
    assert 'Bash {"command": "touch bad"}' in (tmp_path / "told").read_text().splitlines()


async def test_a_refusal_does_not_run_on_behind_the_last_command(root: Path) -> None:
    async with Session(root, {"a": "touch a"}, answer=False) as session:
        reply = await session.check()

    assert reply.error is not None
    assert reply.error.message == "The user did not allow this: Check runs 1 command:\n  touch a"


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        pytest.param("go build -o /dev/null ./...", "allow", id="nowhere"),
        pytest.param("go build -o program ./...", "ask", id="a-file"),
        pytest.param("go build -o /dev/zero ./...", "ask", id="another-device"),
        pytest.param("go build /dev/null", "ask", id="no-output"),
        pytest.param("go vet -o /dev/null ./...", "ask", id="another-command"),
        pytest.param("mypy /dev/null", "ask", id="another-program"),
    ],
)
async def test_a_build_that_writes_nothing_needs_no_question(
    root: Path, programs: Path, line: str, verdict: str
) -> None:
    for name in ("go", "mypy"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    async with Session(root) as session:
        assert (await session.engine.decide(Call("Bash", {"cmd": line}))).verdict == verdict
