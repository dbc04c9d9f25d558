"""One line for whoever is asked about a call: what would happen."""

from ferrule.permissions.case import Case
from ferrule.workspace.paths import Jail

_DOES = {"delete": "delete", "undo": "take back the last write of"}
"""Canonical tool → what it does to a file, where that is not to write it."""


def summary(case: Case, jail: Jail) -> str:
    """What the call would do, as far as its accesses say."""
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
    processes = [a.key for a in case.touches if a.kind == "process"]
    if processes:
        return f"{case.name}: type into task {', '.join(processes)}"
    writes = [jail.shown(a.key) for a in case.touches if a.kind == "path" and a.mode == "write"]
    does = _DOES.get(case.tool, "write")
    if writes:
        return f"{case.name}: {does} {', '.join(writes)}"
    reads = [jail.shown(a.key) for a in case.touches if a.kind == "path"]
    if len(reads) == len(case.touches):
        return f"{case.name}: read {', '.join(reads)}" if reads else f"run {case.name}"
    return f"run {case.name}, which may touch anything"
