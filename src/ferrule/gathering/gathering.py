"""Gathers the tools from elsewhere: the user's and the project's own, packages', toolboxes' and servers'.

What the sources offer is known when the session asks for it, at once or when a call needs it; no server is started
before one of its tools is called, but for servers whose tools nobody has listed yet.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ferrule.gathering.around import Around
from ferrule.permissions.code import TOOLBOXES, TOOLS, code_files, is_any
from ferrule.registry.section import SERVER_CHARS
from ferrule.settings import settings_path

if TYPE_CHECKING:
    from ferrule.sources.brought import Brought
    from ferrule.sources.mcp.servers import Servers
    from ferrule.sources.mcp.state import ServerState
    from ferrule.sources.toolbox.places import Box
    from ferrule.sources.toolbox.toolbox import Entry
    from ferrule.workspace.skills import Skills

_RESOURCE_READER = "read_mcp_resource"
_RESOURCE_TOOLS = ("list_mcp_resources", "list_mcp_resource_templates", _RESOURCE_READER)


class Gathering:
    """Brings tools to the registry, and keeps them as their sources have them."""

    def __init__(self, around: Around) -> None:
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
        self.toolbox: list[Entry] = []
        """The files of toolboxes that were looked at, and what has become of each."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, each as a sentence."""
        self.around.registry.settle()
        every = [warning for some in self._warnings.values() for warning in some]
        if self._servers is not None and (names := self._unlisted(self._servers)):
            from ferrule.gathering.servers import unheard  # for whoever has servers

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
        if servers is not None and (wanted := self._unlisted(servers) if names is None else names):
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
        unlisted = self._unlisted(servers)
        named = {server for name in unknown if self._permits(name) and (server := servers.serves(name)) in unlisted}
        if not named and self.around.short_names and any(not name.startswith("mcp__") for name in unknown):
            named.update(unlisted)
        if named:
            await self._start(servers, [name for name in unlisted if name in named])

    def _unlisted(self, servers: "Servers") -> list[str]:
        """The servers whose tools are not known, and of which the session may use any: no other is started for it."""
        # No tool has a dot in its name, so that only what is said about all of a server's tools speaks about this one.
        return [name for name in servers.unlisted() if self._permits(f"mcp__{name}__.")]

    def _permits(self, name: str) -> bool:
        around = self.around
        return not name.startswith("mcp__") or (around.allow_mcp and not around.policy.denies_everything(name))

    async def _start(self, servers: "Servers", names: Sequence[str]) -> None:
        brought = await servers.connect(names)
        # What is said of these servers comes beside what is said of the others.
        self._take_servers(brought._replace(warnings=(*servers.known().warnings, *brought.warnings)))
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

    def _take(self, source: str, brought: "Brought") -> tuple[str, ...]:
        """Give the registry what a source has now; the names of the tools."""
        said = self.around.registry.bring(source, brought.tools)
        self._warnings[source] = (*brought.warnings, *said)
        return tuple(tool.name for tool in brought.tools)

    @cached_property
    def trusted(self) -> Mapping[str, bytes]:
        """The project's code that the user trusts, by path: the very bytes that were looked at."""
        workspace = self.around.jail.folder
        if not is_any(workspace):
            return {}
        from ferrule.permissions.trust import Trust  # for projects with code of their own

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
        from ferrule.gathering.programs import confining, keep_programs
        from ferrule.sources.custom.answers import Answers
        from ferrule.sources.custom.load import load  # for whoever has tools of their own
        from ferrule.sources.custom.places import user_folders
        from ferrule.support.roster import Roster

        brought = await load(
            packages=packages,
            folders=user_folders(settings),
            project=self._project(TOOLS) if self.trusted else (),
            contents=self.trusted,
            roots=[root.path for root in self.around.jail.roots],
            describe_seconds=settings.tools.describe_seconds,
            keep_env=settings.shell.keep_env,
            roster=self.around.services[Roster],
            takes_all=self.around.asks_programs,
            everyday=self._project(TOOLS[:1]),
            asks=whole,
            confine=confining(self.around),
            answers=Answers(self.around.state),
        )
        keep_programs(self.around, brought.tools, self.trusted)
        if brought.tools or brought.warnings:
            self._take("custom", brought)

    async def _toolbox(self) -> None:
        if "toolbox" in self._loaded:
            return
        from ferrule.sources.toolbox.places import folders  # only paths

        places = folders(
            self.around.settings.tools,
            environment=os.environ,
            settings_file=settings_path(),
            roots=[root.path for root in self.around.jail.roots],
            project=self._project(TOOLBOXES),
            trusted=bool(self.trusted),
        )
        if places.boxes or places.warnings:
            brought = await self._boxes(places.boxes)
            self._take("toolbox", brought._replace(warnings=(*places.warnings, *brought.warnings)))
        self._loaded.add("toolbox")

    async def _boxes(self, boxes: "Sequence[Box]") -> "Brought":
        from ferrule.gathering.programs import confining
        from ferrule.sources.custom.answers import Answers
        from ferrule.sources.toolbox.toolbox import Toolbox  # for whoever has one
        from ferrule.support.roster import Roster

        around = self.around
        toolbox = Toolbox(
            boxes,
            settings=around.settings,
            session=around.session_id,
            roster=around.services[Roster],
            can_run_subagents=around.can_run_subagents,
            trusted=self.trusted,
            roots=[root.path for root in around.jail.roots],
            confine=confining(around),
            answers=Answers(around.state, "describe"),
        )
        brought = await toolbox.load()
        self.toolbox += toolbox.entries
        return brought

    async def bring_toolbox(self, folder: str) -> tuple[str, ...]:
        """Bring the toolbox of a skill; the names of its tools."""
        from ferrule.core.access import within
        from ferrule.sources.toolbox.places import Box

        is_projects = any(within(os.path.realpath(folder), root.path) for root in self.around.jail.roots)
        return self._take(f"skill {folder}", await self._boxes([Box(folder, "project" if is_projects else "user")]))

    async def bring_servers(self, entries: Mapping[str, Any], origin: str) -> tuple[str, ...]:
        """Bring the servers of a skill; the names of their tools."""
        from ferrule.gathering.servers import make  # for skills with servers
        from ferrule.sources.mcp.config import Configured

        servers = self.servers
        if servers is None:
            servers = self._servers = make(self.around, Configured(), self._changed)
        brought = await servers.add(entries, origin)
        self._take_servers(servers.known())
        self._warnings[f"skill {origin}"] = brought.warnings
        return tuple(tool.name for tool in brought.tools)

    def _may_have_servers(self) -> bool:
        """Mostly there are none, and then nothing is loaded for them."""
        from ferrule.sources.mcp.places import exist  # only paths

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
                from ferrule.gathering.servers import find, heed, make  # for whoever has some

                found = find(self.around)
                self._warnings["servers"] = found.warnings
                if found.servers:
                    self._servers = make(self.around, found, self._changed)
                    # Rules may need every name, and so the servers' tools: they have to be here by then.
                    heed(self.around, self._servers)
        return self._servers

    def _know(self) -> None:
        """Bring the servers' tools, as they were listed last."""
        servers = self.servers
        if servers is not None:
            self._offer_skills()
            self._take_servers(servers.known())

    def _take_servers(self, brought: "Brought") -> None:
        has_resources = self._servers is not None and self._servers.has_resources()
        self._guidance = {} if self._servers is None else self._servers.guidance()
        self._served = {}
        for one in brought.tools:
            self._served.setdefault(one.origin, []).append(one.name)
        is_cut = any(len(words) > SERVER_CHARS for words in self._guidance.values())
        for tool in _RESOURCE_TOOLS:
            self.around.registry.offer(tool, has_resources or (is_cut and tool == _RESOURCE_READER))
        self._take("mcp", brought)

    def _changed(self) -> None:
        """A server's tools are others now."""
        if self._servers is not None:
            self._take_servers(self._servers.known())
            self._offer_skills()

    def _offer_skills(self, *, prompts: bool = True) -> None:
        """`prompts`: are those of servers counted? Then their configuration is read."""
        from ferrule.workspace.skills import Skills  # for whoever shows a model its tools

        self._counts_prompts = prompts
        try:
            self.around.registry.offer("skill", bool(self.around.services[Skills].all()))
        finally:
            self._counts_prompts = True

    def make_skills(self) -> "Skills":
        """The session's skills."""
        from ferrule.gathering.skilled import make  # for whoever uses one

        return make(
            self.around,
            trusted=lambda: self.trusted,
            servers=lambda: self.servers if self._counts_prompts else None,
        )
