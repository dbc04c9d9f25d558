"""The committed bytes of files that differ from them, kept as files that commands are shown instead."""

import contextlib
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

    def file(self, state: State, read: Callable[[], bytes | None]) -> str:
        """The file with the committed bytes, in the mode of the commit; empty where they cannot be had."""
        try:
            if not self._own:
                self._own = self._made()
            path = os.path.join(self._own, f"{state.blob}.{state.mode:o}")
            if os.path.lexists(path):
                return path
            raw = read()
            if raw is None:
                return ""
            descriptor, unfinished = tempfile.mkstemp(dir=self._own)
            with open(descriptor, "wb") as file:
                file.write(raw)
                os.fchmod(descriptor, state.mode)
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
