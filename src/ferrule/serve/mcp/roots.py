"""The workspace of a server that was started nowhere in particular: the first folder that its client names.

Desktop clients start servers in `/` or in the home folder. A workspace so wide would let a model read all that its
user can, without a question; so the client's roots decide, and without any `/` is never taken.
"""

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.engine.engine import Engine
from ferrule.permissions.ask import visible

if TYPE_CHECKING:
    from mcp.server.session import ServerSession


_ASK_SECONDS = 30.0
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var")
_HOW = "add `--workspace DIR` to the arguments of `ferrule mcp serve` in the client's configuration"


def is_nowhere(folder: str) -> bool:
    """Is this a folder that programs are started in when nobody has chosen one: `/`, or the user's home?"""
    real = os.path.realpath(folder)
    return _is_everything(real) or real == os.path.realpath(os.path.expanduser("~"))


def _is_everything(folder: str) -> bool:
    return os.path.dirname(folder) == folder


def _is_wide(folder: str) -> str:
    """What makes a root wider than a project, as words behind its path; empty where nothing does."""
    home = os.path.realpath(os.path.expanduser("~"))
    if within(home, folder):
        return "the home folder" if home == folder else "with the home folder in it"
    return "a folder of the system" if folder in _SYSTEM else ""


def refuse_everything(folder: str) -> None:
    """Raise `ConfigError` where the folder is the whole machine, and nobody is there to name a better one."""
    real = os.path.realpath(folder)
    if _is_everything(real):
        raise ConfigError(f"The workspace would be {real}, the whole machine: choose a folder with `--workspace DIR`.")


class Roots:
    """Opens an engine over the client's first root that is a folder, and another one when that is gone."""

    def __init__(self, start: str, open_engine: Callable[[str], Engine], warn: Callable[[str], None]) -> None:
        """`start` is where the server was started; without roots it is the workspace, unless it is everything."""
        self._start = os.path.realpath(start)
        self._open = open_engine
        self._warn = warn
        self._engine: Engine | None = None
        self._is_asked = False
        self._lock = asyncio.Lock()

    def welcome(self) -> str:
        """What a client is told before the workspace is known."""
        return "Tools over the first folder among the client's roots. Relative paths start there."

    async def engine(self, session: "ServerSession | Any", *, anew: bool = False) -> Engine:
        """The engine of this client's workspace; `anew` asks for the roots again. Raises `ConfigError`."""
        # Whoever gives up a request must not leave an engine behind that is half open.
        return await asyncio.shield(asyncio.ensure_future(self._resolve_engine(session, anew=anew)))

    async def _resolve_engine(self, session: "ServerSession | Any", *, anew: bool) -> Engine:
        async with self._lock:
            if self._engine is not None and self._is_asked and not anew:
                return self._engine
            folders, why = await _list_root_folders(session)
            self._is_asked = True
            known = None if self._engine is None else self._engine.jail.folder
            if self._engine is not None and (known in folders or not folders):
                return self._engine
            if not folders and _is_everything(self._start):
                raise ConfigError(
                    f"There is no workspace: the server was started in {self._start}, the whole machine, and {why}. "
                    f"Ask the user to {_HOW}."
                )
            if not folders:
                self._warn(
                    f"The workspace is the home folder, {self._start}, because {why}. To choose a smaller one, {_HOW}."
                )
            elif wide := _is_wide(folders[0]):
                self._warn(
                    f"The workspace is {folders[0]}, {wide}, because it is this client's first root: a model reads all "
                    f"of it without a question. Open a smaller folder in the client, or {_HOW}."
                )
            await self._move(folders[0] if folders else self._start)
            assert self._engine is not None
            return self._engine

    async def _move(self, folder: str) -> None:
        await self.close()
        engine = self._open(folder)
        await engine.__aenter__()
        self._engine = engine
        for warning in engine.warnings:
            self._warn(warning)

    async def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.__aexit__(None, None, None)


async def _list_root_folders(session: "ServerSession | Any") -> tuple[list[str], str]:
    """The folders among a client's roots, and otherwise why there are none, as the end of a sentence."""
    import mcp_types as types  # for servers only
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return [], "this client names no roots"
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            result = await session.send_request(types.ListRootsRequest(), types.ListRootsResult)
    except TimeoutError:
        return [], f"this client did not name its roots within {_ASK_SECONDS:g} seconds"
    except (MCPError, ValidationError, RuntimeError) as error:
        return [], f"the roots of this client cannot be read ({visible(str(error).splitlines()[0])[:200]})"
    named = [_folder(str(root.uri)) for root in result.roots]
    folders = [folder for folder in named if folder and os.path.isdir(folder) and not _is_everything(folder)]
    return folders, "none of this client's roots is a folder of this machine, or all of it"


def _folder(uri: str) -> str:
    """The real path of a `file:` address of this machine; empty where it is another address."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return ""
    path = unquote(parts.path)
    if os.name == "nt":
        path = path.lstrip("/")
    return os.path.realpath(path) if os.path.isabs(path) and "\0" not in path else ""
