"""`ferrule config`: every setting, its value, and where that came from."""

import json
import os
from typing import Any

import click
import msgspec

from ferrule.cli.codes import DONE
from ferrule.cli.show import paint

_VARIABLES = ("FERRULE_SETTINGS", "FERRULE_STATE", "FERRULE_TOOLBOX", "AMP_TOOLBOX")


@click.group("config")
def command() -> None:
    """Show the settings.

    \b
    Examples:
      ferrule config show
      ferrule config show mcp
      ferrule config show --changed
      ferrule config path
    """


@command.command("show")
@click.argument("prefix", metavar="[KEY]", default="")
@click.option("--workspace", metavar="DIR", default=".", help="The project (default: this folder).")
@click.option("--changed", is_flag=True, help="Only what is not at its default.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(prefix: str, *, workspace: str, changed: bool, as_json: bool) -> int:
    """Show every setting, or those that begin with KEY, with the file that each value comes from."""
    from ferrule.given import layers_of
    from ferrule.settings import state_folder

    whole = layers_of(workspace, state_folder())
    rows = [
        row
        for row in _rows(whole, workspace)
        if row["key"] == prefix or row["key"].startswith(f"{prefix}." if prefix else "")
    ]
    if prefix and not rows:
        raise click.UsageError(f"There is no setting {prefix!r}. `ferrule config show` lists them all.")
    rows = [row for row in rows if not changed or row["from"] != "default"]
    width = max((len(row["key"]) for row in rows), default=0)
    for row in rows:
        if as_json:
            click.echo(json.dumps(row, ensure_ascii=False))
            continue
        origin = "" if row["from"] == "default" else paint(f"  # {row['from']}", "cyan")
        click.echo(f"{row['key']:<{width}} = {json.dumps(row['value'], ensure_ascii=False)}{origin}")
    if not as_json:
        for name in _VARIABLES:
            if name in os.environ and not prefix:
                click.echo(f"{name}={os.environ[name]}{paint('  # the environment', 'cyan')}")
        for warning in whole.warnings:
            click.echo(paint(f"warning: {warning}", "yellow"), err=True)
    return DONE


@command.command("path")
@click.option("--workspace", metavar="DIR", default=".", help="The project (default: this folder).")
def path(*, workspace: str) -> int:
    """Print the settings file of every layer, and whether it is there."""
    from ferrule.layered import project_path
    from ferrule.settings import managed_path, settings_path

    for layer, file in (
        ("managed", managed_path()),
        ("user", settings_path()),
        ("project", project_path(os.path.realpath(workspace))),
    ):
        click.echo(f"{layer:<8} {file}{'' if os.path.exists(file) else '  (not there)'}")
    return DONE


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
    """A row for a setting, or one for each member of a table."""
    if isinstance(value, dict) and value:
        return [row for name, held in value.items() for row in _members(f"{key}.{name}", held, origins, otherwise)]
    return [{"key": key, "value": _shown(msgspec.to_builtins(value)), "from": origins.get(key, otherwise)}]


def _shown(value: Any) -> Any:
    """A value as it may be shown: what is handed to a server may be a secret, unless it names a variable."""
    if isinstance(value, dict):
        held = {name: member for name, member in value.items() if member not in ({}, (), [], "", None, False)}
        return {name: _masked(member) if name in {"env", "headers"} else member for name, member in held.items()}
    return value


def _masked(values: dict[str, str]) -> dict[str, str]:
    return {name: text if "${" in text else "…" for name, text in values.items()}
