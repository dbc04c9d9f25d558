"""What one simple command would do: harmless, covered by a pattern, or in doubt; and which paths it names."""

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.permissions.shell.form import parse_flags
from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.programs import CommandFinding, examine, table
from tests.rows import each_kept_row, each_row


def found(command: str, *, cwd: str | None = "/ws") -> CommandFinding:
    return examine([Word(word) for word in shlex.split(command)], cwd=cwd)


def unknown(text: str, start: str = "", *, single: bool = False, glob: bool = False) -> Word:
    return Word(text, known=False, start=start, single=single, glob=glob)


HARMLESS = (
    "ls", "ls -la src", "ls -l1", "cat -n a", "head -20 a", "head -n5 a", "tail -n +3 a", "wc -l a b", "echo -x y",
    "pwd", "printf '%s\\n' a", "test -f a", "[ -d a ]", "date +%F", "date -u -d yesterday", "uname -a", "id -un",
    "stat a", "find . -name '*.py' -o -type d", "find src ( -name a -or -name b ) -print0", "find . ! -name x",
    "fd -e py main", "grep -rn x src", "grep -A3 -e x a", "grep -- -x a", "rg -n x", "rg x src -g '*.py'",
    "sort -t: -k2,2n a", "uniq -c a", "cut -d, -f1 a", "tr a b", "diff -u a b", "comm -12 a b", "jq -r .name a",
    "jq --arg n v '.[$n]' a", "jq .env a", "sed -n 1,5p a", "sed -ne 1p a", "sed 's/a/b/g;s/c/d/' a",
    "awk -F, '{print $1}' a", "awk 'NR>1' a", "tar tzf a.tgz", "tar -tvf a", "unzip -l a", "gzip -dc a", "ps aux",
    "ps -ef", "xxd a", "base64 -d a", "sleep 1", "seq 10 -1 1", "git status -sb", "git log --oneline -5",
    "git log -n 5 --format=%h", "git diff HEAD~1 -- src", "git show HEAD:a", "git branch", "git branch -vv",
    "git branch --list 'x*'", "git tag -l", "git remote -v", "git stash list", "git stash show -p", "git reflog",
    "git rev-parse --abbrev-ref HEAD", "git config user.name", "git config --get user.email", "git grep -n x",
    "git worktree list", "git --no-pager log", "git --version", "python3 --version", "pip list", "ruff rule E501",
    "/usr/bin/git status", "command -v git", "git -C sub status",
)  # fmt: skip
"""Commands that need no rule."""


@each_row("command", HARMLESS)
def test_a_command_that_only_reads_needs_no_rule(command: str) -> None:
    one = found(command)

    assert (one.known, one.harmless, one.doubt, one.writes) == (True, True, "", ())


@each_kept_row
def test_a_pattern_covers_a_command_with_listed_flags(command: str) -> None:
    one = found(command)

    assert (one.known, one.harmless, one.doubt) == (True, False, "")


@each_kept_row
def test_a_pattern_does_not_cover_what_is_not_listed(command: str) -> None:
    one = found(command)

    assert one.doubt
    assert not one.harmless
    assert one.unsure


@pytest.mark.parametrize(
    ("command", "doubt"),
    [
        ("find . -delete", "find -delete deletes files"),
        ("git log --output=x", "git log --output writes a file"),
        ("sed -n '/a/w x' b", "sed's w command writes a file"),
        ("rg --foo x", "an unknown flag --foo of rg"),
        ("./git status", "./git is a file that could be any program"),
        ("export A=b", "export changes how later commands run"),
        ("git evil", "the tables know nothing of git evil"),
    ],
)
def test_a_doubt_says_what_it_is_about(command: str, doubt: str) -> None:
    assert found(command).doubt == doubt


@each_row(
    ("command", "reads", "writes"),
    [
        ("cat a b", ("a", "b"), ()),
        ("cat -", (), ()),
        ("grep x a", ("a",), ()),
        ("grep -e x a", ("a",), ()),
        ("grep -r x", (".",), ()),
        ("rg x", (".",), ()),
        ("ls", (".",), ()),
        ("find a b -newer c", ("c", "a", "b"), ()),
        ("sed -n p a", ("a",), ()),
        ("sed -e p a", ("a",), ()),
        ("cp a b c", ("a", "b"), ("c",)),
        ("mv a b", (), ("a", "b")),
        ("rm -r a", (), ("a",)),
        ("tee -a x", (), ("x",)),
        ("ln -s a b", ("a",), ("b",)),
        ("dd if=a of=b", ("a",), ("b",)),
        ("tar czf a.tgz b c", ("b", "c"), ("a.tgz",)),
        ("tar xzf a.tgz", ("a.tgz",), (".",)),
        ("git show HEAD:a/b", ("HEAD:a/b", "a/b"), ()),
        ("git diff x..y -- a", ("x..y", "x", "y", "a"), ()),
        ("git log -L 1,5:a/b", ("a/b",), ()),
        ("git restore a", ("a",), ("a",)),
        ("git rm a", (), ("a",)),
        ("git -C sub add x", ("sub/x", "sub/."), ()),
        ("ruff format a", ("a",), ("a",)),
        ("ruff format --check a", ("a",), ()),
        ("cut a -d b/x", ("b/x", "a"), ()),
        ("cut -d /x a", ("/x", "a"), ()),
        ("cut -d / a", ("a",), ()),
        ("python x.py y", ("x.py",), ()),
        ("[ -f a ]", ("a",), ()),
    ],
)
def test_the_paths_that_a_command_names_are_told(command: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
    one = found(command)

    assert (one.reads, one.writes) == (reads, writes)


@pytest.mark.parametrize(
    "command", ["pytest -q", "make", "npm test", "cargo build", "go test", "git commit -m x", "npx tsc"]
)
def test_programs_that_run_what_the_repository_chooses_are_told_apart(command: str) -> None:
    assert found(command).runs_project_code


def test_the_command_among_the_words_of_another_is_looked_at_too() -> None:
    assert found("npx tsc --noEmit").covers_inside
    assert found("npx eslint --rulesdir x").doubt
    assert found("poetry run sort -o x").doubt


def test_a_program_without_a_row_is_not_known_and_not_doubted() -> None:
    assert found("mytool build --fast") == CommandFinding(
        known=False, harmless=False, doubt="", unsure=True, program="mytool"
    )


@each_row(
    ("words", "doubted", "harmless"),
    [
        pytest.param([Word("ls"), unknown("$x")], True, False, id="variable"),
        pytest.param([Word("ls"), unknown('"$x"', single=True)], True, False, id="quoted-variable-may-be-a-flag"),
        pytest.param([Word("ls"), unknown("src/$x", "src/")], True, False, id="several-words"),
        pytest.param([Word("ls"), unknown('src/"$x"', "src/", single=True)], True, False, id="unknown-path"),
        pytest.param(
            [Word("ls"), Word("--"), unknown('"$x"', single=True)], True, False, id="unknown-path-behind-dashes"
        ),
        pytest.param([Word("ls"), unknown("*", glob=True)], False, True, id="glob-for-a-tame-program"),
        pytest.param([Word("rg"), Word("x"), unknown("*", glob=True)], True, False, id="glob-that-may-be-a-flag"),
        pytest.param([Word("ls"), unknown("src/*", "src/", glob=True)], False, True, id="glob-below-a-folder"),
        pytest.param([Word("cat"), Word("--"), unknown("*", glob=True)], False, True, id="glob-behind-dashes"),
        pytest.param([Word("ls"), unknown("-*", "-", glob=True)], True, False, id="glob-of-flags"),
        pytest.param([Word("grep"), unknown("a*", "a", glob=True)], True, False, id="glob-as-pattern"),
        pytest.param([Word("grep"), Word("x"), unknown("a*", "a", glob=True)], False, True, id="glob-of-files"),
        pytest.param([Word("sort"), unknown("a*", "a", glob=True)], False, True, id="glob-for-sort"),
        pytest.param([Word("sort"), unknown("*", glob=True)], True, False, id="glob-that-may-write"),
        pytest.param([Word("git"), Word("log"), unknown("a*", "a", glob=True)], True, False, id="glob-for-git"),
        pytest.param([Word("rm"), unknown("a*", "a", glob=True)], True, False, id="glob-for-rm"),
        pytest.param(
            [Word("find"), Word("."), Word("-name"), unknown("a*", "a", glob=True)], True, False, id="find-name"
        ),
        pytest.param([Word("git"), unknown("$x")], True, False, id="sub-command"),
        pytest.param([unknown("$x"), Word("ls")], True, False, id="program"),
        pytest.param([Word("echo"), unknown("$x")], False, False, id="echo"),
        pytest.param([Word("echo"), unknown('"exit $?"', "exit ", single=True)], False, True, id="echo-status"),
        pytest.param([Word("echo"), unknown('"$?$HOME"', single=True)], False, False, id="echo-status-and-more"),
        pytest.param([Word("printf"), unknown('"$x"', single=True)], True, False, id="printf-flag"),
        pytest.param([Word("printf"), Word("%s"), unknown('"$x"', single=True)], False, False, id="printf-argument"),
        pytest.param(
            [Word("git"), Word("commit"), Word("-m"), unknown('"$(x)"', single=True)],
            False,
            False,
            id="value-of-a-flag",
        ),
        pytest.param(
            [Word("git"), Word("commit"), Word("-m"), unknown("$x")], True, False, id="value-that-may-be-several"
        ),
        pytest.param(
            [Word("git"), Word("log"), unknown('--author="$x"', "--author=", single=True)],
            False,
            False,
            id="long-value",
        ),
        pytest.param(
            [Word("git"), Word("log"), unknown('--out="$x"', "--out=", single=True)], True, False, id="long-unlisted"
        ),
        pytest.param([Word("mytool"), unknown("$x")], True, False, id="program-without-a-row"),
        pytest.param([Word("grep"), Word("x"), unknown("…")], True, True, id="words-of-xargs"),
        pytest.param([Word("rg"), Word("x"), unknown("…")], True, False, id="words-of-xargs-that-may-be-flags"),
        pytest.param([Word("sed"), unknown('"$x"', "s/", single=True), Word("a")], True, False, id="sed-script"),
        pytest.param([Word("awk"), unknown('"$x"', "{", single=True), Word("a")], True, False, id="awk-program"),
        pytest.param([Word("curl"), unknown('"https://$x"', "https://", single=True)], True, False, id="address"),
    ],
)
def test_what_only_the_shell_knows_is_doubted_where_it_matters(
    words: list[Word], doubted: bool, harmless: bool
) -> None:
    one = examine(words, cwd="/ws")

    assert (bool(one.doubt), one.harmless) == (doubted, harmless)


def test_globs_are_told_so_that_whoever_decides_can_look_what_they_find() -> None:
    one = examine([Word("cat"), unknown("src/*", "src/", glob=True)], cwd="/ws")

    assert one.globs == ("src/*",)
    assert one.reads == ("src/*",)


def test_a_folder_that_is_not_certain_leaves_no_relative_path_certain() -> None:
    assert found("cat a", cwd=None).doubt
    assert found("touch a", cwd=None).doubt
    assert not found("cat /a", cwd=None).doubt


def test_no_words_are_no_command() -> None:
    assert examine([], cwd="/ws") == CommandFinding(known=False, harmless=False, doubt="")


# `echo`, `true`, `test` and their like have no flags: every word is a word to them.
_FLAGGED = [command for command in HARMLESS if not table()[shlex.split(command)[0].rpartition("/")[2]].plain]
_letters = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=", min_size=1, max_size=12)


def _rows(words: list[str]) -> set[str]:
    """Every flag that a row of this program lists, in any of its sub-commands."""
    name = words[0].rpartition("/")[2]
    rows = [form for key, form in table().items() if key == name or key.startswith(f"{name} ")]
    return {flag for form in rows for flag in parse_flags(form.flags, whole=form.whole)}


@settings(max_examples=600, deadline=None)
@given(command=st.sampled_from(_FLAGGED), flag=_letters.map(lambda text: f"--{text}"), place=st.integers(1, 8))
def test_an_unlisted_flag_anywhere_leaves_no_command_harmless(command: str, flag: str, place: int) -> None:
    words = shlex.split(command)
    if flag.partition("=")[0] in _rows(words) or flag.strip("-") == "":
        return
    end = words.index("--") if "--" in words else len(words)
    at = min(place, end)
    # Behind a flag with a value, or among the words of `printf` and `awk`, it would be a word and no flag.
    before = examine([Word(word) for word in words[:at]], cwd="/ws")
    changed = examine([Word(word) for word in (*words[:at], flag, *words[at:])], cwd="/ws")
    taken = "lacks its value" in before.doubt or words[0] in {"printf", "awk", "command", "cd"}

    assert taken or not changed.harmless
