"""All configured servers of a session: from whoever runs the machine, the session, the user, the project.

Of two servers with the same name the one that is written nearer to the user counts; letter case makes no other name.
What cannot be understood is a warning and harms only the server that it is about.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.core.errors import ConfigError
from ferrule.settings import SOURCES, Mcp, decode_settings, settings_path
from ferrule.sources.mcp import places
from ferrule.sources.mcp.entries import entry_server, settings_server
from ferrule.sources.mcp.forms import Form, form_of, parsed
from ferrule.sources.mcp.server import Layer, Server

if TYPE_CHECKING:
    from ferrule.sources.mcp.allowed import Allowed

_MOST_SERVERS = 500


class Configured(NamedTuple):
    """The servers of a session, the foremost of each name, disabled ones too."""

    servers: tuple[Server, ...] = ()
    warnings: tuple[str, ...] = ()
    allowed: "tuple[Allowed, ...]" = ()
    """What decides about servers once more, when their variables are known."""
    is_shut: bool = False
    """Is there a list of allowed servers that nobody understands? Then none of them starts."""


def configured(
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
    reader = _Reader()
    folder = user_folder or os.path.dirname(settings_path())
    # The order is the precedence.
    if managed is not None:
        reader.settings(managed, layer="managed", source="the managed settings")
        for file in managed.files:
            reader.file(_absolute(file), layer="managed")
    for number, text in enumerate(given, start=1):
        reader.given(text, number)
    if not strict:
        reader.settings(mcp, layer="user", source="your settings")
        if "user" in sources:
            reader.file(os.path.join(folder, places.USER_FILE), layer="user", optional=True)
        for file in mcp.files:
            reader.file(os.path.join(folder, os.path.expanduser(file)), layer="user")
    for file in rule_files:
        reader.rules(os.path.join(folder, os.path.expanduser(file)))
    if "project" in sources and not strict:
        reader.project(workspace)
    return reader.configured()


def skill_servers(entries: Mapping[str, Any], *, source: str, layer: Layer = "skill") -> Configured:
    """The servers of a skill's `mcp.json`, which may be a bare map."""
    reader = _Reader()
    reader.form(source, lambda: form_of(entries, source, bare=True), layer=layer)
    return reader.configured()


def errors_of(given: Sequence[str]) -> tuple[str, ...]:
    """What cannot be understood of texts or files of `--mcp-config`."""
    reader = _Reader()
    for number, text in enumerate(given, start=1):
        reader.given(text, number)
    return tuple(reader.errors)


class _Reader:
    """Collects servers, the foremost first."""

    def __init__(self) -> None:
        self._servers: dict[str, Server | None] = {}
        """By names in lower case; None where one was broken."""
        self._warnings: list[str] = []
        self.errors: list[str] = []
        """Those of the warnings that say what cannot be understood at all."""
        self._allowed: list[Allowed] = []
        self._is_shut = False

    def settings(self, mcp: Mcp, *, layer: Layer, source: str) -> None:
        for name, entry in mcp.servers.items():
            self._add(name, partial(settings_server, name, entry, layer=layer, source=source))

    def given(self, text: str, number: int) -> None:
        """What `--mcp-config` brings: JSON, or the path of a file."""
        if text.lstrip().startswith(("{", "/*", "//")):
            source = "--mcp-config" if number == 1 else f"--mcp-config {number}"
            self.form(source, lambda: form_of(parsed(text, source), source, bare=True), layer="session")
        else:
            self.file(_absolute(text), layer="session")

    def file(self, path: str, *, layer: Layer, optional: bool = False) -> None:
        def read() -> Form:
            text = places.read_own(path)
            if text is None:
                if optional:
                    return Form({})
                raise ConfigError(f"{path}, which is to have MCP servers, is not there.")
            return form_of(parsed(text, path), path, bare=True)

        self.form(path, read, layer=layer)

    def rules(self, path: str) -> None:
        """A file of rules has no servers for us; what is wrong with it says whoever reads its rules."""
        try:
            form = form_of(parsed(places.read_own(path) or "{}", path), path)
        except ConfigError:
            return
        self.form(path, lambda: Form({}, form.allowed), layer="user")

    def project(self, workspace: str) -> None:
        path = os.path.join(workspace, *places.PROJECT_SETTINGS.split("/"))
        try:
            text = places.read_project(workspace, places.PROJECT_SETTINGS)
            if text is not None:
                self.settings(decode_settings(text.encode(), path).mcp, layer="project", source=path)
        except ConfigError as error:
            self._warnings.append(str(error))
        for name in places.PROJECT_FILES:
            self._project_file(workspace, name)

    def _project_file(self, workspace: str, name: str) -> None:
        path = os.path.join(workspace, *name.split("/"))

        def read() -> Form:
            text = places.read_project(workspace, name)
            return Form({}) if text is None else form_of(parsed(text, path), path)

        self.form(path, read, layer="project")

    def form(self, source: str, read: Callable[[], Form], *, layer: Layer) -> None:
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
        from ferrule.sources.mcp.allowed import read_allowed  # for whoever has such a list

        try:
            self._allowed += read_allowed(entries, source=source, layer=layer)
        except ConfigError as error:
            self._is_shut = True
            self._warnings.append(f"{error}. No MCP server is used until that is mended.")

    def _add(self, name: str, make: Callable[[], tuple[Server, list[str]]]) -> None:
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

    def configured(self) -> Configured:
        servers = [] if self._is_shut else list(filter(None, self._servers.values()))
        if self._allowed:
            servers = list(filter(self._lets, servers))
        return Configured(tuple(servers), tuple(self._warnings), tuple(self._allowed), self._is_shut)

    def _lets(self, server: Server) -> bool:
        from ferrule.sources.mcp.allowed import rejecting  # as above

        reason = rejecting(server, self._allowed)
        if reason is not None:
            self._warnings.append(f"The MCP server {server.name} is not used: {reason.source} rejects it.")
        return reason is None


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
