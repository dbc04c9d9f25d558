"""Variables that a hook leaves for the session: read as text, never worked out."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.hooks.hooks import HookVariables, VariablesFile, parse
from tests.rows import each_row


@each_row(
    ("text", "values"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("export A=1\n", {"A": "1"}, id="export"),
        pytest.param("A=1", {"A": "1"}, id="plain"),
        pytest.param('declare -x A="b c"\n', {"A": "b c"}, id="as-export-p-writes-it"),
        pytest.param("export A=1 B='2 3'; C=4\n\nexport D=\n", {"A": "1", "B": "2 3", "C": "4", "D": ""}, id="several"),
        pytest.param("# why\nexport A=1 # because\n  B=2#3\n", {"A": "1", "B": "2#3"}, id="comments"),
        pytest.param("export A='$HOME `x` $(y)'", {"A": "$HOME `x` $(y)"}, id="single-quotes"),
        pytest.param('A="two\nlines"\nB=1', {"A": "two\nlines", "B": "1"}, id="lines"),
        pytest.param(r'A="a\$b \"q\""', {"A": 'a$b "q"'}, id="escaped"),
        pytest.param("A=1\nA=2\n", {"A": "2"}, id="the-last-counts"),
        pytest.param("export PATH=/opt/bin:/usr/bin", {"PATH": "/opt/bin:/usr/bin"}, id="any-name"),
        pytest.param("export A=1\r\n", {"A": "1"}, id="crlf"),
        pytest.param("A=a=b", {"A": "a=b"}, id="an-equals-sign"),
        pytest.param("export A\nB=1", {"B": "1"}, id="nothing-set"),
    ],
)
def test_plain_values_are_taken(text, values):
    assert parse(text) == HookVariables(values)


@each_row(
    "text",
    [
        pytest.param('A="$HOME/x"', id="a-variable"),
        pytest.param("A=$(id)", id="a-command"),
        pytest.param("A=`id`", id="backticks"),
        pytest.param("A=$'x'", id="ansi-quotes"),
        pytest.param("""A="it's $HOME, isn't it's" """, id="apostrophes-hide-nothing"),
        pytest.param("A=~/bin", id="a-tilde"),
        pytest.param("A=(1 2)", id="a-list"),
        pytest.param("A=1 > file", id="a-redirection"),
        pytest.param("A=1 && rm x", id="a-chain"),
        pytest.param("A=1 make", id="for-one-command"),
        pytest.param("unset A", id="a-command-alone"),
        pytest.param("export 1A=2", id="no-name"),
        pytest.param("A-B=2", id="no-name-either"),
        pytest.param("A='x", id="an-open-quote"),
        pytest.param('A="x', id="an-open-double-quote"),
        pytest.param("A=\0", id="nul"),
        pytest.param("source x.sh", id="a-file"),
    ],
)
def test_what_is_not_plain_is_said_and_not_taken(text):
    found = parse(f"B=1\n{text}")

    assert found.values == {"B": "1"}
    assert len(found.wrong) == 1


@given(st.text(alphabet="A=1'\"\\$` \n;#(~x"))
def test_no_text_raises(text):
    assert all(name.isidentifier() for name in parse(text).values)


def test_too_many_are_none():
    assert parse("".join(f"A{number}=1\n" for number in range(501))).values == {}


def test_a_file_is_its_users_alone_and_goes():
    file = VariablesFile()

    assert os.stat(file.path).st_mode & 0o777 == 0o600
    assert file.read() == HookVariables({})
    file.remove()
    assert not os.path.exists(file.path)
    file.remove()
    assert file.read() == HookVariables({})


def test_something_else_in_its_place_is_not_read(tmp_path):
    (tmp_path / "secret").write_text("A=1\n")
    file = VariablesFile()
    file.remove()
    os.symlink(tmp_path / "secret", file.path)
    linked = file.read()
    file.remove()
    os.mkfifo(file.path)
    fifo = file.read()
    file.remove()

    assert linked.values == fifo.values == {}


def test_too_much_is_not_read():
    file = VariablesFile()
    with open(file.path, "w", encoding="utf-8") as written:
        written.write("A=1\n" * 20_000)
    found = file.read()
    file.remove()

    assert found == HookVariables({}, ("wrote more than 65,536 bytes of variables; none of them is set",))


@given(st.text(alphabet="a$`\"'\\ ~&#;\n!*{}é", max_size=12))
def test_what_a_shell_exports_comes_back_as_it_was(value):
    quoted = "".join(f"\\{one}" if one in '$`"\\' else one for one in value)

    assert parse(f'declare -x A="{quoted}"\nexport B=1\n') == HookVariables({"A": value, "B": "1"})


@pytest.mark.parametrize("character", ["'", '"', "\\", "#", "a", " ", "'a", '\\"', "A=1;", '"\\'])
def test_a_whole_file_of_anything_is_read_in_one_go(character):
    """Bounded by its bytes: nothing in it makes the reading quadratic."""
    assert len(parse("A=" + character * (65_000 // len(character))).values) <= 1
