"""A model by its name."""

import os
from collections.abc import Mapping

from ferrule.agent_settings import Models
from ferrule.models.catalog import about, said
from ferrule.models.hosts import Host, find_host
from ferrule.models.keys import stored_key
from ferrule.models.model import Model, ModelError
from ferrule.models.names import ELSEWHERE, choose, named

__all__ = ["choose", "load_model", "small_model"]


def load_model(
    name: str, settings: Models, *, environment: Mapping[str, str] = os.environ, workspace: str = ""
) -> Model:
    """The model that a name means, such as `anthropic:claude-opus-5-5`; nothing is sent yet.

    `workspace` is where a recorded conversation is played; in the current folder where nothing is said.
    Raises: ConfigError for a name that means nothing, ModelError where its host wants a key and there is none.
    """
    host, model = named(name, settings)
    if host == "scripted":
        from ferrule.models import scripted  # for recorded conversations only

        return scripted.load(model, workspace)
    if host == "local":
        from ferrule.models import local  # for models on this machine only

        return local.load(model, window=_window(model, settings))
    found = find_host(host, settings, environment, stored_key)
    check_key(found, name)
    from ferrule.models.api import HttpModel  # for models behind an address only

    return HttpModel(found, model, about(model, settings.known), settings)


def small_model(name: str, settings: Models, environment: Mapping[str, str] = os.environ) -> str:
    """The small model at the host of a model, as HOST:MODEL; empty if none is known.

    None is known of a host at another address than its own: what answers there may have other models.
    Raises: ConfigError.
    """
    host, _ = named(name, settings)
    if host in ELSEWHERE:
        return ""
    found = find_host(host, settings, environment)
    return f"{host}:{found.row.small}" if found.row.small and not found.moved else ""


def _window(path: str, settings: Models) -> int | None:
    """What the settings say about a file, by its name: more of a window is more memory."""
    known = said(os.path.splitext(os.path.basename(path))[0], settings.known)
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
