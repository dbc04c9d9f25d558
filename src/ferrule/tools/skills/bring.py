"""What a skill brings along: rules, a toolbox, servers, and that its own files can be read.

Only the user's own skills and those of a project that the user trusts bring anything.
"""

import contextlib
import hashlib
import json
import os
import re
from typing import Any, NamedTuple

from ferrule.core.access import within
from ferrule.core.bringing import Bringing
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.tool import Context
from ferrule.support.beneath import describe
from ferrule.workspace.paths import Jail
from ferrule.workspace.skill import Skill, Unusable
from ferrule.workspace.skills import Skills

_PLAIN_PATH = r"/[\w./ @+,=~-]+"
"""Paths that a rule can name as they are: no character of them means anything else there."""


class Brought(NamedTuple):
    """What has come of it."""

    tools: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


def asks(skill: Skill) -> bool:
    """Must the user be asked before it brings what it brings? The rules of the user's own skills need no question."""
    return skill.trusted and bool(skill.toolbox or skill.servers or (skill.rules and skill.layer == "project"))


def fingerprint(skill: Skill, skills: Skills) -> str:
    """What the user was asked about: it must be the same when it is brought."""
    told = hashlib.sha256(repr(skill.rules).encode())
    with contextlib.suppress(OSError, Unusable):  # one that cannot be read is told as such when it is brought
        told.update(skills.carried_text(skill).encode())
    if skill.toolbox:
        with contextlib.suppress(OSError), os.scandir(skill.toolbox) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                status = entry.stat(follow_symlinks=False)
                seen = (entry.name, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
                told.update(repr(seen).encode())
    return told.hexdigest()


async def bring(skill: Skill, ctx: Context) -> Brought:
    """Bring it. What cannot be brought is told in a note; the instructions are of use all the same."""
    if not skill.trusted:
        _leave(skill, ctx)
        return Brought()
    bringing = ctx.need(Bringing)
    tools: list[str] = []
    _let_read(skill, bringing, ctx)
    rules = bringing.allow(skill.rules) if skill.rules else ()
    for rule in skill.rules:
        if rule not in rules:
            ctx.note(f"The skill's rule {rule} was not understood and allows nothing.")
    try:
        if skill.toolbox:
            tools += await bringing.tools(skill.toolbox)
        if skill.servers:
            tools += await bringing.servers(_servers(skill, ctx), skill.servers)
    except (ToolFailure, ConfigError) as error:
        ctx.note(f"Not all that the skill brings could be used: {error}")
    return Brought(tuple(tools), rules)


def _leave(skill: Skill, ctx: Context) -> None:
    kinds = (("rules", skill.rules), ("tools", skill.toolbox), ("servers", skill.servers))
    left = [kind for kind, there in kinds if there]
    if left:
        ctx.note(
            f"The skill would bring {' and '.join(left)} of its own. They were left out, for the user does not trust "
            "this project (`ferrule permissions trust`)."
        )


def _let_read(skill: Skill, bringing: Bringing, ctx: Context) -> None:
    """Let the files of a skill of the user's be read: they lie outside the workspace."""
    jail, folder = ctx.need(Jail), skill.folder
    if jail.holds(folder) or not re.fullmatch(_PLAIN_PATH, folder):
        return
    above = (os.path.realpath(os.path.expanduser("~")), jail.folder, os.path.realpath(skill.place))
    if not any(within(one, folder) for one in above):  # a link to the home folder must not open all of it
        bringing.allow([f"Read(/{folder}/**)"])


def _servers(skill: Skill, ctx: Context) -> dict[str, Any]:
    """The servers of its `mcp.json`: a map from names, or one under `mcpServers`."""
    try:
        said = json.loads(ctx.need(Skills).carried_text(skill))
    except (OSError, Unusable, ValueError, RecursionError) as error:
        why = describe(error) if isinstance(error, OSError) else str(error)
        raise ToolFailure(f"{skill.servers} cannot be read: {why}.") from error
    servers = said.get("mcpServers", said) if isinstance(said, dict) else None
    if not isinstance(servers, dict):
        raise ToolFailure(f"{skill.servers} is no map from names to servers.")
    return servers
