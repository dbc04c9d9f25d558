"""Render the results of subagents and of language servers for families that word them alike."""

from collections.abc import Iterable
from typing import Any

import msgspec

from ferrule.core.services import DelegateOutcome, LeftAgent, SubagentBatchResult, Worked, last_words
from ferrule.dialects.shared import hits
from ferrule.tools.lsp import CodeQuery, Hovered, InText, Occurrence, Occurrences, Operation, Outline

SHARED_CHARS = 50_000
_LEAST_CHARS = 200

Outcome = DelegateOutcome | LeftAgent | SubagentBatchResult


def message(outcome: Outcome) -> str:
    """The last message and nothing else."""
    if isinstance(outcome, SubagentBatchResult):
        return render_batch(outcome)
    if isinstance(outcome, LeftAgent):
        return describe_background_agent(outcome)
    return last_words(outcome.worked) or "The agent is done, and has said nothing."


def describe_background_agent(outcome: LeftAgent) -> str:
    """Where an agent goes on: any session knows these two tools."""
    worked = outcome.worked
    return (
        f"The agent {worked.name} goes on in the background with the id {worked.id}. You are told when it is done. "
        f"TaskOutput with the task_id {worked.id} reads its answer, and TaskStop stops it."
    )


def agent_failed(outcome: Outcome) -> bool:
    """Has nobody done anything? An agent that met a limit has said how far it came."""
    if isinstance(outcome, LeftAgent):
        return False
    works = outcome.works if isinstance(outcome, SubagentBatchResult) else (outcome.worked,)
    if isinstance(outcome, SubagentBatchResult):
        return all(work.status != "completed" for work in works)
    return all(work.status == "failed" and work.reason == "error" for work in works)


def render_batch(outcome: SubagentBatchResult) -> str:
    """A list of what each has done, as JSON; summaries are shortened until it stays whole."""
    room = SHARED_CHARS
    while True:
        rows = [_task_row(at, worked, room) for at, worked in enumerate(outcome.works)]
        text = msgspec.json.encode({"results": rows}).decode()
        if len(text) <= SHARED_CHARS or room <= _LEAST_CHARS:
            return text
        room //= 2


def _task_row(at: int, worked: Worked, room: int) -> dict[str, Any]:
    return {
        "task_index": at,
        "name": worked.name,
        "status": "completed" if worked.status == "completed" else "error",
        "summary": _truncate_middle(last_words(worked), room),
        "turns": worked.turns,
        "tokens": {"input": worked.input_tokens, "output": worked.output_tokens},
    }


def _truncate_middle(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    half = room // 2
    return f"{text[:half]}\n\n... [truncated {len(text) - 2 * half} chars] ...\n\n{text[-half:]}"


_THINGS: dict[Operation, tuple[str, str]] = {
    "goToDefinition": ("definition", "definitions"),
    "findReferences": ("reference", "references"),
    "workspaceSymbol": ("symbol", "symbols"),
    "goToImplementation": ("implementation", "implementations"),
    "prepareCallHierarchy": ("call hierarchy item", "call hierarchy items"),
    "incomingCalls": ("caller", "callers"),
    "outgoingCalls": ("callee", "callees"),
}
"""Operation → what it finds, one of it and several."""


def code(outcome: Occurrences | Outline | Hovered | InText) -> str:
    """What was found, after a line that says what it is."""
    if isinstance(outcome, Occurrences):
        return _occurrences(outcome)
    if isinstance(outcome, Outline):
        return _outline(outcome)
    if isinstance(outcome, Hovered):
        rest = f"\n\n({outcome.missing:,} more characters are not shown.)" if outcome.missing else ""
        return outcome.text + rest if outcome.text else f"Nothing is known about {_subject(outcome.asked)}."
    return _in_text(outcome)


def _occurrences(outcome: Occurrences) -> str:
    asked = outcome.asked
    one, many = _THINGS[asked.operation]
    if not outcome.places:
        about = "" if outcome.about is None else f"\nIt is defined at {_place_line(outcome.about)}"
        return f"No {one} was found for {_subject(asked)}.{about}"
    count = len(outcome.places) + outcome.more
    what = {"findReferences": "to", "goToDefinition": "of", "goToImplementation": "of"}.get(asked.operation, "for")
    head = f"Found {count:,} {one if count == 1 else many} {what} `{asked.name}`:"
    if outcome.about is not None:
        name = f"`{outcome.about.name or asked.name}`"
        head = f"{_place_line(outcome.about)}\n\nFound {count:,} {one if count == 1 else many} of {name}:"
    rows = [row for place in outcome.places for row in _rows(place)]
    return "\n".join([head, *rows, *_rest(outcome.more, outcome.more_sites)])


def _rows(place: Occurrence) -> Iterable[str]:
    yield _place_line(place)
    for site in place.sites:
        yield f"    called at {_at(site.path, site.line, site.character)}{_code(site.text)}"


def _place_line(place: Occurrence) -> str:
    inside = f" (in {place.container})" if place.container else ""
    named = f": {place.kind or 'symbol'} {place.name}{inside}" if place.name else ""
    outside = " (outside the workspace)" if place.is_outside else ""
    if place.owner:
        outside = f" ({place.owner}'s own copy)"
    marked = " (definition)" if place.is_definition else ""
    return f"{_at(place.path, place.line, place.character)}{named}{outside}{marked}{_code(place.text)}"


def _rest(places: int, sites: int) -> Iterable[str]:
    if places:
        yield f"({places:,} more are not shown.)"
    elif sites:
        yield f"({sites:,} more calls are not shown.)"


def _at(path: str, line: int, character: int) -> str:
    return ":".join([path, *(str(number) for number in (line, character) if number)])


def _code(text: str) -> str:
    return f": {text}" if text else ""


def _subject(asked: CodeQuery) -> str:
    """What it was about."""
    if asked.operation == "workspaceSymbol":
        return f"`{asked.name}`"
    return f"`{asked.name}` at {_at(asked.path, asked.line, asked.character)}"


def _outline(outcome: Outline) -> str:
    if not outcome.rows:
        return f"{outcome.asked.path} has no symbols."
    rows = []
    for row in outcome.rows:
        lines = f"{row.first}" if row.first == row.last else f"{row.first}-{row.last}"
        inside = f" (in {row.container})" if row.container else ""
        rows.append(f"{'  ' * row.depth}{row.kind or 'symbol'} {row.name}{inside}" + (f" {lines}" if row.first else ""))
    return "\n".join([f"Symbols of {outcome.asked.path}, with their lines:", *rows, *_rest(outcome.more, 0)])


def _in_text(outcome: InText) -> str:
    name = outcome.asked.name
    head = f"{outcome.why}\nA text search for `{name}` finds"
    if not outcome.hits.lines:
        return f"{head} nothing."
    return f"{head} these lines, whatever they mean by it:\n{hits(outcome.hits, none='')}"
