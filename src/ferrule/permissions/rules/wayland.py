"""Reading Wayland's list of tools that need no question."""

from collections.abc import Mapping
from typing import Any

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules.rule import Layer, Rule, RuleSet

ALLOWED = (
    *("Read", "Grep", "Glob", "web", "WebFetch", "vision_analyze", "transcribe_audio", "ToolSearch", "Skill"),
    *("wayland_status", "wayland_telemetry_query"),
)
"""The list where a file has none."""
_LENGTH = 1 << 20


def read(given: str | Mapping[str, Any], *, source: str, layer: Layer) -> RuleSet:
    """The rules of a TOML file, or of what was read from one: `[tools]` with `auto_approve` and `allow_list`.

    A file of a project does not turn the questions off, trusted or not. Raises: ConfigError.
    """
    tools = (_parse(given, source) if isinstance(given, str) else given).get("tools")
    if not isinstance(tools, Mapping):
        raise ConfigError(f"{source}: there is no table tools, with allow_list in it.")
    names = tools.get("allow_list", ALLOWED)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ConfigError(f"{source}: allow_list is a list of the names of tools.")
    everything = tools.get("auto_approve", False)
    if not isinstance(everything, bool):
        raise ConfigError(f"{source}: auto_approve is true or false.")
    warnings = [f"{source}: {key} is not used here." for key in tools if key not in {"allow_list", "auto_approve"}]
    warnings += [
        f"{source}: {name} has a *, and this list has no patterns; it allows nothing." for name in names if "*" in name
    ]
    if everything and layer == "project":
        warnings.append(f"{source}: a project does not turn the questions off, so auto_approve is not used.")
        everything = False
    return RuleSet(
        tuple(Rule("allow", name, f"allow_list {name}") for name in dict.fromkeys(names)),
        ordered=False,
        source=source,
        layer=layer,
        warnings=tuple(warnings),
        mode="bypassPermissions" if everything else "",
    )


def _parse(text: str, source: str) -> Mapping[str, Any]:
    import tomllib  # for whoever has such a file

    if len(text) > _LENGTH:
        raise ConfigError(f"{source} is longer than {_LENGTH} characters; that is too much for rules.")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: it is not TOML ({error}).") from error
