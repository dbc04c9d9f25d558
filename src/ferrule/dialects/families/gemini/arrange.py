"""How gemini arranges lines, ignore files, searches and looks at what runs."""

from ferrule.core.errors import BadArguments
from ferrule.core.face import Values
from ferrule.dialects.arrange import members, opposite, turned, without

_STEP = {"description": "text", "status": "status"}


def lines(values: Values) -> Values:
    """A first and a last line as where to begin and how many."""
    out = without(values, "start_line", "end_line")
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
    out = without(values, "offset", "limit")
    if values.get("offset") is not None:
        out["start_line"] = values["offset"]
    if values.get("limit") is not None:
        out["end_line"] = (values.get("offset") or 1) + values["limit"] - 1
    return out


def ignoring(values: Values) -> Values:
    """Whether ignored files are wanted, from the options or from the parameter itself."""
    out = without(values, "file_filtering_options", "respect_git_ignore", "respect_gemini_ignore")
    options = {**values.get("file_filtering_options", {}), **values}
    if "respect_git_ignore" in options:
        out["ignored"] = not options["respect_git_ignore"]
    return out


def as_option(values: Values) -> Values:
    """The inverse, for tools with options."""
    if "ignored" not in values:
        return values
    return {**without(values, "ignored"), "file_filtering_options": {"respect_git_ignore": not values["ignored"]}}


def as_parameter(values: Values) -> Values:
    """The inverse, for tools with the parameter itself."""
    return opposite(values, "ignored", "respect_git_ignore")


def search(values: Values) -> Values:
    """`names_only` is a mode, and `context` is both sides."""
    out = without(values, "names_only", "context")
    if "names_only" in values:
        out["mode"] = "files" if values["names_only"] else "lines"
    if "context" in values:
        out = {"before": values["context"], "after": values["context"], **out}
    return out


def searched(values: Values) -> Values:
    """The inverse."""
    out = without(values, "mode")
    if out.get("per_file") == 0:
        del out["per_file"]
    if "mode" in values:
        out["names_only"] = values["mode"] == "files"
    return out


def looking(values: Values) -> Values:
    """Whoever says nothing does not wait, and wants the last lines: that is so in other families' sessions too."""
    return {"lines": 100, "seconds": 0.0, **values}


def steps(values: Values) -> Values:
    """Items in canonical names."""
    return members(values, "steps", _STEP)


def todos(values: Values) -> Values:
    """The inverse."""
    return members(values, "steps", turned(_STEP))


def agent(values: Values) -> Values:
    """What the family can say of a task for an agent."""
    return {key: values[key] for key in ("prompt", "kind") if key in values}


def addresses(values: Values) -> Values:
    """The addresses in a prompt; what stands around them is what is asked about them."""
    if "prompt" not in values or "url" in values:
        return values
    import re  # for sessions that look at the web

    text = str(values["prompt"])
    found = dict.fromkeys(_without_end(one) for one in re.findall(r"(?i)https?://[^\s<>\"'`|\\^{}]{1,8192}", text))
    if not found:
        return {**values, "url": ""}  # which no tool takes
    asked, _, rows = text.rpartition("\n\n")
    if not set(rows.split()) <= found.keys():
        asked = text
    url, *more = found
    said = {"url": url, "more": more, "prompt": asked}
    return {**without(values, "prompt"), **{key: value for key, value in said.items() if value}}


def as_addresses(values: Values) -> Values:
    """The inverse: below the question, an address a line."""
    if "url" not in values:
        return values
    rows = "\n".join([values["url"], *values.get("more", ())])
    return {"prompt": "\n\n".join(filter(None, (values.get("prompt"), rows)))}


def _without_end(address: str) -> str:
    """Without what ends the sentence around it; a bracket stays if it was opened in it."""
    pairs = {")": "(", "]": "["}
    while address[-1] in ".,;:!?*" or address.count(pairs.get(address[-1], "")) < address.count(address[-1]):
        address = address[:-1]
    return address
