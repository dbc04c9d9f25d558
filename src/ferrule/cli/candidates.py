"""What a shell offers for the values of options and arguments: models, dialects, modes, tools and threads."""

import os
from collections.abc import Iterable

import click

from ferrule.dialects.dialect import FAMILIES

_MOST_THREADS = 100


def dialects(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _beginning(FAMILIES, begun)


def modes(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from ferrule.permissions.standing import MODES  # for whoever presses tab

    return _beginning((mode.name for mode in MODES), begun)


def models(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Short names, the models that are known, and hosts; behind a host and its colon the models known there."""
    from ferrule.core.errors import ConfigError  # as above
    from ferrule.models.catalog import CATALOG, SHORT
    from ferrule.models.hosts import ROWS, host_names
    from ferrule.settings import load_settings

    host, colon, *_rest = begun.partition(":")
    begins = ROWS[host].begins if host in ROWS else ()
    if colon:
        return _beginning((f"{host}:{row.begins}" for row in CATALOG if row.begins.startswith(begins or ())), begun)
    try:
        settings = load_settings().models
    except ConfigError:
        return _beginning(SHORT, begun)
    known = (row.begins for row in CATALOG)
    return _beginning([*SHORT, *settings.roles, *known, *(f"{host}:" for host in host_names(settings))], begun)


def tools(ctx: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The tools of the dialect that the line names, else of the settings'."""
    from ferrule.core.errors import ConfigError  # as above
    from ferrule.dialects.dialect import load_dialect
    from ferrule.settings import load_settings

    try:
        faces = load_dialect(ctx.params.get("dialect") or load_settings().dialect).faces
    except ConfigError:
        return []
    return _beginning((face.name for face in faces if face.shown), begun)


def thread_ids(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The ids of the newest threads."""
    from ferrule.settings import state_folder  # as above
    from ferrule.support.sqlite import UnusableError
    from ferrule.workspace.thread_store import ThreadStore

    store = ThreadStore(os.path.join(state_folder(), "threads"))
    try:
        return _beginning((about.id for about in store.list(limit=_MOST_THREADS)), begun)
    except UnusableError:
        return []
    finally:
        store.close()


def setting_keys(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The names of the settings."""
    from ferrule.cli.config import known_keys  # as above
    from ferrule.core.errors import ConfigError

    try:
        return _beginning(known_keys(), begun)
    except ConfigError:
        return []


def _beginning(names: Iterable[str], begun: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(begun)]
