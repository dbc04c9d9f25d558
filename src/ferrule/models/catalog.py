"""Choose a model by its name, and look up the limits, thinking and prices of well-known models.

The figures were taken from the public price lists on 16 November 2026, for the plain tier: no batches, no
priority and no surcharge for very long conversations. They age. `models.known` in the settings overrides them,
and a model that is in neither gets cautious limits and no prices.

The model that was last chosen in the chat is used at the next start, until the settings name another one.
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple, TypeVar

import msgspec

from ferrule.core.errors import ConfigError, near
from ferrule.models import Model, ModelError, Prices
from ferrule.models.hosts import ALIASES, ROWS, Host, KeyStore, find_host, key_names, model_here, stored_key
from ferrule.permissions.trust import StateFile
from ferrule.settings import KnownModel, Models, state_folder

_T = TypeVar("_T")

Thinks = Literal["", "budget", "adaptive", "always", "bound", "effort", "level"]
"""How thinking is asked for: not at all; by a number of tokens; adaptive where it is asked for; adaptive in any case;
the same, and what was thought is tied to the words before it; by an effort; by a level."""

WINDOW = 128_000
MOST_OUTPUT = 8_192
DEFAULT_OUTPUT = 32_000
"""An answer may have so many tokens where nothing is said, and fewer where its model gives fewer."""


class ModelProfile(NamedTuple):
    """One model, or all whose ids begin alike."""

    begins: str
    window: int = WINDOW
    most_output: int = MOST_OUTPUT
    prices: Prices | None = None
    thinks: Thinks = ""
    vision: bool = True
    """Does it take pictures? A model of which nothing is known is given them: its host says where that is wrong."""


def _row(begins: str, window: int, most_output: int, prices: tuple[float, ...], thinks: Thinks = "") -> ModelProfile:
    """Prices: input, output, what is read from the cache; what is written there costs as input unless it is said."""
    plain, output, read, *written = prices
    return ModelProfile(
        begins, window, most_output, Prices(plain, output, read, written[0] if written else plain), thinks
    )


_M = 1_000_000
CATALOG = (
    _row("claude-fable-5", _M, 128_000, (10, 50, 1, 12.5), "bound"),
    _row("claude-opus-5-5", _M, 128_000, (4, 20, 0.2, 5), "bound"),
    _row("claude-opus-5", _M, 128_000, (5, 25, 0.5, 6.25), "always"),
    _row("claude-opus-4-8", _M, 128_000, (5, 25, 0.5, 6.25), "adaptive"),
    _row("claude-opus-4-7", _M, 128_000, (5, 25, 0.5, 6.25), "adaptive"),
    _row("claude-opus-4-6", _M, 128_000, (5, 25, 0.5, 6.25), "adaptive"),
    _row("claude-opus-4-5", 200_000, 64_000, (5, 25, 0.5, 6.25), "budget"),
    _row("claude-opus-4", 200_000, 32_000, (15, 75, 1.5, 18.75), "budget"),
    _row("claude-sonnet-5-5", _M, 128_000, (2, 10, 0.1, 2.5), "bound"),
    _row("claude-sonnet-5", _M, 128_000, (2, 10, 0.2, 2.5), "always"),
    _row("claude-sonnet-4-6", _M, 128_000, (3, 15, 0.3, 3.75), "adaptive"),
    _row("claude-sonnet-4", 200_000, 64_000, (3, 15, 0.3, 3.75), "budget"),
    _row("claude-haiku-5-5", _M, 128_000, (0.1, 0.5, 0.01, 0.125), "bound"),
    _row("claude-haiku-4-5", 200_000, 64_000, (1, 5, 0.1, 1.25), "budget"),
    ModelProfile("claude-3", 200_000, MOST_OUTPUT, None, "budget"),
    ModelProfile("claude-", 200_000, 32_000, None, "adaptive"),
    _row("gpt-6.1-sol", 1_050_000, 128_000, (2, 10, 0.1, 2.5), "effort"),
    _row("gpt-6.1-terra", 1_050_000, 128_000, (1, 5, 0.05, 1.25), "effort"),
    _row("gpt-6-astra", 1_050_000, 128_000, (10, 50, 1, 12.5), "effort"),
    _row("gpt-6-sol", 1_050_000, 128_000, (2, 10, 0.2, 2.5), "effort"),
    _row("gpt-6-luna", 1_050_000, 128_000, (0.1, 0.5, 0.01, 0.125), "effort"),
    ModelProfile("gpt-6", 1_050_000, 128_000, None, "effort"),
    _row("gpt-5.6-luna", 1_050_000, 128_000, (0.2, 1.2, 0.02), "effort"),
    _row("gpt-5.6-terra", 1_050_000, 128_000, (2, 12, 0.2), "effort"),
    _row("gpt-5.6", 1_050_000, 128_000, (4, 20, 0.4), "effort"),
    _row("gpt-5.5-pro", 1_050_000, 128_000, (30, 180, 3), "effort"),
    _row("gpt-5.5", 1_050_000, 128_000, (5, 30, 0.5), "effort"),
    _row("gpt-5.4-mini", 400_000, 128_000, (0.75, 4.5, 0.075), "effort"),
    _row("gpt-5.4-pro", 1_050_000, 128_000, (30, 180, 3), "effort"),
    _row("gpt-5.4", 1_050_000, 128_000, (2.5, 15, 0.25), "effort"),
    _row("gpt-5.3", 400_000, 128_000, (1.75, 14, 0.175), "effort"),
    _row("gpt-5.2-pro", 400_000, 128_000, (21, 168, 21), "effort"),
    _row("gpt-5.2", 400_000, 128_000, (1.75, 14, 0.175), "effort"),
    _row("gpt-5-chat", 128_000, 16_384, (1.25, 10, 0.125)),
    _row("gpt-5-mini", 400_000, 128_000, (0.25, 2, 0.025), "effort"),
    _row("gpt-5-nano", 400_000, 128_000, (0.05, 0.4, 0.005), "effort"),
    _row("gpt-5-pro", 400_000, 128_000, (15, 120, 15), "effort"),
    _row("gpt-5", 400_000, 128_000, (1.25, 10, 0.125), "effort"),
    _row("gpt-4.1-mini", 1_047_576, 32_768, (0.4, 1.6, 0.1)),
    _row("gpt-4.1", 1_047_576, 32_768, (2, 8, 0.5)),
    _row("gpt-4o-mini", 128_000, 16_384, (0.15, 0.6, 0.075)),
    _row("gpt-4o", 128_000, 16_384, (2.5, 10, 1.25)),
    _row("o3-mini", 200_000, 100_000, (1.1, 4.4, 0.55), "effort"),
    _row("o3", 200_000, 100_000, (2, 8, 0.5), "effort"),
    _row("o4-mini", 200_000, 100_000, (1.1, 4.4, 0.275), "effort"),
    _row("gemini-3.8-flash", 1_048_576, 65_536, (0.75, 3.75, 0.075), "level"),
    _row("gemini-3.7-flash", 1_048_576, 65_536, (0.75, 3.75, 0.075), "level"),
    _row("gemini-3.6-flash", 1_048_576, 65_536, (0.75, 3.75, 0.075), "level"),
    _row("gemini-3.5-flash", 1_048_576, 65_536, (1.5, 9, 0.15), "level"),
    _row("gemini-3.1-pro", 1_048_576, 65_536, (2, 12, 0.2), "level"),
    _row("gemini-3-pro", 1_048_576, 65_536, (2, 12, 0.2), "level"),
    _row("gemini-3-flash", 1_048_576, 65_536, (0.5, 3, 0.05), "level"),
    ModelProfile("gemini-3", 1_048_576, 65_536, None, "level"),
    _row("gemini-2.5-pro", 1_048_576, 65_536, (1.25, 10, 0.125), "budget"),
    _row("gemini-2.5-flash-lite", 1_048_576, 65_536, (0.1, 0.4, 0.01), "budget"),
    _row("gemini-2.5-flash", 1_048_576, 65_536, (0.3, 2.5, 0.03), "budget"),
)
"""The longest beginning that fits holds."""

BLIND = ("gpt-3.5", "gpt-oss", "o3-mini", "qwen3-coder", "qwen2.5-coder", "deepseek-r1", "deepseek-v3", "codestral")
"""How the ids of models begin that take no pictures."""

SHORT = {
    "fable": "anthropic:claude-fable-5-1",
    "opus": "anthropic:claude-opus-5-5",
    "sonnet": "anthropic:claude-sonnet-5-5",
    "haiku": "anthropic:claude-haiku-5-5",
}
"""The short names of a family's models, where the settings say nothing else about them."""


def about(model: str, known: Mapping[str, KnownModel]) -> ModelProfile:
    """What is known of a model, by its id; what the settings say about it comes first."""
    row = _longest(model, {one.begins: one for one in CATALOG}) or ModelProfile(model)
    if _longest(model, dict.fromkeys(BLIND, True)):
        row = row._replace(vision=False)
    own = find_known(model, known)
    if own is None:
        return row
    prices = row.prices
    if own.input is not None or own.output is not None or prices is not None:
        old = prices or Prices(0.0, 0.0, own.input or 0.0, own.input or 0.0)
        prices = Prices(
            old.input if own.input is None else own.input,
            old.output if own.output is None else own.output,
            old.cache_read if own.cache_read is None else own.cache_read,
            old.cache_write if own.cache_write is None else own.cache_write,
        )
    return row._replace(
        window=own.window or row.window,
        most_output=own.most_output or row.most_output,
        prices=prices,
        vision=row.vision if own.vision is None else own.vision,
    )


def has_bound(model: str, known: Mapping[str, KnownModel]) -> bool:
    """Is it known how long the model's answers may be, or is that only a usual bound?"""
    own = find_known(model, known)
    return (own is not None and own.most_output is not None) or _longest(
        model, {one.begins: one for one in CATALOG}
    ) is not None


def find_known(model: str, known: Mapping[str, KnownModel]) -> KnownModel | None:
    """What the settings say about a model, by how its id begins."""
    return _longest(model, known)


def _longest(model: str, rows: Mapping[str, _T]) -> _T | None:
    # Some hosts put the maker before a model's id, and dots where the maker has dashes.
    bare = model.rpartition("/")[2]
    spellings = (model, bare, bare.replace(".", "-"))
    fitting = [begins for begins in rows if any(one.startswith(begins) for one in spellings)]
    return rows[max(fitting, key=len)] if fitting else None


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


class ModelChoice(NamedTuple):
    """The model that a session asks, and who said so."""

    name: str
    by: Literal["flag", "environment", "setting", "key", "server"]
    why: str = ""
    """Why it is this one if nobody has named it, for the user."""


def choose_by_precedence(
    flag: str | None,
    settings: Models,
    environment: Mapping[str, str],
    stored: Collection[str] = (),
    here: Callable[[], str] = str,
) -> ModelChoice:
    """The model to ask: the flag's, else the environment's, else the settings'.

    If nobody names one, it follows from the keys: the first host of the table that has one, in the environment or
    among the `stored` names. Without any key it is what `here` finds on this machine.

    Raises: ModelError.
    """
    if flag and flag.strip():
        return ModelChoice(flag.strip(), "flag")
    if name := environment.get(VARIABLE, "").strip():
        return ModelChoice(name, "environment")
    if name := settings.default.strip():
        return ModelChoice(name, "setting")
    for has, verb in (
        (lambda key: bool(environment.get(key, "").strip()), "is set"),
        (stored.__contains__, "is kept"),
    ):
        for host, row in ROWS.items():
            found = next(filter(has, key_names(host, settings)), "") if row.default else ""
            if found:
                return ModelChoice(f"{host}:{row.default}", "key", f"because {found} {verb}")
    if name := here():
        return ModelChoice(name, "server", f"because {name.partition(':')[0]} runs on this machine")
    raise ModelError(NO_MODEL, "none")


def choose(flag: str | None, settings: Models, environment: Mapping[str, str] = os.environ) -> ModelChoice:
    """The same with what this machine has: the keys that are kept, and a model server that runs here.

    Raises: ModelError.
    """
    try:
        return choose_by_precedence(flag, settings, environment)
    except ModelError:
        return choose_by_precedence(
            flag, settings, environment, KeyStore().names(), lambda: model_here(settings, environment)
        )


class ModelName(NamedTuple):
    """A host's name and a model's own id."""

    host: str
    model: str


def resolve_name(name: str, settings: Models) -> ModelName:
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
        return ModelName(host, model.strip())
    for known, row in ROWS.items():
        if meant.startswith(row.begins) and row.begins:
            return ModelName(known, meant)
    raise _unclear(name, meant, settings)


def _unclear(name: str, meant: str, settings: Models) -> ConfigError:
    """What to write instead."""
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


def load_model(
    name: str, settings: Models, *, environment: Mapping[str, str] = os.environ, workspace: str = ""
) -> Model:
    """The model that a name means, such as `anthropic:claude-opus-5-5`; nothing is sent yet.

    `workspace` is where a recorded conversation is played; in the current folder where nothing is said.
    Raises: ConfigError for a name that means nothing, ModelError where its host wants a key and there is none.
    """
    host, model = resolve_name(name, settings)
    if host == "scripted":
        from ferrule.models import recorder  # for recorded conversations only

        return recorder.load(model, workspace)
    if host == "local":
        from ferrule.models import local  # for models on this machine only

        return local.load(model, window=_window(model, settings))
    found = find_host(host, settings, environment, stored_key)
    check_key(found, name)
    from ferrule.models.http import HttpModel  # for models behind an address only

    return HttpModel(found, model, about(model, settings.known), settings)


def small_model(name: str, settings: Models, environment: Mapping[str, str] = os.environ) -> str:
    """The small model at the host of a model, as HOST:MODEL; empty if none is known.

    None is known of a host at another address than its own: what answers there may have other models.
    Raises: ConfigError.
    """
    host, _ = resolve_name(name, settings)
    if host in ELSEWHERE:
        return ""
    found = find_host(host, settings, environment)
    return f"{host}:{found.row.small}" if found.row.small and not found.moved else ""


def _window(path: str, settings: Models) -> int | None:
    """What the settings say about a file, by its name: more of a window is more memory."""
    known = find_known(os.path.splitext(os.path.basename(path))[0], settings.known)
    return known.window if known is not None else None


def check_key(host: Host, name: str) -> None:
    """Raises ModelError where the host wants a key and there is none."""
    if host.key or not host.key_env or _is_signed(host):
        return
    others = [variable for variable in host.row.keys if variable != host.key_env]
    either = "".join(f" or {variable}" for variable in others)
    raise ModelError(
        f"{name} needs a key, and {host.key_env}{either} is not set. Keep one with `ferrule login {host.name}`, or set "
        f"it in the environment, for example `export {host.key_env}=…`; another variable can be named as "
        f"models.hosts.{host.name}.key_env in the settings. `ferrule models` shows which keys are set.",
        "no-key",
    )


def _is_signed(host: Host) -> bool:
    """Does the user send a header of their own that says who asks?"""
    return any(name.lower() in {"authorization", "x-api-key", "x-goog-api-key"} for name in host.headers)


NAME = "last-model.json"
WHY = "chosen by /model the last time"


class _ModelChoice(msgspec.Struct, frozen=True):
    model: str = ""
    default: str = ""
    """What the settings named when it was chosen. If they name another one since, that was chosen later."""


def remember_model(name: str, settings: Models) -> None:
    """Keep the name for the next start; that of a file is not kept. Raises: ConfigError."""
    if resolve_name(name, settings).host not in ELSEWHERE:
        _file().change(lambda _: _ModelChoice(name, settings.default))


def last_model(settings: Models, environment: Mapping[str, str] = os.environ) -> str:
    """The name that was kept; empty if there is none, if one was named since, or if it could not be asked now."""
    last = _file().read()
    if not last.model or last.default != settings.default or environment.get(VARIABLE, "").strip():
        return ""
    try:
        host, _ = resolve_name(last.model, settings)
        check_key(find_host(host, settings, environment, stored_key), last.model)
    except (ModelError, ConfigError):
        return ""
    return last.model


def _file() -> StateFile[_ModelChoice]:
    return StateFile(os.path.join(state_folder(), NAME), _ModelChoice)
