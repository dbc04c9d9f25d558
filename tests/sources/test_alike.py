"""The same tool from every source behaves the same in a session: advertised, called, refused, bounded, and stopped."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.sources.alikes import ROWS, SECONDS, WORDS, Alike

from ferrule import Call, Engine
from ferrule.core.call import Blocked, Done, Prepared, Progress, Started
from ferrule.core.tool import GENERAL_LIMIT_BYTES
from ferrule.dialects import FAMILIES
from ferrule.settings import Permissions

UNICODE = "naïve Größe 数 🦀 e\u0301 'quoted' \"twice\" $HOME `x` \\ a=b: c"


@pytest.fixture(params=ROWS, ids=lambda row: row.id)
def alike(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Alike:
    return Alike(request.param, tmp_path, monkeypatch)


@asynccontextmanager
async def session(alike: Alike, **more: Any) -> AsyncIterator[Engine]:
    """A session that knows the tool, and has nothing to complain about."""
    async with asyncio.timeout(SECONDS), alike.engine(**more) as engine:
        await engine.connect()
        assert engine.warnings == ()
        yield engine


def named(engine: Engine, name: str) -> list[dict[str, Any]]:
    return [definition for definition in engine.definitions() if definition["name"] == name]


async def test_it_is_advertised_with_its_name_its_words_and_its_schema(alike: Alike) -> None:
    async with session(alike) as engine:
        (told,) = named(engine, alike.row.name)
        section = engine.section()
    schema = told["inputSchema"]
    assert told["description"] == WORDS
    assert schema["type"] == "object"
    assert {name: about["type"] for name, about in schema["properties"].items()} == alike.row.schema
    assert tuple(schema.get("required", ())) == alike.row.required
    assert f"\n{alike.row.name}: {WORDS}\n" in section
    assert (f"## {alike.row.name}\nCount before you cut." in section) is alike.row.guidance


@pytest.mark.parametrize(
    ("text", "unique", "count"),
    [
        pytest.param("one two two", False, 3, id="plain"),
        pytest.param("one two two", True, 2, id="optional"),
        pytest.param(UNICODE, False, 12, id="unicode"),
        pytest.param("two\nlines:\n\n\tand a tab", False, 5, id="lines"),
    ],
)
async def test_a_call_gives_the_same_text(alike: Alike, text: str, unique: bool, count: int) -> None:
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name, **alike.input(text, **({"unique": True} if unique else {})))
    assert (reply.status, reply.text, reply.notes) == ("done", f"{count} words: {text}", ())


async def test_a_missing_argument_is_named(alike: Alike) -> None:
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name)
    if not alike.row.required:
        assert (reply.status, reply.text) == ("done", alike.row.without)
        return
    assert reply.status == "error"
    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"
    assert "text" in reply.error.message
    assert alike.questions == []
    assert not any(isinstance(event, Started) for event in alike.events)


async def test_an_argument_that_nearly_fits_is_mended_and_that_is_said(alike: Alike) -> None:
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name, **alike.row.near)
    assert reply.status == "done", reply
    assert reply.text.startswith("1 words: ")
    (note,) = reply.notes
    assert list(alike.row.near)[-1] in note


async def test_an_argument_that_nobody_knows_is_what_the_schema_makes_of_it(alike: Alike) -> None:
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name, **alike.input("one"), extra=1)
    if alike.row.extra == "refused":
        assert (reply.status, reply.error and reply.error.error_code) == ("error", "bad-arguments")
        assert "extra" in reply.text
        return
    assert (reply.status, reply.text) == ("done", "1 words: one")
    assert len([note for note in reply.notes if "extra" in note]) == (alike.row.extra == "noted")


async def test_what_the_tool_says_of_its_failure_is_the_error(alike: Alike) -> None:
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name, **alike.input("fail now"))
    assert reply.status == "error"
    assert reply.error is not None
    assert reply.error.message.startswith("I cannot count “that”.")
    assert reply.error.error_code == alike.row.code


async def test_a_long_text_goes_both_ways_whole(alike: Alike) -> None:
    text = ("wörter " * 12_000).strip()
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name, **alike.input(text))
    assert (reply.status, reply.text, reply.output_id) == ("done", f"12000 words: {text}", None)


async def test_what_is_too_long_is_cut_and_kept_whole(alike: Alike) -> None:
    text = ("wörter " * 15_000).strip()
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name, **alike.input(text))
        assert reply.status == "done"
        assert len(reply.text.encode()) < GENERAL_LIMIT_BYTES + 200
        assert reply.text.startswith("15000 words: wörter wörter")
        assert reply.output_id is not None
        assert any(reply.output_id in note for note in reply.notes)
        kept = await engine.output(reply.output_id)
    assert kept.read(limit_bytes=1 << 20).text.rstrip("\n") == f"15000 words: {text}"


async def test_control_characters_do_not_reach_the_reply(alike: Alike) -> None:
    async with session(alike) as engine:
        reply = await engine.call(alike.row.name, **alike.input("a \x1b[31mred\x1b[0m \x07bell\x9b1m \u202eback"))
    assert reply.status == "done", reply
    assert reply.text == "4 words: a red bell back"


async def test_the_user_is_asked_and_a_no_is_their_no(alike: Alike) -> None:
    async with session(alike, answer=False) as engine:
        reply = await engine.call(alike.row.name, **alike.input("one"))
    assert (reply.status, reply.error and reply.error.error_code) == ("rejected-by-user", "not-allowed")
    (question,) = alike.questions
    assert (question.kind, question.name) == ("call", alike.row.name)
    assert not any(isinstance(event, Started) for event in alike.events)


async def test_a_rule_allows_it_without_a_question(alike: Alike) -> None:
    async with session(alike, answer=False, rules=Permissions(allow=(alike.row.name,))) as engine:
        reply = await engine.call(alike.row.name, **alike.input("one"))
    assert (reply.text, alike.questions) == ("1 words: one", [])


async def test_a_rule_that_denies_takes_it_away(alike: Alike) -> None:
    async with session(alike, rules=Permissions(deny=(alike.row.name,))) as engine:
        assert named(engine, alike.row.name) == []
        assert f"\n{alike.row.name}: " not in engine.section()
        reply = await engine.call(alike.row.name, **alike.input("one"))
    assert (reply.status, reply.error and reply.error.error_code) == ("rejected-by-user", "denied-by-rule")
    assert alike.questions == []


async def test_the_events_tell_the_call_s_life_under_its_id(alike: Alike) -> None:
    async with session(alike) as engine:
        stream = engine.events()
        (reply,) = await engine.run([Call(alike.row.name, alike.input("one two"), "mine")])
    heard = [event async for event in stream if event.id == "mine"]
    kinds = [type(event) for event in heard if not isinstance(event, Progress)]
    assert kinds == [Prepared, Blocked, Started, Done]
    assert {event.name for event in heard} == {alike.row.name}
    (prepared, *_, done) = heard
    assert isinstance(prepared, Prepared)
    assert isinstance(done, Done)
    assert "one two" in str(prepared.input)
    assert done.reply == reply
    assert (reply.id, reply.name) == ("mine", alike.row.name)


async def hanging(alike: Alike, engine: Engine, release: Path) -> "asyncio.Task[Any]":
    """A call that will not end by itself, once its body runs."""
    call = Call(alike.row.name, alike.input(f"hang {release}"), "hung")
    running = asyncio.create_task(engine.run([call]))
    kind = Progress if alike.row.progresses else Started
    await alike.until(lambda: any(isinstance(event, kind) and event.id == "hung" for event in alike.events))
    return running


async def over(alike: Alike, engine: Engine, release: Path) -> None:
    """What must be true of the body of a call that has its answer; and the next call works."""
    if alike.row.body == "process":
        assert alike.processes() == []
    elif alike.row.body == "server":
        assert len(alike.processes()) == 1
    again = await engine.call(alike.row.name, **alike.input("again"))
    assert again.text == "1 words: again"
    if alike.row.body == "thread":
        # Nothing can end it, so it is still there; what it returns at last harms nobody.
        told = len([event for event in alike.events if event.id == "hung"])
        release.touch()
        again = await engine.call(alike.row.name, **alike.input("again"))
        assert again.text == "1 words: again"
        assert len([event for event in alike.events if event.id == "hung"]) == told


async def test_a_cancelled_call_ends_and_leaves_no_process(alike: Alike, tmp_path: Path) -> None:
    release = tmp_path / "release"
    async with session(alike, seconds=10 * SECONDS) as engine:
        running = await hanging(alike, engine, release)
        engine.cancel()
        (reply,) = await running
        assert reply.status == "cancelled"
        await over(alike, engine, release)
    assert alike.processes() == []


async def test_a_time_limit_ends_it(alike: Alike, tmp_path: Path) -> None:
    release = tmp_path / "release"
    async with session(alike, seconds=0.5) as engine:
        reply = await engine.call(alike.row.name, **alike.input(f"hang {release}"))
        assert reply.status == "error"
        assert reply.error is not None
        assert reply.error.error_code == "timed-out"
        assert reply.error.message == "Tool execution timed out after 0.5 seconds"
        if alike.row.body == "process":
            assert alike.processes() == []
        release.touch()
    assert alike.processes() == []


def guests() -> set[threading.Thread]:
    """The threads of tools that run in this process."""
    return {thread for thread in threading.enumerate() if thread.name == "ferrule-guest"}


async def test_closing_the_session_ends_what_runs(alike: Alike, tmp_path: Path) -> None:
    release, before = tmp_path / "release", guests()
    async with session(alike, seconds=10 * SECONDS) as engine:
        running = await hanging(alike, engine, release)
    (reply,) = await running
    assert reply.status == "cancelled"
    assert alike.processes() == []
    assert bool(guests() - before) or alike.row.body != "thread"
    release.touch()
    await alike.until(lambda: not guests() - before)


async def test_two_calls_of_one_message_get_their_own_answers(alike: Alike) -> None:
    async with session(alike) as engine:
        replies = await engine.run([Call(alike.row.name, alike.input("a " * count)) for count in (1, 2, 3)])
    assert [reply.text for reply in replies] == ["1 words: a ", "2 words: a a ", "3 words: a a a "]


async def test_a_crash_harms_only_its_own_call(alike: Alike) -> None:
    async with session(alike) as engine:
        calls = [Call(alike.row.name, alike.input(text), text) for text in ("before", "crash", "after")]
        before, crashed, after = await engine.run(calls)
        again = await engine.call(alike.row.name, **alike.input("again"))
    assert (before.text, after.text, again.text) == ("1 words: before", "1 words: after", "1 words: again")
    assert crashed.status == "error"
    assert alike.row.crashed in crashed.text


async def test_it_is_called_the_same_in_every_family_s_session(alike: Alike) -> None:
    for family in FAMILIES:
        async with session(alike, dialect=family) as engine:
            shown = alike.row.short if family == "wayland" and alike.row.short else alike.row.name
            assert len(named(engine, shown)) == 1, family
            for name in {shown, alike.row.name}:
                reply = await engine.call(name, **alike.input("one two", unique=True))
                assert (reply.status, reply.text, reply.notes) == ("done", "2 words: one two", ()), family
