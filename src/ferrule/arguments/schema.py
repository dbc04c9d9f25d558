"""Check arguments against a schema, as a whole and part by part.

A validator is made without fetching anything.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.arguments.input import ArgumentObject, examine, receive
from ferrule.core.errors import BadArguments, ConfigError

if TYPE_CHECKING:
    from jsonschema_rs import Validator, ValidatorMap


def judge(schema: dict[str, Any]) -> "Validator":
    """A validator for the schema.

    Raises ConfigError where it is not a schema, or refers to anything but its own parts: nothing is fetched.
    """
    import jsonschema_rs  # 20 ms; only a call that is validated pays for it

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(getattr(error, "message", error)).splitlines()[0][:200]
        raise ConfigError(f"The tool's schema cannot be used: {reason}") from error


def judge_parts(schema: dict[str, Any]) -> "ValidatorMap":
    """Validators for the schema and for each of its parts, by JSON pointer. Raises ConfigError, as above."""
    import jsonschema_rs  # as above

    judge(schema)  # the map leaves out in silence what cannot be built; this says why
    # Masked, because its messages would otherwise repeat whole values, which nobody reads.
    return jsonschema_rs.validator_map_for(schema, retriever=_refuse, mask="the value")


def local_target(root: dict[str, Any], reference: object) -> tuple[Any, str] | None:
    """The part that a local reference names, with its pointer; None where it cannot be known from here."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or "%" in reference:
        return None
    found: Any = root
    for key in reference.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901 - the same key, unescaped
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key[:6]) < len(found):
            found = found[int(key[:6])]
        else:
            return None
        if isinstance(found, dict) and "$id" in found:
            return None  # references inside it are relative to another base
    return found, reference


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema may refer only to its own parts, not to {uri[:100]}")


LIMIT_NOTES = 20

_MAY_NAME_MORE = (
    *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
)


class FittedArguments(NamedTuple):
    """Arguments that fit, and one sentence for everything that was mended or left out."""

    values: dict[str, Any]
    notes: tuple[str, ...] = ()


class Schema:
    """One advertised JSON Schema, which must not be changed afterwards."""

    def __init__(self, advertised: Mapping[str, Any]) -> None:
        self.advertised = dict(advertised)

    def fit(self, raw: dict[str, Any] | str | ArgumentObject) -> FittedArguments:
        """The arguments as the schema wants them; parameters that it does not know are left out and noted.

        Raises BadArguments, with one line per bad parameter, and ConfigError where the schema itself is bad.
        """
        came = raw if isinstance(raw, ArgumentObject) else receive(raw)
        unknown = (
            [name for name in came.values if name not in self._schema_names] if self._schema_names is not None else []
        )
        if not unknown and not came.has_whole_floats and self._validator.is_valid(came.values):
            return FittedArguments(came.values, came.notes)
        return self._mend(came, unknown)

    def _mend(self, came: ArgumentObject, unknown: list[str]) -> FittedArguments:
        from ferrule.arguments import complaints  # only a call that does not fit pays for its repair
        from ferrule.arguments.coerce import coerce

        values, notes, has_whole_floats = came
        for name in unknown:
            del values[name]
        if unknown:
            notes += tuple(complaints.unknown_notes(self.advertised, unknown))
            if not has_whole_floats and self._validator.is_valid(values):
                return FittedArguments(values, notes)
        parts = judge_parts(self.advertised)
        mended = coerce(values, self.advertised, parts)
        # What was unpacked from a string may nest deeper than what was examined before.
        examine(mended.value)
        if not parts["#"].is_valid(mended.value):
            errors = parts["#"].iter_errors(mended.value)
            raise BadArguments("\n".join(complaints.lines(self.advertised, mended.value, errors, unknown)))
        more = len(mended.notes) - LIMIT_NOTES
        cut = (f"{more} more values were mended in the same way.",) if more > 0 else ()
        return FittedArguments(mended.value, notes + mended.notes[:LIMIT_NOTES] + cut)

    @cached_property
    def _validator(self) -> "Validator":
        return judge(self.advertised)

    @cached_property
    def _schema_names(self) -> frozenset[str] | None:
        """All names that the schema knows; None where it allows others itself or may name more elsewhere."""
        properties, required = self.advertised.get("properties"), self.advertised.get("required")
        if not isinstance(properties, dict) or any(keyword in self.advertised for keyword in _MAY_NAME_MORE):
            return None
        return frozenset(properties).union(required if isinstance(required, list) else ())
