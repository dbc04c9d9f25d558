"""Small files of the user's own decisions: readable by their owner alone, written whole, and doubted when odd."""

import contextlib
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.support.beneath import FRESH, READ_NO_LINK, describe, read_all, sync, write_all

if TYPE_CHECKING:
    from ferrule.support.locks import Locks

_LIMIT_BYTES = 4 << 20

Content = TypeVar("Content", bound=msgspec.Struct)


class Kept(Generic[Content]):
    """One JSON file in a folder of the user's state. Without it, and where it cannot be believed, it says nothing."""

    def __init__(self, path: str, kind: type[Content]) -> None:
        """`kind` is what the file holds; all its fields have defaults, which say nothing."""
        self.path = path
        self._kind = kind

    def read(self) -> Content:
        """What the file says. A damaged one is moved aside; that, and one that others can write, says nothing."""
        try:
            return self._decoded()
        except _DamagedError:
            pass
        except (OSError, _ForeignError):
            return self._kind()
        from ferrule.support.locks import LockTimeoutError  # only a damaged file pays for it

        with contextlib.suppress(OSError, LockTimeoutError, _ForeignError), self._locks().hold([self.path]):
            return self._settled()
        return self._kind()

    def change(self, change: Callable[[Content], Content]) -> None:
        """Write what `change` makes of what the file says; nobody else changes it meanwhile.

        Raises: ConfigError when it cannot be written; then it is as it was.
        """
        from ferrule.support.locks import LockTimeoutError  # for whoever writes

        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with self._locks().hold([self.path]):
                before = self._settled()
                after = change(before)
                if after != before:
                    self._write(msgspec.json.format(msgspec.json.encode(after)) + b"\n")
        except _ForeignError as error:
            raise ConfigError(
                f"{self.path} is not a file that only you can write. Remove it, or take it over."
            ) from error
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written ({describe(error)}).") from error
        except LockTimeoutError as error:
            raise ConfigError(f"{self.path} cannot be written: {error}. Try again.") from error

    def _locks(self) -> "Locks":
        from ferrule.support.locks import Locks  # as above

        return Locks(os.path.join(os.path.dirname(self.path), "locks"))

    def _settled(self) -> Content:
        """What the file says, with the lock held: what cannot be believed is out of the way afterwards."""
        try:
            return self._decoded()
        except FileNotFoundError:
            return self._kind()
        except _DamagedError:
            # Kept, not deleted: a person may want to see what happened to it.
            os.rename(self.path, f"{self.path}.damaged-{os.urandom(4).hex()}")
            return self._kind()

    def _decoded(self) -> Content:
        try:
            descriptor = os.open(self.path, READ_NO_LINK)
        except OSError as error:
            if os.path.islink(self.path):
                raise _ForeignError from error
            raise
        try:
            status = os.fstat(descriptor)
            shared = os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022)
            if not stat.S_ISREG(status.st_mode) or shared:
                raise _ForeignError
            raw = read_all(descriptor, _LIMIT_BYTES)
        finally:
            os.close(descriptor)
        if len(raw) > _LIMIT_BYTES:
            raise _DamagedError
        try:
            return msgspec.json.decode(raw, type=self._kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _DamagedError from error

    def _write(self, data: bytes) -> None:
        temporary = f"{self.path}.{os.urandom(8).hex()}.new"
        try:
            descriptor = os.open(temporary, FRESH, 0o600)
            try:
                write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if os.name == "posix":
            folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                sync(folder)
            finally:
                os.close(folder)


class _DamagedError(Exception):
    """The file does not hold what we wrote."""


class _ForeignError(Exception):
    """The file is a link, or somebody else's, or others can write it. It may be another user's own: it stays there."""
