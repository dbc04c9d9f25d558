"""Typing: what is remembered, and what is completed."""

import os
import stat

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from tests.rows import each_row

from ferrule.cli.talk import commands
from ferrule.cli.talk.commands import files
from ferrule.cli.talk.keyboard import InputCompleter, Typed, find_mention, rank_paths


def test_what_was_typed_is_there_again_the_newest_first(tmp_path):
    first = Typed(str(tmp_path / "state"))
    for text in ("one", "two\nlines", "三"):
        first.store_string(text)

    assert list(Typed(str(tmp_path / "state")).load_history_strings()) == ["三", "two\nlines", "one"]


def test_only_the_user_can_read_it(tmp_path):
    Typed(str(tmp_path)).store_string("secret")

    assert stat.S_IMODE(os.stat(tmp_path / "typed.jsonl").st_mode) == 0o600


def test_a_damaged_or_missing_file_remembers_the_rest(tmp_path):
    typed = Typed(str(tmp_path))
    assert list(typed.load_history_strings()) == []
    (tmp_path / "typed.jsonl").write_bytes(b'"one"\n{broken\n\xff\n"two"\n')

    assert list(typed.load_history_strings()) == ["two", "one"]


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / "typed.jsonl").symlink_to(tmp_path / "target")

    Typed(str(tmp_path)).store_string("x")

    assert (tmp_path / "target").read_text() == ""


def test_a_file_that_has_grown_is_shortened(tmp_path):
    typed = Typed(str(tmp_path))
    (tmp_path / "typed.jsonl").write_bytes(b'"%s"\n' % (b"x" * 1000) * 1200)

    typed.store_string("last")

    assert os.stat(tmp_path / "typed.jsonl").st_size < 700_000
    assert next(iter(typed.load_history_strings())) == "last"


PATHS = ["src/app.py", "app.py", "docs/application.md", "tests/test_app.py", "a\nb.py", "README.md"]


async def completions(text):
    async def listed():
        return PATHS

    words = InputCompleter(
        lambda: [("help", "This list."), ("model", "A model."), ("model", "A skill of this name.")],
        lambda name: {"model": ["a:b"]}.get(name, []),
        listed,
    )
    found = words.get_completions_async(Document(text), CompleteEvent())
    return [one.text async for one in found]


@each_row(
    ("text", "found"),
    [
        pytest.param("/", ["/help", "/model"], id="all-commands"),
        pytest.param("/mo", ["/model"], id="a-command"),
        pytest.param("/help", [], id="nothing-to-add"),
        pytest.param("/model a", ["a:b"], id="a-value"),
        pytest.param("see /mo", [], id="not-at-the-beginning"),
        pytest.param(
            "look at @app", ["@app.py", "@docs/application.md", "@src/app.py", "@tests/test_app.py"], id="files"
        ),
        pytest.param("mail a@b", [], id="an-address"),
        pytest.param("look at @app.py ", [], id="after-it"),
    ],
)
async def test_a_line_is_completed(text, found):
    assert sorted(await completions(text)) == sorted(found)


def test_the_beginning_of_a_path_counts_most():
    assert rank_paths("app", PATHS)[0] == "app.py"
    assert "a\nb.py" not in rank_paths("a", PATHS)


def test_the_path_is_the_word_that_the_cursor_is_in():
    assert find_mention("see @src/a") == "src/a"
    assert find_mention("@") == ""
    assert find_mention("a b") is None


async def test_files_that_git_ignores_are_not_completed(tmp_path):
    (tmp_path / ".gitignore").write_text("built\n")
    for name in ("a.py", "built", ".hidden"):
        (tmp_path / name).touch()

    assert await files(str(tmp_path)) == ["a.py"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("help", "help", id="whole"),
        pytest.param("mod", "model", id="the-beginning-of-one"),
        pytest.param("quit", "exit", id="another-name"),
        pytest.param("t", None, id="of-several"),
        pytest.param("", None, id="nothing"),
        pytest.param("frobnicate", None, id="none"),
    ],
)
def test_a_command_is_found_by_its_name(name, found):
    assert commands.find_command(name) == (commands.commands()[found] if found else None)


def test_an_unknown_command_is_told_what_is_near():
    assert commands.unknown("undoo") == "There is no command /undoo. Did you mean /undo?"
    assert commands.unknown("qqqqqq") == "There is no command /qqqqqq. /help lists the commands."


@each_row(
    ("text", "found"),
    [
        pytest.param("/cost", ("cost", ""), id="a-name"),
        pytest.param("/model a:b ", ("model", "a:b"), id="something-behind-it"),
        pytest.param("/compact keep\nthe names", ("compact", "keep\nthe names"), id="several-lines-behind-it"),
        pytest.param("/threads\n/resume", ("threads", "/resume"), id="a-line-break-behind-the-name"),
        pytest.param("/", ("", ""), id="nothing"),
        pytest.param("//cost", None, id="two-slashes"),
        pytest.param("/etc/hosts is odd", None, id="a-path"),
        pytest.param("cost", None, id="words"),
    ],
)
def test_a_command_is_told_from_words(text, found):
    assert commands.split(text) == found
