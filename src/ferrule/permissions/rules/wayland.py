"""Reading Wayland's list of tools that need no question, and ah's folders that nobody writes."""

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.permissions.rules.rule import Layer, Rule, RuleSet, Subject

Category = Literal["info", "edit", "exec", "mcp"]

ALLOWED = (
    *("Read", "Grep", "Glob", "web", "WebFetch", "vision_analyze", "transcribe_audio", "ToolSearch", "Skill"),
    *("wayland_status", "wayland_telemetry_query"),
)
"""The list where a file has none."""
MODES: dict[str, frozenset[Category]] = {
    "default": frozenset(),
    "auto_edit": frozenset({"info", "edit"}),
    "force": frozenset({"info", "edit", "exec", "mcp"}),
}
"""Mode → the categories that need no question in it."""

_INFO = frozenset(
    {"read", "read_many", "view_image", "list_dir", "glob", "grep", "plan", "enter_plan", "exit_plan"}
    | {"web_fetch", "web_search", "tool_search", "skill", "shell_list", "shell_output"}
)
_EDIT = frozenset({"edit", "multi_edit", "write", "patch", "notebook_edit", "delete", "undo", "format"})
_LENGTH = 1 << 20


def category(tool: str) -> Category:
    """What kind of tool a canonical one is. One that nobody knows may do anything."""
    if tool.startswith("mcp__"):
        return "mcp"
    return "info" if tool in _INFO else "edit" if tool in _EDIT else "exec"


class OfCategory(NamedTuple):
    """The tools of some categories."""

    categories: frozenset[Category]

    def binds(self, subject: Subject) -> bool:
        return category(subject.tool) in self.categories


def mode_rule(mode: str) -> Rule | None:
    """What a mode of Wayland's allows, as a rule; None for the one in which everything is as the list says.

    Raises: ConfigError for a mode that there is not.
    """
    if mode not in MODES:
        raise ConfigError(f"Wayland has no mode {mode!r}; there are {', '.join(MODES)}.")
    categories = MODES[mode]
    return Rule("allow", "*", f"mode {mode}", binds=OfCategory(categories)) if categories else None


def read(given: str | Mapping[str, Any], *, source: str, layer: Layer) -> RuleSet:
    """The rules of a TOML file, or of what was read from one: `[tools]` with `auto_approve` and `allow_list`.

    A file of a project does not turn the questions off, trusted or not. Raises: ConfigError.
    """
    tools = (_parsed(given, source) if isinstance(given, str) else given).get("tools")
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


def _parsed(text: str, source: str) -> Mapping[str, Any]:
    import tomllib  # for whoever has such a file

    if len(text) > _LENGTH:
        raise ConfigError(f"{source} is longer than {_LENGTH} characters; that is too much for rules.")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: it is not TOML ({error}).") from error


class Writes(NamedTuple):
    """Something in the folder is written, whichever way the path was spelled."""

    folder: str

    def holds(self, subject: Subject, *, strictly: bool) -> bool:  # noqa: ARG002 - the protocol's
        folder = self.folder.casefold()
        written = (path for path in subject.paths if path.mode == "write")
        return any(
            within(one.casefold(), folder) for path in written for one in (path.real, os.path.normpath(path.spelled))
        )


class WritesAround(NamedTuple):
    """A folder is written, moved or removed that the kept one is in."""

    folder: str

    def holds(self, subject: Subject, *, strictly: bool) -> bool:  # noqa: ARG002 - the protocol's
        folder = self.folder.casefold()
        return any(path.mode == "write" and within(folder, path.real.casefold()) for path in subject.paths)


class Everything(NamedTuple):
    """Every tool."""

    def binds(self, subject: Subject) -> bool:  # noqa: ARG002 - the protocol's
        return True


def protected_folders(value: str, cwd: str) -> tuple[str, ...]:
    """The folders of `AH_PROTECT_DIRS`, where they really are. One that is not there yet is kept all the same."""
    named = [folder for folder in value.split(os.pathsep) if folder.strip()]
    places = (os.path.realpath(os.path.join(cwd, os.path.expanduser(folder))) for folder in named)
    return tuple(dict.fromkeys(places))


def protection(folder: str) -> Rule:
    """Nothing writes into a folder, which is given by its real path; by whole names, not by how paths begin."""
    message = f"Refusing to write into {folder}: the user keeps the folder from being written."
    text = f"AH_PROTECT_DIRS {folder}"
    return Rule("deny", "*", text, condition=Writes(folder), binds=Everything(), message=message)


def around(folder: str) -> Rule:
    """Whoever writes a whole folder that has the kept one in it is asked about."""
    return Rule("ask", "*", f"AH_PROTECT_DIRS {folder}", condition=WritesAround(folder), binds=Everything())
