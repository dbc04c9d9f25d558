"""Titles of conversations: who makes them, when, what they cost, and that their failure is nobody's."""

import asyncio
import os
import time

import pytest

from ferrule.agent import threads as thread_title
from ferrule.agent.threads import tidy
from ferrule.models.catalog import small_model
from ferrule.models.cues import said
from ferrule.models.recorder import Scripted
from ferrule.settings import Conversations, KnownModel, ModelHost, Models, Settings
from ferrule.tools.threads.store import ThreadStore
from ferrule.wire import Usage
from tests.cli.recordings import recording as recorded_file

from .stage import Stage


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(thread_title, "PAUSE_SECONDS", 0.0)


def small(tmp_path, text="Mend the 三 parser", **threads):
    """Settings with a small model that says this once."""
    path = recorded_file(tmp_path / "small.jsonl", {"text": text, "usage": {"input": 1000, "output": 10}})
    known = {path: KnownModel(input=10.0, output=10.0)}
    return Settings(models=Models(small=f"scripted:{path}", known=known), threads=Conversations(**threads))


def about(stage):
    store = ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))
    try:
        return store.about(stage.agent.thread)
    finally:
        store.close()


async def titled(stage, by="model"):
    """What is known of the thread, as soon as it has its title."""
    limit = time.monotonic() + 20
    while (found := about(stage)) is None or found.titled_by != by:
        assert time.monotonic() < limit, found
        await asyncio.sleep(0.01)
        await stage.agent.talk.flush()
    return found


async def made(stage):
    """The title is made, if one is to be made."""
    if stage.session._title is not None:
        await stage.session._title.wait()


async def test_the_small_model_names_the_conversation_and_it_is_counted(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two."), settings=small(tmp_path)) as stage:
        await stage.run("please mend it")
        found = await titled(stage)
        spent = stage.agent.spent
        await stage.run("again")  # asks for no other title: the recording has none

    assert found.title == "Mend the 三 parser"
    assert (spent.turns, spent.usage.input, spent.usage.output) == (1, 1000, 10)
    async with Stage(tmp_path, said("Three."), resume="last", settings=small(tmp_path)) as stage:
        assert stage.agent.spent.usage == Usage(1000, 10)
        await stage.run("more")
    assert about(stage).title == "Mend the 三 parser"


async def test_the_users_title_wins_over_that_of_the_model(tmp_path):
    async with Stage(tmp_path, said("One."), settings=small(tmp_path)) as stage:
        await stage.run("please mend it")
        stage.session.rename("My own")
        found = await titled(stage, "user")
        await made(stage)
        await stage.agent.talk.flush()

    assert found.title == about(stage).title == "My own"


@pytest.mark.parametrize("why", ["off", "no small model", "a broken one", "nothing said", "not closed in time"])
async def test_without_a_title_of_the_model_the_first_words_are_the_title(tmp_path, monkeypatch, why):
    settings = small(tmp_path, titles=False) if why == "off" else Settings()
    if why == "a broken one":
        settings = Settings(models=Models(small="scripted:/nowhere/at/all"))
    elif why == "nothing said":
        settings = small(tmp_path, text=" ** \n")
    elif why == "not closed in time":
        settings = small(tmp_path)
        monkeypatch.setattr(thread_title, "PAUSE_SECONDS", 600.0)
    async with Stage(tmp_path, said("One."), settings=settings) as stage:
        ended = await stage.run("please mend it\nsoon")
        if why != "not closed in time":
            await made(stage)

    assert ended.reason == "end"
    assert (about(stage).title, about(stage).titled_by) == ("please mend it", "")


async def test_a_replayed_and_a_recorded_conversation_ask_for_no_title(tmp_path):
    tape = str(tmp_path / "tape.jsonl")
    for more in ({"model": Scripted(said("One.")), "record": tape}, {"model": f"scripted:{tape}"}):
        async with Stage(tmp_path, **more, settings=small(tmp_path)) as stage:
            await stage.run("please mend it")

            assert stage.session._title is None


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Mend the parser", "Mend the parser"),
        ('"Mend the parser."', "Mend the parser"),
        ("# Title: **Mend   the parser**\n\nmore", "Mend the parser"),
        ("<think>\nwhat now\n</think>\nMend it", "Mend it"),
        ("<think>never ends", ""),
        ("\n  \n", ""),
        ("a\x1b[2Jb", "ab"),
        ("x" * 200, "x" * 79 + "…"),
    ],
)
def test_a_title_is_one_short_harmless_line(said, title):
    assert tidy(said) == title


@pytest.mark.parametrize(
    ("name", "environment", "small"),
    [
        ("anthropic:claude-opus-5-5", {}, "anthropic:claude-haiku-5-5"),
        ("claude-opus-5-5", {}, "anthropic:claude-haiku-5-5"),
        ("anthropic:claude-opus-5-5", {"ANTHROPIC_BASE_URL": "https://gate.example"}, ""),
        ("ollama:qwen3", {}, ""),
        ("scripted:a.jsonl", {}, ""),
        ("own:big", {}, ""),
    ],
)
def test_the_small_model_of_a_host_is_known_where_the_host_is_where_it_belongs(name, environment, small):
    models = Models(hosts={"own": ModelHost(url="https://own.example/v1")})

    assert small_model(name, models, environment) == small
