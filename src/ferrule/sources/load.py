"""Gather the tools, skills and servers that a session gets from other sources.

The sources are the user's and the project's own tools, packages, toolboxes and servers. Their tools are looked up
when the session asks for them, at once or when a call needs them. No server is started before one of its tools is
called, except servers whose tools have never been listed.

Skills bring rules, a toolbox and servers, and the prompts of servers are skills. The project's programs that are
tools run outside the sandbox, so nothing in the session may write them.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.core.services import Bringing, Mixed, Offered, ServerResources
from ferrule.core.tool import AnyTool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.permissions import NO, Question, visible
from ferrule.permissions.trust import TOOLBOXES, TOOLS, Trust, code_files, is_any
from ferrule.registry import Registry
from ferrule.registry.search import SERVER_CHARS
from ferrule.services import Services
from ferrule.session_policy import SessionPolicy
from ferrule.settings import Mcp, Settings, settings_path
from ferrule.sources.custom import ProgramAnswers, load, user_folders
from ferrule.sources.mcp.config import Configured, exist, read_servers
from ferrule.sources.mcp.connection import Opening
from ferrule.sources.mcp.servers import Servers
from ferrule.sources.toolbox import Box, Toolbox, folders
from ferrule.system.environment import apart, left_out
from ferrule.system.tree import Roster
from ferrule.tools import LIST_RESOURCES, LIST_TEMPLATES, READ_RESOURCE, SKILL
from ferrule.tools.skills import Parameter, ServerPrompt, Skills

if TYPE_CHECKING:
    from ferrule.permissions import Answer
    from ferrule.permissions.policy import Policy
    from ferrule.sandbox import Wrapped
    from ferrule.sources import SourceTools
    from ferrule.sources.mcp import ServerState
    from ferrule.sources.mcp.approval import Approval
    from ferrule.sources.toolbox import ToolboxEntry


class SourceContext(NamedTuple):
    """The session, as far as its sources see it."""

    jail: Jail
    services: Services
    settings: Settings
    state: str
    session_id: str
    registry: Registry
    policing: SessionPolicy
    policy: "Policy"
    ask: "Callable[[Question], Awaitable[Answer]]"
    """Asks the user; nobody's answer is no."""
    managed: Mcp | None = None
    mcp_config: Sequence[str] = ()
    """Texts or files that configure more servers for this session."""
    can_run_subagents: bool = False
    short_names: bool = False
    """Does the family call servers' tools by their short names?"""
    allow_mcp: bool = True
    """Does the session's mode give servers' tools?"""
    asks_programs: bool = False
    """Is every program in a folder of tools a tool, also one that nothing describes? Such a one is asked."""


class SourceLoader:
    """Brings tools to the registry, and keeps them as their sources have them."""

    def __init__(self, around: SourceContext) -> None:
        self.around = around
        self._lock = asyncio.Lock()
        self._loaded: set[str] = set()
        self._warnings: dict[str, tuple[str, ...]] = {}
        """By source, each as a sentence."""
        self._servers: Servers | None = None
        self._counts_prompts = True
        self._guidance: dict[str, str] = {}
        """What servers say about the use of their tools."""
        self._served: dict[str, list[str]] = {}
        """Server → the names of its tools."""
        self.toolbox: list[ToolboxEntry] = []
        """The files of toolboxes that were looked at, and what has become of each."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, each as a sentence."""
        self.around.registry.settle()
        every = [warning for some in self._warnings.values() for warning in some]
        if self._servers is not None and (names := self._servers_to_list(self._servers)):
            every += unheard(self._servers.states(), names)
        return tuple(dict.fromkeys(every))

    async def load(self) -> None:
        """Bring what every source offers; what servers offer comes when somebody looks. No server is started."""
        async with self._lock:
            await self._custom(packages=True)
            await self._toolbox()
            if "known" not in self._loaded:
                self._loaded.add("known")
                self._offer_skills(prompts=False)
                self.around.registry.put_off(self._know)

    async def connect(self, names: Sequence[str] | None = None) -> None:
        """Bring everything, starting the servers that are named, or those whose tools were never listed."""
        await self.load()
        self.around.registry.settle()
        servers = self.servers
        if servers is not None and (wanted := self._servers_to_list(servers) if names is None else names):
            await self._start(servers, wanted)

    def lacks(self, names: Collection[str]) -> bool:
        """Does a call under one of these names need something that is not here yet?"""
        return not self._loaded & {"custom", "own"} or not all(map(self.around.registry.knows, names))

    async def ensure(self, names: Collection[str]) -> None:
        """Bring what calls under these names need, the user's own tools always: they may stand in for a built-in."""
        registry = self.around.registry
        if not self._loaded & {"custom", "own"}:
            async with self._lock:
                await self._custom(packages=False)
        unknown = {name for name in names if not registry.knows(name)}
        if not unknown:
            return
        await self.load()
        servers = self.servers
        if servers is None or not (unknown := {name for name in unknown if not registry.knows(name)}):
            return
        unlisted = self._servers_to_list(servers)
        named = {server for name in unknown if self._permits(name) and (server := servers.serves(name)) in unlisted}
        if not named and self.around.short_names and any(not name.startswith("mcp__") for name in unknown):
            named.update(unlisted)
        if named:
            await self._start(servers, [name for name in unlisted if name in named])

    def _servers_to_list(self, servers: "Servers") -> list[str]:
        """The servers whose tools are not known, and of which the session may use any: no other is started for it."""
        # No tool has a dot in its name, so that only what is said about all of a server's tools speaks about this one.
        return [name for name in servers.find_unlisted() if self._permits(f"mcp__{name}__.")]

    def _permits(self, name: str) -> bool:
        around = self.around
        return not name.startswith("mcp__") or (around.allow_mcp and not around.policy.denies_everything(name))

    async def _start(self, servers: "Servers", names: Sequence[str]) -> None:
        brought = await servers.connect(names)
        # What is said of these servers comes beside what is said of the others.
        self._take_servers(brought._replace(warnings=(*servers.source_tools().warnings, *brought.warnings)))
        self._offer_skills()

    def states(self) -> "list[ServerState]":
        """The MCP servers that are configured, and how each is."""
        return [] if self.servers is None else self.servers.states()

    def guidance(self, permits: Callable[[str], bool]) -> dict[str, str]:
        """Server → its instructions, of those that have a tool which `permits` lets pass, deferred or not."""
        self.around.registry.settle()
        return {name: words for name, words in self._guidance.items() if any(map(permits, self._served.get(name, ())))}

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.close()

    def _take(self, source: str, brought: "SourceTools") -> tuple[str, ...]:
        """Give the registry what a source has now; the names of the tools."""
        said = self.around.registry.bring(source, brought.tools)
        self._warnings[source] = (*brought.warnings, *said)
        return tuple(tool.name for tool in brought.tools)

    @cached_property
    def project_code(self) -> Mapping[str, bytes]:
        """The project's code that the user trusts, by path: the very bytes that were looked at."""
        workspace = self.around.jail.folder
        if not is_any(workspace):
            return {}

        seen = Trust(self.around.state, "code").look(workspace, code_files(workspace))
        if seen.state == "trusted":
            return seen.contents
        tools = [path for path in seen.contents if os.path.basename(path) not in {".mcp.json", "SKILL.md"}]
        if tools or seen.obstacle:
            names = [os.path.relpath(path, workspace) for path in tools]
            why = seen.obstacle or (names[0] if len(names) == 1 else f"{len(names)} files, such as {names[0]}")
            self._warnings["trust"] = (
                f"The tools of this project are not used ({why}): look at them, then `ferrule permissions trust`.",
            )
        return {}

    def _project(self, names: Sequence[str]) -> list[str]:
        """Places of the project, where its files count at all."""
        if "project" not in self.around.settings.sources:
            return []
        return [os.path.join(self.around.jail.folder, name) for name in names]

    async def _custom(self, *, packages: bool) -> None:
        """The user's, the project's and, where all is asked for, the packages' tools."""
        level = "custom" if packages else "own"
        if self._loaded & {"custom", level}:
            return
        await self._load_custom(whole=packages)
        # Only now: who comes meanwhile waits for it, and where it was given up the next call tries again.
        self._loaded.add(level)

    async def _load_custom(self, *, whole: bool) -> None:
        """Not `whole` is for a call by somebody who sees no descriptions: no program is run to describe itself."""
        settings = self.around.settings
        packages = whole and settings.tools.packages
        usual = [os.path.join(os.path.dirname(settings_path()), "tools"), *self._project(TOOLS)]
        if not packages and not settings.tools.folders and not any(map(os.path.isdir, usual)):
            return

        brought = await load(
            packages=packages,
            folders=user_folders(settings),
            project=self._project(TOOLS) if self.project_code else (),
            contents=self.project_code,
            roots=[root.path for root in self.around.jail.roots],
            describe_seconds=settings.tools.describe_seconds,
            keep_env=settings.shell.keep_env,
            roster=self.around.services[Roster],
            takes_all=self.around.asks_programs,
            everyday=self._project(TOOLS[:1]),
            asks=whole,
            confine=make_confiner(self.around),
            answers=ProgramAnswers(self.around.state),
        )
        keep_programs(self.around, brought.tools, self.project_code)
        if brought.tools or brought.warnings:
            self._take("custom", brought)

    async def _toolbox(self) -> None:
        if "toolbox" in self._loaded:
            return

        places = folders(
            self.around.settings.tools,
            environment=os.environ,
            settings_file=settings_path(),
            roots=[root.path for root in self.around.jail.roots],
            project=self._project(TOOLBOXES),
            trusted=bool(self.project_code),
        )
        if places.boxes or places.warnings:
            brought = await self._boxes(places.boxes)
            self._take("toolbox", brought._replace(warnings=(*places.warnings, *brought.warnings)))
        self._loaded.add("toolbox")

    async def _boxes(self, boxes: "Sequence[Box]") -> "SourceTools":

        around = self.around
        toolbox = Toolbox(
            boxes,
            settings=around.settings,
            session=around.session_id,
            roster=around.services[Roster],
            can_run_subagents=around.can_run_subagents,
            trusted=self.project_code,
            roots=[root.path for root in around.jail.roots],
            confine=make_confiner(around),
            answers=ProgramAnswers(around.state, "describe"),
        )
        brought = await toolbox.load()
        self.toolbox += toolbox.entries
        return brought

    async def bring_toolbox(self, folder: str) -> tuple[str, ...]:
        """Bring the toolbox of a skill; the names of its tools."""
        is_projects = any(within(os.path.realpath(folder), root.path) for root in self.around.jail.roots)
        return self._take(f"skill {folder}", await self._boxes([Box(folder, "project" if is_projects else "user")]))

    async def bring_servers(self, entries: Mapping[str, Any], origin: str) -> tuple[str, ...]:
        """Bring the servers of a skill; the names of their tools."""
        servers = self.servers
        if servers is None:
            servers = self._servers = make_servers(self.around, Configured(), self._on_servers_changed)
        brought = await servers.add(entries, origin)
        self._take_servers(servers.source_tools())
        self._warnings[f"skill {origin}"] = brought.warnings
        return tuple(tool.name for tool in brought.tools)

    def _may_have_servers(self) -> bool:
        """Mostly there are none, and then nothing is loaded for them."""
        around, user_folder = self.around, os.path.dirname(settings_path())
        if around.mcp_config:
            return True
        return exist(around.jail.folder, user_folder, around.settings.mcp, managed=around.managed)

    @property
    def servers(self) -> "Servers | None":
        """The session's servers; None where none is configured."""
        if "mcp" not in self._loaded:
            self._loaded.add("mcp")
            if self._may_have_servers():
                found = find(self.around)
                self._warnings["servers"] = found.warnings
                if found.servers:
                    self._servers = make_servers(self.around, found, self._on_servers_changed)
                    # Rules may need every name, and so the servers' tools: they have to be here by then.
                    apply_server_rules(self.around, self._servers)
        return self._servers

    def _know(self) -> None:
        """Bring the servers' tools, as they were listed last."""
        servers = self.servers
        if servers is not None:
            self._offer_skills()
            self._take_servers(servers.source_tools())

    def _take_servers(self, brought: "SourceTools") -> None:
        has_resources = self._servers is not None and self._servers.has_resources()
        self._guidance = {} if self._servers is None else self._servers.guidance()
        self._served = {}
        for one in brought.tools:
            self._served.setdefault(one.origin, []).append(one.name)
        is_cut = any(len(words) > SERVER_CHARS for words in self._guidance.values())
        for tool in (LIST_RESOURCES, LIST_TEMPLATES, READ_RESOURCE):
            self.around.registry.offer(tool, has_resources or (is_cut and tool == READ_RESOURCE))
        self._take("mcp", brought)

    def _on_servers_changed(self) -> None:
        """A server's tools are others now."""
        if self._servers is not None:
            self._take_servers(self._servers.source_tools())
            self._offer_skills()

    def _offer_skills(self, *, prompts: bool = True) -> None:
        """`prompts`: are those of servers counted? Then their configuration is read."""
        self._counts_prompts = prompts
        try:
            self.around.registry.offer(SKILL, bool(self.around.services[Skills].all()))
        finally:
            self._counts_prompts = True

    def make_bringing(self) -> "Carried":
        """Return what skills may bring along."""
        return Carried(self)

    def make_offered(self) -> "Servers | Unserved":
        """Return the servers or, if there are none, what says so to whoever asks them for resources."""
        return self.servers or Unserved()

    def make_skills(self) -> "Skills":
        """The session's skills."""
        return make_skilled(
            self.around,
            trusted=lambda: self.project_code,
            servers=lambda: self.servers if self._counts_prompts else None,
        )


class Carried(Bringing):
    """The engine as the skill tool reaches it."""

    def __init__(self, gathering: SourceLoader) -> None:
        self._gathering = gathering

    def allow(self, rules: Sequence[str]) -> tuple[str, ...]:
        around = self._gathering.around
        return around.policing.allow(around.policy, rules, source="a skill")

    async def tools(self, folder: str) -> tuple[str, ...]:
        return await self._gathering.bring_toolbox(folder)

    async def servers(self, servers: Mapping[str, Any], origin: str) -> tuple[str, ...]:
        return await self._gathering.bring_servers(servers, origin)

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> str:
        servers = self._gathering.servers
        if servers is None:
            raise ToolFailure(f"There is no MCP server called {server}.", code="no-server")
        return await servers.prompt(server, name, arguments)


def keep_programs(around: SourceContext, tools: Iterable[AnyTool], trusted: Mapping[str, bytes]) -> None:
    """Keep the trusted programs as they are, and the trusted files beside them, which they may load.

    Modules are in memory once they are read; where there is no program, a change to them runs nowhere.
    """
    programs = [tool.origin for tool in tools if tool.origin in trusted and not tool.origin.endswith((".py", ".lua"))]
    folders = {os.path.dirname(path) for path in programs}
    around.services[Guard].keep(os.path.realpath(path) for path in trusted if os.path.dirname(path) in folders)


def make_confiner(around: SourceContext) -> "Callable[[Sequence[str], str], Wrapped | None]":
    """How a program is asked what it is: it can write nothing and reach nobody. None if commands cannot be confined."""

    def confine(argv: Sequence[str], cwd: str) -> "Wrapped | None":
        from ferrule.sandbox.confinement import Confinement  # for programs that nothing describes

        confinement = around.services[Confinement]
        sandbox = confinement.sandbox
        if sandbox is None:
            return None
        profile = confinement.read_only_profile(*confinement.profile().writable, os.path.realpath(cwd))
        return sandbox.wrap(argv, profile, cwd=cwd)

    return confine


def find(around: SourceContext) -> Configured:
    """What every layer configures."""
    return read_servers(
        around.jail.folder,
        around.settings.mcp,
        given=around.mcp_config,
        managed=around.managed,
        rule_files=around.settings.permissions.files,
        sources=around.settings.sources,
        strict=around.settings.mcp.strict,
    )


def make_servers(around: SourceContext, found: Configured, on_changed: Callable[[], None]) -> Servers:
    """The servers, none of them started, as the session's tools and rules see them."""
    roots = tuple(root.path for root in around.jail.roots)

    def is_silent() -> bool:
        """Does the mode say no to whatever would ask?"""
        return around.policy.standing.asks == "deny"

    async def approve(approval: "Approval") -> bool:
        what = "start it" if approval.about == "start" else "use what it offers as it is now"
        question = Question(
            kind="server",
            call_id="",
            name=approval.server,
            summary=visible(f"The MCP server {approval.server} ({approval.layer}): {what}?"),
            touches=(),
            # Some characters end a line for one reader and not for the next: no line is to look like one of ours.
            effects=tuple(map(visible, approval.text.split("\n"))),
        )
        return not is_silent() and (await around.ask(question)).allow is True

    async def elicit(server: str, message: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        summary = visible(f"The MCP server {server} asks: {message}")
        question = Question(kind="values", call_id="", name=server, summary=summary, touches=(), schema=schema)
        answer = NO if is_silent() else await around.ask(question)
        return answer.values if answer.allow is True else None

    servers = Servers(
        found,
        state_folder=around.state,
        workspace=around.jail.folder,
        opening=Opening(
            # What a command has left in the workspace is no program that a server may be started with.
            environment=apart(os.environ, roots),
            unsearched=left_out(os.environ.get("PATH", ""), roots),
            roots=roots,
            elicit=elicit,
            roster=around.services[Roster],
            result_bytes=around.settings.mcp.result_mb << 20,
            keep_env=around.settings.shell.keep_env,
        ),
        approve=approve,
        on_changed=on_changed,
    )
    around.services.put(Offered, servers)
    return servers


def apply_server_rules(around: SourceContext, servers: Servers) -> None:
    """Let the user's word on whole servers of their own count as rules."""
    allowed = [text for action, text in servers.rules() if action == "allow"]
    if allowed:
        around.policing.allow(around.policy, allowed, source="the configuration of servers")


def why_not(states: "Sequence[ServerState]", name: str) -> str:
    """Why a tool of a server is not here, as a sentence; empty where nothing is known of it."""
    server = name.split("__")[1] if name.startswith("mcp__") and name.count("__") > 1 else ""
    state = next((one for one in states if one.name == server), None)
    if not server:
        return ""
    if state is None:
        return f"There is no MCP server called {server} in this session."
    if state.state in {"new", "changed"}:
        return f"The MCP server {server} is not approved: the user does that with `ferrule mcp approve {server}`."
    if state.error:
        return state.error
    if state.state in {"disabled", "denied"}:
        return f"The MCP server {server} is {state.state} in {state.source}."
    is_withheld = any(name.endswith(f"__{one}") for one in state.withheld)
    return f"The MCP server {server} offers it in a form that is not approved yet." if is_withheld else ""


def unheard(states: "Sequence[ServerState]", names: Collection[str]) -> list[str]:
    """A sentence for each of these servers, whose tools are not known, where nothing else has been said about it."""
    silent = [one for one in states if one.name in names and one.state == "unlisted" and not one.error]
    # The command line knows nothing of servers that only this session has.
    passing = {one.name: "a call of one lists them" for one in silent if one.layer in {"session", "skill"}}
    how = {one.name: passing.get(one.name, f"`ferrule mcp test {one.name}`") for one in silent}
    return [f"The tools of the server {name} are not known yet: {said}." for name, said in how.items()]


def make_skilled(
    around: SourceContext,
    *,
    trusted: Callable[[], Mapping[str, bytes]],
    servers: "Callable[[], Servers | None]",
) -> Skills:
    """`trusted` gives the project's files that the user trusts, and `servers` those whose prompts count."""

    def prompts() -> list[ServerPrompt]:
        known = servers()
        return [
            ServerPrompt(one.server, one.name, one.words, tuple(Parameter(*about) for about in one.arguments))
            for one in (() if known is None else known.prompts())
        ]

    return Skills(
        around.jail,
        beside=os.path.dirname(settings_path()),
        folders=around.settings.skills.folders,
        disable=around.settings.skills.disable,
        only=around.settings.skills.only,
        session=around.session_id,
        trusted=lambda: bool(trusted()),
        contents=trusted,
        prompts=prompts,
        sources=around.settings.sources,
    )


class Unserved(Offered):
    """Nothing is offered, and whoever names a server is told that there is none."""

    async def resources(self, server: str | None, *, templates: bool = False, cursor: str = "") -> ServerResources:  # noqa: ARG002 - there is no second page
        if server:
            raise _none()
        return ServerResources((), templates=templates)

    async def read(self, server: str | None, uri: str) -> Mixed:  # noqa: ARG002 - nobody has it
        raise _none()


def _none() -> ToolFailure:
    return ToolFailure(
        "No MCP server is configured in this session, so there is nothing of theirs to read. The user can add one with "
        "`ferrule mcp add`.",
        code="mcp-server",
    )
