"""git inside the sandbox does what it does outside, also in repositories that track files with names of secrets."""

import shutil
import tomllib
from pathlib import Path

import pytest

from tests.ordinary.git_work import Step, differences, steps
from tests.ordinary.person import in_turn
from tests.ordinary.session import HIDES, session

REPOSITORIES = tomllib.loads(
    Path(__file__).parents[1].joinpath("data/everyday_repositories.toml").read_text(encoding="utf-8")
)
FILES = {"javascript": ("src/index.js", "README.md"), "python": ("client/__init__.py", "docs/index.md")}


def committed(person, folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    person.give(folder)
    done = person.run(["bash", "-c", "git init -q . && git add -A -f && git commit -q -m Begin"], cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def copies(person, name: str) -> tuple[Path, Path]:
    inside = committed(person, person.folder("inside"), REPOSITORIES[name])
    outside = person.home / "outside"
    shutil.copytree(inside, outside, symlinks=True)
    person.give(outside)
    return inside, outside


@pytest.mark.parametrize(("case", "person"), in_turn(*zip(REPOSITORIES, HIDES, strict=True)), indirect=["person"])
def test_a_day_of_git_is_the_same_inside_and_outside(person, needs, case):
    name, way = case
    needs(person, way)
    inside, outside = copies(person, name)
    with session(person, inside, way) as opened:
        found = differences(person, opened, inside, outside, steps(*FILES[name]))

    assert found == []


@pytest.mark.parametrize("way", HIDES)
def test_a_tracked_secret_with_local_changes_looks_committed_and_keeps_them(person, needs, way):
    needs(person, way)
    work = committed(person, person.folder("work"), REPOSITORIES["javascript"])
    local = work / ".env.test"
    local.write_text("API_KEY=only-on-this-machine\n")
    person.give(work)
    with session(person, work, way) as opened:
        shown = opened.bash("cat .env.test")
        clean = opened.bash("git status --porcelain; git diff --exit-code && echo '# more' >> README.md")
        kept = opened.bash("git commit -q -a -m Change && git show --stat --format=%s HEAD")

    assert "only-on-this-machine" not in shown.text
    assert (clean.exit_code, kept.exit_code) == (0, 0), (clean, kept)
    assert ".env.test" not in clean.output + kept.output
    assert local.read_text() == "API_KEY=only-on-this-machine\n"


@pytest.mark.parametrize("way", HIDES)
def test_settings_of_git_that_run_nothing_are_kept_and_others_are_not(person, needs, way):
    needs(person, way)
    work = committed(person, person.folder("work"), REPOSITORIES["python"])
    harmless = [Step("config", f"git config {key} value") for key in ("user.name", "branch.main.description")]
    with session(person, work, way) as opened:
        codes = [opened.bash(step.command).exit_code for step in harmless]
        planted = opened.bash(
            "git config core.fsmonitor ./evil; git config alias.st '!./evil'; git config --list --local"
        )
    config = (work / ".git/config").read_text()

    assert codes == [0, 0]
    assert ("name = value" in config, "description = value" in config) == (True, True)
    assert ("fsmonitor" in config, "alias" in config) == (False, False), planted


@pytest.mark.parametrize("way", HIDES)
def test_git_works_around_a_secret_file_that_nothing_ignores_and_says_so_once(person, needs, way):
    needs(person, way)
    work = committed(person, person.folder("work"), REPOSITORIES["python"])
    for name in (".env", "deploy/.env"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("API_KEY=only-on-this-machine\n")
    (work / "new.py").touch()
    person.give(work)
    with session(person, work, way) as opened:
        added = opened.bash("git add -A && git status --porcelain && git stash -u -q && git stash pop -q")
        kept = opened.bash("git add -A && git commit -q -m New && git show --stat --format=%s HEAD && git clean -fdq")
        objects = opened.bash(
            "git cat-file --batch-check --batch-all-objects | grep -c . ; git grep only-on-this --all"
        )

    assert (added.exit_code, added.output.strip()) == (0, "A  new.py"), added
    assert [note[:47] for note in (*added.notes, *kept.notes)] == ["Git passes over .env, deploy/.env in commands, "]
    assert (kept.exit_code, "new.py" in kept.output, ".env" in kept.output) == (0, True, False), kept
    assert "only-on-this-machine" not in objects.text
    assert [(work / name).read_text() for name in (".env", "deploy/.env")] == ["API_KEY=only-on-this-machine\n"] * 2
    assert "Hidden" not in (work / ".git/info/exclude").read_text()
