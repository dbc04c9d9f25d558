"""Why a hunk has no place, or more than one: a short report that tells the model what to do next."""

from collections.abc import Sequence

from ferrule.workspace.explain import explain
from ferrule.workspace.hunks import Unplaced
from ferrule.workspace.match import Found, Missing, find
from ferrule.workspace.textfile import TextFile

LIMIT_LISTED = 20
LIMIT_WIDTH = 80

_WHERE = (
    "Give lines of context around the change, or before it an @@ line with the class or function that it is in, until"
)


def explain_unplaced(file: TextFile, unplaced: Unplaced, *, changed_since_read: bool) -> str:
    """What is wrong with the hunk, and what to do about it. The file's own name is left to the caller."""
    hunk = unplaced.hunk
    name = f"the hunk at line {hunk.line} of the patch"
    match unplaced.reason:
        case "ambiguous":
            return (
                f"{name} fits {_count(unplaced)} places: {_listed(unplaced.lines, unplaced.heads)}. "
                f"Nothing was changed. {_WHERE} it fits one place only."
            )
        case "nowhere":
            return (
                f"{name} only adds lines and does not say where. Nothing was changed. Put the line that they come "
                "after behind @@, or give lines of context, or end it with *** End of File."
            )
        case "repetitive":
            return (
                f"{name} has no certain place, because the file repeats itself so much. Nothing was changed. "
                "Give lines of context that are rare in the file."
            )
        case "unshiftable":
            return (
                f"{name} fits line {unplaced.lines[0]} but for its indentation, and its added lines cannot be moved "
                "the same way. Nothing was changed. Write it with the file's own indentation."
            )
        case "elsewhere":
            return f"{name} has no place where it is looked for. Nothing was changed. {_elsewhere(unplaced)}"
        case "no-anchor":
            old, new, what = unplaced.anchor, "", "the line behind its @@"
        case "absent":
            old, new, what = "\n".join(hunk.old()), "\n".join(hunk.new()), "its context and removed lines"
    return f"{name} has no place. {_absent(file, old, new, what, changed_since_read=changed_since_read)}"


def _count(unplaced: Unplaced) -> str:
    return str(len(unplaced.lines)) if unplaced.complete else f"more than {len(unplaced.lines)}"


def _listed(lines: Sequence[int], heads: Sequence[str] = ()) -> str:
    """Line numbers, each with what the line is in where that is known."""
    inside = [f" (in {head[:LIMIT_WIDTH]})" if head else "" for head in heads] or [""] * len(lines)
    shown = [f"{number}{head}" for number, head in zip(lines, inside, strict=True)][:LIMIT_LISTED]
    more = f" and {len(lines) - LIMIT_LISTED} more" if len(lines) > LIMIT_LISTED else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {', '.join(shown)}{more}"


def _elsewhere(unplaced: Unplaced) -> str:
    hunk, where = unplaced.hunk, _listed(unplaced.lines)
    behind = f"after line {unplaced.done}, where the hunk before it ends" if unplaced.done else ""
    headed = f"after its @@ line {hunk.anchors[-1][:LIMIT_WIDTH]!r}" if hunk.anchors and hunk.old() else ""
    closed = "at the end of the file, because of *** End of File" if hunk.at_end else ""
    needed = ", and ".join(part for part in (behind, headed, closed) if part)
    return (
        f"It fits {where}, but has to stand {needed}. Put the hunks in the order of the file, each after its @@ line."
    )


def _absent(file: TextFile, old: str, new: str, what: str, *, changed_since_read: bool) -> str:
    if not file.text:
        return "Nothing was changed. The file is empty: a hunk for it can only add lines."
    if not old.strip():
        return f"Nothing was changed. The file has no empty lines for {what}: give lines that are not empty."
    found = find(file, old, new, everywhere=False)
    if not isinstance(found, Missing):
        number = found.lines[0][0] if isinstance(found, Found) else found.lines[0]
        return (
            f"Nothing was changed. At line {number} of the file, {what} are only parts of longer lines: "
            "a patch takes whole lines."
        )
    return f"Here, the old text is {what}.\n{explain(file, old, new, changed_since_read=changed_since_read)}"
