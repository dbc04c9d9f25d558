"""`ferrule skills`: the skills that a session in this folder has, and what each of them says."""

import os
from typing import Any

import click

from ferrule.cli.show import DONE, format_json, paint
from ferrule.core.errors import ToolFailure
from ferrule.files.jail import Jail
from ferrule.output import clean
from ferrule.permissions.trust import Trust, code_files
from ferrule.settings import load_settings, settings_path, state_folder
from ferrule.tools.skills import Skill, Skills

_OWNERS = {"user": "yours", "project": "the project's"}


@click.command("skills")
@click.argument("action", type=click.Choice(["list", "show"]), default="list")
@click.argument("name", required=False)
@click.option(
    "-C",
    "--workspace",
    type=click.Path(),
    metavar="DIR",
    default=".",
    help="The folder to work in (default: this one).",
)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def command(action: str, name: str | None, *, workspace: str, as_json: bool) -> int:
    """List the skills of this folder and of yours, or show one of them.

    Prompts of MCP servers are skills too; they are known only while a session runs.

    \b
    Examples:
      ferrule skills
      ferrule skills show deploy
      ferrule skills --json
    """
    if (action == "show") != (name is not None):
        raise click.UsageError("Write `ferrule skills`, or `ferrule skills show NAME`.")
    if not os.path.isdir(workspace):
        raise click.UsageError(f"{workspace} is not a folder.")
    jail = Jail(workspace)
    try:
        skills = _skills(jail)
        if name is None:
            _list(skills, as_json=as_json)
        else:
            _show(skills.get(name), as_json=as_json)
    except ToolFailure as error:
        raise click.UsageError(error.message) from error
    finally:
        jail.close()
    return DONE


def _skills(jail: Jail) -> Skills:
    settings = load_settings().skills

    def trusted() -> bool:

        return Trust(state_folder(), "code").state(jail.folder, code_files(jail.folder)) == "trusted"

    return Skills(
        jail,
        beside=os.path.dirname(settings_path()),
        folders=settings.folders,
        disable=settings.disable,
        trusted=trusted,
    )


def _list(skills: Skills, *, as_json: bool) -> None:
    found = skills.all()
    if as_json:
        click.echo(format_json([_row(skill) for skill in found]))
    else:
        width = max((len(skill.name) for skill in found), default=0)
        for skill in found:
            click.echo(f"{skill.name:<{width}}  {_whose(skill)}  {skill.description}")
        if not found:
            places = "\n".join(f"  {clean(place.path)}" for place in skills.places())
            click.echo(f"There are no skills. They are looked for in\n{places}", err=True)
    for warning in skills.warnings:
        click.echo(paint(f"warning: {warning}", "yellow"), err=True)


def _show(skill: Skill, *, as_json: bool) -> None:
    row = {**_row(skill), "instructions": clean(skill.body)}
    if as_json:
        click.echo(format_json(row))
        return
    click.echo(f"{skill.name}  {_whose(skill)}  {clean(skill.file)}\n\n{skill.description}\n")
    for key in ("arguments", "for_model", "for_user", "allowed_tools", "toolbox", "servers", "not_obeyed"):
        if row[key] not in ("", [], True):
            value = row[key]
            click.echo(f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    click.echo(f"\n{row['instructions'].strip()}")


def _row(skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "layer": skill.layer,
        "trusted": skill.trusted,
        "file": clean(skill.file),
        "arguments": skill.hint,
        "for_model": skill.for_model,
        "for_user": skill.for_user,
        "allowed_tools": [clean(rule) for rule in skill.rules],
        "toolbox": clean(skill.toolbox),
        "servers": clean(skill.servers),
        "not_obeyed": sorted(skill.unobeyed),
    }


def _whose(skill: Skill) -> str:
    untrusted = "" if skill.trusted else ", not trusted"
    return f"({_OWNERS.get(skill.layer, skill.layer)}{untrusted})"
