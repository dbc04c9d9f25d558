"""`ferrule config`: every setting, its value, where that came from, and how it is changed."""

import json
import os
import re
import sys
from typing import Any

import click
import msgspec

from ferrule.cli.candidates import setting_keys
from ferrule.cli.codes import DONE
from ferrule.cli.show import Listed, paint

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


@click.group("config", cls=Listed, first="show")
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
    from ferrule.given import check_folders, layers_of
    from ferrule.settings import state_folder

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
    from ferrule.given import check_folders, layers_of
    from ferrule.settings import state_folder

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
    from ferrule.cli.settings_file import SettingsFile, key_path, with_value
    from ferrule.given import check_folders, layers_of
    from ferrule.layered import described
    from ferrule.settings import state_folder

    check_folders(workspace)
    parts = key_path(key)
    if parts is None:
        raise click.UsageError(_unknown(key, [name for name, _ in described()]))
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
    from ferrule.cli.settings_file import SettingsFile, key_path, without
    from ferrule.given import check_folders, layers_of
    from ferrule.layered import described
    from ferrule.settings import state_folder

    check_folders(workspace)
    parts = key_path(key)
    if parts is None:
        raise click.UsageError(_unknown(key, [name for name, _ in described()]))
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
    from ferrule.cli.settings_file import SettingsFile, edit
    from ferrule.given import check_folders

    check_folders(workspace)
    file = SettingsFile(workspace, of_project=project)
    is_changed = edit(file, may_ask=sys.stdin is not None and sys.stdin.isatty())
    click.echo(f"{file.path} is {'written' if is_changed else 'as it was'}.")
    return DONE


@command.command("path")
@click.option("-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help=_PROJECT)
def path(*, workspace: str) -> int:
    """Print the settings file of every layer, and whether it is there."""
    from ferrule.given import check_folders
    from ferrule.layered import project_path
    from ferrule.settings import managed_path, settings_path

    check_folders(workspace)
    for layer, file in (
        ("managed", managed_path()),
        ("user", settings_path()),
        ("project", project_path(os.path.realpath(workspace))),
    ):
        click.echo(f"{layer:<8} {file}{'' if os.path.exists(file) else '  (not there)'}")
    return DONE


def known_keys() -> list[str]:
    """Every setting by its whole name. Raises ConfigError where the settings cannot be read."""
    from ferrule.given import layers_of
    from ferrule.settings import state_folder

    return [row["key"] for row in _rows(layers_of(".", state_folder()), ".")]


def _unknown(key: str, known: list[str]) -> str:
    from ferrule.support.near import near

    meant = f" Did you mean {' or '.join(found)}?" if (found := near(key, known)) else ""
    return f"There is no setting {key!r}.{meant} `ferrule config show` lists them all."


def _rows(whole: Any, workspace: str) -> list[dict[str, Any]]:
    from ferrule.layered import described, project_path, value_of
    from ferrule.settings import managed_path

    rows = []
    for key, _ in described():
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
    return [{"key": key, "value": _shown(msgspec.to_builtins(value)), "from": origin}]


def _shown(value: Any) -> Any:
    """A value as it may be shown: what is handed to a server may be a secret, and so may be who asks in an address."""
    if isinstance(value, dict):
        held = {name: member for name, member in value.items() if member not in ({}, (), [], "", None, False)}
        secret = ("env", "headers")
        return {name: _masked(member) if name in secret else _shown(member) for name, member in held.items()}
    return _PASSWORD.sub("…", value) if isinstance(value, str) else value


def _masked(values: dict[str, str]) -> dict[str, str]:
    return {name: text if "${" in text else "…" for name, text in values.items()}
