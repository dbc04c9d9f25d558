"""Define faces, the form in which one model family sees a canonical tool, and bounds on results.

Everything in which families differ is a field of a face. A bound is data: how much of a text a family's model
gets, and which part of it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context


class Whole(msgspec.Struct, frozen=True):
    """Up to the general limit of every result, and its head beyond that."""


class Tail(msgspec.Struct, frozen=True):
    """The last characters."""

    chars: int


class Ends(msgspec.Struct, frozen=True):
    """The first and the last bytes, each half of the limit; then the first and the last lines, likewise."""

    limit_bytes: int
    lines: int | None = None


class Middle(msgspec.Struct, frozen=True):
    """The first and the last characters, with a sentence in the middle saying how many are missing."""

    chars: int


class LineLimit(msgspec.Struct, frozen=True):
    """Whole lines, until either limit is met: the first ones, or the last ones."""

    lines: int
    limit_bytes: int
    last: bool = False


WHOLE = Whole()
Bound = Whole | Tail | Ends | Middle | LineLimit


Says = Callable[[Any], Any]
"""A tool's outcome → what this family reads: text or a JSON value."""

GENERAL_LIMIT_BYTES = 102_400

Values = dict[str, Any]

Arrange = Callable[[Values], Values]
"""Arguments in one arrangement → the same in another."""

Preprocess = Callable[[Values, Context], Values]
"""Canonical arguments → the ones that will run."""


def as_it_is(outcome: Any) -> Any:
    return outcome


def as_it_came(values: Values, ctx: Context) -> Values:  # noqa: ARG001 - others look around
    return values


def never(outcome: Any) -> bool:  # noqa: ARG001 - others look at it
    return False


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
    unused: tuple[str, ...] = ()
    """Parameters that mean nothing to the canonical tool. Whoever gives one that is not advertised is told so."""
    per: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Canonical parameter → how many of the family's units make one: 1000 where it counts milliseconds."""
    shift: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Canonical parameter → what is added to the family's number: 1 where it counts lines from 0."""
    lift: Arrange = as_it_is
    """Arguments in canonical names and units → canonical arguments, where a family arranges them differently."""
    lower: Arrange = as_it_is
    """The inverse of `lift`."""
    usual: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Canonical arguments where the caller says nothing."""
    fill: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Canonical arguments that this family leaves to the engine."""
    preprocess: Preprocess = as_it_came
    """Puts the arguments into their final form, before anything is decided on them."""
    says: Says = as_it_is
    failed: Callable[[Any], bool] = never
    """Is this outcome an error to the family? Then what `says` makes of it is the error's message."""
    errors: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Failure code → this family's sentence, with the failure's `{message}`, `{hint}`, `{path}` and `{count}`."""
    bound: Bound = WHOLE
    """Which part of a long text the model gets."""
    limit_bytes: int = GENERAL_LIMIT_BYTES
    text_param: str = ""
    """The parameter that takes the whole input of a call which comes as free text."""
    grammar: str = ""
    """The grammar (lark) of that text, for model APIs that know such tools."""
    said_as: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Canonical parameter → what to call it in a sentence, where `lift` leaves no single name."""
    aliases: tuple[str, ...] = ()
    """Other names that mean this face."""
    shown: bool = True
    """Is it advertised, or only accepted?"""
    accepts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The JSON Schema of what is accepted, where that is more than is advertised."""

    @property
    def taken(self) -> Mapping[str, Any]:
        """The JSON Schema that a call has to fit: what is advertised, and what is understood besides."""
        return self.accepts or self.schema

    def heard(self, values: Mapping[str, Any]) -> Values:
        """What the caller said, in the canonical tool's names, units and arrangement."""
        named = {self.params.get(key, key): value for key, value in values.items() if key not in self.unused}
        for key, count in self.per.items():
            if key in named:
                named[key] = named[key] / count
        for key, step in self.shift.items():
            if key in named:
                named[key] += step
        return self.lift(named)

    def completed(self, heard: Mapping[str, Any]) -> Values:
        """The same with what the caller did not say. What the engine fills in, a caller cannot change."""
        return {**self.usual, **heard, **self.fill}

    def canonical(self, values: Mapping[str, Any]) -> Values:
        """Arguments as the canonical tool takes them."""
        return self.completed(self.heard(values))

    def advertised(self, values: Mapping[str, Any]) -> Values:
        """Canonical arguments in this family's names; the inverse of `canonical`."""
        lowered = self.lower({key: value for key, value in values.items() if key not in self.fill})
        for key, step in self.shift.items():
            if key in lowered:
                lowered[key] -= step
        for key, count in self.per.items():
            if key in lowered:
                exact = lowered[key] * count
                lowered[key] = round(exact) if round(exact) / count == lowered[key] else exact
        back = {canonical: shown for shown, canonical in self.params.items()}
        unsaid = {name: "" for name in self.schema.get("required", ()) if name in self.unused}
        return {**unsaid, **{back.get(key, key): value for key, value in lowered.items()}}

    def shown_param(self, canonical: str) -> str:
        """The advertised name of a canonical parameter."""
        if canonical in self.said_as:
            return self.said_as[canonical]
        return next((shown for shown, name in self.params.items() if name == canonical), canonical)

    def definition(self) -> dict[str, Any]:
        """What a model is shown. The caller may change it as its model API needs; the face stays as it is."""
        out = {"name": self.name, "description": self.words, "inputSchema": copy_json(self.schema)}
        return {**out, "grammar": self.grammar} if self.grammar else out

    def sentence(self, failure: ToolFailure) -> str:
        """A failure in this family's words."""
        words = self.errors.get(failure.code or "") or self.errors.get("*")
        if words is None:
            return failure.message
        return words.format(message=failure.message, hint=failure.hint, path=failure.path, count=failure.count).rstrip()


def copy_json(value: Any) -> Any:
    """A JSON value that its receiver may change."""
    if isinstance(value, Mapping):
        return {key: copy_json(member) for key, member in value.items()}
    return [copy_json(member) for member in value] if isinstance(value, list | tuple) else value
