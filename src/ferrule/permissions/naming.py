"""The names that rules are written in, as the policy needs them."""

from collections.abc import Mapping
from typing import Any, Protocol


class Names(Protocol):
    """The names of tools and parameters in every family."""

    def of(self, tool: str) -> frozenset[str]: ...
    def kin(self, tool: str) -> str | None: ...
    def values(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]: ...
    def parameters(self, tool: str, meant: str) -> frozenset[str]: ...


class Bare:
    """Names for a policy that has no rules, or whose tools have one name each."""

    def of(self, tool: str) -> frozenset[str]:
        return frozenset((tool,))

    def kin(self, tool: str) -> str | None:  # noqa: ARG002 - the protocol's
        return None

    def values(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's
        return dict(given)

    def parameters(self, tool: str, meant: str) -> frozenset[str]:  # noqa: ARG002 - the protocol's
        return frozenset((meant,))


def is_name(text: str) -> bool:
    """Could a server be called so?"""
    return text.replace("-", "").replace("_", "").isalnum()
