"""Validators for a schema and for each of its parts, made without fetching anything."""

from typing import TYPE_CHECKING, Any

from ferrule.core.errors import ConfigError

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
