"""Confinement by Landlock and a filter of system calls, where namespaces are refused: Linux 5.13 and later."""

import functools
import os
import sys
import threading
from collections.abc import Sequence

from ferrule.support.sandbox import namespaces, spawner
from ferrule.support.sandbox.profile import Profile, Wrapped, refuse_whole

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
        version = 0 if works() else int(spawner.cell(spawner.Kind("landlock")).ready[2])
        return (*_ALWAYS, *(text for first, text in _UNTIL if version < first))

    def works(self) -> str:
        """Nothing, or why commands cannot be confined this way here."""
        return works()

    def wrap(self, argv: Sequence[str], profile: Profile, *, cwd: str) -> Wrapped:
        """The command, confined. The paths are looked at when it starts, which fails if they cannot be enforced."""
        del cwd  # it is the starter's business
        refuse_whole(profile.writable)
        layers = dict(profile.layers)
        folder = layers.get("/tmp") or self._folder()  # noqa: S108 - the folder of the session in its place
        kind = spawner.Kind("landlock", network=profile.network, unix_sockets=profile.unix_sockets)
        more = profile._replace(writable=(*profile.writable, folder))
        return Wrapped(tuple(argv), env={"TMPDIR": folder}, starter=spawner.Confined(kind, more))

    def _folder(self) -> str:
        """The private folder for what is temporary. It is removed with this object, or when the engine is killed."""
        import shutil  # only this way of confining needs them
        import tempfile
        import weakref

        with self._lock:
            if not os.path.isdir(self._temporary):
                self._temporary, self._remover = os.path.realpath(tempfile.mkdtemp(prefix="ferrule-")), None
                weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
            for last in (False, True):
                remover = spawner.cell(spawner.Kind("landlock"))
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
def works() -> str:
    """Nothing, or why commands cannot be confined this way here. Tried once, for real."""
    if sys.platform != "linux":
        return "This is not Linux."
    return namespaces.tried(spawner.Kind("landlock"))
