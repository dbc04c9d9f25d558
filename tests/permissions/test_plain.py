"""Development commands that need no question, beside those that must ask: every row thinks like an attacker."""

import os
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferrule.core.access import within
from ferrule.files.guard import Guard
from ferrule.permissions.auto_allow import TABLE, auto_allowed
from tests.rows import each_row

PROGRAMS = sorted({key.split(" ")[0] for key in TABLE} | {"python3", "rm", "curl", "env", "sudo", "bash", "tox", "nox"})
PLAIN = string.ascii_letters + string.digits + "_./:@+,=- "


def executable(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine's programs, and a workspace with what projects have in them, and a link that leads out."""
    top = tmp_path_factory.mktemp("plain").resolve()
    for program in PROGRAMS:
        executable(top / "bin" / program)
    work = top / "work"
    for folder in ("src", "tests", ".amp", ".git", "docs", "node_modules/.bin", "pkg"):
        (work / folder).mkdir(parents=True)
    for file in (
        "tests/test_a.py",
        "tests/__init__.py",
        "src/main.py",
        "Makefile",
        "package.json",
        "args.txt",
        "run.py",
    ):
        (work / file).write_text("")
    (work / ".amp" / "test_b.py").write_text("")
    (top / "outside").mkdir()
    (work / "out").symlink_to(top / "outside")
    (work / "notes").symlink_to(work / ".amp")
    return top


def asks(place: Path, command: str, *, cwd: str = "work", path: str | None = None) -> bool:
    guard = Guard()
    notes = str(place / "work" / ".amp")
    return not auto_allowed(
        command,
        cwd=str(place / cwd),
        roots=[str(place / "work")],
        off_limits=lambda real: guard.secret(real) or real == notes or real.startswith(notes + "/"),
        path=str(place / "bin") if path is None else path,
    )


def listed(file: str) -> list[str]:
    """The commands of a file, a line each; headings begin with `##`."""
    lines = (Path(__file__).parents[1] / "data" / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("## ")]


def rows(*commands: str) -> list[Any]:
    """Rows whose id is the command itself, as far as an id can show it."""
    return [pytest.param(command, id=command.encode("unicode_escape").decode()[:60]) for command in commands]


@pytest.mark.contract("permission.auto-allowed-commands", "permission.auto-allowed-format")
@each_row("command", rows(*listed("commands_that_pass.txt")))
def test_common_development_commands_need_no_question(place, command):
    assert not asks(place, command)


BLANKS = rows(
    "",
    " ",
    " git status",
    "git status ",
    "git  status",
    "git\tstatus",
    "git status\n",
    "git status\nrm x",
    "git status \\\n--ext-diff",
    "\ngit status",
    "git status\r",
    "git status\rrm x",
    "git status\r\nrm x",
    "git status\x0brm",
    "git status\x0crm",
    "git\u00a0status",
    "git\u2003status",
    "git\u200bstatus",
    "git status\u2028rm x",
    "git status\u0085rm x",
    "git status\0",
    "git status\x1b[2K",
    "git status \u202erm",
    "ｇｉｔ status",
    "gіt status",
    "git status " + "a" * 1000,
    "ls " + "a/" * 600,
)


@pytest.mark.contract("permission.bash-requires-approval")
@each_row("command", [*rows(*listed("commands_that_ask.txt")), *BLANKS])
def test_everything_else_asks(place, command):
    assert asks(place, command)


@given(st.text(max_size=60), st.text(max_size=60), st.characters(exclude_characters=PLAIN))
def test_a_character_that_is_not_plain_always_asks(place, before, after, odd):
    assert asks(place, f"git status {before}{odd}{after}")


flags = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=/.", min_size=1, max_size=8)
unlisted = flags.map(lambda text: "-" + text)


@given(st.sampled_from(sorted(TABLE)), unlisted)
def test_a_flag_that_is_not_listed_asks(place, key, flag):
    form = TABLE[key]
    is_listed = flag in form.flags or flag == "--version" or set(flag[1:]) <= set(form.letters)
    has_value = flag.split("=")[0] in form.values

    assert is_listed or has_value or f"{key} {flag}" in TABLE or asks(place, f"{key} {flag}")


parts = st.sampled_from(["src", "tests", "out", "notes", ".amp", "..", ".", "/", "=", ":", ",", "@", "-", "a", "HEAD"])
words_of_parts = st.lists(parts, min_size=1, max_size=6).map("".join)


@given(st.sampled_from(sorted(TABLE)), st.lists(words_of_parts, max_size=3))
@example("ls", [".."])
@example("ls", ["src/../.."])
@example("ls", ["src/../tests"])
@example("ls", ["out"])
@example("ls", ["notes"])
@example("git diff", ["HEAD:../a"])
@example("ruff check", ["@src"])
def test_no_command_that_needs_no_question_leads_out(place, key, words):
    work = str(place / "work")
    pieces = [piece for word in words for piece in re.split("[=:,]", word)]
    reached = [os.path.realpath(os.path.join(work, piece)) for piece in pieces]
    out = [real for real in reached if not within(real, work) or within(real, f"{work}/.amp")]
    lists_of_arguments = [word for word in words if word.startswith("@") and not key.startswith("git ")]
    leads_out = bool(out or lists_of_arguments or any(".." in piece.split("/") for piece in pieces))

    assert asks(place, " ".join([key, *words])) or not leads_out


def test_an_absolute_path_into_the_workspace_is_a_path_in_the_workspace(place):
    assert not asks(place, f"ls {place}/work/src")
    assert asks(place, f"ls {place}/work-evil")
    assert asks(place, f"ls {place}")


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        pytest.param("work/src", False, id="below"),
        pytest.param("outside", True, id="outside"),
        pytest.param(".", True, id="above"),
        pytest.param("work/out", True, id="link-that-leads-out"),
        pytest.param("work/.amp", True, id="the-agent-s-notes"),
        pytest.param("work/notes", True, id="link-to-the-agent-s-notes"),
    ],
)
def test_the_folder_of_the_command_counts_too(place, cwd, expected):
    assert asks(place, "npm test", cwd=cwd) is expected


@each_row(
    ("path", "expected"),
    [
        pytest.param("{top}/bin", False, id="outside"),
        pytest.param("{top}/none:{top}/bin", False, id="first-folder-is-not-there"),
        pytest.param("{top}/work/src:{top}/bin", False, id="workspace-folder-without-the-program"),
        pytest.param("{top}/work/tools:{top}/bin", True, id="program-in-the-workspace-comes-first"),
        pytest.param("{top}/bin:{top}/work/tools", False, id="program-in-the-workspace-comes-later"),
        pytest.param("{top}/linked:{top}/bin", True, id="link-into-the-workspace"),
        pytest.param("{top}/links:{top}/bin", True, id="folder-linked-into-the-workspace"),
        pytest.param(".:{top}/bin", True, id="dot-first"),
        pytest.param(":{top}/bin", True, id="empty-first"),
        pytest.param("bin:{top}/bin", True, id="relative-first"),
        pytest.param("{top}/bin:.", False, id="dot-last-does-not-matter"),
        pytest.param("{top}/none", True, id="nowhere"),
        pytest.param("", True, id="no-path"),
    ],
)
def test_a_program_counts_only_when_it_is_found_outside_the_workspace(tmp_path, path, expected):
    top = tmp_path.resolve()
    for name in ("bin/git", "work/tools/git"):
        executable(top / name)
    (top / "work" / "src").mkdir()
    (top / "linked").mkdir()
    (top / "linked" / "git").symlink_to(top / "work" / "tools" / "git")
    (top / "links").symlink_to(top / "work" / "tools")

    assert asks(top, "git status", path=path.format(top=top)) is expected


def test_without_a_path_of_its_own_the_environment_s_counts(place, monkeypatch):
    def plain() -> bool:
        return auto_allowed(
            "git status", cwd=str(place / "work"), roots=[str(place / "work")], off_limits=lambda _: False
        )

    monkeypatch.setenv("PATH", str(place / "bin"))
    with_path = plain()
    monkeypatch.delenv("PATH")

    assert (with_path, plain()) == (True, False)


@each_row(
    ("files", "pointer", "expected"),
    [
        pytest.param([], None, False, id="no-repository"),
        pytest.param(["HEAD", "objects/x", "refs/x", "config"], None, True, id="files-that-look-like-a-repository"),
        pytest.param(["../HEAD", "../objects/x", "../refs/x"], None, True, id="above-the-folder"),
        pytest.param(["HEAD", "objects/x"], None, True, id="half-a-repository"),
        pytest.param(["HEAD", "commondir"], None, True, id="a-pointer-to-another"),
        pytest.param(["HEAD"], None, False, id="a-file-of-that-name"),
        pytest.param([".git/HEAD", "HEAD", "objects/x", "refs/x"], None, False, id="a-real-one-comes-first"),
        pytest.param([], "gitdir: ../../main/.git/worktrees/x", False, id="work-tree"),
        pytest.param([], "gitdir: ../.git/modules/x", False, id="submodule"),
        pytest.param([], "gitdir: ../evil", True, id="forged-pointer"),
        pytest.param([], "", True, id="empty-pointer"),
    ],
)
def test_git_asks_where_its_settings_could_have_been_written(tmp_path, files, pointer, expected):
    top = tmp_path.resolve()
    executable(top / "bin" / "git")
    sub = top / "work" / "sub"
    sub.mkdir(parents=True)
    for name in files:
        file = sub / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    if pointer is not None:
        (sub / ".git").write_text(pointer)

    assert asks(top, "git status", cwd="work/sub") is expected


def test_a_pipe_in_the_place_of_a_repository_is_not_waited_for(tmp_path):
    top = tmp_path.resolve()
    executable(top / "bin" / "git")
    (top / "work").mkdir()
    os.mkfifo(top / "work" / ".git")

    assert asks(top, "git status")


def test_modules_begin_in_the_workspace(place):
    assert not asks(place, "python -m unittest tests.test_a")
    assert asks(place, "python -m unittest tests2.test_a")
    assert not asks(place, "python -m unittest test_a", cwd="work/tests")


@each_row(
    "command",
    [
        "black .",
        "ruff format",
        "ruff check --fix src",
        "eslint --fix src",
        "gofmt -w src",
        "prettier --write .",
        "cargo fmt",
        "go fmt ./src/...",
    ],
)
def test_a_formatter_that_would_follow_a_link_out_asks(tmp_path, command):
    top = tmp_path.resolve()
    for program in PROGRAMS:
        executable(top / "bin" / program)
    (top / "work" / "src").mkdir(parents=True)
    (top / "work" / "src" / "a.py").write_text("")
    assert not asks(top, command)
    (top / "outside.py").write_text("")
    (top / "work" / "src" / "l.py").symlink_to(top / "outside.py")

    assert asks(top, command)


@pytest.mark.parametrize("command", ["git diff a b", "git diff --stat a b"])
def test_a_comparison_without_a_repository_asks(tmp_path, command):
    executable(tmp_path.resolve() / "bin" / "git")
    (tmp_path / "work").mkdir()

    assert asks(tmp_path.resolve(), command)
