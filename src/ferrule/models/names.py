"""Names of models: which one is meant, at which host, and who chose it."""

import os
from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple

from ferrule.agent_settings import Models
from ferrule.core.errors import ConfigError
from ferrule.models.catalog import SHORT
from ferrule.models.hosts import ALIASES, ROWS, key_names
from ferrule.models.model import ModelError

VARIABLE = "FERRULE_MODEL"
ELSEWHERE = ("scripted", "local")
"""Kinds of models that are at no host: a recorded conversation, and a file on this machine."""
_DEPTH = 8
NO_MODEL = (
    "No model is chosen. The three shortest ways:\n"
    "  export ANTHROPIC_API_KEY=…   use a key; `ferrule models` lists the hosts\n"
    "  ferrule login anthropic      keep a key on this machine\n"
    "  ollama run qwen3             run a model on this machine\n"
    f"Or name one: --model HOST:MODEL, {VARIABLE}=HOST:MODEL, or\n"
    "`ferrule config set models.default HOST:MODEL`.\n"
    "`ferrule demo` shows Ferrule at work without any model."
)
NO_MODEL_IN_SHORT = (
    f"No model is chosen: set a key, keep one with `ferrule login HOST`, start ollama, or use --model, {VARIABLE}, or "
    "models.default in the settings."
)


class Chosen(NamedTuple):
    """The model that a session asks, and who said so."""

    name: str
    by: Literal["flag", "environment", "setting", "key", "server"]
    why: str = ""
    """Why it is this one if nobody has named it, for the user."""


def chosen(
    flag: str | None,
    settings: Models,
    environment: Mapping[str, str],
    stored: Collection[str] = (),
    here: Callable[[], str] = str,
) -> Chosen:
    """The model to ask: the flag's, else the environment's, else the settings'.

    If nobody names one, it follows from the keys: the first host of the table that has one, in the environment or
    among the `stored` names. Without any key it is what `here` finds on this machine.

    Raises: ModelError.
    """
    if flag and flag.strip():
        return Chosen(flag.strip(), "flag")
    if name := environment.get(VARIABLE, "").strip():
        return Chosen(name, "environment")
    if name := settings.default.strip():
        return Chosen(name, "setting")
    for has, verb in (
        (lambda key: bool(environment.get(key, "").strip()), "is set"),
        (stored.__contains__, "is kept"),
    ):
        for host, row in ROWS.items():
            found = next(filter(has, key_names(host, settings)), "") if row.default else ""
            if found:
                return Chosen(f"{host}:{row.default}", "key", f"because {found} {verb}")
    if name := here():
        return Chosen(name, "server", f"because {name.partition(':')[0]} runs on this machine")
    raise ModelError(NO_MODEL, "none")


def choose(flag: str | None, settings: Models, environment: Mapping[str, str] = os.environ) -> Chosen:
    """The same with what this machine has: the keys that are kept, and a model server that runs here.

    Raises: ModelError.
    """
    from ferrule.models.keys import KeyStore  # only without a model that is named
    from ferrule.models.servers_here import model_here

    try:
        return chosen(flag, settings, environment)
    except ModelError:
        return chosen(flag, settings, environment, KeyStore().names(), lambda: model_here(settings, environment))


class Named(NamedTuple):
    """A host's name and a model's own id."""

    host: str
    model: str


def named(name: str, settings: Models) -> Named:
    """The host and the model that a name means. Raises ConfigError where that is not plain."""
    seen: list[str] = []
    meant = name.strip()
    # A short name may stand for another short name; more than a few steps are a circle.
    while (further := settings.roles.get(meant)) and meant not in seen and len(seen) < _DEPTH:
        seen.append(meant)
        meant = further.strip()
    if meant in seen:
        raise ConfigError(f"The names under models.roles go round in a circle: {' → '.join([*seen, meant])}.")
    meant = SHORT.get(meant.lower(), meant)
    host, _, model = meant.partition(":")
    # The ids of some hosts have a colon in them (`qwen3:8b`), and so no host before it need be meant.
    if host in ROWS or host in ALIASES or host in settings.hosts or host in ELSEWHERE:
        if host in ELSEWHERE and not model.strip():
            raise ConfigError(f"{name!r} names no file: write {host}:FILE.")
        if not model.strip():
            raise ConfigError(f"{name!r} names no model: write {host}:MODEL. `ferrule models list {host}` lists them.")
        return Named(host, model.strip())
    for known, row in ROWS.items():
        if meant.startswith(row.begins) and row.begins:
            return Named(known, meant)
    raise _unclear(name, meant, settings)


def _unclear(name: str, meant: str, settings: Models) -> ConfigError:
    """What to write instead."""
    from ferrule.models.hosts import find_host  # only a mistake pays for it
    from ferrule.support.near import near

    host, colon, _ = meant.partition(":")
    if colon:
        try:
            find_host(host, settings, {})
        except ConfigError as error:
            if "Did you mean" in str(error):
                return error
            return ConfigError(
                f"{error} A model with a colon in its name needs its host as well, as in ollama:{meant}."
            )
    short = near(meant, [*settings.roles, *SHORT], most=1)
    hint = f" Did you mean {short[0]!r}?" if short else ""
    return ConfigError(
        f"No host is known for the model {name!r}: write HOST:MODEL, for example ollama:{meant or 'qwen3'}."
        f"{hint} `ferrule models` lists the hosts."
    )
