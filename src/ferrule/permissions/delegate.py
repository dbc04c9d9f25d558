"""The delegate of an Amp rule: a program of the user's that decides about a call.

It gets the arguments as JSON on its standard input, and answers with its exit code: 0 allows, 1 asks, everything else
refuses, with what it wrote to its standard error as the reason. A program that cannot be run, does not end in time
or dies decides nothing, and then the call is refused.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ferrule.sandbox.search_path import apart, lies_in
from ferrule.system.environment import program_on_path as on_path
from ferrule.system.environment import quiet_environment
from ferrule.system.folder import describe
from ferrule.system.run import Piped, pipe

_SECONDS = 30.0
_OUTPUT_BYTES = 1 << 20
_MESSAGE_CHARS = 2000
_LOADED = (
    *("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "PERLLIB"),
    *("RUBYLIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH"),
)
"""Variables that make interpreters load code: a project's environment may have set them to its own."""
_STEERING = r"\x1b\[[0-?]*+[ -/]*+[@-~]|\x1b[\]PX^_][^\x07\x1b]*+(?:\x07|\x1b\\)?|\x1b[ -/]*+[0-~]?"


class DelegateDecision(NamedTuple):
    """What the program decided."""

    action: Literal["allow", "ask", "deny"]
    message: str
    """For the model where it denies, for the person where it asks."""


async def delegate(
    program: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    thread_id: str,
    workspace_roots: Sequence[str],
    seconds: float = _SECONDS,
) -> DelegateDecision:
    """Ask the program about a call of `tool`. It is looked for on PATH, but never inside of `workspace_roots`."""
    path = _place(program, workspace_roots)
    if path is None:
        return _deny(program, "it is no program on PATH, nor an absolute path, outside of the workspace")
    if "\0" in tool + thread_id:
        return _deny(program, "the call has a NUL in its name")
    try:
        given = json.dumps(arguments, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return _deny(program, "the arguments cannot be written as JSON")
    env = _environment(workspace_roots)
    env |= {"AGENT": "amp", "AGENT_TOOL_NAME": tool, "AMP_THREAD_ID": thread_id}
    cwd = next((root for root in workspace_roots if os.path.isdir(root)), os.path.abspath(os.sep))
    try:
        piped = await pipe([path], given, cwd=cwd, env=env, seconds=seconds, limit_bytes=_OUTPUT_BYTES)
    except (OSError, UnicodeError, ValueError) as error:
        reason = describe(error) if isinstance(error, OSError) else str(error)
        return _deny(program, f"it cannot be started ({reason})")
    return _read_decision(program, piped, seconds)


def _read_decision(program: str, piped: Piped, seconds: float) -> DelegateDecision:
    said = _clean(piped.stderr)
    if piped.stopped == "time":
        return _deny(program, f"it did not decide within {seconds:g} seconds")
    if piped.stopped == "size":
        return _deny(program, f"it wrote more than {_OUTPUT_BYTES:,} bytes")
    match piped.exit_code:
        case 0:
            return DelegateDecision("allow", "")
        case 1:
            return DelegateDecision("ask", said)
        case code if code > 128 and not said:
            return _deny(program, f"it ended by signal {code - 128}")
        case code:
            return DelegateDecision(
                "deny", said or f"{os.path.basename(program)} refused this call (exit code {code})."
            )


def _deny(program: str, why: str) -> DelegateDecision:
    """No decision is a refusal: a broken policy must not let anything in."""
    return DelegateDecision("deny", f"{_clean(os.fsencode(program))} was to decide about this call, but {why}.")


def _place(program: str, roots: Sequence[str]) -> str | None:
    if not program or "\0" in program:
        return None
    if not os.path.dirname(program):
        return None if program in {os.curdir, os.pardir} else on_path(program, outside=roots)
    if not os.path.isabs(program) or not os.path.isfile(program) or not os.access(program, os.X_OK):
        return None
    return None if lies_in(program, roots) else program


def _environment(roots: Sequence[str]) -> dict[str, str]:
    env = {name: value for name, value in quiet_environment(os.environ).items() if name not in _LOADED}
    # What the program starts by name, its own interpreter for one, must not come from the workspace either.
    return apart(env, roots)


def _clean(raw: bytes) -> str:
    """What it wrote, without what would steer a screen or hide there, and not too much of it."""
    text = re.sub(_STEERING, "", raw.decode(errors="replace"))
    kept = "".join(char for char in text if char.isprintable() or char in "\n\t").strip()
    return kept if len(kept) <= _MESSAGE_CHARS else kept[:_MESSAGE_CHARS].rstrip() + " …"
