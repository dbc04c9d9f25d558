"""Grants: the rules and hosts that the user said "always" to, kept for each workspace, outside of it."""

import contextlib
import hashlib
import os
from collections.abc import Callable

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.permissions.kept import Kept

_MOST = 1000
_CHARS = 4096


class _Granted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of one workspace."""

    workspace: str = ""
    device: int = 0
    inode: int = 0
    rules: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Those that confined commands may reach."""


def grants_path(state_folder: str, workspace: str) -> str:
    """The file of a workspace, which is given by its real path."""
    name = hashlib.blake2b(os.fsencode(workspace), digest_size=10).hexdigest()
    return os.path.join(state_folder, "grants", f"{name}.json")


class Grants:
    """The rules and hosts of one workspace that hold from session to session.

    They belong to the folder that they were given in: another one that comes to the same path has none of them.
    """

    def __init__(self, state_folder: str, workspace: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._state = os.path.realpath(state_folder)
        self._kept = Kept(grants_path(self._state, self._workspace), _Granted)

    def texts(self) -> tuple[str, ...]:
        """The rules as they were said, oldest first."""
        return () if within(self._state, self._workspace) else self._valid(self._kept.read()).rules

    def hosts(self) -> tuple[str, ...]:
        """The hosts that confined commands may reach, oldest first."""
        return () if within(self._state, self._workspace) else self._valid(self._kept.read()).hosts

    def add_host(self, host: str) -> None:
        """Keep a host. Where that cannot be, it holds for the session alone."""
        if _showable(host) and not within(self._state, self._workspace):
            with contextlib.suppress(ConfigError, OSError):
                self._kept.change(lambda granted: self._with(granted, host=host))

    def remove_host(self, host: str) -> None:
        """Keep it no more."""
        self._change(lambda granted: self._holding(granted.rules, tuple(one for one in granted.hosts if one != host)))

    def add(self, rule_text: str) -> None:
        """Keep a rule, such as `Bash(git commit *)`. One that is there already stays where it is.

        Raises: ConfigError when it is no rule that a person could be shown, or when it cannot be kept.
        """
        if not _showable(rule_text):
            raise ConfigError(f"A rule is one line of visible text, of at most {_CHARS} characters.")
        if within(self._state, self._workspace):
            raise ConfigError("Rules are not kept inside of the workspace that they are about. Set FERRULE_STATE.")
        self._kept.change(lambda granted: self._with(granted, rule=rule_text))

    def remove(self, rule_text: str) -> None:
        """Keep it no more."""
        self._change(
            lambda granted: self._holding(tuple(one for one in granted.rules if one != rule_text), granted.hosts)
        )

    def _change(self, function: Callable[[_Granted], _Granted]) -> None:
        if os.path.exists(self._kept.path):
            self._kept.change(lambda granted: function(self._valid(granted)))

    def _with(self, granted: _Granted, *, rule: str = "", host: str = "") -> _Granted:
        """What was granted, with one more rule or host at the end."""
        valid = self._valid(granted)
        rules = (*valid.rules, rule) if rule and rule not in valid.rules else valid.rules
        hosts = (*valid.hosts, host) if host and host not in valid.hosts else valid.hosts
        for kept, what in ((rules, "rules"), (hosts, "hosts")):
            if len(kept) > _MOST:
                raise ConfigError(f"There are {_MOST} {what} already. Remove some that are of no use any more.")
        return self._holding(rules, hosts)

    def _valid(self, granted: _Granted) -> _Granted:
        """What of it holds: nothing of what was granted in another folder that was here."""
        if granted != self._holding(granted.rules, granted.hosts):
            return self._holding((), ())
        return self._holding(tuple(filter(_showable, granted.rules)), tuple(filter(_showable, granted.hosts)))

    def _holding(self, rules: tuple[str, ...], hosts: tuple[str, ...]) -> _Granted:
        try:
            here = os.stat(self._workspace)
        except OSError:
            return _Granted()
        name = os.fsencode(self._workspace).decode("utf-8", "backslashreplace")
        return _Granted(name, here.st_dev, here.st_ino, rules, hosts)


def _showable(text: str) -> bool:
    return 0 < len(text) <= _CHARS and text == text.strip() and text.isprintable()
