"""Read the configured MCP servers of a session, and add or remove servers in a configuration file.

Servers come from the machine's administrator, the session, the user and the project. Of two servers with the same
name the one that is written nearer to the user counts; names are compared without letter case. An entry that
cannot be understood is a warning and affects only its own server.

Files are read whole and must be of ordinary size; a project's file may involve no links. The rest of a changed
file stays as it is.
"""

import codecs
import contextlib
import errno
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.settings.schema import SOURCES, Mcp, decode_settings, settings_path
from ferrule.sources.mcp.entries import (
    CLAUDE,
    McpFileContents,
    entry_server,
    find_rejection,
    form_of,
    parse_config,
    place,
    read_allowed,
    settings_server,
    strictly_parsed,
)
from ferrule.sources.mcp.server import Layer, McpServerEntry
from ferrule.system.folder import FRESH, describe, open_folder, read_regular, sync, write_all

if TYPE_CHECKING:
    from ferrule.sources.mcp.entries import Allowed


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

    *way, last = name.split("/")
    try:
        with open_folder(os.path.realpath(workspace)) as root, root.below(way) as folder:
            descriptor = folder.open(last)
    except (FileNotFoundError, NotADirectoryError) as error:
        if _has_link(workspace, name):
            raise _link_error(path) from error
        return None
    except OSError as error:
        if error.errno == errno.ELOOP or _has_link(workspace, name):
            raise _link_error(path) from error
        raise ConfigError(f"{path} cannot be read ({error.strerror}).") from error
    return _text(descriptor, path)


def _has_link(workspace: str, name: str) -> bool:
    parts = name.split("/")
    return any(os.path.islink(os.path.join(workspace, *parts[:count])) for count in range(1, len(parts) + 1))


def _link_error(path: str) -> ConfigError:
    return ConfigError(f"{path} is reached through a link, so its servers are not used. Put the file itself there.")


def _text(descriptor: int, path: str) -> str:
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


def start_folder(server: "McpServerEntry", workspace: str) -> str:
    """Where it starts: in the workspace where its configuration is the project's, or says so.

    The user's own servers start in the user's home: many programs load code from the folder that they are started in,
    and nothing of a project runs because somebody opened it.
    """
    if server.cwd or server.layer not in {"user", "managed"}:
        return os.path.join(workspace, server.cwd)
    home = os.path.realpath(os.path.expanduser("~"))
    return home if os.path.isdir(home) and not within(home, os.path.realpath(workspace)) else os.path.abspath(os.sep)


_MOST_SERVERS = 500


class Configured(NamedTuple):
    """The servers of a session, the foremost of each name, disabled ones too."""

    servers: tuple[McpServerEntry, ...] = ()
    warnings: tuple[str, ...] = ()
    allowed: "tuple[Allowed, ...]" = ()
    """What decides about servers once more, when their variables are known."""
    is_shut: bool = False
    """Is there a list of allowed servers that nobody understands? Then none of them starts."""


def read_servers(
    workspace: str,
    mcp: Mcp,
    *,
    given: Sequence[str] = (),
    managed: Mcp | None = None,
    user_folder: str = "",
    rule_files: Sequence[str] = (),
    sources: Sequence[str] = SOURCES,
    strict: bool = False,
) -> Configured:
    """The servers of every layer. With `strict`, none but the given ones and those of whoever runs the machine.

    `given` are texts or files of `--mcp-config`; `mcp` is the user's section of the settings and `managed` that of
    whoever runs the machine; `rule_files` are the user's files of rules, which may say which servers are allowed.
    """
    reader = _ServersReader()
    folder = user_folder or os.path.dirname(settings_path())
    # The order is the precedence.
    if managed is not None:
        reader.settings(managed, layer="managed", source="the managed settings")
        for file in managed.files:
            reader.file(_absolute(file), layer="managed")
    for number, text in enumerate(given, start=1):
        reader.read_given(text, number)
    if not strict:
        reader.settings(mcp, layer="user", source="your settings")
        if "user" in sources:
            reader.file(os.path.join(folder, USER_FILE), layer="user", optional=True)
        for file in mcp.files:
            reader.file(os.path.join(folder, os.path.expanduser(file)), layer="user")
    for file in rule_files:
        reader.rules(os.path.join(folder, os.path.expanduser(file)))
    if "project" in sources and not strict:
        reader.project(workspace)
    return reader.build_configured()


def skill_servers(entries: Mapping[str, Any], *, source: str, layer: Layer = "skill") -> Configured:
    """The servers of a skill's `mcp.json`, which may be a bare map."""
    reader = _ServersReader()
    reader.form(source, lambda: form_of(entries, source, bare=True), layer=layer)
    return reader.build_configured()


def errors_of(given: Sequence[str]) -> tuple[str, ...]:
    """What cannot be understood of texts or files of `--mcp-config`."""
    reader = _ServersReader()
    for number, text in enumerate(given, start=1):
        reader.read_given(text, number)
    return tuple(reader.errors)


class _ServersReader:
    """Collects servers, the foremost first."""

    def __init__(self) -> None:
        self._servers: dict[str, McpServerEntry | None] = {}
        """By names in lower case; None where one was broken."""
        self._warnings: list[str] = []
        self.errors: list[str] = []
        """Those of the warnings that say what cannot be understood at all."""
        self._allowed: list[Allowed] = []
        self._is_shut = False

    def settings(self, mcp: Mcp, *, layer: Layer, source: str) -> None:
        for name, entry in mcp.servers.items():
            self._add(name, partial(settings_server, name, entry, layer=layer, source=source))

    def read_given(self, text: str, number: int) -> None:
        """What `--mcp-config` brings: JSON, or the path of a file."""
        if text.lstrip().startswith(("{", "/*", "//")):
            source = "--mcp-config" if number == 1 else f"--mcp-config {number}"
            self.form(source, lambda: form_of(parse_config(text, source), source, bare=True), layer="session")
        else:
            self.file(_absolute(text), layer="session")

    def file(self, path: str, *, layer: Layer, optional: bool = False) -> None:
        def read() -> McpFileContents:
            text = read_own(path)
            if text is None:
                if optional:
                    return McpFileContents({})
                raise ConfigError(f"{path}, which is to have MCP servers, is not there.")
            return form_of(parse_config(text, path), path, bare=True)

        self.form(path, read, layer=layer)

    def rules(self, path: str) -> None:
        """A file of rules has no servers for us; what is wrong with it says whoever reads its rules."""
        try:
            form = form_of(parse_config(read_own(path) or "{}", path), path)
        except ConfigError:
            return
        self.form(path, lambda: McpFileContents({}, form.allowed), layer="user")

    def project(self, workspace: str) -> None:
        path = os.path.join(workspace, *PROJECT_SETTINGS.split("/"))
        try:
            text = read_project(workspace, PROJECT_SETTINGS)
            if text is not None:
                self.settings(decode_settings(text.encode(), path).mcp, layer="project", source=path)
        except ConfigError as error:
            self._warnings.append(str(error))
        for name in PROJECT_FILES:
            self._project_file(workspace, name)

    def _project_file(self, workspace: str, name: str) -> None:
        path = os.path.join(workspace, *name.split("/"))

        def read() -> McpFileContents:
            text = read_project(workspace, name)
            return McpFileContents({}) if text is None else form_of(parse_config(text, path), path)

        self.form(path, read, layer="project")

    def form(self, source: str, read: Callable[[], McpFileContents], *, layer: Layer) -> None:
        try:
            form = read()
        except ConfigError as error:
            self._wrong(error)
            return
        if form.allowed is not None:
            self._allow(form.allowed, source=source, layer=layer)
        if len(form.servers) > _MOST_SERVERS:
            self._warnings.append(f"{source} has more than {_MOST_SERVERS} MCP servers; none of them is used.")
            return
        for name, entry in form.servers.items():
            self._add(name, partial(entry_server, name, entry, layer=layer, source=source))

    def _wrong(self, error: ConfigError) -> None:
        self._warnings.append(str(error))
        self.errors.append(str(error))

    def _allow(self, entries: Any, *, source: str, layer: Layer) -> None:
        try:
            self._allowed += read_allowed(entries, source=source, layer=layer)
        except ConfigError as error:
            self._is_shut = True
            self._warnings.append(f"{error}. No MCP server is used until that is mended.")

    def _add(self, name: str, make: Callable[[], tuple[McpServerEntry, list[str]]]) -> None:
        key = name.casefold()
        before = self._servers.get(key)
        try:
            server, warnings = make()
        except ConfigError as error:
            self._wrong(error)
            # One that is broken keeps its name: what is written further away from the user does not take its place.
            self._servers.setdefault(key, None)
            return
        if before is not None:
            self._warnings.append(
                f"{server.source}: the MCP server {name} is not used, because {before.source} has one of that name."
            )
        elif key in self._servers:
            self._warnings.append(
                f"{server.source}: the MCP server {name} is not used, because the one of that name that comes before "
                "it is broken."
            )
        else:
            self._servers[key] = server
            self._warnings += warnings

    def build_configured(self) -> Configured:
        servers = [] if self._is_shut else list(filter(None, self._servers.values()))
        if self._allowed:
            servers = list(filter(self._lets, servers))
        return Configured(tuple(servers), tuple(self._warnings), tuple(self._allowed), self._is_shut)

    def _lets(self, server: McpServerEntry) -> bool:
        reason = find_rejection(server, self._allowed)
        if reason is not None:
            self._warnings.append(f"The MCP server {server.name} is not used: {reason.source} rejects it.")
        return reason is None


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


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
