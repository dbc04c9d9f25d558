"""read_thread gives a conversation as text, or the part that serves a goal; one of elsewhere only with a yes."""

import re
import time

import pytest
from tests.kept_threads import PICTURE, TALK, keep, result, text, turn, use
from tests.tools.plan.planned import planning

from ferrule import Engine
from ferrule.tools.threads import Item, messages, render, select
from ferrule.tools.threads.store import ThreadStore

ID = "T-5928a90d-d53b-488f-a829-4e36442142ee"
NOW = time.mktime((2026, 11, 16, 7, 44, 0, 0, 0, -1))


@pytest.fixture
def store(tmp_path):
    made = ThreadStore(str(tmp_path / "threads"), clock=lambda: NOW)
    yield made
    made.close()


@pytest.fixture
def asked():
    return []


@pytest.fixture
async def engine(tmp_path, store, asked):
    (tmp_path / "workspace").mkdir()

    def ask(question):
        asked.append(question.summary)
        return "yes please" in question.summary

    async with Engine(tmp_path / "workspace", dialect="amp", ask=ask) as opened:
        opened._services.put(ThreadStore, store)
        yield opened


async def test_a_thread_reads_like_this(engine, root, store, golden, asked):
    keep(store, ID, str(root), model="anthropic:x", title="Why does parse_query fail?")

    reply = await engine.call("read_thread", threadID=f"https://example.com/threads/{ID}", goal="the bug")
    assert reply.ok, reply
    assert asked == []
    golden.check("threads/read.txt", reply.result.replace(str(root), "/w"))
    assert PICTURE[:40] not in reply.result
    assert "secret thoughts" not in reply.result


@pytest.mark.contract("permission.threads")
@pytest.mark.parametrize("name", [ID, f"@{ID}", "T-5928a90d", f"https://example.com/t/{ID}?x=1"])
async def test_nobody_is_asked_about_a_thread_of_the_workspace_or_below(engine, root, store, asked, name):
    keep(store, ID, str(root / "sub"))

    reply = await engine.call("read_thread", threadID=name, goal="x")
    assert reply.ok, reply
    assert (await engine.call("find_thread", query="x")).ok
    assert asked == []


async def test_nobody_is_asked_about_one_of_elsewhere_in_plan_mode_and_that_is_what_is_said(engine, root, store, asked):
    keep(store, ID, f"{root}-other", title="yes please")
    keep(store, "T-00001111", str(root))
    planning(engine).enter()

    refused = await engine.call("read_thread", threadID=ID, goal="x")
    assert "nothing more is asked for in plan mode" in refused.text
    assert (await engine.call("read_thread", threadID="T-00001111", goal="x")).ok
    assert asked == []


async def test_a_thread_of_another_workspace_needs_a_yes(engine, root, store, asked):
    keep(store, ID, f"{root}-other", title="no thanks")
    keep(store, "T-00001111", f"{root}-other", title="yes please")

    refused = await engine.call("read_thread", threadID=ID, goal="x")
    assert not refused.ok
    assert f"is about another workspace, {root}-other, and the user did not let it be read" in refused.text
    assert "parse_query" not in refused.text
    allowed = await engine.call("read_thread", threadID="T-00001111", goal="x")
    assert allowed.ok
    assert asked == [
        f"read the thread {ID} of another workspace, {root}-other: no thanks",
        f"read the thread T-00001111 of another workspace, {root}-other: yes please",
    ]


async def test_nobody_to_ask_means_no(tmp_path, store):
    (tmp_path / "workspace").mkdir()
    keep(store, ID, "")
    async with Engine(tmp_path / "workspace", dialect="amp") as engine:
        engine._services.put(ThreadStore, store)
        reply = await engine.call("read_thread", threadID=ID, goal="x")

    assert not reply.ok
    assert "an unknown folder" in reply.text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("T-99999999", "There is no thread T-99999999. Look for it with find_thread.", id="none"),
        pytest.param("the last one", "An id looks like T-5928a90d", id="no-id"),
        pytest.param("T-5928", "T-5928 is the beginning of several ids: ", id="several"),
        pytest.param(" ", "threadID: it is empty", id="empty"),
    ],
)
async def test_a_thread_that_is_not_meant_is_refused(engine, root, store, name, why):
    keep(store, ID, str(root))
    keep(store, "T-59280000", str(root))

    reply = await engine.call("read_thread", threadID=name, goal="x")
    assert not reply.ok
    assert why in reply.text


async def test_a_store_that_cannot_be_used_is_a_failure_in_words(tmp_path):
    (tmp_path / "workspace").mkdir()
    folder = tmp_path / "threads"
    (folder / "threads.db").mkdir(parents=True)
    async with Engine(tmp_path / "workspace", dialect="amp") as engine:
        engine._services.put(ThreadStore, ThreadStore(str(folder)))
        for name, values in (("read_thread", {"threadID": ID, "goal": "x"}), ("find_thread", {"query": "x"})):
            reply = await engine.call(name, **values)
            assert not reply.ok
            assert "Go on without earlier threads" in reply.text


def long_talk() -> list[Item]:
    """80 messages, one of them about badgers."""
    found = [turn("user", text("The very first prompt."))]
    for number in range(78):
        about = "the badger sleeps here" if number == 40 else f"some other words {number}"
        found.append(turn("assistant" if number % 2 == 0 else "user", text(f"{about} " + "filler " * 100)))
    return [*found, turn("assistant", text("The final answer."))]


def test_of_a_long_thread_the_goal_decides():
    chosen = select(messages(long_talk()), "What do badgers or a badger do?", limit_chars=4_000)

    assert len(chosen.text) < 4_500
    assert "The very first prompt." in chosen.text
    assert "the badger sleeps here" in chosen.text
    assert chosen.text.endswith("The final answer.")
    assert chosen.total == 80
    assert chosen.shown < 10
    assert "[… messages 2-41 left out …]" in chosen.text
    assert chosen.left_out.startswith("2-41, ")


def test_messages_that_the_goal_names_come_first():
    chosen = select(messages(long_talk()), "The badger, and messages 60-61 and message 7", limit_chars=4_000)

    assert {f"[{number}] " in chosen.text for number in (7, 60, 61)} == {True}
    assert "The very first prompt." in chosen.text


@pytest.mark.parametrize(
    ("goal", "numbers"),
    [
        ("messages 60-61", [60, 61]),
        ("Give me messages 60-61 and message 7, please", [7, 60, 61]),
        ("messages 2, 4-5, 9", [2, 4, 5, 9]),
        ("messages 2, 4 to 5 and 9", [2, 4, 5, 9]),
        ("turns #3 & 5, and 8-9", [3, 5, 8, 9]),
        ("message 3\nmessage 4", [3, 4]),
    ],
)
def test_a_goal_that_only_names_messages_brings_exactly_those(goal, numbers):
    chosen = select(messages(long_talk()), goal, limit_chars=4_000)

    assert [int(one) for one in re.findall(r"(?m)^\[([0-9]+)\] ", chosen.text)] == numbers


def test_what_was_left_out_can_be_asked_for_in_the_words_that_name_it():
    said = messages(long_talk())
    left_out = select(said, "badger", limit_chars=4_000).left_out
    chosen = select(said, f"messages {left_out}", limit_chars=4_000)

    assert chosen.shown > 3
    assert "the badger sleeps here" not in chosen.text


async def test_the_end_of_a_long_thread_is_there_in_every_script(engine, root, store):
    said = [turn("user" if at % 2 == 0 else "assistant", text(f"{'東京タワー' * 80} {at}")) for at in range(200)]
    store.begin(ID, workspace=str(root), title="x")
    store.append(ID, said)

    reply = await engine.call("read_thread", threadID=ID, goal="東京")
    assert reply.output_id is None
    assert "タワー 199\n" in reply.text


@pytest.mark.parametrize(
    "goal", ["", "?!", "messages 999999999-999999999", "messages 9-2", "日本語 \ud800", "x" * 9_000]
)
def test_any_goal_is_one(goal):
    chosen = select(messages(long_talk()), goal, limit_chars=4_000)

    assert chosen.shown
    assert len(chosen.text) < 4_500


def test_a_long_message_keeps_its_beginning_and_its_end():
    (only,) = messages([turn("assistant", text("begin " + "x" * 50_000 + " end"))])
    chosen = select([only, *messages(long_talk())], "begin", limit_chars=20_000)

    assert "begin xxx" in chosen.text
    assert "characters left out …]" in chosen.text
    assert "xxx end" in chosen.text


def test_many_calls_are_cut_too():
    (only,) = messages([turn("assistant", *(use(number, "Read", path="x" * 300) for number in range(500)))])
    chosen = select([only], "x", limit_chars=10_000)

    assert len(chosen.text) < 10_000
    assert "characters left out" in chosen.text


def test_in_full_a_call_has_all_that_came_back():
    read = messages(TALK)[1]

    assert "    2:     return text[0]" in render(read, full=True)
    assert '- Bash {"cmd":"pytest -q"} → failed:\n    exit code 1' in render(read, full=True)


def test_a_body_may_be_anything():
    bodies = [b"", b"nope", b"[]", b"7", b'{"parts": {}}', b'{"parts": [[1], {"type": "result", "id": 7}]}']
    found = messages([Item("turn", "user", body) for body in bodies])

    assert [message.text for message in found] == ["[This message could not be read.]"] * 2
    assert messages([turn("user", result(1, "alone"))]) == []
