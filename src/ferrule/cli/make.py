"""`ferrule tools make`: a new toolbox tool from a template."""

import os

import click

from ferrule.cli.codes import DONE
from ferrule.core.access import within
from ferrule.settings import load_settings, settings_path
from ferrule.sources.toolbox.making import LANGUAGES, Language, make
from ferrule.sources.toolbox.naming import PREFIX
from ferrule.sources.toolbox.places import PROJECT, folders, preferred


@click.command("make")
@click.argument("name")
@click.option("--bash", "language", flag_value="bash", default=True, help="Write it for bash (the default).")
@click.option("--zsh", "language", flag_value="zsh", help="Write it for zsh.")
@click.option("--python", "language", flag_value="python", help="Write it for Python.")
@click.option("--node", "language", flag_value="node", help="Write it for Node.")
@click.option("--folder", type=click.Path(), metavar="DIR", help="The toolbox that it goes into (default: your own).")
def command(name: str, language: Language, folder: str | None) -> int:
    """Write a toolbox tool that works, for you to change.

    \b
    Examples:
      ferrule tools make run-tests
      ferrule tools make open-ticket --python
    """
    assert language in LANGUAGES
    tools, path = load_settings().tools, settings_path()
    folder = folder or preferred(tools, environment=os.environ, settings_file=path)
    if folder is None:
        raise click.UsageError("There are no toolboxes (FERRULE_TOOLBOX or AMP_TOOLBOX is empty): give --folder DIR.")
    folder = os.path.abspath(os.path.expanduser(folder))
    made = make(name, language, folder)
    click.echo(f"Wrote {made}, a tool for {language}.")
    from shutil import which  # for whoever makes a tool

    program = "python3" if language == "python" else language
    if which(program) is None:
        click.echo(f"note: {program} is not installed here, and the tool does not work without it.", err=True)
    used = folders(tools, environment=os.environ, settings_file=path).boxes
    if folder in {os.path.join(os.getcwd(), place) for place in PROJECT}:
        click.echo("It is the project's: it is used once you trust that, with `ferrule permissions trust`.")
    elif within(os.path.realpath(folder), os.path.realpath(".")):
        click.echo(f"No toolbox is found there: a project's own are {' and '.join(PROJECT)}, below its root.")
    elif not any(os.path.realpath(box.path) == os.path.realpath(folder) for box in used):
        click.echo(f"It is found once its folder is a toolbox: export FERRULE_TOOLBOX={folder}")
    from ferrule.dialects.dialect import FAMILIES, load_dialect  # as above

    taken = {one for family in FAMILIES for face in load_dialect(family).faces for one in (face.name, *face.aliases)}
    called = f"{PREFIX}{name}" if name in taken else name
    click.echo(f"Try it:    ferrule tools use {called} --text hello --only output")
    click.echo("Change it: what it says when it is described is what a model reads.")
    return DONE
