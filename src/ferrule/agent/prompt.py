"""The system prompt: how to work, where this is, what the user's files say, and what the tools want known."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ferrule.system.folder import is_regular
from ferrule.tools import EDIT
from ferrule.wire.text_calls import example

if TYPE_CHECKING:
    from ferrule.core.tool import Face
    from ferrule.files.guidance import Guide


_HERE = os.path.dirname(__file__)
_GUIDANCE_CHARS = 100_000
"""Of all guidance files together: they must not fill the window."""
_UNKNOWN = "an unknown branch"
_EXAMPLE = {"path": "calc.py", "old": "    return a - b", "new": "    return a + b"}
EDIT_FORM = (
    "An edit is small: copy the old lines whole and exactly as they stand in the file, without line numbers, and give "
    "the new lines. For example, this changes one line of a file:"
)
_BRIEF = f"Platform: {sys.platform}. Paths are relative to the workspace."
"""All that a small model is told of where it is: it takes a long path apart, and puts it together wrongly."""


def words(name: str) -> str:
    """A text beside this file."""
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read().strip()


def system_prompt(
    *,
    workspace: str,
    own: str = "",
    small: bool = False,
    shown: str = "",
    section: str = "",
    guidance: "Sequence[Guide]" = (),
    notes: Sequence[str] = (),
) -> str:
    """All of it. `own` stands in the place of the usual words, as for a subagent; `notes` come last.

    A `small` model gets shorter words, which lead it step by step, with what is `shown` of a call.
    """
    parts = [
        own or words("small.md" if small else "system.md"),
        shown,
        _BRIEF if small else facts(workspace),
        section,
        _guides(guidance),
        *notes,
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def edit_example(faces: "Iterable[Face]", given: Mapping[str, str] | None = None) -> str:
    """How a small model changes a file, in the words of the tools that it has; empty where it has none for that."""
    face = next((one for one in faces if one.tool == EDIT), None)
    if face is None:
        return ""
    values = {**_EXAMPLE, "old": "THE OLD LINES", "new": "THE NEW LINES", **given} if given else _EXAMPLE
    return example("tag", face.name, {face.shown_param(name): value for name, value in values.items()})


def summary_prompt(focus: str = "") -> str:
    """What a model is asked for when its conversation is summed up."""
    wish = f"\n\nThe user wants this kept in mind above all: {focus.strip()}" if focus.strip() else ""
    return words("summary.md") + wish


class InstructionNews:
    """What MCP servers say of their tools since the system prompt was written.

    The prompt itself stays: a host that has it cached would read all of the conversation anew.
    """

    def __init__(self, instructions: Callable[[], Mapping[str, str]]) -> None:
        """`instructions` gives those that hold now, by server; those of this moment stand in the prompt."""
        self._instructions = instructions
        self._told = dict(instructions())

    def news(self) -> tuple[str, ...]:
        """What the model has not been told yet, each once."""
        now = dict(self._instructions())
        if now == self._told:
            return ()
        before, self._told = self._told, now
        changed = {name: words for name, words in now.items() if before.get(name) != words}
        gone = [name for name in before if name not in now]
        news = [f"The instructions of the MCP server {name} do not hold any more." for name in gone]
        if changed:
            from ferrule.registry.search import servers_section  # for servers that say something new

            news.append(f"From now on these hold. {servers_section(changed)}")
        return tuple(news)


def facts(workspace: str) -> str:
    """Where this is, as far as it can be seen without running anything."""
    branch = read_git_head(workspace)
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


def read_git_head(folder: str) -> str:
    """What is checked out there, a branch or a commit, as the files of git say; empty outside of a repository."""
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
            git = os.path.join(os.path.dirname(git), _small(git).removeprefix("gitdir:").strip())
        said = _small(os.path.join(git, "HEAD")).strip()
    except (OSError, ValueError):
        return _UNKNOWN
    name = said.removeprefix("ref: refs/heads/") if said.startswith("ref: ") else f"commit {said[:12]}"
    # A name that git itself would not take is no name: it could say anything here.
    return name if re.fullmatch(r"(?:commit )?[^\s<>~^:?*\[\\]{1,200}", name) and name.isprintable() else _UNKNOWN


def _small(path: str) -> str:
    """The beginning of a regular file. Raises: OSError."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        if not is_regular(descriptor):
            raise OSError(f"{path} is no file")
        return os.read(descriptor, 4096).decode(errors="replace")
    finally:
        os.close(descriptor)


def _guides(guidance: "Sequence[Guide]") -> str:
    """What the guidance files say, outermost first; the nearest is the last word."""
    room, shown = _GUIDANCE_CHARS, []
    for guide in reversed(guidance):
        text = guide.text.strip()[:room]
        room -= len(text)
        if text:
            shown.append(f'<guidance file="{_escape_path(guide.path)}">\n{_escape_tags(text)}\n</guidance>')
    head = "What the user and the project want you to know, the nearest last:\n\n"
    return head + "\n\n".join(reversed(shown)) if shown else ""


def _escape_path(path: str) -> str:
    return "".join(char if char.isprintable() and char not in '"<>' else "?" for char in path)


def _escape_tags(text: str) -> str:
    """No file ends its own words, nor begins what only this prompt says."""
    return re.sub(r"(?i)<(?=\s*/?\s*(?:guidance|environment)\b)", "&lt;", text)
