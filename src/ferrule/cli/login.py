"""Implement `ferrule login` and `ferrule logout`: keep, list and remove the keys of hosts.

The list says where each key comes from. No key is ever shown.
"""

import getpass
import os
import sys

import click

from ferrule.cli.show import DONE, FAILED, paint
from ferrule.core.errors import ConfigError
from ferrule.models.hosts import ALIASES, KeyStore, find_host, host_names, key_names, stored_key
from ferrule.settings import Models, load_settings

_MOST_CHARS = 20_000


def hosts_with_keys(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """For shells that complete a line: the hosts that want a key."""
    settings = load_settings().models
    return [name for name in host_names(settings) if key_names(name, settings) and name.startswith(begun)]


@click.command("login")
@click.argument("host", required=False, shell_complete=hosts_with_keys)
@click.argument("key", nargs=-1, metavar="")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the key from standard input.")
def command(host: str | None, key: tuple[str, ...], *, from_stdin: bool) -> int:
    """Keep the key of HOST, so that it need not be in the environment. Without HOST, show where each key comes from.

    The key goes into the system's keyring, if the package keyring is installed and there is one, and otherwise into a
    file that only you can read. A key in the environment comes before it.

    \b
    Examples:
      ferrule login
      ferrule login anthropic
      pass show openai | ferrule login openai --stdin
      ferrule logout anthropic
    """
    if key:
        raise click.UsageError(
            "A key on the command line can be read by other programs and stays in the shell's history: type it when "
            "you are asked, or pipe it in with --stdin."
        )
    settings = load_settings().models
    if host is None:
        if from_stdin:
            raise click.UsageError("Name the host: ferrule login HOST --stdin")
        _list(settings)
        return DONE
    name = find_key_name(host, settings)
    store = KeyStore()
    where = store.keep(name, _read(name, from_stdin=from_stdin))
    place = "the system's keyring" if where == "keyring" else f"{store.path}, which only you can read"
    click.echo(f"The key of {host} is kept in {place}.")
    if os.environ.get(name, "").strip():
        click.echo(f"warning: {name} is set in the environment, and comes before it.", err=True)
    return DONE


@click.command("logout")
@click.argument("host", shell_complete=hosts_with_keys)
def logout(host: str) -> int:
    """Remove the key of HOST that `ferrule login` has kept.

    \b
    Example:
      ferrule logout anthropic
    """
    settings = load_settings().models
    name = find_key_name(host, settings)
    where = KeyStore().forget(name)
    if where is None:
        click.echo(f"ferrule: no key of {host} is kept. `ferrule login` shows where each key comes from.", err=True)
        return FAILED
    click.echo(f"The key of {host} is removed from the {where}.")
    if os.environ.get(name, "").strip():
        click.echo(f"warning: {name} is still set in the environment.", err=True)
    return DONE


def find_key_name(host: str, settings: Models) -> str:
    """The name under which the key of a host is kept. Raises: ConfigError, click.UsageError."""
    find_host(host, settings, os.environ)
    if names := key_names(host, settings):
        return names[0]
    if host in settings.hosts:
        raise click.UsageError(f"{host} has no name for its key: set models.hosts.{host}.key_env, for example MY_KEY.")
    raise click.UsageError(f"{ALIASES.get(host, host)} wants no key.")


def _read(name: str, *, from_stdin: bool) -> str:
    """The key as it was typed or piped in. Raises: click.UsageError for what cannot be one."""
    if from_stdin or sys.stdin is None or not sys.stdin.isatty():
        if not from_stdin:
            raise click.UsageError("There is no terminal to type the key at: pipe it in with --stdin.")
        raw = sys.stdin.read(_MOST_CHARS) if sys.stdin is not None else ""
    else:
        raw = getpass.getpass(f"{name} (it is not shown): ")
    key = raw.strip()
    if not key:
        raise click.UsageError("The key is empty, so nothing is kept.")
    if not key.isascii() or not key.isprintable() or " " in key or key[0] in "\"'":
        raise click.UsageError("That is no key: it holds blanks, quotes or other signs that cannot be sent.")
    if key.startswith(f"{name}="):
        raise click.UsageError(f"Give the key alone, without {name}= before it.")
    return key


def _list(settings: Models) -> None:
    rows = []
    for host in host_names(settings):
        names = key_names(host, settings)
        if names:
            rows.append((host, names[0], _origin(host, settings)))
    widths = [max(len(row[at]) for row in rows) for at in range(2)]
    for host, name, origin in rows:
        shown = paint(origin, "green") if origin != "not set" else paint(origin, "dim")
        click.echo(f"{host:<{widths[0]}}  {name:<{widths[1]}}  {shown}")
    click.echo("\n`ferrule login HOST` keeps a key, `ferrule logout HOST` removes it.")


def _origin(host: str, settings: Models) -> str:
    try:
        found = find_host(host, settings, os.environ, stored_key)
    except ConfigError as error:
        return str(error)
    return (
        f"from the {found.key_from} ({found.key_env})"
        if found.key_from == "environment"
        else _describe_source(found.key_from)
    )


def _describe_source(where: str) -> str:
    return f"from the {where}" if where else "not set"
