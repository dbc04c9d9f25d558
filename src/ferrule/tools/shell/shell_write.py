"""Type into a task, or look at what it has printed since the last time."""

import errno
import time

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tasks import TaskRead
from ferrule.core.tool import Context, Tool
from ferrule.support.tasks import Tasks
from ferrule.tools.shell.named import TaskArgs, find
from ferrule.tools.shell.starting import middle_cut, seen, token_chars

_TYPED_SECONDS, _LOOKED_SECONDS, _MOST_SECONDS = 0.25, 5.0, 300.0
_ENDING = "\x03\x04\x1c"
"""What interrupts a program, ends its input or makes it quit."""


class ShellWriteArgs(TaskArgs, frozen=True, kw_only=True):
    chars: str = ""
    """What to type; nothing to look only."""
    seconds: float | None = None
    """After this time the call comes back."""
    most_tokens: float = 10_000


class ShellWrite(Tool[ShellWriteArgs, TaskRead]):
    """What is typed into a shell or an interpreter is run by it, so it is asked about like a command."""

    name = "shell_write"
    args = ShellWriteArgs
    timed = False
    extras = ("task_id", "pid")

    def access(self, args: ShellWriteArgs, ctx: Context) -> tuple[Access, ...]:
        task = find(args, ctx)
        if args.most_tokens < 1:
            raise BadArguments(f"{ctx.param('most_tokens')}: must be at least 1.")
        if not args.chars:
            return (Access("process", "read", task.id),)
        if not args.chars.strip(_ENDING):
            # Who was let start it may end it.
            return (Access("process", "write", task.id, "own"),)
        return (Access.process(task.id),)

    async def run(self, args: ShellWriteArgs, ctx: Context) -> TaskRead:
        task, begun = find(args, ctx), time.perf_counter()
        if args.chars:
            if task.running.ended:
                raise ToolFailure(f"Nothing was typed: {task.ending()}", code="not-running")
            try:
                await task.running.write(args.chars.encode(errors="surrogateescape"))
            except OSError as error:
                if error.errno == errno.EBADF and not args.chars.strip(_ENDING):
                    await ctx.need(Tasks).stop(task)  # without a terminal nobody makes a signal of it
                    return TaskRead(seen(task, task.running.news()), "ended", time.perf_counter() - begun)
                raise ToolFailure(_unread(task.label, error), code="no-stdin") from error
        seconds = (_TYPED_SECONDS if args.chars else _LOOKED_SECONDS) if args.seconds is None else args.seconds
        why = await task.running.wait(min(max(seconds, 0.0), _MOST_SECONDS))
        news = task.running.news()
        task.told = task.told or task.running.ended
        total_chars = task.running.news_chars
        shown = middle_cut(news, token_chars(args.most_tokens), total_chars)
        return TaskRead(
            seen(task, shown, total_chars=total_chars),
            "ended" if why == "ended" else "time",
            time.perf_counter() - begun,
        )


def _unread(label: str, error: OSError) -> str:
    if error.errno == errno.EBADF:
        return f"{label} reads nothing: it was started without a terminal. Start it again with one to type into it."
    return f"{label} did not take it: {error.strerror}."
