"""find_thread finds earlier conversations of the session's folders, and no others."""

import time

import pytest
from tests.kept_threads import keep, turn
from tests.kept_threads import text as said

from ferrule import Engine
from ferrule.dialects import load_dialect
from ferrule.tools.threads import Item, ThreadFound, ThreadsFound
from ferrule.tools.threads.store import ThreadStore

NOW = time.mktime((2026, 11, 16, 7, 44, 0, 0, 0, -1))


@pytest.fixture
async def engine(tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "added").mkdir()
    earlier = ThreadStore(str(tmp_path / "threads"), clock=lambda: NOW)
    root = str(tmp_path / "workspace")
    keep(earlier, "T-here", root, title="Mend the parser")
    keep(earlier, "T-below", f"{root}/sub", (turn("user", said("a parser below")),))
    keep(earlier, "T-beside", f"{root}side", (turn("user", said("a parser beside")),))
    keep(earlier, "T-child", root, (turn("user", said("a parser of a subagent")),), parent="T-here")
    keep(earlier, "T-added", str(tmp_path / "added"), (turn("user", said("a parser of an added folder")),))
    earlier.close()
    store = ThreadStore(str(tmp_path / "threads"), clock=lambda: NOW)
    store.begin("T-now", workspace=root)
    store.append("T-now", [Item("turn", "user", b"{}", "look for the parser")])
    async with Engine(root, add_dirs=[tmp_path / "added"], dialect="amp", ask=lambda question: False) as opened:
        opened._services.put(ThreadStore, store)
        yield opened
    store.close()


async def test_threads_of_the_sessions_folders_are_found(engine):
    reply = await engine.call("find_thread", query="parser")

    assert reply.ok
    found = {line.split(":")[0] for line in reply.result.splitlines() if line.startswith("T-")}
    assert found == {"T-here", "T-below", "T-added"}


async def test_a_limit_is_kept_and_the_rest_counted(engine):
    reply = await engine.call("find_thread", query="parser", limit=1)

    assert reply.result.count("T-") == 1
    assert reply.result.endswith("2 more; give a larger limit, or more words.")
    refused = await engine.call("find_thread", query="parser", limit=0)
    assert "limit: must be at least 1." in refused.text


async def test_nothing_is_found_in_words(engine):
    assert (await engine.call("find_thread", query="wombat")).result.startswith("No threads found.")


async def test_what_was_left_out_of_the_query_is_a_note(engine):
    reply = await engine.call("find_thread", query="parser after:soon")

    assert any("after:soon is no date" in note for note in reply.notes)


def test_finds_read_like_this():
    says = next(face for face in load_dialect("amp").faces if face.name == "find_thread").says
    outcome = ThreadsFound(
        "x",
        (
            ThreadFound("T-1", "Mend it", "2026-11-16 07:44", 12, "…so x is…", ("/w/a.py", "/w/b.py"), 3, "/w/sub"),
            ThreadFound("T-2", "", "2026-11-15 10:00", 1),
        ),
        5,
    )

    assert says(outcome) == (
        "T-1: Mend it\n2026-11-16 07:44, 12 turns, in /w/sub\n…so x is…\nfiles: /w/a.py, /w/b.py and 3 more\n\n"
        "T-2\n2026-11-15 10:00, 1 turn\n\n"
        "3 more; give a larger limit, or more words."
    )
