"""A conversation as JSON lines in the form that Claude Code prints: init, assistant, user and result."""

from collections.abc import Callable
from typing import Any

import msgspec

from ferrule.agent.events import (
    AgentEvent,
    Began,
    Called,
    ChildBegan,
    Compacted,
    Ended,
    Reason,
    Spoke,
    Thought,
    TurnEnded,
    Warned,
)
from ferrule.core.events import Done
from ferrule.wire.anthropic import results_out, said_out
from ferrule.wire.turn import Use
from ferrule.wire.wire import result_of

_SUBTYPES: dict[Reason, str] = {
    "end": "success",
    "turns": "error_max_turns",
    "cost": "error_max_budget_usd",
    "tokens": "error_max_tokens",
    "time": "error_max_seconds",
    "loop": "error_loop",
    "length": "error_max_output_tokens",
}


class StreamJson:
    """Puts events into lines. Helpers' messages name the call that has started them, as `parent_tool_use_id`."""

    def __init__(self, write: Callable[[bytes], None], *, partial: bool = False) -> None:
        """`partial`: every piece of an answer is a line too."""
        self._write = write
        self._partial = partial
        self._parents: dict[str, str] = {}
        self._session = ""
        self._model = ""
        self._denied: list[dict[str, Any]] = []
        self._inputs: dict[str, Any] = {}
        self.result: dict[str, Any] | None = None
        """The last line, once there is one."""

    def put(self, event: AgentEvent) -> None:
        match event:
            case Began():
                self._begin(event)
            case TurnEnded():
                self._inputs |= {part.id: part.input for part in event.said.parts if isinstance(part, Use)}
                self._say({"type": "assistant", "message": said_out(event.said)}, event.thread)
            case Called(call=Done() as done):
                self._done(done, event.thread)
            case Spoke() | Thought() if self._partial:
                kind = "text_delta" if isinstance(event, Spoke) else "thinking_delta"
                delta = {"type": kind, kind.removesuffix("_delta"): event.text}
                self._say(
                    {"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}}, event.thread
                )
            case ChildBegan():
                self._parents[event.child] = event.call_id
            case Compacted():
                about = {"trigger": event.kind, "pre_tokens": event.before_tokens, "post_tokens": event.after_tokens}
                self._say({"type": "system", "subtype": "compact_boundary", "compact_metadata": about}, event.thread)
            case Warned():
                self._say({"type": "system", "subtype": "warning", "message": event.sentence}, event.thread)
            case Ended() if event.thread == self._session:
                self._end(event)
            case _:
                pass

    def _begin(self, event: Began) -> None:
        if event.thread in self._parents or event.thread == self._session:
            return
        self._session, self._model = event.thread, event.model
        self._say(
            {
                "type": "system",
                "subtype": "init",
                "cwd": event.cwd,
                "tools": list(event.tools),
                "mcp_servers": [],
                "model": event.model,
                "permissionMode": event.permission_mode,
                "dialect": event.dialect,
            },
            event.thread,
        )

    def _done(self, done: Done, thread: str) -> None:
        reply = done.reply
        if not reply.id:
            return
        if reply.status == "rejected-by-user":
            given = self._inputs.get(reply.id, {})
            self._denied.append({"tool_name": reply.name, "tool_use_id": reply.id, "tool_input": given})
        content = [block for message in results_out([result_of(reply)]) for block in message["content"]]
        self._say({"type": "user", "message": {"role": "user", "content": content}}, thread)

    def _end(self, event: Ended) -> None:
        usage = event.spent.usage
        is_error = event.reason != "end"
        self.result = {
            "type": "result",
            "subtype": _SUBTYPES.get(event.reason, "error_during_execution"),
            "is_error": is_error,
            "reason": event.reason,
            "duration_ms": round(event.spent.seconds * 1000),
            "num_turns": event.spent.turns,
            "result": event.text,
            **({"error": event.error} if event.error else {}),
            "session_id": event.thread,
            "model": self._model,
            "total_cost_usd": event.spent.cost,
            "usage": {
                "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
                "output_tokens": usage.output,
                "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": usage.cache_write,
            },
            "permission_denials": self._denied,
        }
        self._denied = []
        self._write(msgspec.json.encode(self.result) + b"\n")

    def _say(self, line: dict[str, Any], thread: str) -> None:
        parent = self._parents.get(thread)
        about = {"parent_tool_use_id": parent, "session_id": self._session or thread}
        self._write(msgspec.json.encode({**line, **about}) + b"\n")
