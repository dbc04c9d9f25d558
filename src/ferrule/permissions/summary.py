"""What whoever is asked about a call reads first: what would happen, in one line; each check on a line of its own."""

from collections.abc import Mapping
from typing import Any

from ferrule.permissions.asker import visible
from ferrule.permissions.case import Case
from ferrule.workspace.paths import Jail

_DOES = {"delete": "delete", "undo": "take back the last write of"}
"""Canonical tool → what it does to a file, where that is not to write it."""
_INTERNAL = {"web_fetch": frozenset({"across"})}
"""Canonical tool → arguments that no caller gives: how a family reads what was given."""
_ADDRESS_CHARS = 300


def summary(case: Case, jail: Jail) -> str:
    """What the call would do, as far as its accesses say; nothing in it steers the screen that it is shown on."""
    lines = [a for a in case.touches if a.kind == "command"]
    if case.tool == "check" and lines:
        rows = (f"  {visible(a.key)}" + f"  (in {visible(a.folder)})" * (a.folder != jail.folder) for a in lines)
        return "\n".join([f"{visible(case.name)} runs {len(lines)} command{'s' * (len(lines) != 1)}:", *rows])
    return visible(_in_one_line(case, jail))


def told(case: Case) -> Mapping[str, Any]:
    """The arguments that somebody who is asked is shown: those that the caller has given."""
    internal = _INTERNAL.get(case.tool, frozenset()) if case.builtin else frozenset()
    return {name: value for name, value in case.input.items() if name not in internal}


def _in_one_line(case: Case, jail: Jail) -> str:
    stays = " and leave it running when the session ends" * bool(case.input.get("detach"))
    stays = stays or " in the background" * bool(case.input.get("background"))
    where = " outside the sandbox" * bool(case.input.get("outside"))
    commands = [
        f"run `{a.key}`" + f" in {jail.shown(a.folder)}" * (a.folder != jail.folder) + where + stays
        for a in case.touches
        if a.kind == "command"
    ]
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
        addresses = _addresses(case)
        if len(addresses) == 1:
            return f"{case.name}: look at {addresses[0]}"
        if addresses:
            # The hosts come first: of many addresses not all may be seen at once.
            return f"{case.name}: look at {len(addresses)} pages of {', '.join(hosts)}: {', '.join(addresses)}"
        return f"{case.name}: look at {', '.join(hosts)}"
    reads = [jail.shown(a.key) for a in case.touches if a.kind == "path"]
    looks = [a for a in case.touches if a.kind == "process"]
    if len(reads) + len(looks) == len(case.touches):
        return f"{case.name}: read {', '.join(reads)}" if reads else f"run {case.name}"
    return f"run {case.name}, which may touch anything"


def _addresses(case: Case) -> list[str]:
    """Where a fetch goes, as far as there is room for it: what an address carries is sent with it."""
    if case.tool != "web_fetch" or not case.builtin:
        return []
    given = [case.input.get("url"), *(case.input.get("more") or ())]
    return [_cut(visible(url.strip())) for url in given if isinstance(url, str)]


def _cut(address: str) -> str:
    more = len(address) - _ADDRESS_CHARS
    return f"{address[:_ADDRESS_CHARS]}… ({more:,} more characters)" if more > 0 else address
