"""How Amp reads what came back."""

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.core.face import GENERAL_LIMIT_BYTES
from ferrule.core.outcomes import Created, Deleted, Edited, Formatted, Found, Hits, Matching, Ran, Restored
from ferrule.core.tasks import Left
from ferrule.dialects.says import about_skill, fenced, going_on, matching

if TYPE_CHECKING:
    from ferrule.core.elsewhere import SkillLoaded

NOTHING_FOUND = (
    "No results found.",
    "If you meant to search for a literal string, run Grep again with literal:true.",
)


def edited(outcome: Edited) -> dict[str, Any]:
    return {"diff": outcome.diff, "lineRange": [outcome.first_line, outcome.last_line]}


def created(outcome: Created) -> Any:
    message = f"Successfully {'overwrote' if outcome.existed else 'created'} file {outcome.path}"
    if outcome.guidance:
        return {"message": message, "discoveredGuidanceFiles": list(outcome.guidance)}
    return message


def ran(outcome: Ran | Left) -> str:
    about = outcome.task if isinstance(outcome, Left) else outcome
    end = (
        f"<background>{going_on(outcome)}</background>"
        if isinstance(outcome, Left)
        else f"<exit_code>{outcome.exit_code}</exit_code>"
    )
    return (
        f"<command>{about.command}</command>\n"
        f"<working_directory>{about.cwd}</working_directory>\n"
        f"<output>{about.output}</output>\n"
        f"{end}"
    )


def files_and_remaining(outcome: Found) -> dict[str, Any]:
    """A page that would be too long gives up its end, and says so by counting it as remaining."""
    room, files = GENERAL_LIMIT_BYTES - 100, []
    with contextlib.suppress(UnicodeEncodeError):
        if len(msgspec.json.encode(outcome.paths)) < room:
            return {"files": list(outcome.paths), "remaining": outcome.remaining}
    for path in outcome.paths:
        # Bytes that are no text count as more than they become; quotes and backslashes count as they are written.
        room -= len(msgspec.json.encode(path.encode(errors="backslashreplace").decode())) + 1
        if room < 0:
            break
        files.append(path)
    return {"files": files, "remaining": outcome.remaining + len(outcome.paths) - len(files)}


def lines(outcome: Hits | Matching) -> list[str]:
    """Matching lines; or files, for a call in the words of a family that may ask for those."""
    if isinstance(outcome, Matching):
        return matching(outcome, none="\n".join(NOTHING_FOUND)).split("\n")
    if not outcome.lines:
        return list(NOTHING_FOUND)
    return [f"{hit.path}:{hit.line}: {hit.text}" for hit in outcome.lines]


def deleted(outcome: Deleted) -> str:
    return f"Successfully deleted file {outcome.path}"


def restored(outcome: Restored) -> str:
    return fenced(outcome.diff, "diff")


def formatted(outcome: Formatted) -> str | dict[str, str]:
    if not outcome.diff:
        return f"{outcome.path} was formatted already ({outcome.program})"
    return {"diff": outcome.diff}


def skill(outcome: "SkillLoaded") -> str:
    """The instructions between tags, and where their paths start from."""
    folder = [f"Relative paths in it start from {outcome.folder}."] if outcome.folder else []
    rows = "\n".join([*folder, *about_skill(outcome)])
    return f'<loaded_skill name="{outcome.name}">\n{outcome.text}\n\n{rows}'.rstrip() + "\n</loaded_skill>"
