"""The status line: what it says, what it leaves out when there is little room, and what it reads of git."""

import itertools
import os
import subprocess

import pytest
from tests.cli.talk.test_talk_rewind import model

from ferrule.agent.session import Session
from ferrule.cli.talk.status import Beside, Port, StatusSegment, _background, fit, status
from ferrule.cli.talk.text import plain
from ferrule.models.cues import said
from ferrule.permissions import Everybody


def written(parts):
    return " · ".join(map(plain, parts))


def part(rank, whole, short=None):
    return StatusSegment(rank, (("", whole),), (("", whole if short is None else short),))


PARTS = [
    part(0, "default"),
    part(3, "anthropic:opus", "opus"),
    part(1, "context 97% left", "97% left"),
    part(2, "main"),
]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (50, "default · anthropic:opus · context 97% left · main"),
        (49, "default · opus · context 97% left · main"),
        (33, "default · opus · 97% left · main"),
        (31, "default · 97% left · main"),
        (18, "default · 97% left"),
        (17, "default"),
        (3, "default"),
    ],
)
def test_what_matters_least_is_shortened_and_then_left_out(width, shown):
    assert written(fit(PARTS, width)) == shown


async def status_of(tmp_path, width, answer="", mode="default"):
    async with Session(str(tmp_path), model=model(tmp_path, said("Hi.")), dialect="claude", ask=Everybody()) as session:
        beside = Beside(itertools.count().__next__)
        return written(status(session.agent, session.engine, mode, answer=answer, beside=beside, width=width))


async def test_mode_and_context_survive_at_every_width(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(folder)], check=True)
    shown = {width: await status_of(folder, width, "yes") for width in (37, 57, 77, 137)}

    assert {width: len(text) <= width for width, text in shown.items()} == dict.fromkeys(shown, True)
    assert shown[37] == "default + yes · scripted · 100% left"
    assert shown[137].startswith("default + yes · scripted · ")
    assert " · context 100% left · trunk · " in shown[137]
    assert shown[137].endswith("project · claude")


@pytest.mark.parametrize(
    ("mode", "answer", "begins"),
    [
        ("plan", "", "plan mode ·"),
        ("acceptEdits", "yes", "acceptEdits + yes ·"),
        ("default", "deny", "default + asks nobody ·"),
    ],
)
async def test_the_mode_is_said_first_with_what_was_answered_beforehand(tmp_path, mode, answer, begins):
    assert (await status_of(tmp_path, 100, answer, mode)).startswith(begins)


def git(folder, *words):
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
        check=True,
        capture_output=True,
    )


def test_the_branch_follows_a_switch_also_in_a_worktree_and_without_a_branch(tmp_path):
    folder, other = tmp_path / "a", tmp_path / "b"
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(folder)], check=True)
    now = [0.0]
    beside = Beside(lambda: now[0])
    seen = [beside.branch(str(tmp_path)), beside.branch(str(folder))]
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(folder, "switch", "-q", "-c", "feature/one")
    seen.append(beside.branch(str(folder)))  # it was looked at just now
    now[0] = 1.0
    seen.append(beside.branch(str(folder)))
    git(folder, "worktree", "add", "-q", "-b", "two", str(other))
    (other / "deep").mkdir()
    seen.append(beside.branch(str(other / "deep")))
    git(folder, "checkout", "-q", "--detach")
    now[0] = 2.0

    assert seen == ["", "trunk", "trunk", "feature/one", "two"]
    assert beside.branch(str(folder)).startswith("commit ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFO on this system: there is nothing to wait for")
def test_a_repository_that_is_none_neither_holds_up_nor_steers(tmp_path):
    (tmp_path / "pipe" / ".git").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe" / ".git" / "HEAD")
    (tmp_path / "evil" / ".git").mkdir(parents=True)
    (tmp_path / "evil" / ".git" / "HEAD").write_text("ref: refs/heads/\x1b]2;x\x07\n")

    found = [Beside(lambda: 0.0).branch(str(tmp_path / name)) for name in ("pipe", "evil")]
    assert not any("\x1b" in branch for branch in found)


@pytest.mark.parametrize(
    ("running", "ports", "whole", "short"),
    [
        (0, (), "", ""),
        (2, (), "2 running", "2 running"),
        (1, (Port(8000, True),), "1 running on port 8000", "1 running :8000"),
        (1, (Port(5432, False), Port(8000, True)), "1 running on ports 5432 inside, 8000", "1 running :5432 inside +1"),
        (3, tuple(Port(n, True) for n in range(1, 7)), "3 running on ports 1, 2, 3, 4, 2 more", "3 running :1 +5"),
    ],
)
def test_what_runs_in_the_background_is_counted_with_its_ports(running, ports, whole, short):
    assert tuple(map(plain, _background(running, ports))) == (whole, short)
