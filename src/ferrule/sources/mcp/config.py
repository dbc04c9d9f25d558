"""Read MCP server entries in every form, and add or remove servers in a configuration file.

Servers come from the machine's administrator, the session, the user and the project. Of two servers with the same
name the one that is written nearer to the user counts; names are compared without letter case. An entry that
cannot be understood is a warning and affects only its own server.

Files are read whole and must be of ordinary size; a project's file may involve no links. The rest of a changed
file stays as it is.

The forms are Claude Code's, Amp's, and a bare map of names and servers. The understood parts of an entry become a
`Server`, the rest a warning.

Variables are `${NAME}` and `${NAME:-otherwise}`, and are filled in when the server is started. Pins and questions
are about the text as it was written. A project's server may name a variable that holds a secret, in its address
as well as in its environment; that is safe enough because nothing of a project is started before the user has
approved it, and the question names every variable that the server would get.

`amp.mcpPermissions` is a list of which the first matching entry decides whether a server may be used. An entry is
`{"matches": {"url": glob} | {"command": glob, "args": glob}, "action": "allow" | "reject"}`; the arguments are
matched as one text. A list that cannot be understood rejects everything, because it might have rejected anything.
"""

import codecs
import contextlib
import errno
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.permissions.rules import Wildcard
from ferrule.settings import SOURCES, Mcp, McpServer, decode_settings, settings_path
from ferrule.sources.mcp import Layer, McpServerEntry, Permission, Transport, fault
from ferrule.system.folder import FRESH, describe, open_folder, read_regular, sync, write_all

if TYPE_CHECKING:
    from ferrule.core.tool import Exposure


TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
_KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "type", "transport", "disabled", "includeTools"),
    *("exposure", "permission", "seconds", "timeout", "startSeconds", "oauth"),
)
_MOST_CHARS = 32_768
"""Of one text: more than any argument of a program may have on Linux is a quarter of this."""
_MOST_TEXTS = 1000
_MOST_SECONDS = 86_400
_FOREIGN = frozenset({"project", "skill"})
"""Layers that others write: what they say may tighten and never loosen."""


def entry_server(name: object, entry: object, *, layer: Layer, source: str) -> tuple[McpServerEntry, list[str]]:
    """The server of an entry of JSON, and warnings about what was not understood. Raises `ConfigError`."""
    reader = _ServerEntry(_check_name(name, source), entry, source)
    command, url = reader.text("command"), reader.text("url")
    server = McpServerEntry(
        name=reader.name,
        transport=_transport(reader, command, url, reader.text("type") or reader.text("transport")),
        layer=layer,
        source=source,
        command=command,
        args=reader.texts("args"),
        env=reader.pairs("env"),
        cwd=reader.text("cwd"),
        url=url,
        headers=reader.pairs("headers"),
        disabled=reader.flag("disabled"),
        include=reader.texts("includeTools"),
        exposure=cast("Exposure | None", reader.choice("exposure", ("direct", "deferred", "hidden")) or None),
        permission=cast("Permission", reader.choice("permission", ("allow", "ask", "deny")) or "ask"),
        seconds=reader.seconds("seconds") or reader.milliseconds("timeout"),
        start_seconds=reader.seconds("startSeconds") or 30.0,
    )
    return _restrict_permission(server, reader), reader.warnings


def settings_server(name: str, entry: McpServer, *, layer: Layer, source: str) -> tuple[McpServerEntry, list[str]]:
    """The server of an entry of our own settings. Raises `ConfigError`."""
    reader = _ServerEntry(_check_name(name, source), {}, source)
    server = McpServerEntry(
        name=name,
        transport=_transport(reader, entry.command, entry.url, entry.transport, absent=_is_shut(entry)),
        layer=layer,
        source=source,
        command=entry.command,
        args=entry.args,
        env=entry.env,
        cwd=entry.cwd,
        url=entry.url,
        headers=entry.headers,
        disabled=entry.disabled,
        include=entry.include_tools,
        exposure=entry.exposure or None,
        permission=entry.permission,
        seconds=entry.seconds,
        start_seconds=entry.start_seconds,
    )
    return _restrict_permission(server, reader), reader.warnings


def _is_shut(entry: McpServer) -> bool:
    return entry.disabled or entry.permission == "deny"


def _check_name(name: object, source: str) -> str:
    if not isinstance(name, str):
        raise ConfigError(f"{source}: the name of an MCP server is a text.")
    if wrong := fault(name):
        raise ConfigError(f"{source}: the MCP server {name[:60]!r} is not used: {wrong}.")
    return name


def _transport(reader: "_ServerEntry", command: str, url: str, said: str, *, absent: bool = False) -> Transport:
    if said and said not in TRANSPORTS:
        raise reader.wrong(f"the transport {said[:40]!r} is not known; there are stdio, http and sse")
    if command and url:
        raise reader.wrong("it has a command and a url; keep one of them")
    transport = TRANSPORTS[said] if said else "http" if url else "stdio"
    if command or url or not absent:
        wanted = "command" if transport == "stdio" else "url"
        if not (command if transport == "stdio" else url):
            raise reader.wrong(f"{wanted} is missing")
    if url and "${" not in url.partition("://")[0] and not url.lower().startswith(("http://", "https://")):
        raise reader.wrong("its url begins with http:// or https://")
    return transport


def _restrict_permission(server: McpServerEntry, reader: "_ServerEntry") -> McpServerEntry:
    if server.layer not in _FOREIGN or server.permission != "allow":
        return server

    reader.warn("only your own settings can allow its calls; permission is not used")
    return msgspec.structs.replace(server, permission="ask")


class _ServerEntry:
    """The keys of one entry, each as what it should be."""

    def __init__(self, name: str, entry: object, source: str) -> None:
        self.name = name
        self.source = source
        self.warnings: list[str] = []
        if not isinstance(entry, Mapping):
            raise self.wrong("it is an object with command or url")
        self._entry = entry
        unknown = [str(key)[:40] for key in entry if key not in _KEYS]
        if unknown:
            self.warn(f"these keys are not known and not used: {', '.join(sorted(unknown)[:10])}")
        if "oauth" in entry:
            self.warn("oauth is not supported; put a token into headers, as in Authorization: Bearer ${MY_TOKEN}")

    def wrong(self, what: str) -> ConfigError:
        return ConfigError(f"{self.source}: the MCP server {self.name} is not used: {what}.")

    def warn(self, what: str) -> None:
        self.warnings.append(f"{self.source}, MCP server {self.name}: {what}.")

    def text(self, key: str) -> str:
        return self._is_text(self._entry.get(key) or "", key)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._entry.get(key) or []
        if not isinstance(value, list) or len(value) > _MOST_TEXTS:
            raise self.wrong(f"{key} is a list of texts")
        return tuple(self._is_text(one, key) for one in value)

    def pairs(self, key: str) -> dict[str, str]:
        value = self._entry.get(key) or {}
        if not isinstance(value, Mapping) or len(value) > _MOST_TEXTS:
            raise self.wrong(f"{key} is an object of names and texts")
        pairs = {self._is_text(name, key): self._is_text(_stringify(one), key) for name, one in value.items()}
        if any(not name.strip() or "=" in name or not name.isprintable() for name in pairs):
            raise self.wrong(f"{key} has a name that cannot be one")
        if key == "headers" and any("\n" in text or "\r" in text for text in pairs.values()):
            raise self.wrong("headers holds a value with a line break")
        return pairs

    def flag(self, key: str) -> bool:
        value = self._entry.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.wrong(f"{key} is true or false")

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.text(key)
        if value and value not in choices:
            raise self.wrong(f"{key} is one of {', '.join(choices)}")
        return value

    def seconds(self, key: str, number: Callable[[float], float] = float) -> float | None:
        value = self._entry.get(key)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # Before it is converted: an integer of JSON may be larger than any float.
        if not is_number or not 0 < value <= 1000 * _MOST_SECONDS or not number(value) <= _MOST_SECONDS:
            raise self.wrong(f"{key} is a number above 0, of at most a day")
        return number(value)

    def milliseconds(self, key: str) -> float | None:
        """As the other programs count that read this form."""
        return self.seconds(key, lambda count: count / 1000)

    def _is_text(self, value: Any, key: str) -> str:
        if not isinstance(value, str) or "\0" in value or len(value) > _MOST_CHARS or _has_half_a_character(value):
            raise self.wrong(f"{key} holds something that is no text of at most {_MOST_CHARS:,} characters")
        return value


def _has_half_a_character(text: str) -> bool:
    """JSON can spell half of a surrogate pair, which no program can be given."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _stringify(value: object) -> object:
    """A number or a truth value as the text that it is in an environment: people write `"PORT": 8080`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}"


def expand_variables(server: McpServerEntry, environment: Mapping[str, str]) -> McpServerEntry:
    """The server with its variables put in. Raises `ConfigError` that names a variable which is not set."""

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        held = environment.get(name)
        if otherwise is not None:
            return held or otherwise
        if held is None:
            raise ConfigError(
                f"The MCP server {server.name} needs the variable {name}, which is not set. Set it, or write "
                f"${{{name}:-something}} in {server.source}."
            )
        return held

    def put(text: str) -> str:
        # What a variable holds is not looked at again: a value with ${…} in it is only text.
        return re.sub(_VARIABLE, value, text) if "${" in text else text

    return msgspec.structs.replace(
        server,
        command=os.path.expanduser(put(server.command)),
        args=tuple(map(put, server.args)),
        env=_values(server.env, put),
        cwd=os.path.expanduser(put(server.cwd)),
        url=put(server.url),
        headers=_values(server.headers, put),
    )


def variables(server: McpServerEntry) -> tuple[str, ...]:
    """The names of all variables whose values the server would get."""
    return tuple(dict.fromkeys(found[1] for text in _texts(server) for found in re.finditer(_VARIABLE, text)))


def _values(texts: Mapping[str, str], put: Callable[[str], str]) -> dict[str, str]:
    return {name: put(text) for name, text in texts.items()}


def _texts(server: McpServerEntry) -> Iterator[str]:
    yield from (server.command, *server.args, *server.env.values(), server.cwd, server.url, *server.headers.values())


CLAUDE, AMP = "mcpServers", "amp.mcpServers"
ALLOWED = "amp.mcpPermissions"


class McpFileContents(NamedTuple):
    """What a file says, before any entry is looked at."""

    servers: Mapping[str, Any]
    allowed: Any = None
    """What stands under `amp.mcpPermissions`; None where nothing does."""


def parse_config(text: str, source: str) -> Any:
    """A JSON value in which no key is there twice; comments are allowed. Raises `ConfigError`."""
    try:
        return _strict(text)
    except (ValueError, RecursionError):
        pass
    # For files with comments, and for good words about what is wrong with the others.
    from ferrule.permissions.rules.amp import parse_json, without_comments

    try:
        return parse_json(without_comments(text))
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}.") from None


def strictly_parsed(text: str, source: str) -> Any:
    """The same for a file that is to be written anew: comments would be lost. Raises `ConfigError`."""
    try:
        return _strict(text)
    except (ValueError, RecursionError):
        parse_config(text, source)  # says what is wrong, if anything is
        raise ConfigError(f"{source} has comments, which would be lost. Change it by hand.") from None


def form_of(value: Any, source: str, *, bare: bool = False) -> McpFileContents:
    """The servers of a file; `bare` is for files that may be a map of servers alone. Raises `ConfigError`."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{source}: an object with {CLAUDE} is expected.")
    key = place(value)
    if not key and bare and value and all(isinstance(one, Mapping) for one in value.values()):
        return McpFileContents(value)
    servers = value.get(key, {}) if key else {}
    if not isinstance(servers, Mapping):
        raise ConfigError(f"{source}: {key} is an object of names and servers.")
    return McpFileContents(servers, value.get(ALLOWED))


def place(value: Mapping[str, Any]) -> str:
    """The key under which a file has its servers; empty where it has none."""
    return next((key for key in (CLAUDE, AMP) if key in value), "")


def _strict(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            # Whoever looks at the file sees the first of them, and a parser takes the last.
            raise ValueError("a key is there twice")
        return found

    return json.loads(text, object_pairs_hook=once)


_MOST = 10_000
_PARTS = frozenset({"url", "command", "args"})


class Allowed(NamedTuple):
    """One entry of such a list."""

    source: str
    layer: Layer
    matches: tuple[tuple[str, str], ...]
    """Part of a server → glob; one without any is about every server."""
    is_allowed: bool

    def covers(self, server: McpServerEntry) -> bool:
        if not self.matches:
            return True
        parts = {"url": server.url} if server.url else {"command": server.command, "args": " ".join(server.args)}
        return all(
            name in parts and Wildcard((tuple(glob.split("*")),)).matches(parts[name]) for name, glob in self.matches
        )


def read_allowed(entries: Any, *, source: str, layer: Layer) -> tuple[Allowed, ...]:
    """The entries of one file. Raises `ConfigError`."""
    if not isinstance(entries, list) or len(entries) > _MOST:
        raise ConfigError(f"{source}: {ALLOWED} is a list of at most {_MOST:,} entries")
    return tuple(_entry(entry, number, source, layer) for number, entry in enumerate(entries, start=1))


def _entry(entry: Any, number: int, source: str, layer: Layer) -> Allowed:
    where = f"{source}: {ALLOWED}, entry {number}"
    if not isinstance(entry, Mapping) or entry.keys() - {"matches", "action"}:
        raise ConfigError(f"{where} is an object of matches and action")
    matches, action = entry.get("matches", {}), entry.get("action")
    if action not in {"allow", "reject"}:
        raise ConfigError(f"{where}: the action is allow or reject")
    if not isinstance(matches, Mapping) or matches.keys() - _PARTS:
        raise ConfigError(f"{where}: matches has url, or command and args")
    if not all(isinstance(glob, str) for glob in matches.values()):
        raise ConfigError(f"{where}: what matches holds are texts with * for any characters")
    return Allowed(source, layer, tuple(matches.items()), action == "allow")


def find_rejection(server: McpServerEntry, entries: Iterable[Allowed]) -> Allowed | None:
    """The entry that keeps a server out. The user's own come first; one of a project may reject, and never allow."""
    own = [one for one in entries if one.layer != "project"]
    foreign = [one for one in entries if one.layer == "project"]
    for several in (own, foreign):
        found = next((one for one in several if one.covers(server)), None)
        if found is not None and not found.is_allowed:
            return found
    return None


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
