"""The instructions of a skill: where arguments go, which commands there are, and that nothing is looked at twice."""

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.system.environment import shell
from ferrule.tools.skills import Parameter
from ferrule.tools.skills.text import Composed, SkillCommand, Unquotable, compose, prompt_arguments, words

NASTY = [
    "a b",
    "$(id)",
    "`id`",
    "; id",
    "' ; id #",
    '" ; id #',
    "\\' ; id",
    "a\nb",
    "*",
    "~",
    "-rf",
    "$HOME",
    "!x",
    "é",
]
arguments = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
tempting = st.lists(
    st.sampled_from(["$ARGUMENTS", "$0", "$1", "!`id`", " ", "\n", "${CLAUDE_SKILL_DIR}", "x", "$ARGUMENTS[0]"]),
    max_size=8,
).map("".join)


def text(body: str, given: str = "") -> str:
    composed = compose(body, arguments=given, session="s1", folder="/skills/x")
    assert composed.lines == ()
    return composed.text(())


@each_row(
    ("body", "given", "expected"),
    [
        pytest.param("Do $ARGUMENTS.", "a 'b c'", "Do a 'b c'.", id="all"),
        pytest.param("$ARGUMENTS[0] $ARGUMENTS[1]", "a 'b c'", "a b c", id="by-number"),
        pytest.param("$0-$1", "a 'b c'", "a-b c", id="short"),
        pytest.param("[$ARGUMENTS] [$ARGUMENTS[1]]", "", "[] []", id="none-given"),
        pytest.param(
            "It costs $5 or $1.50 or $0,50.", "a b", "It costs $5 or $1.50 or $0,50.\n\nARGUMENTS: a b", id="money"
        ),
        pytest.param("$0th $HOME $ARGUMENTSX", "a", "$0th $HOME $ARGUMENTSX\n\nARGUMENTS: a", id="other-names"),
        pytest.param("Read.", "a  b", "Read.\n\nARGUMENTS: a  b", id="appended"),
        pytest.param("Read.", " \n", "Read.", id="blank-arguments"),
        pytest.param("${CLAUDE_SESSION_ID} ${CLAUDE_SKILL_DIR}/x", "", "s1 /skills/x/x", id="own"),
        pytest.param("${CLAUDE_SKILL_DIR}", "a", "/skills/x\n\nARGUMENTS: a", id="own-is-no-place-for-arguments"),
        pytest.param("`$0` x!`id` !`` ! `id`", "a", "`a` x!`id` !`` ! `id`", id="no-commands"),
        pytest.param("$0 $1", "it's fine", "it's fine", id="quotes-that-do-not-match"),
    ],
)
@pytest.mark.contract("skill.arguments")
def test_where_arguments_go(body, given, expected):
    assert text(body, given) == expected


@each_row(
    ("command", "given", "line"),
    [
        pytest.param("git status", "a b", "git status", id="none"),
        pytest.param("gh pr view $0", "7", "gh pr view 7", id="word"),
        pytest.param("gh pr view $0", "'a b'", "gh pr view 'a b'", id="quoted"),
        pytest.param("gh pr list $ARGUMENTS", "--state open; id", "gh pr list --state 'open;' id", id="all-as-words"),
        pytest.param('grep "$ARGUMENTS" a', "x y", 'grep ""\'x y\'"" a', id="between-double-quotes"),
        pytest.param("grep '$ARGUMENTS' a", "x y", "grep '''x y''' a", id="between-single-quotes"),
        pytest.param("awk '{print $1}' $0", "f g", "awk '{print $1}' f", id="awk"),
        pytest.param("echo \\$0 $$0", "a", "echo \\$0 $$0", id="not-ours"),
        pytest.param("gh pr view $0", "", "gh pr view ", id="missing"),
        pytest.param("sh ${CLAUDE_SKILL_DIR}/a.sh", "", "sh /skills/x/a.sh", id="folder"),
    ],
)
def test_arguments_in_a_command_are_quoted(command, given, line):
    composed = compose(f"Now: !`{command}`", arguments=given, folder="/skills/x")

    assert composed.lines == (line.strip(),) or composed.lines == (line,)


@each_row(
    "command",
    [
        "echo $(cat $0)",
        'echo "$(cat $0)"',
        "echo ${x:-$0}",
        "echo $'a $ARGUMENTS'",
        'echo $"a $0"',
        "cat <<< $0",
        "echo $(( $0 ))",
        "(( $0 ))",
        "[[ $0 -eq 1 ]]",
        "echo a # $0",
        "echo $[ $0 ]",
    ],
)
def test_where_quoting_is_not_certain_there_is_no_command(command):
    with pytest.raises(Unquotable):
        compose(f"!`{command}`", arguments="a")

    assert compose(f"!`{command}`").lines  # without arguments there is nothing to quote


@each_row("word", NASTY)
@each_row("command", ["printf %s $0", 'printf %s "$ARGUMENTS[0]"', "printf %s '$ARGUMENTS[0]'"])
def test_bash_takes_an_argument_for_nothing_but_a_word(command, word):
    (line,) = compose(f"!`{command}`", arguments=shlex.quote(word)).lines
    done = subprocess.run([shell(), "-c", line], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == word


@given(arguments)
def test_an_argument_is_one_word_of_its_command(word):
    (line,) = compose("!`echo $0 end`", arguments=shlex.quote(word)).lines

    assert shlex.split(line) == ["echo", word, "end"]


@given(arguments, tempting)
def test_what_was_put_in_is_not_looked_at_again(plain, hostile):
    given_text = plain + hostile

    assert compose("<$ARGUMENTS>", arguments=given_text) == Composed(("<", *filter(None, [given_text]), ">"))


@given(tempting)
def test_an_output_is_not_looked_at_again(output):
    composed = compose("a !`date` b", arguments="")

    assert composed.text([output]) == f"a {output} b"


@given(tempting, arguments)
def test_no_argument_adds_a_command(body, given_text):
    try:
        composed = compose(body, arguments=given_text)
    except Unquotable:
        return

    assert len(composed.lines) == len(compose(body).lines)


def test_commands_stand_where_their_output_belongs():
    composed = compose("- one: !`a`\n!`b c`\nend")

    assert composed == Composed(("- one: ", SkillCommand("a"), "\n", SkillCommand("b c"), "\nend"))


@pytest.mark.parametrize(
    ("given", "found"),
    [("", []), ("a b", ["a", "b"]), ("'a b' c", ["a b", "c"]), ("it's a", ["it's", "a"]), ("a\\ b", ["a b"])],
)
def test_arguments_are_divided_as_a_shell_does(given, found):
    assert words(given) == found


PARAMETERS = (Parameter("topic", is_required=True), Parameter("style"))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param("cats", {"topic": "cats"}, id="in-order"),
        pytest.param("cats short", {"topic": "cats", "style": "short"}, id="both"),
        pytest.param("cats very short", {"topic": "cats", "style": "very short"}, id="the-last-takes-the-rest"),
        pytest.param("style=short cats and dogs", {"style": "short", "topic": "cats and dogs"}, id="by-name"),
        pytest.param("a=b", {"topic": "a=b"}, id="no-such-name"),
        pytest.param("topic=x topic=y", {"topic": "x", "style": "topic=y"}, id="named-twice"),
    ],
)
def test_the_arguments_of_a_prompt(given, found):
    assert prompt_arguments(given, PARAMETERS) == found


def test_what_a_prompt_needs_is_named():
    with pytest.raises(ValueError, match=r"\Atopic\Z"):
        prompt_arguments("style=short", PARAMETERS)
