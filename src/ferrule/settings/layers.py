"""Settings from several files: whoever runs the machine, the user, the project; and where each value came from.

What the machine's settings say holds over everything else. A project's file counts only where the user trusts it, and
only for what a project may decide: nothing in it opens folders, files, commands or the network.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.settings import SOURCES, Settings, decode_settings

Name = Literal["managed", "user", "project"]

PROJECT_MAY = (
    "dialect",
    "dialects.*",
    "limits.*",
    "shell.seconds",
    "shell.quiet_seconds",
    "tools.exposure.*",
    "tools.disable",
    "skills.disable",
    "mcp.defer_tokens",
    "checks.*",
)
"""The settings of a trusted project that count; rules, hooks and servers are read on their own."""
_DEEP = ("mcp.servers.", "lsp.servers.", "tools.exposure.", "web.search.")
"""Settings that have one more level: servers and exposures have names, and searching is a part of the web."""
_APART = ("permissions.", "hooks.", "mcp.servers.")
"""Rules, hooks and servers know their layer: they are not put over one another here."""
_OBEYED = (*_APART, "mcp.files", "skills.folders", "tools.folders", "tools.toolbox")
"""What a session without the source `user` leaves out of the user's settings; how it works on this machine stays."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class LayerFile(NamedTuple):
    """A settings file of one layer, as it was read."""

    layer: Name
    path: str
    raw: bytes


class Layered(NamedTuple):
    """The settings of a session."""

    settings: Settings
    """One over the other; rules, hooks and servers are the user's alone."""
    origins: Mapping[str, str]
    """A setting's name → the file that its value comes from; what is not in it has its default."""
    layers: Mapping[Name, Settings]
    """What each file says by itself."""
    warnings: tuple[str, ...] = ()


def merge_layers(files: Sequence[LayerFile], over: Mapping[str, Any] = _NOTHING) -> Layered:
    """The files put over one another. Raises `ConfigError` for one that is wrong.

    `over` is what one session wants: over the user's and the project's files, and under the machine's.
    """
    layers = {file.layer: decode_settings(file.raw, file.path) for file in files}
    warnings: list[str] = []
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    own = layers["user"].sources if "user" in layers else SOURCES
    obeys_user = "user" in over.get("sources", own)
    for wanted in ("user", "project", "managed"):
        if wanted == "managed":
            _put_over(values, over)
        for file in files:
            if file.layer != wanted:
                continue
            for key, value in leaves(msgspec.toml.decode(file.raw)):
                if wanted == "user" and not obeys_user and key.startswith(_OBEYED):
                    continue
                if key.startswith(_APART):
                    if wanted == "user":
                        values[key], origins[key] = value, file.path
                elif wanted == "project" and not _may(key):
                    warnings.append(f"{file.path}: a project cannot set {key}; put it into your own settings.")
                else:
                    values[key] = value
                    origins[key] = file.path
    is_plain = set(layers) == {"user"} and not over and obeys_user
    settings = layers["user"] if is_plain else _settings(values)
    return Layered(settings, origins, layers, tuple(warnings))


def _put_over(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Rules come beside the user's, everything else comes in its place."""
    for key, value in leaves(over):
        is_more = key.startswith("permissions.") and isinstance(value, list | tuple)
        values[key] = [*values.get(key, ()), *value] if is_more else value


def _settings(values: Mapping[str, Any]) -> Settings:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *folders, last = key.split(".", 2 if key.startswith(_DEEP) else 1)
        at = nested
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = value
    try:
        return msgspec.convert(nested, Settings)
    except msgspec.ValidationError as error:  # each file is valid by itself
        raise ConfigError(f"The settings do not fit together: {error}.") from error


def leaves(values: Mapping[str, Any], *, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Every setting by its dotted name; servers and exposures one by one, and an event's hooks as one."""
    for key, value in values.items():
        is_deep = depth > 1 or key in {"servers", "exposure", "search"}
        if isinstance(value, Mapping) and depth and is_deep:
            for inner, member in leaves(value, depth=depth - 1):
                yield f"{key}.{inner}", member
        else:
            yield key, value


def _may(key: str) -> bool:
    return any(key == one or (one.endswith(".*") and key.startswith(one[:-1])) for one in PROJECT_MAY)


def list_settings() -> Iterator[tuple[str, Any]]:
    """Every setting with its default, in the order in which they are written down."""
    yield from _fields(Settings())


def _fields(value: msgspec.Struct, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if isinstance(held, msgspec.Struct):
            yield from _fields(held, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", held


def value_of(settings: Settings, key: str) -> Any:
    """The value of a setting by its dotted name."""
    held: Any = settings
    for name in key.split("."):
        held = getattr(held, name)
    return held


def project_path(workspace: str) -> str:
    """The settings file of a project."""
    return os.path.join(workspace, ".ferrule", "settings.toml")
