"""What a repository would have git run, or show, when its changes are looked at for a review: nothing of it is done."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from tests.tools.checks.checking import LIMIT_SECONDS, Session
from tests.tools.checks.test_check_reviews import Reviewers, add, git, issues


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with some files, and a submodule, all of them changed since."""
    folder, inner = (tmp_path / "workspace").resolve(), tmp_path / "inner"
    for one in (folder, inner):
        one.mkdir()
        git(one, "init", "-q")
    (inner / "inner.py").write_text("inner = 1\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "inner")
    for name in ("cart.py", "lines.py", "plain.txt", ".env"):
        (folder / name).write_text(f"TOKEN=old {name}\n" + "same\n" * 20)
    add(folder, "naming")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "module")
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "cart.py").write_text("total = 2\n")
    (folder / "module" / "inner.py").write_text("inner = 2\n")
    return folder


async def prompt(root: Path) -> str:
    """What a reviewer is told."""
    crew = Reviewers(issues())
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, subagents=crew) as session:
        await session.check(checks=["review"])
    assert session.questions == []
    (job,) = crew.jobs
    return str(job.prompt)


async def test_nothing_runs_that_the_repository_chooses(root: Path, tmp_path: Path) -> None:
    (root / ".gitattributes").write_text("*.py filter=odd diff=odd\n*.md filter=old.name\n")
    (root / ".agents" / "checks" / "naming.md").write_text("---\nname: naming\n---\nLook closely.\n")
    run = f"touch {root}/pwned; cat"
    for name in ("filter.odd.clean", "filter.odd.process", "diff.odd.command", "diff.odd.textconv", "diff.external"):
        git(root, "config", name, run)
    with (root / ".git" / "config").open("a") as file:
        file.write(f'[core] [Filter "o\\"dd"] clean = {run}\n[filter.old.name]\n\tclean = {run}\n\trequired = true\n')
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand"):
        git(root, "config", name, run)
        git(root / "module", "config", name, run)
    git(root, "config", "filter.odd.required", "true")
    git(root, "config", "diff.submodule", "diff")
    git(root / "module", "config", "diff.external", run)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-index-change").write_text(f"#!/bin/sh\n{run}\n")
    (hooks / "post-index-change").chmod(0o755)
    git(root, "config", "core.hooksPath", str(hooks))
    (root / "pwned").unlink(missing_ok=True)

    told = await prompt(root)

    assert "+total = 2" in told
    assert "+Look closely." in told
    assert not (root / "pwned").exists()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("[core]\n\tworktree = /\n", id="another-folder"),
        pytest.param("[core] worktree = ../..\n", id="a-folder-above"),
        pytest.param("".join(f'[filter "f{number}"]\nclean = x\n' for number in range(1100)), id="many-filters"),
    ],
)
async def test_settings_that_lead_away_or_cannot_be_known_keep_git_from_being_asked(root: Path, said: str) -> None:
    with (root / ".git" / "config").open("a") as file:
        file.write(said)
    crew = Reviewers(issues())
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, subagents=crew) as session:
        await session.check(checks=["review"])
    (job,) = crew.jobs

    assert re.search("Git was not (run|let look)", str(job.prompt))


async def test_what_other_files_add_to_the_settings_does_not_run_either(root: Path, tmp_path: Path) -> None:
    (root / ".gitattributes").write_text("*.py filter=odd\n")
    (tmp_path / "more").write_text(f'[filter "odd"]\n\tclean = touch {root}/pwned; cat\n')
    git(root, "config", "include.path", str(tmp_path / "more"))

    assert "+total = 2" in await prompt(root)
    assert not (root / "pwned").exists()


async def test_a_secret_file_is_not_shown_as_it_is_nor_as_it_was(root: Path) -> None:
    (root / ".env").write_text("TOKEN=new\n")
    (root / ".env.local").write_text("TOKEN=more\n")
    told = await prompt(root)

    assert "+total = 2" in told
    assert ".env" not in told


async def test_a_secret_file_that_was_given_another_name_is_not_shown(root: Path) -> None:
    text = (root / ".env").read_text()
    git(root, "mv", ".env", "kept.txt")
    (root / "kept.txt").write_text(text.replace("TOKEN=old", "TOKEN=new"))

    assert "TOKEN=old .env" not in await prompt(root)


async def test_a_line_that_is_drawn_over_is_left_to_be_read(root: Path) -> None:
    (root / "lines.py").write_bytes(b"steal()\r# nothing to see\n")
    (root / "plain.txt").write_bytes(b"a line of another system\r\n")
    told = await prompt(root)

    assert "+++ b/lines.py" not in told
    assert told.split("read them:")[1].split() == ["lines.py"]
    assert "+a line of another system" in told


async def test_work_trees_and_submodules_have_the_settings_of_their_repository(root: Path, tmp_path: Path) -> None:
    git(root, "config", "filter.odd.clean", f"touch {tmp_path}/pwned; cat")
    tree = tmp_path / "tree"
    git(root, "worktree", "add", "-q", str(tree))
    (tree / ".gitattributes").write_text("*.py filter=odd\n")
    (tree / "cart.py").write_text("total = 3\n")
    (tmp_path / "pwned").unlink(missing_ok=True)

    assert "+total = 3" in await prompt(tree.resolve())
    assert not os.path.lexists(tmp_path / "pwned")
