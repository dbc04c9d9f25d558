"""Keys that `ferrule login` keeps: in the system's keyring, or in a file that only the user can read.

A key is kept under the name of the variable that would hold it, so that hosts that share a variable share a key.
A small file says which keys there are and where. Nothing else tells whether the keyring is worth loading.
"""

import os
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.permissions.trust import StateFile
from ferrule.settings.schema import state_folder

SERVICE = "ferrule"
NAME = "credentials.json"
"""A secret file by its name, wherever the state folder is."""
Where = Literal["keyring", "file"]


class _KeyEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    where: Where = "file"
    key: str = ""
    """Empty if the keyring has it."""


class _Index(msgspec.Struct, frozen=True):
    keys: dict[str, _KeyEntry] = {}


class StoredKey(NamedTuple):
    """A key and where it is kept."""

    key: str
    where: Where

    def __repr__(self) -> str:
        return f"StoredKey(…, {self.where!r})"


class KeyStore:
    """The keys that this user has given with `ferrule login`."""

    def __init__(self, state: str | None = None) -> None:
        self._file = StateFile(os.path.join(state or state_folder(), NAME), _Index)

    @property
    def path(self) -> str:
        return self._file.path

    def names(self) -> dict[str, Where]:
        """The names that have a key, and where each is; the keyring is not asked."""
        return {name: entry.where for name, entry in self._file.read().keys.items()}

    def find(self, name: str) -> StoredKey | None:
        """The key of a name. Raises ConfigError if the keyring has it and does not give it."""
        entry = self._file.read().keys.get(name)
        if entry is None:
            return None
        if entry.where == "file":
            return StoredKey(entry.key, "file")
        try:
            key = _keyring().get_password(SERVICE, name)
        except Exception as error:  # noqa: BLE001 - every back end has errors of its own
            raise ConfigError(
                f"The key {name} is in the system's keyring, which does not give it ({type(error).__name__}). "
                f"Unlock it, set {name} in the environment, or use `ferrule login` again."
            ) from None  # a back end may have the key in its own words
        return StoredKey(key, "keyring") if key else None

    def keep(self, name: str, key: str) -> Where:
        """Keep a key in the keyring, or in the file if there is none. Returns where it is. Raises: ConfigError."""
        where: Where = "keyring" if _put(name, key) else "file"
        entry = _KeyEntry(where, "" if where == "keyring" else key)
        self._file.change(lambda index: _Index({**index.keys, name: entry}))
        return where

    def forget(self, name: str) -> Where | None:
        """Remove a key. Returns where it was, None if there was none. Raises: ConfigError."""
        entry = self._file.read().keys.get(name)
        if entry is None:
            return None
        if entry.where == "keyring":
            try:
                _keyring().delete_password(SERVICE, name)
            except Exception as error:  # noqa: BLE001 - as above
                if type(error).__name__ != "PasswordDeleteError":  # it is gone already
                    raise ConfigError(
                        f"The system's keyring does not remove the key {name} ({type(error).__name__})."
                    ) from None
        self._file.change(lambda index: _Index({other: kept for other, kept in index.keys.items() if other != name}))
        return entry.where


def stored_key(name: str) -> StoredKey | None:
    """The kept key of a name, from the state folder that holds now."""
    return KeyStore().find(name)


def _keyring() -> Any:
    import keyring  # an optional package, and slow to load

    return keyring


def _put(name: str, key: str) -> bool:
    """Put a key into the keyring. False if there is none that keeps secrets."""
    try:
        ring = _keyring()
        if float(ring.get_keyring().priority) < 1:  # back ends below that keep nothing, or keep it readable
            return False
        ring.set_password(SERVICE, name, key)
        return bool(ring.get_password(SERVICE, name) == key)
    except Exception:  # noqa: BLE001 - no package, no service, a locked keyring: the file takes it
        return False
