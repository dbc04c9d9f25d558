"""A policy that follows another one and is nowhere milder: what holds for a subagent."""

from typing import Any

from ferrule.permissions.policy import Policy
from ferrule.permissions.standing import Standing, both


class Tightened(Policy):
    """The parent's rules, grants and folders as they are at each moment, and a stricter mode where one is wanted."""

    def __init__(self, parent: Policy, wish: Standing) -> None:
        # Nothing is copied: what the parent comes to know later holds here too.
        self._parent = parent
        self._wish = wish

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parent, name)

    @property
    def standing(self) -> Standing:  # type: ignore[override] # the parent may change it; nobody changes it here
        return both(self._parent.standing, self._wish)
