"""The rows themselves, the scripts that commands carry, and the shape of the corpus."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.permissions.rules import STRICTNESS
from ferrule.permissions.shell.form import parse_flags
from ferrule.permissions.shell.programs import table
from ferrule.permissions.shell.scripts import refusal
from ferrule.permissions.shell.tables import NEVER
from tests.rows import each_kept_row, each_row

from .judged import corpus

ROWS = corpus(Path(__file__).parents[2] / "data" / "shell")
KINDS = {"", "n", "x", "xx", "r", "w", "d"}
WANTED = """
ls cat head tail wc echo printf pwd true false test [ cd which type command whoami id date uname hostname basename
dirname realpath readlink stat file du df tree find fd locate grep egrep fgrep rg ag sort uniq cut tr paste comm join
diff cmp nl tac rev fold column expand seq sleep yes md5sum sha256sum cksum base64 xxd od hexdump strings jq yq sed awk
less more man ps top free uptime lsof env printenv cp mv rm rmdir mkdir touch ln chmod chown tee tar gzip gunzip unzip
zip curl wget ping dig ssh scp rsync git gh npm pnpm yarn npx node python python3 pip uv ruff black mypy pyright pytest
tox pre-commit make cmake ninja cargo rustc go gofmt gcc clang javac mvn gradle docker kubectl terraform psql sqlite3
tsc eslint prettier jest vitest kill pkill nslookup host split csplit dd
"""
NETWORK = frozenset(
    {"curl", "wget", "ping", "dig", "nslookup", "host", "ssh", "scp", "rsync", "gh", "traceroute", "whois"}
)


def test_the_programs_that_developers_use_most_have_rows() -> None:
    assert [name for name in WANTED.split() if name not in table()] == []


def test_every_flag_of_every_row_is_written_as_the_rows_are_read() -> None:
    for name, form in table().items():
        for flag, what in parse_flags(form.flags, whole=form.whole).items():
            assert re.fullmatch(r"--?[^\s:?!]+", flag), (name, flag)
            assert what.value in KINDS or what.value.startswith("="), (name, flag, what)
            assert form.whole or flag.startswith("--") or len(flag) == 2, (name, flag)


def test_no_flag_is_both_listed_and_a_danger() -> None:
    # The rows of git and docker share one list of dangers, and a sub-command may give a letter another meaning.
    wrong = []
    for name, form in table().items():
        if name.split()[0] in {"git", "docker", "podman"}:
            continue
        dangers = {flag for row in form.dangers.split("; ") if row for flag in row.partition("= ")[0].split()}
        flags = parse_flags(form.flags, whole=form.whole)
        wrong += [(name, flag) for flag in dangers & set(flags) if not flags[flag].value]

    assert wrong == []


def test_every_danger_is_named_with_its_reason() -> None:
    for name, form in table().items():
        for row in form.dangers.split("; ") if form.dangers else ():
            flags, mark, why = row.partition("= ")
            assert mark, (name, row)
            assert all(flag.startswith("-") for flag in flags.split()), (name, row)
            assert why, (name, row)


def test_every_sub_command_is_reached_from_its_program() -> None:
    for name in table():
        program, _, sub = name.rpartition(" ")
        if program and not name.startswith("python -m "):
            assert program in table(), name
            assert table()[program].subs, name
            assert sub


def test_no_program_that_speaks_to_other_hosts_is_harmless() -> None:
    speaking = {name for name in table() if name.split()[0] in NETWORK} - {"gh"}

    assert [name for name in speaking if table()[name].harmless] == []


def test_what_no_pattern_covers_has_no_row() -> None:
    assert set(NEVER) & set(table()) == set()


PLAIN_SCRIPTS = (
    "p", "1p", "1,5p", "$p", "$!N", "/a/p", "/a/,/b/p", "\\,a,p", "0~2p", "/a/,+3p", "1!d", "s/a/b/", "s/a/b/gp",
    "s/a/b/2", "s|a|b|g", "s/a\\/b/c/", "s/[a-z]/x/", "s/[]]/x/", "y/abc/xyz/", "p;p", "p\np", "{p;q}", "/a/{p;n;d}",
    "/a/{ s/x/y/; p }", ":a;N;$!ba;s/\\n/ /g", "b", "t end", "q5", "l 3", "=", "h;G;x", "/w x/p", "s/w/e/",
    "s/a/\\\nb/", "/a/I,/b/Ip", "1,3 ! p",
)  # fmt: skip


@each_row("script", PLAIN_SCRIPTS)
def test_a_script_that_only_prints_is_not_refused(script: str) -> None:
    assert refusal(script) == ""


@each_kept_row
def test_a_script_that_writes_reads_or_runs_or_is_not_understood_is_refused(script: str) -> None:
    assert refusal(script)


@settings(max_examples=500, deadline=None)
@given(
    before=st.lists(st.sampled_from([script for script in PLAIN_SCRIPTS if "{" not in script]), max_size=3),
    address=st.sampled_from(["", "1", "$", "/a/", "1,3", "/a/,$", "2~3", "1!", "\\xaxI", "/a/,+2 "]),
    reaching=st.sampled_from(
        ["w f", "W f", "e id", "e", "r f", "R f", "s/a/b/w f", "s/a/b/e", "s#a#b#gpw f", "s,a,b,Ie"]
    ),
    join=st.sampled_from(["\n", ";"]),
)
def test_a_reaching_command_anywhere_in_a_script_is_refused(
    before: list[str], address: str, reaching: str, join: str
) -> None:
    assert refusal(join.join([*before, address + reaching]))


@settings(max_examples=300, deadline=None)
@given(st.text("pwe/s;{}\n ab1$!,\\[]W", max_size=16))
def test_any_text_is_read_to_its_end(script: str) -> None:
    assert isinstance(refusal(script), str)


def test_the_corpus_is_whole() -> None:
    ids = [str(row["id"]) for row in ROWS]
    expected = [str(row["expect"]) for row in ROWS]

    assert len(set(ids)) == len(ids)
    assert set(expected) <= set(STRICTNESS) - {"delegate"}
    assert expected.count("allow") >= 180
    assert expected.count("ask") >= 270
    assert expected.count("deny") >= 30


@pytest.mark.parametrize("key", ["allow", "ask", "deny"])
def test_the_rules_of_the_corpus_are_lists_of_texts(key: str) -> None:
    assert [row["id"] for row in ROWS if not isinstance(row[key], list)] == []


def test_every_row_of_the_corpus_says_why() -> None:
    fields = {"id", "command", "allow", "deny", "ask", "expect", "why"}

    assert [row["id"] for row in ROWS if set(row) != fields or not str(row["why"]).endswith(".")] == []


def test_no_two_rows_of_the_corpus_are_the_same() -> None:
    seen = [(row["command"], str(row["allow"]), str(row["deny"]), str(row["ask"])) for row in ROWS]

    assert [one for one in seen if seen.count(one) > 1] == []
