"""What the program that started this one may ask for beside its messages: `initialize`, `interrupt` and so on."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ferrule.cli.driven.peer import Peer
from ferrule.core.errors import FerruleError
from ferrule.models.model import ModelError

if TYPE_CHECKING:
    from ferrule.agent.session import Session

_BYPASS = "bypassPermissions"


class Control:
    """Answers requests in their order; one that nobody understands is refused, and the work goes on."""

    def __init__(self, session: "Session", peer: Peer, *, may_bypass: bool) -> None:
        """`may_bypass`: did whoever started the session say that questions may be bypassed?"""
        self._session = session
        self._peer = peer
        self._may_bypass = may_bypass
        self.inside: tuple[str, ...] = ()
        """Servers that the other program has inside itself."""
        self.is_interrupted = False
        """Has the other program stopped the last prompt? It may send another one."""
        self._answers: dict[str, Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]] = {
            "interrupt": self._interrupt,
            "set_permission_mode": self._mode,
            "set_model": self._model,
            "mcp_status": self._servers,
            "get_context_usage": self._usage,
        }

    async def answer(self, key: str, request: Mapping[str, Any]) -> None:
        subtype = str(request.get("subtype"))
        if subtype == "initialize":
            self._peer.refuse(key, "initialize has to be the first line, and comes once.")
            return
        answer = self._answers.get(subtype)
        if answer is None:
            known = ", ".join(self._answers)
            self._peer.refuse(key, f"There is no request {subtype!r} here; there are initialize, {known}.")
            return
        try:
            self._peer.answer(key, await answer(request))
        except (FerruleError, ModelError) as error:
            self._peer.refuse(key, str(error))

    def initialized(self, key: str) -> None:
        """The first request is answered once the session is open."""
        name = self._session.model.name
        self._peer.answer(
            key,
            {
                "commands": [],
                "agents": [],
                "output_style": "default",
                "available_output_styles": ["default"],
                "models": [{"value": name, "displayName": name, "description": ""}],
                "account": {},
            },
        )

    async def _interrupt(self, _: Mapping[str, Any]) -> None:
        if self._session.agent.is_running:
            self.is_interrupted = True
            self._session.agent.interrupt()

    async def _mode(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"mode": self.change_mode(str(request.get("mode")))}

    def change_mode(self, name: str) -> str:
        """The permission mode that holds from now on. Raises: FerruleError."""
        from ferrule.permissions.standing import named

        wanted = named(name).name
        if wanted == _BYPASS and not self._may_bypass:
            raise FerruleError(
                f"The session did not begin with --permission-mode {_BYPASS}, so it cannot change to it."
            )
        return self._session.set_mode(wanted)

    async def _model(self, request: Mapping[str, Any]) -> None:
        session, name = self._session, request.get("model")
        session.agent.use(session.load(str(name)) if name else session.model)

    async def _servers(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        words = {"running": "connected", "listed": "connected", "unlisted": "pending", "disabled": "disabled"}
        states = self._session.engine.sources.states()
        return {
            "mcpServers": [
                *({"name": name, "status": "connected", "scope": "dynamic"} for name in self.inside),
                *(
                    {
                        "name": one.name,
                        "status": "failed" if one.error else words.get(one.state, "needs-auth"),
                        "scope": one.layer,
                        **({"error": one.error} if one.error else {}),
                    }
                    for one in states
                ),
            ]
        }

    async def _usage(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        agent = self._session.agent
        used, window = agent.context_tokens, agent.model.window
        share = round(100 * used / window, 1) if window else 0
        about = {"totalTokens": used, "maxTokens": window, "rawMaxTokens": window, "percentage": share}
        return {**about, "categories": [], "model": agent.model.name}
