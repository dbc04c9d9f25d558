"""Print a conversation as JSON lines in the form of Claude Code: init, assistant, user and result.

Answers can also be printed piece by piece, as the events in which the Messages API streams them.
"""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ferrule.agent import (
    AgentEvent,
    Began,
    Called,
    ChildBegan,
    ChildEnded,
    Compacted,
    Ended,
    FellBack,
    Reason,
    Retrying,
    Spoke,
    Steered,
    Thought,
    TurnBegan,
    TurnEnded,
    Warned,
    add_usage,
)
from ferrule.agent.subagents import agent_id_of
from ferrule.cli.show import UNFORMED, WHY, escape_json
from ferrule.core.call import Blocked, Done, HookRun, Reply, Reported, sayable
from ferrule.core.content import Text
from ferrule.wire import Result, Usage, Use, result_of
from ferrule.wire.anthropic import results_out, said_out
from ferrule.wire.conversation import json_text

if TYPE_CHECKING:
    from ferrule.cli.run import AnswerForm


class Pieces:
    """One answer as the events in which the Messages API streams it."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._index = -1
        self._kind = ""

    def more(self, kind: str, text: str) -> list[dict[str, Any]]:
        """More of its words, or of its thinking."""
        events = []
        if kind != self._kind:
            events = [*self._begin(), *self._block({"type": kind, kind: ""})]
            self._kind = kind
        return [*events, self._delta({"type": f"{kind}_delta", kind: text})]

    def end(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """The calls, which are told whole, and the end."""
        events = self._begin()
        for block in message["content"]:
            if block["type"] == "tool_use":
                self._kind = "tool_use"
                events += self._block({**block, "input": {}})
                events.append(self._delta({"type": "input_json_delta", "partial_json": json_text(block["input"])}))
        events += self._close()
        stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        return [*events, {"type": "message_delta", "delta": stop, "usage": message["usage"]}, {"type": "message_stop"}]

    def _begin(self) -> list[dict[str, Any]]:
        if self._index >= 0:
            return []
        # How much it takes, and which message it is, nobody knows before its end.
        about = {"id": "", "type": "message", "role": "assistant", "model": self._model, "content": []}
        usage = {"input_tokens": 0, "output_tokens": 0}
        unknown = {"stop_reason": None, "stop_sequence": None, "usage": usage}
        return [{"type": "message_start", "message": {**about, **unknown}}]

    def _block(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        before = self._close()
        self._index += 1
        return [*before, {"type": "content_block_start", "index": self._index, "content_block": block}]

    def _close(self) -> list[dict[str, Any]]:
        return [{"type": "content_block_stop", "index": self._index}] if self._index >= 0 else []

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}


_SUBTYPES: dict[Reason, str] = {
    "end": "success",
    "stopped": "success",
    "turns": "error_max_turns",
    "cost": "error_max_budget_usd",
    "tokens": "error_max_tokens",
    "time": "error_max_seconds",
    "loop": "error_loop",
    "length": "error_max_output_tokens",
}
_TERMINAL: dict[Reason, str] = {
    "end": "completed",
    "stopped": "hook_stopped",
    "turns": "max_turns",
    "cost": "budget_exhausted",
    "error": "api_error",
    "interrupted": "aborted",
}
"""Why it ended, in words that clients know; the others are our own."""
_TASK_ENDS: dict[Reason, str] = {
    "error": "failed",
    "refused": "failed",
    "hook": "failed",
    "stopped": "stopped",
    "interrupted": "stopped",
}
_INTERRUPTED = "[Request interrupted by user]"
_INTERRUPTED_CALLS = "[Request interrupted by user for tool use]"
_VERSION = "2.0.0"
"""Of the program whose form this is: clients look which one they talk to."""
_NOT_MADE = "The call was not made."


class StreamJson:
    """Puts events into lines. Helpers' messages name the call that has started them, as `parent_tool_use_id`."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        *,
        partial: bool = False,
        form: "AnswerForm | None" = None,
        hooks: bool = False,
        asks: bool = False,
    ) -> None:
        """`partial`: every piece of an answer is a line too. `form` has the answer that is given in one.

        `hooks`: programs that are hooks are told of. `asks`: whoever reads the lines is asked about calls.
        """
        self._hooks = hooks
        self._asks = asks
        self._blocked: set[str] = set()
        """The calls that somebody was asked about."""
        self._children: dict[str, ChildBegan] = {}
        self._calls: dict[str, int] = {}
        """How many calls each subagent has made."""
        self.offered: dict[str, Any] = {}
        """What the first line says of skills and kinds of agents."""
        self._write = write
        self._form = form
        self._pieces: dict[str, Pieces] | None = {} if partial else None
        self._parents: dict[str, str] = {}
        self._session = ""
        self._model = ""
        self._early: list[tuple[dict[str, Any], str]] = []
        """What is to be said before the first line, which is always the same one."""
        self._denied: list[dict[str, Any]] = []
        self._cwd = ""
        self._changed: dict[str, None] = {}
        """The files that this prompt's calls have changed, subagents' too, in the order in which they were."""
        self._open: dict[str, dict[str, Use]] = {}
        """The calls of each conversation that have no result yet."""
        self._asked: dict[str, float] = {}
        self._asking_seconds = 0.0
        self._stop_reason: str | None = None
        self._by_model: dict[str, Usage] = {}
        """What each model has taken for this prompt, subagents' too."""
        self.result: dict[str, Any] | None = None
        """The last line, once there is one."""

    def put(self, event: AgentEvent) -> None:
        thread = event.thread
        if self._form is not None:
            self._form.put(event)
        if isinstance(event, Began):
            self._begin(event)
        elif isinstance(event, TurnBegan):
            self._unmade(thread)
            self._asked[thread] = time.monotonic()
            if self._pieces is not None:
                self._say({"type": "system", "subtype": "status", "status": "requesting"}, thread)
        elif isinstance(event, TurnEnded):
            self._turn(event)
        elif isinstance(event, Called):
            self._on_call(event)
        elif isinstance(event, ChildBegan):
            # A helper's helper belongs to the call in its own parent.
            self._parents[event.child] = event.call_id
            self._children[event.child] = event
            self._task("task_started", event)
        elif isinstance(event, Ended):
            self._unmade(thread)
            # A prompt that could not even be taken has no beginning.
            if thread == self._session or not (self._session or thread in self._parents):
                self._end(event)
        else:
            self._aside(event)

    def _aside(self, event: AgentEvent) -> None:
        """What is no message of the conversation."""
        match event:
            case Spoke() | Thought() if self._pieces is not None:
                kind = "text" if isinstance(event, Spoke) else "thinking"
                for one in self._pieces_of(event.thread).more(kind, event.text):
                    self._say({"type": "stream_event", "event": one}, event.thread)
            case Retrying():
                if self._pieces is not None:
                    self._pieces.pop(event.thread, None)
                about = {"attempt": event.attempt, "retry_delay_ms": round(event.seconds * 1000), "error": event.why}
                self._say({"type": "system", "subtype": "api_retry", **about}, event.thread)
            case Steered():
                message = {"role": "user", "content": [{"type": "text", "text": event.text}]}
                self._say({"type": "user", "message": message, "isReplay": True}, event.thread)
            case Compacted():
                tokens = {"pre_tokens": event.before_tokens, "post_tokens": event.after_tokens}
                about = {"trigger": "auto", "kind": event.kind, **tokens}
                self._say({"type": "system", "subtype": "compact_boundary", "compact_metadata": about}, event.thread)
            case Warned():
                self._warn(event.sentence, event.thread)
            case FellBack():
                about = {"original_model": event.model, "fallback_model": event.fallback, "content": event.sentence}
                self._say({"type": "system", "subtype": "model_fallback", **about}, event.thread)
            case ChildEnded() if event.child in self._children:
                self._task("task_notification", self._children.pop(event.child), event)
            case _:
                pass

    def _begin(self, event: Began) -> None:
        if event.thread in self._parents or event.thread == self._session:
            return
        self._session, self._model, self._cwd = event.thread, event.model, event.cwd
        self._say(
            {
                "type": "system",
                "subtype": "init",
                "cwd": event.cwd,
                "tools": list(event.tools),
                "mcp_servers": _servers(event.tools),
                "model": event.model,
                "permissionMode": event.permission_mode,
                "slash_commands": [],
                **self.offered,
                "apiKeySource": "none",
                "output_style": "default",
                "dialect": event.dialect,
                "claude_code_version": _VERSION,
            },
            event.thread,
        )
        early, self._early = self._early, []
        for line, thread in early:
            self._say(line, thread)

    def _turn(self, event: TurnEnded) -> None:
        thread, said = event.thread, event.said
        self._asking_seconds += time.monotonic() - self._asked.pop(thread, time.monotonic())
        self._open[thread] = {part.id: part for part in said.parts if isinstance(part, Use)}
        message = said_out(said)
        self._by_model[said.model] = add_usage(self._by_model.get(said.model, Usage()), said.usage)
        if thread == self._session:
            self._stop_reason = message["stop_reason"]
        if self._pieces is not None:
            for one in self._pieces_of(thread).end(message):
                self._say({"type": "stream_event", "event": one}, thread)
            del self._pieces[thread]
        self._say({"type": "assistant", "message": message}, thread)

    def _on_call(self, event: Called) -> None:
        call = event.call
        if isinstance(call, Reported):
            self._warn(call.sentence, event.thread)
        elif isinstance(call, Blocked):
            self._blocked.add(call.id)
        elif isinstance(call, HookRun) and (self._hooks or call.hook == "SessionStart"):
            self._hook(call, event.thread)
        if not isinstance(call, Done) or not call.reply.id:
            return
        reply = call.reply
        changed = reply.changes.files if reply.changes is not None else ()
        self._changed |= dict.fromkeys(display_path(path, self._cwd) for path in (*reply.track_files, *changed))
        self._calls[event.thread] = self._calls.get(event.thread, 0) + 1
        use = self._open.get(event.thread, {}).pop(reply.id, None)
        if reply.status == "rejected-by-user":
            given = use.input if use is not None else {}
            self._denied.append({"tool_name": reply.name, "tool_use_id": reply.id, "tool_input": given})
            self._tell_denied(reply, event.thread)
        self._answer(result_of(reply), event.thread)

    def _tell_denied(self, reply: Reply, thread: str) -> None:
        """A call was refused, and not by an answer of whoever reads this."""
        if self._asks and reply.id in self._blocked:
            return
        why = reply.error.message if reply.error is not None else ""
        about = {"tool_name": reply.name, "tool_use_id": reply.id, "message": why}
        self._say({"type": "system", "subtype": "permission_denied", **about}, thread)

    def _hook(self, run: HookRun, thread: str) -> None:
        about: dict[str, Any] = {"hook_id": run.id, "hook_name": run.name, "hook_event": run.hook}
        if not run.ended:
            self._say({"type": "system", "subtype": "hook_started", **about}, thread)
            return
        printed = {"output": run.stdout or run.stderr, "stdout": run.stdout, "stderr": run.stderr}
        outcome = {"exit_code": run.exit_code, "outcome": "error" if run.exit_code else "success"}
        self._say({"type": "system", "subtype": "hook_response", **about, **printed, **outcome}, thread)

    def _task(self, subtype: str, began: ChildBegan, ended: ChildEnded | None = None) -> None:
        """A subagent begins, or has ended."""
        about: dict[str, Any] = {"task_id": agent_id_of(began.child), "tool_use_id": began.call_id}
        if ended is None:
            kind = {"subagent_type": began.name, "task_type": "local_agent"}
            self._say(
                {"type": "system", "subtype": subtype, **about, "description": began.description, **kind}, began.thread
            )
            return
        usage = ended.spent.usage
        about |= {
            "status": _TASK_ENDS.get(ended.reason, "completed"),
            "output_file": "",
            "summary": began.description,
            "usage": {
                "total_tokens": usage.input + usage.output,
                "tool_uses": self._calls.pop(began.child, 0),
                "duration_ms": round(ended.spent.seconds * 1000),
            },
        }
        self._say({"type": "system", "subtype": subtype, **about}, began.thread)

    def _unmade(self, thread: str) -> None:
        """Every call has its result: those that were cut off, or that no limit was left for, were not made."""
        for use in self._open.pop(thread, {}).values():
            self._answer(Result(use.id, (Text(_NOT_MADE),), failed=True, name=use.name), thread)

    def _answer(self, result: Result, thread: str) -> None:
        content = [block for message in results_out([result]) for block in message["content"]]
        self._say({"type": "user", "message": {"role": "user", "content": content}}, thread)

    def _end(self, event: Ended) -> None:
        if event.reason == "interrupted":
            words = _INTERRUPTED_CALLS if self._stop_reason == "tool_use" else _INTERRUPTED
            message = {"role": "user", "content": [{"type": "text", "text": words}]}
            self._say({"type": "user", "message": message}, event.thread)
        usage = event.spent.usage
        formed = self._form.value if self._form is not None else None
        subtype = _SUBTYPES.get(event.reason, "error_during_execution")
        if self._form is not None and formed is None and event.reason == "end":
            subtype = "error_max_structured_output_retries"
        self.result = {
            "type": "result",
            "subtype": subtype,
            "is_error": subtype != "success",
            "reason": event.reason,
            "duration_ms": round(event.spent.seconds * 1000),
            "duration_api_ms": round(self._asking_seconds * 1000),
            "num_turns": event.spent.turns,
            "result": _words(event) if formed is None else json_text(formed),
            "stop_reason": self._stop_reason,
            "terminal_reason": _TERMINAL.get(event.reason, event.reason),
            # Clients read the list of every end that is no success.
            **({"errors": [event.error or WHY.get(event.reason, UNFORMED)]} if subtype != "success" else {}),
            **({"structured_output": formed} if formed is not None else {}),
            "session_id": event.thread,
            "model": self._model,
            "total_cost_usd": event.spent.cost,
            "usage": {
                "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
                "output_tokens": usage.output,
                "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": usage.cache_write,
            },
            "modelUsage": self._models(event.spent.cost),
            "permission_denials": self._denied,
            "changed_files": list(self._changed),
            "uuid": new_uuid(),
        }
        self._denied, self._asking_seconds, self._stop_reason, self._by_model = [], 0.0, None, {}
        self._changed = {}
        self._write(line_of(self.result))

    def _models(self, cost: float | None) -> dict[str, Any]:
        """What each model has taken; what it cost is known only where there is one."""
        return {
            model: {
                "inputTokens": max(0, usage.input - usage.cache_read - usage.cache_write),
                "outputTokens": usage.output,
                "cacheReadInputTokens": usage.cache_read,
                "cacheCreationInputTokens": usage.cache_write,
                "costUSD": cost if len(self._by_model) == 1 else None,
            }
            for model, usage in self._by_model.items()
        }

    def _pieces_of(self, thread: str) -> Pieces:
        assert self._pieces is not None
        return self._pieces.setdefault(thread, Pieces(self._model))

    def _warn(self, sentence: str, thread: str) -> None:
        self._say({"type": "system", "subtype": "warning", "message": sentence}, thread)

    def _say(self, line: dict[str, Any], thread: str) -> None:
        if not self._session:
            self._early.append((line, thread))
            return
        about = {"parent_tool_use_id": self._parents.get(thread), "session_id": self._session, "uuid": new_uuid()}
        self._write(line_of({**line, **about}))


def display_path(path: str, folder: str) -> str:
    """A path as from the folder that the session works in, if it is there; as JSON can hold it."""
    inside = os.path.relpath(path, folder) if os.path.isabs(path) and folder else path
    return sayable(path if inside.startswith("..") else inside)


def line_of(value: dict[str, Any]) -> bytes:
    """One line to every reader; half of a surrogate pair, which models do write, is an escape in it."""
    text = json_text(value)
    return (text if text.isascii() else escape_json(text)).encode() + b"\n"


def _words(event: Ended) -> str:
    """What the model said last; of a prompt that a hook has stopped before it was asked, that."""
    if event.reason == "stopped" and not event.spent.turns:
        return f"Operation stopped by hook: {event.error}"
    return event.text


def _servers(tools: tuple[str, ...]) -> list[dict[str, str]]:
    """The MCP servers whose tools are shown."""
    names = dict.fromkeys(tool.split("__")[1] for tool in tools if tool.startswith("mcp__"))
    return [{"name": name, "status": "connected"} for name in names if name]


def new_uuid() -> str:
    """A random one, of version 4."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
