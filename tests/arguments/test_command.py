"""The shell command's rewrites: one trailing `&`, and a leading `cd folder &&`; bash itself is the judge."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.arguments.command import split_cd, strip_background

BOUND_SECONDS = 60
EXAMPLES = settings(max_examples=60, deadline=None)

UNCHANGED = [
    pytest.param("", id="empty"),
    pytest.param("   ", id="blank"),
    pytest.param("ls", id="no-ampersand"),
    pytest.param("&", id="alone"),
    pytest.param("a &&", id="and-without-right-side"),
    pytest.param("a && b", id="and"),
    pytest.param("a && ", id="and-then-blank"),
    pytest.param("a & &", id="two"),
    pytest.param("a &\\\n&", id="and-over-a-joined-line"),
    pytest.param("a ; &", id="after-semicolon"),
    pytest.param("a\n&", id="on-its-own-line"),
    pytest.param("a |&", id="pipe-both"),
    pytest.param("a >&", id="duplicate-output"),
    pytest.param("a 2>&", id="duplicate-error"),
    pytest.param("a <&", id="duplicate-input"),
    pytest.param("a > &", id="output-to-nothing"),
    pytest.param("a 2>&1", id="descriptor"),
    pytest.param("a &> log", id="both-to-file"),
    pytest.param("a &>", id="both-to-nothing"),
    pytest.param("a & b", id="in-the-middle"),
    pytest.param("a & # in the background", id="before-a-comment"),
    pytest.param("a # b &", id="in-a-comment"),
    pytest.param("# a &", id="only-a-comment"),
    pytest.param("a >&-# b &", id="in-a-comment-behind-a-closed-descriptor"),
    pytest.param("a >& -# b &", id="in-a-comment-behind-a-closed-descriptor-and-a-blank"),
    pytest.param("echo 'a &'", id="single-quotes"),
    pytest.param('echo "a &"', id="double-quotes"),
    pytest.param("echo $'a\\' &'", id="ansi-quotes"),
    pytest.param("echo 'a &", id="open-single-quote"),
    pytest.param('echo "a &', id="open-double-quote"),
    pytest.param("echo $'a\\' &", id="open-ansi-quote"),
    pytest.param("echo a\\&", id="escaped"),
    pytest.param("echo \\&", id="escaped-word"),
    pytest.param("echo a\\\\\\&", id="escaped-after-a-backslash"),
    pytest.param("echo `a &`", id="backticks"),
    pytest.param("echo `a &", id="open-backtick"),
    pytest.param("echo $(a &)", id="in-a-substitution"),
    pytest.param("echo $(a &", id="in-an-open-substitution"),
    pytest.param("(a &)", id="in-a-subshell"),
    pytest.param("(a &", id="in-an-open-subshell"),
    pytest.param("cat <<EOF\na &", id="in-an-open-here-document"),
    pytest.param("cat <<EOF\na &\nEOF", id="in-a-here-document"),
    pytest.param("cat <<-'EOF' &\na &\n\tEOF", id="here-document-in-the-background"),
    pytest.param("case a in a) b ;;&", id="case-goes-on"),
    pytest.param("case a in (a) b ;&", id="case-falls-through"),
    pytest.param("((a &", id="in-arithmetic"),
    pytest.param("echo $((1 &", id="in-an-arithmetic-expansion"),
    pytest.param("echo $[1 &", id="in-old-arithmetic"),
    pytest.param("a &\r", id="carriage-return-is-a-word"),
    pytest.param("a &\u00a0", id="unicode-blank-is-a-word"),
    pytest.param("a & \\\n", id="joined-line-at-the-end"),
    pytest.param("a \\", id="backslash-at-the-end"),
    pytest.param('echo "$(case a in a) echo "b &', id="case-in-a-quoted-substitution"),
]


@pytest.mark.parametrize("command", UNCHANGED)
def test_what_is_not_a_trailing_background_operator_stays(command: str) -> None:
    assert strip_background(command) == command


@pytest.mark.parametrize(
    ("command", "stripped"),
    [
        pytest.param("sleep 5 &", "sleep 5", id="plain"),
        pytest.param("sleep 5&", "sleep 5", id="no-blank"),
        pytest.param("sleep 5 & \t\n\n", "sleep 5", id="blanks-after"),
        pytest.param("  a &", "  a", id="blanks-before"),
        pytest.param("a && b &", "a && b", id="list"),
        pytest.param("a & b &", "a & b", id="only-the-last"),
        pytest.param("a; b &", "a; b", id="sequence"),
        pytest.param("a 2>&1 &", "a 2>&1", id="after-a-descriptor"),
        pytest.param("a 2>&1&", "a 2>&1", id="against-a-descriptor"),
        pytest.param("a >&- &", "a >&-", id="after-a-closed-descriptor"),
        pytest.param("a &> log &", "a &> log", id="after-both-to-file"),
        pytest.param("a |& b &", "a |& b", id="after-pipe-both"),
        pytest.param("cat <<< word &", "cat <<< word", id="here-string"),
        pytest.param("(a; b) &", "(a; b)", id="subshell"),
        pytest.param("{ a; } &", "{ a; }", id="group"),
        pytest.param("for i in 1 2; do a; done &", "for i in 1 2; do a; done", id="loop"),
        pytest.param("case a in (a) b ;; esac &", "case a in (a) b ;; esac", id="case"),
        pytest.param("echo 'a &' &", "echo 'a &'", id="after-single-quotes"),
        pytest.param('echo "a & $(date) ${x:-1}" &', 'echo "a & $(date) ${x:-1}"', id="after-double-quotes"),
        pytest.param("echo $'it\\'s' &", "echo $'it\\'s'", id="after-ansi-quotes"),
        pytest.param("echo \\\\&", "echo \\\\", id="after-an-escaped-backslash"),
        pytest.param("echo \\ &", "echo \\ ", id="keeps-an-escaped-blank"),
        pytest.param("echo $&", "echo $", id="after-a-dollar"),
        pytest.param("echo $$'a' &", "echo $$'a'", id="after-the-process-number"),
        pytest.param("echo $# &", "echo $#", id="a-dollar-hash-is-no-comment"),
        pytest.param("echo a#b &", "echo a#b", id="a-hash-in-a-word-is-no-comment"),
        pytest.param("# start\nnpm start &", "# start\nnpm start", id="after-a-comment-line"),
        pytest.param("a \\\n  b &", "a \\\n  b", id="joined-lines"),
        pytest.param("a\nb &", "a\nb", id="lines"),
    ],
)
def test_one_trailing_background_operator_is_removed(command: str, stripped: str) -> None:
    assert strip_background(command) == stripped


@pytest.mark.parametrize(
    ("command", "split"),
    [
        pytest.param("cd src && ls", ("src", "ls"), id="plain"),
        pytest.param("cd src&&ls", ("src", "ls"), id="no-blanks"),
        pytest.param("  cd\tsrc  &&  ls  ", ("src", "ls"), id="many-blanks"),
        pytest.param("\ncd src &&\n  ls\n", ("src", "ls"), id="line-breaks-around"),
        pytest.param("# list\ncd src && ls", ("src", "ls"), id="after-a-comment-line"),
        pytest.param("cd src && a && b", ("src", "a && b"), id="and-more"),
        pytest.param("cd src && a | b |& c", ("src", "a | b |& c"), id="pipes"),
        pytest.param("cd src && make 2>&1 > log", ("src", "make 2>&1 > log"), id="redirections"),
        pytest.param("cd src && make &> log", ("src", "make &> log"), id="both-to-file"),
        pytest.param("cd src && (a; b &)", ("src", "(a; b &)"), id="subshell"),
        pytest.param(
            "cd src && X=1 a 'b || c; d' \"e & f\"", ("src", "X=1 a 'b || c; d' \"e & f\""), id="quoted-operators"
        ),
        pytest.param("cd src && a $(b; c || d)", ("src", "a $(b; c || d)"), id="operators-in-a-substitution"),
        pytest.param("cd src && a \\\n  b", ("src", "a \\\n  b"), id="joined-lines"),
        pytest.param("cd 'my dir' && ls", ("my dir", "ls"), id="single-quotes"),
        pytest.param('cd "my dir" && ls', ("my dir", "ls"), id="double-quotes"),
        pytest.param("cd my\\ dir && ls", ("my dir", "ls"), id="escaped-blank"),
        pytest.param("cd a'b c'\"d e\"\\ f && ls", ("ab cd e f", "ls"), id="mixed-quotes"),
        pytest.param('cd "a\\"b\\$c\\\\d\\e" && ls', ('a"b$c\\d\\e', "ls"), id="escapes-in-double-quotes"),
        pytest.param("cd '$HOME' && ls", ("$HOME", "ls"), id="a-dollar-in-single-quotes-is-a-name"),
        pytest.param("cd '*' && ls", ("*", "ls"), id="a-quoted-star-is-a-name"),
        pytest.param("cd 'a && b' && ls", ("a && b", "ls"), id="a-quoted-operator-is-a-name"),
        pytest.param("cd -- src && ls", ("src", "ls"), id="end-of-options"),
        pytest.param("cd -- -x && ls", ("-x", "ls"), id="dash-after-end-of-options"),
        pytest.param("cd /usr/share && ls", ("/usr/share", "ls"), id="absolute"),
        pytest.param("cd .. && ls", ("..", "ls"), id="parent"),
        pytest.param("cd ../../a/b && ls", ("../../a/b", "ls"), id="up-and-down"),
        pytest.param("cd . && ls", (".", "ls"), id="here"),
        pytest.param("cd ~ && ls", ("~", "ls"), id="home"),
        pytest.param("cd ~/a && ls", ("~/a", "ls"), id="below-home"),
        pytest.param('cd ~/"my dir" && ls', ("~/my dir", "ls"), id="quotes-below-home"),
        pytest.param("cd C# && ls", ("C#", "ls"), id="hash-in-the-name"),
        pytest.param("cd größe && ls", ("größe", "ls"), id="not-ascii"),
        pytest.param("cd a=b,c:d@e%f+g && ls", ("a=b,c:d@e%f+g", "ls"), id="harmless-signs"),
    ],
)
def test_a_literal_cd_becomes_the_working_directory(command: str, split: tuple[str, str]) -> None:
    assert split_cd(command) == split


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("", id="empty"),
        pytest.param("ls", id="no-cd"),
        pytest.param("cd src", id="only-cd"),
        pytest.param("cd src &&", id="no-rest"),
        pytest.param("cd src && \n", id="blank-rest"),
        pytest.param("cd src && # later", id="comment-for-a-rest"),
        pytest.param("cd src && ls # all of it", id="comment-behind-the-rest"),
        pytest.param("cd src && a[ #]=1 || b", id="hash-in-a-subscript"),
        pytest.param("cd && ls", id="no-folder"),
        pytest.param("cd a b && ls", id="two-folders"),
        pytest.param("cd '' && ls", id="empty-folder"),
        pytest.param("cd - && ls", id="back"),
        pytest.param("cd '-' && ls", id="quoted-back"),
        pytest.param("cd -- - && ls", id="back-after-end-of-options"),
        pytest.param("cd -P src && ls", id="option"),
        pytest.param("cd '-P' && ls", id="quoted-option"),
        pytest.param("cd $HOME && ls", id="variable"),
        pytest.param('cd "$HOME" && ls', id="variable-in-quotes"),
        pytest.param('cd "a$" && ls', id="lone-dollar"),
        pytest.param("cd $(pwd) && ls", id="substitution"),
        pytest.param("cd `pwd` && ls", id="backticks"),
        pytest.param('cd "`pwd`" && ls', id="backticks-in-quotes"),
        pytest.param("cd $'a' && ls", id="ansi-quotes"),
        pytest.param("cd src* && ls", id="star"),
        pytest.param("cd sr? && ls", id="question-mark"),
        pytest.param("cd sr[c] && ls", id="bracket"),
        pytest.param("cd {a,b} && ls", id="brace"),
        pytest.param("cd ~root && ls", id="home-of-another"),
        pytest.param("cd '~' && ls", id="quoted-tilde"),
        pytest.param("cd \\~/a && ls", id="escaped-tilde"),
        pytest.param('cd ~"/a" && ls', id="half-quoted-tilde"),
        pytest.param("cd a=~/b && ls", id="tilde-that-bash-expands-inside"),
        pytest.param("cd a/../b && ls", id="dots-behind-a-name-that-may-be-a-link"),
        pytest.param("cd /a/.. && ls", id="dots-in-an-absolute-path"),
        pytest.param("cd ~/.. && ls", id="dots-below-home"),
        pytest.param("cd 'a\nb' && ls", id="line-break-in-the-folder"),
        pytest.param("cd a\r && ls", id="carriage-return"),
        pytest.param("cd src || ls", id="or"),
        pytest.param("cd src ; ls", id="semicolon"),
        pytest.param("cd src & ls", id="background"),
        pytest.param("cd src | ls", id="pipe"),
        pytest.param("cd src\n&& ls", id="line-break-before-and"),
        pytest.param("cd src > log && ls", id="redirected"),
        pytest.param("cd 2>log && ls", id="descriptor"),
        pytest.param("X=1 cd src && ls", id="assignment"),
        pytest.param("'cd' src && ls", id="quoted-cd"),
        pytest.param("cdx src && ls", id="another-word"),
        pytest.param("(cd src && ls)", id="inside-parentheses"),
        pytest.param("(cd src && ls) | cat", id="parentheses-in-a-pipe"),
        pytest.param("{ cd src && ls; }", id="inside-braces"),
        pytest.param("! cd src && ls", id="negated"),
        pytest.param("cd src && a || b", id="or-behind"),
        pytest.param("cd src && a; b", id="semicolon-behind"),
        pytest.param("cd src && a\nb", id="line-behind"),
        pytest.param("cd src && a & b", id="background-in-the-middle"),
        pytest.param("cd src && a &", id="background-behind"),
        pytest.param("cd src && a |\\\n| b", id="or-over-a-joined-line"),
        pytest.param("cd src && && a", id="two-ands"),
        pytest.param("cd src && | a", id="pipe-for-a-rest"),
        pytest.param("cd src && a (", id="open-parenthesis"),
        pytest.param("cd src && a )", id="closed-too-often"),
        pytest.param("cd src && ((a))", id="arithmetic"),
        pytest.param("cd src && echo 'a", id="open-quote"),
        pytest.param("cd src && cat <<EOF\na\nEOF", id="here-document"),
        pytest.param("cd src && cat <<\\\nEOF", id="here-document-over-a-joined-line"),
        pytest.param("cd src && cat <\\\n<EOF", id="here-document-in-halves"),
        pytest.param("cd src && cd -", id="and-back"),
        pytest.param("cd src && cd .. && ls", id="and-up"),
        pytest.param("cd src && echo $OLDPWD", id="old-folder"),
        pytest.param("cd src && echo ~-", id="old-folder-by-tilde"),
        pytest.param("cd src && popd", id="folder-stack"),
        pytest.param("cd src && echo $_", id="last-word"),
        pytest.param("cd src && echo ${_}", id="last-word-in-braces"),
        pytest.param("cd src && a\0b", id="nul"),
    ],
)
def test_anything_else_runs_as_written(command: str) -> None:
    assert split_cd(command) is None


def _bash(script: str, folder: Path | str, *arguments: str) -> tuple[int, str]:
    """The exit status and the output; bash sees nothing of this machine's environment."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script, "bash", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=BOUND_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace")


# Bash prints a function back from its own reading of it, so nothing generated ever runs here.
_AS_BASH_READS = 'for body; do (eval "f() {\n$body\n}" && declare -f f) || echo unreadable; echo "%%"; done'

# No bare brace: it would end the function.
PIECES = st.sampled_from(
    [
        *("a", "b", "1", " ", " ", "\n", "\\\n", "&", " &", " & ", "&&", "&\\\n", "|", "||", ";", ";;", "!", "if "),
        *("\\", "'", '"', "`", "$", "$'", "$\\\n", "${", "${x}", "$(", "$(a)", "$[", "#", "(", ")", "((", "<("),
        *(">", "<", ">&", "<&-", "<<", "<<<", "EOF", "[", "]", "case a in ", "a)", " esac", "~", "*", "x="),
    ]
)
TEXTS = st.lists(PIECES, max_size=9).map("".join)
SAFE_ENDS = st.sampled_from([" &", "&", " & ", " &\n", "\n", ""])


@EXAMPLES
@given(st.lists(st.tuples(TEXTS, SAFE_ENDS).map("".join), min_size=1, max_size=40))
def test_bash_reads_a_stripped_command_as_the_same_one_in_the_foreground(
    tmp_path_factory: pytest.TempPathFactory, commands: list[str]
) -> None:
    pairs = [(command, strip_background(command)) for command in commands]
    changed = [(command, stripped) for command, stripped in pairs if stripped != command]
    if not changed:
        return
    flat = [text for pair in changed for text in pair]
    _, output = _bash(_AS_BASH_READS, tmp_path_factory.getbasetemp(), *flat)
    readings = output.split("%%\n")[:-1]

    for (command, _), before, after in zip(changed, readings[::2], readings[1::2], strict=True):
        if "unreadable" in before:
            continue
        assert before.removesuffix("\n}\n").endswith(" &"), command
        assert before.removesuffix(" &\n}\n") == after.removesuffix("\n}\n"), command


QUOTED = st.one_of(
    st.text("ab &;|\n", max_size=6).map(lambda text: f"'{text}&'"),
    st.text("ab &;|\n", max_size=6).map(lambda text: f'"{text}&"'),
    st.text("ab &;|\n", max_size=6).map(lambda text: f"$'{text}\\'&'"),
    st.just("\\&"),
)


@given(st.lists(st.one_of(QUOTED, st.sampled_from([" ", "a", "2>&1 ", "x && "])), max_size=8), QUOTED)
def test_quoted_ampersands_never_change(pieces: list[str], last: str) -> None:
    command = "echo " + "".join(pieces) + last

    assert strip_background(command) == command


FOLDERS = ["sub", "my dir", "$dollar", "q'q", "sub/inner"]
SPELLINGS = st.sampled_from(
    [
        *("sub", "./sub/", "'sub'", '"my dir"', "my\\ dir", "\\$dollar", "'$dollar'", "q\\'q", '"q\'q"'),
        *("sub/inner", "-- sub", "sub/'inner'", "gone", "'gone too'", ".", "sub/.."),
    ]
)
SAFE = st.sampled_from(
    [
        *("echo a", "cat name", "ls", "pwd", "true", "false", "! true", "echo *", "x=1 pwd", "echo \\&"),
        *("echo 'x && y; z || w'", 'echo "$(cat name) &"', "echo $(ls | head -1)", "(cat name; pwd)"),
        *("cat < name", "cat name 2>&1", "cat name >&2", "cat missing"),
    ]
)
JOINS = st.sampled_from([" && ", " | ", "&&", " &&\n", " || ", " ; ", "\n", " & ", " |& "])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    (root / "name").write_text("root\n")
    for folder in FOLDERS:
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "name").write_text(f"{folder}\n")
    return root


@settings(max_examples=100, deadline=None)
@given(folder=SPELLINGS, rest=st.lists(st.tuples(SAFE, JOINS), max_size=2), last=SAFE)
def test_running_the_rest_in_the_folder_gives_what_bash_gives_for_the_whole(
    tree: Path, folder: str, rest: list[tuple[str, str]], last: str
) -> None:
    command = f"cd {folder} && " + "".join(a + b for a, b in rest) + last
    split = split_cd(command)
    if split is None:
        return
    target = tree / split[0]
    status, output = _bash(command, tree)

    if target.is_dir():
        assert _bash(split[1], target) == (status, output), command
    else:
        # The caller reports a missing folder instead, so nothing may have run.
        assert (status, output) == (1, ""), command


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_a_split_command_is_read_by_bash_as_cd_and_the_rest(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    command = "cd sub && " + text
    split = split_cd(command)
    if split is None:
        return
    _, output = _bash(_AS_BASH_READS, tmp_path_factory.getbasetemp(), command, split[1])
    whole, rest = output.split("%%\n")[:-1]

    assert ("unreadable" in whole) == ("unreadable" in rest)
    if "unreadable" not in whole:
        assert whole == rest.replace("{ \n    ", "{ \n    cd sub && ", 1)


@given(st.one_of(st.text(), TEXTS))
def test_only_one_ampersand_and_blanks_are_ever_removed(text: str) -> None:
    stripped = strip_background(text)
    removed = text.removeprefix(stripped).replace("\\\n", "").strip(" \t\n")

    assert text.startswith(stripped)
    assert removed == ("" if stripped == text else "&")


@given(st.one_of(st.text(), TEXTS), st.one_of(st.text(), TEXTS))
def test_a_split_is_made_of_what_was_written(folder: str, rest: str) -> None:
    split = split_cd(f"cd {folder} && {rest}")

    assert split is None or (split[1] in rest and split[1].strip(" \t\n") and split[0] not in {"", "-"})


def test_long_commands_are_read_in_linear_time() -> None:
    for text in ('"' + "a" * 200_000, "'" * 100_001, '"$(' * 50_000, "$(" * 50_000, "( " * 50_000):
        assert strip_background(text + " &") == text + " &"
        assert split_cd("cd a && " + text) is None
