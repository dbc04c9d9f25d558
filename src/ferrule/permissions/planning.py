"""Plan mode to the policy: what passes while a session plans, and how it ends with the user's yes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ferrule.core.access import MODE, Access
from ferrule.core.errors import Denied, ToolFailure
from ferrule.core.face import Face
from ferrule.core.planning import Beginner, PlanApproved, PlanEntered, Planning, Wish
from ferrule.core.tool import Context
from ferrule.permissions.asker import Answer, Question, visible
from ferrule.permissions.case import Case
from ferrule.permissions.decision import Decision
from ferrule.permissions.policy import Policy
from ferrule.permissions.standing import DEFAULT, named
from ferrule.permissions.wishes import Granting, granting
from ferrule.support.threads import Threads
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.plan_file import PlanFolder, read_plan, unfit
from ferrule.workspace.transaction import Contents, Writer

LOOKS = frozenset(
    {
        *("read", "read_many", "view_image", "list_dir", "glob", "grep", "find_thread", "read_thread", "recall"),
        *("lsp", "diagnostics"),
        *("shell", "shell_session", "shell_output", "shell_list", "shell_write", "skill", "tool_search"),
        *("plan", "enter_plan", "exit_plan", "ask_user"),
        *("todos", "todo_create", "todo_get", "todo_update", "todo_list"),
        *("web_fetch", "web_search", "delegate", "agent_wait", "agent_list", "agent_send", "agent_stop"),
        *("finder", "oracle", "librarian"),
    }
)
"""The tools that a planning session has, each for calls of it that only read. Subagents are held themselves."""
WRITES_PLAN = frozenset({"write", "edit", "multi_edit", "patch", "exit_plan"})
"""The tools that the plan itself is written with."""
_WRITERS = ("write", "patch", "edit")
"""What a planning session is shown to write its plan with: the first of these that its family has."""

_ENDS = frozenset({"enter_plan", "exit_plan"})

_NOT_ON = (
    "Not in plan mode, so there is nothing to leave. If a plan was approved before, carry it out; "
    "to make another one, enter plan mode first."
)


def offered(faces: Sequence[Face], way_out: Face | None) -> list[Face]:
    """What of these tools a planning session is shown: those that look, one that writes the plan, and the way out.

    A subagent has no `way_out`: it neither writes the plan nor ends planning.
    """
    has = {face.tool for face in faces}
    writer = next((tool for tool in _WRITERS if tool in has), "") if way_out is not None else ""
    shown = [face for face in faces if (face.tool in LOOKS and face.tool not in _ENDS) or face.tool == writer]
    return shown if way_out is None else [*shown, way_out]


class Settle(Protocol):
    """What the permission mode makes of a decision."""

    def __call__(self, decision: Decision, *, only_reads: bool) -> Decision: ...


def held(
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
    if case.builtin and case.tool in LOOKS and looks and not case.input.get("outside"):
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
    if not plan_file or case.context != "thread" or not case.builtin or case.tool not in WRITES_PLAN:
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
            return self._folder.named(file) if file else ""
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
        return self._folder.named(file) if file else self.plan_path

    def reminder(self) -> str:
        if not self.is_on:
            return ""
        shown = self._jail.shown(self.plan_path)
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
            rules = await threads.run(granting, wishes, self._jail)
            answer = await self._ask(self._question(path, text, rules, ctx))
            edited = text if answer.input is None else answer.input.get("plan")
            if answer.allow is not True or not isinstance(edited, str):
                why = answer.message or "The user did not approve the plan."
                stays = f"Plan mode stays on: change the plan in {self._jail.shown(path)}, or ask what is missing."
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
            return self._approved(path, text, rules, answer)._replace(is_edited=is_edited)

    def _approved(self, path: str, text: str, rules: Granting, answer: Answer) -> PlanApproved:
        granted = tuple(self._allow(rules.texts)) if rules.texts else ()
        self.leave()
        wanted = (answer.values or {}).get("mode")
        if wanted == "acceptEdits" and self._policy.standing == DEFAULT:
            self._policy.standing = named(wanted)
        lost = [wish for wish, texts in rules.granted if not set(texts) <= set(granted)]
        return PlanApproved(path, text, self._policy.standing.name, granted, (*rules.asked, *lost))

    def _question(self, path: str, text: str, rules: Granting, ctx: Context) -> Question:
        shown = self._jail.shown(path)
        return Question(
            kind="plan",
            call_id=ctx.call_id,
            name=self._exit_tool or "exit_plan",
            tool="exit_plan",
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
