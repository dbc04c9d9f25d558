"""A claim on a conversation: one session at a time goes on with it."""

import contextlib
import os

from ferrule.core.errors import ConfigError
from ferrule.support.locks import try_lock

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class Claim:
    """A lock that dies with its process; its file goes with whoever has had it last."""

    def __init__(self, folder: str, thread: str) -> None:
        """Raises `ConfigError` where another session has the conversation open."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, f"{thread}.lock")
        while True:
            descriptor = os.open(self._path, _FLAGS, 0o600)
            if not try_lock(descriptor):
                os.close(descriptor)
                raise ConfigError(
                    f"The conversation {thread} is open in another session. End that first, or choose another one: "
                    "`ferrule chat --resume`."
                )
            if os.fstat(descriptor).st_nlink:
                break
            os.close(descriptor)  # whoever had it has removed its file meanwhile
        self._descriptor = descriptor

    def close(self) -> None:
        """While the lock is still held: nobody else's file is removed."""
        with contextlib.suppress(OSError):  # Windows removes no file that is open
            os.unlink(self._path)
        os.close(self._descriptor)
