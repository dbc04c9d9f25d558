"""Grants: the rules that the user said "always" to, kept for each workspace, outside of it."""

import hashlib
import os

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.permissions.kept import Kept

_RULES = 1000
_CHARS = 4096


class _Granted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of one workspace."""

    workspace: str = ""
    device: int = 0
    inode: int = 0
    rules: tuple[str, ...] = ()


def grants_path(state_folder: str, workspace: str) -> str:
    """The file of a workspace, which is given by its real path."""
    name = hashlib.blake2b(os.fsencode(workspace), digest_size=10).hexdigest()
    return os.path.join(state_folder, "grants", f"{name}.json")


class Grants:
    """The rules of one workspace that hold from session to session.

    They belong to the folder that they were given in: another one that comes to the same path has none of them.
    """

    def __init__(self, state_folder: str, workspace: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._state = os.path.realpath(state_folder)
        self._kept = Kept(grants_path(self._state, self._workspace), _Granted)

    def texts(self) -> tuple[str, ...]:
        """The rules as they were said, oldest first."""
        return () if within(self._state, self._workspace) else self._rules(self._kept.read())

    def add(self, rule_text: str) -> None:
        """Keep a rule, such as `Bash(git commit *)`. One that is there already stays where it is.

        Raises: ConfigError when it is no rule that a person could be shown, or when it cannot be kept.
        """
        if not _showable(rule_text):
            raise ConfigError(f"A rule is one line of visible text, of at most {_CHARS} characters.")
        if within(self._state, self._workspace):
            raise ConfigError("Rules are not kept inside of the workspace that they are about. Set FERRULE_STATE.")
        self._kept.change(lambda granted: self._with(granted, rule_text))

    def remove(self, rule_text: str) -> None:
        """Keep it no more."""
        if os.path.exists(self._kept.path):
            self._kept.change(
                lambda granted: self._holding(tuple(one for one in self._rules(granted) if one != rule_text))
            )

    def _with(self, granted: _Granted, rule_text: str) -> _Granted:
        rules = self._rules(granted)
        if rule_text in rules:
            return granted
        if len(rules) >= _RULES:
            raise ConfigError(f"There are {_RULES} rules already. Remove some that are of no use any more.")
        return self._holding((*rules, rule_text))

    def _rules(self, granted: _Granted) -> tuple[str, ...]:
        return tuple(filter(_showable, granted.rules)) if granted == self._holding(granted.rules) else ()

    def _holding(self, rules: tuple[str, ...]) -> _Granted:
        try:
            here = os.stat(self._workspace)
        except OSError:
            return _Granted()
        name = os.fsencode(self._workspace).decode("utf-8", "backslashreplace")
        return _Granted(name, here.st_dev, here.st_ino, rules)


def _showable(text: str) -> bool:
    return 0 < len(text) <= _CHARS and text == text.strip() and text.isprintable()
