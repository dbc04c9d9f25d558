"""How pi arranges edits and searches."""

from ferrule.core.errors import BadArguments
from ferrule.core.face import Values
from ferrule.dialects.arrange import members, opposite, turned, without

_EDIT = {"oldText": "old", "newText": "new"}


def edits(values: Values) -> Values:
    """Edits in canonical names. One that says more than the two texts may mean more than is understood."""
    unknown = [f"edits[{at}].{key}" for at, one in enumerate(values["edits"]) for key in one if key not in _EDIT]
    if unknown:
        raise BadArguments("\n".join(f"{where}: unknown; an edit has oldText and newText." for where in unknown[:10]))
    return members(values, "edits", _EDIT)


def edits_shown(values: Values) -> Values:
    """The inverse."""
    if any(one.get("everywhere") for one in values["edits"]):
        raise BadArguments("edits: there are no words for an edit that is made everywhere.")
    return members(values, "edits", turned(_EDIT))


def more(values: Values) -> Values:
    """Edits, and one more that is said by itself."""
    return edits({**without(values, *_EDIT), "edits": [*values["edits"], {key: values[key] for key in _EDIT}]})


def more_shown(values: Values) -> Values:
    """The inverse."""
    shown = edits_shown(values)
    return {**shown, "edits": shown["edits"][:-1], **shown["edits"][-1]}


def search(values: Values) -> Values:
    """`ignoreCase` is the opposite of case sensitive, and `context` is both sides."""
    out = opposite(without(values, "context"), "ignoreCase", "case_sensitive")
    return {**out, "before": values["context"], "after": values["context"]} if "context" in values else out


def searched(values: Values) -> Values:
    """The inverse; lines before and lines after are one number."""
    out = opposite(without(values, "before", "after"), "case_sensitive", "ignoreCase")
    if "before" in values or "after" in values:
        out["context"] = max(values.get("before", 0), values.get("after", 0))
    return out
