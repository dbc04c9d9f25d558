"""Command lines of known commands in every construct: none of them is ever lost."""

import itertools
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from ferrule.permissions.shell.parse import BROKEN, parse

from .bash import every, meaning, readings, run, taken


class Tree(NamedTuple):
    """A line and the commands that were put into it."""

    text: str
    leaves: tuple[str, ...]


_QUOTES = st.sampled_from(["{}", "'{}'", '"{}"', "\\{}", "''{}", '{}""'])


@st.composite
def _leaf(draw: st.DrawFn) -> Tree:
    name = f"leaf{draw(st.integers(0, 99))}"
    words = [name, *draw(st.lists(st.sampled_from(["-a", "b", "c.d", "e/f"]), max_size=2))]
    spelled = [draw(_QUOTES).format(word) for word in words]
    redirect = draw(st.sampled_from(["", "", "", " > out", " 2>&1", " < in", " 2>/dev/null", " &> both", " <<< here"]))
    assign = draw(st.sampled_from(["", "", "X=1 ", "Y='a b' "]))
    return Tree(assign + " ".join(spelled) + redirect, (" ".join(words),))


_AROUND = [
    *("({})", "( {} )", "{{ {}; }}", "{{\n{}\n}}", "! {}", "if {}; then :; fi", "if :; then {}; else :; fi"),
    *("while {}; do break; done", "for i in 1 2; do {}; done", "until {}; do\n{}\ndone", "case x in x) {};; esac"),
    *(
        "case x in\n(x|y) {}\n;;\n*) :;; esac",
        "echo $({})",
        'echo "a $({}) b"',
        "echo `{}`",
        "cat <({})",
        "cat > >({})",
    ),
    *("x=$({})", "x=$({}) :", "[[ -n $({}) ]]", '[ -n "$({})" ]', "cat <<E\na $({}) b\nE\n", "cat <<< $({})"),
    *(
        "for i in $({}); do :; done",
        "echo ${{x:-$({})}}",
        "echo $(( $({}) ))",
        "{} &",
        "({}) > out",
        "echo {{a,$({})}}",
    ),
    *("cat <<'E' | cat && {}\ntext\nE\n", "case $({}) in x) :;; esac", "echo 'quoted;' \"$({})\" \\; # comment\n"),
    *(
        "f() {{ {}; }}",
        "coproc {}",
        "time {}",
        "echo a > $({})",
        "if :; then :; elif {}; then :; fi",
        "{} | :",
        ": | {}",
    ),
]
_JOINS = ["; ", " && ", " || ", " | ", " |& ", "\n", " & ", ";", "&&", "\n\n", " \\\n && "]


def _wrap(form: str, tree: Tree) -> Tree:
    if form.startswith("cat <<'E'") and "\n" in tree.text:
        # The rest of it would be the text of the here-document, and no command.
        return tree
    # `$(` and a subshell at once would be arithmetic.
    text = " " + tree.text if tree.text.startswith("(") else tree.text
    return Tree(form.replace("{}", "\0").format().replace("\0", text), tree.leaves)


def _grow(inner: "st.SearchStrategy[Tree]") -> "st.SearchStrategy[Tree]":
    wrapped = st.builds(_wrap, st.sampled_from(_AROUND), inner)
    joined = st.builds(
        lambda one, join, other: Tree(one.text + join + other.text, one.leaves + other.leaves),
        inner,
        st.sampled_from(_JOINS),
        inner,
    )
    return st.one_of(wrapped, joined)


TREES = st.recursive(_leaf(), _grow, max_leaves=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TREES, min_size=5, max_size=20))
def test_no_command_is_lost_in_any_construct(tmp_path_factory: pytest.TempPathFactory, trees: list[Tree]) -> None:
    printed = readings([tree.text for tree in trees], tmp_path_factory.getbasetemp())

    for tree, reading in zip(trees, printed, strict=True):
        line = taken(tree.text)
        missing = set(tree.leaves) - set(every(line))
        # What bash cannot read it does not run.
        assert not missing or line.doubts or reading is None, (tree.text, missing)
        names = {leaf.split()[0] for leaf in tree.leaves}
        seen = " ".join(every(line))
        assert all(name in seen for name in names), (tree.text, line.doubts)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(_AROUND), st.sampled_from(_AROUND), _leaf(), st.sampled_from(_JOINS), _leaf())
def test_two_constructs_deep_most_lines_are_certain_or_all_is_seen(
    outer: str, inner: str, leaf: Tree, join: str, other: Tree
) -> None:
    line = taken(_wrap(outer, _wrap(inner, leaf)).text + join + other.text)

    assert line.doubts or {*leaf.leaves, *other.leaves} <= set(every(line))


_EDITS = st.tuples(
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(
        [
            *(
                " ",
                "\n",
                "\t",
                ";",
                "&",
                "|",
                "<",
                ">",
                "(",
                ")",
                "'",
                '"',
                "\\",
                "`",
                "$",
                "#",
                "*",
                "[",
                "]",
                "!",
                "~",
            ),
            *(
                "=",
                ",",
                "-",
                "a",
                "1",
                "\\\n",
                "$(",
                "${",
                "$((",
                "<<E\n",
                "\nE\n",
                "&&",
                "||",
                ";;",
                "2>",
                "2>&",
                "$x",
            ),
            *("'a b'", '"c d"', " # ", None),
        ]
    ),
)


def _edited(text: str, edits: list[tuple[float, str | None]]) -> str:
    for where, piece in edits:
        at = int(where * len(text))
        text = text[:at] + (text[at + 1 :] if piece is None else piece + text[at:])
    return text


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.builds(lambda tree, edits: _edited(tree.text, edits), TREES, st.lists(_EDITS, max_size=3)), min_size=10)
)
def test_a_line_with_a_slip_in_it_is_read_as_bash_reads_it_or_doubtful(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    # A closing brace could end the function that bash is asked to print.
    certain = [
        (text, line) for text in texts if "}" not in text and "$'" not in text and not (line := taken(text)).doubts
    ]
    printed = readings([text for text, _ in certain], tmp_path_factory.getbasetemp())

    for (text, line), reading in zip(certain, printed, strict=True):
        again = taken(reading) if reading is not None else None
        if again is not None and not again.doubts:
            assert meaning(line) == meaning(again), (text, reading)


_STEPS = st.sampled_from(
    [
        *(
            "cd sub",
            "cd sub/inner",
            "cd ..",
            "cd gone",
            "cd file",
            "cd link",
            "cd link/..",
            "cd -- other",
            "cd 'my dir'",
        ),
        *(
            "pushd sub",
            "popd",
            "cd -",
            "true",
            "false",
            "cd .",
            'cd "$x"',
            "cd sub 2>&-",
            "command cd sub",
            "! cd sub",
        ),
        *("cd $(echo sub)", "x=1", "cd /", "time cd sub", "builtin cd sub", "X=1 cd sub"),
    ]
)
_FORMS = [
    *(
        "({})",
        "{{ {}; }}",
        "! {}",
        "if {}; then {}; fi",
        "if {}; then {}; else {}; fi",
        "{} | {}",
        "{} && {}",
        "{} || {}",
    ),
    *("{}; {}", "{} & {}", "for i in 1 2; do {}; {}; done", "while {}; do {}; break; done", "case a in a) {};; esac"),
    *("echo $({} >&9)", "if {}; then {}; elif {}; then {}; else {}; fi", "until {}; do {}; break; done", "{}\n{}"),
    *("{} > /dev/null", "{} <<E\n$({} >&9)\nE\n", "cat < /dev/null <({} >&9)", "{{ {} | {}; }} 2>&1", "({}) && {}"),
]


def _filled(form: str, parts: list[str]) -> str:
    filled = iter(parts)
    return "".join(
        next(filled) if piece == "{}" else piece.replace("{{", "{").replace("}}", "}")
        for piece in re.split(r"((?<!\{)\{\}(?!\}))", form)
    )


_MOVES = st.recursive(
    st.one_of(_STEPS, st.just("mark @")),
    lambda inner: st.builds(_filled, st.sampled_from(_FORMS), st.lists(inner, min_size=5, max_size=5)),
    max_leaves=14,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("place").resolve()
    for folder in ("sub/inner", "other", "far/deep", "my dir"):
        (root / folder).mkdir(parents=True)
    (root / "file").touch()
    (root / "link").symlink_to(root / "far" / "deep")
    return root


OTHERWISE = "bash may read it in another way"


def test_a_tree_that_has_lost_a_word_is_not_believed():
    """The grammar drops a lone dash before a here-document."""
    assert OTHERWISE in parse("cd - <<E\n$(cd sub >&9)\nE\n", cwd="/", roots=["/"]).doubts


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example("mark @", "cd sub && cd sub <<E\n$(mark @ >&9)\nE\n")
@given(_MOVES, _MOVES)
def test_the_folder_said_is_the_one_that_bash_is_in(place: Path, one: str, other: str) -> None:
    numbers = itertools.count()
    text = re.sub("@", lambda _: str(next(numbers)), f"{one}\n{other}\nmark @")
    line = parse(text, cwd=str(place), roots=[str(place)])
    # Where the tree is not believed, all of it is asked about, wherever it thinks that it is.
    assume(not any(OTHERWISE in doubt or doubt == BROKEN for doubt in line.doubts))
    said = {
        simple.words[1].text: os.path.realpath(simple.cwd)
        for simple in line.commands
        if simple.cwd is not None and simple.words and simple.words[0].text == "mark" and simple.words[1].known
    }
    # On a descriptor of its own, so that no pipe of the line swallows it.
    script = f'exec 9>&1\nmark() {{ echo "$1 $(pwd -P)" >&9; }}\n{text}\nwait'
    seen = [row.partition(" ") for row in run(script, place).decode().splitlines()]

    for number, _, folder in seen:
        if number in said:
            assert folder == said[number], text
