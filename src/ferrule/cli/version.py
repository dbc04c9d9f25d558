"""`ferrule version`: the same as `ferrule --version`."""

import click

from ferrule.core.version import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(f"ferrule {__version__}")
