"""The plan that a session follows."""

from ferrule.core.outcomes import Planned


class Steps:
    """One plan per session, replaced as a whole."""

    def __init__(self) -> None:
        self.plan = Planned(())

    def replace(self, plan: Planned) -> Planned:
        self.plan = plan
        return plan
