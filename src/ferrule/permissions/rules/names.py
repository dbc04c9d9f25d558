"""Which tools a rule of this syntax is about: one, a group that does the same, or all whose names fit a pattern."""

from typing import Literal, NamedTuple

from ferrule.permissions.rules.rule import Subject
from ferrule.permissions.rules.wildcard import Wildcard

READS = frozenset({"read", "read_many", "view_image", "grep", "glob", "list_dir", "lsp", "diagnostics"})
EDITS = frozenset({"edit", "write", "multi_edit", "patch", "notebook_edit", "delete", "undo", "format"})
COMMANDS = frozenset({"shell", "shell_session"})

KNOWN = {
    "Bash": "shell",
    "Read": "read",
    "LS": "list_dir",
    "Grep": "grep",
    "Glob": "glob",
    "Edit": "edit",
    "MultiEdit": "multi_edit",
    "Write": "write",
    "NotebookEdit": "notebook_edit",
    "WebFetch": "web_fetch",
    "WebSearch": "web_search",
    "LSP": "lsp",
    "Task": "delegate",
    "Agent": "delegate",
    "Skill": "skill",
}
"""The names that this syntax itself knows → canonical tools; another family may use one of them for something else."""


class Named(NamedTuple):
    """One tool, by any of its names."""

    name: str
    tool: str | None = None
    """The canonical one, where the name is known."""

    def binds(self, subject: Subject) -> bool:
        return self.name in subject.names or subject.tool in {self.name, self.tool}


class Grouped(NamedTuple):
    """Tools that do the same."""

    tools: frozenset[str]

    def binds(self, subject: Subject) -> bool:
        return subject.tool in self.tools


class Files(NamedTuple):
    """Whatever touches files, the commands whose files are known among them."""

    tools: frozenset[str]
    """Tools that it binds also where no path is known."""
    mode: Literal["read", "write"]
    """What may not be read may not be written either."""

    def binds(self, subject: Subject) -> bool:
        return subject.tool in self.tools or any(self.mode == "read" or path.mode == "write" for path in subject.paths)


class Networked(NamedTuple):
    """Whatever goes to a host."""

    tools: frozenset[str] = frozenset({"web_fetch"})

    def binds(self, subject: Subject) -> bool:
        return subject.tool in self.tools or bool(subject.hosts)


class Commanded(NamedTuple):
    """Whatever runs commands."""

    tools: frozenset[str] = COMMANDS

    def binds(self, subject: Subject) -> bool:
        return subject.tool in self.tools or bool(subject.commands)


class Likened(NamedTuple):
    """Tools whose names fit a pattern."""

    pattern: Wildcard
    lax: bool
    """In any letter case?"""

    def binds(self, subject: Subject) -> bool:
        names = subject.names | {subject.tool}
        return any(self.pattern.matches(name.casefold() if self.lax else name) for name in names)


def likened(pattern: str, *, lax: bool) -> Likened:
    """The tools whose names fit; `*` stands for any characters."""
    pattern = pattern.casefold() if lax else pattern
    return Likened(Wildcard((tuple(pattern.split("*")),)), lax)
