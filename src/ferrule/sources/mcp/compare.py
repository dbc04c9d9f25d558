"""What a server lists beside what is pinned of it: what is new, what changed, and what becomes of both."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.sources.mcp.pins import Pin, PinnedTool, fingerprint, prompt_pin, tool_pin
from ferrule.sources.mcp.server import Listing

if TYPE_CHECKING:
    from ferrule.sources.mcp.approval import Difference


class Compared(NamedTuple):
    """A listing that was looked at, beside the pin that was there before."""

    pin: Pin | None
    """None, or one that was never listed: then everything is pinned as it is."""
    old: Listing | None
    """What was approved before."""
    new: Listing
    tools: Mapping[str, PinnedTool]
    prompts: Mapping[str, str]
    out: tuple[tuple[str, str], ...]
    wants: Callable[[str], bool]

    @property
    def is_first(self) -> bool:
        return self.pin is None or not self.pin.is_listed

    def names(self) -> tuple[list[str], list[str]]:
        """The tools and the prompts that the user has not approved as they are."""
        if self.pin is None or self.is_first:
            return [], []
        tools = [name for name, one in self.tools.items() if self.wants(name) and self.pin.tools.get(name) != one]
        return tools, [name for name, one in self.prompts.items() if self.pin.prompts.get(name) != one]

    def fingerprint(self) -> str:
        """One hash of all that is not approved."""
        tools, prompts = self.names()
        return fingerprint(
            [[(name, self.tools[name]) for name in tools], [(one, self.prompts[one]) for one in prompts]]
        )

    def differences(self) -> "list[Difference]":
        """The same in full, old beside new."""
        from ferrule.sources.mcp.approval import Difference, prompt_text, tool_text  # only a question pays for it

        assert self.pin is not None
        tools, prompts = self.names()
        old = self.old or Listing("", "", "", ())
        before, now = _by_name(old.tools), _by_name(self.new.tools)
        found = [
            Difference("tool", name, _text(tool_text, before, name, self.pin.tools), tool_text(now[name]))
            for name in tools
        ]
        before, now = _by_name(old.prompts), _by_name(self.new.prompts)
        return found + [
            Difference("prompt", name, _text(prompt_text, before, name, self.pin.prompts), prompt_text(now[name]))
            for name in prompts
        ]

    def settled(self, *, is_approved: bool) -> tuple[Pin, Listing]:
        """The pin from now on, and what is kept of the listing; `is_approved` tells what the user said."""
        tools, prompts = dict(self.tools), dict(self.prompts)
        if self.pin is not None and not self.is_first:
            unapproved, _ = self.names()
            tools = self.pin.tools | ({name: self.tools[name] for name in unapproved} if is_approved else {})
            prompts = self.pin.prompts | (dict(self.prompts) if is_approved else {})
        pin = msgspec.structs.replace(
            self.pin or Pin(""),
            is_listed=True,
            tools=tools,
            prompts=prompts,
            withheld=tuple(name for name, one in self.tools.items() if tools.get(name) != one),
            gone=tuple(name for name in tools if name not in self.tools),
            quarantined=self.out,
            has_resources=self.new.has_resources,
        )
        return pin, self._kept(pin)

    def _kept(self, pin: Pin) -> Listing:
        """What is approved of the listing; of a tool that is not, what was approved before: a question shows both."""
        approved = [one for one in self.new.tools if pin.tools.get(one.name) == self.tools[one.name]]
        there = {one.name for one in approved}
        before = self.old.tools if self.old is not None else ()
        approved += [one for one in before if one.name not in there and pin.tools.get(one.name) == tool_pin(one)]
        prompts = tuple(one for one in self.new.prompts if pin.prompts.get(one.name) == self.prompts[one.name])
        return self.new._replace(tools=tuple(approved), prompts=prompts)


def compared(raw: Listing, pin: Pin | None, old: Listing | None, wants: Callable[[str], bool]) -> Compared:
    """What a server has just listed, looked at and compared. `wants` tells which tools are asked about."""
    from ferrule.sources.mcp.quarantine import looked_at  # whoever starts a server pays for the validator

    new, out = looked_at(raw)
    tools = {tool.name: tool_pin(tool) for tool in new.tools}
    return Compared(pin, old, new, tools, {one.name: prompt_pin(one) for one in new.prompts}, out, wants)


def _text(show: Callable[[Any], str], before: Mapping[str, Any], name: str, pinned: Mapping[str, Any]) -> str | None:
    return show(before.get(name)) if name in pinned else None


def _by_name(several: Iterable[Any]) -> dict[str, Any]:
    return {one.name: one for one in several}
