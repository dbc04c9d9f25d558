"""Adding a server to a file of servers, and taking one out: the rest of the file stays as it is."""

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from typing import Any

from ferrule.core.errors import ConfigError
from ferrule.sources.mcp.entries import entry_server
from ferrule.sources.mcp.forms import CLAUDE, place, strictly_parsed
from ferrule.sources.mcp.places import read_own
from ferrule.support.beneath import FRESH, describe, sync, write_all


def add_server(path: str, name: str, entry: Mapping[str, Any]) -> None:
    """Write a server, in the form of Claude Code or in the one that the file has.

    Raises: ConfigError where the file is broken, the entry is, or one of that name is there.
    """
    entry_server(name, entry, layer="user", source=path)  # says what is wrong with it
    content, key, servers = _content(path)
    if any(name.casefold() == other.casefold() for other in servers):
        raise ConfigError(f"{path} has a server called {name} already. Remove it first, or use another name.")
    _write(path, {**content, key: {**servers, name: dict(entry)}})


def remove_server(path: str, name: str) -> bool:
    """Take a server out; False where the file has none of that name. Raises `ConfigError` for a broken file."""
    content, key, servers = _content(path)
    if name not in servers:
        return False
    _write(path, {**content, key: {other: entry for other, entry in servers.items() if other != name}})
    return True


def _content(path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    text = read_own(path)
    content = strictly_parsed(text, path) if text and text.strip() else {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not an object; nothing was written. Mend it, or move it away.")
    key = place(content) or (CLAUDE if os.path.basename(os.path.dirname(path)) != ".amp" else "amp." + CLAUDE)
    servers = content.get(key, {})
    if not isinstance(servers, dict):
        raise ConfigError(f"{path}: {key} is not an object; nothing was written. Mend it first.")
    return content, key, servers


def _write(path: str, content: Mapping[str, Any]) -> None:
    data = (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
    # People keep such files in a repository of their own and link to them: the link stays.
    target = os.path.realpath(path)
    temporary = f"{target}.{secrets.token_hex(8)}.new"
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            mode = os.stat(target).st_mode & 0o777
        except FileNotFoundError:
            mode = 0o600  # headers and variables of servers are often secrets
        try:
            descriptor = os.open(temporary, FRESH, 0o600)
            try:
                write_all(descriptor, data)
                os.chmod(temporary, mode)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync(os.path.dirname(target))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({describe(error)}); it is as it was.") from error


def _sync(folder: str) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
