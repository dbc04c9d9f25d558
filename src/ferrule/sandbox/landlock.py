"""Confine commands without bubblewrap: by namespaces of their own, or by Landlock and a system call filter.

Namespaces need Linux 5.12 or later, and no program or library but Python's. Landlock needs Linux 5.13 or later,
and is for machines that refuse namespaces.
"""

import functools
import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence

from ferrule.sandbox import Profile, Wrapped, proxy_environment, refuse_whole, spawner
from ferrule.sandbox.placeholders import within

_LATER = (
    "A secret or protected file that another program creates or replaces while a command runs is not hidden from that"
    " command, or not protected against it; those that run later find it hidden or protected."
)
_PROC = (
    "Commands see which other processes there are: this machine does not let them have a /proc of their own."
    " They cannot look into them or signal them."
)


class Namespaces:
    """A view of the files in which little can be written, and no other processes and no network."""

    name = "namespaces"

    @property
    def lacks(self) -> tuple[str, ...]:
        """What it cannot enforce here; all of it where it does not work."""
        has_proc = not namespaces_work() and spawner.cell(spawner.CellKind("namespaces")).ready[1] == b"1"
        return (_LATER,) if has_proc else (_LATER, _PROC)

    def works(self) -> str:
        """Nothing, or why commands cannot be confined this way here."""
        return namespaces_work()

    def wrap(self, argv: Sequence[str], profile: Profile, *, cwd: str) -> Wrapped:
        """The command, confined. The paths are looked at when it starts, which fails if they cannot be enforced."""
        del cwd  # it is the starter's business, and inside it is the same path
        refuse_whole(profile.writable)
        kind = cell_of(profile)
        # Under another name what is masked would be seen.
        shown = _real(profile.shown)
        masked = (*profile.masked, *_targets(profile))
        starter = spawner.Confined(kind, profile._replace(shown=shown, masked=masked))
        env = {"TMPDIR": "/tmp"}  # noqa: S108 - a private one
        return Wrapped(tuple(argv), {**env, **proxy_environment(profile)}, starter=starter)


def cell_of(profile: Profile) -> spawner.CellKind:
    """The cell in which the commands of a session run."""
    return spawner.CellKind(
        "namespaces",
        network=profile.network,
        unix_sockets=profile.unix_sockets,
        loopback=profile.loopback,
        machine=profile.machine,
    )


@functools.lru_cache(maxsize=8)
def _real(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(os.path.realpath, paths))


def _targets(profile: Profile) -> Iterator[str]:
    """What masked links lead to, but no devices, and nothing that holds a writable folder."""
    for path in map(os.path.realpath, filter(os.path.islink, profile.masked)):
        if (os.path.isfile(path) or os.path.isdir(path)) and not any(within(root, path) for root in profile.writable):
            yield path


@functools.cache
def namespaces_work() -> str:
    """Nothing, or why commands cannot be confined this way here. Tried once, for real."""
    return probe(spawner.CellKind("namespaces"))


def probe(kind: spawner.CellKind) -> str:
    if sys.platform != "linux":
        return "This is not Linux."
    try:
        with open(os.devnull, "r+b", buffering=0) as nothing:
            file = nothing.fileno()
            shell = shutil.which("sh", path=os.defpath) or "/bin/sh"
            started = spawner.Confined(kind, Profile()).start(
                [shell, "-c", ":"], cwd="/", env={}, stdin=file, stdout=file, stderr=file
            )
            code = started.wait(30.0)
    except OSError as error:
        return f"The kernel refuses: {error.strerror or error}."
    return "" if code == 0 else f"A command that does nothing ends with code {code}."


_ALWAYS = (
    "Secret files inside the writable folders can be read: Landlock cannot take a file out of a folder.",
    "Because of that, sandbox.auto_allow does not hold where there are some.",
    "Protected files inside the writable folders can be changed. They are brought back when that is noticed.",
    "The names in hidden folders can be listed.",
    "Commands cannot make terminals: who may open a new one by its name may open all, the user's own included.",
    "Commands see which other processes there are. They cannot look into them.",
    "The machine's folders for temporary files cannot be written; TMPDIR leads to a private one.",
    "Hosts cannot be allowed one by one: the network is off or on.",
)
_UNTIL = (
    (2, "Files cannot be moved from folder to folder, only copied."),
    (3, "Files outside the writable folders can be emptied, though not written: the kernel's Landlock is too old."),
    (6, "Other processes of the same user can be sent signals: the kernel's Landlock is too old."),
)
"""What is missing until a version of Landlock."""


class Landlock:
    """Nothing is written outside the writable folders, and no hidden file outside of them is read."""

    name = "landlock"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._temporary = ""
        self._remover: spawner.Channel | None = None
        """Who knows that it is to be removed."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """What it cannot enforce here; all of it where it does not work."""
        version = 0 if landlock_works() else int(spawner.cell(spawner.CellKind("landlock")).ready[2])
        return (*_ALWAYS, *(text for first, text in _UNTIL if version < first))

    def works(self) -> str:
        """Nothing, or why commands cannot be confined this way here."""
        return landlock_works()

    def wrap(self, argv: Sequence[str], profile: Profile, *, cwd: str) -> Wrapped:
        """The command, confined. The paths are looked at when it starts, which fails if they cannot be enforced."""
        del cwd  # it is the starter's business
        refuse_whole(profile.writable)
        layers = dict(profile.layers)
        folder = layers.get("/tmp") or self._folder()  # noqa: S108 - the folder of the session in its place
        kind = spawner.CellKind("landlock", network=profile.network, unix_sockets=profile.unix_sockets)
        more = profile._replace(writable=(*profile.writable, folder))
        return Wrapped(tuple(argv), env={"TMPDIR": folder}, starter=spawner.Confined(kind, more))

    def _folder(self) -> str:
        """The private folder for what is temporary. It is removed with this object, or when the engine is killed."""
        with self._lock:
            if not os.path.isdir(self._temporary):
                self._temporary, self._remover = os.path.realpath(tempfile.mkdtemp(prefix="ferrule-")), None
                weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
            for last in (False, True):
                remover = spawner.cell(spawner.CellKind("landlock"))
                if remover is self._remover:
                    break
                try:
                    remover.remove_at_end(self._temporary)
                    self._remover = remover
                except BrokenPipeError:  # a spawner that was killed since: the next one shall do it
                    if last:
                        raise
            return self._temporary


@functools.cache
def landlock_works() -> str:
    """Nothing, or why commands cannot be confined this way here. Tried once, for real."""
    if sys.platform != "linux":
        return "This is not Linux."
    return probe(spawner.CellKind("landlock"))
