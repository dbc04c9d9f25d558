"""Define tools: their arguments, their context, previews of their changes, and the base class.

A tool answers four questions: what it accepts, what it touches, what it does, what it says. The last answer
belongs to the face, beside the family's words; the first three are here.

Arguments are one frozen struct per tool, in canonical names. A preview finds out what a call would change without
changing anything.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from ferrule.core.access import EVERYTHING, Access


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
