"""Model servers that run on this machine: a short look at the usual ports of 127.0.0.1."""

import json
from collections.abc import Mapping

from ferrule.agent_settings import Models
from ferrule.core.errors import ConfigError
from ferrule.models.hosts import find_host

HOSTS = ("ollama", "llamacpp")
"""Looked at in this order."""
_MORE_HOSTS = ("vllm", "lmstudio")
"""Looked at besides by who wants to see all."""
_SECONDS = 0.3
"""For each. A server on this machine answers in a few milliseconds."""
_MOST_BYTES = 1 << 20
_MOST_MODELS = 200
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def model_here(settings: Models, environment: Mapping[str, str]) -> str:
    """The first model that a server on this machine has, as HOST:MODEL; empty if none answers."""
    for name in HOSTS:
        try:
            url = find_host(name, settings, environment).url
        except ConfigError:
            continue
        if models := _names(url):
            return f"{name}:{models[0]}"
    return ""


def models_here(settings: Models, environment: Mapping[str, str]) -> dict[str, list[str]]:
    """Host → the models that it names, of those servers on this machine that answer."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name in (*HOSTS, *_MORE_HOSTS):
        try:
            url = find_host(name, settings, environment).url
        except ConfigError:
            continue
        if url not in seen and (models := _names(url)):
            found[name] = models
        seen.add(url)
    return found


def _names(url: str) -> list[str]:
    import http.client  # only without any key and any model
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        return []
    line = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=_SECONDS)
    try:
        line.request("GET", f"{parts.path}/models", headers={"Accept": "application/json"})
        response = line.getresponse()
        said = json.loads(response.read(_MOST_BYTES)) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return []
    finally:
        line.close()
    models = said.get("data") if isinstance(said, dict) else None
    given = models if isinstance(models, list) else []
    names = [one.get("id") for one in given[:_MOST_MODELS] if isinstance(one, dict)]
    return [name for name in names if isinstance(name, str) and _talks(name)]


def _talks(name: str) -> bool:
    """Can it be a model that answers? Those that only make vectors say so in their names."""
    return name != "" and name.isprintable() and len(name) < 200 and "embed" not in name.lower()
