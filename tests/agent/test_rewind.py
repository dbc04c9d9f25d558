"""A conversation goes back to before a prompt, and forward again; its prompts keep their numbers all the while."""

import asyncio

import pytest

from ferrule.agent import Spoke, Warned
from ferrule.core.errors import ConfigError
from ferrule.files.journal import Journal
from ferrule.hooks import Hook
from ferrule.models.cues import calls, hangs, said

from .stage import Stage, check_valid, words
from .test_loop import until


def write(name):
    return ("Write", {"file_path": f"${{workspace}}/{name}", "content": f"{name}\n"})


def spoken(stage):
    return [words(turn) for turn in stage.agent.turns]


def prompts(stage):
    return [(one.number, one.text, one.place) for one in stage.agent.talk.past.prompts()]


def entries(stage):
    """The prompt of each write, with the files."""
    journal = stage.session.engine.need(Journal)
    return [(entry.prompt, *(path.rpartition("/")[2] for path in entry.paths)) for entry in journal.entries()]


async def talked(stage, *texts):
    for text in texts:
        await stage.run(text)


async def test_every_write_knows_the_prompt_that_it_was_made_for(tmp_path):
    cues = [calls(write("a")), said("A."), said("Nothing."), calls(write("c")), said("C.")]
    async with Stage(tmp_path, *cues) as stage:
        await talked(stage, "one", "two", "three")

        assert entries(stage) == [(1, "a"), (3, "c")]


async def test_what_a_subagent_writes_is_for_the_prompt_of_its_parent(tmp_path):
    task = ("Task", {"description": "d", "prompt": "Write b.", "subagent_type": "general-purpose"})
    cues = [said("One."), calls(task), calls(write("b")), said("Written."), said("Done.")]
    async with Stage(tmp_path, *cues) as stage:
        await talked(stage, "one", "two")

        assert entries(stage) == [(2, "b")]


async def test_numbers_go_on_after_a_summary_a_rewind_and_another_start(tmp_path):
    cues = [said("One."), said("Two."), said("Sum."), said("Three."), calls(write("d")), said("Four.")]
    async with Stage(tmp_path, *cues) as stage:
        await talked(stage, "one", "two")
        await stage.agent.compact()
        await stage.run("three")
        stage.agent.rewind(3)
        await stage.run("four")
        thread = stage.agent.thread
        assert entries(stage) == [(4, "d")]
    async with Stage(tmp_path, calls(write("e")), said("Five."), resume=thread) as stage:
        await stage.run("five")

        assert entries(stage) == [(4, "d"), (5, "e")]
        assert prompts(stage) == [
            (1, "one", "gone"),
            (2, "two", "gone"),
            (3, "three", "rewound"),
            (4, "four", "here"),
            (5, "five", "here"),
        ]


async def test_a_prompt_that_a_hook_refuses_has_no_number(tmp_path):
    hook = Hook("UserPromptSubmit", function=lambda given: {"decision": "block"} if "not" in given["prompt"] else {})
    async with Stage(tmp_path, said("One."), said("Two."), hooks=[hook]) as stage:
        await talked(stage, "one", "not this", "two")

        assert prompts(stage) == [(1, "one", "here"), (2, "two", "here")]


async def test_no_journal_is_made_for_a_prompt_that_writes_nothing(tmp_path):
    async with Stage(tmp_path, said("One.")) as stage:
        await stage.run("one")

        assert "Journal" not in stage.session.engine._services._made


async def test_a_rewind_drops_the_turns_from_a_prompt_on_and_gives_its_text(tmp_path):
    cues = [said("One."), calls(write("a")), said("Two."), said("Three."), said("Other.")]
    async with Stage(tmp_path, *cues) as stage:
        await talked(stage, "one", "two\nand more", "three")
        full = stage.agent.context_tokens
        text = stage.agent.rewind(2)
        assert (text, spoken(stage)) == ("two\nand more", ["one", "One."])
        assert stage.agent.context_tokens < full
        await stage.run("other")

        assert spoken(stage) == ["one", "One.", "other", "Other."]
        assert [words(turn) for turn in stage.model.asked[-1].turns[1:]] == ["one", "One.", "other"]


async def test_a_rewind_can_be_taken_back_also_in_another_session(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two."), said("Three.")) as stage:
        await talked(stage, "one", "two", "three")
        whole, thread = spoken(stage), stage.agent.thread
        stage.agent.rewind(3)
        stage.agent.rewind(1)
    async with Stage(tmp_path, resume=thread) as stage:
        assert spoken(stage) == []
        assert stage.agent.unrewind()
        assert spoken(stage) == whole[:4]
        assert stage.agent.unrewind()
        assert spoken(stage) == whole
        assert not stage.agent.unrewind()
    async with Stage(tmp_path, resume=thread) as stage:
        assert spoken(stage) == whole


async def test_what_was_said_after_a_rewind_is_not_lost_when_that_is_taken_back(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two."), said("Other.")) as stage:
        await talked(stage, "one", "two")
        stage.agent.rewind(2)
        await stage.run("other")
        thread = stage.agent.thread
        assert stage.agent.unrewind()
        assert spoken(stage) == ["one", "One.", "two", "Two."]
    async with Stage(tmp_path, resume=thread) as stage:
        assert stage.agent.unrewind()

        assert spoken(stage) == ["one", "One.", "other", "Other."]


async def test_a_second_rewind_goes_forward_to_what_the_first_has_left(tmp_path):
    async with Stage(tmp_path, said("One."), said("Two."), said("Three.")) as stage:
        await talked(stage, "one", "two", "three")
        thread = stage.agent.thread
        stage.agent.rewind(1)
        assert stage.agent.rewind(3) == "three"
        assert spoken(stage) == ["one", "One.", "two", "Two."]
    async with Stage(tmp_path, resume=thread) as stage:
        assert spoken(stage) == ["one", "One.", "two", "Two."]
        assert prompts(stage) == [(1, "one", "here"), (2, "two", "here"), (3, "three", "rewound")]


async def test_a_prompt_that_was_summed_up_cannot_be_gone_back_to(tmp_path):
    async with Stage(tmp_path, said("One."), said("Sum."), said("Two.")) as stage:
        await stage.run("one")
        await stage.agent.compact()
        await stage.run("two")
        with pytest.raises(ConfigError, match=r"Prompt 1 was summed up.*Its files can"):
            stage.agent.rewind(1)
        assert stage.agent.rewind(2) == "two"

        assert len(stage.agent.turns) == 1


@pytest.mark.parametrize(("number", "told"), [(0, "count from 1 to 1"), (7, "count from 1 to 1")])
async def test_a_prompt_that_there_is_not_cannot_be_gone_back_to(tmp_path, number, told):
    async with Stage(tmp_path, said("One.")) as stage:
        await stage.run("one")

        with pytest.raises(ConfigError, match=told):
            stage.agent.rewind(number)


async def test_nothing_is_rewound_while_the_agent_works(tmp_path):
    async with Stage(tmp_path, hangs("I will now ")) as stage:
        running = asyncio.create_task(stage.run("Begin."))
        await until(stage, Spoke)
        for rewinding in (lambda: stage.agent.rewind(1), stage.agent.unrewind):
            with pytest.raises(ConfigError, match="at work"):
                rewinding()
        stage.agent.interrupt()
        await running


@pytest.mark.parametrize("again", [False, True], ids=["at once", "in another session"])
async def test_a_model_that_was_interrupted_before_the_prompt_is_told_so_again(tmp_path, again):
    async with Stage(tmp_path, hangs("I will now "), said("Yes."), said("Well.")) as stage:
        running = asyncio.create_task(stage.run("Begin."))
        await until(stage, Spoke)
        stage.agent.interrupt()
        await running
        await stage.run("Go on.")
        assert stage.agent.rewind(2) == "Go on."
        thread = stage.agent.thread
        if not again:
            await stage.run("Go elsewhere.")
            assert "interrupted" in words(stage.agent.turns[-2])
    if again:
        async with Stage(tmp_path, said("Well."), resume=thread) as stage:
            await stage.run("Go elsewhere.")
            assert "interrupted" in words(stage.agent.turns[-2])


async def test_a_conversation_that_is_rewound_stays_valid_for_any_model(tmp_path):
    async with Stage(tmp_path, calls(write("a")), said("A."), calls(write("b")), said("B.")) as stage:
        await talked(stage, "one", "two")
        stage.agent.rewind(2)
        check_valid(stage.agent.turns)
        stage.agent.unrewind()

        check_valid(stage.agent.turns)


async def test_what_checkpoints_leave_out_is_said_once_and_before_a_rewind(tmp_path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "src/__pycache__").mkdir(parents=True)
    cues = [calls(("Bash", {"command": "touch a"})), said("A."), calls(("Bash", {"command": "touch b"})), said("B.")]
    async with Stage(tmp_path, *cues) as stage:
        await talked(stage, "one", "two")
        preview = await stage.session.engine.rewind_preview(1)

    said_of = [event.sentence for event in stage.of(Warned) if "taken back" in event.sentence]
    assert said_of == [
        "Checkpoints leave out node_modules, which tools make again: what commands change there cannot be taken back."
    ]
    assert [path.rpartition("/")[2] for path, _ in preview.left_out] == ["node_modules", "__pycache__"]
