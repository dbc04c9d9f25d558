"""Print for people: colour at a terminal, plain text elsewhere, and the exit codes of all commands."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

import click
import msgspec

from ferrule.core.call import Reply, result_text

DONE = 0
FAILED = 1
"""A tool failed, or a check of `doctor` did."""
USAGE = 2
REFUSED = 3
"""The user or the policy said no."""
LIMIT = 4
"""Of turns, tokens, cost or time; or an answer that was too long."""
BUG = 70
"""What BSD calls an internal software error."""
INTERRUPTED = 130
"""As shells count: 128 and the number of the signal."""


WHY = {
    "undone": "Nothing was done: the model said what it would do, or wrote a call that could not be read.",
    "length": "The answer was cut off: it was too long. Say `continue` with --continue.",
    "refused": "The model refused to answer.",
    "turns": "Stopped: the limit of turns was met. Go on with --continue.",
    "tokens": "Stopped: the limit of tokens was met. Go on with --continue.",
    "cost": "Stopped: the limit of cost was met. Go on with --continue.",
    "time": "Stopped: the limit of time was met. Go on with --continue.",
    "loop": "Stopped: the model made the same call again and again.",
    "stopped": "A hook has ended the work.",
    "hook": "A hook did not let the task through.",
    "interrupted": "Interrupted. Go on with --continue.",
}
UNFORMED = "The model gave no answer in the form that was asked for."


_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "dim": 2, "bold": 1}
_STEERING = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))}
"""Characters that JSON lets stand as they are: controls of eight bits, ends of lines, directions of writing."""


class DefaultCommandGroup(click.Group):
    """A group that does one of its commands if none is named."""

    def __init__(self, *args: Any, first: str = "list", **more: Any) -> None:
        super().__init__(*args, **more)
        self._first = first

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ([] if ctx.resilient_parsing else [self._first]))


def has_colour(stream: TextIO | None = None) -> bool:
    """Is standard output, or another stream, a terminal that wants colour?"""
    is_terminal = (stream or sys.stdout).isatty()
    return is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in colour, where the stream that it goes to wants it."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if has_colour(stream) else text


def format_json(value: object) -> str:
    """A value as JSON that people can read."""
    return escape_json(msgspec.json.format(msgspec.json.encode(value)).decode())


def escape_json(text: str) -> str:
    """The same JSON, with escapes for what steers a terminal, or is the end of a line to some readers."""
    return text.translate(_STEERING)


def paint_diff(text: str) -> str:
    """A diff with its added and removed lines in colour."""
    return "".join(_paint_line(line) for line in text.splitlines(keepends=True)) if has_colour() else text


def plain(reply: Reply) -> str:
    """A reply for a person: lists a line an item, diffs as diffs, anything else as the model reads it."""
    result = reply.result
    if reply.error is not None or not isinstance(result, (dict, list)):
        return reply.text
    if isinstance(result, list):
        return "\n".join(map(_item, result))
    if result.get("type") == "image":
        return _item(result)
    if isinstance(result.get("diff"), str):
        return paint_diff(result["diff"]).rstrip("\n")
    if isinstance(result.get("files"), list):
        more = [f"({result['remaining']} more)"] if result.get("remaining") else []
        return "\n".join([*map(str, result["files"]), *more])
    return reply.text


def _item(item: Any) -> str:
    """One part of a result; of an image only what can be read."""
    if isinstance(item, dict) and item.get("type") == "image" and isinstance(item.get("data"), str):
        size_bytes = len(item["data"]) * 3 // 4
        return f"[{item.get('media_type', 'image')}, {size_bytes:,} bytes; --json prints the data]"
    if isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str):
        return str(item["text"])
    return item if isinstance(item, str) else result_text(item)


def _paint_line(line: str) -> str:
    body = line.rstrip("\n")
    end = line[len(body) :]
    if line.startswith(("+++", "---", "diff ")):
        return paint(body, "bold") + end
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return line if colour is None else paint(body, colour) + end


class Bar(NamedTuple):
    """A call on the timeline; times in seconds."""

    label: str
    start: float
    end: float


def columns() -> int:
    """How wide a line may be: the terminal's width, or 100 for everybody else."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def timeline(bars: Sequence[Bar]) -> list[str]:
    """One line a call, drawn to scale: bars above each other ran at the same time."""
    if not bars:
        return []
    zero = min(bar.start for bar in bars)
    span = max(max(bar.end for bar in bars) - zero, 1e-6)
    label = max(len(bar.label) for bar in bars)
    width = max(10, min(44, columns() - label - 34))
    full, empty = ("█", "·") if _unicode() else ("#", ".")
    out = []
    for bar in bars:
        first = round((bar.start - zero) / span * (width - 1))
        last = max(first + 1, round((bar.end - zero) / span * width))
        drawn = empty * first + full * (last - first) + empty * (width - last)
        out.append(
            f"{bar.label:<{label}}  {drawn}  {(bar.start - zero) * 1000:7.1f} → {(bar.end - zero) * 1000:7.1f} ms"
        )
    return out


def _unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")
