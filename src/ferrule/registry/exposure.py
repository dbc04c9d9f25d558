"""How a tool is exposed, and which ones a session does not have at all: what the settings say by globs of names."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ferrule.core.errors import ConfigError
from ferrule.core.tool import AnyTool, Exposure
from ferrule.registry.entry import Later
from ferrule.registry.foreign import Family

_BUILTIN = "builtin:"
_KINDRED = (frozenset({"shell", "shell_session"}),)
"""Built-in tools that do the same for different families: without the one, a session has none of them."""


class Exposures:
    """What the settings say of tools. A name written out counts before a glob, and the first glob that fits counts."""

    def __init__(self, exposure: Mapping[str, Exposure]) -> None:
        self._exact = exposure
        self._globs = [(_matcher(glob), said) for glob, said in exposure.items()]

    def said(self, names: Iterable[str]) -> Exposure | None:
        """How a tool of these names is exposed; None where nothing is said."""
        if not self._globs:
            return None
        names = tuple(names)
        exact = next((self._exact[name] for name in names if name in self._exact), None)
        return exact or next((said for fits, said in self._globs if any(map(fits, names))), None)


class Disabled:
    """Which tools a session does not have."""

    def __init__(self, globs: Sequence[str]) -> None:
        self._builtin = [_matcher(glob.removeprefix(_BUILTIN)) for glob in globs]
        self._any = [_matcher(glob) for glob in globs if not glob.startswith(_BUILTIN)]

    def has(self, names: Iterable[str]) -> bool:
        """Is a tool from elsewhere, with these names, one of them?"""
        return any(fits(name) for name in names for fits in self._any)

    def builtin(self, names: Mapping[str, Iterable[str]]) -> frozenset[str]:
        """The built-in tools that are among them: canonical name → every name that a family has for it."""
        found = {tool for tool, known in names.items() if any(fits(name) for name in known for fits in self._builtin)}
        return frozenset(found.union(*(kindred(tool) for tool in found)))


def switched_off(
    globs: Sequence[str], tools: Mapping[str, AnyTool | Later], families: Sequence[Family]
) -> frozenset[str]:
    """The tools that the settings take away, in whichever family's words they say so."""
    from ferrule.registry.names import Names  # for who switches tools off

    disabled, names = Disabled(globs), Names(lambda: families, str)
    given = {name for name, tool in tools.items() if not isinstance(tool, Later) and disabled.has((name,))}
    return disabled.builtin({name: names.of(name) for name, tool in tools.items() if isinstance(tool, Later)}) | given


def kindred(tool: str) -> frozenset[str]:
    """The built-in tools that do the same as this one, for other families."""
    return next((group for group in _KINDRED if tool in group), frozenset((tool,)))


def _matcher(glob: str) -> Callable[[str], bool]:
    from ferrule.support.globs import BadGlob, matcher  # for settings that speak of tools

    try:
        return matcher(glob, dots=True)
    except BadGlob as error:
        raise ConfigError(f"{glob[:80]!r} is no glob for names of tools: {error}") from error
