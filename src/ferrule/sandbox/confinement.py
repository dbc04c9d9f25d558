"""What the session's commands are confined to, made from its folders, its guard and its settings."""

import functools
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Preview
from ferrule.files.guard import HOME as MASKED
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.git.environment import find_ignored, top_of
from ferrule.sandbox import ADDRESS, Profile, Sandbox, Wrapped, choose
from ferrule.sandbox.denial import find_denial
from ferrule.sandbox.hidden import Precious, SensitivePaths, find_kept_paths
from ferrule.sandbox.home import HomeView, Temporary, environments, find_hidden_path, home_view
from ferrule.sandbox.landlock import cell_of
from ferrule.sandbox.network import Machine
from ferrule.sandbox.proxy import SandboxProxy
from ferrule.sandbox.spawner import Confined
from ferrule.sandbox.tripwire import Aside, Tripwire, absent
from ferrule.system.hosts import entries

if TYPE_CHECKING:
    from ferrule.sandbox.network import ListenerAddress
    from ferrule.sandbox.spawner import CellKind
    from ferrule.sandbox.web_address import Inside


_TMP = "/tmp"  # noqa: S108 - the name under which commands have their own
_PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - what is empty for commands anyway
_SHOWN = 5
_GIT = re.compile(r"\bgit\b.*\b(?:add|commit|stash|status|clean|ls-files)\b", re.DOTALL)
"""Commands in which git looks for files that it does not know."""
_OF_MOUNTS = ("namespaces", "bubblewrap")
"""The ways that give a session a network, a /tmp and a home folder of its own."""
_WHOLE = (*_OF_MOUNTS, "seatbelt")
"""The ways that keep commands from every file that they are to be kept from."""

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
        is_shared: bool = False,
    ) -> None:
        """`home` are the folders that the session began with: what was opened later, commands can only read.

        `is_held` tells whether they can write nothing at all now, because the session plans. `is_shared`: the /tmp of
        its commands is that of all such sessions of the workspace.
        """
        self._jail = jail
        self._guard = guard
        self._wishes = wishes
        self._state = state
        self._home = tuple(home)
        self._is_held = is_held
        self._is_shared = is_shared
        self._sandbox: Sandbox | None = None
        self._chosen = False
        self._proxy: SandboxProxy | None = None
        self._machine: Machine | None = None
        self._temporary: Temporary | None = None
        self._precious = Precious(guard, os.path.join(state, "committed"))
        self._tripwire = Tripwire(guard, os.path.join(state, "aside"))
        self._tripwire.alarm = self._stop_all
        self._view: HomeView | None = None
        self._shown: tuple[str, ...] = ()
        self._caches: tuple[tuple[str, str], ...] = ()
        self._incomplete = False
        self._told = False
        self._stopped = False
        self.reserved: frozenset[int] = frozenset()
        """Ports of this machine at which the settings look for models: none of them is ever forwarded."""
        self.is_watched = False
        """Does a person sit before it, as in the chat?"""
        self.keep_host: Callable[[str], None] = lambda _: None
        """Lets the commands of later sessions reach a host as well."""
        self._passed: set[str] = set()
        """Secret files of which was said that git passes over them."""
        self._reported: set[int] = set()
        """The ports that the model was told of."""

    @property
    def sandbox(self) -> Sandbox | None:
        """What confines commands here; None where nothing does and that is accepted. Raises `ToolFailure`."""
        if not self._chosen:
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

    @property
    def machine(self) -> "Machine":
        """The network that the session's commands share."""
        if self._machine is None:
            self._machine = Machine()
        return self._machine

    @property
    def machine_or_none(self) -> "Machine | None":
        """The same, if any command has needed it."""
        return self._machine

    def temporary(self) -> str:
        """The folder that commands have as /tmp, or as TMPDIR where they have no /tmp of their own. Raises OSError."""
        if self._temporary is None:
            self._temporary = Temporary(self._state, workspace=self._jail.folder if self._is_shared else "")
        return self._temporary.path

    @property
    def has_own_tmp(self) -> bool:
        """Do commands have a /tmp that is not the machine's?"""
        return self.name in _OF_MOUNTS

    def is_whole(self) -> bool:
        """May commands run unasked because they are confined?"""
        return not self.why_not_whole()

    def why_not_whole(self) -> str:
        """Why commands may not run unasked because they are confined, as a sentence; empty where the walls are whole.

        It is asked for every command: what was found of secret files a moment ago still holds.
        """
        try:
            name = self.name
        except ToolFailure as error:
            return error.message
        if name != "none" and name not in _WHOLE:
            return f"The sandbox {name} cannot take files out of the folders that commands write."
        if self._wishes.network:
            return "Commands may use the whole network."
        if self._wishes.unix_sockets:
            return "Commands may talk to other programs of this machine (setting sandbox.unix_sockets)."
        return self.why_not_hidden()

    def why_not_hidden(self) -> str:
        """Why secrets are not hidden from commands, as a sentence; empty where all of them are."""
        try:
            name = self.name
        except ToolFailure as error:
            return error.message
        if name == "none":
            return "Nothing confines commands here."
        found = self._precious.find(self._writable())
        if found.incomplete:
            return "Not all of the workspace could be searched for secret files."
        if name == "landlock" and (found.secret or found.replaced):
            return "The sandbox landlock cannot hide the secret files of the workspace."
        return ""

    def hidden_files(self) -> frozenset[str]:
        """The secret files that no command can see or change; none where commands see all files."""
        if self.sandbox is None or self.name == "landlock":
            return frozenset()
        found = self._precious.find(self._writable())
        return frozenset((*found.secret, *(path for path, _ in found.replaced)))

    def allow_write(self, folder: str) -> None:
        """The user lets the session's commands write this folder from now on."""
        self._home = (*self._home, folder)

    def allow_network(self) -> None:
        """The user lets the session's commands use the network from now on."""
        self._wishes = self._wishes._replace(network=True)

    def allow_host(self, host: str, *, for_good: bool = False) -> None:
        """The user lets the session's commands reach this host from now on. Raises ValueError for what is none.

        `for_good`: and those of later sessions of the workspace.
        """
        entries((host,))
        self._wishes = self._wishes._replace(hosts=(*self._wishes.hosts, host))
        if self._machine is not None:
            self._machine.allow(host)
        if for_good:
            self.keep_host(host)

    async def wrap(self, argv: Sequence[str], *, cwd: str, outside: bool = False, is_certain: bool = False) -> Wrapped:
        """The command, confined; with `outside`, which a person has agreed to, as it is.

        `is_certain`: the program and the folder are there, so that nobody waits until it runs.
        Whoever takes it calls its `done` when the command has ended. Raises `ToolFailure`: nothing runs then.
        """
        if outside or self.sandbox is None:
            self._guard.committed.seal(())  # what is committed from now on unmasks nothing
            return Wrapped(tuple(argv))
        try:
            writable = self._writable()
            await self._precious.look_ahead(writable)
            profile = self._profile_now(writable)._replace(proxy=await self._way_out(writable))
            wrapped = self.sandbox.wrap(argv, profile, cwd=cwd)
            if is_certain and isinstance(wrapped.starter, Confined):
                wrapped.starter.is_certain = True
            if not profile.writable:
                return wrapped
            found = self._precious.find(writable)
            # Landlock takes nothing out of a folder that can be written.
            exposed = self._find_kept(writable, found) if self.name == "landlock" else ()
            self._tripwire.begin(profile.writable, profile.kept, found.protected, exposed)
            return wrapped._replace(done=lambda: self._settle(wrapped), is_done_soon=self._precious.is_small)
        except (OSError, ValueError) as error:
            message = f"The command was not run, for it could not be confined: {error}"
            raise ToolFailure(message, code="no-sandbox") from error

    def _profile_now(self, writable: tuple[str, ...]) -> Profile:
        """For a command that starts now. A git that only reads runs what the settings of its repository name."""
        profile = self.profile(writable)
        if not self._is_held():
            return profile
        return profile._replace(writable=(), kept=(), shown=(*profile.shown, *profile.writable))

    def _settle(self, wrapped: Wrapped) -> None:
        """The command has ended: what it must not leave goes."""
        wrapped.done()
        if self._machine is not None:
            self._machine.command_ended()
        self._tripwire.end(self._precious.find(self._writable(), fresh=True).protected)

    def _stop_all(self) -> None:
        """Stop all commands of the session: one of them goes on bringing protected paths into being."""
        if self._machine is not None:
            self._stopped = True
            self._machine.stop_commands()

    def warnings(self) -> list[str]:
        """What commands are not kept from or have done, each told once."""
        told: list[str] = []
        if self._stopped:
            self._stopped = False
            told.append("All running commands were stopped, because one of them made protected files again and again.")
        if self._incomplete and not self._told:
            self._told = True
            told.append(
                "The search for secret files did not reach all of the workspace: those among the rest are not hidden "
                "from commands. Name them in sandbox.masked."
            )
        return told

    async def describe_skipped_files(self, command: str) -> str:
        """What is said of secret files that git would have found in a command, had they not been hidden; once each."""
        found = self._precious.find(self._writable())
        if not (found.excludes and _GIT.search(command)):
            return ""

        fresh = [path for path in found.secret if path not in self._passed]
        self._passed.update(fresh)
        by_top: dict[str, list[str]] = {}
        for path in fresh:
            by_top.setdefault(top_of(os.path.dirname(path)), []).append(path)
        roots = [root.path for root in self._jail.roots]
        missed: list[str] = []
        for top, paths in by_top.items():
            if top:
                known = await find_ignored(top, paths, os.environ, outside=roots)
                missed += [self._jail.display_path(path) for path in paths if path not in known]
        if not missed:
            return ""
        more = f" and {len(missed) - _SHOWN} more" * (len(missed) > _SHOWN)
        return (
            f"Git passes over {', '.join(missed[:_SHOWN])}{more} in commands, as if ignored: what is secret cannot be "
            "read there. The user can name it in .gitignore, or open it with the setting files.guarded_allow."
        )

    def set_aside(self) -> list[tuple[Aside, Preview]]:
        """What commands have written and was set aside, with what a person can be asked about, each told once."""
        return [(aside, self._tripwire.contents(aside)) for aside in self._tripwire.take()]

    def bring_back(self, aside: Aside, contents: Preview) -> bool:
        """Put it back, as a person has agreed."""
        return self._tripwire.bring_back(aside, contents)

    async def names_asked(self) -> None:
        """Wait until a command asks for the name of a host that it may not reach."""
        await self.machine.names.heard.wait()

    def unresolved_hosts(self) -> list[str]:
        """The hosts that commands asked for since `denied` was last asked."""
        return [] if self._machine is None else self._machine.names.look()

    def inside(self) -> "Inside | None":
        """The network that commands share, for who fetches pages; None where none has run, or it is the machine's."""
        if self._machine is None or self._wishes.network:
            return None
        from ferrule.sandbox.web_address import Inside  # who fetches has loaded it

        return Inside(self._machine.listens, self._machine.connect)

    def take_new_listeners(self) -> "list[ListenerAddress]":
        """Where commands listen now that the model was not told of."""
        if self._machine is None or self._wishes.network:
            return []
        self._machine.stop_forwards()
        now = self._machine.listeners()
        fresh = [one for one in now if one.port not in self._reported]
        self._reported = {one.port for one in now}
        return fresh

    def ports(self) -> list[tuple[int, bool]]:
        """Where commands listen now, and whether the user reaches the port. It asks the cell: call it on a thread."""
        machine = self._machine
        if machine is None or self._wishes.network:
            return []
        numbers = sorted({one.port for one in machine.listeners()})
        return [(number, number in machine.forwarded) for number in numbers]

    async def forward(self, port: int, by_itself: Literal["auto", "on", "off"]) -> bool:
        """Have the user reach a port of the session's network on their own loopback, where that is wanted and safe."""
        wanted = by_itself == "on" or (by_itself == "auto" and self.is_watched)
        machine = self.machine
        if not wanted or port in self.reserved or not machine.forwards_by_itself(port):
            return False
        return not await machine.forward(port)

    def explain_denial(self, output: str, exit_code: int) -> str:
        """What the sandbox seems to have stopped, as a sentence; empty where a command ended for its own reasons."""
        if self.sandbox is None:
            return ""

        refused = [] if self._proxy is None else self._proxy.take_refused()
        asked: list[str] = []
        if self._machine is not None:
            refused += self._machine.proxy.take_refused()
            asked = self._machine.names.take()
        writable = [root.path for root in self._jail.roots]
        sentence = find_denial(output, exit_code, refused, asked, writable=writable)
        if sentence or exit_code == 0:
            return sentence
        if hidden := self._explain_hidden(output):
            return hidden
        if self._view is None:
            return ""
        home = os.path.expanduser("~")
        path = find_hidden_path(output, home, (*self._writable(), *self._view.shown, *self._view.caches))
        return f"The sandbox hides {path}: of the home folder, commands see toolchains and caches only." if path else ""

    def _explain_hidden(self, output: str) -> str:
        """What is said of a secret file that a failed command speaks of."""
        found = self._precious.find(self._writable())
        for path, _ in found.excludes:
            if self._jail.display_path(path) in output:
                return (
                    f"The sandbox keeps {self._jail.display_path(path)} as it is: while there are secret files, "
                    "commands see one that names those too."
                )
        for path in (*found.secret, *(path for path, _ in found.replaced)):
            shown = self._jail.display_path(path)
            if re.search(rf"(?<![\w.-]){re.escape(shown)}(?![\w-])", output):
                return (
                    f"The sandbox hides {shown} from commands, because it is secret. The user can open it with the "
                    "setting files.guarded_allow."
                )
        return ""

    async def close(self) -> None:
        """Let nothing out any more."""
        self._tripwire.close()
        self._precious.close()
        if self._proxy is not None:
            await self._proxy.close()
        if self._machine is not None:
            await self._machine.close()
        if self._temporary is not None:
            self._temporary.close()

    async def _way_out(self, writable: tuple[str, ...]) -> str:
        """Where the proxy is that reaches the hosts of the settings; nothing where it is not needed."""
        if self._wishes.network:
            return ""
        hosts = self._wishes.hosts
        if self.name in _OF_MOUNTS:
            kind = self._network(writable)
            if kind is None:
                return ""
            await self.machine.start(kind, hosts)
            return ADDRESS if hosts else ""
        if not hosts:
            return ""
        if self._proxy is None:
            self._proxy = SandboxProxy(hosts)
            await self._proxy.start()
        return self._proxy.address

    def _network(self, writable: tuple[str, ...]) -> "CellKind | None":
        """The cell whose network the session's commands share; None where each has its own."""
        wishes = self._wishes
        profile = Profile(
            writable=writable,
            network=wishes.network,
            unix_sockets=wishes.unix_sockets,
            loopback=True,
            machine=self.machine.name,
        )
        if self.name == "namespaces":
            return cell_of(profile)
        from ferrule.sandbox.bubblewrap import network_of  # the same

        return network_of(profile)

    def _writable(self) -> tuple[str, ...]:
        return _real([*self._home, *map(os.path.expanduser, self._wishes.writable)])

    def profile(self, writable: tuple[str, ...] | None = None) -> Profile:
        """What commands may touch right now; `writable` are their folders, where those are known."""
        wishes = self._wishes
        home = os.path.realpath(os.path.expanduser("~"))
        writable = self._writable() if writable is None else writable
        found = self._precious.find(writable)
        self._incomplete = found.incomplete
        masked = [*_at_home(home), *map(os.path.expanduser, wishes.masked)]
        missing = set(absent(masked))
        own = [path for path in (*_real([self._state]), *self._guard.run) if _below(path, writable)]
        profile = Profile(
            writable=writable,
            kept=tuple(dict.fromkeys((*self._find_kept(writable, found), *self._guard.kept, *own))),
            masked=tuple(dict.fromkeys((*(path for path in masked if path not in missing), *found.secret))),
            network=wishes.network,
            hosts=wishes.hosts,
            unix_sockets=wishes.unix_sockets,
            shown=(*_programs(os.environ.get("PATH", "")), *(root.path for root in self._jail.roots)),
            loopback=True,  # a test may well talk to a server of its own
            layers=((_TMP, self.temporary()),),
            replaced=(*found.replaced, *found.excludes),
        )
        if self.name not in _OF_MOUNTS:
            assert self._temporary is not None
            others = self._temporary.all  # those of other sessions are nobody else's business
            return profile if _below(others, writable) else profile._replace(masked=(*profile.masked, others))
        profile = profile._replace(machine=self.machine.name)
        if home == os.sep or any(within(home, folder) for folder in writable):
            return profile  # the user works in the home folder itself
        if self._view is None:
            self._view = home_view(home, os.environ)
            self._shown = _real_paths(self._view.shown)
            self._caches = tuple((path, self._cache(path, home)) for path in self._view.caches)
        hidden = () if any(within(home, folder) for folder in _PRIVATE) else (home,)
        return profile._replace(hidden=hidden, shown=(*profile.shown, *self._shown), caches=self._caches)

    def read_only_profile(self, *shown: str) -> Profile:
        """What a program may touch that writes nothing and reaches nobody; `shown` are more folders that it reads."""
        profile = self.profile()
        return profile._replace(
            writable=(), kept=(), network=False, hosts=(), unix_sockets=False, shown=(*profile.shown, *shown)
        )

    def _find_kept(self, writable: Sequence[str], found: SensitivePaths) -> list[str]:
        """What stays as it is. Git's settings are compared instead: git itself may change them."""
        named = [path for folder in writable for path in find_kept_paths(folder, KEPT) if _below(path, writable)]
        return [path for path in (*named, *found.protected) if not _is_git_settings(path)]

    def _cache(self, path: str, home: str) -> str:
        """Where what commands write into a cache goes."""
        self.temporary()
        assert self._temporary is not None
        name = os.path.relpath(path, home).replace(os.sep, "+")
        folder = os.path.join(self._temporary.caches(), f"{name}-{self._wishes.network:d}{self._wishes.unix_sockets:d}")
        for name in ("upper", "work"):
            os.makedirs(os.path.join(folder, name), 0o700, exist_ok=True)
        return folder


@functools.lru_cache(maxsize=4)
def _at_home(home: str) -> tuple[str, ...]:
    return tuple(os.path.join(home, name) for name in MASKED)


def _is_git_settings(path: str) -> bool:
    folder, name = os.path.split(path)
    return name in {"config", "config.worktree"} and os.path.isdir(os.path.join(folder, "objects"))


def _real_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Paths and, where they are links, what those lead to."""
    return tuple(dict.fromkeys(each for path in paths for each in (path, os.path.realpath(path))))


def _real(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.isdir(path)))


@functools.lru_cache(maxsize=4)
def _programs(path: str) -> tuple[str, ...]:
    """Where programs and Ferrule itself lie: also where that is below a folder that is private to commands."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    whole = environments({**os.environ, "PATH": path}, os.path.expanduser("~"))
    return _real([sys.prefix, sys.base_prefix, package, *whole])


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
