"""How Amp reads what came back."""

import contextlib
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ferrule.core.face import GENERAL_LIMIT_BYTES
from ferrule.core.outcomes import Created, Deleted, Edited, Formatted, Found, Hits, Matching, Ran, Restored
from ferrule.core.tasks import Left
from ferrule.dialects.says import about_skill, fenced, going_on, matching

if TYPE_CHECKING:
    from ferrule.core.checks import CheckRun
    from ferrule.core.elsewhere import SkillLoaded
    from ferrule.core.found import Reworked, Spots
    from ferrule.core.problems import Problems
    from ferrule.core.subagents import Worked
    from ferrule.core.threads import ThreadRead, ThreadsFound
    from ferrule.core.web import Fetched, Searched

PAGE_LIMIT_BYTES = 589_824
"""262,144 bytes of text may take twice as many as JSON, and there are titles and addresses."""
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


def checked(outcome: "CheckRun") -> str:
    """What came of each check."""
    from ferrule.dialects.families.amp.checks_said import checked as said  # for sessions that run checks

    return said(outcome)


def skill(outcome: "SkillLoaded") -> str:
    """The instructions between tags, and where their paths start from."""
    folder = [f"Relative paths in it start from {outcome.folder}."] if outcome.folder else []
    rows = "\n".join([*folder, *about_skill(outcome)])
    return f'<loaded_skill name="{outcome.name}">\n{outcome.text}\n\n{rows}'.rstrip() + "\n</loaded_skill>"


def answered(outcome: "Worked") -> str:
    """Of a subagent, only the last message reaches whoever asked."""
    return outcome.text


def places(outcome: "Worked | Spots") -> str:
    """What a subagent found, in its own words; or places by rank."""
    spots = getattr(outcome, "spots", None)
    if spots is None:
        return answered(cast("Worked", outcome))
    if not spots:
        return "Nothing has the words of the question. Try others, or Grep for a text that must be there."
    return "\n".join(f"{spot.path}#L{spot.first}-L{spot.last}: {spot.line}" for spot in spots)


def reworked(outcome: "Reworked") -> str:
    """A line for each file, as git shows them, and what all of it took."""
    sign = {"added": "A", "changed": "M", "unchanged": " "}
    rows = [
        f"{sign[file.kind]} {file.path}"
        + f" (+{file.added} -{file.removed})" * (file.kind != "unchanged")
        + f": {file.summary}" * bool(file.summary)
        for file in outcome.files
    ]
    changed = sum(file.kind != "unchanged" for file in outcome.files)
    end = "Nothing had to be changed; no file was written."
    if changed:
        count = f"{changed} file{'s' * (changed != 1)}"
        end = f"{count} written at once; undo_edit on any of them takes all of it back."
    return "\n".join([*rows, f"{end} {outcome.turns:,} turns, {outcome.tokens:,} tokens."])


def problems(outcome: "Problems") -> str:
    """A line for each problem."""
    from ferrule.dialects.families.amp.problems_said import listed  # for sessions that ask language servers

    return listed(outcome)


def threads(outcome: "ThreadsFound") -> str:
    """A block for each thread that was found."""
    from ferrule.dialects.families.amp.threads_said import found  # for sessions that look at others

    return found(outcome)


def thread(outcome: "ThreadRead") -> str:
    """The messages of a thread."""
    from ferrule.dialects.families.amp.threads_said import read  # the same

    return read(outcome)


def page(outcome: "Fetched") -> Any:
    """A page of the web, under its title and address."""
    from ferrule.dialects.page_says import pages  # for sessions that look at the web

    return pages("To read it, call read_web_page again with that address.")(outcome)


def links(outcome: "Searched") -> str:
    """The results of a search of the web, numbered."""
    from ferrule.dialects.link_says import numbered  # for sessions that search the web

    return numbered(none='No results found for "{query}".')(outcome)
