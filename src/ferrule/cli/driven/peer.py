"""Exchange requests and responses with the program that started this one, and call its hooks.

Both are lines beside the messages. A hook is a function of the other program, called by a request.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ferrule.cli.stream_json import line_of, new_uuid
from ferrule.hooks.hook import EVENTS, Function, Hook

_GONE = "The program that started this one has closed its end, and answers nothing any more."


class PeerError(Exception):
    """The other program did not do what it was asked for; the text says why."""


class Peer:
    """The other program. Requests go both ways, each with an id; a response names that of its request."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._is_gone = False
        self._loop = asyncio.get_running_loop()

    async def ask(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """What it answers. Whoever stops waiting takes the request back. Raises: PeerError."""
        if self._is_gone:
            raise PeerError(_GONE)
        self._count += 1
        key = f"ferrule_{self._count}"
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._waiting[key] = answer
        self._say({"type": "control_request", "request_id": key, "request": {"subtype": subtype, **fields}})
        try:
            return await answer
        except asyncio.CancelledError:
            self._say({"type": "control_cancel_request", "request_id": key})
            raise
        finally:
            del self._waiting[key]

    async def ask_from_elsewhere(self, subtype: str, **fields: Any) -> dict[str, Any]:
        """The same on an event loop of another thread."""
        asking = asyncio.run_coroutine_threadsafe(self.ask(subtype, **fields), self._loop)
        return await asyncio.wrap_future(asking)

    def hear(self, response: Mapping[str, Any]) -> None:
        """A response has come; one to nothing that was asked is left alone."""
        waiting = self._waiting.get(str(response.get("request_id")))
        if waiting is None or waiting.done():
            return
        if response.get("subtype") == "error":
            waiting.set_exception(PeerError(str(response.get("error") or "It does not say why.")))
            return
        said = response.get("response")
        waiting.set_result(said if isinstance(said, dict) else {})

    def end(self) -> None:
        """Nothing comes from it any more."""
        self._is_gone = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(PeerError(_GONE))

    def tell(self, line: Mapping[str, Any], session: str) -> None:
        """Something of the system, among the messages."""
        self._say({"type": "system", **line, "session_id": session, "uuid": new_uuid()})

    def answer(self, key: str, response: Mapping[str, Any] | None = None) -> None:
        about = {"subtype": "success", "request_id": key, "response": response or {}}
        self._say({"type": "control_response", "response": about})

    def refuse(self, key: str, why: str) -> None:
        self._say({"type": "control_response", "response": {"subtype": "error", "request_id": key, "error": why}})

    def _say(self, line: dict[str, Any]) -> None:
        self._write(line_of(line))


_SECONDS = 60.0


def hooks_of(given: Any, peer: Peer) -> tuple[tuple[Hook, ...], list[str]]:
    """The hooks of an `initialize`, and a sentence about each kind that nobody here tells."""
    wanted = given if isinstance(given, dict) else {}
    hooks = [hook for event in wanted if event in EVENTS for hook in _of_event(event, wanted[event], peer)]
    unknown = [event for event in wanted if event not in EVENTS]
    return tuple(hooks), [f"There are no hooks for {event} here: yours are not called." for event in unknown]


def _of_event(event: str, matchers: Any, peer: Peer) -> Iterator[Hook]:
    for matcher in matchers if isinstance(matchers, list) else ():
        if not isinstance(matcher, dict):
            continue
        seconds = matcher.get("timeout")
        keys = matcher.get("hookCallbackIds")
        for key in keys if isinstance(keys, list) else ():
            yield Hook(
                event,
                matcher=str(matcher.get("matcher") or ""),
                function=_build_callback(str(key), peer),
                seconds=float(seconds) if isinstance(seconds, int | float) and seconds > 0 else _SECONDS,
                layer="session",
                source=f"the program that started this one ({key})",
            )


def _build_callback(key: str, peer: Peer) -> Function:
    async def call(told: dict[str, Any]) -> dict[str, Any]:
        return await peer.ask_from_elsewhere(
            "hook_callback", callback_id=key, input=told, tool_use_id=told.get("tool_use_id")
        )

    return call
