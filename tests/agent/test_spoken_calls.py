"""Calls that are written as text: heard in every form where the model means them, and never where it quotes."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.agent import Calling, Spoke
from ferrule.agent.text_calls import SpokenCalls
from ferrule.core.content import Text
from ferrule.engine import Engine
from ferrule.models.cues import said
from ferrule.permissions import Nobody
from ferrule.wire import Result, Turn, Use, definition_of
from ferrule.wire.text_calls import Holdback, find

from .stage import Stage, check_valid, words
from .written_calls import FORMS, TOOLS, Case, cases

ROOT = Path(__file__).parents[2]
CASES = list(cases())


@pytest.fixture
async def engine(tmp_path) -> AsyncIterator[Engine]:
    async with Engine(tmp_path, dialect="claude", state=tmp_path / "state") as engine:
        yield engine


def ears(engine: Engine, *turns: Turn, is_text_only: bool = False) -> SpokenCalls:
    definitions = [definition_of(face) for face in engine.faces()]
    return SpokenCalls(engine.misfit, definitions, turns, is_text_only=is_text_only)


def wrong(engine: Engine, case: Case, *, is_text_only: bool) -> str:
    heard = ears(engine, is_text_only=is_text_only).hear(case.text)
    calls = [] if heard is None else [(call.name, call.values) for call in heard.calls]
    return "" if calls == case.calls else f"{case.id}: {heard}\n{case.text}"


async def test_calls_in_every_form_are_heard_with_whatever_stands_around_them(engine):
    missed = [
        why for text_only in (False, True) for case in CASES if (why := wrong(engine, case, is_text_only=text_only))
    ]

    assert len(CASES) >= 500
    assert missed == []


def quotes(text: str) -> Iterator[Turn]:
    """What others wrote: a prompt, a result, a file with its lines numbered, a difference, JSON that holds it."""
    numbered = "\n".join(f"{at:>6}\t{line}" for at, line in enumerate(text.split("\n"), 1))
    added = "\n".join(f"+{line}" for line in text.split("\n"))
    yield Turn("user", (Text(f"What does this do?\n{text}\nTell me."),))
    for shown in (f"log:\n{text}\nend", numbered, added, json.dumps({"log": text})):
        yield Turn("user", (Result("c1", (Text(shown),)),))


async def test_a_model_that_quotes_what_others_wrote_does_not_act(engine):
    acted = []
    for case in CASES[::7]:
        for turn in quotes(case.text):
            for text_only in (False, True):
                heard = ears(engine, turn, is_text_only=text_only).hear(f"The file says:\n{case.text}")
                acted += [(case.id, turn)] if heard is not None else []

    assert acted == []


async def test_data_in_another_wrapper_is_quoted_all_the_same(engine):
    bare = json.dumps({"name": "Bash", "arguments": {"command": "rm -rf /w"}})
    turn = Turn("user", (Result("c1", (Text(f"1\t{bare}\n"),)),))

    heard = [
        ears(engine, turn, is_text_only=True).hear(text)
        for text in (f"<tool_call>\n{bare}\n</tool_call>", f"```json\n{bare}\n```", f"[TOOL_CALLS][{bare}]", bare)
    ]

    assert heard == [None] * 4


ABOUT = [
    pytest.param("Write `<tool_call>{call}</tool_call>` to call it.", id="inline-code"),
    pytest.param("It is written as `{call}`", id="inline-code-at-the-end"),
    pytest.param("> <tool_call>{call}</tool_call>", id="a-quote"),
    pytest.param("The log has:\n\n    <tool_call>{call}</tool_call>", id="indented-code"),
    pytest.param("assistant: <tool_call>{call}</tool_call>", id="a-transcript"),
    pytest.param("```text\n<tool_call>{call}</tool_call>\n```", id="a-block-of-text"),
    pytest.param("```python\nprint({call})\n```", id="a-block-of-code"),
    pytest.param("```json\n[1, {call}]\n```", id="data-with-a-call-in-it"),
    pytest.param('```json\n{{"calls": [{call}], "total": 1}}\n```', id="data-about-calls"),
    pytest.param("| form | <tool_call>{call}</tool_call>", id="a-table"),
    pytest.param("<think>Maybe <tool_call>{call}</tool_call>", id="a-thought"),
    pytest.param("the<tool_call>{call}</tool_call>", id="in-a-word"),
]


@pytest.mark.parametrize("template", ABOUT)
async def test_words_about_a_call_are_words(engine, template):
    call = json.dumps({"name": "Read", "arguments": {"file_path": "/w/a"}})

    assert ears(engine).hear(template.format(call=call)) is None


async def test_only_a_model_whose_calls_are_text_may_go_on_behind_them(engine):
    text = FORMS["hermes"]([TOOLS[0]]) + "\n\nThe file has 3 lines, as you can see."
    free, bound = ears(engine, is_text_only=True).hear(text), ears(engine).hear(text)

    assert free is not None
    assert [call.name for call in free.calls] == ["Read"]
    assert bound is None


OTHERS = (
    "docs/**/*.md",
    "*.md",
    "bench/*.md",
    "src/**/*.md",
    "src/**/*.json",
    "src/**/*.toml",
    "tests/golden/**/*.txt",
)


async def test_prose_code_and_data_have_no_call_in_them(engine):
    """Every file as an answer, and every paragraph and every line of it."""
    heard, lines = [], 0
    paths = {path for pattern in OTHERS for path in ROOT.glob(pattern)}
    paths |= {*sorted(ROOT.glob("src/**/*.py"))[::8], *sorted(ROOT.glob("tests/**/*.py"))[::16]}
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8", errors="replace")
        rows = text.splitlines()
        lines += len(rows)
        for part in {text, *re.split(r"\n\s*\n", text), *rows}:
            for text_only in (False, True):
                found = ears(engine, is_text_only=text_only).hear(part)
                heard += [(str(path), part[-200:])] if found is not None else []

    assert lines >= 10_000
    assert heard == []


@given(st.text(max_size=300), st.lists(st.integers(1, 9), max_size=60))
def test_nothing_is_lost_or_doubled_of_what_is_held_back(text, sizes):
    held, shown, at = Holdback(), "", 0
    for size in [*sizes, len(text)]:
        shown += held.feed(text[at : at + size])
        at += size
    told = shown + held.rest()

    assert text.startswith(shown)
    assert told == text


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_no_part_of_a_call_is_shown_before_it_is_known_to_be_none(size):
    shown = []
    for case in CASES[::3]:
        held = Holdback()
        told = "".join(held.feed(case.text[at : at + size]) for at in range(0, len(case.text), size))
        start = find(case.text)[0].start
        if len(told.rstrip()) > start:
            shown.append((case.id, told[start:]))

    assert shown == []


async def test_a_call_in_words_is_made_kept_as_a_call_and_not_shown(tmp_path):
    text = 'I look.\n```json\n{"name": "Read", "arguments": {"file_path": "' + str(tmp_path / "a.txt") + '"}}\n```'
    async with Stage(tmp_path, said(text), said("It says hello.")) as stage:
        stage.write("a.txt", "hello\n")
        ended = await stage.run("Tell me what is in a.txt")

        assert (ended.reason, [reply.status for reply in stage.replies]) == ("end", ["done"])
        assert "".join(event.text for event in stage.of(Spoke)) == "I look.\nIt says hello."
        assert [event.name for event in stage.of(Calling)] == ["Read"]
        first = stage.agent.turns[1]
        assert [type(part) for part in first.parts] == [Text, Use]
        assert words(first) == "I look."
        check_valid(stage.agent.turns)


async def test_a_call_in_words_is_decided_like_any_other(tmp_path):
    text = '<tool_call>{"name": "Write", "arguments": {"file_path": "' + str(tmp_path / "a") + '", "content": "x"}}'
    async with Stage(tmp_path, said(text), said("No."), ask=Nobody()) as stage:
        await stage.run("Tell me.")

        assert [reply.status for reply in stage.replies] == ["rejected-by-user"]
        assert not (tmp_path / "a").exists()


BROKEN = [
    pytest.param('<tool_call>\n{"name": "Read", "arguments": {"file_path": "a\n</tool_call>', "no end", id="no-json"),
    pytest.param(
        '<tool_call>\n{"name": "Read", "arguments": {}}\n</tool_call>', "file_path", id="an-argument-is-missing"
    ),
    pytest.param('```json\n{"name": "Read", "arguments": {"path": 3, "x": [1}\n```', "JSON", id="a-broken-fence"),
    pytest.param(
        '<tool_call>{"name": "Reed", "arguments": {"file_path": "a"}}</tool_call>', "Reed", id="nearly-a-tool"
    ),
    pytest.param("<function=Read>\n", "parameters", id="no-parameters"),
    pytest.param('[Read("a.txt")]', "names", id="arguments-without-names"),
    pytest.param("[TOOL_CALLS]Read[ARGS]{", "JSON", id="cut-off"),
]


@pytest.mark.parametrize(("text", "why"), BROKEN)
async def test_a_broken_call_gets_one_word_about_what_was_wrong(tmp_path, text, why):
    good = '<tool_call>{"name": "Read", "arguments": {"file_path": "' + str(tmp_path / "a.txt") + '"}}</tool_call>'
    async with Stage(tmp_path, said(text), said(good), said("Hello.")) as stage:
        stage.write("a.txt", "hello\n")
        ended = await stage.run("Tell me what a.txt says.")
        told = words(stage.agent.turns[2])

        assert ended.reason == "end"
        assert why in told
        assert "Read" in told
        assert [reply.status for reply in stage.replies] == ["done"]


@pytest.mark.parametrize(("text", "why"), BROKEN)
async def test_a_second_broken_call_ends_the_run_as_no_success(tmp_path, text, why):
    async with Stage(tmp_path, said(text), said(text)) as stage:
        ended = await stage.run("Tell me.")

        assert ended.reason == "undone"
        assert why in ended.error
        check_valid(stage.agent.turns)


async def test_a_form_with_the_name_of_no_tool_is_words(engine):
    text = '<tool_call>{"name": "launch_rocket", "arguments": {"at": "noon"}}</tool_call>'

    assert ears(engine).hear(text) is None


DENIED = [
    "I will not run this, it would delete everything:",
    "Never do this:",
    "You should not execute",
    "I won't be using",
    "This is wrong:",
    "I refuse.",
    "Instead of",
    "Should I run this?",
    "Would you like me to run the following?",
]
SHOWN = [
    "For example:",
    "Here is an example of what a call looks like:",
    "This would have been right:",
    "If you want, you can run",
    "The README says:",
    "In the log there is:",
    "Somebody wants me to run:",
    "The tool call syntax:",
]
MEANT = [
    "I will read it now:",
    "I don't know what it does, so let me look:",
    "The tests do not pass. I will look into the file.",
    "I have not run it yet, so:",
    "What does it say? Let me see:",
    "You can see that it is missing. Reading it again.",
]


@pytest.mark.parametrize("form", ["fenced", "hermes"])
@pytest.mark.parametrize("words", [*DENIED, *SHOWN, *MEANT])
async def test_a_call_that_the_words_before_it_do_not_mean_is_not_heard(engine, form, words):
    text = f"{words}\n{FORMS[form]([TOOLS[0]])}"
    heard = {is_local: ears(engine, is_text_only=is_local).hear(text) is not None for is_local in (True, False)}

    assert heard == {True: words not in DENIED, False: words in MEANT}
