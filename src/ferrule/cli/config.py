"""Implement `ferrule config`: show and change settings, and edit settings files.

Every setting is shown with its value and its origin. Files are changed one value at a time, or as a whole in an
editor; a file that cannot be understood is never written.
"""

import json
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec
import tomlkit

from ferrule import permissions
from ferrule.cli.options import setting_keys
from ferrule.cli.show import DONE, DefaultCommandGroup, paint
from ferrule.core.errors import ConfigError, near
from ferrule.dialects import load_dialect
from ferrule.engine.build import check_folders, layers_of
from ferrule.models.catalog import resolve_name
from ferrule.settings import Settings, managed_path, read_settings, settings_path, state_folder
from ferrule.settings.layers import LayerFile, Name, list_settings, merge_layers, project_path, value_of

_VARIABLES = (
    "FERRULE_SETTINGS",
    "FERRULE_STATE",
    "FERRULE_MODEL",
    "FERRULE_TASK_LIST",
    "FERRULE_TOOLBOX",
    "AMP_TOOLBOX",
)
_PROJECT = "The project (default: this folder)."
_PASSWORD = re.compile(r"(?<=://)[^/?#@\s]*(?=@)")


@click.group("config", cls=DefaultCommandGroup, first="show")
def command() -> None:
    """Show and change the settings.

    \b
    Examples:
      ferrule config show
      ferrule config show mcp
      ferrule config show --changed
      ferrule config get models.default
      ferrule config set models.default ollama:qwen3
      ferrule config unset loop.turns
      ferrule config edit --project
      ferrule config path
    """


@command.command("show")
@click.argument("prefix", metavar="[KEY]", default="", shell_complete=setting_keys)
@click.option("-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help=_PROJECT)
@click.option("--changed", is_flag=True, help="Only what is not at its default.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(prefix: str, *, workspace: str, changed: bool, as_json: bool) -> int:
    """Show every setting, or those below KEY, with where it is set."""
    check_folders(workspace)
    whole = layers_of(workspace, state_folder())
    every = _rows(whole, workspace)
    rows = [row for row in every if row["key"] == prefix or row["key"].startswith(f"{prefix}." if prefix else "")]
    if prefix and not rows:
        raise click.UsageError(_unknown(prefix, [row["key"] for row in every]))
    rows = [row for row in rows if not changed or row["from"] != "default"]
    width = max((len(row["key"]) for row in rows), default=0)
    for row in rows:
        if as_json:
            click.echo(json.dumps(row, ensure_ascii=False))
            continue
        origin = "" if row["from"] == "default" else paint(f"  # {row['from']}", "cyan")
        value = "none" if row["value"] is None else json.dumps(row["value"], ensure_ascii=False)
        click.echo(f"{row['key']:<{width}} = {value}{origin}")
    if not as_json:
        for name in _VARIABLES:
            if name in os.environ and not prefix:
                click.echo(f"{name}={os.environ[name]}{paint('  # the environment', 'cyan')}")
        for warning in whole.warnings:
            click.echo(paint(f"warning: {warning}", "yellow"), err=True)
    return DONE


@command.command("get")
@click.argument("key", shell_complete=setting_keys)
@click.option("-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help=_PROJECT)
def get(key: str, *, workspace: str) -> int:
    """Print the value of one setting, or those of a table."""
    check_folders(workspace)
    every = _rows(layers_of(workspace, state_folder()), workspace)
    for row in every:
        if row["key"] == key:
            value = "" if row["value"] is None else row["value"]
            click.echo(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            return DONE
    members = [row for row in every if row["key"].startswith(f"{key}.")]
    if not members:
        raise click.UsageError(_unknown(key, [row["key"] for row in every]))
    for row in members:
        value = "none" if row["value"] is None else json.dumps(row["value"], ensure_ascii=False)
        click.echo(f"{row['key']} = {value}")
    return DONE


@command.command("set")
@click.argument("key", shell_complete=setting_keys)
@click.argument("value")
@click.option("--project", is_flag=True, help="Change the project's file, not yours.")
@click.option("-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help=_PROJECT)
def set_value(key: str, value: str, *, project: bool, workspace: str) -> int:
    """Write one setting into your settings file. VALUE is written as in TOML; a string needs no quotes."""
    check_folders(workspace)
    parts = key_path(key)
    if parts is None:
        raise click.UsageError(_unknown(key, [name for name, _ in list_settings()]))
    file = SettingsFile(workspace, of_project=project)
    file.write(with_value(file, parts, value))
    click.echo(f"{key} is set in {file.path}.")
    if project:
        click.echo("A project's settings count if you trust it: ferrule permissions trust")
        return DONE
    origin = layers_of(workspace, state_folder()).origins.get(key, "")
    if origin and os.path.realpath(origin) != file.path:
        click.echo(f"warning: {origin} sets it too, and comes before it.", err=True)
    return DONE


@command.command("unset")
@click.argument("key", shell_complete=setting_keys)
@click.option("--project", is_flag=True, help="Change the project's file, not yours.")
@click.option("-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help=_PROJECT)
def unset(key: str, *, project: bool, workspace: str) -> int:
    """Take one setting out of your settings file again."""
    check_folders(workspace)
    parts = key_path(key)
    if parts is None:
        raise click.UsageError(_unknown(key, [name for name, _ in list_settings()]))
    file = SettingsFile(workspace, of_project=project)
    file.write(without(file, parts))
    row = next((one for one in _rows(layers_of(workspace, state_folder()), workspace) if one["key"] == key), None)
    value = "none" if row is None or row["value"] is None else json.dumps(row["value"], ensure_ascii=False)
    where = "at its default again" if row is None or row["from"] == "default" else f"as {row['from']} has it"
    click.echo(f"{key} is {where} ({value}).")
    return DONE


@command.command("edit")
@click.option("--project", is_flag=True, help="Edit the project's file, not yours.")
@click.option("-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help=_PROJECT)
def edit_file(*, project: bool, workspace: str) -> int:
    """Edit your settings file with $VISUAL or $EDITOR. What is no settings file is not written."""
    check_folders(workspace)
    file = SettingsFile(workspace, of_project=project)
    is_changed = edit(file, may_ask=sys.stdin is not None and sys.stdin.isatty())
    click.echo(f"{file.path} is {'written' if is_changed else 'as it was'}.")
    return DONE


@command.command("path")
@click.option("-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help=_PROJECT)
def path(*, workspace: str) -> int:
    """Print the settings file of every layer, and whether it is there."""
    check_folders(workspace)
    for layer, file in (
        ("managed", managed_path()),
        ("user", settings_path()),
        ("project", project_path(os.path.realpath(workspace))),
    ):
        click.echo(f"{layer:<8} {file}{'' if os.path.exists(file) else '  (not there)'}")
    return DONE


def list_setting_keys() -> list[str]:
    """Every setting by its whole name. Raises ConfigError where the settings cannot be read."""
    return [row["key"] for row in _rows(layers_of(".", state_folder()), ".")]


def _unknown(key: str, known: list[str]) -> str:
    meant = f" Did you mean {' or '.join(found)}?" if (found := near(key, known)) else ""
    return f"There is no setting {key!r}.{meant} `ferrule config show` lists them all."


def _rows(whole: Any, workspace: str) -> list[dict[str, Any]]:
    rows = []
    for key, _ in list_settings():
        rows += _members(key, value_of(whole.settings, key), whole.origins)
    for layer in ("project", "managed"):
        for key in ("permissions.allow", "permissions.ask", "permissions.deny", "hooks", "mcp.servers"):
            held = value_of(whole.layers[layer], key) if layer in whole.layers else None
            file = managed_path() if layer == "managed" else project_path(os.path.realpath(workspace))
            rows += [row | {"key": f"{row['key']} ({layer})"} for row in _members(key, held, {}, file) if held]
    return rows


def _members(key: str, value: Any, origins: Any, otherwise: str = "default") -> list[dict[str, Any]]:
    """A row for a setting, or one for each member of a table; some tables come from one file as a whole."""
    origin = origins.get(key, otherwise)
    if isinstance(value, dict) and value:
        return [row for name, held in value.items() for row in _members(f"{key}.{name}", held, origins, origin)]
    return [{"key": key, "value": _mask_value(msgspec.to_builtins(value)), "from": origin}]


def _mask_value(value: Any) -> Any:
    """A value as it may be shown: what is handed to a server may be a secret, and so may be who asks in an address."""
    if isinstance(value, dict):
        held = {name: member for name, member in value.items() if member not in ({}, (), [], "", None, False)}
        secret = ("env", "headers")
        return {name: _mask_members(member) if name in secret else _mask_value(member) for name, member in held.items()}
    return _PASSWORD.sub("…", value) if isinstance(value, str) else value


def _mask_members(values: dict[str, str]) -> dict[str, str]:
    return {name: text if "${" in text else "…" for name, text in values.items()}


class SettingsFile:
    """The settings file of the user or of a project."""

    def __init__(self, workspace: str, *, of_project: bool) -> None:
        """Raises: ConfigError if a project's file is a link out of the project."""
        folder = os.path.realpath(workspace)
        self.layer: Name = "project" if of_project else "user"
        named = project_path(folder) if of_project else settings_path()
        # The user's file may be a link, as those who keep their settings in git have it.
        self.path = os.path.realpath(named)
        if of_project and self.path != named:
            raise ConfigError(f"{named} is a link to {self.path}, so it is not written.")

    def read(self) -> str:
        """The text; empty if there is no file. Raises: ConfigError."""
        raw = read_settings(self.path) or b""
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.path} is not UTF-8 text (byte {error.start + 1}).") from error

    def settings(self, text: str) -> Settings:
        """What the text says. Raises ConfigError if these are no settings that this file may hold."""
        whole = merge_layers([LayerFile(self.layer, self.path, text.encode())])
        if whole.warnings:
            raise ConfigError(whole.warnings[0])
        return whole.settings

    def write(self, text: str) -> None:
        """Write the whole file or nothing. Raises: ConfigError if it is wrong, OSError."""
        self.settings(text)
        folder = os.path.dirname(self.path)
        os.makedirs(folder, exist_ok=True)
        try:
            mode = os.stat(self.path).st_mode & 0o777
        except FileNotFoundError:
            mode = 0o600
        descriptor, new = tempfile.mkstemp(prefix=".settings-", dir=folder)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            os.chmod(new, mode)
            os.replace(new, self.path)
        except BaseException:
            os.unlink(new)
            raise


def key_path(key: str) -> list[str] | None:
    """The parts of a setting's name, None if there is no such setting. A part with a dot stands in quotes."""
    try:
        held: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return None
    parts = []
    while isinstance(held, dict) and len(held) == 1:
        ((part, held),) = held.items()
        parts.append(part)
    name = ".".join(parts)
    is_known = any(
        name == known or (isinstance(default, dict) and name.startswith(f"{known}."))
        for known, default in list_settings()
    )
    return parts if held == 0 and is_known else None


def with_value(file: SettingsFile, parts: Sequence[str], value: str) -> str:
    """The text of the file with one value changed, and all else as it was. Raises: ConfigError.

    A value is written as in TOML; what is none, or does not fit, is taken as a string.
    """
    before = file.read()
    if before:
        file.settings(before)
    first: ConfigError | None = None
    for candidate in _candidates(value):
        after = _set_toml_value(before, parts, candidate)
        try:
            held = file.settings(after)
        except ConfigError as error:
            first = first or error
        else:
            check_meaning(held, ".".join(parts))
            return after
    assert first is not None
    raise _plain(first, ".".join(parts), value)


def without(file: SettingsFile, parts: Sequence[str]) -> str:
    """The text of the file without one value, and all else as it was. Raises: ConfigError."""
    document: Any = tomlkit.parse(file.read())
    at = document
    for part in parts[:-1]:
        at = at.get(part, {})
    if not isinstance(at, dict) or parts[-1] not in at:
        raise ConfigError(f"{'.'.join(parts)} is not set in {file.path}: there is nothing to take away.")
    del at[parts[-1]]
    return tomlkit.dumps(document)


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": """a list, as '["one", "two"]'""",
    "object": "a table, which `ferrule config edit` can write",
    "null": "nothing",
}


def _plain(error: ConfigError, key: str, value: str) -> ConfigError:
    """The error in words, if it says what kind of value was expected."""
    found = re.search(r"Expected `([\w| ]+)`( [<>]=? [\d.]+)?", str(error))
    kinds = [_KINDS.get(kind) for kind in found[1].split(" | ")] if found is not None else [None]
    if found is None or None in kinds:
        return error
    named = " or ".join(kind for kind in kinds if kind and kind != "nothing")
    away = f" `ferrule config unset {key}` takes the value away." if value.lower() in {"none", "null"} else ""
    return ConfigError(f"{key} takes {named}{found[2] or ''}, and {value!r} is none.{away}")


def check_meaning(settings: Settings, key: str = "") -> None:
    """Raises ConfigError if the value of one setting, or of any, is the name of something that there is not."""
    checks: dict[str, Callable[[], object]] = {
        "dialect": lambda: load_dialect(settings.dialect),
        "permissions.mode": lambda: permissions.parse_mode(settings.permissions.mode),
        "models.default": lambda: settings.models.default and resolve_name(settings.models.default, settings.models),
        "models.small": lambda: settings.models.small and resolve_name(settings.models.small, settings.models),
    }
    for name, check in checks.items():
        if key in {name, ""}:
            check()


def _candidates(value: str) -> list[Any]:
    try:
        held = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return [value]
    return [held["value"], value] if set(held) == {"value"} else [value]


def _set_toml_value(text: str, parts: Sequence[str], value: Any) -> str:

    document = tomlkit.parse(text)
    wanted: Any = tomllib.loads(text)
    at: Any = document
    inside = wanted
    for part in parts[:-1]:
        if part not in at:
            at[part] = tomlkit.table()
        at, inside = at[part], inside.setdefault(part, {})
        if not isinstance(inside, dict):
            raise ConfigError(f"{part} is no table in the file: use `ferrule config edit`.")
    at[parts[-1]] = value
    inside[parts[-1]] = value
    after = tomlkit.dumps(document)
    try:
        is_right = tomllib.loads(after) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise ConfigError("The file is written in a way that one value cannot be put into: use `ferrule config edit`.")
    return after


def edit(file: SettingsFile, *, may_ask: bool) -> bool:
    """Have the user edit a copy, until it is right or the user gives up. False if nothing was changed.

    Raises: ConfigError.
    """
    before = text = file.read()
    while True:
        # An editor for terminals would wait for ever without one.
        if not (may_ask or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
            raise ConfigError("There is no terminal for an editor: use `ferrule config set`, or set EDITOR.")
        edited = click.edit(text, extension=".toml", require_save=False)
        if edited is None or edited == before:
            return False
        try:
            check_meaning(file.settings(edited))
            file.write(edited)
        except ConfigError as error:
            click.echo(f"ferrule: {error}", err=True)
            if not (may_ask and click.confirm("Edit it again?", default=True, err=True)):
                raise ConfigError(f"{file.path} is as it was.") from error
            text = edited
        else:
            return True
