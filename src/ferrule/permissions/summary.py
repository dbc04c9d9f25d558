"""What whoever is asked about a call reads first: what would happen, in one line; each check on a line of its own."""

from ferrule.permissions.asker import visible
from ferrule.permissions.case import Case
from ferrule.workspace.paths import Jail

_DOES = {"delete": "delete", "undo": "take back the last write of"}
"""Canonical tool → what it does to a file, where that is not to write it."""


def summary(case: Case, jail: Jail) -> str:
    """What the call would do, as far as its accesses say; nothing in it steers the screen that it is shown on."""
    lines = [a for a in case.touches if a.kind == "command"]
    if case.tool == "check" and lines:
        rows = (f"  {visible(a.key)}" + f"  (in {visible(a.folder)})" * (a.folder != jail.folder) for a in lines)
        return "\n".join([f"{visible(case.name)} runs {len(lines)} command{'s' * (len(lines) != 1)}:", *rows])
    return visible(_in_one_line(case, jail))


def _in_one_line(case: Case, jail: Jail) -> str:
    stays = " and leave it running when the session ends" * bool(case.input.get("detach"))
    where = " outside the sandbox" * bool(case.input.get("outside"))
    commands = [f"run `{a.key}` in {a.folder}{where}{stays}" for a in case.touches if a.kind == "command"]
    if commands:
        return ", ".join(commands)
    servers = [a.key for a in case.touches if a.kind == "server" and a.key != "*"]
    if servers and not servers[0].startswith("skill:"):
        return f"{case.name}: ask the MCP server {', '.join(servers)}"
    if servers:
        return f"{case.name}: use the tools and rules that come with {servers[0]}"
    processes = [a.key for a in case.touches if a.kind == "process" and a.mode != "read"]
    if processes:
        return f"{case.name}: type into task {', '.join(processes)}"
    writes = [jail.shown(a.key) for a in case.touches if a.kind == "path" and a.mode == "write"]
    does = _DOES.get(case.tool, "write")
    if writes:
        return f"{case.name}: {does} {', '.join(writes)}"
    hosts = [a.key for a in case.touches if a.kind == "host" and a.mode == "read"]
    if hosts and len(hosts) == len(case.touches):
        return f"{case.name}: look at {', '.join(hosts)}"
    reads = [jail.shown(a.key) for a in case.touches if a.kind == "path"]
    looks = [a for a in case.touches if a.kind == "process"]
    if len(reads) + len(looks) == len(case.touches):
        return f"{case.name}: read {', '.join(reads)}" if reads else f"run {case.name}"
    return f"run {case.name}, which may touch anything"
