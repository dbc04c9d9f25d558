"""The model that was last chosen in the chat: it is asked at the next start, until the settings name another one."""

import os
from collections.abc import Mapping

import msgspec

from ferrule.agent_settings import Models
from ferrule.core.errors import ConfigError
from ferrule.models.hosts import find_host
from ferrule.models.keys import stored_key
from ferrule.models.load import check_key
from ferrule.models.model import ModelError
from ferrule.models.names import ELSEWHERE, VARIABLE, named
from ferrule.permissions.kept import Kept
from ferrule.settings import state_folder

NAME = "last-model.json"
WHY = "chosen by /model the last time"


class _Last(msgspec.Struct, frozen=True):
    model: str = ""
    default: str = ""
    """What the settings named when it was chosen. If they name another one since, that was chosen later."""


def remember_model(name: str, settings: Models) -> None:
    """Keep the name for the next start; that of a file is not kept. Raises: ConfigError."""
    if named(name, settings).host not in ELSEWHERE:
        _file().change(lambda _: _Last(name, settings.default))


def last_model(settings: Models, environment: Mapping[str, str] = os.environ) -> str:
    """The name that was kept; empty if there is none, if one was named since, or if it could not be asked now."""
    last = _file().read()
    if not last.model or last.default != settings.default or environment.get(VARIABLE, "").strip():
        return ""
    try:
        host, _ = named(last.model, settings)
        check_key(find_host(host, settings, environment, stored_key), last.model)
    except (ModelError, ConfigError):
        return ""
    return last.model


def _file() -> Kept[_Last]:
    return Kept(os.path.join(state_folder(), NAME), _Last)
