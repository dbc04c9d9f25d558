"""Hosts that speak an API of another's, but take less of it: what they do not take, as rows."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ferrule.core.errors import ConfigError
from ferrule.wire.cleanup import changed, closed

_CHECKS = frozenset(("format", "pattern", "minimum", "maximum"))


class Host(NamedTuple):
    """What holds for some models of a host."""

    host: str
    models: tuple[str, ...] = ()
    """The row holds for models whose name contains one of these; for all where there are none."""
    drops: frozenset[str] = frozenset()
    """Keywords that its schemas do without."""
    strict: bool = False
    """Does it want strict definitions, where the schema allows that?"""
    closes: bool = False
    """Does it want `additionalProperties: false`?"""
    describes: bool = False
    """Does it want every parameter described?"""
    tools: bool = True
    """Can it call tools at all?"""


HOSTS = (
    Host("deepseek", ("speciale",), tools=False),
    Host("deepseek", ("v3.2",), strict=True, closes=True),
    Host("deepseek", ("v3",), strict=True),
    Host("deepseek"),
    Host("gemini", ("gemini-3",), strict=True, describes=True),
    Host("gemini", describes=True),
    Host("ollama", ("llama3", "mistral", "mixtral", "command-r"), drops=_CHECKS),
    Host("ollama", drops=_CHECKS, tools=False),
    Host("openai"),
)
"""The first row that fits holds."""


def host_row(host: str, model: str = "") -> Host:
    """The row of a model at a host."""
    found = (row for row in HOSTS if row.host == host)
    for row in found:
        if not row.models or any(part in model.lower() for part in row.models):
            return row
    known = ", ".join(dict.fromkeys(row.host for row in HOSTS))
    raise ConfigError(f"No host is called {host!r}. There are: {known}.")


def for_host(schema: Mapping[str, Any], host: str, model: str = "") -> Mapping[str, Any]:
    """A schema as a host takes it."""
    row = host_row(host, model)
    if row.drops:
        schema = changed(schema, lambda one: _without(one, row.drops))
    if row.describes:
        schema = changed(schema, _described)
    return closed(schema) if row.closes else schema


def _without(schema: Mapping[str, Any], keys: frozenset[str]) -> Mapping[str, Any]:
    return {key: value for key, value in schema.items() if key not in keys} if keys & schema.keys() else schema


def _described(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return schema
    silent = {
        name: {**about, "description": f"The {name.replace('_', ' ')}."}
        for name, about in properties.items()
        if isinstance(about, Mapping) and not about.get("description")
    }
    return {**schema, "properties": {**properties, **silent}} if silent else schema
