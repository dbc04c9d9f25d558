"""Words about the skills there are: the list for a system prompt, and what to say where one is not there."""

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from ferrule.core.errors import ToolFailure
from ferrule.workspace.skill import FILE, Skill, shown

CATALOG_CHARS = 8000
_HEAD = "<available_skills>\nInstructions for special tasks. Load one with the skill tool when its line fits the task."
_TAIL = "</available_skills>"
_MORE_CHARS = 40
_MOST_NAMED = 20
_MOST_ENTRIES, _MOST_BESIDE = 2000, 50


def catalog(skills: Sequence[Skill], limit_chars: int) -> str:
    """A line for each skill; where there is no room for that, only their names."""
    if not skills:
        return ""
    room = limit_chars - len(_HEAD) - len(_TAIL) - _MORE_CHARS
    kept = list(itertools.takewhile(_fits(room), (_line(skill) for skill in skills)))
    if len(kept) < len(skills):
        # Names are worth more than some of the descriptions: what is named can be loaded.
        kept = list(itertools.takewhile(_fits(room), (_escaped(f"- {skill.name}") for skill in skills)))
    more = [f"- and {len(skills) - len(kept):,} more"] if len(kept) < len(skills) else []
    return "\n".join((_HEAD, *kept, *more, _TAIL))


def unknown(name: str, known: Mapping[str, Skill]) -> ToolFailure:
    """What is said about a name that no skill has."""
    from ferrule.support.near import near  # only a mistake pays for it

    meant = near(name[:100], known)
    if meant:
        hint = f"Did you mean {' or '.join(meant)}?"
    elif known:
        names = ", ".join(itertools.islice(known, _MOST_NAMED))
        hint = f"The skills are {names}{' and others' if len(known) > _MOST_NAMED else ''}."
    else:
        hint = "There are no skills in this session."
    return ToolFailure(f"There is no skill called {shown(name)[:100]!r}. {hint}", code="unknown-skill")


def prompt_of(name: str, known: Iterable[Skill]) -> Skill | None:
    """A server's prompt by its longer name, `mcp__server__prompt`."""
    return next((one for one in known if one.server and name == f"mcp__{one.server}__{one.prompt}"), None)


def files_beside(skill: Skill) -> tuple[str, ...]:
    """The names of what lies beside a `SKILL.md`, folders with a slash at their end."""
    try:
        with os.scandir(skill.folder) as entries:
            found = [(entry.name, entry.is_dir()) for entry in itertools.islice(entries, _MOST_ENTRIES)]
    except OSError:
        return ()
    named = sorted(f"{name}/" if is_folder else name for name, is_folder in found)
    return tuple(shown(name) for name in named if name != FILE and not name.startswith("."))[:_MOST_BESIDE]


def _line(skill: Skill) -> str:
    hint = f" (arguments: {skill.hint})" if skill.hint else ""
    return _escaped(f"- {skill.name}{hint}: {skill.description}")


def _escaped(line: str) -> str:
    """No line of a skill's ends the list."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _fits(room: int) -> Callable[[str], bool]:
    """Is there room for one more line? Asked for each in turn."""
    left = [room]

    def fits(line: str) -> bool:
        left[0] -= len(line) + 1
        return left[0] >= 0

    return fits
