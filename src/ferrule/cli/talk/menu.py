"""The completions below the input: a few of them, with what each one is."""

from typing import TYPE_CHECKING

from ferrule.cli.talk.line import Line, line, wide

if TYPE_CHECKING:
    from prompt_toolkit.buffer import CompletionState

_MOST_ROWS = 7


def menu_lines(state: "CompletionState | None") -> list[Line]:
    """The completions around the chosen one."""
    if state is None or not state.completions:
        return []
    chosen = state.complete_index
    first = max(0, min((chosen or 0) - _MOST_ROWS // 2, len(state.completions) - _MOST_ROWS))
    shown = state.completions[first : first + _MOST_ROWS]
    column = min(40, max(wide(one.display_text) for one in shown))
    rows = []
    for at, one in enumerate(shown, first):
        style = "cyan bold" if at == chosen else ""
        gap = " " * max(2, column + 2 - wide(one.display_text))
        mark = "→ " if at == chosen else "  "
        rows.append(line((style, f"  {mark}{one.display_text}"), ("dim", gap + one.display_meta_text)))
    more = len(state.completions) - first - len(shown)
    return [*rows, line(("dim", f"    … {more} more"))] if more > 0 else rows
