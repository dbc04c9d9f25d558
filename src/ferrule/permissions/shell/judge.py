"""May a command line run, and does it only read? That decides whether the shell may run it beside others.

Every simple command at every depth has to be covered; whatever is not certain asks.
"""

import functools
import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.permissions.decision import Decision, strictest
from ferrule.permissions.refusal import refusal
from ferrule.permissions.rules.rule import Always, Rule, Subject, Touched
from ferrule.permissions.shell.cover import Bound, Covered, Weigh, cover, exact
from ferrule.permissions.shell.edits import edits_inside
from ferrule.permissions.shell.evaded import could_be
from ferrule.permissions.shell.leads import activation, within_environment
from ferrule.permissions.shell.line import Line
from ferrule.permissions.shell.loose import loose
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.part import Part, is_reading_git, looser, parts, reads_only
from ferrule.permissions.shell.scene import Scene
from ferrule.workspace.paths import Jail

_TESTS = "It runs no command: it only tests."


class Judged(NamedTuple):
    """What came of it."""

    decision: Decision
    reads_only: bool
    """Does every command in it only read?"""


class Looked(NamedTuple):
    """A command line with all that is known of its commands."""

    line: Line
    every: list[Part]
    calm: list[bool]
    """Which of them only read."""

    @property
    def reads_only(self) -> bool:
        return not self.line.doubts and all(self.calm)

    @property
    def reading_git(self) -> tuple[str, ...]:
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


def look(command: str, cwd: str, scene: Scene) -> Looked:
    """Take a command line apart, and look at every command in it. Those that only read may run beside other reads."""
    line = _read(command, cwd, scene)
    # With a doubt about the line nothing of it is covered, and only rules that refuse are of use.
    commands = dict.fromkeys(line.commands) if line.doubts else line.commands
    every = [part for simple in commands for part in parts(simple)]
    return Looked(line, every, [not line.doubts and reads_only(part, scene) for part in every])


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
    looked: Looked | None = None,
) -> Judged:
    """Decide on a command line. `ruled`: are there any rules? `development`: common development commands need none.

    `refuses`: do rules refuse commands? Then even one for all commands does not cover a program that nobody knows.
    `refused`: the texts of these rules. What could turn out to be what they are about asks in every mode.
    `looked`: what `look` has just found, if it was asked.
    """
    line, every, calm = look(command, cwd, scene) if looked is None else looked
    weighed = [weigh(subject._replace(commands=part.forms, paths=part.paths)) for part in every] if ruled else []
    decisions = list(_refused(command, every, weighed, subject=subject, weigh=weigh, bound=bound)) if ruled else []
    covers = [
        cover(
            part,
            _allowing(part, weighed[at], refuses=refuses) if ruled else (),
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
        decisions.append(_weighed(line, every, covers, exact(allowing, (command,), known=_known(line)), scene))
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
    return Judged(decision._replace(edits_inside=edits), not line.doubts and all(calm))


def _allowing(part: Part, rules: Sequence[Rule], *, refuses: bool) -> list[Rule]:
    blind = refuses and bool(part.simple.words) and not part.program
    return [rule for rule in rules if rule.action == "allow" and not (blind and isinstance(rule.condition, Always))]


def effects(command: str, cwd: str, jail: Jail) -> list[Touched]:
    """The paths that a command line is seen to read and write, what it writes first."""
    line = parse(command, cwd=cwd, roots=[root.path for root in jail.roots])
    found = [path for simple in line.commands for part in parts(simple) for path in part.paths]
    return sorted(found, key=lambda path: path.mode != "write")


_parsed = functools.lru_cache(maxsize=64)(parse)
"""Every call asks more than once."""


def _read(command: str, cwd: str, scene: Scene) -> Line:
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


def _known(line: Line) -> bool:
    return not line.doubts and all(word.known for simple in line.commands for word in simple.words)


def _refused(
    command: str,
    every: Sequence[Part],
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
        yield from (refusal(rule, part.shown) for rule in found if rule.action != "allow")
        yield from _suspected(part, bound)
    whole = weigh(subject._replace(commands=(command,)))
    yield from (refusal(rule, "The command line") for rule in whole if rule.action != "allow")


def _suspected(part: Part, bound: Bound) -> Iterator[Decision]:
    """What rules say that refuse about the files that a command may touch, where not all of its words are known."""
    for path, whole in loose(part.simple, part.finding):
        for rule in bound(path):
            if rule.action != "allow" and whole:
                yield refusal(rule, part.shown)
        for rule in bound(path._replace(mode="write")):
            if rule.action != "allow":
                yield Decision("ask", f"{part.shown} may touch what {rule.text} is about.", rule.text, fixed=True)


def _weighed(
    line: Line, every: Sequence[Part], covers: Sequence[Covered], whole: Rule | None, scene: Scene
) -> Decision:
    for part in every:
        if why := _off_limits(part, scene):
            return Decision("ask", f"{part.shown}: {why}.", fixed=True)
    if whole is not None:
        return Decision("allow", f"The whole command line is allowed by {whole.text}.", whole.text)
    if line.doubts:
        return Decision("ask", f"It cannot be decided what it runs: {line.doubts[0]}.")
    for part, covered in zip(every, covers, strict=True):
        if covered.lacks:
            return Decision("ask", f"{part.shown}: {covered.lacks}.")
    if not every:
        return Decision("ask", "There is no command in it.")
    by = dict.fromkeys(covered.by for covered in covers)
    rule = next((covered.rule for covered in covers if covered.rule), "")
    return Decision("allow", f"Every command in it is covered: {', '.join(by)}.", rule)


def _off_limits(part: Part, scene: Scene) -> str:
    """Why no rule opens a path that the command names, or that its globs name; empty where none is off limits."""
    named = [path._replace(mode="read") for path, whole in loose(part.simple, part.finding) if whole]
    for path in (*part.paths, *named):
        if why := scene.off_limits(path, names_only=part.finding.names_only):
            return why
    for path in part.paths if part.finding.searches else ():
        if found := scene.uncovered(path.real, part.finding.searches):
            return f"{found} is a secret file"
    return ""
