"""The system prompt: how to work, where this is, what the user's files say, and what the tools want known."""

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.workspace.guidance import Guide

_HERE = os.path.dirname(__file__)
_GUIDANCE_CHARS = 100_000
"""Of all guidance files together: they must not fill the window."""


def words(name: str) -> str:
    """A text beside this file."""
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read().strip()


def system_prompt(
    *, workspace: str, own: str = "", section: str = "", guidance: "Sequence[Guide]" = (), notes: Sequence[str] = ()
) -> str:
    """All of it. `own` stands in the place of the usual words, as for a subagent; `notes` come last."""
    parts = [own or words("system.md"), facts(workspace), section, _guides(guidance), *notes]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def summary_prompt(focus: str = "") -> str:
    """What a model is asked for when its conversation is summed up."""
    wish = f"\n\nThe user wants this kept in mind above all: {focus.strip()}" if focus.strip() else ""
    return words("summary.md") + wish


def facts(workspace: str) -> str:
    """Where this is, as far as it can be seen without running anything."""
    branch = _branch(workspace)
    lines = [
        "<environment>",
        f"Workspace: {workspace}",
        f"Git repository: {f'yes, on {branch}' if branch else 'no'}",
        f"Platform: {sys.platform}",
        f"Today: {time.strftime('%Y-%m-%d')}",
        "</environment>",
    ]
    return "\n".join(lines)


def repository(folder: str) -> str:
    """What the repository is called that the folder is in; empty where it is in none."""
    return os.path.basename(os.path.dirname(_git(folder)))


def _branch(folder: str) -> str:
    """What is checked out there."""
    git = _git(folder)
    return _head(git) if git else ""


def _git(folder: str) -> str:
    while True:
        git = os.path.join(folder, ".git")
        if os.path.exists(git):
            return git
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def _head(git: str) -> str:
    try:
        if os.path.isfile(git):  # a worktree: the file says where its own folder is
            with open(git, encoding="utf-8", errors="replace") as file:
                git = os.path.join(os.path.dirname(git), file.read(4096).removeprefix("gitdir:").strip())
        with open(os.path.join(git, "HEAD"), encoding="utf-8", errors="replace") as file:
            said = file.read(4096).strip()
    except OSError:
        return "an unknown branch"
    name = said.removeprefix("ref: refs/heads/") if said.startswith("ref: ") else f"commit {said[:12]}"
    return name if name.isprintable() and name else "an unknown branch"


def _guides(guidance: "Sequence[Guide]") -> str:
    """What the guidance files say, outermost first; the nearest is the last word."""
    room, shown = _GUIDANCE_CHARS, []
    for guide in reversed(guidance):
        text = guide.text.strip()[:room]
        room -= len(text)
        if text:
            shown.append(f'<guidance file="{guide.path}">\n{text}\n</guidance>')
    head = "What the user and the project want you to know, the nearest last:\n\n"
    return head + "\n\n".join(reversed(shown)) if shown else ""
