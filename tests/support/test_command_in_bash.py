"""The shell command's rewrites, judged by bash itself."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.dialects.shell_command import split_cd, strip_background

BOUND_SECONDS = 60


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


@settings(max_examples=60, deadline=None)
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
        assert status, command
        assert output == "", command


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
