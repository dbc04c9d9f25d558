"""Running one hook that is a function of the program which uses the engine.

It has a thread and an event loop to itself, as tools of that program have: one that blocks holds up nobody else.
"""

import asyncio
import inspect
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from ferrule.execute.guests import Guests
from ferrule.execute.hooks.answer import Answer, failure, from_object
from ferrule.execute.hooks.command import label
from ferrule.execute.hooks.hook import Hook


async def run(hook: Hook, given: bytes, guests: Guests) -> Answer:
    """What the function answers to `given`, of which it gets a copy of its own. Only cancelling it raises."""
    who = label(hook)
    try:
        async with asyncio.timeout(hook.seconds) as limit:
            answer = await guests.run(lambda: _body(hook, given))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return failure(hook.event, who, "cancelled itself")
    except Exception as error:  # noqa: BLE001 - whatever foreign code raises ends its own answer and nothing else
        if isinstance(error, TimeoutError) and limit.expired():
            return failure(hook.event, who, f"did not end within {hook.seconds:g} seconds")
        return failure(hook.event, who, f"raised {type(error).__name__}: {_said(error)}")
    return from_object(hook.event, who, answer)


async def _body(hook: Hook, given: bytes) -> Any:
    assert hook.function is not None
    answer: Any = hook.function(json.loads(given))
    if inspect.isawaitable(answer):
        answer = await answer
    # What a program would print: nothing but plain values, which nobody changes later.
    return msgspec.json.decode(msgspec.json.encode(dict(answer) if isinstance(answer, Mapping) else answer))


def _said(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the same foreign code
        return "it cannot say why"
