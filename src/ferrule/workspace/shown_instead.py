"""Files that commands are shown in the place of others: those with the committed bytes, and those for git to obey."""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable

from ferrule.workspace.committed import State

_OWN = re.compile(r"session-(\d+)-.*")


class ShownInstead:
    """A folder of this process's own, made when it is first needed and removed when it is closed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._own = ""

    def committed(self, state: State, read: Callable[[], bytes | None]) -> str:
        """The file with the committed bytes, in the mode of the commit; empty where they cannot be had."""
        return self._file(state.blob, state.mode, read)

    def contents(self, raw: bytes) -> str:
        """A file with these bytes; empty where it cannot be made."""
        return self._file(hashlib.sha256(raw).hexdigest(), 0o444, lambda: raw)

    def _file(self, name: str, mode: int, read: Callable[[], bytes | None]) -> str:
        try:
            if not self._own:
                self._own = self._made()
            path = os.path.join(self._own, f"{name}.{mode:o}")
            if os.path.lexists(path):
                return path
            raw = read()
            if raw is None:
                return ""
            descriptor, unfinished = tempfile.mkstemp(dir=self._own)
            with open(descriptor, "wb") as file:
                file.write(raw)
                os.fchmod(descriptor, mode)
            os.rename(unfinished, path)
        except OSError:
            return ""
        return path

    def close(self) -> None:
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)
            self._own = ""

    def _made(self) -> str:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        for name in os.listdir(self._folder):
            found = _OWN.fullmatch(name)
            if found is not None and not _is_alive(int(found[1])):
                shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)
        return tempfile.mkdtemp(prefix=f"session-{os.getpid()}-", dir=self._folder)


def _is_alive(process: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True
