"""How gemini arranges lines, ignore files and searches."""

from typing import Any

from ferrule.core.errors import BadArguments

Values = dict[str, Any]


def _without(values: Values, *names: str) -> Values:
    return {key: value for key, value in values.items() if key not in names}


def lines(values: Values) -> Values:
    """A first and a last line as where to begin and how many."""
    out = _without(values, "start_line", "end_line")
    first = values.get("start_line")
    if first is not None:
        out["offset"] = first
    if values.get("end_line") is not None:
        if values["end_line"] < (first or 1):
            raise BadArguments(f"end_line: the end {values['end_line']} lies before the start {first or 1}.")
        out["limit"] = values["end_line"] - (first or 1) + 1
    return out


def as_lines(values: Values) -> Values:
    """The inverse."""
    out = _without(values, "offset", "limit")
    if values.get("offset") is not None:
        out["start_line"] = values["offset"]
    if values.get("limit") is not None:
        out["end_line"] = (values.get("offset") or 1) + values["limit"] - 1
    return out


def ignoring(values: Values) -> Values:
    """Whether ignored files are wanted, from the options or from the parameter itself."""
    out = _without(values, "file_filtering_options", "respect_git_ignore", "respect_gemini_ignore")
    options = {**values.get("file_filtering_options", {}), **values}
    if "respect_git_ignore" in options:
        out["ignored"] = not options["respect_git_ignore"]
    return out


def as_option(values: Values) -> Values:
    """The inverse, for tools with options."""
    out = _without(values, "ignored")
    if "ignored" in values:
        out["file_filtering_options"] = {"respect_git_ignore": not values["ignored"]}
    return out


def as_parameter(values: Values) -> Values:
    """The inverse, for tools with the parameter itself."""
    out = _without(values, "ignored")
    if "ignored" in values:
        out["respect_git_ignore"] = not values["ignored"]
    return out


def search(values: Values) -> Values:
    """`names_only` is a mode, and `context` is both sides."""
    out = _without(values, "names_only", "context")
    if "names_only" in values:
        out["mode"] = "files" if values["names_only"] else "lines"
    if "context" in values:
        out = {"before": values["context"], "after": values["context"], **out}
    return out


def searched(values: Values) -> Values:
    """The inverse."""
    out = _without(values, "mode")
    if out.get("per_file") == 0:
        del out["per_file"]
    if "mode" in values:
        out["names_only"] = values["mode"] == "files"
    return out


def steps(values: Values) -> Values:
    """Items in canonical names."""
    return {**values, "steps": [{"text": one["description"], "status": one["status"]} for one in values["steps"]]}


def todos(values: Values) -> Values:
    """The inverse."""
    return {**values, "steps": [{"description": one["text"], "status": one["status"]} for one in values["steps"]]}
