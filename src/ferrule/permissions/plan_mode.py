"""Restrict a session to planning, and turn the wishes of an approved plan into rules.

Plan mode ends with the user's yes. The rules of a plan are exact command lines only; anything that is not plain
is asked about later.
"""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ferrule.core.access import MODE, Access, within
from ferrule.core.errors import Denied, ToolFailure
from ferrule.core.services import Beginner, PlanApproved, PlanEntered, Planning, Wish
from ferrule.core.tool import Context, Face, Facts
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.transaction import Contents, Writer
from ferrule.permissions import DEFAULT, Answer, Case, Decision, Question, parse_mode, visible
from ferrule.permissions.policy import Policy
from ferrule.permissions.shell.parse import parse, proposals
from ferrule.system import Threads
from ferrule.tools import EXIT_PLAN
from ferrule.tools.plan import PlanFolder, read_plan, unfit

_TOOL = "Bash"
_MOST_BYTES = 1 << 20
_PLAIN = r"[A-Za-z0-9_][A-Za-z0-9_./:@+,=-]*( [A-Za-z0-9_./:@+,=-]+| &&)*"
_FILLERS = (
    "run runs running execute perform do the all a an project projects s our my this of for its unit existing full code"
    " please"
)
_SENTENCE = "the all any a an my our new old and to for with in of from into on"
"""Words that no command has in the second place, but that many a sentence has that begins with a program's name."""
_GOES_OUT = "push publish deploy release upload login"
_NOT_BEFOREHAND = (
    "rm rmdir dd mkfs chmod chown kill pkill killall shutdown reboot mount umount curl wget gh docker podman kubectl"
    " terraform helm aws gcloud az systemctl ansible fly heroku vercel netlify install mv cp ln tee truncate shred find"
)
"""Programs of which somebody wants to see each call when it comes."""
_OF_GIT = "add commit status diff log show"
"""What git may be allowed beforehand: nothing of what throws work away, changes its settings or goes elsewhere."""
_BRINGS = "install i add update upgrade remove uninstall"
"""What packages are changed with. Those that the project names itself are an intent; others are asked about."""
_INTENTS: Mapping[str, str] = {
    **dict.fromkeys(("test", "tests", "test suite", "tests suite"), "test"),
    **dict.fromkeys(("build", "builds", "compile", "compilation"), "build"),
    **dict.fromkeys(("lint", "linter", "linters", "linting", "lint checks"), "lint"),
    **dict.fromkeys(
        ("type check", "type checks", "typecheck", "type checker", "type checking", "typechecker"), "types"
    ),
    **dict.fromkeys(("format", "formatter", "formatters", "formatting"), "format"),
    **dict.fromkeys(("install dependencies", "install deps", "install packages", "dependencies install"), "install"),
}
_TARGETS: Mapping[str, tuple[str, ...]] = {
    "test": ("test", "tests", "check"),
    "build": ("build",),
    "lint": ("lint",),
    "types": ("types", "typecheck", "type-check"),
    "format": ("format", "fmt"),
}
"""What an intent is called among the targets of a Makefile and the scripts of a package."""
_BY_FILE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Cargo.toml": {
        "test": ("cargo test",),
        "build": ("cargo build",),
        "lint": ("cargo clippy",),
        "types": ("cargo check",),
        "format": ("cargo fmt",),
        "install": ("cargo fetch",),
    },
    "go.mod": {
        "test": ("go test ./...",),
        "build": ("go build ./...",),
        "lint": ("go vet ./...",),
        "format": ("go fmt ./...",),
        "install": ("go mod download",),
    },
    "uv.lock": {"install": ("uv sync",)},
    "poetry.lock": {"install": ("poetry install",)},
    "requirements.txt": {"install": ("pip install -r requirements.txt",)},
}
_PYTHON: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "test": (("pytest", ("pytest", "pytest -q")),),
    "lint": (("ruff", ("ruff check", "ruff check .")), ("flake8", ("flake8",))),
    "types": (("mypy", ("mypy", "mypy .")), ("pyright", ("pyright",))),
    "format": (("ruff", ("ruff format", "ruff format .")), ("black", ("black .",))),
}
"""Intent → programs that a Python project may name in its settings, and how each is run."""


class WishRules(NamedTuple):
    """What becomes of the wishes of a plan."""

    granted: tuple[tuple[str, tuple[str, ...]], ...]
    """Each wish that rules come of, with them."""
    asked: tuple[str, ...]
    """The others: they are asked about when they come."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All rules, each once."""
        return tuple(dict.fromkeys(text for _, texts in self.granted for text in texts))


def resolve_wishes(wishes: Sequence[Wish], jail: Jail) -> WishRules:
    """The rules that wishes become, in this workspace. Nothing of it holds before the user has seen it."""
    granted, asked = [], []
    for wish in dict.fromkeys(wishes):
        lines = _match_intent(wish.prompt, jail) or _literal(wish.prompt, jail) if wish.tool == _TOOL else ()
        if lines:
            granted.append((wish.prompt, tuple(f"{_TOOL}({line})" for line in lines)))
        else:
            asked.append(wish.prompt)
    return WishRules(tuple(granted), tuple(asked))


def _match_intent(prompt: str, jail: Jail) -> tuple[str, ...]:
    """The command lines of a well-known intent, as this project has them; of several, only if each is known."""
    found: dict[str, None] = {}
    for piece in re.split(r"\band\b|[,;&]", prompt.lower()):
        words = [word for word in re.findall(r"[a-z0-9]+", piece) if word not in _FILLERS.split()]
        intent = _INTENTS.get(" ".join(words))
        lines = dict.fromkeys(_lines(intent, jail.folder)) if intent else {}
        if not lines:
            return ()
        found |= lines
    return tuple(found)


def _lines(intent: str, folder: str) -> Iterator[str]:
    for name, lines in _BY_FILE.items():
        if os.path.isfile(os.path.join(folder, name)):
            yield from lines.get(intent, ())
    settings = "".join(_text(folder, name) for name in ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"))
    for program, commands in _PYTHON.get(intent, ()) if settings else ():
        if program in settings or intent == "test":
            yield from commands
    targets = set(re.findall(r"(?m)^([a-z-]+)[ \t]*:(?!=)", _text(folder, "Makefile")))
    yield from (f"make {name}" for name in _TARGETS.get(intent, ()) if name in targets)
    if scripts := _scripts(folder):
        yield from _of_package(intent, folder, scripts)
    elif intent == "install" and os.path.isfile(os.path.join(folder, "package.json")):
        yield from _of_package(intent, folder, ())


def _of_package(intent: str, folder: str, scripts: Sequence[str]) -> Iterator[str]:
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"}
    named = (program for lock, program in locks.items() if os.path.isfile(os.path.join(folder, lock)))
    program = next(named, "npm")
    if intent == "install":
        yield from (f"{program} install", *(("npm ci",) if program == "npm" else ()))
    for name in _TARGETS.get(intent, ()):
        if name in scripts:
            yield f"{program} run {name}"
            if name == "test":
                yield f"{program} test"


def _scripts(folder: str) -> tuple[str, ...]:

    try:
        package = json.loads(_text(folder, "package.json") or "{}")
    except (json.JSONDecodeError, RecursionError):
        return ()
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return tuple(scripts) if isinstance(scripts, dict) else ()


def _text(folder: str, name: str) -> str:
    """A file of the project, as far as it is of use; nothing where it is no file of ordinary size."""
    path = os.path.join(folder, name)
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""


def _literal(prompt: str, jail: Jail) -> tuple[str, ...]:
    """The prompt, where it is itself a command line in plain words that a rule may name."""
    if not re.fullmatch(_PLAIN, prompt):
        return ()
    if prompt in _lines("install", jail.folder):
        return (prompt,)

    roots = [root.path for root in jail.roots]
    line = parse(prompt, cwd=jail.folder, roots=roots)
    # Nobody proposes a rule for shells, interpreters and whatever runs another program.
    if line.doubts or not proposals(line):
        return ()
    for simple in line.commands:
        words = [word.text for word in simple.words]
        plain = simple.literal and not (simple.inside or simple.assigns or simple.redirects)
        if not plain or not words or not _is_command(words, roots):
            return ()
    return (prompt,)


def _is_command(words: Sequence[str], roots: Sequence[str]) -> bool:
    """Is it a command, and not a sentence, of a program that lies outside the workspace and sends nothing away?"""
    program = words[0]
    if any(word.startswith("/") or ".." in word.split("/") or word in _GOES_OUT.split() for word in words):
        return False
    if program == "cd":
        return True
    if program in _NOT_BEFOREHAND.split() or "/" in program or (len(words) > 2 and words[1] in _SENTENCE.split()):
        return False
    named = next((word for word in words[1:] if not word.startswith("-")), "")
    if named not in _OF_GIT.split() if program == "git" else named in _BRINGS.split():
        return False
    found = shutil.which(program)
    return found is not None and not any(within(os.path.realpath(found), root) for root in roots)


_NOT_ON = (
    "Not in plan mode, so there is nothing to leave. If a plan was approved before, carry it out; "
    "to make another one, enter plan mode first."
)


def select_plan_tools(faces: Sequence[Face], way_out: Face | None, facts: Callable[[Face], Facts]) -> list[Face]:
    """What of these tools a planning session is shown: those that look, one that writes the plan, and the way out.

    A subagent has no `way_out`: it neither writes the plan nor ends planning. `facts` tells what is true of a tool.
    """
    known = [(face, facts(face)) for face in faces]
    writers = [one.writes_plan for _, one in known if one.writes_plan and one.planning != "turns"]
    best = min(writers, default=0) if way_out is not None else 0
    shown = [face for face, one in known if one.planning == "reads" or (best and one.writes_plan == best)]
    return shown if way_out is None else [*shown, way_out]


class Settle(Protocol):
    """What the permission mode makes of a decision."""

    def __call__(self, decision: Decision, *, only_reads: bool) -> Decision: ...


def restrict_decision(
    case: Case, decision: Decision, plan_file: str, *, only_reads: bool, settle: Settle, is_review: bool = False
) -> Decision:
    """The decision on a call of a session that plans, or reviews. No rule, grant, hook or mode makes it milder.

    `plan_file` may be written; where it is empty, nothing may.
    """
    if decision.verdict == "deny":
        return decision._replace(delegate="")
    if _writes_plan(case, plan_file):
        return settle(decision, only_reads=True) if decision.fixed else Decision("allow", "It writes the plan.")
    looks = only_reads or case.touches == (MODE,)
    if case.builtin and case.facts.planning and looks and not case.input.get("outside"):
        return settle(decision, only_reads=True)
    if not plan_file and (case.context == "subagent" or is_review):
        # It is held by its kind or for a review, and nobody is going to approve a plan.
        why = f"{case.name} was not run: you only read. Say in your answer what is to be changed or run."
        return Decision("deny", why, fixed=True)
    also = f" The plan itself is written to {plan_file}." if plan_file and case.context == "thread" else ""
    why = f"Plan mode is on, so {case.name} was not run: until the user has approved a plan, only reading works.{also}"
    return Decision("deny", why, fixed=True)


def _writes_plan(case: Case, plan_file: str) -> bool:
    """Does it write the plan and touch nothing else, by the plan's own path and through no link?"""
    if not plan_file or case.context != "thread" or not case.facts.writes_plan:
        return False
    return bool(case.touches) and all(
        access == Access.write(plan_file) and case.spelled.get(access.key, access.key) == plan_file
        for access in case.touches
    )


class Planner(Planning):
    """The plan mode of a session. It binds whoever asks this policy: the session's own calls and all subagents."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        policy: Policy,
        *,
        folder: str,
        ask: Callable[[Question], Awaitable[Answer]],
        allow: Callable[[Sequence[str]], Sequence[str]],
        exit_tool: str = "",
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """`ask` puts a question, `allow` makes rules hold for the session and gives those that were understood.

        `exit_tool` is what the session calls the tool that ends planning; empty where it has none.
        `changed` is called when planning has begun or ended: the tools that are shown are others.
        Raises `ConfigError` where the session begins in plan mode and `folder` cannot be used.
        """
        self._jail = jail
        self._guard = guard
        self._policy = policy
        self._folder = PlanFolder(jail, guard, folder)
        self._ask = ask
        self._allow = allow
        self._exit_tool = exit_tool
        self._changed = changed
        self._one_at_a_time = asyncio.Lock()
        if policy.standing.reads_only:
            self.enter()

    @property
    def is_on(self) -> bool:  # type: ignore[override] # a subagent's never is
        return self._policy.is_planning

    @property
    def plan_path(self) -> str:  # type: ignore[override] # the same
        return self._policy.plan or ""

    def enter(self, reason: str = "", *, by: Beginner = "user", file: str = "") -> PlanEntered:
        already, path = self.is_on, self.plan_path
        if not path or file:
            path = self._earlier(file) or path or self._folder.fresh(reason)
            self._guard.plan(path)
            self._policy.plan = path
        if not already or by == "user":
            self.begun_by = "user" if already else by
        self._tell(other_tools=not already)
        return PlanEntered(path, already=already)

    def _earlier(self, file: str) -> str:
        """The plan of this name; nothing where it is none, as after the folder of plans was changed."""
        try:
            return self._folder.resolve_plan(file) if file else ""
        except ToolFailure:
            return ""

    def leave(self) -> str:
        was_on, self._policy.plan = self.is_on, None
        if self._policy.standing.reads_only:
            self._policy.standing = DEFAULT
        self._tell(other_tools=was_on)
        return self._policy.standing.name

    def _tell(self, *, other_tools: bool) -> None:
        self.on_change()
        if other_tools:
            self._changed()

    def readable(self, file: str = "") -> str:
        if not self.is_on:
            raise ToolFailure(_NOT_ON, code="not-in-plan-mode")
        return self._folder.resolve_plan(file) if file else self.plan_path

    def reminder(self) -> str:
        if not self.is_on:
            return ""
        shown = self._jail.display_path(self.plan_path)
        end = f"then call {self._exit_tool}" if self._exit_tool else "then end your turn and name the file"
        return (
            "Plan mode is on: only reading works, for you and for every subagent, whatever rules allow. "
            f"When you know what to do, write the plan to {shown}, {end}."
        )

    async def propose(self, path: str, wishes: Sequence[Wish], ctx: Context) -> PlanApproved:
        async with self._one_at_a_time:
            if not self.is_on:
                raise ToolFailure(_NOT_ON, code="not-in-plan-mode")
            threads = ctx.need(Threads)
            text = await threads.run(read_plan, self._jail, path)
            rules = await threads.run(resolve_wishes, wishes, self._jail)
            answer = await self._ask(self._question(path, text, rules, ctx))
            edited = text if answer.input is None else answer.input.get("plan")
            if answer.allow is not True or not isinstance(edited, str):
                why = answer.message or "The user did not approve the plan."
                stays = (
                    f"Plan mode stays on: change the plan in {self._jail.display_path(path)}, or ask what is missing."
                )
                raise Denied(
                    f"{why} {stays if self._policy.is_planning else 'The user has ended plan mode meanwhile.'}",
                    code="plan-not-approved",
                    path=path,
                )
            if await threads.run(read_plan, self._jail, path) != text:
                raise ToolFailure(
                    "The plan changed while the user looked at it, so it is not approved and plan mode stays on. "
                    "Have the plan approved as it is now.",
                    code="plan-changed",
                    path=path,
                )
            if is_edited := edited.strip() != text.strip():
                await threads.finish(_rewrite, path, text, edited, ctx)
                text = await threads.run(read_plan, self._jail, path)
            return self._apply_approval(path, text, rules, answer)._replace(is_edited=is_edited)

    def _apply_approval(self, path: str, text: str, rules: WishRules, answer: Answer) -> PlanApproved:
        granted = tuple(self._allow(rules.texts)) if rules.texts else ()
        self.leave()
        wanted = (answer.values or {}).get("mode")
        if wanted == "acceptEdits" and self._policy.standing == DEFAULT:
            self._policy.standing = parse_mode(wanted)
        lost = [wish for wish, texts in rules.granted if not set(texts) <= set(granted)]
        return PlanApproved(path, text, self._policy.standing.name, granted, (*rules.asked, *lost))

    def _question(self, path: str, text: str, rules: WishRules, ctx: Context) -> Question:
        shown = self._jail.display_path(path)
        return Question(
            kind="plan",
            call_id=ctx.call_id,
            name=self._exit_tool or EXIT_PLAN,
            tool=EXIT_PLAN,
            summary=visible(f"approve the plan in {shown} and leave plan mode"),
            touches=(Access.read(path),),
            input={"plan": text, "path": shown, "begun_by": self.begun_by, "mode": self._after()},
            why=f"With a yes the mode {self._after()} holds again.",
            effects=tuple(
                visible(line)
                for line in (
                    *(f"allows {rule} in this session" for rule in rules.texts),
                    *(f"asks when it comes: {wish}" for wish in rules.asked),
                )
            ),
            proposals=rules.texts,
        )

    def _after(self) -> str:
        """The permission mode that a yes leads back to."""
        standing = self._policy.standing
        return DEFAULT.name if standing.reads_only else standing.name


def _rewrite(path: str, before: str, after: str, ctx: Context) -> None:
    """Put what the user has made of the plan into its file. Raises `ToolFailure`."""
    if problem := unfit(after):
        raise ToolFailure(
            f"The user changed the plan before they approved it, but {problem}, so nothing was approved and plan mode "
            "stays on. Have the plan approved again.",
            code="plan-not-approved",
            path=path,
        )

    def plan(found: Contents) -> Contents:
        if found[path] != before.encode():
            raise ToolFailure(
                "The plan changed while the user looked at it, so it is not approved and plan mode stays on. "
                "Have the plan approved as it is now.",
                code="plan-changed",
                path=path,
            )
        return {path: f"{after.rstrip()}\n".encode(errors="replace")}

    ctx.need(Writer).apply([path], plan, kind="write", call_id=ctx.call_id)
    ctx.track(path)
