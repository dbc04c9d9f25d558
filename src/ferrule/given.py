"""What an engine is given: refused at once where it would only fail later, and the dialect and settings that follow."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict

from ferrule.core.errors import ConfigError
from ferrule.core.tool import AnyTool, Tool
from ferrule.dialects.dialect import Dialect, load_dialect
from ferrule.registry.foreign import Family
from ferrule.registry.registry import Later, Registry, Showing
from ferrule.settings import Settings, load_settings, managed_path, read_settings, settings_path
from ferrule.tools import BUILTIN, load

if TYPE_CHECKING:
    from ferrule.execute.hooks.hook import Hook
    from ferrule.layered import Layered
    from ferrule.permissions.modes import ModeConfig


class Options(TypedDict, total=False):
    """What an engine takes that a session hands on as it is, so that whoever writes a program is told of them."""

    mode: "ModeConfig | None"
    permission_mode: str | None
    rules: str | os.PathLike[str] | None
    add_dirs: Sequence[str | os.PathLike[str]]
    settings: Settings | None
    over: Mapping[str, Any]
    hooks: "Sequence[Hook]"
    mcp_config: Sequence[str | os.PathLike[str]]
    lazy: bool
    network: bool
    allow_hosts: Sequence[str]
    watched: bool


def with_network(settings: Settings, *, network: bool, hosts: Sequence[str]) -> Settings:
    """The settings with what this session may reach beside them. Raises `ConfigError` for what is no host."""
    if not network and not hosts:
        return settings
    import msgspec

    from ferrule.support.hosts import entries  # for sessions that are given hosts

    try:
        entries(hosts)
    except ValueError as error:
        raise ConfigError(f"allow_hosts: {error}") from error
    sandbox = settings.sandbox
    changed = msgspec.structs.replace(
        sandbox, network=network or sandbox.network, hosts=(*sandbox.hosts, *map(str, hosts))
    )
    return msgspec.structs.replace(settings, sandbox=changed)


def family(dialect: Dialect) -> Family:
    """A dialect as the registry takes it."""
    return Family(dialect.name, dialect.faces, dialect.aliases)


def chosen(given: str | Dialect | None, model: str | None, settings: Settings) -> Dialect:
    """The dialect that was given, else the one that the model speaks best, else the one of the settings."""
    if isinstance(given, Dialect):
        return given
    if given is None and model is not None:
        from ferrule.dialects.pick import pick  # for sessions with a model

        given = pick(model, settings.dialects)
    return load_dialect(settings.dialect if given is None else given)


def settled(
    workspace: str, state: str, over: Mapping[str, Any] = MappingProxyType({})
) -> "tuple[Settings, Layered | None]":
    """The settings of all layers, and where they came from; mostly there is only the user's file, or none.

    `over` is what this session wants beside them.
    """
    project = os.path.join(workspace, ".ferrule", "settings.toml")
    if not over and not os.path.lexists(project) and not os.path.exists(managed_path()):
        settings = load_settings()
        if "user" in settings.sources:
            return settings, None
    whole = layers_of(workspace, state, over)
    return whole.settings, whole


def layers_of(workspace: str, state: str, over: Mapping[str, Any] = MappingProxyType({})) -> "Layered":
    """The settings of all layers, each value with its origin."""
    from ferrule.layered import File, layered, project_path  # for projects and machines with settings of their own
    from ferrule.permissions.layers import project_files
    from ferrule.permissions.trust import Trust

    files = []
    if (raw := read_settings(managed_path())) is not None:
        files.append(File("managed", managed_path(), raw))
    if (raw := read_settings(settings_path())) is not None:
        files.append(File("user", settings_path(), raw))
    sources = over.get("sources") or layered(files, over).settings.sources
    real = os.path.realpath(os.path.expanduser(workspace))
    path = project_path(real)
    notes: tuple[str, ...] = ()
    if os.path.lexists(path) and "project" in sources:
        seen = Trust(state).look(real, project_files(real))
        if seen.state == "trusted" and path in seen.contents:
            files.append(File("project", path, seen.contents[path]))
        else:
            notes = (f"{path} is not trusted: only its rules that tighten count. See `ferrule permissions trust`.",)
    whole = layered(files, over)
    return whole._replace(warnings=(*whole.warnings, *notes))


def registry_of(
    dialect: Dialect,
    settings: Settings,
    tools: Sequence[AnyTool],
    foreign: Callable[[], Sequence[Family]],
    *,
    for_people: bool,
) -> Registry:
    """The built-in tools and those that the program gives, with the family's faces."""
    known = (Later(name, functools.partial(load, name)) for name in BUILTIN)
    showing = Showing(
        disable=settings.tools.disable,
        exposure={**dict.fromkeys(dialect.deferred, "deferred"), **settings.tools.exposure},
        short_names=dialect.short_names,
        defers=dialect.defers,
        defer_tokens=settings.mcp.defer_tokens,
        for_people=for_people,
    )
    return Registry((*known, *tools), dialect.faces, dialect.aliases, foreign, showing)


NEED_MODEL = frozenset(
    {"delegate", "oracle", "librarian", "kraken", "agent_wait", "agent_list", "agent_send", "agent_stop"}
)
"""Tools that are nothing without subagents: a session without a model does not show them."""


def new_session_id() -> str:
    """An id that nobody can guess, in the form that Amp's threads have."""
    raw = os.urandom(16).hex()
    return f"T-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"


def check_folders(*folders: str) -> None:
    """Refuse what is no folder."""
    for folder in folders:
        if not os.path.isdir(os.path.expanduser(folder)):
            raise ConfigError(f"{folder} is not a folder.")


def check(
    tools: Sequence[object],
    ask: object,
    add_dirs: object,
    settings: object,
    mcp_config: Sequence[object] = (),
    *,
    mode: object = None,
) -> None:
    """Refuse at once what would only fail later, in the middle of a session."""
    for one in tools:
        if not isinstance(one, Tool):
            raise ConfigError(f"tools= takes tools, made with @tool or from Tool, not {one!r:.80}.")
    if ask is not None and not callable(ask) and not hasattr(ask, "ask"):
        raise ConfigError(f"ask= takes a function that answers questions, not {ask!r:.80}.")
    if isinstance(add_dirs, (str, os.PathLike)):
        raise ConfigError("add_dirs= takes a list of folders; give [folder].")
    if isinstance(mcp_config, str) or not all(isinstance(one, str | os.PathLike) for one in mcp_config):
        raise ConfigError("mcp_config= takes a list of files, or of texts with JSON in them; give [file].")
    if settings is not None and not isinstance(settings, Settings):
        raise ConfigError("settings= takes a Settings; msgspec.convert(values, Settings) makes one of plain values.")
    if isinstance(mode, str):
        raise ConfigError(f"mode= takes a ModeConfig, the tools of a session; is permission_mode={mode!r} meant?")
