"""What is known about a word is exactly what bash hands to the program."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.permissions.shell.line import Word, ansi
from tests.rows import each_kept_row, each_row

from .bash import run, taken

HOME = os.path.normpath(os.path.expanduser("~"))


def _word(text: str) -> Word:
    return taken(f"echo {text}").commands[0].words[1]


@each_kept_row
def test_a_word_is_known_where_nothing_expands(text: str, known: str) -> None:
    word = _word(text)

    assert (word.known, word.text, word.single) == (True, known, True)


@each_row(("text", "known"), [("~", HOME), ("~/x", f"{HOME}/x")])
def test_the_home_folder_is_known(text: str, known: str) -> None:
    word = _word(text)

    assert (word.known, word.text, word.single) == (True, known, True)


@each_kept_row
def test_a_word_that_expands_is_not_known_and_its_beginning_is(
    text: str, start: str, *, single: bool, glob: bool
) -> None:
    expected = Word(text, known=False, start=start, single=single, glob=glob)
    assert _word(text)._replace(told=False, stream=False) == expected


@pytest.mark.parametrize("command", ["$'rm' x", "r$'m' x", "$'\\x72m' x"])
def test_a_program_in_coded_quotes_is_never_known(command: str) -> None:
    assert not taken(command).commands[0].words[0].known


@each_row("body", ["\\", "\\0", "\\x00", "\\q", "\\u0080", "\\400", "\\c?", "\\x"])
def test_codes_that_are_not_plain_characters_are_not_decoded(body: str) -> None:
    assert ansi(body) is None


# Everything that could be a word or a part of one; `command` is what bash would look for as a program.
PARTS = st.one_of(
    st.text("abz019_./:@%+,^=-~#!*?[]{}é", min_size=1, max_size=4),
    st.text('ab $`"\\*?~#;&|<>(){}!\n\té', max_size=5).map(lambda text: f"'{text}'"),
    st.text("ab '*?~#;&|<>(){}!\n\té.", max_size=5).map(lambda text: f'"{text}"'),
    st.sampled_from(["\\$", "\\`", '\\"', "\\\\", "\\n", "$", "\\\n"]).map(lambda text: f'"a{text} b"'),
    st.sampled_from(["\\ ", "\\$", "\\'", '\\"', "\\\\", "\\*", "\\;", "\\#", "\\~", "\\{", "\\a"]),
    st.sampled_from(["$'a\\n'", "$'\\x41'", "$'\\101'", "$'\\''", "$'\\\\'", "$'\\e'", "$'é'", "$'\\x7e'"]),
    st.sampled_from(["{a,b}", "{1..2}", "~", "~/", "a=~", ",", "..", "{", "}"]),
)
WORDS = st.lists(PARTS, min_size=1, max_size=4).map("".join)
# Where the words end: the command's own output says so.
_SHOW = 'for one; do (set -f; eval "show $one") 2>/dev/null || printf unreadable; printf "\\1"; done'


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=1, max_size=3).map(" ".join), min_size=10, max_size=30))
def test_known_words_are_what_bash_passes_on(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    certain = [
        (text, [word.text for word in line.commands[0].words[1:]])
        for text in lines
        if not (line := taken(f"show {text}")).doubts and line.commands[0].literal and len(line.commands) == 1
    ]
    script = "show() { for word; do printf '%s\\0' \"$word\"; done; }\n" + _SHOW.replace("set -f; ", f"HOME={HOME}; ")
    folder = tmp_path_factory.mktemp("empty")
    output = run(script, folder, *(text for text, _ in certain)).decode().split("\1")[:-1]

    assert len(output) == len(certain)
    for (text, words), passed in zip(certain, output, strict=True):
        if not passed.endswith("unreadable"):
            assert passed.split("\0")[:-1] == words, text


def test_globs_are_followed_by_bash_and_never_known(tmp_path: Path) -> None:
    (tmp_path / "-rf").touch()

    assert run("printf '%s' *", tmp_path) == b"-rf"
    assert not _word("*").known
    assert _word("*").start == ""
