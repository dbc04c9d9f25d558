"""Where MCP servers are configured, and reading those files: whole, of ordinary size, and a project's without links."""

import codecs
import errno
import os
from typing import TYPE_CHECKING

from ferrule.core.access import within
from ferrule.core.errors import ConfigError

if TYPE_CHECKING:
    from ferrule.settings import Mcp
    from ferrule.sources.mcp.server import Server

USER_FILE = "mcp.json"
"""Beside the user's settings."""
PROJECT_SETTINGS = ".ferrule/settings.toml"
PROJECT_FILES = (".mcp.json", ".amp/settings.json", ".amp/settings.jsonc")
_MOST_BYTES = 1 << 20


def exist(workspace: str, user_folder: str, mcp: "Mcp", *, managed: "Mcp | None" = None) -> bool:
    """Is any server configured at all? Mostly there is none, and then nothing is loaded for them."""
    if mcp.servers or mcp.files or (managed is not None and (managed.servers or managed.files)):
        return True
    files = [os.path.join(workspace, *name.split("/")) for name in (PROJECT_SETTINGS, *PROJECT_FILES)]
    return any(map(os.path.lexists, [os.path.join(user_folder, USER_FILE), *files]))


def read_own(path: str) -> str | None:
    """A file of the user's own as text; None where there is none. Raises `ConfigError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from error
    return _text(descriptor, path)


def read_project(workspace: str, name: str) -> str | None:
    """A file of the project as text; None where there is none.

    Raises: ConfigError where it, or a folder on the way to it, is a link: it could be anybody's file.
    """
    path = os.path.join(workspace, *name.split("/"))
    if not os.path.lexists(path):
        return None
    from ferrule.support.beneath import open_folder  # for projects that have such a file

    *way, last = name.split("/")
    try:
        with open_folder(os.path.realpath(workspace)) as root, root.below(way) as folder:
            descriptor = folder.open(last)
    except (FileNotFoundError, NotADirectoryError) as error:
        if _has_link(workspace, name):
            raise _linked(path) from error
        return None
    except OSError as error:
        if error.errno == errno.ELOOP or _has_link(workspace, name):
            raise _linked(path) from error
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from error
    return _text(descriptor, path)


def _has_link(workspace: str, name: str) -> bool:
    parts = name.split("/")
    return any(os.path.islink(os.path.join(workspace, *parts[:count])) for count in range(1, len(parts) + 1))


def _linked(path: str) -> ConfigError:
    return ConfigError(f"{path} is reached through a link, so its servers are not used. Put the file itself there.")


def _text(descriptor: int, path: str) -> str:
    from ferrule.support.beneath import read_regular  # for whoever has such a file

    try:
        raw = read_regular(descriptor, _MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from error
    if raw is None:
        raise ConfigError(f"{path} is not a regular file.")
    if len(raw) > _MOST_BYTES:
        raise ConfigError(f"{path} has more than {_MOST_BYTES:,} bytes; that is too much for servers.")
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text.") from error


def start_folder(server: "Server", workspace: str) -> str:
    """Where it starts: in the workspace where its configuration is the project's, or says so.

    The user's own servers start in the user's home: many programs load code from the folder that they are started in,
    and nothing of a project runs because somebody opened it.
    """
    if server.cwd or server.layer not in {"user", "managed"}:
        return os.path.join(workspace, server.cwd)
    home = os.path.realpath(os.path.expanduser("~"))
    return home if os.path.isdir(home) and not within(home, os.path.realpath(workspace)) else os.path.abspath(os.sep)
