"""Define tools and faces: what a tool accepts and touches, and the form in which a model family sees it.

A tool answers four questions: what it accepts, what it touches, what it does, what it says. The last answer
belongs to the face, beside the family's words; the first three are here.

Arguments are one frozen struct per tool, in canonical names. A preview finds out what a call would change without
changing anything.

Everything in which families differ is a field of a face. A bound is data: how much of a text a family's model
gets, and which part of it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from ferrule.core.access import EVERYTHING, Access
from ferrule.core.errors import ToolFailure


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool accepts, after a face has turned its own parameters into these."""


class Raw(Args, frozen=True, kw_only=True):
    """Arguments of a tool whose schema is not ours to know: as they came, once they fit it."""

    raw: ClassVar[bool] = True
    values: dict[str, Any]


class Previewed(NamedTuple):
    """One file as it is and as it would be; None where it is not there."""

    path: str
    before: bytes | None
    after: bytes | None
    came_from: str = ""
    """For a file that moves: the path that it has now, which is another one of the same preview."""


Preview = tuple[Previewed, ...]


A = TypeVar("A", bound=Args)
T = TypeVar("T")
S = TypeVar("S")

EMPTY_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}
Source = Literal["builtin", "mcp", "toolbox", "custom"]
Kind = Literal[
    "read", "edit", "file", "format", "command", "task", "check", "web", "agent", "ask", "plan", "todo", "thread",
    "skill", "meta", "other",
]  # fmt: skip
"""What a tool is for. `edit` writes text into files, `file` does something else to whole files."""
RuleGroup = Literal["", "Read", "Edit", "Bash", "WebFetch", "Agent", "Skill"]
"""The name under which Claude Code's rules speak of a tool and of all others that do the same."""
Exposure = Literal["direct", "deferred", "hidden"]
"""Is a tool advertised whole, only found by a search, or only called by whoever knows its name?"""


class Context(Protocol):
    """What a running tool may reach."""

    call_id: str
    over: bool
    """The call has its answer: what still works on it, on some thread, may stop."""
    touches: tuple[Access, ...]
    """What the call said that it touches, and was let in for."""
    spelled: dict[str, str]
    """What the caller calls things that the call touches: real path → as it was written, with its links."""
    agreed: Preview | None
    """What a person was shown of the call and said yes to: that is written, or nothing."""

    def path(self, path: str) -> str:
        """The absolute real path that `path` names: `~` expanded, relative to the workspace, links resolved."""

    def need(self, service: type[S]) -> S:
        """The engine's one object of that type."""

    def progress(self, message: str, rows: tuple[str, ...] = ()) -> None:
        """Say how far the call is; it also extends the time limit. `rows` are the last lines of what it prints."""

    async def approve(self, sentence: str, *, planted: Preview = ()) -> bool:
        """Ask the user about something that has come up while the call runs; no where nobody can be asked.

        `planted` are files that programs obey, and that stay if a person who sees them says yes.
        """

    async def approve_hosts(self, sentence: str) -> Literal["no", "yes", "always", "outside"]:
        """Ask the user whether commands may reach hosts, or this one may run outside the sandbox instead."""

    def param(self, canonical: str) -> str:
        """What the caller calls a parameter, for words about it."""

    def note(self, sentence: str) -> None:
        """Add a sentence to the reply's notes."""

    def track(self, path: str, change: "tuple[bytes | None, bytes | None] | None" = None) -> None:
        """Say that the call changed this file, and, where that is known, what was in it before and is in it now."""

    def new_log(self) -> str | None:
        """The path of a file, not made yet, for a full output that is too long for memory; None where none can be."""

    def drop_log(self) -> None:
        """Say that the log is not worth keeping after all."""

    def keep_log(self, size_bytes: int, *, missing: int = 0) -> None:
        """Say that the log holds more than the outcome does: the engine keeps it, and the reply names it.

        `missing` is how many characters the outcome lacks in its middle.
        """

    def mark(self, find: Callable[[], Any]) -> None:
        """Say how the lines of a long outcome are found that matter (`Found` of `support.highlights`)."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of a tool, also before it is loaded. Everything that decides about tools reads it here."""

    kind: Kind = "other"
    rules: RuleGroup = ""
    """Which of the rules that name a group of tools bind it."""
    planning: Literal["", "reads", "turns"] = ""
    """What plan mode makes of it: nothing, `reads` (calls that only read may run), or `turns` (begins or ends it)."""
    writes_plan: int = 0
    """May it write the plan? A session that plans is shown one such tool: the one with the lowest number."""
    commands: Literal["", "given", "found"] = ""
    """Where the commands come from that it runs confined: from the caller, or from files. Rules for Bash bind both."""
    reserved: bool = False
    """Is its name its own? Then no tool from elsewhere can take its place."""
    offered: Literal["always", "on request", "with a model", "with repositories"] = "always"
    """When it is advertised. `on request` is when there is something for it to do; `with repositories` needs both."""
    siblings: tuple[str, ...] = ()
    """Tools that do the same for other families: a session has all of them or none."""
    watched_as: tuple[str, ...] = ()
    """Tools that do the same: hooks that watch those are told of this one."""
    verb: str = "write"
    """What it does to the files that it changes, for questions."""
    internal: tuple[str, ...] = ()
    """Arguments that no caller gives: how a family reads what was given."""
    asks_secrets: bool = False
    """May a person be asked to let it read a secret file?"""


NO_FACTS = Facts()
READS: Mapping[str, Any] = MappingProxyType({"readOnlyHint": True, "openWorldHint": False})
"""The hints of a tool that only reads."""
READS_OUTSIDE: Mapping[str, Any] = MappingProxyType({**READS, "openWorldHint": True})
"""Of one that reads what lies elsewhere, such as the web."""
ADDS: Mapping[str, Any] = MappingProxyType(
    {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
)
"""Of one that adds something and loses nothing."""
CHANGES: Mapping[str, Any] = MappingProxyType({**ADDS, "destructiveHint": True, "idempotentHint": False})
"""Of one that changes what is there."""
REPLACES: Mapping[str, Any] = MappingProxyType({**CHANGES, "idempotentHint": True})
"""Of one that leaves the same when it is called again."""
RUNS: Mapping[str, Any] = MappingProxyType({**CHANGES, "openWorldHint": True})
"""Of one that runs what others wrote."""


class Tool(Generic[A, T]):
    """A canonical tool. Subclasses name their arguments and write `access` and `run`."""

    name: str
    args: type[Args]
    facts: Facts = NO_FACTS
    """What is true of it before it is loaded. A built-in tool has those of its line in `tools.BUILTIN`."""
    title: str = ""
    """What it does in a few words, for people; empty where `hints` or nobody says it."""
    source: Source = "custom"
    """Where it comes from. What is read from `tools.BUILTIN` is "builtin"; only the facts of such a tool count."""
    schema: Mapping[str, Any] = EMPTY_SCHEMA
    """What it accepts, as JSON Schema, where no face says it in a family's words."""
    words: str = ""
    """What it does, for the model, where no face says it."""
    extras: tuple[str, ...] = ()
    """Canonical parameters that no family has, and that a caller may give all the same."""
    subagent_types: tuple[str, ...] | None = None
    """For a toolbox tool: the subagents that may use it; None means all."""
    guidance: str = ""
    """How to use it, for a system prompt."""
    origin: str = ""
    """Where it comes from, for people: a file, or a server's name."""
    short: str = ""
    """A shorter name, for families that use the long one only where two tools share the short one."""
    aliases: tuple[str, ...] = ()
    """Other names that it answers to, where they mean nothing else."""
    exposure: Exposure | None = None
    """How it is exposed, where it or its source says so; the settings and the session decide else."""
    output_schema: Mapping[str, Any] | None = None
    """What its structured result looks like, where it has one."""
    hints: Mapping[str, Any] = MappingProxyType({})
    """What it says of itself, as MCP annotations: `readOnlyHint`, `title` and so on. No question is spared for them."""
    timed: bool = True
    """Does the engine's time limit apply? The shell and the subagents take as long as they take."""
    waits: bool = False
    """Does it only wait for calls of others, as a subagent's? Then it takes no slot, and they are decided on apart."""
    own_thread: bool = False
    """Does the body run away from the engine's event loop? True for code that Ferrule does not know."""
    previews: bool = False
    """Can it say beforehand what it would change?"""
    definition_chars: int = 0
    """How long `words` and `schema` are, where they are read only when somebody looks; 0 where they are here."""

    def access(self, args: A, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - subclasses decide by them
        """What the call will touch. The default is everything: it runs alone and asks."""
        return (EVERYTHING,)

    async def preview(self, args: A, ctx: Context) -> Preview:
        """What `run` would change if it ran now. Raises what `run` would raise; it changes nothing, and notes nothing.

        Only tools that say so in `previews` are asked.
        """
        raise NotImplementedError

    async def run(self, args: A, ctx: Context) -> T:
        """Do it. Raise `ToolFailure` for what the model can fix; any other exception is a bug."""
        raise NotImplementedError


AnyTool = Tool[Any, Any]


class Whole(msgspec.Struct, frozen=True):
    """Up to the general limit of every result, and its head beyond that."""


class Tail(msgspec.Struct, frozen=True):
    """The last characters."""

    chars: int


class Ends(msgspec.Struct, frozen=True):
    """The first and the last bytes, each half of the limit; then the first and the last lines, likewise."""

    limit_bytes: int
    lines: int | None = None


class Middle(msgspec.Struct, frozen=True):
    """The first and the last characters, with a sentence in the middle saying how many are missing."""

    chars: int


class LineLimit(msgspec.Struct, frozen=True):
    """Whole lines, until either limit is met: the first ones, or the last ones."""

    lines: int
    limit_bytes: int
    last: bool = False


WHOLE = Whole()
Bound = Whole | Tail | Ends | Middle | LineLimit


Says = Callable[[Any], Any]
"""A tool's outcome → what this family reads: text or a JSON value."""

GENERAL_LIMIT_BYTES = 102_400

Values = dict[str, Any]

Arrange = Callable[[Values], Values]
"""Arguments in one arrangement → the same in another."""

Preprocess = Callable[[Values, Context], Values]
"""Canonical arguments → the ones that will run."""


def as_it_is(outcome: Any) -> Any:
    return outcome


def as_it_came(values: Values, ctx: Context) -> Values:  # noqa: ARG001 - others look around
    return values


def never(outcome: Any) -> bool:  # noqa: ARG001 - others look at it
    return False


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """The advertised side of a tool."""

    tool: str
    """The canonical tool behind it."""
    name: str
    schema: Mapping[str, Any]
    """The advertised JSON Schema, exactly."""
    words: str
    """The description that the model reads."""
    params: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Advertised parameter → canonical one; others keep their name."""
    unused: tuple[str, ...] = ()
    """Parameters that mean nothing to the canonical tool. Whoever gives one that is not advertised is told so."""
    per: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Canonical parameter → how many of the family's units make one: 1000 where it counts milliseconds."""
    shift: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Canonical parameter → what is added to the family's number: 1 where it counts lines from 0."""
    lift: Arrange = as_it_is
    """Arguments in canonical names and units → canonical arguments, where a family arranges them differently."""
    lower: Arrange = as_it_is
    """The inverse of `lift`."""
    usual: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Canonical arguments where the caller says nothing."""
    fill: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Canonical arguments that this family leaves to the engine."""
    preprocess: Preprocess = as_it_came
    """Puts the arguments into their final form, before anything is decided on them."""
    says: Says = as_it_is
    failed: Callable[[Any], bool] = never
    """Is this outcome an error to the family? Then what `says` makes of it is the error's message."""
    errors: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Failure code → this family's sentence, with the failure's `{message}`, `{hint}`, `{path}` and `{count}`."""
    bound: Bound = WHOLE
    """Which part of a long text the model gets."""
    limit_bytes: int = GENERAL_LIMIT_BYTES
    text_param: str = ""
    """The parameter that takes the whole input of a call which comes as free text."""
    grammar: str = ""
    """The grammar (lark) of that text, for model APIs that know such tools."""
    said_as: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Canonical parameter → what to call it in a sentence, where `lift` leaves no single name."""
    aliases: tuple[str, ...] = ()
    """Other names that mean this face."""
    shown: bool = True
    """Is it advertised, or only accepted?"""
    accepts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The JSON Schema of what is accepted, where that is more than is advertised."""

    @property
    def taken(self) -> Mapping[str, Any]:
        """The JSON Schema that a call has to fit: what is advertised, and what is understood besides."""
        return self.accepts or self.schema

    def heard(self, values: Mapping[str, Any]) -> Values:
        """What the caller said, in the canonical tool's names, units and arrangement."""
        named = {self.params.get(key, key): value for key, value in values.items() if key not in self.unused}
        for key, count in self.per.items():
            if key in named:
                named[key] = named[key] / count
        for key, step in self.shift.items():
            if key in named:
                named[key] += step
        return self.lift(named)

    def completed(self, heard: Mapping[str, Any]) -> Values:
        """The same with what the caller did not say. What the engine fills in, a caller cannot change."""
        return {**self.usual, **heard, **self.fill}

    def canonical(self, values: Mapping[str, Any]) -> Values:
        """Arguments as the canonical tool takes them."""
        return self.completed(self.heard(values))

    def advertised(self, values: Mapping[str, Any]) -> Values:
        """Canonical arguments in this family's names; the inverse of `canonical`."""
        lowered = self.lower({key: value for key, value in values.items() if key not in self.fill})
        for key, step in self.shift.items():
            if key in lowered:
                lowered[key] -= step
        for key, count in self.per.items():
            if key in lowered:
                exact = lowered[key] * count
                lowered[key] = round(exact) if round(exact) / count == lowered[key] else exact
        back = {canonical: shown for shown, canonical in self.params.items()}
        unsaid = {name: "" for name in self.schema.get("required", ()) if name in self.unused}
        return {**unsaid, **{back.get(key, key): value for key, value in lowered.items()}}

    def shown_param(self, canonical: str) -> str:
        """The advertised name of a canonical parameter."""
        if canonical in self.said_as:
            return self.said_as[canonical]
        return next((shown for shown, name in self.params.items() if name == canonical), canonical)

    def definition(self) -> dict[str, Any]:
        """What a model is shown. The caller may change it as its model API needs; the face stays as it is."""
        out = {"name": self.name, "description": self.words, "inputSchema": copy_json(self.schema)}
        return {**out, "grammar": self.grammar} if self.grammar else out

    def sentence(self, failure: ToolFailure) -> str:
        """A failure in this family's words."""
        words = self.errors.get(failure.code or "") or self.errors.get("*")
        if words is None:
            return failure.message
        return words.format(message=failure.message, hint=failure.hint, path=failure.path, count=failure.count).rstrip()


def copy_json(value: Any) -> Any:
    """A JSON value that its receiver may change."""
    if isinstance(value, Mapping):
        return {key: copy_json(member) for key, member in value.items()}
    return [copy_json(member) for member in value] if isinstance(value, list | tuple) else value
