"""A command line taken apart: every command is found, and what bash may read in another way is a doubt."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ferrule.permissions.shell.parse import parse
from tests.rows import each_kept_row, each_row

from .bash import every, meaning, readings, taken, texts


@each_kept_row
def test_every_command_is_found_and_nothing_is_doubtful(command: str, found: list[str]) -> None:
    line = taken(command)

    assert every(line) == found
    assert line.doubts == ()


DOUBTFUL = [
    pytest.param("rm 'x", "rm", id="open-quote"),
    pytest.param("a; ;rm x", "rm x", id="stray-semicolon"),
    pytest.param("a;; rm x", "rm x", id="stray-end-of-case"),
    pytest.param("ls\rrm x", "rm", id="carriage-return"),
    pytest.param("ls\r\nrm x", "rm x", id="crlf"),
    pytest.param("ls \0; rm x", "rm x", id="nul"),
    pytest.param("ls \x1b[2K; rm x", "rm x", id="escape"),
    pytest.param("ls \ud800; rm x", "rm x", id="surrogate"),
    pytest.param("ls\u00a0; rm x", "rm x", id="no-break-space"),
    pytest.param("ls \u202e; rm x", "rm x", id="direction"),
    pytest.param("a\\\nb c", "c", id="word-over-two-lines"),
    pytest.param("a &\\\n& rm x", "rm x", id="operator-over-two-lines"),
    pytest.param("a <<E <<F\nE\nF\nrm x", "rm x", id="two-here-documents"),
    pytest.param("a <<E\n`rm x`\nE", "rm x", id="backquotes-in-a-here-document"),
    pytest.param("a <<E\nx\\\nE\nrm x\nE", "rm x", id="joined-line-in-a-here-document"),
    pytest.param("exec 3<>f; rm x", "rm x", id="read-and-write"),
    pytest.param("{fd}>f rm x", "rm x", id="named-descriptor"),
    pytest.param("ls !(a|b); rm x", "rm x", id="extended-glob"),
    pytest.param("f() { rm x; }; f", "rm x", id="function"),
    pytest.param("function f { rm x; }", "rm x", id="function-keyword"),
    pytest.param("coproc rm x", "rm x", id="coproc"),
    pytest.param("coproc N { rm x; }", "rm x", id="named-coproc"),
    pytest.param("echo ${x@P}; rm x", "rm x", id="prompt-expansion"),
    pytest.param("echo ${!x}; rm x", "rm x", id="indirect"),
    pytest.param("echo ${x:=$(rm x)}", "rm x", id="assigning-expansion"),
    pytest.param("echo $((rm x) || (rm y))", "rm y", id="commands-that-look-like-arithmetic"),
    pytest.param("echo $((a[$(rm x)]))", "rm x", id="subscript"),
    pytest.param("echo $[$(rm x)]", "rm x", id="old-arithmetic"),
    pytest.param("((a=$(rm x)))", "rm x", id="arithmetic-command"),
    pytest.param("for ((;;)); do rm x; done", "rm x", id="arithmetic-loop"),
    pytest.param("a=(1 $(rm x))", "rm x", id="array"),
    pytest.param("a[$(rm x)]=1", "rm x", id="subscript-assignment"),
    pytest.param("[[ $(rm x) -eq 1 ]]", "rm x", id="comparison-by-number"),
    pytest.param("read x; echo $((x)); rm x", "rm x", id="calculated-input"),
    pytest.param('[ a ">" b ] && [ a > f ]; rm x', "rm x", id="redirection-in-brackets"),
    pytest.param("test -v 'a[$(rm x)]'", "test -v a[$(rm x)]", id="evaluated-name"),
    pytest.param('echo $"rm"; rm x', "rm x", id="translated"),
    pytest.param("echo `rm \\`a\\``", "rm `a`", id="nested-backquotes"),
    pytest.param("a (rm x)", "rm x", id="subshell-as-a-word"),
    pytest.param("a 2>& -b; rm x", "rm x", id="dash-behind-a-descriptor"),
    pytest.param("<>(rm x)", "rm x", id="operator-before-a-bracket"),
    pytest.param("x" * 10_001 + "; rm x", "rm x", id="too-long"),
    pytest.param("x" * 200_000 + "; rm x", None, id="much-too-long"),
    pytest.param("a; " * 201 + "rm x", "rm x", id="too-many"),
    pytest.param("( " * 60 + "rm x" + " )" * 60, "rm x", id="too-deep"),
    pytest.param("$(echo " * 300 + "rm x" + ")" * 300, "echo $(echo rm x)", id="much-too-deep"),
    pytest.param("if time { rm x; }; then a; fi", "rm x", id="time-of-a-group"),
]


@each_row(("command", "seen"), DOUBTFUL)
def test_what_is_not_certain_is_a_doubt_and_its_commands_are_still_listed(command: str, seen: str | None) -> None:
    line = taken(command)

    assert line.doubts
    assert all(not doubt.endswith(".") for doubt in line.doubts)
    assert seen is None or any(seen in one for one in every(line)), every(line)


CHANGES = [
    *(
        "alias a=b",
        "export A=b",
        "declare a=b",
        "typeset a",
        "local a",
        "readonly a",
        "unset a",
        "set -a",
        "shopt -s x",
    ),
    *("enable -n a", "trap a EXIT", "eval a", "source a", ". a", "exec a", "hash -p a b", "bind a", "complete a"),
    *("ulimit -n 1", "umask 0", "mapfile a", "readarray a", "getopts a b", "let a=1", "fc", "printf -v PATH x"),
    *("command eval a", "builtin export A=b", "time eval a", "'export' A=b", "\\export A=b", "exp''ort A=b"),
    *("PATH=a", "IFS=b", "LD_PRELOAD=a", "BASH_ENV=a", "http_proxy=a", "read PATH", "read -a a", "read 'a[$(b)]'"),
    *("for PATH in a; do b; done", "IFS=a", "_=a", "wait -p PATH"),
]


@each_row("command", [pytest.param(command, id=command) for command in CHANGES])
@each_row("around", ["{}; ls", "ls && {}", "{{ {}; }}; ls", "if ls; then {}; fi"])
def test_what_changes_later_commands_is_a_doubt(command: str, around: str) -> None:
    assert taken(around.format(command)).doubts


@each_kept_row
def test_everyday_lines_are_without_a_doubt(command: str) -> None:
    assert taken(command).doubts == ()


RECORD = [
    pytest.param('echo "\\"; rm x; echo \\""', None, id="CVE-2025-54795-quotes-that-do-not-close"),
    pytest.param('echo ""; rm x; echo ""', "rm x", id="CVE-2025-54795-quotes-that-close"),
    pytest.param("echo 'a' ; rm x #'", "rm x", id="CVE-2025-54795-comment"),
    pytest.param("echo a && (rm x", "rm x", id="CVE-2025-58764-parse-error"),
    pytest.param("cat f | sed 1d | rm x", "rm x", id="CVE-2026-25723-piped"),
    pytest.param("; ".join(["true"] * 60 + ["rm x"]), "rm x", id="sub-command-cap"),
    pytest.param("; ".join(["true"] * 400 + ["rm x"]), "rm x", id="sub-command-cap-with-a-doubt"),
    pytest.param("ls && rm x", "rm x", id="claude-code-4956-chain"),
    pytest.param("ls\nrm x", "rm x", id="crush-newline"),
    pytest.param("timeout 5 rm x", "rm x", id="crush-timeout"),
    pytest.param("env A=b rm x", "rm x", id="crush-env"),
    pytest.param("nohup rm x", "rm x", id="crush-nohup"),
    pytest.param("{ rm x; }", "rm x", id="claude-code-94314-group"),
    pytest.param("cat <(rm x)", "rm x", id="claude-code-70369-process-substitution"),
    pytest.param("unheard-of rm x", "unheard-of rm x", id="claude-code-92542-unknown-wrapper"),
    pytest.param("bash -c 'rm x'", "rm x", id="claude-code-43085-shell"),
    pytest.param("find . -ok rm x \\;", "rm x", id="amazon-q-444-ok"),
    pytest.param("find . -okdir rm x \\;", "rm x", id="amazon-q-444-okdir"),
    pytest.param("env " * 5 + "rm x", "rm x", id="codex-f97e775693-nested"),
    pytest.param("echo $(echo $(echo `rm x`))", "rm x", id="nested-substitutions"),
    pytest.param("echo a > >(rm x)", "rm x", id="redirection-into-a-command"),
]


@each_row(("command", "seen"), RECORD)
def test_what_went_unseen_elsewhere_is_seen(command: str, seen: str | None) -> None:
    found = every(taken(command))

    assert (seen in found) if seen is not None else found == ['echo "; rm x; echo "']


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("cat$IFS/etc/passwd", id="CVE-2025-66032-blank-in-a-variable"),
        pytest.param("$'\\x72m' x", id="coded-name"),
        pytest.param("$x y", id="variable"),
        pytest.param("r{m,} x", id="brace"),
        pytest.param("/bin/r? x", id="glob"),
        pytest.param("`echo rm` x", id="substitution"),
        pytest.param("~root/rm x", id="home-of-another"),
    ],
)
def test_a_program_that_the_shell_makes_up_is_not_known(command: str) -> None:
    assert not taken(command).commands[0].words[0].known


@pytest.mark.parametrize("flag", ["-{delete,print}", "-delet?", "$x", "-delete$x", "$(echo -delete)", "-dele[t]e"])
def test_a_flag_that_the_shell_makes_up_is_not_known(flag: str) -> None:
    # The record: codex 4216123b3d.
    word = taken(f"find . {flag}").commands[0].words[2]

    assert not word.known
    assert not word.start or word.start.startswith("-")


@pytest.mark.parametrize(
    ("redirection", "target"), [(">| f", "f"), (">!f", "!f"), (">f", "f"), (">>f", "f"), (">&f", "f"), ("&>>f", "f")]
)
def test_every_way_to_write_a_file_is_seen(redirection: str, target: str) -> None:
    # The record: CVE-2026-24053.
    line = taken(f"echo a {redirection}")

    assert [(one.target.text, one.writes) for one in line.commands[0].redirects] == [(target, True)]


def test_redirections_belong_to_their_own_command() -> None:
    line = taken("a < f | b > g && c 2>&1 >> h || d &> i; { e; } >| j; k <<< l; m >&-")
    redirects = [[(one.operator, one.target.text, one.writes) for one in simple.redirects] for simple in line.commands]

    assert redirects == [
        [("<", "f", False)],
        [(">", "g", True)],
        [(">&", "1", False), (">>", "h", True)],
        [("&>", "i", True)],
        [(">|", "j", True)],
        [],
        [("<<<", "l", False)],
        [(">&", "-", False)],
    ]
    assert line.doubts == ()


def test_a_command_is_shown_as_it_was_written_without_its_redirections() -> None:
    line = taken("A=1 git  log 'a b' | B=2 wc > f -l")

    assert [simple.source for simple in line.commands] == ["A=1 git  log 'a b'", "B=2 wc -l"]
    assert [[(name, value.text) for name, value in simple.assigns] for simple in line.commands] == [
        [("A", "1")],
        [("B", "2")],
    ]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree").resolve()
    for folder in ("sub/inner", "other", "far/deep", "my dir"):
        (root / folder).mkdir(parents=True)
    (root / "file").touch()
    (root / "link").symlink_to(root / "far" / "deep")
    return root


FOLDERS = [
    pytest.param("cd sub && X", ["sub"], id="and"),
    pytest.param("cd sub; X", ["sub"], id="semicolon"),
    pytest.param("cd -- sub; X", ["sub"], id="dashes"),
    pytest.param("cd 'my dir'\nX", ["my dir"], id="quoted"),
    pytest.param("cd sub/inner/.. && X", ["sub"], id="up"),
    pytest.param("(cd sub && X); X", ["sub", ""], id="subshell"),
    pytest.param("cd sub | X; X", ["", ""], id="pipe"),
    pytest.param("cd sub & X", [""], id="background"),
    pytest.param("cd sub && X & X", ["sub", ""], id="list-in-background"),
    pytest.param("{ cd sub; }; X", ["sub"], id="group"),
    pytest.param("cd sub; cd inner; X", ["sub/inner"], id="twice"),
    pytest.param("cd gone; X", [None], id="missing"),
    pytest.param("cd gone && X", ["gone"], id="missing-and"),
    pytest.param("touch y && cd gone && X", [None], id="missing-after-something"),
    pytest.param("cd file; X", [None], id="a-file"),
    pytest.param("cd $x; X", [None], id="variable"),
    pytest.param("cd $x; cd sub; X", [None], id="still-unknown"),
    pytest.param("cd -; X", [None], id="back"),
    pytest.param("cd -P sub; X", [None], id="flag"),
    pytest.param("cd a b; X", [None], id="two-operands"),
    pytest.param("cd sub || X", [None], id="or"),
    pytest.param("cd sub && X || X", ["sub", "sub"], id="and-or"),
    pytest.param("! cd sub && X", [None], id="not"),
    pytest.param("if cd sub; then X; else X; fi", ["sub", None], id="if"),
    pytest.param("if X; then cd sub; else cd other; fi; X", ["", None], id="branches"),
    pytest.param("if X; then cd sub; fi; X", ["", None], id="maybe"),
    pytest.param("while X; do cd sub; done; X", [None, None], id="loop"),
    pytest.param("for i in 1; do X; cd ..; done", [None], id="for"),
    pytest.param("case a in b) cd sub; X;; esac; X", [None, None], id="case"),
    pytest.param("pushd sub; X; popd; X", ["sub", None], id="pushd"),
    pytest.param("$x sub; X", [None], id="unknown-command"),
    pytest.param("command cd sub; X", [None], id="command-cd"),
    pytest.param("command -p cd sub; X", [None], id="command-with-a-flag"),
    pytest.param("HOME=sub cd; X", [None], id="other-home"),
    pytest.param("cd link; X", ["far/deep"], id="link"),
    pytest.param("cd link/..; X", [None], id="above-a-link"),
    pytest.param("cd link; cd ..; X", [None], id="above-a-link-in-two-steps"),
    pytest.param("echo $(cd sub; X); X", ["sub", ""], id="substitution"),
    pytest.param("cd sub <<E\n$(X)\nE\nX", ["", "sub"], id="here-document"),
    pytest.param("eval x; X", [None], id="eval"),
    pytest.param('cd "sub" && cd ../other && X', ["other"], id="up-and-down"),
]


@each_row(("command", "folders"), FOLDERS)
def test_the_folder_of_every_command_is_followed(tree: Path, command: str, folders: list[str | None]) -> None:
    line = parse(command, cwd=str(tree), roots=[str(tree)])
    found = [simple.cwd for simple in line.commands if texts(simple) == ["X"]]

    assert [None if one is None else os.path.realpath(one) for one in found] == [
        None if folder is None else str(tree / folder) if folder else str(tree) for folder in folders
    ]


PIECES = st.sampled_from(
    [
        *(
            "a",
            "b",
            "1",
            " ",
            " ",
            " ",
            "\n",
            "\\\n",
            "&",
            " & ",
            "&&",
            "|",
            "||",
            ";",
            ";;",
            "!",
            "! ",
            "if ",
            "then ",
        ),
        *("fi", "else ", "while ", "do ", "done", "for x in ", "{ ", "\\", "'", '"', "`", "$", "${", "${x}", "$x"),
        *("$(", "$(a)", "$((", "))", "$[", "#", " #", "(", ")", "((", "<(", ">(", ">", "<", ">>", ">&", "2>&1", "&>"),
        *("<<", "<<<", "<<E\n", "\nE\n", "E", "[", "]", "[[ ", " ]]", "case a in ", "a)", " esac", "~", "~/", "*", "?"),
        *(
            "x=",
            "y=1 ",
            "=",
            "+=",
            "\\$",
            "\\'",
            '\\"',
            "'q r'",
            '"q r"',
            "$y",
            "function ",
            "coproc ",
            "in ",
            ",",
            "..",
        ),
        *("{a,b}", "-", "--", "-f ", "echo ", "@", "%", "^", "é", "test ", "[ ", " ]", "-eq ", "!a", "until ", "> f"),
    ]
)
SOUPS = st.lists(PIECES, min_size=1, max_size=14).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(SOUPS, min_size=20, max_size=60))
def test_what_is_without_a_doubt_is_read_as_bash_reads_it(
    tmp_path_factory: pytest.TempPathFactory, commands: list[str]
) -> None:
    # Bash decodes `$'…'` when it prints it back; words of that kind have a test of their own.
    certain = [(one, line) for one in commands if "$'" not in one and not (line := taken(one)).doubts]
    assume(certain)
    printed = readings([command for command, _ in certain], tmp_path_factory.getbasetemp())

    for (command, line), reading in zip(certain, printed, strict=True):
        again = taken(reading) if reading is not None else None
        if again is not None and not again.doubts:
            assert meaning(line) == meaning(again), (command, reading)


_PARSES = """
import sys
from ferrule.permissions.shell.parse import parse
for line in sys.stdin.read().split("\\0"):
    print(parse(line, cwd="/workspace", roots=["/workspace"]).commands[0].words[1].text)
"""


def test_no_character_behind_a_brace_ends_the_process() -> None:
    characters = [chr(code) for code in range(0x370, 0x10FFFF, 0x777) if chr(code).isprintable()]
    shapes = ("{%s", "{%s}", "{12%s}", "{1..%s}", "a{%s,b", "{%s..3")
    words = [shape % character for character in characters for shape in shapes]
    told = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", _PARSES],
        input="\0".join(f"echo {word}" for word in words),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (told.returncode, told.stdout.splitlines()) == (0, words)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=60), SOUPS))
def test_any_text_at_all_is_taken_apart(text: str) -> None:
    line = taken(text)

    assert all(simple.cwd in {None, "/workspace"} or os.path.isabs(simple.cwd or "") for simple in line.commands)


@pytest.mark.parametrize(
    "text",
    [
        "(",
        "$(",
        "$( ",
        "'a",
        '"$(',
        "if ",
        "<(",
        "a&&",
        "a|",
        "a;",
        "cat <<E\n",
        "${x",
        "case a in ",
        "! ",
        "{ ",
        "env ",
    ],
)
def test_long_and_broken_lines_are_taken_apart_too(text: str) -> None:
    assert taken(text * (9_000 // len(text) | 1)).doubts
