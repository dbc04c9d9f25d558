"""May a command line run? Every simple command at every depth has to be covered; whatever is not certain asks."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.permissions.decision import Decision, strictest
from ferrule.permissions.refusal import refusal
from ferrule.permissions.rules.rule import Rule, Subject, Touched
from ferrule.permissions.shell.cover import Bound, Covered, Weigh, cover, edits_inside, exact
from ferrule.permissions.shell.line import Line
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.part import Part, forms, looser, parts, reads_only
from ferrule.permissions.shell.scene import Scene
from ferrule.workspace.paths import Jail


class Judged(NamedTuple):
    """What came of it."""

    decision: Decision
    reads_only: bool
    """Does every command in it only read?"""


def judge(
    command: str,
    cwd: str,
    *,
    subject: Subject,
    weigh: Weigh,
    scene: Scene,
    bound: Bound = lambda _: (),
    development: bool = True,
) -> Judged:
    """Decide on a command line. `development`: common development commands need no rule."""
    line = _read(command, cwd, scene)
    every = [part for simple in line.commands for part in parts(simple)]
    decisions = list(_refused(command, every, subject, weigh, bound))
    covers = [cover(part, subject, weigh, bound, scene, development=development) for part in every]
    if not decisions:
        allowing = [rule for rule in weigh(subject._replace(commands=(command,))) if rule.action == "allow"]
        decisions.append(_weighed(line, every, covers, exact(allowing, (command,), known=_known(line)), scene))
    decision = strictest(decisions)
    edits = decision.verdict == "ask" and not line.doubts
    edits = edits and all(edits_inside(part, covered, scene) for part, covered in zip(every, covers, strict=True))
    harmless = not line.doubts and all(reads_only(part, scene) for part in every)
    return Judged(decision._replace(edits_inside=edits), harmless)


def only_reads(command: str, cwd: str, scene: Scene) -> bool:
    """Does the command line only read, inside the workspace? Then it may run beside other reads."""
    line = _read(command, cwd, scene)
    return not line.doubts and all(reads_only(part, scene) for one in line.commands for part in parts(one))


def effects(command: str, cwd: str, jail: Jail) -> list[Touched]:
    """The paths that a command line is seen to read and write, what it writes first."""
    line = parse(command, cwd=cwd, roots=[root.path for root in jail.roots])
    found = [path for simple in line.commands for part in parts(simple) for path in part.paths]
    return sorted(found, key=lambda path: path.mode != "write")


def _read(command: str, cwd: str, scene: Scene) -> Line:
    line = parse(command, cwd=cwd, roots=scene.roots)
    if all(char.isprintable() or char in "\n\t" for char in command):
        return line
    # Whoever is to look at it would not see what is there.
    return line._replace(doubts=(*line.doubts, "it holds characters that cannot be seen"))


def _known(line: Line) -> bool:
    return not line.doubts and all(word.known for simple in line.commands for word in simple.words)


def _refused(command: str, every: Sequence[Part], subject: Subject, weigh: Weigh, bound: Bound) -> Iterator[Decision]:
    """What rules say that do not allow: about the line, its commands, and the paths that they touch."""
    asked: list[tuple[str, Subject]] = []
    for part in every:
        named = forms(part.simple)
        asked.append((part.shown, subject._replace(commands=named, paths=part.paths)))
        asked += [(part.shown, subject._replace(commands=(text,))) for text in looser(part.simple) if text not in named]
    asked.append(("The command line", subject._replace(commands=(command,))))
    for part in every:
        for path in part.paths:
            yield from (refusal(rule, part.shown) for rule in bound(path) if rule.action != "allow")
    for what, one in asked:
        for rule in weigh(one):
            if rule.action != "allow":
                yield refusal(rule, what)


def _weighed(
    line: Line, every: Sequence[Part], covers: Sequence[Covered], whole: Rule | None, scene: Scene
) -> Decision:
    for part in every:
        for path in part.paths:
            if why := scene.off_limits(path):
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
