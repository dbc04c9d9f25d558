"""How pi arranges edits and searches."""

from typing import Any

from ferrule.core.errors import BadArguments

_NAMES = {"oldText": "old", "newText": "new"}
_BACK = {canonical: shown for shown, canonical in _NAMES.items()}


def edits(values: dict[str, Any]) -> dict[str, Any]:
    """Edits in canonical names. One that says more than the two texts may mean more than is understood."""
    unknown = [f"edits[{at}].{key}" for at, one in enumerate(values["edits"]) for key in one if key not in _NAMES]
    if unknown:
        raise BadArguments("\n".join(f"{where}: unknown; an edit has oldText and newText." for where in unknown[:10]))
    return {**values, "edits": [{_NAMES[key]: value for key, value in one.items()} for one in values["edits"]]}


def edits_shown(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    if any(one.get("everywhere") for one in values["edits"]):
        raise BadArguments("edits: there are no words for an edit that is made everywhere.")
    return {**values, "edits": [{shown: one[key] for key, shown in _BACK.items()} for one in values["edits"]]}


def more(values: dict[str, Any]) -> dict[str, Any]:
    """Edits, and one more that is said by itself."""
    rest = {key: value for key, value in values.items() if key not in _NAMES}
    return edits({**rest, "edits": [*values["edits"], {key: values[key] for key in _NAMES}]})


def more_shown(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    shown = edits_shown(values)
    return {**shown, "edits": shown["edits"][:-1], **shown["edits"][-1]}


def search(values: dict[str, Any]) -> dict[str, Any]:
    """`ignoreCase` is the opposite of case sensitive, and `context` is both sides."""
    out = {key: value for key, value in values.items() if key not in ("ignoreCase", "context")}
    if "ignoreCase" in values:
        out["case_sensitive"] = not values["ignoreCase"]
    if "context" in values:
        out["before"] = out["after"] = values["context"]
    return out


def searched(values: dict[str, Any]) -> dict[str, Any]:
    """The inverse; lines before and lines after are one number."""
    out = {key: value for key, value in values.items() if key not in ("case_sensitive", "before", "after")}
    if "case_sensitive" in values:
        out["ignoreCase"] = not values["case_sensitive"]
    if "before" in values or "after" in values:
        out["context"] = max(values.get("before", 0), values.get("after", 0))
    return out
