"""Guidance files (`AGENTS.md` and its fallbacks) that hold for a folder and were not known before."""

import os

from ferrule.core.access import within
from ferrule.workspace.paths import Jail

NAMES = ("AGENTS.md", "Agents.md", "agents.md", "AGENT.md", "Agent.md", "agent.md", "CLAUDE.md")
"""Tried in this order; at most one counts in a folder."""


class Guidance:
    """The workspace's own guidance is known from the start; what lies deeper is found when a tool goes there."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail
        self._known: set[str] = set()

    def discover(self, path: str) -> tuple[str, ...]:
        """New guidance files from the workspace down to the folder of `path`, outermost first; each is told once."""
        root = next((root.path for root in self._jail.roots if within(path, root.path)), None)
        if root is None:
            return ()
        found = []
        folder = os.path.dirname(path)
        while folder != root and within(folder, root):
            file = guidance_in(folder)
            if file is not None and file != path and file not in self._known and self._inside(file):
                self._known.add(file)
                found.append(file)
            folder = os.path.dirname(folder)
        return tuple(reversed(found))

    def _inside(self, file: str) -> bool:
        """A link that leads out of the workspace is no guidance of the workspace's."""
        return self._jail.holds(os.path.realpath(file))


def guidance_in(folder: str) -> str | None:
    """The one guidance file of a folder."""
    try:
        there = set(os.listdir(folder))
    except OSError:
        return None
    files = (os.path.join(folder, name) for name in NAMES if name in there)
    return next((file for file in files if os.path.isfile(file)), None)
