"""Which models answer a request: rules by name, sizes, and the chain of models to try."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Literal

from ferrule.core.errors import ConfigError
from ferrule.models.catalog import CATALOG, ELSEWHERE, resolve_name
from ferrule.models.model import ModelError
from ferrule.settings.schema import Models, Routing

Size = Literal["small", "medium", "big"]

_SMALL = frozenset(("haiku", "mini", "nano", "flash", "lite", "luna", "small", "micro", "tiny"))
_BIG = frozenset(("opus", "fable", "pro", "sol", "astra", "ultra", "large", "max"))
_NEXT_SIZES: dict[Size, tuple[Size, ...]] = {
    "small": ("small", "medium", "big"),
    "medium": ("medium", "big", "small"),
    "big": ("big", "medium", "small"),
}
_WORD = re.compile(r"[a-z]+")
_GLOB = frozenset("*?[")
_NAME = re.compile(r"[A-Za-z0-9@][A-Za-z0-9._:/@+~=,-]{0,199}")
"""A name of a model that a request may bring to a host: it may stand in an address there."""


def size(model: str) -> Size:
    """How big a model is, by the words in its id; medium if none of them tells."""
    words = set(_WORD.findall(model.lower()))
    if words & _SMALL:
        return "small"
    return "big" if words & _BIG else "medium"


class Routes:
    """The models that may answer, by the model that a client asks for."""

    def __init__(
        self, routing: Routing, models: Models, default: Callable[[], str], usable: Callable[[str], bool]
    ) -> None:
        """`default` names the model for requests that no rule is about; it may raise ModelError.

        `usable` says whether a host can be asked at all: a model is taken by its own name only there.
        """
        self._routing = routing
        self._models = models
        self._default = default
        self._usable = usable
        self._sizes: dict[Size, str] = {"small": routing.small, "medium": routing.medium, "big": routing.big}
        check_targets(routing, models)

    def chain(self, requested: str) -> tuple[str, ...]:
        """The models to try for a request, in their order. Raises ModelError if there is none."""
        asked = requested.removeprefix("models/")
        found = self._rule(asked) or self._by_size(asked) or self._direct(asked) or (self._default(),)
        return tuple(dict.fromkeys((*found, *self._routing.fallback)))

    def names(self) -> list[str]:
        """The model names that clients can ask for: aliases, targets, and what is known of a host that is used."""
        listed = [name for name in self._routing.models if not _GLOB.intersection(name)]
        listed += targets(self._routing)
        with suppress(ModelError):  # there may be rules only
            listed.append(self._default())
        return list(dict.fromkeys(listed))

    def _rule(self, asked: str) -> tuple[str, ...]:
        rules = self._routing.models
        if asked in rules:
            return _several(rules[asked])
        # The rule that says most wins: the one with the most letters that are not wild.
        fitting = [rule for rule in rules if rule != "*" and fnmatchcase(asked.lower(), rule.lower())]
        if fitting:
            return _several(rules[max(fitting, key=lambda rule: len(rule) - rule.count("*"))])
        return _several(rules["*"]) if "*" in rules and not self._by_size(asked) else ()

    def _by_size(self, asked: str) -> tuple[str, ...]:
        """The model of the wanted size, else of the next one that is set."""
        found = next((self._sizes[one] for one in _NEXT_SIZES[size(asked)] if self._sizes[one]), "")
        return (found,) if found else ()

    def _direct(self, asked: str) -> tuple[str, ...]:
        """The model itself, if its name says at which host it is. A file is never named by a request."""
        if _NAME.fullmatch(asked) is None or ".." in asked or (":" not in asked and not _is_known(asked)):
            return ()
        try:
            host, model = resolve_name(asked, self._models)
        except ConfigError:
            return ()
        name = f"{host}:{model}"
        return (name,) if host not in ELSEWHERE and self._usable(name) else ()


def check_targets(routing: Routing, models: Models) -> None:
    """Raises ConfigError for a rule whose target names no model."""
    for name in targets(routing):
        try:
            resolve_name(name, models)
        except ConfigError as error:
            raise ConfigError(f"The proxy cannot use {name!r}: {error}") from None


def targets(routing: Routing) -> Iterator[str]:
    """The models that rules name."""
    for target in routing.models.values():
        yield from _several(target)
    yield from filter(None, (routing.small, routing.medium, routing.big))
    yield from routing.fallback


def _several(target: str | tuple[str, ...]) -> tuple[str, ...]:
    return (target,) if isinstance(target, str) else target


def _is_known(model: str) -> bool:
    return any(model.startswith(row.begins) for row in CATALOG)
