"""Commands that are a prompt of ours: `/init` has AGENTS.md written, `/review` has a change reviewed, read-only."""

import contextlib
import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from ferrule.cli.talk.bang import ASIDE
from ferrule.cli.talk.commands import Next
from ferrule.core.call import Call
from ferrule.core.errors import ToolFailure
from ferrule.core.events import Done

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat

_FILE = "AGENTS.md"
_INIT = """\
Look at this project and {what} {file} in its root: what a coding agent who has never seen it has to know.

First find out, by reading and by cheap commands, not by guessing: the README, the files that say how it is built and \
tested (pyproject.toml, package.json, Makefile, Cargo.toml, go.mod, CI workflows), the layout of the folders, and what \
other agents were told ({others}). Then write, in this order and only where you know it:

1. What the project is, in two sentences.
2. The commands: install, build, run, all tests, one test, lint, format, type check. Only those that the project's own \
files name, or that you have seen work.
3. The layout: which folder holds what, and where to begin to read.
4. Rules that cannot be seen from one file: style, naming, errors, tests, commits, what must not be touched.

Keep it under 100 lines. Leave out what every programmer knows, what the code says itself, and whatever is true of any \
project. Do not invent commands. {existing}When it is written, say in three sentences what is in it and what you could \
not find out."""
_IMPROVE = (
    "There is one already: read it first, keep what is right and what its writer wanted, correct what is out of date, "
    "and add what is missing. "
)
_ANEW = "There is one already, which the user wants to have replaced: write it anew. "
_OTHERS = "CLAUDE.md, GEMINI.md, .cursorrules, .github/copilot-instructions.md, if there are any"
_REVIEW = """\
Review {what}. You only read: nothing may be written now, and nothing has to be fixed.

See the change with {see}. {size}Read the files around it as far as you need them to judge it: who calls what was \
changed, which tests there are.

Look for what would hurt: wrong results, cases that are forgotten, errors that are swallowed, races, data that can be \
lost, broken callers, holes in security, and tests that are missing for what is new or cannot fail. Leave out matters \
of taste, and what a formatter or linter says. Be sure: give the input or the order of events with which it goes \
wrong, and leave out what you cannot show.

Answer with the findings, the worst first, each with its place as `file:line`, what goes wrong and when, and how it \
could be mended in a sentence. If there are none, say so. End with one sentence: can it be merged as it is?"""
_MOST_NAME = 300
_MOST_BRANCHES = 200


class Change(NamedTuple):
    """What is reviewed."""

    what: str
    see: str
    """The commands that show it."""
    stat: str = ""
    """The command that sums it up."""


async def init(chat: "Chat", _: str) -> Next:
    """Have the agent write AGENTS.md; one that is there is written over only after a question."""
    folder = chat.session.engine.jail.folder
    what, existing = "write", ""
    if os.path.lexists(os.path.join(folder, _FILE)):
        keys = [("i", "mprove it"), ("r", "eplace it"), ("n", "othing")]
        key = await chat.stoppable(chat.front.key(f"There is an {_FILE} already.", keys))
        if key not in {"i", "r"}:
            chat.note(f"{_FILE} stays as it is.")
            return None
        what, existing = ("improve", _IMPROVE) if key == "i" else ("replace", _ANEW)
    prompt = _INIT.format(what=what, file=_FILE, others=_OTHERS, existing=existing)
    await chat.ask(prompt, "/init")
    return None


async def review(chat: "Chat", rest: str) -> Next:
    """Have the agent review a change, with everything but reading refused."""
    try:
        change = await _change(chat, rest.strip())
    except ToolFailure as error:
        chat.note(error.message)
        return None
    size = ""
    if change.stat and (stat := await _git(chat, change.stat)) is not None:
        if not stat.strip():
            chat.note(f"There is nothing to review: {change.what} changes nothing.")
            return None
        size = f"It sums up to:\n\n{stat.rstrip()}\n\n"
    policy = chat.session.engine.policy
    chat.note(f"The agent reviews {change.what}; it can only read until it is done.")
    policy.reads_only = True
    try:
        await chat.ask(_REVIEW.format(what=change.what, see=change.see, size=size), f"/review {rest}".rstrip())
    finally:
        policy.reads_only = False
    return None


def branches(folder: str) -> list[str]:
    """The branches of the repository in this folder, as its files name them; for completion."""
    git = os.path.join(folder, ".git")
    heads = os.path.join(git, "refs", "heads")
    found = [os.path.relpath(os.path.join(at, name), heads) for at, _, names in os.walk(heads) for name in names]
    with (
        contextlib.suppress(OSError),
        open(os.path.join(git, "packed-refs"), encoding="utf-8", errors="replace") as file,
    ):
        found += [row.split()[1].removeprefix("refs/heads/") for row in file if " refs/heads/" in row]
    return sorted(set(found))[:_MOST_BRANCHES]


async def _change(chat: "Chat", wanted: str) -> Change:
    """What the words after the command mean. Raises `ToolFailure` where git knows nothing of it."""
    if await _git(chat, "rev-parse --git-dir") is None:
        raise ToolFailure("/review needs a git repository: this folder is in none, or git is not to be had.")
    if wanted.startswith("-") or len(wanted) > _MOST_NAME or "\n" in wanted:
        raise ToolFailure(f"{wanted[:40]!r} is no branch, commit, range or file.")
    if not wanted:
        return await _usual(chat)
    quoted = shlex.quote(wanted)
    if ".." in wanted and all([await _is_commit(chat, end) for end in wanted.replace("...", "..").split("..") if end]):
        return Change(f"the changes of {wanted}", _both(quoted), f"diff --stat {quoted} --")
    base = await _base(chat)
    if await _is_commit(chat, wanted):
        is_branch = await _git(chat, f"rev-parse --verify --quiet refs/heads/{quoted}") is not None
        is_branch = is_branch or await _git(chat, f"rev-parse --verify --quiet refs/remotes/{quoted}") is not None
        if not is_branch:
            return Change(f"the commit {wanted}", f"`git show {quoted}`", f"show --stat --format= {quoted} --")
        if not base or wanted in {base, base.removeprefix("origin/")}:
            return _range(f"what this branch has that {wanted} has not", f"{quoted}...HEAD")
        return _range(f"the branch {wanted}, as it would be merged into {base}", f"{shlex.quote(base)}...{quoted}")
    if os.path.lexists(os.path.join(chat.session.engine.jail.folder, wanted)):
        see = f"`git diff HEAD -- {quoted}` and, if it is new, by reading it"
        return Change(f"the uncommitted change of {wanted}", see, f"status --short -- {quoted}")
    raise ToolFailure(
        f"git knows no {wanted}. Write /review for the uncommitted change, or a branch, a commit, a range such as "
        "main...HEAD, or a file."
    )


async def _usual(chat: "Chat") -> Change:
    """The uncommitted change; in a clean tree what the branch has before the one that it came from."""
    if (await _git(chat, "status --porcelain") or "").strip():
        return Change(
            "the uncommitted change, with the files that are not tracked yet",
            "`git status --short`, `git diff HEAD`, and by reading the new files",
            "status --short",
        )
    base = await _base(chat)
    if base and (await _git(chat, f"rev-list --count {shlex.quote(base)}..HEAD") or "0").strip() not in {"0", ""}:
        return _range(f"what this branch has that {base} has not", f"{shlex.quote(base)}...HEAD")
    return Change("the last commit, for nothing is uncommitted", "`git show HEAD`", "show --stat --format= HEAD --")


def _range(what: str, quoted: str) -> Change:
    return Change(what, _both(quoted), f"diff --stat {quoted} --")


def _both(quoted: str) -> str:
    log = quoted.replace("...", "..")
    return f"`git log --oneline {log}` and `git diff {quoted}`"


async def _base(chat: "Chat") -> str:
    """The branch that others are merged into; empty where none is known."""
    head = await _git(chat, "rev-parse --abbrev-ref origin/HEAD")
    for name in ((head or "").strip(), "main", "master", "trunk"):
        if name and name != "origin/HEAD" and await _is_commit(chat, name):
            return name
    return ""


async def _is_commit(chat: "Chat", name: str) -> bool:
    if name.startswith("-"):
        return False
    quoted = shlex.quote(f"{name}^{{commit}}")
    return await _git(chat, f"rev-parse --verify --quiet {quoted}") is not None


async def _git(chat: "Chat", words: str) -> str | None:
    """What git says, through the same rules and walls as the agent's own calls; None where it fails or is refused."""
    engine = chat.session.engine
    face = engine.registry.face_of("shell")
    if face is None:
        return None
    chat.typed_calls += 1
    call = Call(face.name, {face.shown_param("command"): f"git {words}"}, f"{ASIDE}{chat.typed_calls}")
    events = engine.events()
    try:
        await engine.run([call], approved=[call.id])
    finally:
        events.close()
    ends = [event async for event in events if isinstance(event, Done) and event.id == call.id]
    return ends[0].output if ends and ends[0].exit_code == 0 else None
