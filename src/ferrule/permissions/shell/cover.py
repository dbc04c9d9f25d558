"""Whether a simple command is covered: by a rule, because it only reads, or as a common development command."""

import os
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.permissions.plain import is_development, is_harmless_setting
from ferrule.permissions.rules.rule import Always, Rule, Subject, Touched
from ferrule.permissions.shell.effects import may_be_set
from ferrule.permissions.shell.leads import activation, led
from ferrule.permissions.shell.line import Simple, Word
from ferrule.permissions.shell.part import Part, finds_flag
from ferrule.permissions.shell.scene import Scene, harmless_assignment, harmless_before, harmless_redirect

Weigh = Callable[[Subject], Sequence[Rule]]
"""The rules of all layers that speak about a call, or about one simple command."""

Bound = Callable[[Touched], Sequence[Rule]]
"""The rules about a file, whoever touches it."""

_EXACT_ONLY = frozenset({"watch", "setsid", "ionice", "flock"})
"""What these run is never covered by a pattern (a rule of Claude Code)."""


class Covered(NamedTuple):
    """Is a simple command covered, by what, and if not, why not?"""

    by: str = ""
    rule: str = ""
    lacks: str = ""


def cover(
    part: Part, allowing: Sequence[Rule], bound: Bound, scene: Scene, *, reads_only: bool, development: bool
) -> Covered:
    """Is it covered? `allowing` are the rules that speak for it; `reads_only` says that it only reads."""
    simple = part.simple
    blanket = next((rule for rule in allowing if isinstance(rule.condition, Always)), None)
    if blanket is not None:
        return Covered(blanket.text, blanket.text)
    plain = development and is_common(part, scene)
    if lacks := _around(part, bound, scene, development=plain):
        return Covered(lacks=lacks)
    if by := _by_itself(part, scene, development=development):
        return Covered(by)
    if not part.program:
        return Covered(lacks="which program it runs is not certain")
    if (named := exact(allowing, part.forms, known=_known(simple))) is not None:
        return Covered(named.text, named.text)
    lacks = _beyond(part, allowing[0], scene) if allowing else _uncovered(part, scene)
    if allowing and not lacks:
        return Covered(allowing[0].text, allowing[0].text)
    if reads_only:
        return Covered("it only reads")
    if plain:
        return Covered("a common development command")
    return Covered(lacks=lacks)


def _by_itself(part: Part, scene: Scene, *, development: bool) -> str:
    """What covers a command without a look at its words; empty where nothing does."""
    simple = part.simple
    if not simple.words:
        return "nothing runs"
    if part.spoken_for or (_only_sets(simple) and not scene.impostor("env", simple.cwd)):
        return "what it runs by itself"
    activates = development and part.program in {"source", "."} and simple.cwd is not None
    if activates and activation(f"{simple.source};x", simple.cwd or "", scene) is not None:
        return "it activates the project's environment"
    return ""


def exact(rules: Sequence[Rule], texts: Sequence[str], *, known: bool) -> Rule | None:
    """The rule that names the command to the letter.

    A star in the rule may be one of the command's own, where all words of the command are `known`.
    """
    for rule in rules:
        if rule.exact or (known and any(rule.text.endswith(f"({text})") for text in texts)):
            return rule
    return None


def _known(simple: Simple) -> bool:
    return all(word.known for word in simple.words)


def _only_sets(simple: Simple) -> bool:
    """Is it `env` with nothing but variables before a command, which is decided on with these by itself?"""
    words = simple.stripped or simple.words
    if not simple.inside or words[0].text != "env" or not all(word.known for word in (*words, *simple.words)):
        return False
    rest = [word.text for word in words[1:]]
    sets = next((at for at, text in enumerate(rest) if not re.match(r"[A-Za-z_]\w*=", text)), len(rest))
    return bool(sets) and sets < len(rest) and not rest[sets].startswith("-")


def _around(part: Part, bound: Bound, scene: Scene, *, development: bool) -> str:
    """What stands around a command and keeps every rule from covering it: assignments, redirections, the folder."""
    simple = part.simple
    for name, value in simple.assigns:
        # What the value is made of is decided on by itself.
        if not simple.words and not may_be_set(name):
            return f"it sets {name}, which changes how later commands run"
        if simple.words and not harmless_before(part.program, name, value) and not development:
            return f"it runs with {name} set"
    for redirect in simple.redirects:
        if harmless_redirect(redirect):
            continue
        if not redirect.target.known:
            return "where its output goes or its input comes from is not certain"
        if redirect.target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            return "it opens the network"
        path = next((one for one in part.paths if _is_target(one, redirect.target.text, simple.cwd)), None)
        if path is None:
            return "the folder that it runs in is not certain"
        if redirect.writes and not (scene.inside(path.real) and _may_write(path, bound)):
            return f"it writes {redirect.target.text}"
    return ""


def _is_target(path: Touched, text: str, cwd: str | None) -> bool:
    return path.spelled == os.path.normpath(os.path.join(cwd or "/", text))


def _may_write(path: Touched, bound: Bound) -> bool:
    """Does a rule allow that this file is written?"""
    rules = bound(path)
    return bool(rules) and all(rule.action == "allow" for rule in rules)


def _uncovered(part: Part, scene: Scene) -> str:
    outside = next((path for path in part.paths if not scene.inside(path.real)), None)
    if part.finding.harmless and outside is not None:
        return f"it reads {outside.spelled}, outside the workspace"
    if part.finding.known and part.finding.doubt:
        return part.finding.doubt
    return "no rule covers it"


def _beyond(part: Part, rule: Rule, scene: Scene) -> str:
    """Why a rule that names a pattern does not cover this command."""
    simple, finding = part.simple, part.finding
    # A rule that names such a sub-command or file covers it as one that names a program without a row does.
    if finding.doubt and not (finding.unlisted and _names(rule, finding.unlisted)):
        return f"{finding.doubt}, which {rule.text} does not cover"
    if not finding.known and not all(word.known for word in simple.words):
        return "not all of its words are certain"
    if part.program in _EXACT_ONLY or (simple.words and simple.words[0].text in _EXACT_ONLY):
        return f"{part.program} runs another program, which only an exact rule covers"
    if simple.cwd is None:
        return "the folder that it runs in is not certain"
    if flag := finds_flag(part):
        return f"{part.program} would take the file {flag} for a flag"
    if scene.impostor(part.program, simple.cwd) and not ("/" in part.program and _names(rule, part.program)):
        return "its program lies inside the workspace"
    if part.program == "git" and not part.is_known_repository:
        return "git would obey settings that anybody may have written there"
    return _reaches(part, rule, scene)


def _reaches(part: Part, rule: Rule, scene: Scene) -> str:
    """What outside the workspace keeps the rule from covering the command: what it writes there, or takes code from."""
    outside = [path for path in part.paths if not scene.inside(path.real)]
    written = next((path for path in outside if path.mode == "write"), None)
    if written is not None:
        return f"it writes {written.spelled}, outside the workspace"
    if part.program == "git" and outside:
        return f"git reads {outside[0].spelled}, outside the workspace"
    if part.finding.runs_project_code:
        foreign = next((path for path in outside if not _is_named(path, rule, part.simple.cwd or "/")), None)
        if foreign is not None:
            return f"it takes code or settings from {foreign.spelled}, outside the workspace"
    return ""


def _is_named(path: Touched, rule: Rule, cwd: str) -> bool:
    """Does the rule name this path, or with a star behind it the beginning of it?"""
    found = re.fullmatch(r"\w+\((?s:(.*?))(?::\*)?\)", rule.text)
    literal, star, _ = found[1].partition("*") if found else ("", "", "")
    names = [os.path.normpath(os.path.join(cwd, text)) for text in literal.split() if "/" in text]
    opened = bool(star) and literal[-1:].strip() == "/"
    last = names[-1] if opened and names else ""
    return path.spelled in names or (bool(last) and path.spelled.startswith(f"{last}/"))


def _names(rule: Rule, words: str) -> bool:
    """Does the rule begin with these very words?"""
    return rule.text.startswith(f"Bash({words} ") or f" '{words} " in rule.text


def is_common(part: Part, scene: Scene) -> bool:
    """Is it one of the short table of tests, builds and linters?"""
    simple = part.simple
    words = tuple(word.text for word in simple.stripped or simple.words)
    if simple.cwd is None or not words or not all(word.known for word in simple.words):
        return False
    if scene.impostor(simple.words[0].text, simple.cwd) and simple.stripped != simple.words:
        return False
    if not all(_is_setting(name, value, simple.cwd, scene) for name, value in simple.assigns):
        return False
    found = led(words, simple.cwd, scene)
    # What else it runs by itself is not looked at here.
    if found is None and simple.inside and simple.stripped == simple.words:
        return False
    if found is not None and found.leader and scene.impostor(found.leader, simple.cwd):
        return False
    return is_development(
        words if found is None else found.words,
        cwd=simple.cwd,
        roots=scene.roots,
        off_limits=scene.suspect,
        path=scene.path or None,
        own=found is not None,
        missing=True,
    )


def _is_setting(name: str, value: Word, cwd: str, scene: Scene) -> bool:
    if not value.known or not (name == "PYTHONPATH" or harmless_assignment(name, value)):
        return False
    return is_harmless_setting(name, value.text, cwd, scene.roots, scene.suspect)
