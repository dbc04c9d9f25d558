"""Define the profile of a confined command, and choose the sandbox that enforces it on this machine.

A profile is independent of the way it is enforced. The strongest sandbox that works is chosen, or the one that
was asked for; if that does not work, there is an error. The module also makes the variables that lead the
programs of a confined command to the proxy.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol


class SandboxError(OSError):
    """A profile cannot be enforced. The message says what to do."""


def refuse_whole(writable: Sequence[str]) -> None:
    """Raise SandboxError where the whole machine is to be writable, for that is no confinement."""
    if os.sep in writable:
        raise SandboxError("A command that may write the whole machine cannot be confined: name folders instead of /.")


def do_nothing() -> None:
    """Most commands leave nothing behind."""


class Profile(NamedTuple):
    """All paths are absolute and real. Whatever is not named here can be read and not written."""

    writable: tuple[str, ...] = ()
    """Folders that may be written: the workspace and what the user added. They exist."""
    kept: tuple[str, ...] = ()
    """Files and folders inside the writable ones that stay as they are. Where they do not exist, only seatbelt can
    forbid that they are made; the other ways leave that to whoever compares before and after."""
    masked: tuple[str, ...] = ()
    """Files and folders whose contents cannot be read. Those that do not exist are left out."""
    network: bool = False
    """May it use the network like any program?"""
    hosts: tuple[str, ...] = ()
    """Where `network` is off: the hosts that it may reach through the proxy, `example.org` or `*.example.org`."""
    unix_sockets: bool = False
    """May it open sockets to other programs of this machine?"""
    proxy: str = ""
    """How hosts are reached: the address of the proxy, `http://127.0.0.1:port` inside or `http://…@127.0.0.1:port`."""
    loopback: bool = False
    """Where `network` is off: may it talk to itself over 127.0.0.1, in the network of its session?"""
    shown: tuple[str, ...] = ()
    """Folders below private places, such as /tmp, that can be read all the same; but nothing in them that is masked."""
    hidden: tuple[str, ...] = ()
    """Folders that seem empty, and cannot be written, but for what is shown, written or a layer below them: the home
    folder."""
    layers: tuple[tuple[str, str], ...] = ()
    """Folders in whose place it has another one, which it may write: /tmp, as (path, source)."""
    caches: tuple[tuple[str, str], ...] = ()
    """Folders of which it sees the contents, while what it writes goes into another folder: (path, folder)."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Files in whose place it reads another one, as (path, source)."""
    machine: str = ""
    """The name of the session whose network it shares; commands of one name reach one another over 127.0.0.1."""


class Wrapped(NamedTuple):
    """How a confined command is started."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    """What is added to its environment, such as the address of the proxy."""
    descriptors: tuple[int, ...] = ()
    """Descriptors that it inherits under their own numbers. Whoever starts it closes them after the start."""
    starter: object = None
    """What starts it, a `Starter`, where starting it takes more than an argument list; None: as any other program."""
    done: Callable[[], None] = do_nothing
    """Called once, however it ended and also if it never started."""
    is_done_soon: bool = False
    """Does that take less than it takes to have another thread do it?"""


class Sandbox(Protocol):
    """One way to enforce a profile."""

    name: str
    """`bubblewrap`, `namespaces`, `landlock` or `seatbelt`."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """What it cannot enforce on this machine, each as a sentence."""

    def wrap(self, argv: Sequence[str], profile: Profile, *, cwd: str) -> Wrapped:
        """The command, confined. Raises OSError where that cannot be had: nothing runs then."""


class SandboxBackend(Sandbox, Protocol):
    """A sandbox that can be tried."""

    def works(self) -> str:
        """Nothing where it confines for real on this machine, or else why not."""


Wanted = Literal["auto", "bubblewrap", "namespaces", "landlock", "seatbelt", "none"]

NAMES: tuple[Wanted, ...] = ("namespaces", "bubblewrap", "landlock", "seatbelt")
"""In the order in which they are taken on Linux, the fastest first; the last one is that of macOS."""


class BackendStatus(NamedTuple):
    """What `ferrule doctor` says of one of them."""

    name: str
    works: bool
    why: str
    """Why it does not work; where it works, what it cannot enforce, or nothing."""


_ADVICE = {
    "bubblewrap": "Install bubblewrap and allow user namespaces",
    "namespaces": "Allow user namespaces",
    "landlock": "Use a kernel with Landlock",
    "seatbelt": "Use macOS",
}


def choose(wanted: Wanted = "auto", *, outside: Sequence[str] = ()) -> Sandbox | None:
    """The sandbox to use; None where none is wanted, or with `auto` where this machine has none.

    `outside` are the folders whose programs are not trusted. Raises SandboxError where the wanted one does not work.
    """
    if wanted == "none":
        return None
    if wanted == "auto":
        return next((found for found in map(_maker(outside), NAMES) if not found.works()), None)
    if wanted not in NAMES:
        raise SandboxError(f"There is no sandbox called {wanted!r}. Choose one of auto, {', '.join(NAMES)}, none.")
    found = _maker(outside)(wanted)
    why = found.works()
    if why:
        raise SandboxError(
            f"The sandbox {wanted} does not work here: {why.rstrip('.')}. {_ADVICE[wanted]}, or choose another one in "
            "the setting sandbox.use; auto takes the strongest that works."
        )
    return found


def report(*, outside: Sequence[str] = ()) -> list[BackendStatus]:
    """Every sandbox: whether it works, and why not or what it lacks."""
    rows: list[BackendStatus] = []
    for found in map(_maker(outside), NAMES):
        why = found.works()
        rows.append(BackendStatus(found.name, not why, why or " ".join(found.lacks)))
    return rows


def _maker(outside: Sequence[str]) -> Callable[[str], SandboxBackend]:
    """Makes one by its name. Each is imported when it is its turn: most machines need the first only."""

    def namespaces() -> SandboxBackend:
        from ferrule.sandbox.landlock import Namespaces

        return Namespaces()

    def make(name: str) -> SandboxBackend:
        if name == "bubblewrap":
            from ferrule.sandbox.bubblewrap import Bubblewrap

            return Bubblewrap(outside=outside, otherwise=namespaces)
        if name == "namespaces":
            return namespaces()
        if name == "landlock":
            from ferrule.sandbox.landlock import Landlock

            return Landlock()
        from ferrule.sandbox.seatbelt import Seatbelt

        return Seatbelt()

    return make


PORT = 3128
"""Where the proxy is to be found inside. The network there has nobody else in it."""
ADDRESS = f"http://127.0.0.1:{PORT}"
_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "npm_config_proxy")


def proxy_environment(profile: Profile) -> dict[str, str]:
    """What is added to the environment where hosts are reached through the proxy."""
    if profile.network or not profile.proxy:
        return {}
    env = dict.fromkeys(_NAMES, profile.proxy)
    return env | dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1") | {"NODE_USE_ENV_PROXY": "1"}
