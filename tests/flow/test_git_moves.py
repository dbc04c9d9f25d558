"""What commands did to git's own data: the commands that undo names bring it back, and so does a yes for all of it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ferrule import Engine, Settings
from ferrule.core.errors import ToolFailure
from ferrule.settings import SandboxSettings

SETTINGS = Settings(sandbox=SandboxSettings(use="none"))
BEGIN = """
git init -q -b main . && git config user.name a && git config user.email a@b && git config gc.auto 0
mkdir sub && echo 1 > a && echo 1 > b && echo 1 > sub/c && git add . && git commit -qm one
echo 2 > a && git commit -qam two
git switch -qc feature && echo feature > a && echo new > only && git add . && git commit -qm feature
git switch -qc other HEAD~2 && echo other > b && git commit -qam other && git switch -q main
git update-ref refs/remotes/origin/dev feature~1 && git update-ref refs/remotes/origin/main main
git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main
git tag v1 && git tag -a -m 'the second' v2 feature && git notes add -m note
for one in 1 2 3; do echo "stashed $one" > sub/c && git stash push -qm "the stash $one"; done
"""
WORK = "echo changed > sub/c; echo staged > b; echo x > added; git add b added; echo more >> b; echo u > untracked"
FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now"
ROWS = {
    "switch": "git switch -q feature",
    "switch-to-a-new-branch": "git switch -qc fresh && git commit -q --allow-empty -m fresh",
    "detached": "git checkout -q --detach HEAD~1",
    "branch-removed": "git branch -qD feature",
    "branch-removed-and-forgotten": f"git tag -d v2; git branch -qD feature; {FORGET}",
    "branch-in-the-place-of-another": "git branch -qD feature && git branch feature/next",
    "branch-renamed": "git branch -m main trunk",
    "commit": "echo 3 > a; git commit -qam three",
    "first-work-then-commit": f"{WORK}; git commit -qm some",
    "amended": "git commit -q --amend -m Amended",
    "reset": "git reset -q --hard HEAD~1",
    "reset-and-forgotten": f"git reset -q --hard HEAD~1; git tag -d v1; git stash clear; {FORGET}",
    "stash-dropped": "git stash drop -q",
    "stashes-dropped": "git stash drop -q; git stash drop -q",
    "stashes-cleared": "git stash clear",
    "stashes-cleared-and-forgotten": f"git stash clear; {FORGET}",
    "stash-made": "echo 4 > a; git stash -q; echo 5 > a; git stash -q",
    "stash-popped": "git stash pop -q",
    "tag-removed": "git tag -d v1",
    "tag-with-words-removed": "git tag -d v2",
    "tag-made": "git tag v3; git tag -a -m x v4",
    "remote-branch-moved": "git update-ref refs/remotes/origin/dev main; git update-ref -d refs/remotes/origin/main",
    "remote-branch-made": "git update-ref refs/remotes/origin/new main",
    "remote-head-removed": "git symbolic-ref -d refs/remotes/origin/HEAD",
    "remote-head-moved": "git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/dev",
    "remote-head-made": "git symbolic-ref refs/remotes/other/HEAD refs/remotes/origin/dev",
    "notes": "git notes add -m more HEAD~1",
    "rebase": "git rebase -q other",
    "rebase-stopped": "git switch -q feature; echo 9 > a; git commit -qam 9; git rebase -q --onto main~1 feature~1",
    "merge": "git merge -q -m merged other",
    "merge-stopped": "echo mine > b; git commit -qam mine; git merge -q other",
    "cherry-pick-stopped": "echo mine > b; git commit -qam mine; git cherry-pick other",
    "orphan": "git checkout -q --orphan fresh && git rm -rqf .",
    "packed": "git pack-refs --all; git commit -q --allow-empty -m four",
    "files-removed": "git rm -rq .",
}
STAGED = {
    "commit": "git commit -qm three",
    "commit-of-all": "git add -A; git commit -qm three",
    "reset": "git reset -q --hard HEAD~1",
    "reset-and-forgotten": f"git reset -q --hard; {FORGET}",
    "switch": "git switch -qf feature",
    "stash": "git stash -qu",
    "unstaged": "git restore --staged .; rm untracked",
    "removed": "git rm -rqf .",
}


def git(folder: Path, script: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    argv = ["bash", "-c", script]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def said(folder: Path) -> list[str]:
    """All that git says of a repository."""
    asked = (
        "cat .git/HEAD",
        "git for-each-ref --format='%(refname) %(objectname) %(symref)'",
        "git log --oneline --all",
        "git stash list",
        "git status --porcelain",
        "git diff --cached",
        "git fsck --no-dangling --no-reflogs 2>&1 | grep -v notice:",
    )
    return [git(folder, one) for one in asked]


def offered(notes: tuple[str, ...]) -> list[str]:
    """The commands in what was said."""
    return [command for note in notes for command in re.findall("`(git [^`]*)`", note)]


def opened(tmp_path: Path, *scripts: str, **options) -> tuple[Engine, Path]:
    work = tmp_path / "work"
    work.mkdir()
    for script in scripts:
        git(work, script)
    options = {"settings": SETTINGS, "ask": lambda _: True, **options}
    return Engine(work, state=tmp_path / "state", dialect="claude", session_id="one", **options), work


async def taken_back(tmp_path: Path, command: str, *scripts: str) -> tuple[list[str], list[str], list[str]]:
    """What git says before a command, and after it was undone and what was offered was run; what that said."""
    engine, work = opened(tmp_path, *scripts)
    before = said(work)
    async with engine:
        await engine.call("Bash", command=command)
        assert said(work) != before
        done = await engine.undo()
    failed = [f"{line}: {out}" for line in offered(done.notes) if (out := git(work, f"{line} || echo failed"))]
    return before, said(work), [line for line in failed if "failed" in line]


@pytest.mark.parametrize("command", ROWS.values(), ids=ROWS)
async def test_the_commands_that_an_undo_names_bring_all_of_git_back(tmp_path, command):
    before, after, failed = await taken_back(tmp_path, command, BEGIN)

    assert (failed, after) == ([], before)


@pytest.mark.parametrize("command", STAGED.values(), ids=STAGED)
async def test_the_commands_bring_staged_work_back(tmp_path, command):
    before, after, failed = await taken_back(tmp_path, command, BEGIN, WORK)

    assert (failed, after) == ([], before)


@pytest.mark.parametrize(
    "command", ["git commit -qm one", "git commit -qm one; git switch -qc new", "git rm -q --cached a"], ids=str
)
async def test_the_commands_take_a_first_commit_back(tmp_path, command):
    begin = "git init -qb main; git config user.name a; git config user.email a@b; echo 1 > a; git add a"
    before, after, failed = await taken_back(tmp_path, f"{command}; echo 2 > b", begin)

    assert (failed, after) == ([], before)


@pytest.mark.parametrize(
    "command",
    [
        "echo 3 > a; git commit -qam three",
        "git switch -qc new; git commit -q --allow-empty -m x",
        "git tag -f v1 HEAD~1",
    ],
    ids=["commit", "new-branch", "tag"],
)
async def test_the_commands_know_what_was_packed(tmp_path, command):
    before, after, failed = await taken_back(tmp_path, command, BEGIN, "git gc -q")

    assert (failed, after) == ([], before)


async def test_what_was_packed_later_is_not_taken_for_what_was_there_before(tmp_path):
    engine, work = opened(tmp_path, BEGIN)
    async with engine:
        await engine.call("Bash", command="git tag new")
        await engine.call("Bash", command="git pack-refs --all; echo x > x")
        await engine.undo()
        done = await engine.undo()

    assert offered(done.notes) == [f"git update-ref -d refs/tags/new {git(work, 'git rev-parse main').strip()}"]


async def test_a_stash_from_the_middle_comes_back_as_the_newest(tmp_path):
    engine, work = opened(tmp_path, BEGIN)
    async with engine:
        await engine.call("Bash", command="git stash drop -q 'stash@{1}'")
        done = await engine.undo()
    (command,) = offered(done.notes)
    git(work, command)

    assert re.findall(r"the stash \d", git(work, "git stash list")) == ["the stash 2", "the stash 3", "the stash 1"]


async def test_a_command_does_not_take_a_commit_away_that_the_user_has_made_since(tmp_path):
    engine, work = opened(tmp_path, BEGIN)
    async with engine:
        await engine.call("Bash", command="echo 3 > new; git add new; git commit -qm three")
        git(work, "git commit -q --allow-empty -m mine")
        mine = git(work, "git rev-parse main")
        done = await engine.undo()
    out = [git(work, command) for command in offered(done.notes)]

    assert "cannot lock ref" in out[0]
    assert git(work, "git rev-parse main") == mine


async def test_a_rewind_brings_back_what_its_commands_need(tmp_path):
    engine, work = opened(tmp_path, BEGIN)
    before = said(work)
    async with engine:
        engine.begin_prompt(1)
        await engine.call("Bash", command="git tag -d v2; git branch -qD feature")
        await engine.call("Bash", command=f"git stash clear; {FORGET}; git commit -q --allow-empty -m more")
        done = await engine.rewind(1)
    for command in offered(done.moved):
        git(work, command)

    assert said(work) == before


async def test_what_a_command_could_have_written_for_a_name_stands_in_no_command(tmp_path):
    engine, _ = opened(tmp_path, BEGIN)
    async with engine:
        await engine.call("Bash", command="echo '$(touch evil)' > .git/refs/heads/bad; echo x > x")
        await engine.call("Bash", command="rm .git/refs/heads/bad; echo y > x")
        done = await engine.undo()

    assert offered(done.notes) == []


@pytest.mark.parametrize("way", ["undo", "rewind"])
async def test_removed_objects_come_back(tmp_path, way):
    engine, work = opened(tmp_path, BEGIN)
    before = said(work)
    async with engine:
        engine.begin_prompt(1)
        await engine.call("Bash", command="rm -rf .git/objects/*")
        assert said(work) != before
        notes = (await engine.undo()).notes if way == "undo" else (await engine.rewind(1)).moved

    assert (said(work), notes) == (before, ())


@pytest.mark.parametrize("command", ["rm -rf .git", "rm -rf .git/objects/*"], ids=["all", "objects"])
async def test_a_repository_that_borrows_its_objects_comes_back(tmp_path, command):
    source = tmp_path / "source"
    source.mkdir()
    git(source, BEGIN)
    engine, work = opened(tmp_path, f"git clone -qs {source} .")
    before = said(work)
    async with engine:
        await engine.call("Bash", command=command)
        done = await engine.undo()

    assert (said(work), done.notes) == (before, ())


async def test_a_repository_that_borrows_its_objects_is_not_taken_for_a_removed_one(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    git(source, BEGIN)
    asked = []

    def ask(question: object) -> bool:
        asked.append(question)
        return True

    who = "git config user.name a; git config user.email a@b"
    engine, _ = opened(tmp_path, f"git clone -qs {source} .; {who}", ask=ask)
    async with engine:
        await engine.call("Bash", command="echo 3 > a; git commit -qam three")
        await engine.call("Bash", command="git switch -q --detach origin/feature")
        asked.clear()
        await engine.undo()

    assert asked == []


@pytest.mark.parametrize("packed", ["", "git pack-refs --all"], ids=["loose", "packed"])
async def test_a_repository_that_the_user_has_begun_anew_is_not_written_over(tmp_path, packed):
    engine, work = opened(tmp_path, BEGIN, packed)
    before = said(work)
    async with engine:
        await engine.call("Bash", command="rm -rf .git")
        git(work, "git init -qb main; git add .; git -c user.name=u -c user.email=u@u commit -qm mine")
        mine = said(work)
        with pytest.raises(ToolFailure, match="Move it away"):
            await engine.undo()
        assert said(work) == mine
        shutil.move(work / ".git", tmp_path / "mine")
        await engine.undo()

    assert said(work) == before


async def test_a_rewind_does_not_write_over_a_repository_that_commands_have_gone_on_in(tmp_path):
    engine, work = opened(tmp_path, BEGIN)
    async with engine:
        engine.begin_prompt(1)
        await engine.call("Bash", command="rm -rf .git")
        git(
            work, "git init -qb main; git config user.name u; git config user.email u@u; git add .; git commit -qm mine"
        )
        await engine.call("Bash", command="git commit -q --allow-empty -m more")
        mine = said(work)
        with pytest.raises(ToolFailure, match="Move it away"):
            await engine.rewind(1)

    assert said(work) == mine


async def test_a_no_leaves_a_removed_repository_away_and_says_so_once(tmp_path):
    engine, work = opened(tmp_path, BEGIN, ask=lambda question: question.name != "undo")
    async with engine:
        await engine.call("Bash", command="rm -rf .git a")
        done = await engine.undo()

    assert done.notes == (f"The repository {work / '.git'} was removed and was not brought back.",)


async def test_a_large_index_comes_back_with_its_repository(tmp_path):
    many = "mkdir many; for one in $(seq 9000); do : > many/a-file-with-a-rather-long-name-so-that-it-counts-$one; done"
    engine, work = opened(tmp_path, BEGIN, f"{many}; git add many; git commit -qm many", WORK)
    before = said(work)
    assert (work / ".git/index").stat().st_size > 1 << 20
    async with engine:
        await engine.call("Bash", command="rm -rf .git")
        await engine.undo()

    assert said(work) == before


async def test_a_repository_that_a_command_began_is_named_and_left(tmp_path):
    engine, work = opened(tmp_path)
    async with engine:
        await engine.call("Bash", command="git init -qb main; echo x > x; git add x")
        done = await engine.undo()

    assert done.notes == (f"A repository was begun in {work}. It was left there.",)
