"""Ask the user for more than the session may touch."""

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments
from ferrule.core.tool import ADDS, Args, Context, Tool
from ferrule.files.jail import Jail
from ferrule.sandbox.confinement import Confinement
from ferrule.tools.shell.outcomes import Permitted

_PATHS = 20
_REASON_CHARS = 500


class WidenArgs(Args, frozen=True, kw_only=True):
    network: bool = False
    """May commands use the network?"""
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    reason: str = ""


class Widen(Tool[WidenArgs, Permitted]):
    """Folders are opened by whoever lets this call in: it touches them. What is written there is still asked about."""

    name = "request_permissions"
    args = WidenArgs
    title = "Ask for more permissions"
    hints = ADDS
    timed = False

    def access(self, args: WidenArgs, ctx: Context) -> tuple[Access, ...]:
        paths = dict.fromkeys((*args.read, *args.write))
        if not paths and not args.network:
            raise BadArguments(f"{ctx.param('network')}: ask for the network, or for paths to read or write.")
        if len(paths) > _PATHS:
            raise BadArguments(f"{ctx.param('read')}: names more than {_PATHS} paths.")
        return tuple(Access.read(ctx.path(path)) for path in paths)

    async def run(self, args: WidenArgs, ctx: Context) -> Permitted:
        jail = ctx.need(Jail)
        network = False
        if args.network:
            why = f" ({' '.join(args.reason.split())[:_REASON_CHARS]})" if args.reason.strip() else ""
            network = await ctx.approve(f"let commands use the network for the rest of this session{why}")
            if network:
                ctx.need(Confinement).allow_network()
            else:
                ctx.note("The user did not allow the network.")
        for path in map(ctx.path, args.write):
            if jail.holds(path):
                ctx.need(Confinement).allow_write(path)
        return Permitted(
            network,
            tuple(path for path in map(ctx.path, args.read) if jail.holds(path)),
            tuple(path for path in map(ctx.path, args.write) if jail.holds(path)),
        )
