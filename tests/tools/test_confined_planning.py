"""Commands of a session that plans can write nothing, whatever a program that only reads is made to run."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.confined import CONFINED, opened, said
from tests.tools.plan.planned import planning

from ferrule import Call, ModeConfig

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls of other systems have tests of their own")
every_wall = pytest.mark.parametrize("use", CONFINED)

SETTINGS = {
    "core.fsmonitor": "touch '{}/new'; false",
    "filter.x.clean": "touch '{}/new'; cat",
    "diff.external": "touch '{}/new'; true",
    "diff.x.textconv": "touch '{}/new'; cat",
}
"""What git runs when it is asked what has changed."""


def repository(folder: Path, name: str) -> Path:
    """With a file that has changed, and a setting that makes something of that."""
    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    (work / ".gitattributes").write_text("* filter=x diff=x\n")
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"],
        ["config", name, SETTINGS[name].format(work)],
    ):
        subprocess.run(["git", *command], cwd=work, check=True, timeout=60)
    (work / "a.txt").write_text("two\n")
    return work


@every_wall
@pytest.mark.parametrize("name", SETTINGS)
async def test_what_a_repository_would_have_git_run_does_not_run_while_planning_or_after(use, name, tmp_path):
    work = repository(tmp_path, name)
    async with opened(tmp_path, use) as engine:
        planning(engine).enter()
        reply = await engine.call("Bash", command="git diff")
        assert reply.status != "rejected-by-user", reply
        assert not (work / "new").exists()
        planning(engine).leave()
        assert "+two" in said(await engine.call("Bash", command="git diff"))
        assert not (work / "new").exists()
    subprocess.run(["git", "diff"], cwd=work, check=True, timeout=60, stdout=subprocess.DEVNULL)
    assert (work / "new").exists()  # it was no empty threat


@every_wall
async def test_a_subagent_s_commands_are_held_too(use, tmp_path):
    work = repository(tmp_path, "core.fsmonitor")
    async with opened(tmp_path, use) as engine:
        planning(engine).enter()
        branch = engine.branch("helper", ModeConfig())
        (reply,) = await branch.run([Call("Bash", {"command": "git status --short"})])
        await branch.close()

    assert "M a.txt" in said(reply)
    assert not (work / "new").exists()


@every_wall
async def test_reading_works_as_ever_and_leaves_nothing_in_the_workspace(use, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("b\na\n")
    async with opened(tmp_path, use) as engine:
        planning(engine).enter()
        replies = [await engine.call("Bash", command=line) for line in ("cat a.txt | sort", "ls -a", "pwd")]

    assert [said(reply) for reply in replies] == ["a\nb", ".\n..\na.txt", str(tmp_path / "work")]
