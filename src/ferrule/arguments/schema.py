"""A tool's advertised schema, and fitting what a call brings to it.

Building a validator and importing its library wait for the first call: start-up pays for neither.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.arguments.incoming import Incoming, examine, receive
from ferrule.arguments.judge import judge, judge_parts
from ferrule.core.errors import BadArguments

if TYPE_CHECKING:
    from jsonschema_rs import Validator

LIMIT_NOTES = 20

_MAY_NAME_MORE = (
    *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
)


class Fitted(NamedTuple):
    """Arguments that fit, and one sentence for everything that was mended or left out."""

    values: dict[str, Any]
    notes: tuple[str, ...] = ()


class Schema:
    """One advertised JSON Schema, which must not be changed afterwards."""

    def __init__(self, advertised: Mapping[str, Any]) -> None:
        self.advertised = dict(advertised)

    def fit(self, raw: dict[str, Any] | str | Incoming) -> Fitted:
        """The arguments as the schema wants them; parameters that it does not know are left out and noted.

        Raises BadArguments, with one line per bad parameter, and ConfigError where the schema itself is bad.
        """
        came = raw if isinstance(raw, Incoming) else receive(raw)
        unknown = [name for name in came.values if name not in self._known] if self._known is not None else []
        if not unknown and not came.has_whole_floats and self._validator.is_valid(came.values):
            return Fitted(came.values, came.notes)
        return self._mend(came, unknown)

    def _mend(self, came: Incoming, unknown: list[str]) -> Fitted:
        from ferrule.arguments import misfits  # only a call that does not fit pays for its repair
        from ferrule.arguments.coerce import coerce

        values, notes, has_whole_floats = came
        for name in unknown:
            del values[name]
        if unknown:
            notes += tuple(misfits.unknown_notes(self.advertised, unknown))
            if not has_whole_floats and self._validator.is_valid(values):
                return Fitted(values, notes)
        parts = judge_parts(self.advertised)
        mended = coerce(values, self.advertised, parts)
        # What was unpacked from a string may nest deeper than what was examined before.
        examine(mended.value)
        if not parts["#"].is_valid(mended.value):
            errors = parts["#"].iter_errors(mended.value)
            raise BadArguments("\n".join(misfits.lines(self.advertised, mended.value, errors, unknown)))
        more = len(mended.notes) - LIMIT_NOTES
        cut = (f"{more} more values were mended in the same way.",) if more > 0 else ()
        return Fitted(mended.value, notes + mended.notes[:LIMIT_NOTES] + cut)

    @cached_property
    def _validator(self) -> "Validator":
        return judge(self.advertised)

    @cached_property
    def _known(self) -> frozenset[str] | None:
        """All names that the schema knows; None where it allows others itself or may name more elsewhere."""
        properties, required = self.advertised.get("properties"), self.advertised.get("required")
        if not isinstance(properties, dict) or any(keyword in self.advertised for keyword in _MAY_NAME_MORE):
            return None
        return frozenset(properties).union(required if isinstance(required, list) else ())
