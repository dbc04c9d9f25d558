"""What an engine is given: refused at once where it would only fail later, and the dialect that follows from it."""

import os
from collections.abc import Sequence

from ferrule.core.errors import ConfigError
from ferrule.core.tool import Tool
from ferrule.dialects.dialect import Dialect, load_dialect
from ferrule.registry.foreign import Family
from ferrule.settings import Settings


def family(dialect: Dialect) -> Family:
    """A dialect as the registry takes it."""
    return Family(dialect.name, dialect.faces, dialect.aliases)


def chosen(given: str | Dialect | None, model: str | None, settings: Settings) -> Dialect:
    """The dialect that was given, else the one that the model speaks best, else the one of the settings."""
    if isinstance(given, Dialect):
        return given
    if given is None and model is not None:
        from ferrule.dialects.pick import pick  # for sessions with a model

        given = pick(model, settings.dialects)
    return load_dialect(settings.dialect if given is None else given)


def check(tools: Sequence[object], ask: object, add_dirs: object, settings: object) -> None:
    """Refuse at once what would only fail later, in the middle of a session."""
    for one in tools:
        if not isinstance(one, Tool):
            raise ConfigError(f"tools= takes tools, made with @tool or from Tool, not {one!r:.80}.")
    if ask is not None and not callable(ask) and not hasattr(ask, "ask"):
        raise ConfigError(f"ask= takes a function that answers questions, not {ask!r:.80}.")
    if isinstance(add_dirs, (str, os.PathLike)):
        raise ConfigError("add_dirs= takes a list of folders; give [folder].")
    if settings is not None and not isinstance(settings, Settings):
        raise ConfigError("settings= takes Settings; give Settings(...).")
