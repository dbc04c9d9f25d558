"""`ferrule check` as a person and a program see it: what is listed, run and printed, and how it ends."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.recordings import FERRULE, recording, start, until, written

from ferrule.cli.main import run
from ferrule.models.cues import calls, said
from ferrule.permissions import Question
from ferrule.permissions.question import question_rows

CHECKS = '[sandbox]\nuse = "none"\n[checks.commands]\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, which is where we are."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FERRULE_MODEL", raising=False)
    return folder.resolve()


def settings(**commands: str) -> None:
    rows = [f"{name} = {{ command = {json.dumps(line)}, kind = 'tests' }}\n" for name, line in commands.items()]
    Path(os.environ["FERRULE_SETTINGS"]).write_text(CHECKS + "".join(rows), encoding="utf-8")


def test_checks_that_pass_print_a_row_each_and_a_sum(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="true", two="echo two")

    assert run(["check", "--yes"]) == 0
    out, err = capsys.readouterr()
    rows = out.splitlines()
    assert sorted(row[:6] for row in rows[:2]) == ["✓ one ", "✓ two "]
    assert rows[-1].startswith("2 checks in ")
    assert rows[-1].endswith(": 2 passed.")
    assert "\x1b" not in out + err


def test_a_check_that_fails_is_shown_with_what_is_wrong(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "a.py").write_text("x = 1\n")
    settings(good="true", bad="echo a.py:1:2: error: wrong; exit 1", ugly="printf 'oh\\033[2J no'; exit 2")

    assert run(["check", "--yes"]) == 1
    out, _ = capsys.readouterr()
    assert "✗ bad  " in out
    assert "\na.py:1: wrong\n" in out
    assert "oh no" in out
    assert "\x1b" not in out
    assert out.rstrip().endswith(": 1 passed, 2 failed.")


def test_names_and_kinds_choose(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="true", two="false")

    assert run(["check", "one", "--yes"]) == 0
    assert run(["check", "tests", "--yes"]) == 1
    assert run(["check", "lint", "--yes"]) == 2
    assert run(["check", "tow", "--yes"]) == 2
    assert "Did you mean 'two'?" in capsys.readouterr().err


def test_nothing_found_is_said_and_is_an_end_of_its_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check"]) == 2
    assert run(["check", "--list"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("No checks were found") == 2


def test_json_is_one_object_for_programs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "a.py").write_text("x = 1\n")
    settings(bad="echo a.py:1:2: error: wrong; exit 1")

    assert run(["check", "--yes", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    (check,) = told["checks"]
    assert (told["status"], check["name"], check["kind"], check["status"], check["exitCode"]) == (
        "failed",
        "bad",
        "tests",
        "failed",
        1,
    )
    (problem,) = check["problems"]
    assert (problem["path"], problem["line"], problem["message"]) == (str(place / "a.py"), 1, "wrong")


def test_list_tells_what_there_is_and_runs_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "Makefile").write_text("test:\n\ttouch ran\n")
    settings(mine="touch ran")

    assert run(["check", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert run(["check", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["checks"]

    assert any(line.split() == ["mine", "tests", "touch", "ran", "(settings)"] for line in listed)
    assert any("make test" in line and line.endswith("(Makefile)") for line in listed)
    assert {row["name"] for row in rows} == {"make test", "mine"}
    assert all(row["byDefault"] for row in rows)
    assert not (place / "ran").exists()


def test_without_a_person_what_would_ask_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="touch made")

    assert run(["check"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "Check runs 1 command:\n  touch made" in err
    assert not (place / "made").exists()


def test_a_folder_chooses_its_own_checks(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "api").mkdir()
    (place / "api" / "Makefile").write_text("test:\n\t@true\n")
    (place / "Makefile").write_text("test:\n\t@false\n")
    settings()

    assert run(["check", "--yes", "--path", "api"]) == 0
    assert run(["check", "--yes", "--path", "nowhere"]) == 2
    capsys.readouterr()
    for options in ([], ["--list"], ["--json"]):
        assert run(["check", *options, "--path", ".."]) == 3
        assert "is outside the workspace" in capsys.readouterr().err


def test_ctrl_c_ends_the_checks_and_says_so(place: Path) -> None:
    settings(slow="echo $$ > pid; sleep 300")
    process = start(["check", "--yes"], place)
    until(lambda: written(place / "pid"), process)
    pid = int((place / "pid").read_text())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err.decode().splitlines()[-1] == "Interrupted: slow was stopped."
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_ctrl_c_leaves_what_has_ended(place: Path, options: list[str]) -> None:
    (place / "a.py").write_text("x = 1\n")
    bad, slow = "echo a.py:1:2: error: wrong; exit 1", "touch go; sleep 300"
    rows = [f"{name} = {{ command = '{line}', shares = 'x' }}\n" for name, line in (("bad", bad), ("slow", slow))]
    Path(os.environ["FERRULE_SETTINGS"]).write_text(CHECKS + "".join(rows), encoding="utf-8")
    process = start(["check", "--yes", *options], place)
    until((place / "go").exists, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err.decode().splitlines()[-1] == "Interrupted: slow was stopped."
    if options:
        told = json.loads(out)
        assert told["status"] == "interrupted"
        assert {one["name"]: one["status"] for one in told["checks"]} == {"bad": "failed", "slow": "stopped"}
    else:
        assert out.decode().startswith("✗ bad  ")
        assert "\nbad (`echo a.py:1:2: error: wrong; exit 1`):\na.py:1: wrong\n" in out.decode()


def test_a_reader_who_has_gone_ends_it_without_a_word(place: Path) -> None:
    settings(
        fast="true", slow="until test -e go; do sleep 0.02; done", slower="until test -e never; do sleep 0.02; done"
    )
    process = start(["check", "--yes"], place)
    assert process.stdout is not None
    assert process.stdout.readline().decode().startswith("✓ fast  ")
    process.stdout.close()
    (place / "go").touch()
    assert process.stderr is not None
    told = process.stderr.read()
    process.stderr.close()

    assert process.wait(timeout=60) == 1
    assert told == b""


def test_rows_come_as_checks_end_also_into_a_pipe(place: Path) -> None:
    settings(fast="true", slow="until test -e go; do sleep 0.02; done")
    process = start(["check", "--yes"], place)
    assert process.stdout is not None
    first = process.stdout.readline().decode()
    (place / "go").touch()
    rest, _ = process.communicate(timeout=60)

    assert first.startswith("✓ fast  ")
    assert rest.decode().startswith("✓ slow  ")
    assert process.returncode == 0


@pytest.mark.parametrize("by", ["an option", "the environment"])
def test_reviews_are_done_where_a_model_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    folder = place / ".agents" / "checks"
    folder.mkdir(parents=True)
    (folder / "naming.md").write_text("---\nname: naming\n---\nLook for naming.\n")
    (place / "a.py").write_text("x = 1\n")
    issue = {"severity": "high", "file": "a.py", "line": 1, "problem": "No."}
    cues = [calls(("Read", {"path": "a.py"})), said(json.dumps({"issues": [issue]}))]
    settings(one="true")
    model = f"scripted:{recording(place.parent / 'c.jsonl', *cues)}"

    if by == "the environment":
        monkeypatch.setenv("FERRULE_MODEL", model)
    words = ["--model", model] if by == "an option" else []

    assert run(["check", "--yes", *words]) == 1
    out, _ = capsys.readouterr()
    assert "✗ naming  " in out
    assert "a.py:1: [high] No." in out
    assert run(["check", "--yes", *words, "--no-review"]) == 0


def test_a_key_is_enough_for_reviews_that_are_asked_for(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(one="true")
    review_of(place)
    (place / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with open(os.environ["FERRULE_SETTINGS"], "a", encoding="utf-8") as file:
        file.write("[models]\nretries = 0\n")

    assert run(["check", "review"]) == 1
    assert "anthropic:claude-opus-5-5 cannot be reached at http://127.0.0.1:9" in capsys.readouterr().out
    assert run(["check"]) == 0
    assert "naming" not in capsys.readouterr().out


def review_of(place: Path, *, name: str = "naming") -> None:
    folder = place / ".agents" / "checks"
    folder.mkdir(parents=True)
    (folder / f"{name}.md").write_text(f"---\nname: {name}\n---\nLook for {name}.\n")


@pytest.mark.parametrize("names", [[], ["review"], ["naming"]])
def test_revisions_say_what_is_reviewed_with_names_and_without(
    place: Path, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings()
    review_of(place)
    (place / "a.py").write_text("x = 1\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
        subprocess.run(git, cwd=place, check=True, capture_output=True)
    (place / "a.py").write_text("x = 2\n")
    model = f"scripted:{recording(place.parent / 'c.jsonl', said('{}'))}"

    assert run(["check", *names, "--diff", "HEAD...HEAD", "--model", model, "--yes"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("- naming  skipped: Nothing was changed that it is about (HEAD...HEAD).")
    assert err == ""


def test_a_call_with_all_options_is_understood_without_a_note(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "api").mkdir()
    (place / "api" / "Makefile").write_text("test:\n\t@true\n")
    settings(one="true")

    for options in ([], ["one"], ["--path", "api"], ["tests", "--path", "api", "--diff", "HEAD", "--no-review"]):
        assert run(["check", *options, "--yes"]) == 0
        assert capsys.readouterr().err == ""


def test_what_there_is_none_of_is_said_as_it_is(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="true")
    review_of(place)

    told = []
    for words in (["build"], ["review"], ["review", "--no-review"]):
        assert run(["check", *words]) == 2
        told.append(capsys.readouterr().err)
    assert told[0].startswith("Nothing was run: there is no such check that runs by default. The checks here are: one,")
    assert "not done: this session has no model" in told[1]
    assert "--model" in told[1]
    assert "the call leaves them out" in told[2]
    assert not any("Bash" in text or "No checks were found" in text for text in told)


@pytest.mark.parametrize("name", ["nope", "file"])
@pytest.mark.parametrize("more", [[], ["--list"]])
def test_a_folder_that_is_none_is_wrong_use(
    place: Path, name: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings()
    review_of(place)
    (place / "file").touch()

    assert run(["check", *more, "--path", name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{name} is not a folder" in err


def test_the_files_that_were_looked_at_are_named_where_nothing_was_found(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "package.json").write_text("{}")
    (place / "requirements-dev.txt").write_text("requests\n")
    settings()

    for options in ([], ["--list"]):
        assert run(["check", *options]) == 2
        told = capsys.readouterr().err
        assert "No checks were found in requirements-dev.txt, package.json." in told
        assert "Bash" not in told


def test_a_refusal_ends_each_command_with_its_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="touch made")

    assert run(["check"]) == 3
    told = capsys.readouterr().err
    assert "\n  touch made\n`touch made`: no rule covers it. --yes allows it this time;" in told
    assert 'permissions.allow = ["Bash(touch *)"] in your settings' in told


def test_a_question_shows_the_commands_and_no_json() -> None:
    question = Question(
        kind="call",
        call_id="1",
        name="Check",
        tool="check",
        summary="Check runs 1 command:\n  make lint",
        touches=(),
        input={"only": ["make lint"], "diff": ""},
    )

    assert question_rows(question) == []


def test_a_review_that_is_wanted_needs_a_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="true")

    assert run(["check", "--review"]) == 2
    assert "model" in capsys.readouterr().err


def test_help_has_examples() -> None:
    told = subprocess.run([*FERRULE, "check", "--help"], capture_output=True, text=True, check=True).stdout

    assert "ferrule check types lint" in told
    assert "build, other, review" in told
    assert "--list" in told


@pytest.mark.parametrize("diff", ["nosuchrev", "HEAD; rm x", "", " "])
def test_what_is_no_revision_is_wrong_use(place: Path, diff: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="touch ran")
    review_of(place)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True, capture_output=True)
    model = f"scripted:{recording(place.parent / 'c.jsonl', said('{}'))}"

    assert run(["check", "--diff", diff, "--model", model, "--yes"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert (f"git knows no revision {diff!r}." if diff.strip() else "--diff needs a revision") in err
    assert not (place / "ran").exists()


def test_a_check_that_was_left_out_says_why(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "d = { command = 'true', kind = 'tests', folder = 'nofolder' }\n"
    Path(os.environ["FERRULE_SETTINGS"]).write_text(CHECKS + rows, encoding="utf-8")

    for options in ([], ["--list"]):
        assert run(["check", "d", *options]) == 2
        assert "The check 'd' of the settings is left out: its folder nofolder is not there." in capsys.readouterr().err


def test_a_list_has_only_what_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "Makefile").write_text("test:\n\ttrue\nlint:\n\ttrue\n")
    settings(mine="true")

    assert run(["check", "--list", "lint"]) == 0
    assert [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()] == ["make lint"]
    assert run(["check", "--list", "--json", "mine", "make t*"]) == 0
    rows = json.loads(capsys.readouterr().out)["checks"]
    assert {row["name"] for row in rows} == {"make test", "mine"}
    assert run(["check", "--list", "build"]) == 2
    assert run(["check", "--list", "mien"]) == 2
    assert "There is no check 'mien'. Did you mean 'mine'?" in capsys.readouterr().err


def test_an_unknown_name_is_said_in_plain_words(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings()
    assert run(["check", "pytest"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("There is no check 'pytest': nothing here speaks of any")
    assert "Did you mean" not in told

    settings(one="true")
    assert run(["check", "oen"]) == 2
    assert capsys.readouterr().err.startswith("There is no check 'oen'. Did you mean 'one'?")


@pytest.mark.parametrize("more", [[], ["--list"], ["ruff"], ["lint"]])
def test_a_folder_that_is_covered_from_above_says_so(
    place: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "shop").mkdir()
    (place / "pyproject.toml").write_text("[tool.ruff]\n[tool.mypy]\n")
    settings()

    assert run(["check", *more, "--path", "shop"]) == 2
    told = capsys.readouterr().err
    assert "of the folder above are about" in told
    assert "ruff, mypy" in told


def test_a_check_that_a_rule_denies_can_be_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "one = { command = 'ls' }\n'two words' = { command = 'pwd' }\nbad = { command = 'npm test' }\n"
    rules = "[permissions]\ndeny = ['Bash(npm *)']\n"
    Path(os.environ["FERRULE_SETTINGS"]).write_text(rules + CHECKS + rows, encoding="utf-8")

    assert run(["check"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "name the others: one, two words." in err
    assert err.endswith("\nThe others alone: ferrule check one 'two words'\n")
    assert run(["check", "one", "two words"]) == 0
    capsys.readouterr()
    assert run(["check", "--json"]) == 3
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["status"], told["checks"]) == ("refused", [])
    assert told["error"]["errorCode"] == "denied-by-rule"
    assert "ferrule check one 'two words'" in told["error"]["message"]


def test_a_wrong_call_is_json_for_programs_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(one="true")

    assert run(["check", "nope", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["error"]["errorCode"]) == ("error", "bad-arguments")


@pytest.mark.parametrize("more", [[], ["--list"]])
def test_settings_of_a_project_that_is_not_trusted_are_told_of(
    place: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (place / ".ferrule").mkdir()
    (place / ".ferrule" / "settings.toml").write_text("[checks.commands.x]\ncommand = 'true'\n")
    settings()

    assert run(["check", "x", *more]) == 2
    told = capsys.readouterr().err
    assert "There is no check 'x'" in told
    assert told.startswith("warning: ")
    assert "trust" in told
    assert told.count("warning: ") == 1
