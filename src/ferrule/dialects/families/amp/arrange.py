"""How Amp arranges lines, searches and tasks."""

import msgspec

from ferrule.core.errors import BadArguments
from ferrule.core.face import Face, Values, copied
from ferrule.dialects.arrange import without


def span(values: Values) -> Values:
    """`read_range`, first and last line, as where to begin and how many."""
    if "span" not in values:
        return values
    first, last = values["span"]
    start = max(1, first)
    if last < start:
        raise BadArguments(f"read_range: the end {last} lies before the start {first}.")
    return {**without(values, "span"), "offset": start, "limit": last - start + 1}


def as_span(values: Values) -> Values:
    """The inverse."""
    rest = without(values, "offset", "limit")
    if values.get("offset") is None and values.get("limit") is None:
        return rest
    first = values.get("offset") or 1
    return {**rest, "span": [first, first + (values.get("limit") or 500) - 1]}


def one_place(values: Values) -> Values:
    """A search has a path or a glob."""
    if values.get("path") is not None and values.get("glob") is not None:
        raise BadArguments("path: cannot be used together with glob; give one of them.")
    return values


def task(values: Values) -> Values:
    """What the family can say of a task."""
    return {key: values[key] for key in ("prompt", "description") if key in values}


def by_query(face: Face) -> Face:
    """The face of a web search, which accepts the name that all others have for what is looked for."""
    accepts = copied(face.schema)
    accepts["properties"]["query"] = {"type": "string"}
    del accepts["required"]
    return msgspec.structs.replace(face, accepts=accepts)


def objective(values: Values) -> Values:
    """What is looked for is the first query."""
    said = [values[key] for key in ("objective", "query") if key in values]
    if not said:
        raise BadArguments("objective: must say what to search for.")
    rest, queries = without(values, "objective", "queries"), [*said[1:], *values.get("queries", ())]
    return {**rest, "query": said[0], **({"queries": queries} if queries else {})}


def as_objective(values: Values) -> Values:
    """The inverse, as far as the family has words for it."""
    rest = without(values, "query", "allowed_domains", "blocked_domains")
    return {"objective": values["query"], **rest}
