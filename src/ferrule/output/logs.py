"""Logs of processes, beside the store of full outputs: how they are named, where they lie, how they are read."""

import codecs
import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TYPED = str.maketrans("ilo", "110")
_ID_LENGTH = 10
_OPEN = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def new_id() -> str:
    """A name that nobody guesses and that is easy to type."""
    return "".join(ALPHABET[byte & 31] for byte in os.urandom(_ID_LENGTH))


def is_id(text: str) -> bool:
    return len(text) == _ID_LENGTH and set(text) <= set(ALPHABET)


def meant(typed: str) -> str | None:
    """The id, or the beginning of one, that somebody typed: i, l and o are read as 1, 1 and 0."""
    text = typed.strip().lower().translate(_TYPED)
    return text if text and set(text) <= set(ALPHABET) else None


def make_private(directory: str) -> None:
    """Make the directory, for the user alone. Raises `OSError`, also for one that is shared with others."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(directory, mode=0o700)
    status = os.stat(directory)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    if os.name != "posix" or not status.st_mode & 0o077:
        return
    # A sticky directory is one that everybody uses, like the one for temporary files.
    if status.st_uid != os.geteuid() or status.st_mode & stat.S_ISVTX:
        raise PermissionError(errno.EPERM, "the directory is shared with other users", directory)
    os.chmod(directory, 0o700)


class Logs:
    """The logs in one directory, one file for each id."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def path(self, output_id: str) -> str:
        return os.path.join(self.directory, f"{output_id}.log")

    def owner(self, path: str) -> str | None:
        """The id whose log lies at that path, or None when it is not a log of this directory."""
        output_id = os.path.basename(path).removesuffix(".log")
        return output_id if is_id(output_id) and os.path.abspath(path) == self.path(output_id) else None

    def written(self) -> Iterator[tuple[str, os.stat_result]]:
        """The logs that there are."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        for name in names:
            path = os.path.join(self.directory, name)
            output_id = self.owner(path)
            # Another process may remove it at any moment.
            with contextlib.suppress(FileNotFoundError):
                if output_id is not None and stat.S_ISREG((status := os.lstat(path)).st_mode):
                    yield output_id, status

    def remove(self, output_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(output_id))


def open_log(path: str) -> io.FileIO:
    """The log, to be read. Raises `OSError`, also for what is no regular file: it could block for ever."""
    descriptor = os.open(path, _OPEN)
    file = open(descriptor, "rb", buffering=0)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a file", path)
    return file


class Page(NamedTuple):
    """A piece of an output, and the offset of the next one; None at the end."""

    text: str
    next_offset: int | None


def page(file: io.RawIOBase | io.BytesIO, offset: int, limit_bytes: int) -> Page:
    """The bytes from `offset` on, as whole characters; what is not UTF-8 becomes U+FFFD."""
    wanted = max(4, limit_bytes) + 1
    file.seek(offset)
    raw = bytearray()
    while len(raw) < wanted and (piece := file.read(wanted - len(raw))):
        raw += piece
    more = len(raw) == wanted
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(bytes(raw[: wanted - 1]), final=not more)
    split_bytes = len(decoder.getstate()[0])
    return Page(text, offset + wanted - 1 - split_bytes if more else None)
