"""The private /tmp of a session's commands: a folder of the engine's state, and which of them are left over.

A session has its own and removes it at its end. The calls of `ferrule call` in one workspace share one, which is
emptied after an hour without a call. A lock says that somebody uses it; what a killed engine left has none.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
import time

_SHARED = "call-"
_STALE_SECONDS = 3600.0


class Temporary:
    """One such folder, locked while it is used."""

    def __init__(self, state: str, *, workspace: str = "") -> None:
        """`workspace`: share the folder with all calls there. Raises OSError."""
        os.makedirs(os.path.join(state, "machines"), 0o700, exist_ok=True)
        self.all = os.path.realpath(os.path.join(state, "machines"))
        """Where those of all sessions are."""
        self._sweep()
        name = _SHARED + hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16] if workspace else secrets.token_hex(8)
        self._folder = os.path.join(self.all, name)
        self._is_shared = bool(workspace)
        self._lock = _lock_folder(self._folder, make=True, shared=True)
        self.path = os.path.join(self._folder, "tmp")
        """What commands have as /tmp."""
        self._caches = -1
        self._all_caches = os.path.join(state, "caches")
        os.makedirs(self.path, exist_ok=True)
        os.chmod(self.path, 0o1777)  # noqa: S103 - as every /tmp is; the folder above is closed to others
        os.utime(self._folder)

    def caches(self) -> str:
        """Where caches are written: the user's one such folder, or one of this session where another session has it.

        The kernel lays one folder over another for one user of it at a time.
        """
        if self._caches < 0:
            try:
                self._caches = _lock_folder(self._all_caches, make=True, shared=False)
            except OSError:
                return os.path.join(self._folder, "caches")
        return self._all_caches

    def close(self) -> None:
        """Remove it, unless others may need it."""
        if self._lock < 0:
            return
        if self._caches >= 0:
            os.close(self._caches)
            self._caches = -1
        if self._is_shared:
            with contextlib.suppress(OSError):
                os.utime(self._folder)
        else:
            _remove(self._folder)
        os.close(self._lock)
        self._lock = -1

    def _sweep(self) -> None:
        """Remove what nobody uses: that of engines that are dead, and shared ones without a call for an hour."""
        for name in os.listdir(self.all):
            folder = os.path.join(self.all, name)
            with contextlib.suppress(OSError):
                if name.startswith(_SHARED) and time.time() - os.stat(folder).st_mtime < _STALE_SECONDS:
                    continue
                lock = _lock_folder(folder, make=False, shared=False)
                try:
                    _remove(folder)
                finally:
                    os.close(lock)


def _lock_folder(folder: str, *, make: bool, shared: bool) -> int:
    import fcntl  # not on Windows, which has no such sandbox

    if make:
        os.makedirs(folder, 0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def _remove(folder: str) -> None:
    """Remove a folder, also those parts of it that a command has closed to its own user."""

    def open_up(_function: object, path: str, _why: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    shutil.rmtree(folder, onerror=open_up)
