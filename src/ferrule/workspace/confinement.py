"""What the session's commands are confined to, made from its folders, its guard and its settings."""

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.support.sandbox.profile import Profile, Sandbox, Wrapped
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.precious import Precious, kept
from ferrule.workspace.secrets import HOME as MASKED

if TYPE_CHECKING:
    from ferrule.support.sandbox.proxy import Proxy

KEPT = (
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".ferrule",
    ".claude",
    ".codex",
    ".gemini",
    ".cursor",
    ".opencode",
    ".mcp.json",
    ".amp/settings.json",
    ".amp/settings.jsonc",
    ".amp/plugins",
    ".amp/toolbox",
    ".agents/tools",
    ".agents/checks",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
)
"""Below every writable folder: what git, agents and editors obey. It is kept also where it does not exist yet."""


class Wishes(NamedTuple):
    """What the user wants of it; `settings.Sandbox` says what each means."""

    use: Literal["auto", "bubblewrap", "namespaces", "landlock", "seatbelt", "none"] = "auto"
    required: bool = False
    network: bool = False
    hosts: tuple[str, ...] = ()
    unix_sockets: bool = False
    writable: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()


class Confinement:
    """Wraps commands so that they reach what the session may reach. It fails closed."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        wishes: Wishes,
        *,
        state: str,
        home: Sequence[str],
        is_held: Callable[[], bool] = bool,
    ) -> None:
        """`home` are the folders that the session began with: what was opened later, commands can only read.

        `is_held` tells whether they can write nothing at all now, because the session plans.
        """
        self._jail = jail
        self._guard = guard
        self._wishes = wishes
        self._state = state
        self._home = tuple(home)
        self._is_held = is_held
        self._sandbox: Sandbox | None = None
        self._chosen = False
        self._proxy: Proxy | None = None
        self._precious = Precious(guard)
        self._incomplete = False
        self._told = False
        self._moved: list[str] = []

    @property
    def sandbox(self) -> Sandbox | None:
        """What confines commands here; None where nothing does and that is accepted. Raises `ToolFailure`."""
        if not self._chosen:
            from ferrule.support.sandbox.choose import choose  # for sessions that run commands

            try:
                roots = [root.path for root in self._jail.roots]
                self._sandbox = choose(self._wishes.use, outside=roots)
            except OSError as error:
                raise ToolFailure(f"No command runs: {error}", code="no-sandbox") from error
            self._chosen = True
        if self._sandbox is None and self._wishes.required:
            raise ToolFailure(
                "No command runs: sandbox.required is set, and nothing on this machine can confine one. "
                "`ferrule doctor` says what is missing.",
                code="no-sandbox",
            )
        return self._sandbox

    @property
    def name(self) -> str:
        """`bubblewrap`, `namespaces`, `landlock`, `seatbelt` or `none`."""
        return "none" if self.sandbox is None else self.sandbox.name

    def allow_write(self, folder: str) -> None:
        """The user lets the session's commands write this folder from now on."""
        self._home = (*self._home, folder)

    def allow_network(self) -> None:
        """The user lets the session's commands use the network from now on."""
        self._wishes = self._wishes._replace(network=True)

    async def wrap(self, argv: Sequence[str], *, cwd: str, outside: bool = False) -> Wrapped:
        """The command, confined; with `outside`, which a person has agreed to, as it is.

        Whoever takes it calls its `done` when the command has ended. Raises `ToolFailure`: nothing runs then.
        """
        if outside or self.sandbox is None:
            return Wrapped(tuple(argv))
        try:
            proxy = await self._way_out()
            await self._precious.look_ahead(self._writable())
            strange = self._strange()
            wrapped = self.sandbox.wrap(argv, self._profile_now()._replace(proxy=proxy), cwd=cwd)
            if not any(os.path.isdir(os.path.join(folder, ".git")) for folder in self._home):
                return wrapped
            return wrapped._replace(done=lambda: self._settle(wrapped, strange))
        except (OSError, ValueError) as error:
            message = f"The command was not run, for it could not be confined: {error}"
            raise ToolFailure(message, code="no-sandbox") from error

    def _profile_now(self) -> Profile:
        """For a command that starts now. A git that only reads runs what the settings of its repository name."""
        profile = self.profile()
        if not self._is_held():
            return profile
        return profile._replace(writable=(), kept=(), shown=(*profile.shown, *profile.writable))

    def _strange(self) -> set[str]:
        """Files that would have git take its settings elsewhere. One that is not there cannot be kept: git reads it."""
        paths = [os.path.join(folder, ".git", "commondir") for folder in self._home]
        return {path for path in paths if os.path.lexists(path)}

    def _settle(self, wrapped: Wrapped, before: set[str]) -> None:
        """The command has ended: what was put there for it goes, and so does what it must not leave."""
        wrapped.done()
        for path in self._strange() - before:
            aside = f"{path}.{os.urandom(4).hex()}"
            with contextlib.suppress(OSError):
                os.rename(path, aside)
                self._moved.append(
                    f"A command made {path}, with which git would obey other settings. It is {aside} now."
                )

    def warning(self) -> str:
        """What commands are not kept from or have done, told once; empty where there is nothing to tell."""
        if self._moved:
            return self._moved.pop()
        if self._told or not self._incomplete:
            return ""
        self._told = True
        return (
            "Not all of the workspace could be looked at: secret files in the rest of it are not hidden from commands. "
            "Name them in sandbox.masked."
        )

    def denied(self, output: str, exit_code: int) -> str:
        """What the sandbox seems to have stopped, as a sentence; empty where a command ended for its own reasons."""
        if self.sandbox is None:
            return ""
        from ferrule.support.sandbox.denial import denied  # for commands that failed

        refused = [] if self._proxy is None else self._proxy.take_refused()
        writable = [root.path for root in self._jail.roots]
        return denied(output, exit_code, refused, writable=writable)

    async def close(self) -> None:
        """Let nothing out any more."""
        if self._proxy is not None:
            await self._proxy.close()

    async def _way_out(self) -> str:
        """Where the proxy is that reaches the hosts of the settings; nothing where it is not needed."""
        if not self._wishes.hosts or self._wishes.network:
            return ""
        if self._proxy is None:
            from ferrule.support.sandbox.proxy import Proxy  # for whoever lets hosts through

            self._proxy = Proxy(self._wishes.hosts)
            await self._proxy.start(port=self.name == "seatbelt")
        return self._proxy.address or self._proxy.path

    def _writable(self) -> tuple[str, ...]:
        return _real([*self._home, *map(os.path.expanduser, self._wishes.writable)])

    def profile(self) -> Profile:
        """What commands may touch right now."""
        wishes = self._wishes
        home = os.path.expanduser("~")
        writable = self._writable()
        found = self._precious.find(writable)
        self._incomplete = found.incomplete
        named = [path for folder in writable for path in kept(folder, KEPT) if _below(path, writable)]
        masked = [os.path.join(home, name) for name in MASKED] + [os.path.expanduser(path) for path in wishes.masked]
        own = [path for path in (*_real([self._state]), *self._guard.run) if _below(path, writable)]
        return Profile(
            writable=writable,
            kept=tuple(dict.fromkeys((*named, *found.protected, *self._guard.kept, *own))),
            masked=tuple(dict.fromkeys((*(path for path in masked if os.path.lexists(path)), *found.secret))),
            network=wishes.network,
            hosts=wishes.hosts,
            unix_sockets=wishes.unix_sockets,
            shown=_programs(os.environ.get("PATH", "")),
            loopback=True,  # a test may well talk to a server of its own
        )


def _real(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.isdir(path)))


@functools.lru_cache(maxsize=4)
def _programs(path: str) -> tuple[str, ...]:
    """Where programs and Ferrule itself lie: also where that is below a folder that is private to commands."""
    import sys  # only commands need it

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    on_path = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    return _real([sys.prefix, sys.base_prefix, package, *on_path])


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
