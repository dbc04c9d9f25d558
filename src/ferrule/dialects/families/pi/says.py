"""How pi reads what came back."""

from ferrule.core.outcomes import Created, Edited, FileText, Found, Hits, Matching, Ran, Tree
from ferrule.core.tasks import Left
from ferrule.dialects.says import left, matching, paths, plain


def text(outcome: FileText) -> str:
    """The lines as they are, and how to go on where there are more."""
    last = outcome.first + len(outcome.lines) - 1
    if outcome.first > 1 and not outcome.lines:
        return f"Offset {outcome.first} is beyond end of file ({outcome.total} lines total)"
    if outcome.total is not None and last >= outcome.total:
        return plain(outcome)
    of = "" if outcome.total is None else f" of {outcome.total}"
    return f"{plain(outcome)}\n\n[Showing lines {outcome.first}-{last}{of}. Use offset={last + 1} to continue.]"


def written(outcome: Created) -> str:
    return f"Successfully wrote {outcome.size_bytes} bytes to {outcome.path}"


def edited(outcome: Edited) -> str:
    return f"Successfully replaced {outcome.places} block(s) in {outcome.path}."


def ran(outcome: Ran | Left) -> str:
    if isinstance(outcome, Left):
        return left(outcome)
    body = outcome.output.rstrip("\n") or "(no output)"
    if outcome.timed_out_after is not None:
        return f"{body}\n\nCommand timed out after {outcome.timed_out_after:g} seconds"
    if outcome.quiet_after is not None:
        return f"{body}\n\nCommand printed nothing for {outcome.quiet_after:g} seconds and was stopped"
    return f"{body}\n\nCommand exited with code {outcome.exit_code}" if outcome.exit_code else body


def matched(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Matching):
        return matching(outcome, none="No matches found")
    if not outcome.lines:
        return "No matches found"
    marks = {True: "-", False: ":"}
    rows = [f"{hit.path}{marks[hit.context]}{hit.line}{marks[hit.context]} {hit.text}" for hit in outcome.lines]
    more = outcome.total - sum(not hit.context for hit in outcome.lines)
    rest = f"\n[{more} more matches. Use a larger limit or a narrower pattern.]"
    return "\n".join([*rows, *([rest] if more > 0 else [])])


def found(outcome: Found) -> str:
    more = "\n[{remaining} more. Use a larger limit or a narrower pattern.]"
    return paths(outcome, none="No files found matching pattern", more=more)


def listed(outcome: Tree) -> str:
    if not outcome.entries:
        return "(empty directory)"
    rows = [entry.path + "/" * (entry.kind == "folder") for entry in outcome.entries]
    rest = f"\n[{outcome.remaining} more entries. Use a larger limit.]"
    return "\n".join([*rows, *([rest] if outcome.remaining else [])])
