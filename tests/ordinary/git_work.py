"""A day's work with git, done inside the sandbox and outside of it on two copies of one repository, and compared."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.ordinary.person import Person
from tests.ordinary.session import Session

_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_LINE = "----- exit code"
_STATE = """
git status --porcelain
echo "head $(git symbolic-ref --short HEAD)"
git log --all --format='commit %s' | sed -E 's/[0-9a-f]{7,40}/HASH/' | sort
git for-each-ref --format='ref %(refname)' | sort
git rev-parse 'HEAD^{tree}' $(git write-tree)
git ls-files -v | grep -v '^H'
echo config; cat .git/config
"""
"""Read outside the sandbox, so that nothing that is hidden from commands is hidden from it."""


class Step(NamedTuple):
    """One command, and the name under which it is told."""

    name: str
    command: str


def steps(one: str, other: str) -> tuple[Step, ...]:
    """The work, with two tracked files that are no secrets."""
    return (
        Step("status", "git status --porcelain"),
        Step("diff", "git diff --exit-code"),
        Step("diff", f"echo '# a line' >> {one}; git diff --exit-code --stat"),
        Step("add", "git add -A; git status --porcelain"),
        Step("commit", "git commit -q -m 'Change a file'; git status --porcelain"),
        Step("stash", f"echo '# more' >> {one}; git stash push -q; git status --porcelain"),
        Step("stash", "git stash list; git stash pop -q; git status --porcelain"),
        Step("commit", "git commit -q -a -m 'More'"),
        Step("checkout", "git checkout -q -b topic"),
        Step("commit", f"echo '# on a branch' >> {one}; git commit -q -a -m 'On a branch'"),
        Step("checkout", "git checkout -q main"),
        Step("commit", f"echo '# on main' >> {other}; git commit -q -a -m 'On main'"),
        Step("rebase", "git checkout -q topic && git rebase -q main; git status --porcelain"),
        Step("remote", "git remote add origin https://example.org/it.git; git remote -v"),
        Step("config", "git config user.name Another; git config branch.topic.description words"),
        Step("config", "git config branch.main.remote origin; git config branch.main.merge refs/heads/main"),
        Step("status", "git status --porcelain; git diff --exit-code"),
        Step("log", "git log --format=%s; git show --stat --format=%s HEAD"),
        Step("fsck", "git fsck --no-dangling --no-progress"),
    )


def files(person: Person, repository: Path) -> tuple[str, str]:
    """Two tracked text files that no list of secrets names."""
    done = person.run(["git", "ls-files", "*.py", "*.toml", "*.rst", "*.md", "*.txt", "*.json"], cwd=repository)
    plain = [name for name in done.stdout.splitlines() if re.fullmatch(r"[\w./-]+", name) and not _SECRET.search(name)]
    return plain[0], plain[-1]


_SECRET = re.compile(r"credential|secret|\.env|key|token|(?:^|/)\.", re.IGNORECASE)


def differences(
    person: Person, session: Session, inside: Path, outside: Path, work: Sequence[Step]
) -> list[tuple[Step, str]]:
    """The steps that did something else inside, each with what was different; what follows from one is told too."""
    found = []
    for step in work:
        said = session.bash(step.command)
        ours = (said.exit_code, _plain(said.output), person.run(["bash", "-c", _STATE], cwd=inside).stdout)
        theirs = _bare(person, outside, step.command)
        if ours != theirs:
            found.append((step, _told(ours, theirs)))
    return found


def _bare(person: Person, repository: Path, command: str) -> tuple[int, str, str]:
    """Exit code, output and state of the same command where nothing confines it; one program for all three."""
    script = f"({command}) 2>&1; echo; echo {_LINE} $?; {_STATE}"
    output, _, rest = person.run(["bash", "-c", script], cwd=repository).stdout.partition(f"\n{_LINE} ")
    code, _, state = rest.partition("\n")
    return int(code), _plain(output), state


def _plain(output: str) -> str:
    """Without hashes, which hold the time of a commit, and without words about an empty output."""
    text = _HASH.sub("HASH", output.strip())
    return "" if text.startswith("(The command printed nothing") else text


def _told(ours: tuple[int, str, str], theirs: tuple[int, str, str]) -> str:
    parts = []
    if ours[0] != theirs[0]:
        parts.append(f"exit code {ours[0]}, not {theirs[0]}")
    for mine, bare, name in ((ours[1], theirs[1], "output"), (ours[2], theirs[2], "state")):
        if mine != bare:
            more = [line for line in mine.splitlines() if line not in bare.splitlines()]
            less = [line for line in bare.splitlines() if line not in mine.splitlines()]
            parts.append(f"{name}: {' / '.join(more[:3]) or '-'} in the place of {' / '.join(less[:3]) or '-'}")
    return "; ".join(parts)
