"""Files of the workspace that confined commands must leave alone, by whatever way they come to them."""

import subprocess

import pytest
from tests.tools.confined import HIDES, opened, said

every_hiding = pytest.mark.parametrize("use", HIDES)


@every_hiding
async def test_git_s_way_to_other_settings_is_not_left_behind(use, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / ".git/modules/m/objects").mkdir(parents=True)
    (work / ".git/modules/m/HEAD").write_text("ref: refs/heads/main\n")
    (work / "sub").mkdir()
    (work / "sub/.git").write_text("gitdir: ../.git/modules/m\n")
    async with opened(tmp_path, use) as engine:
        for command in (
            "mkdir evil; echo ../evil > .git/commondir",
            "echo 'gitdir: ../evil' > sub/.git",
            "echo x > .git/modules/m/config",
            "mkdir .git/modules/m/hooks",
        ):
            await engine.call("Bash", command=command)
        reply = await engine.call("Bash", command="echo next")

    assert not (work / ".git/commondir").exists()
    assert reply.ok
    assert (work / "sub/.git").read_text() == "gitdir: ../.git/modules/m\n"
    assert sorted(path.name for path in (work / ".git/modules/m").iterdir()) == ["HEAD", "hooks", "objects"]
    assert list((work / ".git/modules/m/hooks").iterdir()) == []


@every_hiding
async def test_what_a_kept_link_leads_to_and_the_hooks_that_are_named_are_kept(use, tmp_path):
    work = tmp_path / "work"
    (work / "conf/claude").mkdir(parents=True)
    (work / "scripts/hooks").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    subprocess.run(["git", "-C", str(work), "config", "core.hooksPath", "scripts/hooks"], check=True)
    (work / ".claude").symlink_to("conf/claude")
    async with opened(tmp_path, use) as engine:
        await engine.call("Bash", command="echo x > conf/claude/settings.json")
        await engine.call("Bash", command="echo x > scripts/hooks/pre-commit")
        await engine.call("Bash", command="echo x > scripts/other")

    assert list((work / "conf/claude").iterdir()) == []
    assert list((work / "scripts/hooks").iterdir()) == []
    assert (work / "scripts/other").exists()


@every_hiding
async def test_a_secret_that_was_seen_stays_hidden_in_a_flood_of_files(use, tmp_path):
    work = tmp_path / "work"
    (work / "app").mkdir(parents=True)
    (work / "app/.env").write_text("KEY=value\n")
    async with opened(tmp_path, use) as engine:
        await engine.call("Bash", command="mkdir flood; cd flood; seq 21000 | xargs touch")
        reply = await engine.call("Bash", command="cat app/.env")

    assert "value" not in said(reply)
