"""The kinds of subagents that a session can start: four that are built in, and those that files describe."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.subagents import Subagent
from ferrule.core.tool import Context
from ferrule.workspace.agent_files import AgentFiles

USUAL = "general-purpose"
READS = ("read", "read_many", "view_image", "list_dir", "glob", "grep")
"""Tools that only read files."""
SHELLS = ("shell", "shell_session", "shell_output", "shell_list", "shell_stop", "shell_write")
LOOKING = (*READS, "lsp", "diagnostics", "web_fetch", "web_search", "shell", "shell_session", "shell_output")
"""Tools of those who find out: commands of theirs only read."""
CATALOG_CHARS = 8000
MOST_PROMPT_CHARS = 400_000
_HEAD = (
    "<available_agents>\n"
    "Kinds of agents that a task can be given to, and what each is for. What each can do is bounded by what you can."
)
_TAIL = "</available_agents>"
_MOST_NAMED = 20
_PROMPTS = os.path.join(os.path.dirname(__file__), "prompts")


class _Row(NamedTuple):
    """A kind that is built in."""

    file: str
    tools: tuple[str, ...] | None
    mode: str
    """`plan` holds it to reading, the shell included."""
    description: str


BUILT_IN = {
    USUAL: _Row(
        "general-purpose.md",
        None,
        "",
        "For work with several steps, and for searches that may take more than one try. It has all your tools.",
    ),
    "Explore": _Row(
        "explore.md",
        LOOKING,
        "plan",
        "Finds its way through a code base: files by pattern, places by what they say, how something works. It only "
        "reads. Say how thorough it is to be.",
    ),
    "Plan": _Row(
        "plan.md",
        LOOKING,
        "plan",
        "Designs a change before it is made: reads the code and answers with steps, files and risks. It only reads.",
    ),
    "Bash": _Row("bash.md", SHELLS, "", "Runs commands: git, builds, tests, anything in the shell. It has only that."),
}


class Agents:
    """Every kind by its name."""

    def __init__(self, files: AgentFiles | None = None) -> None:
        self._files = files

    def names(self) -> tuple[str, ...]:
        """Those that are built in first."""
        return tuple(dict.fromkeys((*BUILT_IN, *self._described())))

    def get(self, name: str) -> Subagent:
        """The kind of exactly this name: rules are about names. Raises `ToolFailure` with the names that there are."""
        all_described = self._described()
        # A plugin's kind may be called with the plugin's name before it.
        described = all_described.get(name) or all_described.get(name.rpartition(":")[2])
        if described is not None:
            return described
        if name not in BUILT_IN:
            raise _unknown(name, self.names())
        row = BUILT_IN[name]
        return Subagent(
            name=name,
            model="",
            tools=row.tools,
            system=prompt(row.file),
            description=row.description,
            mode=row.mode,
        )

    def catalog_text(self, *, limit_chars: int = CATALOG_CHARS) -> str:
        """A line for each kind, for a system prompt."""
        described = self._described()
        pairs = [
            (name, described[name].description if name in described else BUILT_IN[name].description)
            for name in self.names()
        ]
        lines, room = [], limit_chars - len(_HEAD) - len(_TAIL)
        for name, words in pairs:
            line = _escaped(f"- {name}: {words}")
            # A kind that is only named can still be started.
            line = line if len(line) < room else f"- {name}"
            if len(line) >= room:
                break
            lines.append(line)
            room -= len(line) + 1
        return "\n".join((_HEAD, *lines, _TAIL))

    def _described(self) -> dict[str, Subagent]:
        return {} if self._files is None else {one.agent.name: one.agent for one in self._files.all()}


def agents(ctx: Context) -> Agents:
    """The kinds that a call can start; only those that are built in where the session has no files of them."""
    try:
        return Agents(ctx.need(AgentFiles))
    except TypeError:
        return Agents()


def prompt(file: str) -> str:
    """A system prompt that is built in."""
    with open(os.path.join(_PROMPTS, file), encoding="utf-8") as text:
        return text.read().strip()


def _unknown(name: str, known: Iterable[str]) -> ToolFailure:
    from ferrule.support.near import near  # only a mistake pays for it

    names = list(known)
    meant = near(name[:100], names, most=2)
    hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ToolFailure(
        f"There is no kind of agent called {name[:100]!r}.{hint} There are {', '.join(names[:_MOST_NAMED])}{more}.",
        code="unknown-agent",
    )


def _escaped(line: str) -> str:
    """No description of a file ends the list."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
