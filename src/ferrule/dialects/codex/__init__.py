"""Define codex's tools: those of today, those that older models still call, and how they are arranged and read.

Arranged are a program's arguments, the permissions that it wants, a plan, a picture's detail and agents.
"""

import os
import shlex
from typing import TYPE_CHECKING, Any

from ferrule.core.content import CommandResult, FolderTree, Matching, Picture, Planned
from ferrule.core.errors import BadArguments
from ferrule.core.services import LeftAgent, last_words
from ferrule.core.tool import Middle, Values
from ferrule.dialects import Dialect, rows
from ferrule.dialects.outcome_words import message
from ferrule.dialects.shared import (
    answers_by_id,
    explain_stop,
    file_renderer,
    has_agent_failed,
    invert_names,
    members,
    picture,
    question_arrangement,
    render_matching,
    render_mixed,
    render_patch,
    resources,
    tools_named,
    tree,
    without,
)
from ferrule.tools.shell import Left, Permitted, TaskRead

if TYPE_CHECKING:
    from ferrule.core.services import AgentSent, AgentsSeen, AgentStopped, Worked
    from ferrule.dialects.outcome_words import Outcome


def render_spawn(outcome: "Outcome") -> dict[str, str] | str:
    """Whom to wait for."""
    if not isinstance(outcome, LeftAgent):
        return message(outcome)
    return {"agent_id": outcome.worked.id, "nickname": outcome.worked.description or outcome.worked.name}


def render_wait(outcome: "AgentsSeen") -> dict[str, Any]:
    """Those that have ended; none where the time was over first."""
    ended = {worked.id: _final_status(worked) for worked in outcome.works if worked.status != "running"}
    return {"status": ended, "timed_out": outcome.timed_out}


def render_agents(outcome: "AgentsSeen") -> dict[str, Any]:
    rows = [
        {"agent_name": one.id, "agent_status": _current_status(one), "last_task_message": one.description}
        for one in outcome.works
    ]
    return {"agents": rows}


def render_resume(outcome: "AgentsSeen") -> dict[str, Any]:
    """How one is that can be told more, whether it has ended or not."""
    return {"status": _current_status(outcome.works[0])}


def render_send(outcome: "AgentSent") -> dict[str, str]:
    return {"submission_id": outcome.call_id, "agent_id": outcome.worked.id}


def render_close(outcome: "AgentStopped") -> dict[str, Any]:
    return {"status": _final_status(outcome.worked)}


def _current_status(worked: "Worked") -> dict[str, str] | str:
    return "running" if worked.status == "running" else _final_status(worked)


def _final_status(worked: "Worked") -> dict[str, str] | str:
    """How it ended, with what it said."""
    if worked.status in {"running", "stopped"}:
        return "shutdown"
    return {"completed" if worked.status == "completed" else "errored": last_words(worked)}


_SHELLS = frozenset({"bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"})
_RUN = frozenset({"-c", "-lc"})
_ABOVE = "require_escalated"
_STEP = {"step": "text", "status": "status"}
_SPAWN = ("prompt", "description", "kind", "history", "model")


def lift_outside(values: Values) -> Values:
    """Who wants to be above the sandbox wants to be outside of it; all else stays inside, and may be denied there."""
    out = without(values, "sandbox_permissions")
    return {**out, "outside": True} if values.get("sandbox_permissions") == _ABOVE else out


def lower_outside(values: Values) -> Values:
    """The inverse."""
    out = without(values, "outside")
    return {**out, "sandbox_permissions": _ABOVE} if values.get("outside") else out


def lift_permissions(values: Values) -> Values:
    """What is asked for, without the boxes around it."""
    asked = values["permissions"]
    files = asked.get("file_system", {})
    out = {**without(values, "permissions"), **{key: files[key] for key in ("read", "write") if key in files}}
    network = asked.get("network", {})
    return {**out, "network": network["enabled"]} if "enabled" in network else out


def lower_permissions(values: Values) -> Values:
    """The inverse."""
    files = {key: values[key] for key in ("read", "write") if key in values}
    asked = {
        **({"network": {"enabled": values["network"]}} if "network" in values else {}),
        **({"file_system": files} if files else {}),
    }
    return {**without(values, "network", "read", "write"), "permissions": asked}


def lift_command(values: Values) -> Values:
    """A program and its arguments as the command line that runs them.

    A shell that is given a command line becomes that line: it runs in a shell anyway, and who is asked about it, or
    decides on it, sees what will run and not a quotation of it. So does a single word with blanks in it: nobody has
    programs of such names.
    """
    values = lift_outside(values)
    words = values["command"]
    if not words:
        raise BadArguments("command: is empty; give a program and its arguments.")
    if words[0] == "apply_patch":
        raise BadArguments("command: apply_patch is a tool and not a program; call it with the patch as its input.")
    if len(words) == 1 and any(character.isspace() for character in words[0]):
        return {**values, "command": words[0]}
    if len(words) == 3 and words[0] in _SHELLS and words[1] in _RUN:
        return {**values, "command": words[2]}
    return {**values, "command": shlex.join(words)}


def lower_command(values: Values) -> Values:
    """The inverse."""
    values = lower_outside(values)
    line = values["command"]
    try:
        words = shlex.split(line)
        plain = lift_command({"command": words})["command"] == line
    except (ValueError, BadArguments):
        plain = False
    return {**values, "command": words if plain else ["bash", "-lc", line]}


def steps(values: Values) -> Values:
    """Steps in canonical names."""
    return members(values, "steps", _STEP)


def plan(values: Values) -> Values:
    """The inverse."""
    return members(values, "steps", invert_names(_STEP))


def detail(values: Values) -> Values:
    """`original` is one of the two details."""
    if "detail" not in values:
        return values
    return {**without(values, "detail"), "original": values["detail"] == "original"}


def as_detail(values: Values) -> Values:
    """The inverse."""
    if "original" not in values:
        return values
    return {**without(values, "original"), "detail": "original" if values["original"] else "high"}


def lift_spawn(values: Values) -> Values:
    """An agent is spawned and left to itself."""
    return {**values, "background": True}


def lower_spawn(values: Values) -> Values:
    """The inverse, as far as the family has words for it."""
    return {key: values[key] for key in _SPAWN if key in values}


def lift_spawn_items(values: Values) -> Values:
    """The older arrangement: the task as text, as items of text, or as both."""
    out = without(_join_items(values, "prompt"), "history")
    return lift_spawn({**out, "history": "all"} if values.get("history") else out)


def lower_spawn_items(values: Values) -> Values:
    """The inverse."""
    out = without(lower_spawn(values), "description", "history")
    return {**out, "history": values["history"] == "all"} if "history" in values else out


def lift_message_items(values: Values) -> Values:
    """A message as text, as items of text, or as both."""
    return _join_items(values, "message")


def _join_items(values: Values, name: str) -> Values:
    items = values.get("items") or []
    if any(item.get("type", "text") != "text" for item in items):
        raise BadArguments("items: only text can be given to an agent; name files by their paths.")
    texts = [values.get(name) or "", *(item.get("text") or "" for item in items)]
    return {**without(values, "items"), name: "\n\n".join(filter(None, texts))}


CHARS_A_TOKEN = 4
"""About as many; it is what codex counts by."""

EMPTY = "The file is empty."
PAST = "The file has {total} lines; line {first} is past its end."


def render_plan(_: Planned) -> str:
    return "Plan updated"


def render_image(outcome: Picture) -> list[dict[str, str]]:
    return [{"type": "text", "text": outcome.path}, picture(outcome)]


def render_folder(outcome: FolderTree) -> str:
    more = [f"More than {len(outcome.entries)} entries found; use offset for the others"] if outcome.remaining else []
    return "\n".join([f"Absolute path: {outcome.path}", tree(outcome) or "(nothing here)", *more])


def files(outcome: Matching) -> str:
    return render_matching(outcome, none="No matches found.")


def render_command(outcome: CommandResult | Left) -> str:
    if isinstance(outcome, Left):
        return session(outcome)
    why = explain_stop(outcome)
    rows = [f"Exit code: {outcome.exit_code}", f"Wall time: {outcome.took:.1f} seconds", *([why] if why else ())]
    return "\n".join([*rows, "Output:", outcome.output])


def session(outcome: CommandResult | Left | TaskRead) -> str:
    """How long it took, how it stands, how much there was where that is not all, and what it printed."""
    seen = outcome if isinstance(outcome, CommandResult) else outcome.task
    seconds = outcome.waited if isinstance(outcome, TaskRead) else seen.took
    if isinstance(seen, CommandResult) or seen.exit_code is not None:
        stands = f"Process exited with code {seen.exit_code}"
    else:
        stands = f"Process running with session ID {seen.number}"
    why = explain_stop(outcome) if isinstance(outcome, CommandResult) else None
    rows = [f"Wall time: {seconds:.4f} seconds", stands, *([why] if why else ())]
    if seen.total_chars > len(seen.output):
        rows.append(f"Original token count: {-(-seen.total_chars // CHARS_A_TOKEN)}")
    return "\n".join([*rows, "Output:", seen.output])


def render_permissions(outcome: Permitted) -> dict[str, Any]:
    files = {"read": list(outcome.read), "write": list(outcome.write)}
    granted = {
        **({"network": {"enabled": True}} if outcome.network else {}),
        **({"file_system": {key: paths for key, paths in files.items() if paths}} if any(files.values()) else {}),
    }
    return {"permissions": granted, "scope": "session"}


_HERE = os.path.dirname(__file__)

_SHELL: dict[str, Any] = {
    "params": {"workdir": "cwd", "timeout_ms": "seconds", "justification": "description"},
    "per": {"seconds": 1000},
    "said_as": {"outside": "sandbox_permissions"},
    "unused": ("login", "prefix_rule"),
    "fill": {"head_chars": 80_000, "tail_chars": 80_000},
    "says": render_command,
    "bound": Middle(40_000),
    "shown": False,
}
_YIELD = {"yield_time_ms": "seconds", "max_output_tokens": "most_tokens"}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)
    with open(os.path.join(_HERE, "patch.lark"), encoding="utf-8") as file:
        grammar = file.read()

    faces = (
        face(
            "shell_session",
            "exec_command",
            params={
                "cmd": "command",
                "workdir": "cwd",
                "tty": "terminal",
                "justification": "description",
                **_YIELD,
            },
            per={"seconds": 1000},
            lift=lift_outside,
            lower=lower_outside,
            said_as={"outside": "sandbox_permissions"},
            unused=("shell", "login", "environment_id", "prefix_rule", "additional_permissions"),
            says=session,
        ),
        face(
            "shell_write",
            "write_stdin",
            params={"session_id": "number", **_YIELD},
            per={"seconds": 1000},
            says=session,
        ),
        face("shell", "shell_command", **_SHELL, lift=lift_outside, lower=lower_outside),
        face(
            "shell",
            "shell",
            **_SHELL,
            lift=lift_command,
            lower=lower_command,
            aliases=("container.exec", "local_shell"),
        ),
        face(
            "request_permissions",
            "request_permissions",
            lift=lift_permissions,
            lower=lower_permissions,
            said_as=dict.fromkeys(("network", "read", "write"), "permissions"),
            unused=("environment_id",),
            says=render_permissions,
        ),
        face(
            "patch",
            "apply_patch",
            params={"input": "patch"},
            text_param="input",
            grammar=grammar,
            says=render_patch,
        ),
        face(
            "plan",
            "update_plan",
            params={"plan": "steps"},
            lift=steps,
            lower=plan,
            says=render_plan,
        ),
        face(
            "view_image",
            "view_image",
            unused=("environment_id",),
            lift=detail,
            lower=as_detail,
            says=render_image,
        ),
        face(
            "read",
            "read_file",
            params={"file_path": "path", "indentation": "block"},
            fill={
                "usual_lines": 2_000,
                "most_bytes": 100_000,
                "line_chars": 500,
                "decoded": (),
                "folders": False,
                "mention_empty": True,
            },
            says=file_renderer("L{}: {}", empty=EMPTY, past=PAST),
            errors={
                "binary": "{path} is binary ({count} bytes). Use view_image to look at an image.",
                "is-folder": "{path} is a folder. Use list_dir to list it.",
            },
        ),
        face(
            "list_dir",
            "list_dir",
            params={"dir_path": "path"},
            usual={"limit": 25, "depth": 2},
            says=render_folder,
        ),
        face(
            "grep",
            "grep_files",
            params={"include": "glob"},
            usual={"limit": 100},
            fill={"mode": "files", "by_time": True, "case_sensitive": True},
            says=files,
        ),
        face("ask_user", "request_user_input", **question_arrangement(id="id"), says=answers_by_id),
        face("tool_search", "tool_search", usual={"limit": 8}, fill={"how": "ranked"}, says=tools_named),
        face("list_mcp_resources", "list_mcp_resources", says=resources),
        face("list_mcp_resource_templates", "list_mcp_resource_templates", says=resources),
        face("read_mcp_resource", "read_mcp_resource", says=render_mixed),
        face(
            "delegate",
            "spawn_agent",
            params={
                "message": "prompt",
                "task_name": "description",
                "agent_type": "kind",
                "fork_turns": "history",
            },
            unused=("reasoning_effort",),
            lift=lift_spawn,
            lower=lower_spawn,
            says=render_spawn,
            failed=has_agent_failed,
        ),
        face(
            "delegate",
            "spawn_agent_v1",
            like="spawn_agent",
            params={"message": "prompt", "agent_type": "kind", "fork_context": "history"},
            unused=("reasoning_effort", "service_tier"),
            lift=lift_spawn_items,
            lower=lower_spawn_items,
            said_as={"prompt": "message"},
            says=render_spawn,
            failed=has_agent_failed,
            aliases=("spawn_agent",),
            shown=False,
        ),
        face(
            "agent_wait",
            "wait_agent",
            params={"targets": "ids", "timeout_ms": "seconds"},
            per={"seconds": 1000},
            says=render_wait,
        ),
        face("agent_list", "list_agents", params={"path_prefix": "begins"}, says=render_agents),
        face("agent_list", "resume_agent", says=render_resume, shown=False),
        face(
            "agent_send",
            "send_input",
            params={"target": "id"},
            lift=lift_message_items,
            says=render_send,
            aliases=("send_message", "followup_task"),
        ),
        face("agent_stop", "close_agent", params={"target": "id"}, says=render_close, aliases=("interrupt_agent",)),
    )
    return Dialect(name="codex", faces=faces, defers=True)
