"""The files of a project that would run or start something: tools, toolboxes, servers, commands, what skills carry.

Nothing of them is used before the user trusts them, in these contents and with this mode; a file that is added,
changed or removed ends the trust in all of them.
"""

import os
import stat

from ferrule.workspace.command_files import FOLDERS as COMMANDS
from ferrule.workspace.command_files import markdown_files

SERVERS = (".mcp.json",)
TOOLS = ("tools", ".ferrule/tools")
"""Folders of custom tools; the later one overrides the earlier one."""
TOOLBOXES = (".agents/tools", ".amp/toolbox")
SKILLS = (".agents/skills", ".claude/skills", ".ferrule/skills", ".ah/skills")
_CARRIED = ("toolbox", "tools")
_MOST = 256


def code_files(workspace: str) -> list[str]:
    """All of them that are there, and `.mcp.json` in any case; more than can be trusted are cut, and then none is."""
    found = [os.path.join(workspace, name) for name in SERVERS]
    for name in TOOLS:
        found += _tools(os.path.join(workspace, name))
    for name in TOOLBOXES:
        found += _files(os.path.join(workspace, name))
    for name in SKILLS:
        for skill in _names(os.path.join(workspace, name)):
            folder = os.path.join(workspace, name, skill)
            found += [path for path in (os.path.join(folder, "mcp.json"),) if os.path.lexists(path)]
            found += [path for path in (os.path.join(folder, "SKILL.md"),) if os.path.lexists(path)]
            for carried in _CARRIED:
                found += _files(os.path.join(folder, carried))
    for name in COMMANDS:
        found += markdown_files(os.path.join(workspace, name))
    return found


def is_any(workspace: str) -> bool:
    """Is there anything of the kind at all? Mostly there is not."""
    folders = (*SERVERS, *TOOLS, *TOOLBOXES, *SKILLS, *COMMANDS)
    return any(os.path.lexists(os.path.join(workspace, name)) for name in folders)


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))[:_MOST]
    except OSError:
        return []


def _files(folder: str) -> list[str]:
    return [path for name in _names(folder) if not os.path.isdir(path := os.path.join(folder, name))]


def _tools(folder: str) -> list[str]:
    """Modules, executables, and what is written about an executable; other files of such a folder are the project's."""
    files = _files(folder)
    programs = {path for path in files if path.endswith((".py", ".lua")) or _is_executable(path)}
    return [path for path in files if path in programs or path.removesuffix(".md") in programs]


def _is_executable(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)
