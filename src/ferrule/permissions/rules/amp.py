"""Reading Amp's permission rules: an ordered list, of which the first rule that matches decides.

They come as JSON with comments (the list itself, a settings file with dotted keys, or `{"permissions": [...]}`) or as
text with a rule in each line. What cannot be understood is refused as a whole: half of a policy is none.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules.ampline import ACTIONS, parse_json, parse_line, show
from ferrule.permissions.rules.expression import BadPattern
from ferrule.permissions.rules.matches import AnyOf, Literal, Matches, Names, Nested, NoneOf, Test
from ferrule.permissions.rules.pattern import Pattern, is_expression
from ferrule.permissions.rules.pattern import read as read_pattern
from ferrule.permissions.rules.rule import Action, Always, Layer, Rule, RuleSet

_LENGTH = 1 << 20
_RULES = 10_000
_EXPRESSIONS = 1000
_DEPTH = 32
_KEYS: dict[str, type] = {"tool": str, "action": str, "matches": dict, "context": str, "to": str, "message": str}
_COMMAND_KEYS = frozenset({"cmd", "command"})
"""What families call the argument that holds the command."""
_PREFIX = "amp."
_USED = frozenset(
    {"amp.permissions", "amp.dangerouslyAllowAll", "amp.tools.disable", "amp.tools.enable"}
    | {"amp.guardedFiles.allowlist"}
)


def read(text: str, *, source: str, layer: Layer, home: str) -> RuleSet:
    """The rules of a file; `source` names it for people, and `home` is what `$HOME` stands for.

    A file of a project opens no guarded files and does not turn the questions off, trusted or not.
    Raises: ConfigError, with the number of the rule and what to do.
    """
    if len(text) > _LENGTH:
        raise ConfigError(f"{source} is longer than {_LENGTH} characters; that is too much for rules.")
    reader = _Reader(source, tuple(dict.fromkeys((home, os.path.realpath(home)))) if home else ())
    body = text.removeprefix("\ufeff")
    if not body.lstrip().startswith(("[", "{", "/")) or _is_line(body):
        return RuleSet(reader.lines(body), ordered=True, source=source, layer=layer, warnings=tuple(reader.warnings))
    with_settings = reader.json(body)
    if isinstance(with_settings, list):
        rules = reader.rules(with_settings)
        return RuleSet(rules, ordered=True, source=source, layer=layer, warnings=tuple(reader.warnings))
    return _settings(reader, with_settings, layer)


def _is_line(body: str) -> bool:
    """Does a text begin with a line that is a whole rule in JSON, as rules are shown that have no text form?"""
    try:
        return "action" in parse_line(body.lstrip().partition("\n")[0])
    except ConfigError:
        return False


def _settings(reader: "_Reader", settings: Any, layer: Layer) -> RuleSet:
    if not isinstance(settings, dict):
        raise reader.wrong("a list of rules or an object with amp.permissions is expected")
    unknown = [key for key in settings if key != "permissions" and not key.startswith(_PREFIX)]
    if "permissions" in settings and "amp.permissions" in settings:
        raise reader.wrong("it has permissions and amp.permissions; keep one of them")
    if unknown and "permissions" not in settings and "amp.permissions" not in settings:
        raise reader.wrong(f"{json.dumps(unknown[0])} is not a setting with rules; the list of them is amp.permissions")
    entries = settings.get("amp.permissions", settings.get("permissions", []))
    if isinstance(entries, dict):
        raise reader.wrong("permissions is an object, as in Claude Code's settings; Amp's rules are a list")
    unused = [key for key in settings if key not in _USED and key != "permissions"]
    if unused:
        reader.warnings.append(f"{reader.source}: these settings are not used here: {', '.join(sorted(unused))}.")
    off = [_disabled(reader, text) for text in reader.texts(settings, "amp.tools.disable")]
    if "amp.tools.enable" in settings:
        kept = tuple(reader.names(text, strictly=True) for text in reader.texts(settings, "amp.tools.enable"))
        off.append(Rule("deny", "*", "amp.tools.enable", binds=NoneOf(kept), message="This tool is not enabled."))
    everything = settings.get("amp.dangerouslyAllowAll", False)
    if not isinstance(everything, bool):
        raise reader.wrong("amp.dangerouslyAllowAll is true or false")
    opened = reader.texts(settings, "amp.guardedFiles.allowlist")
    if layer == "project" and (everything or opened):
        reader.warnings.append(
            f"{reader.source}: a project neither turns the questions off nor opens guarded files; put "
            "amp.dangerouslyAllowAll and amp.guardedFiles.allowlist into your own settings if you want them."
        )
        everything, opened = False, []
    return RuleSet(
        (*off, *reader.rules(entries)),
        ordered=True,
        source=reader.source,
        layer=layer,
        warnings=tuple(reader.warnings),
        mode="bypassPermissions" if everything else "",
        guarded_allow=tuple(one for text in opened for one in reader.at_home(text)),
    )


def _disabled(reader: "_Reader", text: str) -> Rule:
    name = text.removeprefix("builtin:")
    names = reader.names(name, strictly=False)._replace(built_in=name != text)
    return Rule("deny", name, f"amp.tools.disable {text}", binds=names, message="This tool is disabled.")


class _Reader:
    """One file of rules."""

    def __init__(self, source: str, homes: tuple[str, ...]) -> None:
        self.source = source
        self.warnings: list[str] = []
        self._homes = homes
        self._expressions = 0

    def wrong(self, message: str, number: int | None = None) -> ConfigError:
        where = self.source if number is None else f"{self.source}, rule {number}"
        return ConfigError(f"{where}: {message}.")

    def json(self, text: str) -> Any:
        try:
            return parse_json(without_comments(text))
        except ConfigError as error:
            raise self.wrong(str(error)) from None

    def lines(self, text: str) -> tuple[Rule, ...]:
        entries: list[Any] = []
        for number, line in enumerate(text.split("\n"), start=1):
            try:
                entry = parse_line(line)
            except ConfigError as error:
                raise ConfigError(f"{self.source}, line {number}: {error}.") from None
            if entry:
                entries.append(entry)
        return self.rules(entries)

    def rules(self, entries: Any) -> tuple[Rule, ...]:
        if not isinstance(entries, list):
            raise self.wrong("the rules are a list")
        if len(entries) > _RULES:
            raise self.wrong(f"it has more than {_RULES} rules")
        return tuple(self._numbered(number, entry) for number, entry in enumerate(entries, start=1))

    def texts(self, settings: Mapping[str, Any], key: str) -> list[str]:
        value = settings.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise self.wrong(f"{key} is a list of texts")
        return cast("list[str]", value)

    def names(self, text: str, *, strictly: bool) -> Names:
        return Names(self._pattern(text, of_paths=False), strictly=strictly)

    def at_home(self, text: str) -> Iterable[str]:
        """A glob for each name of the home folder that it begins with."""
        if re.match(r"\$HOME(?![A-Za-z0-9_])", text):
            return [home + text.removeprefix("$HOME") for home in self._homes]
        return [text]

    def _numbered(self, number: int, entry: Any) -> Rule:
        try:
            return self._rule(number, _checked(entry))
        except (BadPattern, ConfigError) as error:
            raise self.wrong(str(error), number) from None

    def _rule(self, number: int, entry: dict[str, Any]) -> Rule:
        action = cast("Action", {"reject": "deny"}.get(entry["action"], entry["action"]))
        tool = entry["tool"]
        strictly = action == "allow"
        tests = tuple((key, self._test(value, key)) for key, value in entry.get("matches", {}).items())
        self.warnings += [f"{self.source}, rule {number}: {doubt}." for doubt in _doubts(tests, strictly=strictly)]
        is_name = "*" not in tool and not is_expression(tool)
        return Rule(
            action,
            tool,
            show(entry),
            condition=Matches(tests) if tests else Always(),
            binds=None if is_name else self.names(tool, strictly=strictly),
            exact=_exact(tests),
            context=entry.get("context"),
            to=entry.get("to", ""),
            message=entry.get("message", ""),
        )

    def _test(self, value: Any, key: str, depth: int = 0) -> Test:
        if depth > _DEPTH:
            raise ConfigError(f"the condition on {key} is nested too deeply")
        if isinstance(value, str):
            return self._pattern(value, of_paths=True)
        if value is None or isinstance(value, bool | int | float):
            if isinstance(value, int | float) and not abs(value) < 1e300:
                raise ConfigError(f"the number for {key} is too large")
            return Literal(value)
        if not value:
            raise ConfigError(f"the condition on {key} is empty and would never hold; say what is to match")
        if isinstance(value, list):
            return AnyOf(tuple(self._test(one, key, depth + 1) for one in value))
        return Nested(tuple((inner, self._test(one, inner, depth + 1)) for inner, one in value.items()))

    def _pattern(self, text: str, *, of_paths: bool) -> Pattern:
        self._expressions += is_expression(text)
        if self._expressions > _EXPRESSIONS:
            raise ConfigError(f"there are more than {_EXPRESSIONS} regular expressions; use globs")
        try:
            return read_pattern(text, self._homes, of_paths=of_paths)
        except BadPattern as error:
            raise ConfigError(f"the pattern {json.dumps(text[:80])} cannot be used: {error}") from None


def _checked(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError("a rule is an object with tool and action")
    for key, value in entry.items():
        if key not in _KEYS:
            raise ConfigError(f"{json.dumps(key)} is not a part of a rule; there are {', '.join(_KEYS)}")
        empty = value == "" and key != "message"
        if not isinstance(value, _KEYS[key]) or empty:
            kind = "an object" if key == "matches" else "a text that is not empty"
            raise ConfigError(f"{key} must be {kind}")
    for key in ("tool", "action"):
        if key not in entry:
            raise ConfigError(f"{key} is missing")
    if "" in entry.get("matches", {}):
        raise ConfigError("an argument in matches has no name")
    _check_parts(entry)
    return entry


def _check_parts(entry: Mapping[str, Any]) -> None:
    action, to = entry["action"], entry.get("to", "")
    if action not in ACTIONS:
        raise ConfigError(f"the action {json.dumps(action)} is not known; there are {', '.join(ACTIONS)}")
    if entry.get("context", "thread") not in {"thread", "subagent"}:
        raise ConfigError("context must be thread or subagent")
    if (action == "delegate") != ("to" in entry):
        raise ConfigError("to, the program that decides, belongs to the action delegate, which needs it")
    if "message" in entry and action != "reject":
        raise ConfigError("message belongs to the action reject only")
    if "\0" in to or (os.path.dirname(to) and not os.path.isabs(to)):
        raise ConfigError("to must be the name of a program on PATH, or an absolute path")


def _patterns(tests: Iterable[Test]) -> Iterable[Test]:
    for test in tests:
        if isinstance(test, AnyOf):
            yield from _patterns(test.tests)
        elif isinstance(test, Nested):
            yield from _patterns(inner for _, inner in test.tests)
        else:
            yield test


def _exact(tests: Sequence[tuple[str, Test]]) -> bool:
    commands = list(_patterns(test for key, test in tests if key in _COMMAND_KEYS))
    return bool(commands) and all(isinstance(test, Pattern) and test.plain for test in commands)


def _doubts(tests: Sequence[tuple[str, Test]], *, strictly: bool) -> Iterable[str]:
    for test in _patterns(test for _, test in tests):
        if isinstance(test, Pattern) and test.text.startswith("~/"):
            yield f"~ is not expanded in {test.text}; write $HOME instead"
        if isinstance(test, Pattern) and test.kind == "either" and strictly:
            yield f"{test.text} may be a path or an expression, so it only allows what both match"


def without_comments(text: str) -> str:
    """JSON from JSON with comments and commas too many; every step takes time in proportion to the text."""

    def kept(found: re.Match[str]) -> str:
        piece = found[0]
        if piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/")):
            raise ConfigError("a comment is not closed")
        return piece if piece.startswith('"') else " "

    string = r'"(?>(?:[^"\\]|\\.)*)(?:"|\\?\Z)'
    bare = re.sub(rf"(?s){string}|//[^\n\r]*|/\*.*?(?:\*/|\Z)", kept, text)
    return re.sub(rf"(?s)({string})|,(?=\s*[\]}}])", lambda found: found[1] or "", bare)
