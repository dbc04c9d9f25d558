"""finder: a subagent that only looks, or the ranked index where there is no model; and how well the index answers."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.tools.agents.acting import alone, done, opened

from ferrule import Call
from ferrule.core.call import Event, Progress
from ferrule.core.errors import ToolFailure
from ferrule.files import search
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.settings import LimitSettings, Settings
from ferrule.tools.agents.finder import RankedFiles

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "login.py").write_text(
        '"""Logging in."""\n\n\ndef count_failed_login(user):\n    user.failed += 1\n'
    )
    (folder / "src" / "page.py").write_text("def render(page):\n    return page\n")
    (folder / ".gitignore").write_text("build/\n")
    (folder / "build").mkdir()
    (folder / "build" / "login.py").write_text("def count_failed_login(): ...\n")
    (folder / ".env").write_text("FAILED_LOGIN=1\n")
    return folder


@pytest.mark.contract("permission.finder")
async def test_without_a_model_the_index_answers_and_nobody_is_asked_for_leave(root):
    async with alone(root) as engine:
        reply = await engine.call("finder", query="where are failed logins counted?")

    assert reply.ok, reply
    first, *_ = reply.result.split("\n")
    assert first == "src/login.py#L4-L5: def count_failed_login(user):"
    assert "build" not in reply.result
    assert ".env" not in reply.result
    assert any("No model was asked" in note for note in reply.notes)


async def test_a_subagent_that_only_looks_is_asked_where_there_is_a_model(root):
    async def look(job, use):
        assert (await use("Grep", pattern="failed")).ok
        assert (await use("edit_file", path="src/page.py", old_str="page", new_str="x")).status != "done"
        assert (await use("Bash", cmd="touch x")).status != "done"
        return "src/login.py#L4-L5: counts them"

    engine, acting = opened(root, look)
    async with engine:
        reply = await engine.call("finder", query="where are failed logins counted?")
    (job,) = acting.jobs

    assert reply.result == "src/login.py#L4-L5: counts them"
    assert (job.agent.name, job.agent.role, job.agent.tools) == ("finder", "finder", ("read", "glob", "grep"))
    assert job.prompt == "where are failed logins counted?"
    assert "8 or more calls" in job.agent.system
    assert any("2 turns and 110 tokens" in note for note in reply.notes)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(done("", reason="error", why="The model is overloaded.")._replace(status="failed"), id="failed"),
        pytest.param(ToolFailure("The subagent cannot be run: overloaded.", code="no-model"), id="refused"),
        pytest.param(done("  "), id="empty"),
    ],
)
async def test_the_index_answers_where_the_subagent_could_not(root, end):
    async def fail(job, use):
        if isinstance(end, Exception):
            raise end
        return end

    engine, _ = opened(root, fail)
    async with engine:
        reply = await engine.call("finder", query="failed login")

    assert reply.result.startswith("src/login.py#L")
    assert any("ranked by their words instead" in note for note in reply.notes)


async def test_an_answer_that_was_cut_short_is_given_with_a_note(root):
    async def cut(job, use):
        return done("src/login.py#L4-L5: so far", reason="turns", why="It has used all of its turns.")

    engine, _ = opened(root, cut)
    async with engine:
        reply = await engine.call("finder", query="failed login")

    assert reply.result == "src/login.py#L4-L5: so far"
    assert "The finder was not done: It has used all of its turns." in reply.notes


async def test_what_changes_is_found_by_the_next_question(root):
    async with alone(root) as engine:
        before = await engine.call("finder", query="zebra")
        (root / "src" / "zoo.py").write_text("def feed_zebra(): ...\n")
        after = await engine.call("finder", query="zebra")
        (root / "src" / "zoo.py").unlink()
        gone = await engine.call("finder", query="zebra")

    assert before.result.startswith("Nothing has the words")
    assert after.result == "src/zoo.py#L1-L1: def feed_zebra(): ..."
    assert gone.result == before.result


async def test_folders_that_were_added_are_looked_through_too(root, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "zoo.py").write_text("def feed_zebra(): ...\n")
    async with alone(root, add_dirs=[tmp_path / "more"]) as engine:
        reply = await engine.call("finder", query="zebra")

    assert reply.result.startswith(f"{tmp_path}/more/zoo.py#L1-L1")


async def test_many_questions_at_once_share_one_index(root):
    async with alone(root) as engine:
        replies = await engine.run([Call("finder", {"query": "failed login"}) for _ in range(8)])

    assert len({reply.result for reply in replies}) == 1
    assert replies[0].ok


@pytest.mark.parametrize("moment", [0, 1, 3, 8, 20, 60])
async def test_it_can_be_cancelled_at_any_moment_and_asked_again(root, moment):
    async with asyncio.timeout(60), alone(root) as engine:
        running = asyncio.create_task(engine.run([Call("finder", {"query": "failed login"})]))
        for _ in range(moment):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        reply = await engine.call("finder", query="failed login")

    assert reply.result.startswith("src/login.py")


async def test_the_time_limit_does_not_hold_and_progress_is_told(root):
    for number in range(300):
        (root / "src" / f"m{number}.py").write_text("x = 1\n")
    heard: list[Event] = []
    async with alone(root, settings=Settings(limits=LimitSettings(seconds=0.001)), on_event=heard.append) as engine:
        reply = await engine.call("finder", query="failed login")

    assert reply.ok, reply
    assert "250 of 302 files looked at" in [event.message for event in heard if isinstance(event, Progress)]


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_an_empty_question_is_refused(root, query):
    async with alone(root) as engine:
        reply = await engine.call("finder", query=query)

    assert reply.error.error_code == "bad-arguments"


async def test_a_missing_ripgrep_is_said(root, monkeypatch):
    monkeypatch.setattr("ferrule.files.search.find_rg", lambda **_: None)
    monkeypatch.setattr("ferrule.tools.search._find_rg", lambda _: None)
    async with alone(root) as engine:
        reply = await engine.call("finder", query="failed login")

    assert reply.error.error_code == "no-ripgrep"


async def test_a_rule_that_denies_reading_holds_for_the_index(root):
    (root / ".claude").mkdir()
    rules = root.parent / "rules.json"
    rules.write_text('{"permissions": {"deny": ["Read(./src/login.py)"]}}')
    async with alone(root, rules=rules) as engine:
        reply = await engine.call("finder", query="failed login")

    assert "login.py" not in reply.text


QUESTIONS = {
    "where are symlinks resolved": ("files/jail.py", "system/folder.py"),
    "how is a tool call cancelled": ("ferrule/flow.py", "schedule.py", "engine/__init__.py"),
    "where is the undo journal written": ("files/journal.py", "checkpoints/undo.py"),
    "how are secret files kept from being read": ("files/guard.py",),
    "where is ripgrep found": ("files/search.py",),
    "how does an edit match text that is indented otherwise": ("files/match.py",),
    "where is the sandbox profile made": ("sandbox/confinement.py", "sandbox/__init__.py"),
    "which code decides whether a shell command only reads": ("shell/judge.py", "policy.py"),
    "how are two calls that touch the same file kept apart": ("core/access.py", "schedule.py"),
    "where are unified diffs produced": ("files/diff.py",),
    "how are settings of project and user merged": ("ferrule/settings/layers.py",),
    "where is the event stream of anthropic decoded": ("wire/anthropic",),
    "how are processes killed when a command times out": ("system/command.py", "system/tree.py"),
    "where are deferred tools searched": ("registry/search.py", "tools/meta.py"),
    "how is output truncated for the model": ("output/bounds.py",),
    "where are notebooks edited cell by cell": ("files/notebook.py",),
    "how does the user approve an mcp server": ("sources/mcp", "cli/mcp.py"),
    "where are control characters stripped from output": ("output/__init__.py", "system/stream.py"),
    "parsing of skill frontmatter": ("files/frontmatter.py", "tools/skills/__init__.py"),
    "which permission modes exist": ("permissions/__init__.py",),
    "did you mean suggestions for misspelled names": ("core/errors.py", "registry/foreign.py", "arguments/schema.py"),
    "tokens estimated": ("registry/dynamic.py",),
    "where is the formatter of a project chosen": ("tools/files/format.py", "files/format.py"),
    "how are environment variables scrubbed before a command runs": ("system/environment.py",),
}
"""A question about this very repository → the files that answer it."""
ENOUGH = 0.8


async def test_the_index_answers_most_questions_about_this_repository_among_its_first_three():
    program = search.find_rg()
    assert program is not None
    folder = str(REPOSITORY)
    jail = Jail(folder)
    try:
        files = RankedFiles(jail, Guard((), jail))
        names = await search.files(program, folder, hidden=False)
        # This table would be the best answer to all of them.
        files.refresh({folder: [name for name in names if name != os.path.relpath(__file__, folder)]})
        first = {query: [spot.path for spot in files.search(query, 3)] for query in QUESTIONS}
    finally:
        jail.close()
    missed = {
        query: first[query]
        for query, answers in QUESTIONS.items()
        if not any(answer in path for answer in answers for path in first[query])
    }

    assert len(missed) <= (1 - ENOUGH) * len(QUESTIONS), missed
