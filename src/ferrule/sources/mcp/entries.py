"""One server as somebody wrote it, in any of the forms: what is understood becomes a `Server`, the rest a warning."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ferrule.core.errors import ConfigError
from ferrule.settings import McpServer
from ferrule.sources.mcp.names import fault
from ferrule.sources.mcp.server import Layer, Permission, Server, Transport

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


def entry_server(name: object, entry: object, *, layer: Layer, source: str) -> tuple[Server, list[str]]:
    """The server of an entry of JSON, and warnings about what was not understood. Raises `ConfigError`."""
    reader = _Entry(_named(name, source), entry, source)
    command, url = reader.text("command"), reader.text("url")
    server = Server(
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
    return _tightened(server, reader), reader.warnings


def settings_server(name: str, entry: McpServer, *, layer: Layer, source: str) -> tuple[Server, list[str]]:
    """The server of an entry of our own settings. Raises `ConfigError`."""
    reader = _Entry(_named(name, source), {}, source)
    server = Server(
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
    return _tightened(server, reader), reader.warnings


def _is_shut(entry: McpServer) -> bool:
    return entry.disabled or entry.permission == "deny"


def _named(name: object, source: str) -> str:
    if not isinstance(name, str):
        raise ConfigError(f"{source}: the name of an MCP server is a text.")
    if wrong := fault(name):
        raise ConfigError(f"{source}: the MCP server {name[:60]!r} is not used: {wrong}.")
    return name


def _transport(reader: "_Entry", command: str, url: str, said: str, *, absent: bool = False) -> Transport:
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


def _tightened(server: Server, reader: "_Entry") -> Server:
    if server.layer not in _FOREIGN or server.permission != "allow":
        return server
    import msgspec  # for projects that ask for too much

    reader.warn("only your own settings can allow its calls; permission is not used")
    return msgspec.structs.replace(server, permission="ask")


class _Entry:
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
        pairs = {self._is_text(name, key): self._is_text(_worded(one), key) for name, one in value.items()}
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


def _worded(value: object) -> object:
    """A number or a truth value as the text that it is in an environment: people write `"PORT": 8080`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value
