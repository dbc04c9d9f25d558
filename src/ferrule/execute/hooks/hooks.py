"""The hooks of a session: who is told of an event, all at once, and what they say together.

Of several words on a call the strictest counts. Where several want another input, the last one in the order of the
settings gets it. What they say to the model stands in that order, too.
"""

import asyncio
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.execute.hooks.answer import Answer, Verdict, bounded, failure, strictest
from ferrule.execute.hooks.command import Place, Start, label, prepare, run
from ferrule.execute.hooks.hook import After, Before, Hook
from ferrule.execute.hooks.match import covers
from ferrule.support.roster import Roster
from ferrule.workspace.hook_scripts import Look

if TYPE_CHECKING:
    from ferrule.execute.guests import Guests
    from ferrule.execute.hooks.variables import VariablesFile
    from ferrule.workspace.confinement import Confinement

_AT_ONCE = 32
"""So many hooks run at the same moment at most; their time begins when they do."""
_MATCHED = {
    "SessionStart": "source",
    "SessionEnd": "reason",
    "Notification": "notification_type",
    "PreCompact": "trigger",
    "PermissionRequest": "tool_name",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
}
"""What a matcher is about where there is no tool; at other events every hook is told."""
_TMP = "/tmp"  # noqa: S108 - the name under which confined commands have their own
_TWO_INPUTS = "Several hooks wanted to change the input of this call in different ways; the last one's is used."


class Ran(NamedTuple):
    """A program that is a hook, when it begins and when it has ended."""

    key: str
    event: str
    about: str
    answer: Answer | None = None
    """None while it runs."""


def new_key() -> str:
    return os.urandom(16).hex()


class Hooks:
    """Tells hooks of events. What they do wrong is told to the user by `report`, and never raised."""

    def __init__(
        self,
        hooks: Sequence[Hook],
        *,
        workspace: str,
        environment: Mapping[str, str],
        session_id: str,
        permission_mode: Callable[[], str],
        report: Callable[[str], None],
        roster: Roster | None = None,
        transcript_path: str = "",
        look: Look | None = None,
        walls: "Callable[[], Confinement] | None" = None,
        others: Sequence[str] = (),
        ran: Callable[[Ran], None] = lambda _: None,
    ) -> None:
        """`environment` is for their commands and holds no secrets; `report` gets texts as hooks wrote them.

        `look` tells what a command line starts, and `walls` what confines it where that could be anybody's code.
        `others` are folders that commands can write beside the workspace. `ran` is told of every program.
        """
        self._hooks: dict[str, list[Hook]] = {}
        for hook in hooks:
            self._hooks.setdefault(hook.event, []).append(hook)
        self._place = Place(workspace, environment, roster, look, walls, tuple(others))
        self._common = {"session_id": session_id, "transcript_path": transcript_path, "cwd": workspace}
        self._permission_mode = permission_mode
        self._report = report
        self._ran = ran
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._guests: Guests | None = None
        self._additions: dict[str, str] = {}
        self._confined: dict[str, str] = {}
        self._told: set[str] = set()

    def has(self, event: str) -> bool:
        return event in self._hooks

    async def before(
        self, tool_names: Collection[str], told_name: str, told_input: Mapping[str, Any], call_id: str
    ) -> Before:
        """What the hooks say to a call. `tool_names` are all names of its tool: a matcher may cover any of them."""
        hooks = self._matching("PreToolUse", tool_names)
        if not hooks:
            return Before()
        fields = {"tool_name": told_name, "tool_input": told_input, "tool_use_id": call_id}
        answers = await self._tell(hooks, "PreToolUse", fields)
        verdict = strictest([answer.verdict for answer in answers])
        notes = [answer.context for answer in answers if answer.context]
        changed: dict[str, Any] | None = None
        wanted = [answer.input for answer in answers if answer.input is not None]
        if wanted and verdict != "deny":
            changed = None if _same(wanted[-1], told_input) else wanted[-1]
            if not all(_same(one, wanted[-1]) for one in wanted):
                notes.append(_TWO_INPUTS)
        return Before(verdict, _reasons(answers, verdict), changed, tuple(notes), _stop(answers))

    async def after(
        self,
        tool_names: Collection[str],
        told_name: str,
        told_input: Mapping[str, Any],
        call_id: str,
        told_response: Any,
        *,
        failed: bool,
    ) -> After:
        """What the hooks say to a reply: those of `PostToolUse`, where it failed those of `PostToolUseFailure`."""
        event = "PostToolUseFailure" if failed else "PostToolUse"
        hooks = self._matching(event, tool_names)
        if not hooks:
            return After()
        fields = {"tool_name": told_name, "tool_input": told_input, "tool_use_id": call_id}
        said = {"error": told_response} if failed else {"tool_response": told_response}
        return _after(await self._tell(hooks, event, {**fields, **said}))

    async def fire(self, event: str, **fields: Any) -> After:
        """Tell of what is no call: `SessionStart` (source), `SessionEnd` (reason), `Notification` (message), others."""
        about = _MATCHED.get(event)
        names = None if about is None else [str(fields.get(about, ""))]
        hooks = self._matching(event, names)
        if not hooks:
            return After()
        answers = await self._tell(hooks, event, fields)
        for answer in answers:
            (self._confined if answer.is_confined else self._additions).update(answer.variables or {})
        return _after(answers)

    def environment_additions(self, *, is_confined: bool = False) -> dict[str, str]:
        """The variables that hooks of `SessionStart` want the session's commands to have; or those of confined ones."""
        return dict(self._confined if is_confined else self._additions)

    def close(self) -> None:
        if self._guests is not None:
            self._guests.close()

    def _matching(self, event: str, names: Collection[str] | None) -> list[Hook]:
        """The hooks that are told, each command and each function once; the first of them counts."""
        found: dict[object, Hook] = {}
        for hook in self._hooks.get(event, ()):
            if names is None or covers(hook.matcher, names):
                found.setdefault(hook.command or id(hook.function), hook)
        return list(found.values())

    async def _tell(self, hooks: Sequence[Hook], event: str, fields: Mapping[str, Any]) -> list[Answer]:
        told = {**self._common, "permission_mode": self._permission_mode(), "hook_event_name": event, **fields}
        try:
            given = json.dumps(told, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):
            answers = [failure(event, label(hook), "could not be told: the call is no plain JSON") for hook in hooks]
        else:
            async with asyncio.TaskGroup() as group:  # whoever is cancelled here leaves no hook running
                about = _about(event, fields)
                tasks = [group.create_task(self._ask(hook, given, about)) for hook in hooks]
            answers = [task.result() for task in tasks]
        for answer in answers:
            for sentence in answer.told:
                self._report(sentence)
        return answers

    async def _ask(self, hook: Hook, given: bytes, about: str) -> Answer:
        async with self._turns:
            if hook.function is None:
                begun = Ran(new_key(), hook.event, about)
                self._ran(begun)
                answer = await self._command(hook, given)
                self._ran(begun._replace(answer=answer))
                return answer
            from ferrule.execute.hooks import function  # only programs that give functions need threads

            if self._guests is None:
                from ferrule.execute.guests import Guests  # the same

                self._guests = Guests()
            return await function.run(hook, given, self._guests)

    async def _command(self, hook: Hook, given: bytes) -> Answer:
        start = prepare(hook, self._place)
        if isinstance(start, Answer):
            return start
        if start.why and start.why not in self._told:
            self._told.add(start.why)
            self._report(start.why)
        answer = await self._started(hook, given, start)
        return answer._replace(is_confined=start.confinement is not None)

    async def _started(self, hook: Hook, given: bytes, start: Start) -> Answer:
        if hook.event != "SessionStart":
            return await run(hook, given, self._place, start, {})
        from ferrule.execute.hooks.variables import VariablesFile  # only sessions with such hooks need it

        try:
            file = VariablesFile() if start.confinement is None else _inside(start.confinement)
        except OSError as error:
            return failure(hook.event, label(hook), f"could not be started ({error.strerror})")
        try:
            answer = await run(hook, given, self._place, start, {"CLAUDE_ENV_FILE": file.named})
            return _with_variables(answer, file, hook)
        finally:
            file.remove()


def _about(event: str, fields: Mapping[str, Any]) -> str:
    """An event with what it is about, as `PreToolUse:Bash`."""
    subject = fields.get("tool_name") or fields.get(_MATCHED.get(event, ""))
    return f"{event}:{subject}" if subject else event


def _inside(confinement: "Confinement") -> "VariablesFile":
    """A file that a confined hook finds: where it has a /tmp of its own, the machine's is not there."""
    from ferrule.execute.hooks.variables import VariablesFile  # the same

    return VariablesFile(confinement.temporary(), seen_as=_TMP if confinement.has_own_tmp else "")


def _with_variables(answer: Answer, file: "VariablesFile", hook: Hook) -> Answer:
    variables = file.read()
    wrong = (bounded(f"{label(hook)} {why}.") for why in variables.wrong)
    return answer._replace(told=(*answer.told, *wrong), variables=variables.values)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """As JSON: `true` is not 1."""
    try:
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False


def _reasons(answers: Sequence[Answer], verdict: Verdict) -> str:
    """Why, in the words of those whose verdict it is."""
    reasons = [answer.reason for answer in answers if verdict and answer.verdict == verdict and answer.reason]
    return bounded("\n".join(dict.fromkeys(reasons)))


def _after(answers: Sequence[Answer]) -> After:
    notes = tuple(answer.context for answer in answers if answer.context)
    return After(notes, _reasons(answers, "deny"), _stop(answers))


def _stop(answers: Sequence[Answer]) -> str:
    """Why the work is to end, in the words of the first who wants that."""
    return next((answer.stop for answer in answers if answer.stop), "")
