"""Ask for deep reasoning: a subagent that reads, thinks, and answers, and changes nothing."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.subagents import Job, Worked
from ferrule.core.tool import Context, Tool
from ferrule.tools.agents.asking import READING, WEB, specialist, worked

_MOST_FILES = 100


class OracleArgs(Args, frozen=True, kw_only=True):
    task: str
    context: str = ""
    """What is known already."""
    files: tuple[str, ...] = ()
    """Where to begin to read."""


class Oracle(Tool[OracleArgs, Worked]):
    """The answer of a model that is given time to think; it has tools to look with and no others."""

    name = "oracle"
    args = OracleArgs
    timed = False
    waits = True

    def access(self, args: OracleArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is the same for all
        """Nothing by itself: whoever it asks has calls of their own."""
        return ()

    async def run(self, args: OracleArgs, ctx: Context) -> Worked:
        if not args.task.strip():
            raise BadArguments(f"{ctx.param('task')}: is empty; say what is to be thought about.")
        if len(args.files) > _MOST_FILES:
            raise BadArguments(f"{ctx.param('files')}: {len(args.files)} are too many; {_MOST_FILES} is the most.")
        prompt = asked(args.task, args.context, args.files)
        return await worked(
            Job(specialist("oracle", (*READING, *WEB)), prompt, description=args.task.strip()[:80]), ctx
        )


def asked(task: str, context: str, files: tuple[str, ...] = ()) -> str:
    """The prompt. Files are named and not quoted: whoever is asked reads them as they are now, as far as it may."""
    parts = [task.strip()]
    if context.strip():
        parts.append(f"What is known already:\n\n{context.strip()}")
    if files:
        rows = "\n".join(f"- {' '.join(path.split())}" for path in files if path.strip())
        parts.append(f"Files to begin with; read them yourself:\n\n{rows}")
    return "\n\n".join(parts)
