"""Run the hooks of a session and combine their answers into one.

All hooks of an event run at once. The strictest answer about a call counts. If several hooks change the input,
the last one in the order of the settings wins. Their messages to the model keep that order, too.

A command hook runs in the shell and in the workspace. It gets its input as JSON on standard input, which is an
unnamed file, so a hook that does not read it cannot block. Processes that it started end with it. It is the
user's own program and runs outside the sandbox, so its programs are not looked up in PATH folders that a model
can write to. A hook that could run unapproved code of the workspace runs confined, as commands do.

A function hook has a thread and an event loop of its own, so one that blocks holds up nothing else.

A `SessionStart` hook can leave variables for the session's commands in the file named by `CLAUDE_ENV_FILE`. The
file is parsed and never run: it may hold `export NAME=value` and `NAME=value`, quoted or not. A value that the
shell would have to expand, such as `$PATH:/more`, is ignored.
"""

import asyncio
import contextlib
import hashlib
import inspect
import json
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.execute import Guests
from ferrule.hooks import After, Hook, HookVerdict, covers
from ferrule.hooks.answer import HookAnswer, Verdict, failure, from_exit, from_object, strictest, truncate
from ferrule.permissions.shell.started import CommandScripts, Look, rough
from ferrule.sandbox import Wrapped, do_nothing
from ferrule.system.environment import apart, shell
from ferrule.system.folder import describe
from ferrule.system.run import Piped, pipe
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from ferrule.sandbox.confinement import Confinement
    from ferrule.system.child import Starter


_OUTPUT_BYTES = 1 << 20
_LABEL_CHARS = 80
_UNTRUSTED = "was not run: a script that it names is not the one that the user trusts"
_HOW = "A hook that names its script literally, in a trusted project, runs with the user's rights"


class HookEnvironment(NamedTuple):
    """Where commands run, and what they find there."""

    workspace: str
    environment: Mapping[str, str]
    roster: Roster | None = None
    look: Look | None = None
    """What a command line starts; None for a rough look."""
    walls: "Callable[[], Confinement] | None" = None
    """What confines the session's commands."""
    others: Sequence[str] = ()
    """More folders that commands can write."""


class HookLaunch(NamedTuple):
    """How a hook is to be started."""

    confinement: "Confinement | None" = None
    """What confines it; None where it has the user's rights."""
    why: str = ""
    """Why it is confined, as a sentence for the user."""


def prepare(hook: Hook, place: HookEnvironment) -> HookLaunch | HookAnswer:
    """How to start it, or what counts as its answer where it may not be started."""
    looked = (
        CommandScripts(tuple(rough(hook.command, place.workspace))) if place.look is None else place.look(hook.command)
    )
    if hook.pins is not None and _hash_files(looked.files) != hook.pins:
        return failure(hook.event, label(hook), _UNTRUSTED)
    why = looked.unclear or (_explain_unapproved(looked, place.workspace) if hook.pins is None else "")
    if not why or place.walls is None:
        return HookLaunch()
    confinement = place.walls()
    try:
        if confinement.sandbox is None:
            return HookLaunch()
    except ToolFailure as error:
        return failure(hook.event, label(hook), f"was not run, for it has to be confined. {error}".rstrip("."))
    return HookLaunch(confinement, f"{label(hook)} runs in the sandbox, as commands do: {why}. {_HOW}.")


def _explain_unapproved(looked: CommandScripts, workspace: str) -> str:
    for path in (*looked.run, *looked.handed):
        return f"{os.path.relpath(path, os.path.realpath(workspace))} is a file of the workspace that nobody approved"
    return ""


async def run_command(
    hook: Hook, given: bytes, place: HookEnvironment, start: HookLaunch, more: Mapping[str, str]
) -> HookAnswer:
    """What the command answers to `given`; `more` is in its environment, too. Only cancelling it raises."""
    who = label(hook)
    argv = [shell(outside=(place.workspace, *place.others)), "-c", hook.command]
    try:
        if start.confinement is None:
            piped = await _pipe_hook(hook, given, place, Wrapped(tuple(argv)), more)
        else:
            piped = await _run_confined(
                hook, given, place, await start.confinement.wrap(argv, cwd=place.workspace), more
            )
    except (OSError, ValueError) as error:  # a UnicodeError is a ValueError
        reason = describe(error) if isinstance(error, OSError) else str(error)
        return failure(hook.event, who, f"could not be started ({reason})")
    except ToolFailure as error:
        return failure(hook.event, who, f"was not run. {error}".rstrip("."))
    if piped.stopped == "time":
        return failure(hook.event, who, f"did not end within {hook.seconds:g} seconds")
    if piped.stopped == "size":
        return failure(hook.event, who, f"printed more than {_OUTPUT_BYTES:,} bytes")
    answer = from_exit(hook.event, who, piped.exit_code, piped.stdout, piped.stderr)
    answer = answer._replace(printed=(piped.exit_code, piped.stdout, piped.stderr))
    if start.confinement is not None and answer.verdict == "allow":
        # Whoever writes what it runs would spare themselves the question.
        return answer._replace(verdict="", reason="")
    return answer


async def _run_confined(
    hook: Hook, given: bytes, place: HookEnvironment, wrapped: Wrapped, more: Mapping[str, str]
) -> Piped:
    try:
        return await _pipe_hook(hook, given, place, wrapped, more)
    finally:
        for descriptor in wrapped.descriptors:
            os.close(descriptor)
        if wrapped.done is not do_nothing:
            await asyncio.shield(asyncio.to_thread(wrapped.done))


async def _pipe_hook(
    hook: Hook, given: bytes, place: HookEnvironment, wrapped: Wrapped, more: Mapping[str, str]
) -> Piped:
    return await pipe(
        wrapped.argv,
        given,
        cwd=place.workspace,
        env={**environment(place), **more, **wrapped.env},
        seconds=hook.seconds,
        limit_bytes=_OUTPUT_BYTES,
        roster=place.roster,
        starter=cast("Starter | None", wrapped.starter),
        descriptors=wrapped.descriptors,
    )


def _hash_files(files: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Files of the workspace as they are now."""
    return tuple((path, _hash(path)) for path in files)


def _hash(path: str) -> str:

    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def label(hook: Hook) -> str:
    """A hook in words that begin a sentence."""
    text = " ".join(hook.command.split()) if hook.function is None else _function_name(hook.function)
    text = text if len(text) <= _LABEL_CHARS else text[:_LABEL_CHARS].rstrip() + " …"
    return f"The {hook.event} hook `{text}`" + (f" of {hook.source}" if hook.source else "")


def environment(place: HookEnvironment) -> dict[str, str]:
    """The given one with the project's folder, and a PATH without what is relative or lies in the workspace."""
    return {
        **apart(place.environment, (place.workspace, *place.others)),
        "CLAUDE_PROJECT_DIR": place.workspace,
        "FERRULE_PROJECT_DIR": place.workspace,
    }


def _function_name(function: object) -> str:
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__name__


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


class HookRunEvent(NamedTuple):
    """A program that is a hook, when it begins and when it has ended."""

    key: str
    event: str
    about: str
    answer: HookAnswer | None = None
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
        ran: Callable[[HookRunEvent], None] = lambda _: None,
    ) -> None:
        """`environment` is for their commands and holds no secrets; `report` gets texts as hooks wrote them.

        `look` tells what a command line starts, and `walls` what confines it where that could be anybody's code.
        `others` are folders that commands can write beside the workspace. `ran` is told of every program.
        """
        self._hooks: dict[str, list[Hook]] = {}
        for hook in hooks:
            self._hooks.setdefault(hook.event, []).append(hook)
        self._place = HookEnvironment(workspace, environment, roster, look, walls, tuple(others))
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
    ) -> HookVerdict:
        """What the hooks say to a call. `tool_names` are all names of its tool: a matcher may cover any of them."""
        hooks = self._find_hooks("PreToolUse", tool_names)
        if not hooks:
            return HookVerdict()
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
        return HookVerdict(verdict, _reasons(answers, verdict), changed, tuple(notes), _stop(answers))

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
        hooks = self._find_hooks(event, tool_names)
        if not hooks:
            return After()
        fields = {"tool_name": told_name, "tool_input": told_input, "tool_use_id": call_id}
        said = {"error": told_response} if failed else {"tool_response": told_response}
        return _after(await self._tell(hooks, event, {**fields, **said}))

    async def fire(self, event: str, **fields: Any) -> After:
        """Tell of what is no call: `SessionStart` (source), `SessionEnd` (reason), `Notification` (message), others."""
        about = _MATCHED.get(event)
        names = None if about is None else [str(fields.get(about, ""))]
        hooks = self._find_hooks(event, names)
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

    def _find_hooks(self, event: str, names: Collection[str] | None) -> list[Hook]:
        """The hooks that are told, each command and each function once; the first of them counts."""
        found: dict[object, Hook] = {}
        for hook in self._hooks.get(event, ()):
            if names is None or covers(hook.matcher, names):
                found.setdefault(hook.command or id(hook.function), hook)
        return list(found.values())

    async def _tell(self, hooks: Sequence[Hook], event: str, fields: Mapping[str, Any]) -> list[HookAnswer]:
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

    async def _ask(self, hook: Hook, given: bytes, about: str) -> HookAnswer:
        async with self._turns:
            if hook.function is None:
                begun = HookRunEvent(new_key(), hook.event, about)
                self._ran(begun)
                answer = await self._command(hook, given)
                self._ran(begun._replace(answer=answer))
                return answer

            if self._guests is None:
                self._guests = Guests()
            return await run_function(hook, given, self._guests)

    async def _command(self, hook: Hook, given: bytes) -> HookAnswer:
        start = prepare(hook, self._place)
        if isinstance(start, HookAnswer):
            return start
        if start.why and start.why not in self._told:
            self._told.add(start.why)
            self._report(start.why)
        answer = await self._run_hook(hook, given, start)
        return answer._replace(is_confined=start.confinement is not None)

    async def _run_hook(self, hook: Hook, given: bytes, start: HookLaunch) -> HookAnswer:
        if hook.event != "SessionStart":
            return await run_command(hook, given, self._place, start, {})

        try:
            file = VariablesFile() if start.confinement is None else _inside(start.confinement)
        except OSError as error:
            return failure(hook.event, label(hook), f"could not be started ({error.strerror})")
        try:
            answer = await run_command(hook, given, self._place, start, {"CLAUDE_ENV_FILE": file.named})
            return _with_variables(answer, file, hook)
        finally:
            file.remove()


def _about(event: str, fields: Mapping[str, Any]) -> str:
    """An event with what it is about, as `PreToolUse:Bash`."""
    subject = fields.get("tool_name") or fields.get(_MATCHED.get(event, ""))
    return f"{event}:{subject}" if subject else event


def _inside(confinement: "Confinement") -> "VariablesFile":
    """A file that a confined hook finds: where it has a /tmp of its own, the machine's is not there."""
    return VariablesFile(confinement.temporary(), seen_as=_TMP if confinement.has_own_tmp else "")


def _with_variables(answer: HookAnswer, file: "VariablesFile", hook: Hook) -> HookAnswer:
    variables = file.read()
    wrong = (truncate(f"{label(hook)} {why}.") for why in variables.wrong)
    return answer._replace(told=(*answer.told, *wrong), variables=variables.values)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """As JSON: `true` is not 1."""
    try:
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False


def _reasons(answers: Sequence[HookAnswer], verdict: Verdict) -> str:
    """Why, in the words of those whose verdict it is."""
    reasons = [answer.reason for answer in answers if verdict and answer.verdict == verdict and answer.reason]
    return truncate("\n".join(dict.fromkeys(reasons)))


def _after(answers: Sequence[HookAnswer]) -> After:
    notes = tuple(answer.context for answer in answers if answer.context)
    return After(notes, _reasons(answers, "deny"), _stop(answers))


def _stop(answers: Sequence[HookAnswer]) -> str:
    """Why the work is to end, in the words of the first who wants that."""
    return next((answer.stop for answer in answers if answer.stop), "")


async def run_function(hook: Hook, given: bytes, guests: Guests) -> HookAnswer:
    """What the function answers to `given`, of which it gets a copy of its own. Only cancelling it raises."""
    who = label(hook)
    try:
        async with asyncio.timeout(hook.seconds) as limit:
            answer = await guests.run(lambda: _body(hook, given))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return failure(hook.event, who, "cancelled itself")
    except Exception as error:  # noqa: BLE001 - whatever foreign code raises ends its own answer and nothing else
        if isinstance(error, TimeoutError) and limit.expired():
            return failure(hook.event, who, f"did not end within {hook.seconds:g} seconds")
        return failure(hook.event, who, f"raised {type(error).__name__}: {_describe_error(error)}")
    return from_object(hook.event, who, answer)


async def _body(hook: Hook, given: bytes) -> Any:
    assert hook.function is not None
    answer: Any = hook.function(json.loads(given))
    if inspect.isawaitable(answer):
        answer = await answer
    # What a program would print: nothing but plain values, which nobody changes later.
    return msgspec.json.decode(msgspec.json.encode(dict(answer) if isinstance(answer, Mapping) else answer))


def _describe_error(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the same foreign code
        return "it cannot say why"


_FILE_BYTES = 1 << 16
_NAMES = 500
_STATEMENT = r"(?:[^'\"\\\n;#]|(?<=[^\s;])#|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.)+"
"""One command of the shell, up to the end of its line; a `#` inside of a word begins no comment.

Nothing in it is possessive: before Python 3.11.5 such repetitions inside of one another match too much.
"""
_BETWEEN = r"(?:[\s;]|#[^\n]*)+"
_ASSIGNMENTS = r"(?:export\s+|declare\s+-x\s+|typeset\s+-x\s+)?(?=[A-Za-z_])"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_QUOTED = r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\."
_WORKED_OUT = r"[$`()<>&|]|[=:]~"
"""What means more than itself where nothing quotes it."""
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class HookVariables(NamedTuple):
    """What the file says."""

    values: dict[str, str]
    wrong: tuple[str, ...] = ()
    """What of it was not taken, and why, as the end of a sentence that begins with the hook."""


class VariablesFile:
    """One file for one hook. It is its user's alone, and gone when it was read."""

    def __init__(self, folder: str | None = None, *, seen_as: str = "") -> None:
        """In `folder`, which the hook knows as `seen_as`. Raises OSError where none can be made."""
        descriptor, self.path = tempfile.mkstemp(prefix="ferrule-", suffix=".sh", dir=folder)
        os.close(descriptor)
        self.named = os.path.join(seen_as, os.path.basename(self.path)) if seen_as else self.path
        """Its path, as the hook is told it."""

    def read(self) -> HookVariables:
        """What the hook wrote into it."""
        try:
            descriptor = os.open(self.path, _READ)
        except OSError:
            return HookVariables({})  # the hook has removed it, or put something else in its place
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return HookVariables({}, ("left no file where it should have written variables",))
            raw = b""
            while len(raw) <= _FILE_BYTES and (piece := os.read(descriptor, _FILE_BYTES + 1 - len(raw))):
                raw += piece
        finally:
            os.close(descriptor)
        if len(raw) > _FILE_BYTES:
            return HookVariables({}, (f"wrote more than {_FILE_BYTES:,} bytes of variables; none of them is set",))
        return parse(raw.decode(errors="replace"))

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def parse(text: str) -> HookVariables:
    """The variables that the text sets, the last value of each."""
    values: dict[str, str] = {}
    wrong: list[str] = []
    at = 0
    while at < len(text):
        if between := re.compile(_BETWEEN).match(text, at):
            at = between.end()
            continue
        statement = re.compile(_STATEMENT, re.DOTALL).match(text, at)
        if statement is None:
            wrong.append("wrote a variable whose quotes do not end")
            break
        at = statement.end()
        if text[at : at + 1] in {"'", '"', "\\"}:
            wrong.append("wrote a variable whose quotes do not end")
            break
        _take(statement.group().strip(), values, wrong)
    if len(values) > _NAMES:
        return HookVariables({}, (f"wrote more than {_NAMES:,} variables; none of them is set",))
    return HookVariables(values, tuple(dict.fromkeys(wrong)))


def _take(statement: str, values: dict[str, str], wrong: list[str]) -> None:

    begin = re.match(_ASSIGNMENTS, statement)
    if begin is None or "\0" in statement:
        wrong.append("wrote a line that sets no variable; use lines such as export NAME=value")
        return
    if re.search(_WORKED_OUT, re.sub(_QUOTED, _left, statement, flags=re.DOTALL)):
        wrong.append("wrote a variable whose value would have to be worked out; only plain values are taken")
        return
    try:
        plain = re.sub(_QUOTED, _plainer, statement[begin.end() :], flags=re.DOTALL)
        words = [word.partition("=") for word in shlex.split(plain)]
    except ValueError:
        wrong.append("wrote a variable whose quotes do not end")
        return
    # `export NAME` alone sets nothing; `NAME=value command` sets it for the command alone.
    if any(equals or not begin.group() for name, equals, _ in words if not (equals and re.fullmatch(_NAME, name))):
        wrong.append("wrote a line that sets no variable; use lines such as export NAME=value")
        return
    values.update({name: value for name, equals, value in words if equals})


def _left(quoted: re.Match[str]) -> str:
    """What of a quoted text the shell would still work out."""
    return re.sub(r"\\.|[^$`\\]", "", quoted.group(), flags=re.DOTALL) if quoted.group().startswith('"') else ""


def _plainer(quoted: re.Match[str]) -> str:
    """The same for `shlex`, which would keep the backslash that a shell takes from `\\$` in double quotes."""
    text = quoted.group()
    return re.sub(r"\\([$`\\])", lambda found: found[1].replace("\\", "\\\\"), text) if text[0] == '"' else text
