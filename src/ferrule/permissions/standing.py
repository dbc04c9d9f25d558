"""The permission modes: what becomes of calls that rules leave open, as the user has said once and for all.

A mode never undoes a denial, whether a rule's or the guard's. What is asked about in every case, such as leaving the
sandbox, is not a matter of modes: who asks for that does not come here.
"""

from typing import Literal, NamedTuple

from ferrule.core.errors import ConfigError

Decision = Literal["allow", "ask", "deny"]
Name = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]

EDIT_PROGRAMS = frozenset({"mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"})
"""Programs whose commands are edits where all their paths lie in the workspace."""


_STRICTNESS: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}


class Standing(NamedTuple):
    """One permission mode."""

    name: Name
    asks: Decision = "ask"
    """What becomes of a question."""
    inside: Decision = "ask"
    """What becomes of a question about edits that stay in the workspace."""
    reads_only: bool = False
    """Is everything but reading denied, whatever rules allow?"""

    def settles(self, decision: Decision, *, edits_only_inside: bool, reads_only: bool) -> Decision:
        """What the mode makes of a decision.

        `edits_only_inside`: the call does nothing but edit, all of it in the workspace. `reads_only`: it only reads.
        """
        if decision == "deny" or (self.reads_only and not reads_only):
            return "deny"
        if decision == "allow":
            return "allow"
        return self.inside if edits_only_inside else self.asks


DEFAULT = Standing("default")
MODES: tuple[Standing, ...] = (
    DEFAULT,
    Standing("acceptEdits", inside="allow"),
    Standing("plan", reads_only=True),
    Standing("dontAsk", asks="deny", inside="deny"),
    Standing("bypassPermissions", asks="allow", inside="allow"),
)

_ALIASES: dict[str, Name] = {
    "auto_edit": "acceptEdits",
    "force": "bypassPermissions",
    "yolo": "bypassPermissions",
    "dangerously-skip-permissions": "bypassPermissions",
    "dangerously-allow-all": "bypassPermissions",
    "dangerouslyAllowAll": "bypassPermissions",
    "dangerously-bypass-approvals-and-sandbox": "bypassPermissions",
    "never": "dontAsk",
    "on-request": "default",
    "untrusted": "default",
    # Modes in which a model or another agent answers: here a person does.
    "auto": "default",
    "delegate": "default",
}
"""What other programs call them."""


def named(text: str) -> Standing:
    """The mode of this name, in any letter case and with `-`, `_` or nothing between words.

    Raises: ConfigError.
    """
    modes = {mode.name: mode for mode in MODES}
    found = {_plain(mode.name): mode for mode in MODES}
    found |= {_plain(alias): modes[name] for alias, name in _ALIASES.items()}
    try:
        return found[_plain(text.strip().removeprefix("--"))]
    except KeyError:
        from ferrule.support.near import near  # only a mistake pays for it

        known = [mode.name for mode in MODES]
        meant = near(text, [*known, *_ALIASES], most=1)
        hint = f" Did you mean {meant[0]}?" if meant else ""
        raise ConfigError(f"There is no permission mode {text!r}; there are {', '.join(known)}.{hint}") from None


def tightened(standing: Standing, wish: Standing) -> Standing:
    """The mode that is wished for, if it nowhere allows more than the one that holds; otherwise the one that holds."""
    cases = [
        (decision, inside, reads) for decision in _STRICTNESS for inside in (False, True) for reads in (False, True)
    ]
    for decision, inside, reads in cases:
        held, wished = (
            _STRICTNESS[mode.settles(decision, edits_only_inside=inside, reads_only=reads)] for mode in (standing, wish)
        )
        if wished < held:
            return standing
    return wish


def both(one: Standing, other: Standing) -> Standing:
    """A mode that allows only what both allow; it goes by the name of the one that is stricter as a whole."""
    asks, inside = (
        max(pair, key=_STRICTNESS.__getitem__) for pair in ((one.asks, other.asks), (one.inside, other.inside))
    )
    name = other.name if tightened(one, other) is other else one.name
    return Standing(name, asks, inside, one.reads_only or other.reads_only)


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
