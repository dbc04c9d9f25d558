"""Small models: few tools, a short prompt, the files that a prompt names, and a word where they stop too early."""

import pytest

from ferrule.agent.session import Session
from ferrule.models.cues import Header, calls, said
from ferrule.models.recorder import Line, Scripted
from ferrule.permissions import Everybody
from ferrule.settings import Settings

from .stage import Stage, check_valid, words

SMALL = Header(model="tiny", window=8_000, most_output=1_000)
EDIT = ("edit", {"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"})
BAD = ("edit", {"path": "a.py", "old_string": "nowhere", "new_string": "x = 2"})


def stage(folder, *cues: Line, **session) -> Stage:
    return Stage(folder, dialect="ah", model=Scripted(*cues, header=SMALL, workspace=str(folder)), **session)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("header", "settings", "dialect", "is_short"),
    [
        pytest.param(SMALL, Settings(), "ah", True, id="a-small-window"),
        pytest.param(Header(model="tiny.gguf"), Settings(), "ah", True, id="a-file"),
        pytest.param(SMALL, Settings(dialects={"tiny": "pi"}), "pi", True, id="another-dialect-by-a-setting"),
        pytest.param(Header(model="qwen3"), Settings(), "claude", False, id="a-larger-one"),
    ],
)
async def test_a_small_model_has_the_smallest_dialect_and_a_short_prompt(tmp_path, header, settings, dialect, is_short):
    model = Scripted(said("Hello."), header=header, workspace=str(tmp_path))
    async with Session(tmp_path, model=model, settings=settings, ask=Everybody()) as session:
        await session.agent.run("Say hello.")

        assert session.engine.dialect.name == dialect
        assert ("in these steps" in words(model.asked[0].turns[0])) is is_short


async def test_an_option_gives_it_another_dialect(tmp_path):
    model = Scripted(said("Hello."), header=SMALL, workspace=str(tmp_path))
    async with Session(tmp_path, model=model, dialect="gemini", ask=Everybody()) as session:
        assert session.engine.dialect.name == "gemini"


async def test_the_files_that_a_prompt_names_are_shown_with_it(place):
    async with stage(place, said("One.")) as on:
        await on.run("What is x in a.py?")
        told = words(on.agent.turns[0])

        assert "The file a.py now:\n```\nx = 1\n```" in told
        assert on.replies == []


@pytest.mark.parametrize(
    "name", ["../secret.py", ".env", "big.py", "missing.py"], ids=["outside", "a-secret", "too-large", "not-there"]
)
async def test_a_file_that_it_may_not_read_is_not_shown(place, name):
    (place.parent / "secret.py").write_text("hidden")
    (place / ".env").write_text("KEY=hidden")
    (place / "big.py").write_text("hidden" * 10_000)
    async with stage(place, said("I cannot see it.")) as on:
        await on.run(f"What is in {name}?")

        assert "hidden" not in words(on.agent.turns[0])


async def test_a_large_model_reads_for_itself(place):
    async with Stage(place, said("One.")) as on:
        await on.run("What is x in a.py?")

        assert words(on.agent.turns[0]) == "What is x in a.py?"


async def test_one_that_has_changed_nothing_is_told_how_and_then_does_it(place):
    async with stage(place, said("x is 1."), calls(EDIT), said("Done.")) as on:
        ended = await on.run("x in a.py must be 2.")

        assert ended.reason == "end"
        assert '"name": "edit", "arguments": {"path": "a.py"' in words(on.agent.turns[2])
        assert on.read("a.py") == "x = 2\n"
        check_valid(on.agent.turns)


async def test_one_that_still_changes_nothing_has_not_done_it(place):
    async with stage(place, said("x is 1."), said("It is correct.")) as on:
        ended = await on.run("x in a.py must be 2.")

        assert (ended.reason, ended.error) == ("undone", "Nothing was done: the model changed no file.")


async def test_one_that_stops_after_a_failed_edit_is_told_so_once(place):
    async with stage(place, calls(BAD), said("Done."), said("I cannot.")) as on:
        ended = await on.run("x in a.py must be 2.")

        assert (ended.reason, ended.error) == ("undone", "The last edit of the model failed, and it made no other.")
        assert "Your last edit failed" in words(on.agent.turns[4])


async def test_one_that_has_run_nothing_since_its_edit_is_told_of_the_checks(place):
    (place / "check.py").write_text("import a\nassert a.x == 2\n")
    run = calls(("bash", {"command": "python3 check.py"}))
    async with stage(place, calls(EDIT), said("Done."), run, said("It passes.")) as on:
        ended = await on.run("x in a.py must be 2.")

        assert (ended.reason, ended.text) == ("end", "It passes.")
        assert "check.py may be a check" in words(on.agent.turns[4])


async def test_one_whose_check_failed_is_asked_to_edit_again_and_may_say_no(place):
    (place / "check.py").write_text("raise SystemExit(1)\n")
    run = calls(("bash", {"command": "python3 check.py"}))
    async with stage(place, calls(EDIT), run, said("Done."), said("The check is wrong.")) as on:
        ended = await on.run("x in a.py must be 2.")

        assert (ended.reason, ended.text) == ("end", "The check is wrong.")
        assert "The last command failed" in words(on.agent.turns[6])


async def test_a_question_is_answered_by_words(place):
    async with stage(place, said("It sets x.")) as on:
        ended = await on.run("What does a.py do?")

        assert (ended.reason, len(on.agent.turns)) == ("end", 2)


async def test_the_tool_for_what_was_left_out_is_shown_when_something_was(place):
    (place / "long.txt").write_text("a line of words\n" * 8_000)
    read = calls(("bash", {"command": "cat long.txt"}))
    async with stage(place, read, said("It is long.")) as on:
        await on.run("Describe the file.")
        first, second = on.model.asked

        assert [one.name for one in first.definitions] == ["read", "write", "edit", "bash"]
        assert [one.name for one in second.definitions] == ["read", "write", "edit", "bash", "recall"]


LOCAL = Header(model="tiny.gguf", window=8_000, most_output=1_000, wire="local")
WRITTEN = said("a.py\n```\nx = 2\ny = 1\n```")


def local_stage(folder, *cues: Line, **session) -> Stage:
    return Stage(folder, dialect="ah", model=Scripted(*cues, header=LOCAL, workspace=str(folder)), **session)


async def test_one_that_speaks_in_text_changes_a_file_by_writing_it_out(place):
    (place / "a.py").write_text("x = 1\ny = 1\n")
    async with local_stage(place, WRITTEN, said("Done.")) as on:
        ended = await on.run("Set x to 2 in a.py.")

        assert (place / "a.py").read_text() == "x = 2\ny = 1\n"
        assert words(on.agent.turns[0]).endswith("Write a.py with this mended or done: Set x to 2 in a.py.")
        assert (ended.reason, [reply.name for reply in on.replies]) == ("end", ["edit"])
        check_valid(on.agent.turns)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("cp $1 $1.bak\n", 'cp "$1" "$1.bak"\n', id="quotes"),
        pytest.param("if x:\n  y = 1\n z = 2\n", "if x:\n  y = 1\n  z = 2\n", id="blanks"),
        pytest.param('a = "\\d"\n', 'a = "\\\\d"\n', id="escapes"),
    ],
)
async def test_quotes_and_blanks_may_be_all_that_a_written_file_mends(place, before, after):
    head = "# One.\n# Two.\n"
    (place / "a.py").write_text(head + before)
    async with local_stage(place, said(f"a.py\n```\n{head}{after}```"), said("Done.")) as on:
        await on.run("Mend a.py.")

        assert (place / "a.py").read_text() == head + after


async def test_a_file_that_a_tool_has_shown_is_no_change_when_it_is_said_again(place):
    (place / "b.txt").write_text("a.py should be:\n\nx = 9\ny = 9\n")
    copied = said("a.py\n```\nx = 9\ny = 9\n```")
    async with local_stage(place, calls(("read", {"path": "b.txt"})), copied, said("No."), said("No.")) as on:
        await on.run("Mend a.py.")

        assert (place / "a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("prompt", ["What is x in a.py?", "Run a.py."], ids=["a question", "a command"])
async def test_a_block_is_no_edit_where_no_change_is_wanted(place, prompt):
    (place / "a.py").write_text("x = 1\ny = 1\n")
    async with local_stage(place, WRITTEN, said("It is 1."), said("It is 1.")) as on:
        await on.run(prompt)

        assert (place / "a.py").read_text() == "x = 1\ny = 1\n"


async def test_a_file_that_is_written_out_as_it_is_counts_for_nothing(place):
    async with local_stage(place, said("a.py\n```\nx = 1\n```"), said("a.py\n```\nx = 1\n```")) as on:
        ended = await on.run("Set x to 2 in a.py.")

        assert ended.reason == "undone"
        assert "is the file as it is" in ended.error
