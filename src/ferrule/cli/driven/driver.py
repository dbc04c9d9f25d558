"""The other end of `ferrule run --input stream-json`: what it wants before the session begins, and then its lines."""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ferrule.cli.driven.control import Control, build_init_fields
from ferrule.cli.driven.peer import Peer, hooks_of
from ferrule.cli.lines import Inbox, descriptor
from ferrule.core.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.agent.events import Ended
    from ferrule.agent.session import Session
    from ferrule.cli.driven.questions import ByPeer
    from ferrule.cli.session_flags import Fitting, SessionFlags


class Driver:
    """`async with Driver(write) as driver`: its lines are read from then on."""

    def __init__(self, write: Callable[[bytes], None], *, may_bypass: bool) -> None:
        self.peer = Peer(write)
        self._inbox = Inbox(descriptor(), self.peer)
        self._may_bypass = may_bypass
        self._key = ""
        self._servers: list[str] = []
        self._warnings: list[str] = []
        self._asker: ByPeer | None = None

    async def __aenter__(self) -> Self:
        await self._inbox.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inbox.close()

    def prepare(
        self, fitting: "Fitting", flags: "SessionFlags", options: dict[str, Any], *, asks: bool
    ) -> dict[str, Any]:
        """What the session is given; `asks`: the other program answers questions."""
        more: dict[str, Any] = {}
        config: tuple[str, ...] = ()
        if options["mcp_config"]:
            from ferrule.cli.driven.tools import inside  # for whoever has servers

            config, self._servers = inside(options["mcp_config"])
        if self._inbox.first is not None:
            self._key, wanted = self._inbox.first
            inside_it = wanted.get("sdkMcpServers")
            more_names = inside_it if isinstance(inside_it, list) else ()
            self._servers += [str(name) for name in more_names if name not in self._servers]
            if wanted.get("hooks"):
                hooks, self._warnings = hooks_of(wanted["hooks"], self.peer)
                more["hooks"] = (*options.get("hooks", ()), *hooks)
            self._hear_words(fitting, wanted)
            if isinstance(agents := wanted.get("agents"), dict):
                flags.describe(agents)
            if isinstance(skills := wanted.get("skills"), list):
                flags.only_skills([str(name) for name in skills])
        if asks:
            from ferrule.cli.driven.questions import ByPeer  # for whoever is asked

            more["ask"] = self._asker = ByPeer(self.peer)
        return {**options, **more, "mcp_config": config}

    def _hear_words(self, fitting: "Fitting", wanted: dict[str, Any]) -> None:
        given = wanted.get("systemPrompt")
        words = "\n\n".join(map(str, given)) if isinstance(given, list) else str(given or "")
        fitting.words = words or fitting.words
        fitting.append(str(wanted.get("appendSystemPrompt") or ""))

    def init_fields(self, session: "Session") -> dict[str, Any]:
        """What the first line of the session tells of it."""
        return build_init_fields(session)

    @contextlib.contextmanager
    def report_failure(self) -> Any:
        """A session that cannot be opened is told to whoever waits for it."""
        try:
            yield
        except FerruleError as error:
            if self._key:
                self.peer.refuse(self._key, str(error))
            raise

    async def work(self, session: "Session") -> "Ended":
        """Work on what it sends until it is done."""
        control = Control(session, self.peer, may_bypass=self._may_bypass)
        if self._asker is not None:
            self._asker.session, self._asker.warn = session, session.agent.talk.warn
            self._asker.change_mode = control.change_mode
            self._asker.halt = control.halt
        if self._servers:
            await self._bring(session)
            control.inside = tuple(self._servers)
        for warning in self._warnings:
            session.agent.talk.warn(warning)
        if self._key:
            control.answer_initialize(self._key)
        return await self._inbox.work(session.agent, control)

    async def _bring(self, session: "Session") -> None:
        from ferrule.cli.driven.tools import tools_of  # for whoever has servers

        registry = session.engine.registry
        for server in tuple(self._servers):
            try:
                tools, warnings = await tools_of(server, self.peer)
            except FerruleError as error:
                self._warnings.append(str(error))
                self._servers.remove(server)
                continue
            self._warnings += [*warnings, *registry.bring(f"mcp {server}", tools)]
        session.agent.talk.tools_changed()
