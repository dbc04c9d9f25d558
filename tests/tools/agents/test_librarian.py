"""librarian: repositories that the user's settings lend are read, and nothing else of them is possible."""

import os
from typing import Any

import pytest
from tests.rows import each_row
from tests.tools.agents.acting import alone, nobody, opened

from ferrule import Settings
from ferrule.core.access import Access
from ferrule.files.jail import Jail, LentJail, can_be_lent
from ferrule.permissions import Case
from ferrule.settings import LibrarianRepository
from ferrule.settings.layers import LayerFile, merge_layers


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "own.py").write_text("own = 1\n")
    return folder


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "lib.py").write_text("def borrow(): ...\n")
    (folder / ".env").write_text("KEY=hidden\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.py").write_text("x\n")
    return folder


def lending(**paths):
    return Settings(
        repositories={name: LibrarianRepository(path=str(path), about=f"the {name}") for name, path in paths.items()}
    )


async def test_a_lent_repository_is_read_without_a_question(root, library):
    asked: list[Any] = []

    async def look(job, use):
        for name, values in (
            ("Read", {"path": str(library / "src" / "lib.py")}),
            ("Grep", {"pattern": "borrow", "path": str(library)}),
            ("glob", {"filePattern": f"{library}/**/*.py"}),
            ("Read", {"path": "own.py"}),
        ):
            reply = await use(name, **values)
            assert reply.ok, reply
        return "It borrows."

    engine, acting = opened(root, look, settings=lending(lib=library), ask=asked.append)
    async with engine:
        reply = await engine.call("librarian", query="How is it borrowed?", context="For a fix.")
    (job,) = acting.jobs

    assert reply.result == "It borrows."
    assert asked == []
    assert f"- lib: {library} (the lib)" in job.prompt
    assert f"- the workspace itself: {root}" in job.prompt
    assert job.prompt.startswith("How is it borrowed?\n\nWhat it is needed for:\n\nFor a fix.")
    assert set(job.agent.tools) == {"read", "grep", "glob", "list_dir"}


async def test_the_guard_holds_in_a_lent_repository_and_what_was_not_lent_still_asks(root, library, tmp_path):
    asked, replies = [], []

    async def look(job, use):
        replies.append(await use("Read", path=str(library / ".env")))
        replies.append(await use("Grep", pattern="hidden", path=str(library)))
        replies.append(await use("Read", path=str(tmp_path / "elsewhere" / "x.py")))
        replies.append(await use("Read", path=str(library / ".." / "elsewhere" / "x.py")))
        return "no"

    engine, _ = opened(root, look, settings=lending(lib=library), ask=lambda question: asked.append(question.kind))
    async with engine:
        await engine.call("librarian", query="Try.")

    assert replies[0].error.error_code == "reading-secret-file"
    assert "KEY" not in replies[1].text
    assert [reply.ok for reply in replies[2:]] == [False, False]
    assert set(asked) <= {"call", "folder"}
    assert asked


async def test_a_link_out_of_a_lent_repository_leads_nowhere(root, library, tmp_path):
    (library / "link.py").symlink_to(tmp_path / "elsewhere" / "x.py")
    replies = []

    async def look(job, use):
        replies.append(await use("Read", path=str(library / "link.py")))
        return "no"

    engine, _ = opened(root, look, settings=lending(lib=library), ask=lambda _: False)
    async with engine:
        await engine.call("librarian", query="Try.")

    assert not replies[0].ok


async def test_nothing_can_be_written_and_the_session_itself_is_lent_nothing(root, library):
    asked, replies = [], []

    async def reach(job, use):
        replies.append(await use("edit_file", path=str(library / "src" / "lib.py"), old_str="borrow", new_str="x"))
        replies.append(await use("Bash", cmd=f"touch {library}/x"))
        return "no"

    engine, _ = opened(root, reach, settings=lending(lib=library), ask=lambda question: asked.append(question.kind))
    async with engine:
        await engine.call("librarian", query="Try.")
        assert asked == []
        after = await engine.call("Read", path=str(library / "src" / "lib.py"))

    assert [reply.ok for reply in replies] == [False, False]
    assert not after.ok
    assert "folder" in asked or "call" in asked
    assert sorted(os.listdir(library)) == [".env", "src"]


async def test_without_repositories_it_says_how_to_set_them(root):
    engine, _ = opened(root, nobody)
    async with engine:
        reply = await engine.call("librarian", query="Anything?")

    assert reply.error.error_code == "no-repositories"
    assert "[repositories.NAME]" in reply.error.message


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/", "relative"])
async def test_a_repository_that_is_no_folder_is_not_lent(root, library, path):
    async def look(job, use):
        return "ok"

    engine, acting = opened(root, look, settings=lending(lib=library, gone=path))
    async with engine:
        reply = await engine.call("librarian", query="Anything?")
    alone, _ = opened(root, nobody, settings=lending(gone=path))
    async with alone:
        refused = await alone.call("librarian", query="Anything?")

    assert reply.ok, reply
    assert any("gone" in note for note in reply.notes)
    assert "gone" not in acting.jobs[0].prompt
    assert refused.error.error_code == "no-repositories"


async def test_without_a_model_it_says_so(root, library):
    async with alone(root, settings=lending(lib=library)) as engine:
        reply = await engine.call("librarian", query="Anything?")

    assert reply.error.error_code == "no-model"


async def test_an_empty_question_is_refused(root, library):
    engine, _ = opened(root, nobody, settings=lending(lib=library))
    async with engine:
        reply = await engine.call("librarian", query=" ")

    assert reply.error.error_code == "bad-arguments"


def test_a_project_cannot_lend_anything():
    raw = b'[repositories.home]\npath = "/"\n'
    settings = merge_layers([LayerFile("user", "user.toml", b""), LayerFile("project", "project.toml", raw)])

    assert settings.settings.repositories == {}
    assert "a project cannot set repositories" in settings.warnings[0]


def test_a_lent_jail_leaves_the_session_s_own_as_it_was(root, library, tmp_path):
    jail = Jail(str(root))
    lent = LentJail(jail, [str(library), str(root / "inside")])

    assert lent.lent == (str(library),)
    assert lent.holds(str(library / "x"))
    assert not jail.holds(str(library / "x"))
    lent.add(str(tmp_path / "elsewhere"))
    assert not lent.holds(str(tmp_path / "elsewhere"))
    lent.close()
    jail.check(str(root / "own.py"))
    jail.close()


@each_row(
    ("access", "may"),
    [
        pytest.param(Access.read("/lent/a"), True, id="read"),
        pytest.param(Access.read("/lent"), True, id="itself"),
        pytest.param(Access.read("/lentil"), False, id="only-a-prefix"),
        pytest.param(Access.read("/"), False, id="above"),
        pytest.param(Access.write("/lent/a"), False, id="write"),
        pytest.param(Access.restore("/lent/a"), False, id="restore"),
        pytest.param(Access.host("lent"), False, id="host"),
        pytest.param(Access.command("cat /lent/a", "/lent"), False, id="command"),
    ],
)
def test_only_reading_is_lent(access, may):
    assert Case("1", "Read", "read", (access,), lent=("/lent",)).may_read(access) is may


def test_what_can_be_lent_is_a_folder_and_not_all_there_is(library):
    assert can_be_lent(str(library))
    assert not can_be_lent("/")
    assert not can_be_lent(str(library / ".env"))
