"""Reading back what was left out of a conversation: kept outputs, and the turns before a summary."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ferrule.core.access import Access
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.tool import Args, Context, Facts, Tool
from ferrule.system import Threads
from ferrule.system.stream import TerminalRenderer

if TYPE_CHECKING:
    from ferrule.agent.threads import Keeping


NAME = "recall"
_LINES = 400
_LINE_CHARS = 2_000
_MOST_BYTES = 1 << 26


class OwnThread:
    """The conversation that a call is made in, as its store has it; each subagent's calls have their own."""

    def __init__(self, thread: str, keeping: "Keeping | None") -> None:
        self._thread = thread
        self._keeping = keeping

    async def text(self, name: str) -> str | None:
        """All of it; None where another one is named, or nothing is kept."""
        if self._keeping is None or name.strip().removeprefix("@") != self._thread:
            return None
        try:
            return await self._keeping.text()
        except ConfigError as error:
            raise ToolFailure(str(error), code="store-unusable") from error


class RecallArgs(Args, frozen=True, kw_only=True):
    id: str
    offset: int = 1
    limit: int = _LINES
    pattern: str = ""


class Recall(Tool[RecallArgs, str]):
    """Lines of something that was left out, by its id."""

    name = NAME
    args = RecallArgs
    facts = Facts(kind="thread", planning="reads")
    source = "builtin"
    words = (
        "Read what was left out of this conversation: a full output by the id that stands in its place, or earlier "
        "turns by the id of the thread. `pattern` gives only the lines that a regular expression finds."
    )
    schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id that stands in the place of what was left out."},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line, from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": f"How many lines; {_LINES} by default."},
            "pattern": {"type": "string", "description": "Only lines that this regular expression finds."},
        },
        "required": ["id"],
        "additionalProperties": False,
    }

    def access(self, args: RecallArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it was in the conversation
        return ()

    async def run(self, args: RecallArgs, ctx: Context) -> str:
        text = await ctx.need(OwnThread).text(args.id)
        if text is None:
            text = await _output(args.id, ctx)
        numbered = await ctx.need(Threads).run(_number_lines, text, args.pattern)
        shown = numbered[args.offset - 1 : args.offset - 1 + args.limit]
        if not shown:
            return f"Nothing of it is there: {len(numbered):,} lines in all."
        ctx.note(f"Lines {args.offset} to {args.offset + len(shown) - 1} of {len(numbered):,}.")
        return "\n".join(f"{number}\t{line}" for number, line in shown)


async def _output(output_id: str, ctx: Context) -> str:
    from ferrule.output.store import Store  # for outputs that were left out

    stored = await ctx.need(Store).get(output_id)
    # The store is all sessions': who only knows how an id begins has not had it here.
    if stored is None or stored.id != output_id.strip():
        why = "Give the whole id; what is old may have been let go."
        raise ToolFailure(f"No output is kept as {output_id!r}. {why}", code="not-found")
    if stored.text is not None:
        return stored.text
    assert stored.path is not None
    try:
        return await ctx.need(Threads).run(_read, stored.path)
    except OSError as error:
        raise ToolFailure(f"The output cannot be read any more: {error.strerror}.") from error


def _read(path: str) -> str:
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)), "rb") as file:
        return file.read(_MOST_BYTES).decode(errors="replace")


def _number_lines(text: str, pattern: str) -> list[tuple[int, str]]:
    """The lines with their numbers, or those of them in which the pattern is."""
    # As a reader saw it, and counted as whoever cut it has counted.
    screen = TerminalRenderer()
    seen = screen.feed(text) + screen.end()
    lines = [line[:_LINE_CHARS] for line in seen.removesuffix("\n").split("\n")] if seen else []
    if not pattern:
        return list(enumerate(lines, 1))
    from ferrule.tools.shell.tasks import OutputPattern  # its time is limited

    return [(at + 1, lines[at]) for at in OutputPattern(pattern, "pattern").where(lines)]
