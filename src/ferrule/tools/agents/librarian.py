"""Ask about other repositories: a subagent that reads those that the user's settings name, beside the workspace."""

import os

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.subagents import Job, Worked
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.support.threads import Threads
from ferrule.tools.agents.asking import READING, specialist, worked
from ferrule.workspace.lent import LentJail, can_be_lent
from ferrule.workspace.paths import Jail

_HOW = '[repositories.NAME] with path = "/where/it/is" and about = "what it is"'


class LibrarianArgs(Args, frozen=True, kw_only=True):
    query: str
    context: str = ""
    """What it is needed for."""


class Librarian(Tool[LibrarianArgs, Worked]):
    """An answer from several repositories. They are lent to be read; nothing in them can be written."""

    name = "librarian"
    args = LibrarianArgs
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
            return await worked(job, ctx)
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
