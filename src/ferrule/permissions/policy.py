"""Decide on each call once, from the rules of all layers and from what the sandbox holds.

The policy of a subagent follows its parent's and is nowhere milder. Rules about hosts also apply to calls that
reach another host on their way.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.core.access import MODE, Access, within
from ferrule.core.services import HostsAllowed, HostVerdict
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.permissions import (
    DEFAULT,
    Bare,
    Case,
    Decision,
    Standing,
    ToolNames,
    both,
    formatter_decisions,
    free,
    is_name,
    is_note,
    reach,
    refusal,
    strictest,
    together,
)
from ferrule.permissions.rules import Always, Layer, PathAccess, Rule, RuleSet, Subject
from ferrule.permissions.trust import RuleContext, allow_rules
from ferrule.tools import EDIT, READ, SHELL, WEB_FETCH, facts_of

if TYPE_CHECKING:
    from ferrule.permissions.shell.judge import CommandLineAnalysis
    from ferrule.permissions.shell.scene import Scene
    from ferrule.tools.web import Addresses


_MADE_UP = (
    "{name} goes to {hosts}, at an address that the model made up: the user has not written it, and no search and no "
    "page that the user named has shown it. Commands run without a question, and it could carry away what they have "
    "read."
)


class Unasked:
    """What a policy needs to know beside whether confined commands need no question."""

    def __init__(
        self,
        left_out: Callable[[str], bool] | None = None,
        addresses: "Callable[[], Addresses] | None" = None,
    ) -> None:
        """`left_out` tells what no checkpoint keeps; without it the user wants no question about any confined command.

        `addresses` are those that may be fetched without a question; without them all are.
        """
        self._left_out = left_out
        self._addresses = addresses
        self.tell: Callable[[], None] = lambda: None
        """Called whenever a command is let in because it runs confined and can be taken back."""

    def decision(self, asks: Decision, commands: Sequence[Access], scene: "Scene", *, is_held: bool) -> Decision:
        """What becomes of a question about confined commands: yes, unless they lose what nothing brings back.

        `is_held`: nothing of it will run, because the session plans.
        """
        if self._left_out is None:
            return Decision("allow", "It runs confined, and sandbox.auto_allow is set.")
        from ferrule.permissions.shell.losses import loss  # only commands need it

        for access in commands:
            if why := loss(access.key, access.folder, scene, self._left_out):
                return asks._replace(why=why)
        if not is_held:
            self.tell()
        return Decision("allow", "It runs confined, and what it changes can be taken back.")

    def explain_made_up(self, case: Case) -> str:
        """Why a call asks because of where it fetches from, as sentences; empty where no model made that up."""
        if self._addresses is None or not case.is_fetch or not (addresses := self._addresses()).is_heard:
            return ""
        given = [case.input.get("url"), *(case.input.get("more") or ())]
        urls = [url for url in given if isinstance(url, str)]
        hosts = addresses.find_made_up(urls, [access.key for access in case.touches])
        return _MADE_UP.format(name=case.name, hosts=", ".join(hosts)) if hosts else ""

    def agree(self, case: Case) -> None:
        """The user has said yes to a fetch: its hosts are not asked about again."""
        if self._addresses is not None:
            self._addresses().agree(access.key for access in case.touches)


_MANY = 64
_SERVER = "mcp__"
_LOOKS = frozenset({"path", "process", "host"})
_RANKS = {"managed": 2, "user": 1, "session": 1, "built-in": 0, "project": 0}
"""How much a layer counts where rules for single hosts lift one that asks about all of them."""


class Policy:
    """Decides on calls. Rules that deny beat rules that ask, and those beat rules that allow, whatever their layer."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        sets: Sequence[RuleSet] = (),
        *,
        names: ToolNames | None = None,
        standing: Standing = DEFAULT,
        notes: str = "",
        trusted: bool = False,
        development: bool = True,
        confined: Callable[[], bool] = bool,
        is_sandboxed: Callable[[], bool] = bool,
        unasked: Unasked | None = None,
    ) -> None:
        """`trusted`: may the project's own rules allow anything? `development`: do its tests and builds need no rule?

        `is_sandboxed` tells whether commands run confined, and `confined` whether they need no question for that:
        `unasked` says what asks all the same.
        """
        self.standing = standing
        self.plan: str | None = None
        """In plan mode: the plan's file, by its real path. Whatever the standing is, all else is only read."""
        self.reads_only = False
        """Is everything but reading denied just now, without a plan? The tools that a model is shown stay the same."""
        self._jail = jail
        self._guard = guard
        self._sets = list(sets)
        self._names = names or Bare()
        self._notes = notes
        self.trusted = trusted
        self._development = development
        self._confined = confined
        self.is_sandboxed = is_sandboxed
        self.unasked = unasked or Unasked()
        self._home = tuple(root.path for root in jail.roots)
        self._opened: set[str] = set()
        self._looked: dict[tuple[str, str], CommandLineAnalysis] = {}

    @property
    def sets(self) -> tuple[RuleSet, ...]:
        return tuple(self._sets)

    def know(self, names: ToolNames) -> None:
        """The names that rules are written in, where a session began without rules."""
        self._names = names

    def add(self, rules: RuleSet) -> None:
        """Rules that came later in the session."""
        self._sets.append(rules)

    def open(self, folder: str) -> None:
        """The user has opened a folder: what holds for the workspace holds there."""
        self._opened.add(folder)

    def weigh(self, subject: Subject) -> list[Rule]:
        """The rules that speak about a call, from every file those that count."""
        found = self._find_rules(subject)
        if self._sets and (kin := self._names.kin(subject.tool)) is not None:
            # What bears a built-in tool's name is bound by what refuses that; what allows that says nothing of it.
            alike = self._find_rules(subject._replace(tool=kin, names=subject.names | self._names.of(kin)), lifts=False)
            found += [rule for rule in alike if rule.action != "allow" and rule not in found]
        return found

    def _find_rules(self, subject: Subject, *, lifts: bool = True) -> list[Rule]:
        """`lifts`: do rules that allow single hosts lift those that ask about all of them?"""
        found = []
        for rules in self._sets:
            first = rules.verdict(subject) if rules.ordered else None
            matching = [rule for rule in rules.rules if rule.matches(subject)] if not rules.ordered else [first]
            for rule in matching:
                if rule is None or (rule.action == "allow" and rules.layer == "project" and not self.trusted):
                    continue
                if lifts and subject.hosts and not rules.ordered and self._is_lifted(rule, rules.layer, subject):
                    continue
                untrusted = rule.action == "delegate" and rules.layer == "project" and not self.trusted
                found.append(rule._replace(action="ask") if untrusted else rule)
        return found

    def _is_lifted(self, rule: Rule, layer: Layer, subject: Subject) -> bool:
        """Does it ask about all hosts, and do others allow each host of the call by its name?

        "Ask for all but these" cannot be said otherwise. A file lifts only what it, or one that counts less, has said:
        a project's rules open nothing that the user wants to be asked about.
        """
        from ferrule.permissions.rules.hosts import asks_of_all, names_hosts  # for calls that go to hosts

        if not asks_of_all(rule, subject.tool):
            return False
        counting = (
            one
            for one in self._sets
            if not one.ordered and _RANKS[one.layer] >= _RANKS[layer] and (one.layer != "project" or self.trusted)
        )
        allowing = [r for one in counting for r in one.rules if r.action == "allow" and names_hosts(r.condition)]
        return all(any(one.matches(subject._replace(hosts=(host,))) for one in allowing) for host in subject.hosts)

    def denies_everything(self, tool: str) -> bool:
        """Is every call of the tool denied? Then a model is not shown it."""
        if not self._sets:
            return False
        from ferrule.permissions.rules.claude import hides  # for sessions with rules

        bound = (Subject(one, self._names.of(one)) for one in (tool, self._names.kin(tool)) if one is not None)
        return any(hides(rule, subject) for subject in bound for rule in self.weigh(subject))

    def is_denied(self, path: str, mode: str) -> bool:
        """Does a rule deny reading or writing this path? Searches and confined commands leave such paths out."""
        if not any(rule.action == "deny" for rules in self._sets for rule in rules.rules):
            return False  # everything in the workspace is asked about here
        touched = PathAccess("read" if mode == "read" else "write", path, path)
        return any(rule.action == "deny" for rule in self.bound(touched))

    def bound(self, touched: PathAccess) -> list[Rule]:
        """The rules about a path, as if a tool that reads or edits files had touched it."""
        if not self._sets:
            return []
        tool = READ if touched.mode == "read" else EDIT
        values = self._names.values(tool, {"path": touched.spelled})
        return self.weigh(Subject(tool, self._names.of(tool), values, paths=(touched,), workspace=self._jail.folder))

    def allows_with(self, case: Case, texts: Sequence[str]) -> bool:
        """Would the call need no question, if these rules were saved?"""
        names = {case.name: case.tool, "Bash": SHELL, "WebFetch": WEB_FETCH}
        added = allow_rules(texts, RuleContext(self._jail.folder, names.get))
        self._sets.append(added)
        try:
            return not added.warnings and self.decide(case).verdict == "allow"
        finally:
            self._sets.remove(added)

    def analyze_command(self, access: Access) -> Access:
        """A command line with what is known of it: does it only read, and where does git do nothing but that in it?"""
        from ferrule.permissions.shell.judge import look  # only commands need it

        looked = look(access.key, access.folder, self._scene())
        if len(self._looked) > _MANY:
            self._looked.clear()
        # For the decision that follows at once; a later one looks again.
        self._looked[access.key, access.folder] = looked
        return access._replace(
            mode="read" if looked.reads_only else access.mode, git="\0".join(looked.git_read_folders)
        )

    def decide(self, case: Case) -> Decision:
        """Allow, ask or deny, before anybody is asked."""
        subject = self._subject(case)
        commands = [access for access in case.touches if access.kind == "command"]
        only_reads = True
        is_spoken = case.facts.commands == "found"
        decisions: list[Decision] = []
        if commands:
            from ferrule.permissions.shell.judge import judge  # only commands need it

            # A rule about a skill is none about the commands in its text: those are the shell's. So are checks.
            spoken = self._subject(case._replace(tool=SHELL, name=SHELL)) if is_spoken else subject
            rules = (rule for one in self._sets for rule in one.rules)
            refused = [rule.text for rule in rules if rule.action != "allow" and rule.tool in spoken.names]
            for access in commands:
                judged = judge(
                    access.key,
                    access.folder,
                    subject=spoken,
                    weigh=self.weigh,
                    bound=self.bound,
                    ruled=bool(self._sets),
                    refuses=bool(refused),
                    refused=refused,
                    scene=self._scene(),
                    development=self._development,
                    looked=self._looked.pop((access.key, access.folder), None),
                )
                decisions.append(judged.decision)
                only_reads = only_reads and judged.reads_only
        others = tuple(access for access in case.touches if access.kind != "command")
        if others or not commands or is_spoken:
            rest = case._replace(touches=others) if commands else case
            plain = self._plain(rest, self._subject(rest) if commands else subject)
            if commands and case.facts.kind == "format":
                by_name = {case.name, *self._names.of(case.tool)}
                allowed = (rule for one in self._sets for rule in one.rules if rule.text == plain.rule)
                decisions = formatter_decisions(
                    decisions, plain, is_named=any(rule.tool in by_name for rule in allowed)
                )
            else:
                decisions = [*decisions, plain]
            only_reads = only_reads and all(a.mode == "read" and a.kind in _LOOKS for a in others)
        decision = together(decisions, commands, case)
        if case.input.get("outside") and decision.verdict != "deny":
            decision = Decision("ask", "It would run outside the sandbox, which always asks.", fixed=True)
        elif commands and decision.verdict == "ask" and not decision.fixed and self._runs_confined(case, others):
            decision = self.unasked.decision(decision, commands, self._scene(), is_held=self.is_held)
        elif commands and decision.verdict == "ask" and not case.facts.commands:
            # What a confined command has left in the workspace would run here with all of the user's rights.
            decision = decision._replace(why=f"{decision.why} It runs outside the sandbox.", fixed=True)
        if self.is_held:
            from ferrule.permissions.plan_mode import restrict_decision  # for sessions that plan

            return restrict_decision(
                case,
                decision,
                self.plan or "",
                only_reads=only_reads,
                settle=self._apply_mode,
                is_review=self.reads_only,
            )
        return self._apply_mode(decision, only_reads=only_reads)

    @property
    def is_planning(self) -> bool:
        """Is everything but reading denied, until a plan is approved?"""
        return self.plan is not None or self.standing.reads_only

    @property
    def is_held(self) -> bool:
        """Is everything but reading denied, for a plan or for a review?"""
        return self.is_planning or self.reads_only

    def _runs_confined(self, case: Case, others: Sequence[Access]) -> bool:
        """Needs it no question for that? Servers and tools that a skill brings are not confined."""
        is_free = not any(one.kind == "server" for one in others)
        return bool(case.facts.commands) and is_free and self._confined()

    def _apply_mode(self, decision: Decision, *, only_reads: bool) -> Decision:
        """What the mode makes of it."""
        if decision.fixed and decision.verdict != "ask":
            return decision
        softened = "ask" if decision.fixed else decision.verdict
        inside = decision.edits_inside and not decision.fixed
        verdict = self.standing.settles(softened, edits_only_inside=inside, reads_only=only_reads)
        if verdict == decision.verdict or (decision.fixed and verdict == "allow"):
            return decision
        return decision._replace(verdict=verdict, why=f"{decision.why} The mode {self.standing.name} says {verdict}.")

    def _plain(self, case: Case, subject: Subject) -> Decision:
        """A call that is no command line."""
        rules = self.weigh(subject)
        servers = self._servers(case.touches) if self._sets else ()
        # What refuses a server binds whatever goes to it; what allows its tools says nothing of the rest.
        bound = self.weigh(subject._replace(names=subject.names.union(servers))) if servers else rules
        refusing = [rule for rule in bound if rule.action != "allow"]
        if refusing:
            return strictest([refusal(rule, case.name) for rule in refusing])
        paths = [access for access in case.touches if access.kind == "path" and not case.may_read(access)]
        outside = [access.key for access in paths if not self._at_home(access.key)]
        for rule in rules or self._each(subject):
            if not outside or not isinstance(rule.condition, Always):
                return Decision("allow", f"{case.name} is allowed by {rule.text}.", rule.text)
        if outside:
            return Decision("ask", f"{case.name} goes outside the workspace, to {outside[0]}.")
        if (why := self.unasked.explain_made_up(case)) and self._confined():
            return Decision("ask", why)
        if case.looks_at_web or all(map(self._free, case.touches)):
            return free(case)
        writes = [access.key for access in case.touches if access.mode == "write"]
        edits = all(access.kind == "path" for access in case.touches)
        what = f"writes {self._jail.display_path(writes[0])}" if writes and edits else reach(case.touches)
        return Decision("ask", f"{case.name} {what}, and no rule covers it.", edits_inside=edits)

    def _each(self, subject: Subject) -> list[Rule]:
        """The rules that allow each path of a call by itself, where none allows them all."""
        each = [self.weigh(subject._replace(paths=(path,))) for path in subject.paths]
        alone = len(each) > 1 and all(rules and all(rule.action == "allow" for rule in rules) for rules in each)
        return [rules[0] for rules in each] if alone else []

    def _subject(self, case: Case) -> Subject:
        if not self._sets:
            return Subject(case.tool, frozenset((case.tool, case.name)))
        paths = tuple(
            PathAccess(
                "read" if access.mode == "read" else "write", access.key, case.spelled.get(access.key, access.key)
            )
            for access in case.touches
            if access.kind == "path"
        )
        commands = [access.key for access in case.touches if access.kind == "command"]
        # Whoever runs a command line goes by the names of all that do: a family may have two tools for it.
        alike = {case.tool, *facts_of(case.tool).siblings}
        return Subject(
            tool=case.tool,
            names=frozenset({case.name}).union(*map(self._names.of, alike)),
            values=self._names.values(case.tool, case.input),
            commands=tuple(commands),
            command_keys=frozenset(key for tool in alike for key in self._names.parameters(tool, "command"))
            if commands
            else frozenset(),
            # The folder that a command runs in is not what the command is about.
            paths=() if commands else paths,
            hosts=tuple(access.key for access in case.touches if access.kind == "host"),
            context=case.context,
            workspace=self._jail.folder,
        )

    def _servers(self, touches: Sequence[Access]) -> list[str]:
        """What rules about whole servers are about, whichever tool goes to one; `*` goes to all that are refused."""
        keys = [access.key for access in touches if access.kind == "server"]
        refused = (r.tool for s in self._sets for r in s.rules if r.action != "allow") if "*" in keys else ()
        named = [tool.removesuffix("*").removesuffix("__") for tool in refused if tool.startswith(_SERVER)]
        whole = [name for name in named if "__" not in name.removeprefix(_SERVER)]
        return [f"{name}__" for name in (*(_SERVER + key for key in keys if is_name(key)), *whole)]

    def _scene(self) -> "Any":
        from ferrule.permissions.shell.scene import Scene  # only commands need it

        roots = tuple(root.path for root in self._jail.roots if self._at_home(root.path))
        return Scene(roots, secret=self._guard.secret, protected=self._guard.is_protected, unasked=self._among_notes)

    def _at_home(self, path: str) -> bool:
        return self._jail.in_own_tmp(path) or any(within(path, folder) for folder in (*self._home, *self._opened))

    def _free(self, access: Access) -> bool:
        """Does it need no question by itself? Reads inside the workspace do not; what changes something does."""
        if access.kind == "path":
            return access.mode in {"read", "restore"} or self._agents_own(access.key)
        return access == MODE or (access.kind == "process" and (access.mode == "read" or access.folder == "own"))

    def _agents_own(self, path: str) -> bool:
        """Notes are the agent's own."""
        if not self._notes or not within(path, os.path.join(self._jail.folder, self._notes)):
            return False

        return is_note(path)

    def _among_notes(self, path: str) -> bool:
        """Is it in a folder of notes, also on a disk that takes `.AMP` for the same folder?"""
        folders = [os.path.join(root.path, self._notes).lower() for root in self._jail.roots] if self._notes else []
        return any(within(path.lower(), folder) for folder in folders)


def mode_name(policy: Policy) -> str:
    """The permission mode, as the user and hooks know it."""
    return "plan" if policy.is_planning else policy.standing.name


class StricterPolicy(Policy):
    """The parent's rules, grants and folders as they are at each moment, and a stricter mode where one is wanted."""

    def __init__(self, parent: Policy, wish: Standing) -> None:
        # Nothing is copied: what the parent comes to know later holds here too.
        self._parent = parent
        self._wish = wish

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parent, name)

    @property
    def standing(self) -> Standing:  # type: ignore[override] # the parent may change it; nobody changes it here
        return both(self._parent.standing, self._wish)


class RuledHosts(HostsAllowed):
    """What the policy says to a call that goes there from the start."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def word(self, tool: str, host: str, url: str) -> HostVerdict:
        decision = self._policy.decide(Case("", tool, tool, (Access.host(host),), input={"url": url}))
        return HostVerdict(decision.verdict, decision.why, decision.rule)
