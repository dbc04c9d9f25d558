"""Admit, ask about or refuse each call as the policy says.

Ask means no if nobody can answer.

A yes with "always" is kept for the session and may save rules. Each question begins with a summary of the effects
in one line, with each check on a line of its own.

The delegate of an Amp rule is a program of the user's that decides about a call. It gets the arguments as JSON on
its standard input and answers with its exit code: 0 allows, 1 asks, and any other code refuses, with its standard
error as the reason. If the program cannot be run, times out or dies, the call is refused.
"""

import asyncio
import copy
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ferrule.core.access import Access, within
from ferrule.core.errors import Denied, ToolFailure
from ferrule.core.tool import Preview
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail, Outside
from ferrule.permissions import (
    KINDS,
    NO,
    YES,
    Answer,
    Asker,
    Case,
    Decision,
    Everybody,
    KindName,
    ModeConfig,
    Nobody,
    Question,
    apply_hooks,
    end_sentence,
    final_asker,
    includes,
    is_for,
    strictest,
    visible,
)
from ferrule.permissions.policy import Policy
from ferrule.system.folder import stamp
from ferrule.tools import READ, SHELL, facts_of

if TYPE_CHECKING:
    from ferrule.permissions.trust import Approved, ApprovedWrites


Blocked = Callable[[str], None]
"""Told with the question when a call starts to wait for a person."""
Save = Callable[[Sequence[str]], None]
"""Keeps rules that the user said "always" to."""
_REMEMBERED = ("call", "folder", "secret")
"""Kinds of questions whose answer may hold for the next one."""


class Previewing(NamedTuple):
    """How a call finds out what it would change."""

    earlier: Callable[[], Awaitable[None]]
    """Waits for the calls before it that touch the same."""
    find: Callable[[], Awaitable[Preview]]
    """Raises what the call would fail with."""


class Admitted(NamedTuple):
    """A call that may run."""

    by_person: bool = False
    """Has a person said so?"""
    agreed: Preview | None = None
    """What they were shown of it: that may be written, and nothing else."""
    written: "ApprovedWrites | None" = None
    """Called when that is written."""
    input: Mapping[str, Any] | None = None
    """What the user wants it made with instead: that is another call, which is not admitted yet."""


class Gate:
    """Holds the session's policy and what the user has granted meanwhile."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        asker: Asker,
        *,
        mode: ModeConfig,
        canonical: Callable[[str], str],
        policy: Policy,
        own: Sequence[str] = (),
        kept: Sequence[str] = (),
        save: Save | None = None,
        approved: "Callable[[], Approved] | None" = None,
        thread: str = "",
    ) -> None:
        """No call may write `own`, the engine's files and folders, nor the folders that the user has `kept`.

        `save` keeps the rules of an "always"; without it they hold for the session. `approved` has what a person agreed
        to write count as seen.
        """
        self.policy = policy
        self._jail = jail
        self._guard = guard
        self._asker = asker
        self._mode = mode
        self._canonical = canonical
        self._own = tuple(map(os.path.realpath, own))
        self._kept = tuple(os.path.realpath(folder).casefold() for folder in kept)
        self._save = save
        self._approved = approved
        self._thread = thread
        self._granted: set[str] = set()
        self._one_at_a_time = asyncio.Lock()

    def child(self, name: str, mode: ModeConfig, policy: Policy) -> "Gate":
        """The gate of a subagent: its tools are its own, what the user has granted counts for both."""
        gate = copy.copy(self)
        gate.policy = policy
        gate._mode = mode  # noqa: SLF001 - of the same class
        gate._asker = _Behalf(self, name)  # noqa: SLF001 - the same
        return gate

    def settle(self, touches: Sequence[Access]) -> tuple[Access, ...]:
        """The accesses with what is known of their command lines: one that only reads may run beside other reads."""
        return tuple(self.policy.analyze_command(access) if access.kind == "command" else access for access in touches)

    def forbid(
        self,
        touches: Sequence[Access],
        spelled: Mapping[str, str] = MappingProxyType({}),
        *,
        asks_secrets: bool = False,
        previews: bool = False,
    ) -> None:
        """Raise for what no answer can allow: secret and protected files, and the engine's own.

        `spelled` gives the paths as they were written: a guarded name counts also where it is only a link. With
        `asks_secrets` a person may be asked about some secret ones, and where what would be written can be shown
        (`previews`), about some protected ones: `admit` does.
        """
        asks = previews and not self.policy.is_held
        for access in touches:
            if access.kind != "path":
                continue
            if access.mode != "read" and any(within(access.key.casefold(), one) for one in self._kept):
                raise ToolFailure(
                    f"Refusing to write {access.key}: the user keeps its folder from being written.",
                    code="protected-folder",
                    path=access.key,
                )
            for path in {access.key, spelled.get(access.key, access.key)}:
                if access.mode != "read":
                    self._guard.check_write(path, asks=asks)
                elif not asks_secrets or not self._guard.is_askable(path):
                    self._guard.check_read(path)
            if access.mode == "read":
                continue
            if any(within(access.key, one) for one in self._own) and not self._jail.in_own_tmp(access.key):
                raise ToolFailure(
                    f"Refusing to write {os.path.basename(access.key)}: it belongs to Ferrule itself. "
                    "Ask the user to change it by hand.",
                    code="writing-protected-file",
                    path=access.key,
                )

    def check_mode(self, case: Case) -> None:
        if not includes(self._mode, case.name, subagent_types=case.subagent_types, canonical=self._canonical):
            raise Denied(f"{case.name} is not part of this mode.", code="not-in-mode")
        if case.context == "subagent" and facts_of(case.tool).planning == "turns":
            raise Denied("A subagent can neither enter nor leave plan mode. Do your own task.", code="not-in-mode")

    async def admit(
        self, case: Case, blocked: Blocked, preview: Previewing | None = None, *, agreed: bool = False
    ) -> Admitted:
        """Return when the call may run; raise `Denied` when it may not.

        `agreed`: the user has just given this input instead of another, and is asked no more about it than whether it
        may open a folder or read a secret file.

        Before anybody is asked, `preview` finds out what there is to show. What it fails with is raised: nobody is
        asked about what cannot be done.
        """
        self.check_mode(case)
        decision = await self._let(case)
        if outside := self._outside(case):
            lent = decision.verdict == "allow" and not any(access.kind == "command" for access in case.touches)
            for folder, path in outside:
                if lent:
                    self._jail.add(folder)  # for what rules allow there; the rest of it still asks
                elif (wanted := await self._widen(case, folder, path, blocked)) is not None:
                    if agreed:
                        raise Denied("Another input was given for the call twice. Make it again.", code="not-allowed")
                    return Admitted(by_person=True, input=wanted)
            decision = await self._let(case)
        said_yes = await self._uncover(case, blocked)
        if not isinstance(said_yes, bool):
            return Admitted(by_person=True, input=said_yes)
        if decision.verdict == "allow" or agreed:
            if agreed:
                self._check_agreed(case)
            return Admitted(by_person=said_yes or agreed)
        return await self._agree(case, decision, blocked, preview)

    async def _agree(self, case: Case, decision: Decision, blocked: Blocked, preview: Previewing | None) -> Admitted:
        """Ask the user about a call that the policy leaves to them."""
        keys = grant_keys(case, self.policy.decide)
        if self._granted.issuperset(keys) and not decision.fixed:
            return Admitted(by_person=True)

        obeyed = self._find_protected(case)
        if obeyed:
            self._check_person(obeyed, can_show=preview is not None)
        # Who lets calls pass has not thereby let them out of the sandbox.
        leaves = bool(case.input.get("outside")) and self.policy.is_sandboxed()
        roots = [root.path for root in self._jail.roots]
        question = Question(
            kind="protected" if obeyed else "outside" if leaves else "call",
            call_id=case.call_id,
            name=case.name,
            tool=case.tool,
            summary=summary(case, self._jail),
            touches=case.touches,
            input=visible_arguments(case),
            given=case.given,
            why=visible(decision.why),
            effects=self._effects(case),
            proposals=() if decision.fixed else proposals(case, self.policy.decide, roots, self.policy.allows_with),
        )
        answer, admitted = await self._ask_with_preview(case, question, blocked, keys, preview)
        if not answer.allow:
            left = "let it out of the sandbox" if question.kind == "outside" else "allow this"
            said = (
                f"{answer.message} " if answer.message else f"The user did not {left}: {end_sentence(question.summary)}"
            )
            said += decision.why * (case.hooked[0] == "ask")
            denied = Denied(said.rstrip(), code="not-allowed")
            denied.stop = answer.stop
            raise denied
        if answer.input is not None:
            return Admitted(by_person=True, input=answer.input)
        if case.is_fetch and not decision.fixed:
            # A yes is one to the host: neither the calls beside this one nor later ones ask about it again.
            self._granted.update(keys)
            self.policy.unasked.agree(case)
        self.hold(case)
        return admitted

    def _check_agreed(self, case: Case) -> None:
        """Raise for what no input that the user gives may reach."""
        if obeyed := self._find_protected(case):
            self._check_person(obeyed, can_show=False)
        self.hold(case)

    async def _ask_with_preview(
        self, case: Case, question: Question, blocked: Blocked, keys: Sequence[str], preview: Previewing | None
    ) -> tuple[Answer, Admitted]:
        """Ask with what the call would change in sight. Raises what it would fail with, and then nobody is asked."""
        if case.consented and question.kind in {"call", "outside"}:
            # Agreed to beforehand, which opens no folder and is no word on protected files.
            return YES, Admitted(by_person=True)
        if preview is None:
            return await self._ask(question, blocked, *keys), Admitted(by_person=True)
        await preview.earlier()
        async with self._one_at_a_time:  # from here on, so that questions come in the order of the calls
            found, rows = await self._render_preview(case, preview, whole=KINDS[question.kind].is_whole)
            kept = None
            if question.kind == "protected" and found is not None and self._approved is not None:
                kept = self._approved().before(found)
            blocked(question.summary)
            answer = await self._get_answer(msgspec.structs.replace(question, changes=rows), *keys)
        return answer, Admitted(by_person=True, agreed=found, written=kept)

    def _find_protected(self, case: Case) -> list[str]:
        """The protected files that the call would write, which only a person may allow."""
        written = [access.key for access in case.touches if access.kind == "path" and access.mode != "read"]
        return [key for key in written if any(map(self._guard.is_protected, {key, case.spelled.get(key, key)}))]

    def _check_person(self, obeyed: Sequence[str], *, can_show: bool) -> None:
        """Raise what is said of protected files, where there is nobody who could be shown what becomes of them."""
        is_silent = self.policy.standing.asks == "deny"
        if can_show and not is_silent and getattr(self._who(), "is_person", False) is True:
            return
        self._refuse(
            obeyed,
            "Only a person may allow it, asked at a terminal, in `ferrule chat` or behind an MCP client that takes "
            "questions; --yes, modes and programs do not count.",
        )

    def _refuse(self, obeyed: Sequence[str], why: str) -> None:
        try:
            self._guard.check_write(obeyed[0])
            message = f"Refusing to write {obeyed[0]}: programs run or obey this file by themselves."
        except ToolFailure as error:
            message = error.message
        raise ToolFailure(f"{message} {why}", code="writing-protected-file", path=obeyed[0])

    async def _render_preview(
        self, case: Case, preview: Previewing | None, *, whole: bool
    ) -> tuple[Preview | None, tuple[str, ...]]:
        """What the call would change, and the rows that show it. Raises what it would fail with."""
        if preview is None or isinstance(self._who(), Nobody | Everybody):
            return None, ()
        from ferrule.permissions import question as changes  # for whoever is asked

        try:
            found = await preview.find()
        except ToolFailure as error:
            if self._may_read(case):
                raise
            # Only whoever is asked may know what is in the file.
            return None, tuple(f"(it would fail: {visible(row)})" for row in error.message.splitlines()[:1])
        if not whole:
            return found, await asyncio.to_thread(changes.rows, found, self._jail.display_path)
        try:
            return found, await asyncio.to_thread(changes.whole, found, self._jail.display_path)
        except changes.Unshown as error:
            self._refuse(self._find_protected(case), f"It was not asked about, because {error}.")
            raise

    def _may_read(self, case: Case) -> bool:
        """May the model know what is in the files that the call changes?"""
        keys = [access.key for access in case.touches if access.kind == "path"]
        reads = (
            case._replace(tool=READ, name=READ, touches=(Access.read(key),), input={"path": key}, hooked=("", ""))
            for key in keys
        )
        return all(self.policy.decide(read).verdict == "allow" for read in reads)

    def _who(self) -> Asker:
        """Who answers in the end."""
        return final_asker(self._asker)

    def secrets(self, case: Case) -> list[str]:
        """The secret files that a call would read, and that a person has not let it read."""
        if not case.facts.asks_secrets:
            return []
        read = [access.key for access in case.touches if access.kind == "path" and access.mode == "read"]
        paths = dict.fromkeys(path for key in read for path in (key, case.spelled.get(key, key)))
        return [path for path in paths if self._guard.secret(path) and _secret_key(path) not in self._granted]

    async def _uncover(self, case: Case, blocked: Blocked) -> bool | Mapping[str, Any]:
        """Ask about every secret file, and tell whether a person was asked. Raises for one that stays secret.

        Returns another input where the user wants that instead.
        """
        paths = self.secrets(case)
        for path in paths:
            refused = self._guard.refusal(path)
            if self.policy.standing.asks == "deny" or not self._guard.is_askable(path):
                raise refused
            key = _secret_key(path)
            question = Question(
                kind="secret",
                call_id=case.call_id,
                name=case.name,
                tool=case.tool,
                summary=visible(f"{case.name} wants to read {self._jail.display_path(path)}, a secret file"),
                touches=case.touches,
                why=visible(self._guard.reason(path)),
            )
            answer = await self._ask(question, blocked, key)
            if not answer.allow:
                refused.note = f"{answer.message} {refused.note}".strip()
                raise refused
            if answer.input is not None:
                return answer.input
            if key != _secret_key(path):  # another file than the one that was asked about
                self._granted.discard(key)
                raise refused
        return bool(paths)

    def hold(self, case: Case) -> None:
        """Raise for a call that the session has begun to plan before: what was let in meanwhile is decided on anew."""
        if self.policy.is_held and (decision := self.policy.decide(case)).verdict == "deny":
            raise Denied(decision.message or decision.why, code="denied-by-rule")

    async def approve(self, case: Case, sentence: str, blocked: Blocked, planted: Preview = ()) -> bool:
        """Ask about something that came up while a call ran. Nobody's answer is no.

        `planted` are protected files, all of which have to be shown: where they cannot be, nobody is asked.
        """
        if self.policy.is_held:
            return False  # it would be more than reading
        question = _build_question(case, "planted" if planted else "outside", sentence)
        if planted:
            from ferrule.permissions.question import Unshown, explain_protection, whole  # for whoever is asked

            if not is_for(self._who(), question):
                return False
            try:
                rows = await asyncio.to_thread(whole, planted, self._jail.display_path)
            except Unshown:
                return False
            why = f"{explain_protection(planted[0].path)}. Only a person's yes counts."
            question = msgspec.structs.replace(question, changes=rows, why=visible(why[0].upper() + why[1:]))
        answer = await self._ask(question, blocked)
        return answer.allow and answer.input is None

    async def approve_hosts(
        self, case: Case, sentence: str, blocked: Blocked
    ) -> Literal["no", "yes", "always", "outside"]:
        """Ask whether commands may reach hosts, or whether this one runs outside the sandbox instead."""
        if self.policy.is_held:
            return "no"
        answer = await self._ask(_build_question(case, "host", sentence), blocked)
        if answer.input is not None:
            return "no"
        if (answer.values or {}).get("run") == "outside":
            return "outside"
        return "no" if not answer.allow else "always" if answer.always else "yes"

    async def decide_case(self, case: Case) -> Decision:
        """What the policy says, with the answer of the program that it leaves it to."""
        decision = self.policy.decide(case)
        if decision.delegate:
            decision = strictest([await self._ask_delegate(one) for one in split_checks(case)])
        decision = apply_hooks(decision, case) if case.hooked[0] else decision
        if decision.verdict == "deny" or not (obeyed := self._find_protected(case)):
            return decision
        from ferrule.permissions.question import explain_protection  # for whoever writes such a file

        whose = " and ".join(
            f"{self._jail.display_path(key)} is protected: {explain_protection(key)}." for key in obeyed
        )
        ours = self._approved is not None and any(map(self._approved().obeys, obeyed))
        more = " A yes lets Ferrule obey it as well." * ours
        return Decision("ask", f"{whose}{more} Only a person's yes counts, and for this write alone.", fixed=True)

    async def _ask_delegate(self, case: Case) -> Decision:
        decision = self.policy.decide(case)
        if not decision.delegate:
            return decision
        from ferrule.permissions.question import delegate  # for whoever has such rules

        roots = [root.path for root in self._jail.roots]
        said = await delegate(decision.delegate, case.name, case.input, thread_id=self._thread, workspace_roots=roots)
        return decision._replace(verdict=said.action, message=said.message, delegate="")

    async def _let(self, case: Case) -> Decision:
        """The same, with a refusal raised."""
        decision = await self.decide_case(case)
        if decision.verdict == "deny":
            raise Denied(decision.message or decision.why, code="denied-by-rule")
        return decision

    def _effects(self, case: Case) -> tuple[str, ...]:
        """What the command of a call is seen to read and write."""
        commands = [access for access in case.touches if access.kind == "command"]
        if not commands:
            return ()
        from ferrule.permissions.shell.judge import effects  # only commands need it

        found = [touched for one in commands for touched in effects(one.key, one.folder, self._jail)]
        return tuple(dict.fromkeys(f"{one.mode}s {self._jail.display_path(one.real)}" for one in found))

    def hear(self, asker: Asker) -> None:
        """Ask somebody else from now on."""
        self._asker = asker

    async def put(self, question: Question) -> Answer:
        """Ask about something that is no call; what goes wrong with the question is a no."""
        if not is_for(self._who(), question):
            return NO
        async with self._one_at_a_time:
            try:
                return await self._asker.ask(question)
            except Exception:  # noqa: BLE001 - whoever answers is the host's code
                return NO

    async def _ask(self, question: Question, blocked: Blocked, *keys: str) -> Answer:
        """`keys` are what a yes would be a yes to."""
        blocked(question.summary)
        async with self._one_at_a_time:
            return await self._get_answer(question, *keys)

    async def _get_answer(self, question: Question, *keys: str) -> Answer:
        """The answer, with what it means for later questions."""
        if not is_for(self._who(), question):
            return NO
        if self._granted.issuperset(keys) and question.kind in _REMEMBERED:
            return YES
        try:
            answer = await self._asker.ask(question)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            message = f"The question could not be answered ({why}): {end_sentence(question.summary)}".rstrip()
            raise Denied(message, code="ask-failed") from error
        if answer.allow is not True:
            return Answer(allow=False, message=answer.message, values=answer.values, stop=answer.stop is True)
        if answer.input is not None:
            # It is a yes to that, and to nothing that was asked about.
            given: object = answer.input
            if not isinstance(given, Mapping):
                return Answer(allow=False, message="The input that was given for the call is no object.")
            return answer
        if answer.always and question.proposals and self._save is not None:
            self._save(question.proposals)
        if question.kind in {"folder", "secret"} or (answer.always and question.kind == "call"):
            self._granted.update(keys)
        return answer

    def _outside(self, case: Case) -> list[tuple[str, str]]:
        """Folders that a yes would have to open, each with the path that needs it."""
        out = []
        for access in case.touches:
            if access.kind == "path" and not self._jail.holds(access.key) and not case.may_read(access):
                folder = access.key
                while not os.path.isdir(folder):
                    folder = os.path.dirname(folder)
                out.append((folder, access.key))
        return out

    async def _widen(self, case: Case, folder: str, path: str, blocked: Blocked) -> Mapping[str, Any] | None:
        """Ask whether the folder may be opened. Returns another input where the user wants that instead."""
        if self._jail.holds(path):
            return None
        does = "read" if all(access.mode == "read" for access in case.touches if access.key == path) else "write"
        wants = f"{does} {path}, outside the workspace; that opens all of {folder}"
        if path == folder:
            wants = f"go outside the workspace, into {folder}"
        question = Question(
            kind="folder",
            call_id=case.call_id,
            name=case.name,
            summary=visible(f"{case.name} wants to {wants}"),
            touches=case.touches,
            given=case.given,
            folder=folder,
        )
        is_all_there_is = os.path.dirname(folder) == folder
        answer = NO if is_all_there_is else await self._ask(question, blocked, f"folder\0{folder}")
        # A link put in the folder's place meanwhile would open another folder than the one that was asked about.
        if not answer.allow or os.path.realpath(folder) != folder:
            outside = Outside(path)
            said = f"{answer.message} {outside.message}".strip()
            denied = Denied(said, code=outside.code, path=path)
            denied.stop = answer.stop
            raise denied
        if answer.input is not None:
            return answer.input
        self._jail.add(folder)
        self.policy.open(folder)
        return None


def _build_question(case: Case, kind: KindName, sentence: str) -> Question:
    """A question about something that came up while a call ran."""
    return Question(
        kind=kind,
        call_id=case.call_id,
        name=case.name,
        tool=case.tool,
        summary=visible(sentence),
        touches=case.touches,
        input=case.input,
        given=case.given,
    )


def _secret_key(path: str) -> str:
    """What a yes is a yes to: this file as it is now."""
    try:
        return f"secret\0{path}\0{stamp(os.stat(path))}"
    except OSError:
        return f"secret\0{path}\0"


class _Behalf:
    """Asks whoever the session asks, and says for which subagent."""

    def __init__(self, gate: Gate, name: str) -> None:
        self._gate = gate
        self._name = name

    @property
    def behind(self) -> Asker:
        return self._gate._asker  # noqa: SLF001 - a gate's own

    async def ask(self, question: Question) -> Answer:
        return await self.behind.ask(msgspec.structs.replace(question, who=self._name))


Decide = Callable[[Case], Decision]
Allows = Callable[[Case, Sequence[str]], bool]
"""Would a call need no question, if these rules were saved?"""
_SHELL = "Bash"
"""What rules about commands are called in every family's files."""
FETCH = "WebFetch"
"""And what rules about hosts are called."""


def grant_keys(case: Case, decide: Decide) -> tuple[str, ...]:
    """The keys of what a yes to this call is a yes to; never none. All of them together need no further question.

    The commands of checks are each like a command of the shell: a yes there counts here, and the other way round.
    """
    if case.is_fetch:
        return tuple(likeness(case._replace(touches=(access,))) for access in case.touches)
    if case.facts.kind != "check":
        return (likeness(case),)
    return tuple(likeness(_alone(case, access)) for access in commands_to_ask(case, decide)) or (likeness(case),)


def likeness(case: Case) -> str:
    """What "always" is said about: this command in this folder, or this tool with these hosts, processes and servers.

    What a skill brings is a server to us, with what it was when the user was asked.
    """
    kinds = {"command", "host", "process", "server"}
    others = sorted("\0".join(access) for access in case.touches if access.kind in kinds)
    return "\0".join((case.tool, *others))


def commands_to_ask(case: Case, decide: Decide) -> list[Access]:
    """The commands of checks that would ask by themselves."""
    commands = [access for access in case.touches if access.kind == "command"]
    return [access for access in commands if decide(_alone(case, access)).verdict != "allow"]


def split_checks(case: Case) -> list[Case]:
    """The call as whoever decides for the user is to see it: the commands of checks each as one of the shell."""
    commands = [access for access in case.touches if access.kind == "command"]
    if case.facts.kind != "check" or not commands:
        return [case]
    rest = case._replace(touches=tuple(access for access in case.touches if access.kind != "command"))
    return [*(_alone(case, access) for access in commands), rest]


def _alone(case: Case, access: Access) -> Case:
    return case._replace(tool=SHELL, name=_SHELL, touches=(access,), input={"command": access.key})


def proposals(case: Case, decide: Decide, roots: Sequence[str], allows: Allows | None = None) -> tuple[str, ...]:
    """The rules that "always" would save: the narrowest that are of use, and none that is not needed.

    With `allows`, they are tried: what would ask again after them is not proposed.
    """
    commands = [access for access in case.touches if access.kind == "command"]
    if not commands and case.tool.startswith(("mcp__", "tb__")):
        return (case.tool,)
    if case.is_fetch:
        domains = tuple(f"{FETCH}(domain:{access.key})" for access in case.touches)
        return domains if allows is None or allows(case, domains) else ()
    # The commands of a skill are judged by the rules about the shell; a rule about the skill covers none of them.
    if not commands or case.input.get("outside") or case.facts.kind == "skill":
        return ()
    if case.facts.kind == "check":
        each = [_rules(_alone(case, one), one, roots, allows) for one in commands_to_ask(case, decide)]
        return tuple(dict.fromkeys(rule for rules in each for rule in rules)) if all(each) else ()
    return _rules(case, commands[0], roots, allows) if len(commands) == 1 else ()


def _rules(case: Case, access: Access, roots: Sequence[str], allows: Allows | None) -> tuple[str, ...]:
    from ferrule.permissions.shell.parse import attempts, parse, proposals  # only commands need it

    line = parse(access.key, cwd=access.folder, roots=list(roots))
    if allows is None:
        return _format_rules(case, proposals(line))
    for attempt in attempts(line, access.key):
        rules = _format_rules(case, attempt)
        if rules and allows(case, rules):
            return _drop_useless(case, rules, allows)
    return ()


def _format_rules(case: Case, specifiers: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{case.name}({one})" for one in specifiers)


def _drop_useless(case: Case, rules: tuple[str, ...], allows: Allows) -> tuple[str, ...]:
    """The rules without those that are of no use."""
    for rule in rules:
        others = tuple(one for one in rules if one != rule)
        if others and allows(case, others):
            rules = others
    return rules


_ADDRESS_CHARS = 300


def summary(case: Case, jail: Jail) -> str:
    """What the call would do, as far as its accesses say; nothing in it steers the screen that it is shown on."""
    lines = [a for a in case.touches if a.kind == "command"]
    if case.facts.kind == "check" and lines:
        rows = (f"  {visible(a.key)}" + f"  (in {visible(a.folder)})" * (a.folder != jail.folder) for a in lines)
        return "\n".join([f"{visible(case.name)} runs {len(lines)} command{'s' * (len(lines) != 1)}:", *rows])
    return visible(_in_one_line(case, jail))


def visible_arguments(case: Case) -> Mapping[str, Any]:
    """The arguments that somebody who is asked is shown: those that the caller has given."""
    return {name: value for name, value in case.input.items() if name not in case.facts.internal}


def _in_one_line(case: Case, jail: Jail) -> str:
    stays = " and leave it running when the session ends" * bool(case.input.get("detach"))
    stays = stays or " in the background" * bool(case.input.get("background"))
    where = " outside the sandbox" * bool(case.input.get("outside"))
    commands = [
        f"run `{a.key}`" + f" in {jail.display_path(a.folder)}" * (a.folder != jail.folder) + where + stays
        for a in case.touches
        if a.kind == "command"
    ]
    if commands:
        return ", ".join(commands)
    servers = [a.key for a in case.touches if a.kind == "server" and a.key != "*"]
    if servers and not servers[0].startswith("skill:"):
        return f"{case.name}: ask the MCP server {', '.join(servers)}"
    if servers:
        return f"{case.name}: use the tools and rules that come with {servers[0]}"
    processes = [a.key for a in case.touches if a.kind == "process" and a.mode != "read"]
    if processes:
        return f"{case.name}: type into task {', '.join(processes)}"
    writes = [jail.display_path(a.key) for a in case.touches if a.kind == "path" and a.mode == "write"]
    if writes:
        return f"{case.name}: {facts_of(case.tool).verb} {', '.join(writes)}"
    hosts = [a.key for a in case.touches if a.kind == "host" and a.mode == "read"]
    if hosts and len(hosts) == len(case.touches):
        addresses = _addresses(case)
        if len(addresses) == 1:
            return f"{case.name}: look at {addresses[0]}"
        if addresses:
            # The hosts come first: of many addresses not all may be seen at once.
            return f"{case.name}: look at {len(addresses)} pages of {', '.join(hosts)}: {', '.join(addresses)}"
        return f"{case.name}: look at {', '.join(hosts)}"
    reads = [jail.display_path(a.key) for a in case.touches if a.kind == "path"]
    looks = [a for a in case.touches if a.kind == "process"]
    if len(reads) + len(looks) == len(case.touches):
        return f"{case.name}: read {', '.join(reads)}" if reads else f"run {case.name}"
    return f"run {case.name}, which may touch anything"


def _addresses(case: Case) -> list[str]:
    """Where a fetch goes, as far as there is room for it: what an address carries is sent with it."""
    if case.facts.rules != "WebFetch":
        return []
    given = [case.input.get("url"), *(case.input.get("more") or ())]
    return [_cut(visible(url.strip())) for url in given if isinstance(url, str)]


def _cut(address: str) -> str:
    more = len(address) - _ADDRESS_CHARS
    return f"{address[:_ADDRESS_CHARS]}… ({more:,} more characters)" if more > 0 else address
