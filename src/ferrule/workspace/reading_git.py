"""Git in the session's commands: where it only reads, it runs nothing that the repository's settings name."""

from collections.abc import Mapping, Sequence

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.workspace.paths import Jail

_SHOWN = 5


async def reading_git(command: str, cwd: str, ctx: Context, env: Mapping[str, str]) -> dict[str, str]:
    """What a command line has to find in its environment, beside `env`, for the git in it.

    Nothing where there is none, or where the line was let in for more than reading: what a person or a rule has
    allowed runs as it does outside. Raises `ToolFailure`.
    """
    decided = (one for one in ctx.touches if one.kind == "command" and (one.key, one.folder) == (command, cwd))
    folders = next((one.git for one in decided), "")
    return await calm_git(folders.split("\0"), ctx, env) if folders else {}


async def calm_git(
    folders: Sequence[str], ctx: Context, env: Mapping[str, str], more: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """The same for a git that starts in these folders, whatever it was let in for; `more` are settings to add."""
    from ferrule.support.git_environment import UnsafeError, hardened  # for commands with git

    try:
        made = await hardened(folders, env, outside=[root.path for root in ctx.need(Jail).roots], more=more)
    except UnsafeError as error:
        raise ToolFailure(
            f"Git was not run, for {error}. The user can look at it, or run it outside of Ferrule.",
            code="unsafe-repository",
        ) from error
    if made.without:
        more_keys = f" and {len(made.without) - _SHOWN} more" * (len(made.without) > _SHOWN)
        ctx.note(
            f"Git ran without what the repository's own settings name ({', '.join(made.without[:_SHOWN])}{more_keys}): "
            "files with filters may seem changed. In the user's ~/.gitconfig they would be obeyed."
        )
    return made.env
