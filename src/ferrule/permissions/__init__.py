"""Define permission decisions, the questions before them, and the tools that a mode allows.

A mode decides about calls that rules leave open. It never undoes a denial, neither of a rule nor of the guard.
Requests that always ask, such as leaving the sandbox, are not subject to modes and do not come here.

The module also holds the tool and parameter names that rules use, and the test for the agent's own notes: files
in its notes folder that no program obeys by itself.

A question is answered by a person at a terminal, by a callback, or by nobody, which means no. Each kind says what
the question is about, what a yes means, and whose yes counts.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from ferrule.core.access import MODE, Access, within
from ferrule.core.errors import ConfigError, near
from ferrule.core.services import Answers, Choice, People, nobody
from ferrule.core.tool import NO_FACTS, AnyTool, Context, Facts
from ferrule.permissions.rules import Rule
from ferrule.tools import ASK_USER, facts_of


def check_key(access: Access) -> str:
    """Under which key a call's `spelled` says what the check is called that runs a command; it can be no path."""
    return f"check\0{access.folder}\0{access.key}"


class Case(NamedTuple):
    """A call as the policy sees it."""

    call_id: str
    name: str
    """The tool in the session's words."""
    tool: str
    """The canonical tool: what rules bind."""
    touches: tuple[Access, ...]
    subagent_types: tuple[str, ...] | None = None
    input: Mapping[str, Any] = {}
    spelled: Mapping[str, str] = {}
    """Real path → the same as the caller spelled it; and for the commands of checks, see `named_as`."""
    hooked: tuple[str, str] = ("", "")
    """What the user's hooks say about it: allow, ask, deny or nothing, and why."""
    context: Literal["thread", "subagent"] = "thread"
    lent: tuple[str, ...] = ()
    """Folders outside the workspace that the user's settings lend to this call: to be read, and for nothing else."""
    given: Mapping[str, Any] = {}
    """The arguments as the caller gave them, in the session's names."""
    consented: bool = False
    """Has the user agreed to it beforehand?"""
    builtin: bool = True
    """Is the tool one of ours? One from elsewhere may have the name of one, and do something else."""
    behind: AnyTool | None = None
    """The tool itself, where there is one: not every tool of ours is known by its name."""

    @property
    def facts(self) -> Facts:
        """Return what is true of the tool. Of one from elsewhere nothing is, unless its name is reserved."""
        if self.builtin and self.behind is not None and self.behind.name == self.tool:
            return self.behind.facts
        named = facts_of(self.tool)
        return named if self.builtin or named.reserved else NO_FACTS

    @property
    def looks_at_web(self) -> bool:
        """Does a tool of ours only look at the web? To Amp's models that is as free as reading."""
        reads_hosts = all(access.kind == "host" and access.mode == "read" for access in self.touches)
        return bool(self.touches) and reads_hosts and self.facts.kind == "web"

    @property
    def is_fetch(self) -> bool:
        """Does it fetch pages, and nothing else?"""
        return self.looks_at_web and self.facts.rules == "WebFetch"

    def may_read(self, access: Access) -> bool:
        """Is it a read of what was lent, by a tool of ours?"""
        reads = self.builtin and access.kind == "path" and access.mode == "read"
        return reads and any(within(access.key, folder) for folder in self.lent)


Verdict = Literal["allow", "ask", "deny"]
_MOST_WHYS = 6
_MOST_NAMED = 60


class Decision(NamedTuple):
    """One decision."""

    verdict: Verdict
    why: str
    """One sentence, for people."""
    rule: str = ""
    """The rule that decided, as it was written; empty where none did."""
    message: str = ""
    """What the model is told, where the rule brings words for it."""
    delegate: str = ""
    """The program that is still to be asked; until then the verdict is to ask."""
    fixed: bool = False
    """Was it decided by a rule or by something that no mode and no setting may soften?"""
    edits_inside: bool = False
    """Is all that it would change files of the workspace, by plain means?"""


def apply_hooks(decision: Decision, case: Case) -> Decision:
    """The decision with the word of the user's hooks in it. Their yes spares a question that no rule demands."""
    verdict, reason = case.hooked
    if verdict == "deny":
        return Decision("deny", f"A hook refuses it: {reason}", message=reason or "A hook refuses it.", fixed=True)
    if verdict == "ask" and decision.verdict == "allow":
        return Decision("ask", f"A hook wants it asked: {reason}", fixed=True)
    is_open = decision.verdict == "ask" and not decision.fixed and not decision.rule
    if verdict == "allow" and is_open and not case.input.get("outside"):
        return Decision("allow", f"A hook allows it: {reason}")
    return decision


def together(decisions: list[Decision], commands: Sequence[Access], case: Case) -> Decision:
    """The one decision on a call; the first ones are about its commands. Of checks all that ask say why."""
    decision = strictest(decisions)
    several = case.facts.kind == "check" and len(commands) > 1
    if several and decision.verdict == "deny":
        hint = _others(decisions, commands, case)
        message = f"{decision.message} {hint}" if decision.message else ""
        return decision._replace(why=f"{decision.why} {hint}".rstrip(), message=message.rstrip())
    asking = [one for one in decisions if one.verdict == "ask"]
    if decision.verdict != "ask" or len(asking) == 1:
        return decision
    # What one of them changes says nothing of what the others do.
    decision = decision._replace(edits_inside=all(one.edits_inside for one in asking))
    if not several:
        return decision
    whys = list(dict.fromkeys(one.why for one in asking))
    more = f" The same goes for {len(whys) - _MOST_WHYS} more." * (len(whys) > _MOST_WHYS)
    return decision._replace(why=" ".join(whys[:_MOST_WHYS]) + more)


def formatter_decisions(commands: Sequence[Decision], plain: Decision, *, is_named: bool) -> list[Decision]:
    """Decisions on a formatter's commands, and the one on the file that it is to write: as its command alone is.

    What rules refuse of the tool or of the file holds all the same. A rule that allows the tool by its name
    (`is_named`) allows the command; one that allows the edit of a file says nothing of what may run.
    """
    if plain.verdict == "ask" and plain.edits_inside and not plain.rule:
        return list(commands)  # the shell writes what its command writes, too
    if plain.verdict == "allow" and not is_named:
        return list(commands)
    if plain.verdict == "allow":
        return [one if one.rule or one.verdict != "ask" else plain for one in commands]
    return [*commands, plain]


def _others(decisions: Sequence[Decision], commands: Sequence[Access], case: Case) -> str:
    """Which checks are denied, and how the others can be run."""
    denied: dict[str, None] = {}
    others: dict[str, None] = {}
    for access, decision in zip(commands, decisions, strict=False):
        name = case.spelled.get(check_key(access), "")
        (denied if decision.verdict == "deny" else others)[name] = None
    if "" in denied:
        return "It tells the reviews what was changed; leave the reviews out."
    named = [name for name in others if name and name not in denied]
    if not denied or not named:
        return ""
    is_one = len(denied) == 1
    which = f"The check {next(iter(denied))} runs it" if is_one else f"The checks {', '.join(denied)} are denied"
    more = f" and {len(named) - _MOST_NAMED} more" * (len(named) > _MOST_NAMED)
    left = "it" if is_one else "them"
    return f"{which}; to leave {left} out, name the others: {', '.join(named[:_MOST_NAMED])}{more}."


def free(case: Case) -> Decision:
    """Yes to a call that needs no question by itself."""
    if case.looks_at_web:
        return Decision("allow", "It only looks at the web.")
    if any(access.mode == "restore" for access in case.touches):
        return Decision("allow", "It takes back what this session has written.")
    only_reads = {*case.touches} - {MODE}
    return Decision("allow", "It only reads the workspace." if only_reads else "It touches nothing.")


def strictest(decisions: list[Decision]) -> Decision:
    """The one that counts."""
    order = {"allow": 0, "ask": 1, "deny": 2}
    return max(decisions, key=lambda one: (order[one.verdict], one.fixed))


def reach(touches: Sequence[Access]) -> str:
    """What a call may do of which nothing more is known, as the end of a sentence."""
    servers = [access.key for access in touches if access.kind == "server"]
    if not servers:
        return "may touch anything"
    is_skill = servers[0].startswith("skill:")
    return "brings tools, servers or rules of its own" if is_skill else "leaves the work to an MCP server"


def refusal(rule: Rule, what: str) -> Decision:
    """The decision of a rule that denies, asks, or leaves it to a program."""
    if rule.action == "deny":
        return Decision("deny", f"{what} is denied by {rule.text}.", rule.text, rule.message, fixed=True)
    if rule.action == "delegate":
        return Decision("ask", f"{rule.to} decides about {what}.", rule.text, delegate=rule.to, fixed=True)
    return Decision("ask", f"{rule.text} asks about {what}.", rule.text, fixed=True)


ModeVerdict = Literal["allow", "ask", "deny"]
Name = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]

EDIT_PROGRAMS = frozenset({"mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"})
"""Programs whose commands are edits where all their paths lie in the workspace."""


_STRICTNESS: dict[ModeVerdict, int] = {"allow": 0, "ask": 1, "deny": 2}


class Standing(NamedTuple):
    """One permission mode."""

    name: Name
    asks: ModeVerdict = "ask"
    """What becomes of a question."""
    inside: ModeVerdict = "ask"
    """What becomes of a question about edits that stay in the workspace."""
    reads_only: bool = False
    """Is everything but reading denied, whatever rules allow?"""

    def settles(self, decision: ModeVerdict, *, edits_only_inside: bool, reads_only: bool) -> ModeVerdict:
        """What the mode makes of a decision.

        `edits_only_inside`: the call does nothing but edit, all of it in the workspace. `reads_only`: it only reads.
        """
        if decision == "deny" or (self.reads_only and not reads_only):
            return "deny"
        if decision == "allow":
            return "allow"
        return self.inside if edits_only_inside else self.asks


DEFAULT = Standing("default")
MODES: tuple[Standing, ...] = (
    DEFAULT,
    Standing("acceptEdits", inside="allow"),
    Standing("plan", reads_only=True),
    Standing("dontAsk", asks="deny", inside="deny"),
    Standing("bypassPermissions", asks="allow", inside="allow"),
)

_ALIASES: dict[str, Name] = {
    "auto_edit": "acceptEdits",
    "force": "bypassPermissions",
    "yolo": "bypassPermissions",
    "dangerously-skip-permissions": "bypassPermissions",
    "dangerously-allow-all": "bypassPermissions",
    "dangerouslyAllowAll": "bypassPermissions",
    "dangerously-bypass-approvals-and-sandbox": "bypassPermissions",
    "never": "dontAsk",
    "on-request": "default",
    "untrusted": "default",
    # Modes in which a model or another agent answers: here a person does.
    "auto": "default",
    "delegate": "default",
}
"""What other programs call them."""


def parse_mode(text: str) -> Standing:
    """The mode of this name, in any letter case and with `-`, `_` or nothing between words.

    Raises: ConfigError.
    """
    modes = {mode.name: mode for mode in MODES}
    found = {_plain(mode.name): mode for mode in MODES}
    found |= {_plain(alias): modes[name] for alias, name in _ALIASES.items()}
    try:
        return found[_plain(text.strip().removeprefix("--"))]
    except KeyError:
        known = [mode.name for mode in MODES]
        meant = near(text, [*known, *_ALIASES], most=1)
        hint = f" Did you mean {meant[0]}?" if meant else ""
        raise ConfigError(f"There is no permission mode {text!r}; there are {', '.join(known)}.{hint}") from None


def tighten_mode(standing: Standing, wish: Standing) -> Standing:
    """The mode that is wished for, if it nowhere allows more than the one that holds; otherwise the one that holds."""
    cases = [
        (decision, inside, reads) for decision in _STRICTNESS for inside in (False, True) for reads in (False, True)
    ]
    for decision, inside, reads in cases:
        held, wished = (
            _STRICTNESS[mode.settles(decision, edits_only_inside=inside, reads_only=reads)] for mode in (standing, wish)
        )
        if wished < held:
            return standing
    return wish


def both(one: Standing, other: Standing) -> Standing:
    """A mode that allows only what both allow; it goes by the name of the one that is stricter as a whole."""
    asks, inside = (
        max(pair, key=_STRICTNESS.__getitem__) for pair in ((one.asks, other.asks), (one.inside, other.inside))
    )
    name = other.name if tighten_mode(one, other) is other else one.name
    return Standing(name, asks, inside, one.reads_only or other.reads_only)


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


class ToolNames(Protocol):
    """The names of tools and parameters in every family."""

    def of(self, tool: str) -> frozenset[str]: ...
    def kin(self, tool: str) -> str | None: ...
    def values(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]: ...
    def parameters(self, tool: str, meant: str) -> frozenset[str]: ...


class Bare:
    """Names for a policy that has no rules, or whose tools have one name each."""

    def of(self, tool: str) -> frozenset[str]:
        return frozenset((tool,))

    def kin(self, tool: str) -> str | None:  # noqa: ARG002 - the protocol's
        return None

    def values(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's
        return dict(given)

    def parameters(self, tool: str, meant: str) -> frozenset[str]:  # noqa: ARG002 - the protocol's
        return frozenset((meant,))


def is_name(text: str) -> bool:
    """Could a server be called so?"""
    return text.replace("-", "").replace("_", "").isalnum()


_ENDINGS = frozenset({"", ".md", ".txt", ".log", ".csv", ".json", ".jsonl"})
_OBEYED = frozenset(
    {"package", "project", "tsconfig", "jsconfig", "deno", "nx", "turbo", "lerna", "composer", "build", "workspace"}
    | {"makefile", "gnumakefile", "dockerfile", "justfile", "rakefile", "sconstruct", "sconscript", "wscript", "buck"}
)
"""Names that build programs look for in every folder."""


def is_note(path: str) -> bool:
    """Is it a note by its name? Code and settings are not: a test run may pick them up."""
    stem, ending = os.path.splitext(os.path.basename(path).lower())
    return ending in _ENDINGS and not stem.startswith(".") and stem not in _OBEYED


class ModeConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a mode includes."""

    include_tools: tuple[str, ...] | None = None
    """Built-in tools by any of their names; None means all of them."""
    allow_mcp: bool = False
    allow_toolbox: bool = False
    subagent_type: str | None = None
    only: tuple[str, ...] | None = None
    """Names, or globs of names, of the tools of every source that it gives; None means all of them."""
    without: tuple[str, ...] = ()
    """The same of tools that it does not give."""
    within: "ModeConfig | None" = None
    """A mode that has to give a tool as well: a subagent has no tool that its parent has not."""


def includes(
    mode: ModeConfig,
    name: str,
    *,
    subagent_types: Sequence[str] | None = None,
    canonical: Callable[[str], str] = str,
) -> bool:
    """Does the mode give this tool? `mcp__` and `tb__` names by their switches, all others by the list.

    A server's tool may be shown under a shorter name; its canonical one tells.
    """
    known = canonical(name)
    if mode.within is not None and not includes(mode.within, name, subagent_types=subagent_types, canonical=canonical):
        return False
    if mode.only is not None and not _is_named(mode.only, name, known, canonical):
        return False
    if mode.without and _is_excluded(mode.without, name, known, canonical):
        return False
    if known.startswith("mcp__"):
        return mode.allow_mcp
    if known.startswith("tb__"):
        if not mode.allow_toolbox:
            return False
        if mode.subagent_type and subagent_types is not None:
            return "all" in subagent_types or mode.subagent_type in subagent_types
        return True
    return mode.include_tools is None or known in {canonical(one) for one in mode.include_tools}


def _is_named(patterns: Sequence[str], name: str, known: str, canonical: Callable[[str], str]) -> bool:
    """Is the tool among these? A name of any family means its tool; a glob is about names as they are."""
    return any(canonical(one) == known or fnmatchcase(name, one) or fnmatchcase(known, one) for one in patterns)


def _is_excluded(patterns: Sequence[str], name: str, known: str, canonical: Callable[[str], str]) -> bool:
    """The same for what is kept out: `BASH` and `web-fetch` leave no doubt about what is meant either."""
    if _is_named(patterns, name, known, canonical):
        return True
    names = {_fold_name(name), _fold_name(known)}
    spelled = (
        {_fold_name(one), _fold_name(canonical(one.lower())), _fold_name(canonical(one.capitalize()))}
        for one in patterns
    )
    return any(names & one for one in spelled) or _is_named([one.lower() for one in patterns], name.lower(), known, str)


def _fold_name(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


KindName = Literal[
    "call", "folder", "outside", "host", "protected", "planted", "secret", "server", "values", "choose", "plan"
]
"""`call`: may this call run? `folder`: may the session go into this folder outside the workspace?

`outside`: may what the sandbox seems to have stopped run again outside of it?
`host`: may commands reach these hosts? "Always" keeps them for the workspace; `values` with `run` as `outside` says no
to the hosts, and lets the command run outside the sandbox.
`protected`: may this file be written, though programs run or obey it by themselves?
`planted`: may such a file stay, which a command has written?
`secret`: may this secret file be read?
`server`: may this MCP server be started, or may its tools be used as they are now?
`values`: what does the user answer to a server that asks for something?
`choose`: what does the user answer to the model, which asks them to choose?
`plan`: does the user approve the plan in `input`, and with it what `effects` say?
"""


class QuestionKind(NamedTuple):
    """What holds for all questions of a kind."""

    offer: str = "Allow it?"
    """What a yes means, at the end of the question."""
    only_persons: bool = False
    """Does nothing but a person's own answer count? Then no program, callback or `--yes` is asked at all."""
    is_whole: bool = False
    """Is all of what it is about shown at once, or the question not asked?"""
    has_always: bool = False
    """May the answer hold for the like of it from then on?"""
    comes_first: bool = False
    """Is it asked before anything of the call has run, so that the call can be made again with the answer?"""


KINDS: Mapping[str, QuestionKind] = MappingProxyType(
    {
        "call": QuestionKind("Allow it?", has_always=True, comes_first=True),
        "folder": QuestionKind("Open this folder for the session?", comes_first=True),
        "outside": QuestionKind("Run it outside the sandbox?"),
        "host": QuestionKind("Let commands reach it?", has_always=True),
        "protected": QuestionKind("Write it?", only_persons=True, is_whole=True, comes_first=True),
        "planted": QuestionKind("Let it stay?", only_persons=True, is_whole=True),
        "secret": QuestionKind("Let this file be read?", only_persons=True, comes_first=True),
        "server": QuestionKind("Approve it, from now on?", is_whole=True),
        "values": QuestionKind("Answer it?"),
        "choose": QuestionKind(comes_first=True),
        "plan": QuestionKind("Approve the plan?", is_whole=True, comes_first=True),
    }
)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked."""

    kind: KindName
    call_id: str
    name: str
    """The tool, in the session's words."""
    tool: str = ""
    """The canonical tool."""
    summary: str
    """One line: what would happen."""
    touches: tuple[Access, ...]
    input: Mapping[str, Any] = {}
    """The arguments in the canonical tool's names and in their final form."""
    given: Mapping[str, Any] | None = None
    """The arguments as the model gave them, in the names of the session; None where that is `input`."""
    changes: tuple[str, ...] = ()
    """What would be written: the rows of a diff of the files as they are, with line numbers."""
    folder: str = ""
    """For `folder`: the folder that a yes opens, for this session."""
    why: str = ""
    """One sentence: why the policy asks."""
    effects: tuple[str, ...] = ()
    """What a command is seen to read and write, each as `writes build/out.txt`; it may touch more."""
    proposals: tuple[str, ...] = ()
    """The rules that "always" would save; without any it holds for the very same call, in this session."""
    who: str = ""
    """The subagent whose call it is; empty for the session's own."""
    schema: Mapping[str, Any] = {}
    """For `values`: the JSON Schema of what the server asks for. For `choose`: the same for the choices."""
    choices: "tuple[Choice, ...]" = ()
    """For `choose`: what the model asks. Whoever shows their texts makes them `visible`."""


class Answer(msgspec.Struct, frozen=True):
    """What the person said."""

    allow: bool
    always: bool = False
    """Do not ask about the like again in this session."""
    message: str = ""
    """A reason for the model."""
    input: Mapping[str, Any] | None = None
    """For a call that is allowed: the input that it is to be made with instead, in the words of `Question.given`.

    It is decided about anew, without another question: rules that deny, and guarded files, hold for it too.
    """
    stop: bool = False
    """For a call that is not allowed: does the user want the work to end with it?"""
    values: Mapping[str, Any] | None = None
    """For a question of the kind `values`: what the user filled in.

    For one of the kind `choose`: the key of each choice that was answered → a label, a list of labels, or own words.
    For one of the kind `plan`: with `mode` `acceptEdits`, edits in the workspace need no question from then on.
    """


YES = Answer(allow=True)
NO = Answer(allow=False)
ABSENT = Answer(allow=False, message="There is nobody to ask in this session.")
"""For a question of the kind `choose`: nobody was asked, which is not the same as somebody who does not answer."""
UNAPPROVED = Answer(
    allow=False,
    message="Nobody is here to approve the plan, so the plan is what this session comes to: say what it is and stop.",
)


class Asker(Protocol):
    """Answers questions; it may take its time. One that has `is_person` set puts every question to a person."""

    async def ask(self, question: Question) -> Answer: ...


class Nobody:
    """There is nobody to ask: everything that would ask is denied."""

    async def ask(self, question: Question) -> Answer:
        if question.kind != "call":
            return {"choose": ABSENT, "plan": UNAPPROVED}.get(question.kind, NO)
        return Answer(
            allow=False,
            message=f"Nobody can be asked, so this was not allowed: {end_sentence(question.summary)}"
            "On the command line, --yes allows it; in a program, ask= answers questions.",
        )


class Everybody:
    """The user said yes beforehand to every call. It widens nothing: folders outside stay outside."""

    async def ask(self, question: Question) -> Answer:
        if question.kind == "choose":
            return ABSENT
        if question.kind == "plan" and question.input.get("begun_by") == "model":
            return YES  # what held before it began to plan holds again, and nothing more
        return YES if question.kind == "call" else UNAPPROVED if question.kind == "plan" else NO


Callback = Callable[[Question], bool | Answer | Awaitable[bool | Answer]]


class CallbackAsker:
    """A function of the library's user answers."""

    def __init__(self, function: Callback) -> None:
        self._function = function

    async def ask(self, question: Question) -> Answer:
        said = self._function(question)
        if isinstance(said, Awaitable):
            said = await said
        if isinstance(said, Answer):
            return said
        # Who says yes to whatever is asked has not said so about a secret: that takes an `Answer`.
        return Answer(allow=said is True and question.kind != "secret")


def final_asker(asker: Asker) -> Asker:
    """Who answers in the end: one that only hands questions on says in `behind` to whom."""
    while (behind := getattr(asker, "behind", None)) is not None:
        asker = behind
    return asker


def is_for(asker: Asker, question: Question) -> bool:
    """May this one answer? What only a person may allow goes to no program, whatever it was told beforehand."""
    return not KINDS[question.kind].only_persons or getattr(asker, "is_person", False) is True


def end_sentence(summary: str) -> str:
    """A summary as the end of a sentence that another one follows; several rows end with their line."""
    return f"{summary}\n" if "\n" in summary else f"{summary}. "


def visible(text: str) -> str:
    """A text in which nothing steers the screen that it is shown on, or hides there."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


OWN_WORDS = "{} (in your own words)"
"""What the schema calls the place for own words beside the labels of a choice."""
_MOST_CHARS = 10_000
_SILENT = "The user does not want to be asked in this session."


class Choosers(People):
    """Puts the choices to the asker as one question."""

    def __init__(
        self,
        put: Callable[[Question], Awaitable[Answer]],
        blocked: Callable[[str, str, str], None],
        is_silent: Callable[[], bool] = bool,
    ) -> None:
        """`put` asks. `blocked` is told, before, which call waits: its id, its name and what is asked.

        `is_silent` tells whether the permission mode says no to whatever would ask.
        """
        self._put = put
        self._blocked = blocked
        self._is_silent = is_silent

    async def choose(self, choices: Sequence[Choice], ctx: Context) -> Answers | None:
        if self._is_silent():
            raise nobody(_SILENT)
        name = str(getattr(ctx, "name", ASK_USER))
        question = Question(
            kind="choose",
            call_id=ctx.call_id,
            name=name,
            tool=ASK_USER,
            summary=visible(f"The model asks: {' '.join(choice.question for choice in choices)}"),
            touches=(),
            choices=tuple(choices),
            schema=schema_of(choices),
        )
        self._blocked(ctx.call_id, name, question.summary)
        answer = await self._put(question)
        if answer.allow is not True:
            if answer.message:
                raise nobody(answer.message)
            return None
        return parse_answers(choices, answer.values or {}) or None


def schema_of(choices: Sequence[Choice]) -> dict[str, Any]:
    """The choices as a flat schema, for hosts that know forms only. Nothing has to be answered."""
    properties: dict[str, Any] = {}
    for choice in choices:
        title = {"title": choice.header} if choice.header else {}
        if not choice.options:
            hint = f" ({choice.placeholder})" if choice.placeholder else ""
            properties[choice.key] = {"type": "string", **title, "description": f"{choice.question}{hint}"}
            continue
        lines = [f"- {one.label}: {one.description}" if one.description else f"- {one.label}" for one in choice.options]
        about = {**title, "description": "\n".join([choice.question, *lines])}
        labels = {"type": "string", "enum": [one.label for one in choice.options]}
        properties[choice.key] = {"type": "array", "items": labels, **about} if choice.multiple else {**labels, **about}
        if choice.free:
            own = {"type": "string", **title, "description": f"{choice.question} An answer that is not among these."}
            properties[OWN_WORDS.format(choice.key)] = own
    return {"type": "object", "properties": properties}


def parse_answers(choices: Sequence[Choice], values: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The answers in what a host gave back; what is no answer to anything that was asked is left out."""
    out: dict[str, tuple[str, ...]] = {}
    for choice in choices:
        chosen = _labels(choice, values.get(choice.key))
        own = _labels(choice, values.get(OWN_WORDS.format(choice.key))) if choice.options and choice.free else ()
        # Whoever may choose one thing and also says something means what they say.
        said = tuple(dict.fromkeys((*chosen, *own))) if choice.multiple else (own or chosen)[:1]
        if said:
            out[choice.key] = said
    return out


def _labels(choice: Choice, value: Any) -> tuple[str, ...]:
    """A value as labels and own words."""
    if isinstance(value, list | tuple):
        return tuple(one for member in value for one in _labels(choice, member) if isinstance(member, str))
    if isinstance(value, bool):
        value = "Yes" if value else "No"
    text = str(value).strip()[:_MOST_CHARS] if isinstance(value, str | int | float) else ""
    if not text:
        return ()
    known = {option.label.casefold(): option.label for option in choice.options}
    if text.casefold() in known:
        return (known[text.casefold()],)
    several = _several(text.casefold(), known) if choice.multiple else ()
    return several or ((text,) if choice.free or not choice.options else ())


def _several(text: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Labels with commas between them, all of the text or nothing; a label may have a comma of its own."""
    for label in sorted(known, key=len, reverse=True):
        if text == label:
            return (known[label],)
        if text.startswith(label) and (rest := text[len(label) :].lstrip()).startswith(","):
            others = _several(rest[1:].strip(), {one: shown for one, shown in known.items() if one != label})
            if others:
                return (known[label], *others)
    return ()
