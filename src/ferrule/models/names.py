"""Names of models: which one is meant, at which host, and who chose it."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ferrule.agent_settings import Models
from ferrule.core.errors import ConfigError
from ferrule.models.catalog import SHORT
from ferrule.models.hosts import ALIASES, ROWS
from ferrule.models.model import ModelError

VARIABLE = "FERRULE_MODEL"
ELSEWHERE = ("scripted", "local")
"""Kinds of models that are at no host: a recorded conversation, and a file on this machine."""
_DEPTH = 8


class Chosen(NamedTuple):
    """The model that a session asks, and who said so."""

    name: str
    by: Literal["flag", "environment", "setting"]


def chosen(flag: str | None, settings: Models, environment: Mapping[str, str]) -> Chosen:
    """The model to ask where one is needed: the flag's, else the environment's, else the settings'.

    Raises: ModelError.
    """
    if flag and flag.strip():
        return Chosen(flag.strip(), "flag")
    if name := environment.get(VARIABLE, "").strip():
        return Chosen(name, "environment")
    if name := settings.default.strip():
        return Chosen(name, "setting")
    raise ModelError(
        "No model is chosen. Say one with --model, for example --model anthropic:claude-opus-5-5, or set "
        f'{VARIABLE}, or write `default = "anthropic:claude-opus-5-5"` under [models] in your settings. '
        "`ferrule models` lists the hosts and which keys are set.",
        "none",
    )


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
        f"It is not plain at which host the model {name!r} is: write HOST:MODEL, for example ollama:{meant or 'qwen3'}."
        f"{hint} `ferrule models` lists the hosts."
    )
