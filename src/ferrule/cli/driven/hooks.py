"""Hooks that are functions of the program that started this one: each is called by a request."""

from collections.abc import Iterator
from typing import Any

from ferrule.cli.driven.peer import Peer
from ferrule.execute.hooks.hook import EVENTS, Function, Hook

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
                function=_calling(str(key), peer),
                seconds=float(seconds) if isinstance(seconds, int | float) and seconds > 0 else _SECONDS,
                layer="session",
                source=f"the program that started this one ({key})",
            )


def _calling(key: str, peer: Peer) -> Function:
    async def call(told: dict[str, Any]) -> dict[str, Any]:
        return await peer.ask_from_elsewhere(
            "hook_callback", callback_id=key, input=told, tool_use_id=told.get("tool_use_id")
        )

    return call
