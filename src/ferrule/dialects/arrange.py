"""How arguments are arranged, for families that do it alike. Each is undone by itself, with the names turned round."""

from collections.abc import Mapping

from ferrule.core.face import Values


def without(values: Values, *names: str) -> Values:
    """The arguments, and not those of these names."""
    return {key: value for key, value in values.items() if key not in names}


def opposite(values: Values, said: str, meant: str) -> Values:
    """`meant` in place of `said`, where the one says the opposite of the other."""
    return {**without(values, said), meant: not values[said]} if said in values else values


def members(values: Values, name: str, names: Mapping[str, str]) -> Values:
    """A list whose objects have other names for their members; a member without one is left out."""
    rows = [{names[key]: value for key, value in one.items() if key in names} for one in values[name]]
    return {**values, name: rows}


def turned(names: Mapping[str, str]) -> dict[str, str]:
    """The same names the other way round."""
    return {meant: said for said, meant in names.items()}
