"""The models that can be asked now, as a list to choose from: where they are, how much they take, what they cost."""

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ferrule.cli.talk.line import line
from ferrule.cli.talk.picker import Row, Scope
from ferrule.cli.talk.words import tokens
from ferrule.core.errors import ConfigError
from ferrule.models.catalog import CATALOG, SHORT, about
from ferrule.models.hosts import Host, find_host, host_names
from ferrule.models.keys import stored_key
from ferrule.models.servers_here import models_here
from ferrule.permissions.asker import visible

if TYPE_CHECKING:
    from ferrule.agent_settings import Models
    from ferrule.models.model import Model

_LIST_SECONDS = 10.0
_COLUMN = 35
NO_MODELS = (
    "No host has a key, and no model server answers on this machine. Set a key such as ANTHROPIC_API_KEY, keep one "
    "with `ferrule login HOST`, or start ollama; /model NAME takes any name."
)


async def choices(settings: "Models", now: "Model") -> tuple[list[Row], Scope]:
    """The rows of the models that are known, and a second set: all that the hosts list, asked for when it is wanted."""
    hosts, here = await asyncio.gather(
        asyncio.to_thread(usable, settings), asyncio.to_thread(models_here, settings, os.environ)
    )
    names = known(settings, hosts, here)
    if now.name not in names:
        names.insert(0, now.name)

    async def rows() -> list[Row]:
        listed = await asyncio.gather(*(_listed(host, settings) for host in hosts))
        all_of_them = [name for several in listed for name in several]
        local = [f"{host}:{name}" for host, several in here.items() for name in several]
        return [_row(name, settings, now) for name in dict.fromkeys((*local, *all_of_them))]

    return [_row(name, settings, now) for name in names], Scope(
        "all that the hosts list", "the models that are known", rows
    )


def usable(settings: "Models") -> list[Host]:
    """The hosts whose keys are set, and those of the settings that want none."""
    found = []
    for name in host_names(settings):
        try:
            host = find_host(name, settings, os.environ, stored_key)
        except ConfigError:
            continue  # `ferrule models` says what is wrong with it
        if host.key or (name in settings.hosts and not host.key_env):
            found.append(host)
    return found


def known(settings: "Models", hosts: Iterable[Host], here: dict[str, list[str]]) -> list[str]:
    """Whole names: what the settings name, the models of this machine, and those of the catalog at each host."""
    names = [name for name in (settings.default, *settings.roles.values()) if ":" in name]
    names += [f"{host}:{name}" for host, several in here.items() for name in several]
    whole = dict.fromkeys(SHORT.values())
    for host in hosts:
        names += [name for name in whole if name.partition(":")[0] == host.name]
        if host.name != "openai-chat":  # the same models as openai's, over an older API
            begins = host.row.begins
            names += [
                f"{host.name}:{one.begins}"
                for one in CATALOG
                if one.prices is not None and one.begins.startswith(begins or ("\0",)) and not _is_short(one.begins)
            ]
        if host.row.default:
            names.append(f"{host.name}:{host.row.default}")
    return list(dict.fromkeys(names))


def _is_short(begins: str) -> bool:
    """Is it only the beginning of a name that a short one stands for?"""
    whole = (name.partition(":")[2] for name in SHORT.values())
    return any(about(name, {}).begins == begins and name != begins for name in whole)


def _row(name: str, settings: "Models", now: "Model") -> Row:
    found = about(name.partition(":")[2], settings.known)
    if name == now.name:
        found = found._replace(window=now.window, prices=now.prices)
    prices = found.prices
    short = ", ".join(one for one, meant in {**SHORT, **settings.roles}.items() if meant == name)
    host = name.partition(":")[0]
    if prices is not None:
        price = f"${prices.input:g} / ${prices.output:g}"
        cached = f", ${prices.cache_read:g} cached" if prices.cache_read < prices.input else ""
        detail = f"${prices.input:g} in, ${prices.output:g} out{cached}, for a million tokens."
    else:
        price = "on this machine" if host in _LOCAL else "no prices known"
        detail = f"Its prices are not known. Its window is taken to be {tokens(found.window)} tokens."
    shown = visible(name)
    mark = "  now" if name == now.name else f"  {short}" if short else ""
    gap = " " * max(0 if mark else 2, _COLUMN - len(shown) - len(mark))
    window = f"{tokens(found.window):>7}  "
    return Row(
        name, line(shown, gap, ("cyan", mark), ("dim", window), ("dim give", price)), f"{shown} {short} {price}", detail
    )


_LOCAL = frozenset({"ollama", "llamacpp", "vllm", "lmstudio", "local"})


async def _listed(host: Host, settings: "Models") -> list[str]:
    """What a host says that it has; nothing where it does not answer in time."""
    from ferrule.models.api import HttpModel  # for who asks hosts
    from ferrule.models.model import ModelError

    model = HttpModel(host, "", about("", {}), settings)
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            return [f"{host.name}:{name}" for name in await model.names()]
    except (ModelError, TimeoutError):
        return []
    finally:
        await model.close()
