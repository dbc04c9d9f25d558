"""Decide whether a command line may run, and whether it only reads.

The shell runs a command line beside others only if it only reads. Every simple command at every depth has to be
covered; anything uncertain asks.

A command counts as an edit if all that it does is change files of the workspace and those files are known.
"""

import functools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.files.jail import Jail
from ferrule.permissions.decision import EDIT_PROGRAMS, Decision, strictest
from ferrule.permissions.decision import refusal as decision_refusal
from ferrule.permissions.rules.rule import Always, PathAccess, Rule, Subject
from ferrule.permissions.shell.cover import (
    Bound,
    CommandPart,
    Covered,
    Weigh,
    cover,
    exact,
    is_common,
    is_reading_git,
    loose,
    looser,
    parts,
    reads_only,
)
from ferrule.permissions.shell.form import ArgumentReader, Form, is_glob
from ferrule.permissions.shell.line import CommandLine, Redirect, Simple, Word
from ferrule.permissions.shell.nested import activation, within_environment
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.scene import FEW, Scene, at, expand_glob, harmless_redirect
from ferrule.permissions.shell.scripts import refusal
from ferrule.permissions.shell.uncertain import could_be

_SED = Form(
    "-nErsz -i? -e:x --in-place? --quiet --silent --regexp-extended --expression:x --separate --null-data",
    "text read*",
)
_SUFFIX = r"(?:\.?[A-Za-z0-9_]+)?"
"""What sed may be told to keep the old file under: with a star or a slash it would be kept elsewhere."""


def edits_inside(part: CommandPart, covered: Covered, scene: Scene, *, development: bool) -> bool:
    """Is it covered, or does it plainly change files, every one of them inside the workspace?"""
    if not covered.lacks:
        return True
    simple = part.simple
    if not _writes_only_inside(simple, scene):
        return False
    bare = simple._replace(redirects=tuple(filter(harmless_redirect, simple.redirects)))
    if not bare.words:
        return not bare.assigns
    if bare != simple and _passes(bare, scene, development=development):
        return True
    if part.program not in EDIT_PROGRAMS or simple.assigns or simple.inside:
        return False
    finding = part.finding
    if part.program == "sed" and finding.doubt:
        return _sed_edits_inside(simple, scene)
    sure = finding.known and not finding.doubt and not finding.unsure
    return sure and all(scene.inside(path.real) and not scene.off_limits(path) for path in part.paths)


def _writes_only_inside(simple: Simple, scene: Scene) -> bool:
    """Do its redirections write nothing but files of the workspace that may be written?"""
    return all(_is_written_inside(one, simple.cwd, scene) for one in simple.redirects if not harmless_redirect(one))


def _is_written_inside(redirect: Redirect, cwd: str | None, scene: Scene) -> bool:
    if cwd is None or not redirect.target.known or not redirect.target.text:
        return False
    paths = list(at(cwd, redirect.target.text, write=redirect.writes))
    return all(scene.inside(path.real) and not scene.off_limits(path) for path in paths)


def _passes(bare: Simple, scene: Scene, *, development: bool) -> bool:
    """Would the command need no question, if its output went nowhere?"""
    return all(reads_only(one, scene) or (development and is_common(one, scene)) for one in parts(bare))


def _sed_edits_inside(simple: Simple, scene: Scene) -> bool:
    """Does `sed -i` change nothing but files of the workspace, with a script that does nothing else?"""
    paths = list(_sed_targets(simple.stripped or simple.words, simple.cwd))
    return bool(paths) and all(scene.inside(path.real) and not scene.off_limits(path) for path in paths)


def _sed_targets(words: Sequence[Word], cwd: str | None) -> Iterator[PathAccess]:
    """The files that `sed -i` writes; none where these or its script are not certain."""
    given = ArgumentReader(_SED, "sed").read(words[1:])
    in_place = given.has("-i", "--in-place")
    # Another sed takes the word behind `-i` for the ending of the old file, and the next one for its script.
    if given.doubt or not in_place or cwd is None or not sys.platform.startswith("linux"):
        return
    scripts = given.values("-e", "--expression")
    files = given.operands if scripts else given.operands[1:]
    scripts = scripts or list(given.operands[:1])
    endings = [value.text for value in given.values("-i", "--in-place")]
    if not all(script.known for script in scripts) or refusal("\n".join(script.text for script in scripts)):
        return
    if not all(re.fullmatch(_SUFFIX, ending) for ending in endings):
        return
    names: list[str] = []
    for file in files:
        matches = expand_glob(cwd, file.text, hidden=False) if is_glob(file) else []
        if not file.known and not 0 < len(matches) <= FEW:
            return
        names += [file.text] if file.known else matches
    for name in names:
        for ending in ("", *endings):
            yield from at(cwd, name + ending, write=True)


_TESTS = "It runs no command: it only tests."


class CommandVerdict(NamedTuple):
    """What came of it."""

    decision: Decision
    reads_only: bool
    """Does every command in it only read?"""


class CommandLineAnalysis(NamedTuple):
    """A command line with all that is known of its commands."""

    line: CommandLine
    every: list[CommandPart]
    calm: list[bool]
    """Which of them only read."""

    @property
    def reads_only(self) -> bool:
        return not self.line.doubts and all(self.calm)

    @property
    def git_read_folders(self) -> tuple[str, ...]:
        """The folders in which git starts, where every git in the line only reads; else nothing.

        Where the line also runs code that may use git itself, git is left as it is for it: a filter that is switched
        off would change what is committed. Such a line was allowed for more than reading.
        """
        gits = [part for part in self.every if os.path.basename(part.program) == "git"]
        if self.line.doubts or not gits or not all(map(is_reading_git, gits)):
            return ()
        for part, calm in zip(self.every, self.calm, strict=True):
            if not calm and part not in gits and (not part.finding.known or part.finding.runs_project_code):
                return ()
        starts = [os.path.join(part.simple.cwd or "", part.finding.folder) for part in gits]
        return tuple(dict.fromkeys(map(os.path.realpath, starts)))


def look(command: str, cwd: str, scene: Scene) -> CommandLineAnalysis:
    """Take a command line apart, and look at every command in it. Those that only read may run beside other reads."""
    line = _read(command, cwd, scene)
    # With a doubt about the line nothing of it is covered, and only rules that refuse are of use.
    commands = dict.fromkeys(line.commands) if line.doubts else line.commands
    every = [part for simple in commands for part in parts(simple)]
    return CommandLineAnalysis(line, every, [not line.doubts and reads_only(part, scene) for part in every])


def judge(
    command: str,
    cwd: str,
    *,
    subject: Subject,
    weigh: Weigh,
    scene: Scene,
    bound: Bound = lambda _: (),
    ruled: bool = True,
    refuses: bool = False,
    refused: Sequence[str] = (),
    development: bool = True,
    looked: CommandLineAnalysis | None = None,
) -> CommandVerdict:
    """Decide on a command line. `ruled`: are there any rules? `development`: common development commands need none.

    `refuses`: do rules refuse commands? Then even one for all commands does not cover a program that nobody knows.
    `refused`: the texts of these rules. What could turn out to be what they are about asks in every mode.
    `looked`: what `look` has just found, if it was asked.
    """
    line, every, calm = look(command, cwd, scene) if looked is None else looked
    weighed = [weigh(subject._replace(commands=part.forms, paths=part.paths)) for part in every] if ruled else []
    decisions = (
        list(_find_refusals(command, every, weighed, subject=subject, weigh=weigh, bound=bound)) if ruled else []
    )
    covers = [
        cover(
            part,
            _allow_rules(part, weighed[at], refuses=refuses) if ruled else (),
            bound,
            scene,
            reads_only=calm[at],
            development=development,
        )
        for at, part in enumerate(() if line.doubts else every)
    ]
    if not decisions:
        whole = weigh(subject._replace(commands=(command,))) if ruled else ()
        allowing = [rule for rule in whole if rule.action == "allow"]
        decisions.append(_decide_line(line, every, covers, exact(allowing, (command,), known=_is_known(line)), scene))
    if not every and not line.doubts and re.match(r"[\s!]*\[\[\s", command):
        # What `[[ ]]` would run or calculate is told as a command or a doubt.
        decisions[:] = [one for one in decisions if one.verdict == "deny"] or [Decision("allow", _TESTS)]
    decision = strictest(decisions)
    doubtful = bool(line.doubts)
    if decision.verdict == "ask" and (
        rule := refused and could_be(every, refused, command, scene.roots, doubtful=doubtful)
    ):
        decision = decision._replace(why=f"{decision.why} It could be what {rule} is about.", fixed=True)
    edits = decision.verdict == "ask" and not line.doubts
    edits = edits and all(
        edits_inside(part, covered, scene, development=development) for part, covered in zip(every, covers, strict=True)
    )
    return CommandVerdict(decision._replace(edits_inside=edits), not line.doubts and all(calm))


def _allow_rules(part: CommandPart, rules: Sequence[Rule], *, refuses: bool) -> list[Rule]:
    blind = refuses and bool(part.simple.words) and not part.program
    return [rule for rule in rules if rule.action == "allow" and not (blind and isinstance(rule.condition, Always))]


def effects(command: str, cwd: str, jail: Jail) -> list[PathAccess]:
    """The paths that a command line is seen to read and write, what it writes first."""
    line = parse(command, cwd=cwd, roots=[root.path for root in jail.roots])
    found = [path for simple in line.commands for part in parts(simple) for path in part.paths]
    return sorted(found, key=lambda path: path.mode != "write")


_parsed = functools.lru_cache(maxsize=64)(parse)
"""Every call asks more than once."""


def _read(command: str, cwd: str, scene: Scene) -> CommandLine:
    # Where it goes to other folders, what is there now counts; else only its text does.
    parsed = parse if "cd" in command or "pushd" in command else _parsed
    active = activation(command, cwd, scene) if "/bin/activate" in command else None
    line = parsed(command if active is None else active.rest, cwd=cwd, roots=scene.roots)
    if active is not None:
        first = parse(active.source, cwd=cwd, roots=scene.roots).commands
        line = line._replace(
            commands=(*first, *(within_environment(simple, active.folder) for simple in line.commands))
        )
    if all(char.isprintable() or char in "\n\t" for char in command):
        return line
    # Whoever is to look at it would not see what is there.
    return line._replace(doubts=(*line.doubts, "it holds characters that cannot be seen"))


def _is_known(line: CommandLine) -> bool:
    return not line.doubts and all(word.known for simple in line.commands for word in simple.words)


def _find_refusals(
    command: str,
    every: Sequence[CommandPart],
    weighed: Sequence[Sequence[Rule]],
    *,
    subject: Subject,
    weigh: Weigh,
    bound: Bound,
) -> Iterator[Decision]:
    """What rules say that do not allow: about the line, its commands, and the paths that they touch."""
    for part, rules in zip(every, weighed, strict=True):
        found = [*rules, *(rule for path in part.paths for rule in bound(path))]
        for text in looser(part.simple):
            if text not in part.forms:
                found += weigh(subject._replace(commands=(text,)))
        yield from (decision_refusal(rule, part.display_text) for rule in found if rule.action != "allow")
        yield from _find_possible_refusals(part, bound)
    whole = weigh(subject._replace(commands=(command,)))
    yield from (decision_refusal(rule, "The command line") for rule in whole if rule.action != "allow")


def _find_possible_refusals(part: CommandPart, bound: Bound) -> Iterator[Decision]:
    """What rules say that refuse about the files that a command may touch, where not all of its words are known."""
    for path, whole in loose(part.simple, part.finding):
        for rule in bound(path):
            if rule.action != "allow" and whole:
                yield decision_refusal(rule, part.display_text)
        for rule in bound(path._replace(mode="write")):
            if rule.action != "allow":
                yield Decision(
                    "ask", f"{part.display_text} may touch what {rule.text} is about.", rule.text, fixed=True
                )


def _decide_line(
    line: CommandLine, every: Sequence[CommandPart], covers: Sequence[Covered], whole: Rule | None, scene: Scene
) -> Decision:
    for part in every:
        if why := _off_limits(part, scene):
            return Decision("ask", f"{part.display_text}: {why}.", fixed=True)
    if whole is not None:
        return Decision("allow", f"The whole command line is allowed by {whole.text}.", whole.text)
    if line.doubts:
        return Decision("ask", f"It cannot be decided what it runs: {line.doubts[0]}.")
    for part, covered in zip(every, covers, strict=True):
        if covered.lacks:
            return Decision("ask", f"{part.display_text}: {covered.lacks}.")
    if not every:
        return Decision("ask", "There is no command in it.")
    by = dict.fromkeys(covered.by for covered in covers)
    rule = next((covered.rule for covered in covers if covered.rule), "")
    return Decision("allow", f"Every command in it is covered: {', '.join(by)}.", rule)


def _off_limits(part: CommandPart, scene: Scene) -> str:
    """Why no rule opens a path that the command names, or that its globs name; empty where none is off limits."""
    named = [path._replace(mode="read") for path, whole in loose(part.simple, part.finding) if whole]
    for path in (*part.paths, *named):
        if why := scene.off_limits(path, names_only=part.finding.names_only):
            return why
    for path in part.paths if part.finding.searches else ():
        if found := scene.find_secret(path.real, part.finding.searches):
            return f"{found} is a secret file"
    return ""
