"""The line below the input: what holds now, the most important first, for the rest may not fit."""

import os
from typing import Any

from ferrule.cli.talk.line import Line, line
from ferrule.cli.talk.words import dollars

OPENING = [line(("dim", "opening…"))]
_MOST_NAME = 44
_FULL_PERCENT = 70
_STYLES = {"plan": "magenta bold", "bypassPermissions": "red bold", "acceptEdits": "yellow"}


def status(agent: Any, engine: Any, mode: str) -> list[Line]:
    """Permission mode, model, how full its window is, cost, dialect and folder."""
    used = 100 * agent.context_tokens // agent.model.window if agent.model.window else 0
    parts = [
        line((_STYLES.get(mode, "dim"), "plan mode" if mode == "plan" else mode)),
        line(("dim", _short(agent.model.name))),
        line(("yellow" if used >= _FULL_PERCENT else "dim", f"context {used}%")),
        line(("dim", dollars(agent.spent.cost))),
        line(("dim", engine.dialect.name)),
        line(("dim", home_short(engine.jail.folder))),
    ]
    return [part for part in parts if part]


def home_short(path: str) -> str:
    """A path with `~` for the home folder."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if home != "/" and (path == home or path.startswith(home + os.sep)) else path


def _short(name: str) -> str:
    """A model's name; of one that is a file's, the end tells more than the way to it."""
    return name if len(name) <= _MOST_NAME else f"{name.partition(':')[0]}:…{name[-_MOST_NAME // 2 :]}"
