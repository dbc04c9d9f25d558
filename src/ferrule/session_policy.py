"""The policy of a session, made from its settings, the project's files and what the user said before."""

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ferrule.core.errors import ConfigError
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.permissions import Standing, parse_mode, tighten_mode
from ferrule.permissions.policy import Policy, Unasked
from ferrule.permissions.trust import (
    Approved,
    Grants,
    RuleContext,
    Trust,
    allow_rules,
    deny_rules,
    has_rules,
    load_layers,
    project_files,
    read_rules,
)
from ferrule.registry import Registry
from ferrule.registry.foreign import FamilyNames
from ferrule.services import Services
from ferrule.settings import Settings, managed_path

if TYPE_CHECKING:
    from ferrule.permissions.rules import RuleSet
    from ferrule.permissions.trust import RuleLayers
    from ferrule.registry.foreign import Family


class SessionPolicy:
    """Reads the rules, makes the policy, and keeps what the user says "always" to."""

    def __init__(
        self,
        jail: Jail,
        settings: Settings,
        state: str,
        registry: Registry,
        families: "Callable[[], Sequence[Family]]",
    ) -> None:
        """`families` gives every family there is, when a rule is first looked at."""
        self._jail = jail
        self._settings = settings
        self._state = state
        self._registry = registry
        self._families = families
        self._allowed: set[tuple[str, str]] = set()
        """Rules that were allowed for the session, with their source."""
        self.warnings: tuple[str, ...] = ()
        """What could not be used of the rules, each as a sentence."""
        self._bounds: tuple[bool, tuple[str, ...]] = (True, ())
        """May questions be bypassed? And the stricter modes that the layers wish for, whichever mode is asked for."""

    def policy(self, services: Services, *, notes: str, mode: str | None = None, rules: str | None = None) -> Policy:
        """The policy of all layers, or of one file instead. Raises `ConfigError` for rules that nobody understands."""
        permissions, workspace = self._settings.permissions, self._jail.folder
        sets: tuple[RuleSet, ...] = ()
        wanted, bypass, trusted, names = mode or permissions.mode, permissions.bypass, False, None
        wishes: tuple[str, ...] = ()
        if rules is not None:
            names = self.names()
            sets = (self._one_file(rules, names),)
            self.warnings = sets[0].warnings
            wanted = mode or sets[0].mode or "default"
        elif has_rules(workspace, permissions, managed_path(), self._grants_path(), self._settings.sources):
            names = self.names()
            layers, trusted = self._layers(names)
            sets, bypass, self.warnings, wishes = layers.sets, layers.bypass, layers.warnings, layers.wishes
            if mode is None and permissions.mode == "default":
                wanted = layers.mode or wanted
        guard = services[Guard]
        self._bounds = (bypass, wishes)
        policy = Policy(
            self._jail,
            guard,
            sets,
            names=names,
            standing=self._mode_standing(wanted),
            notes=notes,
            trusted=trusted,
            # Rules that stand alone have no others beside them, not even ours about tests and builds.
            development=rules is None,
            is_sandboxed=lambda: services.confinement().sandbox is not None,
            confined=functools.partial(self._runs_unasked, services, alone=rules is not None),
            unasked=Unasked(
                # Who has said that confined commands need no question is not asked about any.
                services.is_left_out if self._settings.sandbox.auto_allow == "auto" else None,
                services.addresses,
            ),
        )
        if sets:
            guard.denied = policy.is_denied
            guard.rules = lambda: len(policy.sets)
            self._open(policy, services, [one for one in sets if one.layer != "project" or trusted])
        return policy

    def _runs_unasked(self, services: Services, *, alone: bool) -> bool:
        """Need confined commands no question? By default not where rules stand alone: those say all that holds."""
        if alone and self._settings.sandbox.auto_allow is not True:
            return False
        return not services.why_asked()

    def change_mode(self, policy: Policy, mode: str) -> None:
        """Have another permission mode hold from now on, as if the session had begun in it. Raises `ConfigError`."""
        policy.standing = self._mode_standing(mode)

    def _mode_standing(self, mode: str) -> Standing:
        bypass, wishes = self._bounds
        return functools.reduce(tighten_mode, map(parse_mode, wishes), _parse_mode(mode, bypass=bypass))

    def _open(self, policy: Policy, services: Services, sets: "Sequence[RuleSet]") -> None:
        """The folders and the guarded files that files of rules open."""
        for one in sets:
            services[Guard].open(one.guarded_allow)
            for folder in one.folders:
                real = os.path.realpath(os.path.join(self._jail.folder, os.path.expanduser(folder)))
                if os.path.isdir(real) and os.path.dirname(real) != real:
                    self._jail.add(real)
                    policy.open(real)
                    services.home.append(real)

    def save(self, policy: Policy) -> Callable[[Sequence[str]], None]:
        """Keeps the rules of an "always", in the policy and for the next session."""

        def keep(texts: Sequence[str]) -> None:

            policy.know(self.names())
            policy.add(allow_rules(texts, self._origin(self.names())))
            grants = Grants(self._state, self._jail.folder)
            for text in texts:
                # Where the state lies inside the workspace, nothing there may allow anything: it holds for the session.
                with contextlib.suppress(ConfigError, OSError):
                    grants.add(text)

        return keep

    def make_approved(self) -> "Approved":
        """Has what a person agreed to write count as seen, where trust is in contents."""
        return Approved(self._state, self._jail.folder)

    def allow(self, policy: Policy, texts: Sequence[str], *, source: str) -> tuple[str, ...]:
        """Let these rules allow calls until the session ends; those that were understood."""
        policy.know(self.names())
        understood = [text for text in texts if (source, text) in self._allowed]
        for text in texts:
            if text in understood:
                continue
            with contextlib.suppress(ConfigError):
                rules = allow_rules([text], self._origin(self.names()))
                if rules.rules and not rules.warnings:
                    policy.add(rules._replace(source=source))
                    self._allowed.add((source, text))
                    understood.append(text)
        return tuple(understood)

    def deny(self, policy: Policy, services: Services, texts: Sequence[str], *, source: str) -> None:
        """Let these rules refuse calls until the session ends. Raises `ConfigError` for one that nobody understands."""
        policy.know(self.names())
        rules = deny_rules(texts, self._origin(self.names()), source=source)
        if rules.warnings:
            raise ConfigError(rules.warnings[0])
        policy.add(rules)
        services[Guard].denied = policy.is_denied

    def names(self) -> "FamilyNames":

        return FamilyNames(self._families, self._registry.canonical)

    def _origin(self, names: "FamilyNames") -> "RuleContext":
        return RuleContext(self._jail.folder, names.tool)

    def _layers(self, names: "FamilyNames") -> "tuple[RuleLayers, bool]":

        workspace = self._jail.folder
        seen = Trust(self._state).look(workspace, project_files(workspace))
        trusted = seen.state == "trusted"
        layers = load_layers(
            self._origin(names),
            self._settings.permissions,
            managed=managed_path(),
            trusted=seen.contents if trusted else None,
            said=Grants(self._state, workspace).texts(),
            sources=self._settings.sources,
        )
        return layers, trusted

    def _one_file(self, path: str, names: "FamilyNames") -> "RuleSet":
        return read_rules(os.path.abspath(os.path.expanduser(path)), self._origin(names), layer="user", alone=True)

    def _grants_path(self) -> str:
        home = hashlib.blake2b(os.fsencode(self._jail.folder), digest_size=10).hexdigest()
        return os.path.join(self._state, "grants", f"{home}.json")


def _parse_mode(text: str, *, bypass: bool) -> Standing:
    standing = parse_mode(text)
    if standing.name == "bypassPermissions" and not bypass:
        raise ConfigError("The mode bypassPermissions is switched off in the settings. Use another one.")
    return standing
