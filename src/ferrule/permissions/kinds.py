"""The kinds of questions, all in one place: what each is about, what a yes means, and whose yes counts."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

KindName = Literal[
    "call", "folder", "outside", "host", "protected", "planted", "secret", "server", "values", "choose", "plan"
]
"""`call`: may this call run? `folder`: may the session go into this folder outside the workspace?

`outside`: may what the sandbox seems to have stopped run again outside of it?
`host`: may commands reach these hosts? "Always" keeps them for the workspace; `values` with `run` as `outside` says no
to the hosts, and lets the command run outside the sandbox.
`protected`: may this file be written, though programs run or obey it by themselves?
`planted`: may such a file stay, which a command has written?
`secret`: may this secret file be read?
`server`: may this MCP server be started, or may its tools be used as they are now?
`values`: what does the user answer to a server that asks for something?
`choose`: what does the user answer to the model, which asks them to choose?
`plan`: does the user approve the plan in `input`, and with it what `effects` say?
"""


class Kind(NamedTuple):
    """What holds for all questions of a kind."""

    offer: str = "Allow it?"
    """What a yes means, at the end of the question."""
    only_persons: bool = False
    """Does nothing but a person's own answer count? Then no program, callback or `--yes` is asked at all."""
    is_whole: bool = False
    """Is all of what it is about shown at once, or the question not asked?"""
    has_always: bool = False
    """May the answer hold for the like of it from then on?"""
    comes_first: bool = False
    """Is it asked before anything of the call has run, so that the call can be made again with the answer?"""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "call": Kind("Allow it?", has_always=True, comes_first=True),
        "folder": Kind("Open this folder for the session?", comes_first=True),
        "outside": Kind("Run it outside the sandbox?"),
        "host": Kind("Let commands reach it?", has_always=True),
        "protected": Kind("Write it?", only_persons=True, is_whole=True, comes_first=True),
        "planted": Kind("Let it stay?", only_persons=True, is_whole=True),
        "secret": Kind("Let this file be read?", only_persons=True, comes_first=True),
        "server": Kind("Approve it, from now on?", is_whole=True),
        "values": Kind("Answer it?"),
        "choose": Kind(comes_first=True),
        "plan": Kind("Approve the plan?", is_whole=True, comes_first=True),
    }
)
