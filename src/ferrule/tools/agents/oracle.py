"""Ask a subagent for deep reasoning, or for answers about other repositories.

The subagents read and answer; they change nothing. Only repositories that the user's settings name can be read
beside the workspace.
"""

import os

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.subagents import Job, Worked
from ferrule.core.tool import READS, READS_OUTSIDE, Args, Context, Tool
from ferrule.files.jail import Jail, LentJail, can_be_lent
from ferrule.settings.schema import Settings
from ferrule.system.threads import Threads
from ferrule.tools.agents.work import READING, WEB, run_job, specialist

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
    title = "Ask for deep reasoning"
    hints = READS_OUTSIDE
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
        prompt = build_oracle_prompt(args.task, args.context, args.files)
        return await run_job(
            Job(specialist("oracle", (*READING, *WEB)), prompt, description=args.task.strip()[:80]), ctx
        )


def build_oracle_prompt(task: str, context: str, files: tuple[str, ...] = ()) -> str:
    """The prompt. Files are named and not quoted: whoever is asked reads them as they are now, as far as it may."""
    parts = [task.strip()]
    if context.strip():
        parts.append(f"What is known already:\n\n{context.strip()}")
    if files:
        rows = "\n".join(f"- {' '.join(path.split())}" for path in files if path.strip())
        parts.append(f"Files to begin with; read them yourself:\n\n{rows}")
    return "\n\n".join(parts)


_HOW = '[repositories.NAME] with path = "/where/it/is" and about = "what it is"'


class LibrarianArgs(Args, frozen=True, kw_only=True):
    query: str
    context: str = ""
    """What it is needed for."""


class Librarian(Tool[LibrarianArgs, Worked]):
    """An answer from several repositories. They are lent to be read; nothing in them can be written."""

    name = "librarian"
    args = LibrarianArgs
    title = "Ask about other repositories"
    hints = READS
    timed = False
    waits = True

    def access(self, args: LibrarianArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the same for all
        """Nothing by itself: whoever it asks has calls of their own."""
        return ()

    async def run(self, args: LibrarianArgs, ctx: Context) -> Worked:
        if not args.query.strip():
            raise BadArguments(f"{ctx.param('query')}: is empty; say what you want to know.")
        folders, rows = await ctx.need(Threads).run(_repositories, ctx)
        jail = LentJail(ctx.need(Jail), folders)
        parts = [args.query.strip()]
        if args.context.strip():
            parts.append(f"What it is needed for:\n\n{args.context.strip()}")
        parts.append("The repositories, by the folders that they are in:\n\n" + "\n".join(rows))
        agent = specialist("librarian", READING)
        job = Job(agent, "\n\n".join(parts), description=args.query.strip()[:80], services={"Jail": jail})
        try:
            return await run_job(job, ctx)
        finally:
            jail.close()


def _repositories(ctx: Context) -> tuple[list[str], list[str]]:
    """The folders that can be lent, and what the subagent is told of each."""
    named = ctx.need(Settings).repositories
    if not named:
        raise ToolFailure(
            f"No repositories are set, so there is nothing to look in. Ask the user to add {_HOW} to the user's own "
            "settings; a project's settings cannot.",
            code="no-repositories",
        )
    folders, rows, missing = [], [], []
    for name, repository in named.items():
        if not os.path.isabs(os.path.expanduser(repository.path)) or not can_be_lent(repository.path):
            missing.append(f"{name} ({repository.path})")
            continue
        folder = os.path.realpath(os.path.expanduser(repository.path))
        folders.append(folder)
        rows.append(f"- {name}: {folder}" + f" ({repository.about})" * bool(repository.about))
    if missing:
        said = f"These repositories of the settings are no folders with absolute paths: {', '.join(missing)}."
        if not folders:
            raise ToolFailure(f"{said} Ask the user to mend them.", code="no-repositories")
        ctx.note(said)
    rows.append(f"- the workspace itself: {ctx.need(Jail).folder}")
    return folders, rows
