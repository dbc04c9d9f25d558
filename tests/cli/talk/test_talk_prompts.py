"""`/init` and `/review`: what the model is asked, and that a review writes nothing."""

import subprocess

import pytest
from tests.cli.talk.typing_front import talk

from ferrule.cli.talk.own_commands import branches
from ferrule.models.cues import calls, said
from ferrule.models.recorder import Scripted


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=folder, check=True, capture_output=True
    )


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "app.py").write_text("one\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    git(folder, "checkout", "-qb", "feature/x")
    (folder / "app.py").write_text("two\n")
    git(folder, "commit", "-qam", "second")
    return folder


def asked(scripted):
    """What the user is made to say."""
    return scripted.asked[0].turns[1].parts[0].text


@pytest.mark.parametrize(
    ("rest", "what", "see"),
    [
        pytest.param("", "what this branch has that main has not", "git diff main...HEAD", id="a-clean-branch"),
        pytest.param(" main", "what this branch has that main has not", "git diff main...HEAD", id="the-base"),
        pytest.param(" feature/x", "the branch feature/x", "git diff main...feature/x", id="a-branch"),
        pytest.param(" main..HEAD", "the changes of main..HEAD", "git diff main..HEAD", id="a-range"),
        pytest.param(" HEAD~1", "the commit HEAD~1", "git show", id="a-commit"),
    ],
)
async def test_a_review_asks_about_what_was_named(repository, rest, what, see):
    scripted = Scripted(said("No findings."), workspace=str(repository))
    await talk(repository, scripted, f"/review{rest}")

    assert what in asked(scripted)
    assert see in asked(scripted)
    assert "app.py" in asked(scripted)


async def test_an_uncommitted_change_comes_before_the_branch(repository):
    (repository / "new.py").write_text("x\n")
    scripted = Scripted(said("No findings."))
    await talk(repository, scripted, "/review")

    assert "the uncommitted change" in asked(scripted)
    assert "?? new.py" in asked(scripted)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        pytest.param("nothing", "git knows no nothing.", id="unknown"),
        pytest.param("--output=x", "is no branch", id="an-option"),
        pytest.param("main...nothing", "git knows no main...nothing.", id="half-a-range"),
        pytest.param("app.py", "There is nothing to review", id="an-unchanged-file"),
        pytest.param("$(touch made)", "git knows no", id="a-command"),
    ],
)
async def test_what_git_does_not_know_is_told_and_nothing_is_asked(repository, rest, why):
    scripted = Scripted()
    front = await talk(repository, scripted, f"/review {rest}")

    assert why in front.after(f"/review {rest}")
    assert scripted.asked == []
    assert sorted(path.name for path in repository.iterdir()) == [".git", "app.py"]


async def test_without_a_repository_there_is_nothing_to_review(tmp_path):
    front = await talk(tmp_path, Scripted(), "/review")

    assert "/review needs a git repository" in front.after("/review")


async def test_a_review_only_reads_and_what_follows_may_write_again(repository):
    def write(name):
        return calls(("Write", {"file_path": f"{repository}/{name}", "content": "x"}))

    touch = calls(("Bash", {"command": "touch made"}), ("Bash", {"command": "git diff main...HEAD"}))
    scripted = Scripted(write("a"), touch, said("One."), write("b"), said("Done."))
    front = await talk(repository, scripted, "/review", "now write")

    assert sorted(path.name for path in repository.iterdir()) == [".git", "app.py", "b"]
    refused, ran = (str(one.turns[-1].parts) for one in scripted.asked[1:3])
    assert "Write was not run: you only read." in refused
    assert "Bash was not run: you only read." in ran
    assert "+two" in ran
    assert "it can only read until it is done" in front.after("/review")


@pytest.mark.parametrize(
    ("key", "words"),
    [pytest.param("i", "read it first", id="improve"), pytest.param("r", "write it anew", id="replace")],
)
async def test_an_agents_file_that_is_there_is_asked_about(tmp_path, key, words):
    (tmp_path / "AGENTS.md").write_text("Old.\n")
    scripted = Scripted(said("Done."))
    front = await talk(tmp_path, scripted, "/init", answers=[key])

    assert front.asked[0] == ("There is an AGENTS.md already.", "irn")
    assert words in asked(scripted)


async def test_an_agents_file_stays_where_the_user_says_so(tmp_path):
    (tmp_path / "AGENTS.md").write_text("Old.\n")
    scripted = Scripted()
    front = await talk(tmp_path, scripted, "/init", answers=["n"])

    assert "AGENTS.md stays as it is." in front.after("/init")
    assert scripted.asked == []


async def test_a_new_agents_file_is_written_by_the_agent(tmp_path):
    write = calls(("Write", {"file_path": f"{tmp_path}/AGENTS.md", "content": "# Project\n"}))
    scripted = Scripted(write, said("Written."))
    front = await talk(tmp_path, scripted, "/init")

    assert (tmp_path / "AGENTS.md").read_text() == "# Project\n"
    assert front.asked == []
    assert "write AGENTS.md in its root" in asked(scripted)


def test_branches_are_completed_also_packed_ones(repository):
    git(repository, "pack-refs", "--all")
    git(repository, "branch", "later")

    assert branches(str(repository)) == ["feature/x", "later", "main"]
