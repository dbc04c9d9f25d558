"""Check through the whole flow: which checks run, several at once, what is told of each, and how they end."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from tests.tools.checks.checking import LIMIT_SECONDS, Session, until

from ferrule import Call, Engine
from ferrule.settings import CheckCommand
from ferrule.tools.checks import Check, Checked
from ferrule.tools.checks.run import report_missing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder.resolve()


async def test_every_check_is_told_with_its_status_its_time_and_what_is_wrong(root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    commands = {"good": "true", "bad": f"echo '{root}/a.py:1:5: error: wrong'; exit 1", "worse": "echo oh; exit 3"}
    async with Session(root, commands) as session:
        reply = await session.check()

    assert reply.ok, reply
    first, good, bad, worse, *rest = reply.text.split("\n")
    assert first.startswith("3 checks in ")
    assert first.endswith(": 1 passed, 2 failed.")
    assert good.startswith("✓ good  ")
    assert bad.startswith("✗ bad  ")
    assert bad.endswith("  1 problem")
    assert worse.endswith("  exit code 3")
    assert "a.py:1: wrong" in reply.text
    assert f"\n{root}/a.py" not in reply.text
    assert rest[-1] == "oh"
    assert session.statuses == {"good": "passed", "bad": "failed", "worse": "failed"}


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        pytest.param(["one"], ["one"], id="a-name"),
        pytest.param(["t*"], ["two", "three"], id="a-glob"),
        pytest.param(["lint"], ["one"], id="a-kind"),
        pytest.param(["tests", "one"], ["one", "two"], id="a-kind-and-a-name"),
        pytest.param(["off"], ["off"], id="one-that-is-off-by-default"),
        pytest.param([], ["one", "two", "three"], id="all-that-run-by-default"),
        pytest.param(["build"], [], id="a-kind-that-nothing-is-of"),
    ],
)
async def test_names_globs_and_kinds_say_which_checks_run(root: Path, only: list[str], expected: list[str]) -> None:
    commands: dict[str, str | CheckCommand] = {
        "one": CheckCommand(command="true", kind="lint"),
        "two": CheckCommand(command="true", kind="tests"),
        "three": "true",
        "off": "true",
    }
    async with Session(root, commands, checks={"disable": ("off",)}) as session:
        reply = await session.check(checks=only)

    assert reply.ok, reply
    assert list(session.statuses) == expected


async def test_a_name_that_nothing_has_is_answered_with_those_there_are(root: Path) -> None:
    async with Session(root, {"mypy": "true", "pytest": "true"}) as session:
        reply = await session.check(checks=["pytets"])

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"
    assert "There is no check 'pytets'. Did you mean 'pytest'? The checks here are: mypy, pytest;" in reply.text
    assert session.watched.begun == []


async def test_without_any_checks_it_says_so_and_what_to_do(root: Path) -> None:
    async with Session(root) as session:
        reply = await session.check()

    assert reply.ok
    assert reply.text.startswith("No checks were found: nothing here speaks of any (pyproject.toml, ")
    assert session.run.checks == ()


async def test_a_folder_has_its_own_checks(root: Path) -> None:
    (root / "api").mkdir()
    (root / "web").mkdir()
    commands: dict[str, str | CheckCommand] = {
        "api": CheckCommand(command="pwd", folder="api"),
        "web": CheckCommand(command="pwd", folder="web"),
    }
    async with Session(root, commands) as session:
        await session.check(path="api")
        assert list(session.statuses) == ["api"]
        outside = await session.check(path="..")
        file = await session.check(path="nothing")

    assert outside.error is not None
    assert file.error is not None
    assert "is not a folder" in file.text


async def test_checks_really_run_at_the_same_time(root: Path) -> None:
    os.mkfifo(root / "pipe")
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        Session(root, {"says": "echo hi > pipe", "hears": "cat pipe"}) as session,
    ):
        await session.check()

    assert session.statuses == {"says": "passed", "hears": "passed"}


async def test_no_more_run_at_once_than_the_setting_says(root: Path) -> None:
    alone = "mkdir held && sleep 0.05 && rmdir held"
    async with Session(root, {name: f"{alone} # {name}" for name in "abc"}, parallel=1) as session:
        await session.check()

    assert set(session.statuses.values()) == {"passed"}


async def test_checks_that_share_something_run_one_by_one_and_the_others_beside_them(root: Path) -> None:
    os.mkfifo(root / "pipe")
    alone = "mkdir held && sleep 0.05 && rmdir held"
    commands: dict[str, str | CheckCommand] = {
        name: CheckCommand(command=f"{alone} # {name}", shares="target") for name in "abc"
    }
    commands |= {"says": "echo hi > pipe", "hears": "cat pipe"}
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, commands, parallel=3) as session:
        await session.check()

    assert set(session.statuses.values()) == {"passed"}
    assert list(session.statuses) == ["a", "b", "c", "says", "hears"]


async def test_what_writes_to_the_project_runs_when_all_others_have_ended(root: Path) -> None:
    commands: dict[str, str | CheckCommand] = {
        "fixes": CheckCommand(command="test -e looked && touch fixed", shares="files"),
        "looks": "sleep 0.05; test ! -e fixed && touch looked",
    }
    async with Session(root, commands) as session:
        await session.check()

    assert session.statuses == {"fixes": "passed", "looks": "passed"}


async def test_progress_tells_what_is_done_and_what_runs(root: Path) -> None:
    async with Session(root, {"one": "true", "two": "true # again"}, parallel=1) as session:
        await session.check()

    assert session.progress[0] == "0 of 2 done; running: one (0 s)"
    assert any(
        line.startswith("1 of 2 done: one passed 0.") and "; running: two (" in line for line in session.progress
    )
    assert session.progress[-1].startswith("2 of 2 done: one passed ")
    assert session.watched.begun == session.watched.ends == ["one", "two"]


@pytest.mark.contract("timeout.check")
async def test_it_has_no_time_limit(root: Path) -> None:
    async with Session(root) as session:
        entry = session.engine.registry.resolve("Check")

    assert entry.tool.timed is False


async def test_cancelling_ends_all_of_it(root: Path) -> None:
    commands = {name: f"echo $$ > {name}.part; mv {name}.part {name}; sleep 300" for name in ("one", "two")}
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, commands) as session:
        running = asyncio.create_task(session.check())
        await until(lambda: all((root / name).exists() for name in commands))
        pids = [int((root / name).read_text()) for name in commands]
        session.engine.cancel()
        reply = await running
        kept = await session.engine.store.entries()

    assert reply.status == "cancelled"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert kept == []


async def test_a_program_that_is_not_there_is_said_and_how_to_get_it(root: Path) -> None:
    (root / "go.mod").write_text("module example.com/x\n\ngo 1.22\n")
    async with Session(root, {"ours": "surely-not-there --now"}) as session:
        reply = await session.check()

    assert session.statuses["ours"] == "missing"
    assert "? ours  missing: surely-not-there is not installed, or not on PATH." in reply.text
    if shutil.which("go") is None:
        assert session.statuses["go vet"] == "missing"
        assert session.of("go vet").why.endswith("Get it with: https://go.dev/dl.")
        assert not any("go vet" in question.summary for question in session.questions)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("npm run lint", "eslint is not installed, or not on PATH. Get it with: npm install.", id="npm"),
        pytest.param("lint-all", "eslint is not installed, or not on PATH.", id="another-script"),
    ],
)
def test_what_a_script_misses_is_got_as_the_project_gets_its_packages(command: str, why: str) -> None:
    check = Check("lint", "lint", command, "/w", program=command.split(maxsplit=1)[0])

    assert report_missing(check, "eslint") == Checked(check, "missing", why=why)


async def test_a_large_output_is_bounded_in_the_reply_and_kept_whole(root: Path) -> None:
    commands = {"big": "seq 1 400000; exit 1", "small": "echo little"}
    async with Session(root, commands) as session:
        reply = await session.check()
        assert reply.output_id is not None
        stored = await session.engine.output(reply.output_id)
        assert stored.path is not None
        whole = Path(stored.path).read_text()
        logs = os.listdir(os.path.dirname(stored.path))

    assert len(reply.text) < 2_000
    assert reply.text.endswith("\n399999\n400000")
    assert session.of("big").output.count("\n") == 39
    assert whole.startswith(f"==> big: seq 1 400000; exit 1 (in {root}; exit code 1, ")
    assert "\n1\n2\n3\n" in whole
    assert "\n200000\n" in whole
    assert "==> small: echo little (in " in whole
    assert whole.endswith("<==\nlittle\n\n\n")
    assert len(logs) == 1


async def test_no_more_than_fifty_problems_of_a_check_are_told(root: Path) -> None:
    (root / "a.py").write_text("x = 1\n" * 90)
    async with Session(
        root, {"lint": "for i in $(seq 1 80); do echo a.py:$i:1: error: wrong $i; done; exit 1"}
    ) as session:
        reply = await session.check()

    assert (len(session.of("lint").problems), session.of("lint").total_problems) == (50, 80)
    assert "80 problems" in reply.text
    assert "a.py:50: wrong 50\n… and 30 more" in reply.text


async def test_commands_find_an_environment_in_which_nothing_watches_or_colours(root: Path) -> None:
    async with Session(root, {"env": 'test "$CI" = 1 && test -n "$NO_COLOR" && test -z "$FORCE_COLOR"'}) as session:
        await session.check()

    assert session.statuses == {"env": "passed"}


async def test_a_manifest_that_another_call_changes_first_is_not_run_unseen(root: Path) -> None:
    (root / "Makefile").write_text("lint:\n\ttrue\n")
    async with Session(root) as session:
        edit = Call("edit_file", {"path": "Makefile", "old_str": "lint:\n\ttrue", "new_str": "test:\n\ttrue"})
        edited, checked = await session.engine.run([edit, Call("Check", {})])

    assert edited.ok, edited
    assert checked.ok, checked
    assert session.statuses == {"make test": "skipped"}
    assert "changed meanwhile. Run the checks again." in checked.text


async def test_a_call_that_comes_later_waits_for_the_checks(root: Path) -> None:
    async with Session(root, {"slow": "sleep 0.1; echo seen > seen.txt"}) as session:
        checked, read = await session.engine.run([Call("Check", {}), Call("Read", {"path": "seen.txt"})])

    assert checked.ok
    assert read.ok, read


async def test_it_is_heard_in_every_dialect(root: Path) -> None:
    for dialect in ("claude", "codex", "gemini"):
        async with Engine(root, dialect=dialect) as engine:
            assert (await engine.call("Check")).ok


async def test_a_program_that_a_target_misses_is_named(root: Path) -> None:
    (root / "Makefile").write_text("lint:\n\t@no-such-linter .\n\ntest:\n\t@cd . && no-such-runner; exit 3\n")
    async with Session(root) as session:
        reply = await session.check()

    assert session.statuses == {"make lint": "missing", "make test": "missing"}
    assert session.of("make lint").why == "no-such-linter is not installed, or not on PATH."
    assert session.of("make test").why == "no-such-runner is not installed, or not on PATH."
    assert session.of("make lint").exit_code == 2
    assert "no-such-linter" in reply.text


async def test_a_complaint_is_told_beside_a_program_that_was_not_found(root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    async with Session(root, {"a": "echo a.py:1: error: wrong; no-such-program; exit 1"}) as session:
        await session.check()

    checked = session.of("a")
    assert (checked.status, checked.total_problems) == ("failed", 1)
    assert checked.why.startswith("no-such-program was not found.")


@pytest.mark.parametrize("code", [1, 127])
async def test_a_long_line_without_an_end_holds_nobody_up(root: Path, code: int) -> None:
    command = f"head -c 20000000 /dev/zero | tr '\\0' a; exit {code}"
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, {"a": command}) as session:
        reply = await session.check()

    assert session.statuses == {"a": "failed"}
    assert len(reply.text) < 10_000


async def test_where_all_passed_no_output_is_kept(root: Path) -> None:
    async with Session(root, {"a": "echo a", "b": "seq 100000"}) as session:
        reply = await session.check()

    assert set(session.statuses.values()) == {"passed"}
    assert reply.output_id is None
    assert reply.notes == ()


async def test_cancelling_leaves_no_log_behind(root: Path, tmp_path: Path) -> None:
    commands = {"ended": "seq 300000; exit 1", "goes-on": "seq 300000; touch ran; sleep 300"}
    state = Path(os.environ["FERRULE_STATE"])
    async with Session(root, commands) as session:
        running = asyncio.create_task(session.check())
        await until(lambda: (root / "ran").exists() and session.watched.ends == ["ended"])
        session.engine.cancel()
        reply = await running
        left = [path for path in state.rglob("*") if path.is_file() and path.stat().st_size > 100_000]

    assert reply.status == "cancelled"
    assert left == []


async def test_scripts_run_without_words_of_npm_and_without_waiting_for_a_network(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "package.json").write_text('{"scripts": {"test": "x"}}')
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\nenv | grep npm_config_; exit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}{os.pathsep}{os.environ['PATH']}")
    async with Session(root, {"other": "env | grep npm_config_; exit 1"}) as session:
        await session.check()

    assert sorted(session.of("npm test").output.split()) == ["npm_config_fetch_retries=0", "npm_config_loglevel=silent"]
    assert session.of("other").output == "npm_config_fetch_retries=0"


async def test_how_long_a_check_runs_is_told_every_second(root: Path) -> None:
    async with Session(root, {"slow": "until test -e go; do sleep 0.02; done"}) as session:
        running = asyncio.create_task(session.check())
        await until(lambda: any("slow (2 s)" in line for line in session.progress))
        (root / "go").touch()
        await running

    assert any("slow (1 s)" in line for line in session.progress)
