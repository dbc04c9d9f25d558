"""How outcomes read, for families that say them alike; where they differ, they differ in what is given here."""

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ferrule.core.outcomes import (
    Cell,
    Document,
    FileText,
    Found,
    Hits,
    Listing,
    Matching,
    Notebook,
    PatchApplied,
    Picture,
    Ran,
    Tree,
    Unread,
)
from ferrule.core.tasks import Left

if TYPE_CHECKING:
    from ferrule.core.code import Hovered, InText, Occurrences, Outline
    from ferrule.core.elsewhere import Mixed, ServerResources, SkillLoaded, ToolsFound
    from ferrule.dialects.agent_says import Outcome

Said = Any
"""Text, or the JSON value that a family reads."""

_LINE_CHARS = 300
"""Of a tool's first line, where its definition follows."""


def picture(outcome: Picture) -> dict[str, str]:
    """An image part."""
    return {
        "type": "image",
        "media_type": outcome.media_type,
        "data": base64.b64encode(outcome.data).decode(),
    }


def parts(pieces: list[str | Picture]) -> Said:
    """Texts and pictures in order: one text where there is no picture, content parts where there are."""
    joined: list[Picture | list[str]] = []
    for piece in pieces:
        if isinstance(piece, Picture):
            joined.append(piece)
        elif joined and isinstance(joined[-1], list):
            joined[-1].append(piece)
        else:
            joined.append([piece])
    # Put together once: a hostile notebook has a million pieces.
    said = [picture(one) if isinstance(one, Picture) else "\n\n".join(one) for one in joined]
    if len(said) <= 1:
        return said[0] if said else ""
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in said]


def document(outcome: Document) -> Said:
    """Pages, each under its number."""
    pieces: list[str | Picture] = []
    for page in outcome.pages:
        pieces.append(f"Page {page.number} of {outcome.total}\n{page.text}".rstrip())
        if page.picture is not None:
            pieces.append(page.picture)
    return parts(pieces)


def notebook(outcome: Notebook) -> Said:
    """Cells with their ids, each followed by its outputs."""
    if not outcome.cells:
        return f"The notebook has {outcome.total or 'no'} cells" + (
            ", and none from there on." if outcome.total else "."
        )
    pieces: list[str | Picture] = []
    for cell in outcome.cells:
        pieces += _cell(cell, outcome.language)
    return parts(pieces)


def _cell(cell: Cell, language: str) -> list[str | Picture]:
    kind = f' type="{cell.kind}"' if cell.kind != "code" else f' language="{language}"' if language else ""
    pieces: list[str | Picture] = [f'<cell id="{cell.id}"{kind}>\n{cell.source}\n</cell>']
    for output in cell.outputs:
        if output.text:
            pieces.append(f'<output of="{cell.id}">\n{output.text.removesuffix(chr(10))}\n</output>')
        if output.picture is not None:
            pieces.append(output.picture)
    return pieces


def numbered(outcome: FileText, style: str) -> str:
    """Each line with its number: `style` has a place for the number and one for the text."""
    say = style.format
    return "\n".join(say(number, line) for number, line in enumerate(outcome.lines, outcome.first))


def plain(outcome: FileText) -> str:
    """The lines as they are in the file."""
    return "\n".join(outcome.lines) + ("\n" if outcome.final_newline else "")


def reading(
    text: str | Callable[[FileText], str],
    *,
    unchanged: str = "{path} has not changed since it was last read.",
    binary: str = "{path} is binary ({size} bytes).",
    empty: str = "",
    past: str = "",
) -> Callable[[Any], Said]:
    """What a family reads of a file: `text` is the style of a numbered line, or what makes a text of the lines.

    A family that has sentences for an `empty` file and for lines `past` the end fills in `mention_empty`; the second
    one may name the `{first}` line and the `{total}` of lines.
    """

    def says(outcome: Any) -> Said:
        if isinstance(outcome, FileText):
            nothing = "" if outcome.lines else past if outcome.total else empty
            if nothing:
                return nothing.format(first=outcome.first, total=outcome.total)
            return numbered(outcome, text) if isinstance(text, str) else text(outcome)
        if isinstance(outcome, Picture):
            return picture(outcome)
        if isinstance(outcome, Listing):
            return "\n".join(outcome.names)
        if isinstance(outcome, Unread):
            words = unchanged if outcome.why == "unchanged" else binary
            return words.format(path=outcome.path, size=outcome.size_bytes)
        return document(outcome) if isinstance(outcome, Document) else notebook(outcome)

    return says


def fenced(text: str, language: str) -> str:
    """A fenced block; the fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def patched(outcome: PatchApplied) -> str:
    """The files of a patch, each with a letter for what became of it."""
    letters = {"add": "A", "update": "M", "delete": "D"}
    lines = [f"{letters[file.kind]} {file.moved_to or file.path}" for file in outcome.files]
    return "\n".join(["Success. Updated the following files:", *lines])


def failed(outcome: Ran | Left) -> bool:
    """Did a command not end well? For families to which that is an error."""
    if isinstance(outcome, Left):
        return False
    return outcome.exit_code != 0 or stopped(outcome) is not None


def stopped(outcome: Ran) -> str | None:
    """Why a command was stopped, for families that have no words of their own for it."""
    if outcome.quiet_after is not None:
        return f"Stopped after {outcome.quiet_after:g} seconds without output."
    return None if outcome.timed_out_after is None else f"Stopped after {outcome.timed_out_after:g} seconds."


def left(outcome: Left) -> str:
    """Where a command goes on, for families that have no tools of their own for that: any session knows these two."""
    return f"{outcome.task.output}\n\n{going_on(outcome)}".lstrip("\n")


def going_on(outcome: Left) -> str:
    """The sentence alone."""
    moved = "" if outcome.after is None else f" after {outcome.after:g} seconds"
    return (
        f"The command goes on in the background{moved}, as task {outcome.task.id} (process {outcome.task.pid})."
        " TaskOutput reads what it prints, and TaskStop stops it."
    )


def paths(outcome: Found, *, none: str, more: str = "") -> str:
    """One path a line. `more` may name `{remaining}`."""
    if not outcome.paths:
        return none
    rest = [more.format(remaining=outcome.remaining)] if more and outcome.remaining else []
    return "\n".join([*outcome.paths, *rest])


def hits(outcome: Hits | Matching, *, none: str) -> str:
    """`path:line:text` as ripgrep prints them, and `path-line-text` for the lines around, with `--` between groups.

    Files, where a call in another family's words asked for those.
    """
    if isinstance(outcome, Matching):
        return matching(outcome, none=none)
    if not outcome.lines:
        return none
    out: list[str] = []
    has_context = any(hit.context for hit in outcome.lines)
    before = None
    for hit in outcome.lines:
        if has_context and before is not None and (hit.path != before.path or hit.line != before.line + 1):
            out.append("--")
        mark = "-" if hit.context else ":"
        out.append(f"{hit.path}{mark}{hit.line}{mark}{hit.text}" if outcome.numbers else f"{hit.path}{mark}{hit.text}")
        before = hit
    return "\n".join(out)


def matching(outcome: Matching, *, none: str) -> str:
    """Files with matches, with their counts where those were asked for."""
    if not outcome.files:
        return none
    counted = outcome.lines > 0
    return "\n".join(f"{path}:{count}" if counted else path for path, count in outcome.files)


def tree(outcome: Tree) -> str:
    """One entry a line, deeper ones further in; folders end in a slash and links in an at sign."""
    marks = {"folder": "/", "link": "@", "other": "?", "file": ""}
    lines = (
        "  " * entry.path.count("/") + entry.path.rpartition("/")[2] + marks[entry.kind] for entry in outcome.entries
    )
    return "\n".join(lines)


def resources(outcome: "ServerResources") -> dict[str, Any]:
    """Each with its server, as MCP writes them, and the servers that could not be asked."""
    uri, kind = ("uriTemplate", "resourceTemplates") if outcome.templates else ("uri", "resources")
    rows = []
    for one in outcome.resources:
        more = {"description": one.words, "mimeType": one.media_type}
        rows.append({"server": one.server, uri: one.uri, "name": one.name, **{k: v for k, v in more.items() if v}})
    return {
        kind: rows,
        **({"nextCursor": outcome.next_cursor} if outcome.next_cursor else {}),
        **({"unavailable": dict(outcome.silent)} if outcome.silent else {}),
    }


def mixed(outcome: "Mixed") -> Said:
    """What a server has answered."""
    from ferrule.core.elsewhere import said  # for sessions with servers

    return said(outcome)


def tools_found(outcome: "ToolsFound") -> list[dict[str, Any]]:
    """Tools as a model is shown them, whole."""
    return [{"name": one.name, "description": one.words, "parameters": one.schema} for one in outcome.tools]


def tools_named(outcome: "ToolsFound") -> dict[str, Any]:
    """The same, in a line each if the model gets their definitions with its next turn: nobody pays for them twice."""
    if not outcome.definitions_follow:
        return {"tools": tools_found(outcome)}
    return {"tools": [{"name": one.name, "description": _first_line(one.words)} for one in outcome.tools]}


def _first_line(words: str) -> str:
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"


def about_skill(outcome: "SkillLoaded") -> list[str]:
    """What there is to know of a skill beside its instructions, a sentence each."""
    rows = (
        ("Files beside its instructions", outcome.files),
        ("Tools that it has brought", outcome.brought),
        ("Allowed from now on", outcome.allowed),
    )
    return [f"{what}: {', '.join(some)}." for what, some in rows if some]


def delegated(outcome: "Outcome") -> str:
    """What subagents have done, in their own words."""
    from ferrule.dialects.agent_says import message  # for sessions with subagents

    return message(outcome)


def about_code(outcome: "Occurrences | Outline | Hovered | InText") -> str:
    """What a language server has said."""
    from ferrule.dialects.code_says import code  # for sessions that ask language servers

    return code(outcome)


def undone(outcome: "Outcome") -> bool:
    """Has none of them done anything?"""
    from ferrule.dialects.agent_says import failed  # for sessions with subagents

    return failed(outcome)
