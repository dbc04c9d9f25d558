"""What a server lists beside what is pinned of it: what is new, what changed, and what becomes of both."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.sources.mcp.pins import Pin, PinnedTool, fingerprint, guidance_pin, prompt_pin, tool_pin
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
    is_foreign: bool
    """Did others write it? Then the instructions that it lists first are asked about too: the model reads them."""

    @property
    def is_first(self) -> bool:
        return self.pin is None or not self.pin.is_listed

    def names(self) -> tuple[list[str], list[str]]:
        """The tools and the prompts that the user has not approved as they are."""
        if self.pin is None or self.is_first:
            return [], []
        tools = [name for name, one in self.tools.items() if self.wants(name) and self.pin.tools.get(name) != one]
        return tools, [name for name, one in self.prompts.items() if self.pin.prompts.get(name) != one]

    @property
    def has_other_guidance(self) -> bool:
        """Has the server instructions that the user has not approved as they are?"""
        known = None if self.pin is None or self.is_first else self.pin.guidance
        if known is None:
            return self.is_foreign and bool(self.new.guidance)
        return bool(self.new.guidance) and known != guidance_pin(self.new.guidance)

    @property
    def is_approved(self) -> bool:
        """Is all of it as the user has approved it?"""
        return not any(self.names()) and not self.has_other_guidance

    def fingerprint(self) -> str:
        """One hash of all that is not approved."""
        tools, prompts = self.names()
        guidance = self.new.guidance if self.has_other_guidance else ""
        return fingerprint(
            [[(name, self.tools[name]) for name in tools], [(one, self.prompts[one]) for one in prompts], guidance]
        )

    def differences(self) -> "list[Difference]":
        """The same in full, old beside new."""
        from ferrule.sources.mcp.approval import Difference, prompt_text, tool_text  # only a question pays for it

        pin = self.pin or Pin("")
        tools, prompts = self.names()
        old = self.old or Listing("", "", "", ())
        found = []
        if self.has_other_guidance:
            approved = old.guidance if guidance_pin(old.guidance) == pin.guidance else ""
            found.append(Difference("instructions", "", approved if pin.guidance else None, self.new.guidance))
        before, now = _by_name(old.tools), _by_name(self.new.tools)
        found += [
            Difference("tool", name, _text(tool_text, before, name, pin.tools), tool_text(now[name])) for name in tools
        ]
        before, now = _by_name(old.prompts), _by_name(self.new.prompts)
        return found + [
            Difference("prompt", name, _text(prompt_text, before, name, pin.prompts), prompt_text(now[name]))
            for name in prompts
        ]

    def settled(self, *, is_approved: bool) -> tuple[Pin, Listing]:
        """The pin from now on, and what is kept of the listing; `is_approved` tells what the user said."""
        tools, prompts = dict(self.tools), dict(self.prompts)
        if self.pin is not None and not self.is_first:
            unapproved, _ = self.names()
            tools = self.pin.tools | ({name: self.tools[name] for name in unapproved} if is_approved else {})
            prompts = self.pin.prompts | (dict(self.prompts) if is_approved else {})
        is_withheld = self.has_other_guidance and not is_approved
        pin = msgspec.structs.replace(
            self.pin or Pin(""),
            is_listed=True,
            tools=tools,
            prompts=prompts,
            withheld=tuple(name for name, one in self.tools.items() if tools.get(name) != one),
            gone=tuple(name for name in tools if name not in self.tools),
            quarantined=self.out,
            has_resources=self.new.has_resources,
            guidance=self._approved_guidance(is_withheld=is_withheld),
            is_guidance_withheld=is_withheld,
        )
        return pin, self._kept(pin)

    def _approved_guidance(self, *, is_withheld: bool) -> str:
        """The hash of the instructions that are approved now. Those of before stay so: a server may go back to them."""
        before = (self.pin.guidance or "") if self.pin is not None and not self.is_first else ""
        return before if is_withheld or not self.new.guidance else guidance_pin(self.new.guidance)

    def _kept(self, pin: Pin) -> Listing:
        """What is approved of the listing; of a tool that is not, what was approved before: a question shows both."""
        approved = [one for one in self.new.tools if pin.tools.get(one.name) == self.tools[one.name]]
        there = {one.name for one in approved}
        before = self.old.tools if self.old is not None else ()
        approved += [one for one in before if one.name not in there and pin.tools.get(one.name) == tool_pin(one)]
        prompts = tuple(one for one in self.new.prompts if pin.prompts.get(one.name) == self.prompts[one.name])
        guidance = self.new.guidance
        if pin.is_guidance_withheld:
            guidance = self.old.guidance if self.old is not None else ""
        return self.new._replace(tools=tuple(approved), prompts=prompts, guidance=guidance)


def compared(
    raw: Listing, pin: Pin | None, old: Listing | None, wants: Callable[[str], bool], *, is_foreign: bool = False
) -> Compared:
    """What a server has just listed, looked at and compared. `wants` tells which tools are asked about."""
    from ferrule.sources.mcp.quarantine import looked_at  # whoever starts a server pays for the validator

    new, out = looked_at(raw)
    tools = {tool.name: tool_pin(tool) for tool in new.tools}
    return Compared(pin, old, new, tools, {one.name: prompt_pin(one) for one in new.prompts}, out, wants, is_foreign)


def _text(show: Callable[[Any], str], before: Mapping[str, Any], name: str, pinned: Mapping[str, Any]) -> str | None:
    return show(before.get(name)) if name in pinned else None


def _by_name(several: Iterable[Any]) -> dict[str, Any]:
    return {one.name: one for one in several}
