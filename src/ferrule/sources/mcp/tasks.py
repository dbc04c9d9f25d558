"""Calls that a server runs as tasks (MCP 2025-11-25): begun, asked about until they are over, and then fetched."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ferrule.core.errors import ToolFailure
from ferrule.output.clean import clean

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, ServerCapabilities, Task

_POLL_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 1.0, 0.05, 30.0
"""Between two questions: where the server names no interval, and the bounds of what it may name."""
_CANCEL_SECONDS = 2.0
"""So long a server may take to hear that nobody wants its task any more."""
_WORDS_CHARS = 500
_OVER = frozenset({"completed", "failed", "cancelled"})
_WAITS = "input_required"


def can_run(offered: "ServerCapabilities") -> bool:
    """Does a server run calls of its tools as tasks? The newest version of MCP knows tasks only as an extension."""
    requests = offered.tasks and offered.tasks.requests
    return bool(requests and requests.tools and requests.tools.call is not None)


async def run(
    client: "Client",
    tool: str,
    arguments: Mapping[str, Any],
    *,
    tell: Callable[[str], None],
    report: Any,
    failure: Callable[[str], ToolFailure],
) -> "CallToolResult":
    """Call a tool as a task, and wait for its result; giving up waiting cancels the task at the server.

    `tell` hears how the task gets on, `report` is given to the package for progress of the server's own, and `failure`
    makes an error of the end of a sentence about the server.
    """
    import mcp_types as types  # came with the client

    params = types.CallToolRequestParams(name=tool, arguments=dict(arguments), task=types.TaskMetadata())
    begun = await client.session.send_request(
        types.CallToolRequest(params=params), types.CreateTaskResult, progress_callback=report
    )
    task_id = begun.task.task_id
    fetching: asyncio.Task[CallToolResult] | None = None

    def fetch() -> "asyncio.Task[CallToolResult]":
        wanted = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task_id))
        return asyncio.ensure_future(client.session.send_request(wanted, types.CallToolResult))

    try:
        task: Task = begun.task
        told = ""
        while task.status not in _OVER:
            # Questions to the user come by the request for the result, which waits until there is one.
            if task.status == _WAITS and fetching is None:
                fetching = fetch()
            if (words := _words(task)) != told:
                told = words
                tell(words)
            await _pause(task, fetching)
            if fetching is not None and fetching.done():
                return fetching.result()
            asked = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task_id))
            task = await client.session.send_request(asked, types.GetTaskResult)
        if task.status == "cancelled":
            raise failure(f"has cancelled the task. {_said(task)}".rstrip())
        return await (fetching or fetch())
    except asyncio.CancelledError:
        await _cancel(client, task_id)
        raise
    finally:
        if fetching is not None:
            fetching.cancel()


async def _pause(task: "Task", fetching: "asyncio.Task[Any] | None") -> None:
    """Wait as long as the server wants, or until the result has come."""
    named = task.poll_interval
    seconds = _POLL_SECONDS if named is None else max(_LEAST_SECONDS, min(named / 1000, _MOST_SECONDS))
    if fetching is None:
        await asyncio.sleep(seconds)
    else:
        await asyncio.wait({fetching}, timeout=seconds)


async def _cancel(client: "Client", task_id: str) -> None:
    import mcp_types as types  # as above

    wanted = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task_id))
    asked = asyncio.ensure_future(client.session.send_request(wanted, types.CancelTaskResult))
    await asyncio.wait({asked}, timeout=_CANCEL_SECONDS)
    if not asked.done():
        asked.cancel()
    elif not asked.cancelled():
        asked.exception()  # a server that does not cancel is left to it


def _words(task: "Task") -> str:
    state = "waits for an answer" if task.status == _WAITS else task.status
    said = _said(task)
    return f"{state}: {said}" if said else state


def _said(task: "Task") -> str:
    return " ".join(clean(task.status_message or "").split())[:_WORDS_CHARS]
