"""Confinement by namespaces of the command's own, without any program or library but Python's: Linux 5.12 and later."""

import functools
import os
import shutil
import sys
from collections.abc import Iterator, Sequence

from ferrule.support.sandbox import spawner
from ferrule.support.sandbox.layout import within
from ferrule.support.sandbox.profile import Profile, Wrapped, refuse_whole
from ferrule.support.sandbox.variables import proxied

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
        has_proc = not works() and spawner.cell(spawner.Kind("namespaces")).ready[1] == b"1"
        return (_LATER,) if has_proc else (_LATER, _PROC)

    def works(self) -> str:
        """Nothing, or why commands cannot be confined this way here."""
        return works()

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
        return Wrapped(tuple(argv), {**env, **proxied(profile)}, starter=starter)


def cell_of(profile: Profile) -> spawner.Kind:
    """The cell in which the commands of a session run."""
    return spawner.Kind(
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
def works() -> str:
    """Nothing, or why commands cannot be confined this way here. Tried once, for real."""
    return tried(spawner.Kind("namespaces"))


def tried(kind: spawner.Kind) -> str:
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
