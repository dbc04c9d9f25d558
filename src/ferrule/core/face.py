"""A face: how one model family sees one canonical tool. Everything in which families differ is a field here."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context

Says = Callable[[Any], Any]
"""A tool's outcome → what this family reads: text or a JSON value."""

GENERAL_LIMIT_BYTES = 102_400


Preprocess = Callable[[dict[str, Any], Context], dict[str, Any]]
"""Canonical arguments → the ones that will run."""


def as_it_is(outcome: Any) -> Any:
    return outcome


def as_it_came(values: dict[str, Any], ctx: Context) -> dict[str, Any]:  # noqa: ARG001 - others look around
    return values


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """The advertised side of a tool."""

    tool: str
    """The canonical tool behind it."""
    name: str
    schema: Mapping[str, Any]
    """The advertised JSON Schema, exactly."""
    words: str
    """The description that the model reads."""
    params: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Advertised parameter → canonical one; others keep their name."""
    fill: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Canonical arguments that this family leaves to the engine."""
    preprocess: Preprocess = as_it_came
    """Puts the arguments into their final form, before anything is decided on them."""
    says: Says = as_it_is
    errors: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Failure code → this family's sentence, with the failure's `{message}`, `{hint}`, `{path}` and `{count}`."""
    limit_bytes: int = GENERAL_LIMIT_BYTES
    aliases: tuple[str, ...] = ()
    """Other names that mean this face."""
    shown: bool = True
    """Is it advertised, or only accepted?"""

    def canonical(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments in the canonical tool's names. What the engine fills in, a caller cannot change."""
        return {**{self.params.get(key, key): value for key, value in values.items()}, **self.fill}

    def advertised(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Canonical arguments in this family's names; the inverse of `canonical`."""
        back = {canonical: shown for shown, canonical in self.params.items()}
        return {back.get(key, key): value for key, value in values.items() if key not in self.fill}

    def shown_param(self, canonical: str) -> str:
        """The advertised name of a canonical parameter."""
        return next((shown for shown, name in self.params.items() if name == canonical), canonical)

    def definition(self) -> dict[str, Any]:
        """What a model is shown. The caller may change it as its model API needs; the face stays as it is."""
        return {"name": self.name, "description": self.words, "inputSchema": _copied(self.schema)}

    def sentence(self, failure: ToolFailure) -> str:
        """A failure in this family's words."""
        words = self.errors.get(failure.code or "")
        if words is None:
            return failure.message
        return words.format(message=failure.message, hint=failure.hint, path=failure.path, count=failure.count).rstrip()


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(member) for key, member in value.items()}
    return [_copied(member) for member in value] if isinstance(value, list | tuple) else value
