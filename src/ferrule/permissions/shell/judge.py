"""Judge a command line by its tree: what it reads and writes, and what stays uncertain.

The shell runs a command line beside others only if it only reads. Every simple command at every depth has to be
covered; anything uncertain asks.

A command counts as an edit if all that it does is change files of the workspace and those files are known.

Where commands run confined without a question, such a one would be a way around the rule. What a script, a build or a
test runs by itself is not looked at: a rule about commands is about those that the line names.
"""

import functools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.files.jail import Jail
from ferrule.permissions import EDIT_PROGRAMS, Decision, strictest
from ferrule.permissions import refusal as decision_refusal
from ferrule.permissions.rules import Always, PathAccess, Rule, Subject
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
from ferrule.permissions.shell.git_losses import alias_of, split
from ferrule.permissions.shell.line import GIVEN, CommandLine, Redirect, Simple, Word
from ferrule.permissions.shell.nested import SHELLS, activation, within_environment
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.programs import table
from ferrule.permissions.shell.scene import FEW, Scene, at, expand_glob, harmless_redirect
from ferrule.permissions.shell.scripts import refusal

_READS = SHELLS | {"eval", "source", "."}
_ADDS = frozenset({"xargs", "parallel"})
"""They run a command with more words than are written."""
_HELPED = frozenset({"rg", "sort", "tar"})
"""A flag of theirs names a program that they give files."""
_CODE = (
    r"python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|perl|ruby|php|lua|Rscript|R|julia|osascript|tclsh|expect|pwsh|groovy"
    r"|elixir|iex|erl|vi|vim|nvim|view|ex|ed|emacs|less|more|most|man|gdb|lldb|[gmn]?awk|g?sed|sqlite3|psql|mysql"
    r"|tmux|screen|at|batch|crontab"
)
"""Programs that run what they find in the text of their words."""
_RENAMES = frozenset({"alias", "hash", "enable"})
"""With these a later word may be another program."""
_SAME = {
    "npm": {
        "install": "i in ins inst insta instal isnt isnta isntal isntall add",
        "uninstall": "un unlink remove rm r",
        "ci": "ic clean-install install-clean isntall-clean",
        "test": "t tst",
        "run": "run-script rum urn",
        "exec": "x",
        "update": "up upgrade udpate",
        "link": "ln",
    },
    "pnpm": {"install": "i", "remove": "rm uninstall un", "update": "up upgrade"},
    "cargo": {"build": "b", "check": "c", "doc": "d", "test": "t", "run": "r", "remove": "rm"},
    "git": {"add": "stage"},
    "brew": {"uninstall": "remove rm"},
}
"""Other words for a program's sub-commands."""
_GROUPS = frozenset({"image", "container"})
"""Docker's sub-commands also stand behind one of these."""
_SHORT = 2
"""So many letters of a sub-command may be an abbreviation of it."""
_OPERATORS = r"""[\s'",()\[\]{}+;&|]+"""
_SUBS = 6
"""So many words of git's are looked at for its sub-command."""


def could_be(
    every: Sequence[CommandPart], refused: Sequence[str], command: str, roots: Sequence[str], *, doubtful: bool = False
) -> str:
    """The rule that one of the commands of a line could turn out to be about; empty where none can be about any.

    `doubtful`: is it not certain what the line runs? Then a text of it may be run that stands for none here.
    """
    patterns = {rule: found[1] for rule in refused if (found := re.fullmatch(r"\w+\((?s:(.*))\)", rule))}
    # An alias holds for the lines behind it, the others at once.
    renamed = any(part.program in _RENAMES and len(part.simple.words) > 1 for part in every)
    for part in every:
        if refused and (renamed or _is_anything(part)):
            return refused[0]
        for words in _readings(part, command, roots):
            for rule, pattern in patterns.items():
                if _fits(pattern, words):
                    return rule
        for rule, pattern in patterns.items():
            if _means(pattern, part) or _mentions(pattern, part, command):
                return rule
    return next((rule for rule, pattern in patterns.items() if doubtful and _says(pattern, [command])), "")


def _is_anything(part: CommandPart) -> bool:
    """Does it run a program that is not known, or the text of commands that comes from elsewhere?"""
    words = part.simple.stripped or part.simple.words
    if not words:
        return False
    name = os.path.basename(words[0].text)
    if not words[0].known:
        return True
    certain = all(word.known for word in (*words, *part.simple.words))
    if name in _ADDS and GIVEN not in words and not certain:
        return True
    if name == "parallel" and not part.simple.inside:
        return True
    if name not in _READS:
        return False
    if not certain or any(word.text.startswith("/dev/") for word in words[1:]):
        return True
    # Without a script a shell runs what it reads; text that the line hands over has been looked at.
    alone = name in SHELLS and all(re.match(r"[-+]", word.text) for word in words[1:])
    handed = any(one.operator in {"<<", "<<-", "<<<"} for one in part.simple.redirects)
    return alone and not handed and not any(re.match(r"-\w*c|--(?:version|help)$", word.text) for word in words[1:])


def _readings(part: CommandPart, command: str, roots: Sequence[str]) -> Iterator[Sequence[Word]]:
    """The words of the command, where not all are known: those of a search, an alias of git's, or more to come."""
    simple = part.simple
    words = tuple(
        word._replace(known=False) if "{}" in word.text and word.known else word
        for word in simple.stripped or simple.words
    )
    if not words:
        return
    if not all(word.known for word in words):
        yield words
    if os.path.basename(words[0].text) in _ADDS | _HELPED:
        yield from ((*one.words, GIVEN) for one in simple.inside[:1])
    if os.path.basename(words[0].text) == "git":
        rest = [word for word in words[1:] if not (word.known and word.text.startswith("-"))]
        # A flag may have a word for its value, which is then taken for the sub-command too.
        for at, word in enumerate(rest[:_SUBS]):
            if word.known and f"git {word.text}" not in table() and simple.cwd is not None:
                if re.search(rf"(?i)alias\.{re.escape(word.text)}\b", command):
                    yield (words[0], GIVEN)
                alias = alias_of(word.text, (), os.path.join(simple.cwd, part.finding.folder), roots)
                if alias:
                    program = () if alias.startswith("!") else words[:1]
                    yield (*program, *split(alias.removeprefix("!")), *rest[at + 1 :], GIVEN)
                    break


def _fits(pattern: str, words: Sequence[Word]) -> bool:
    """Could the words be those of the pattern, as far as they are known? Flags before a sub-command do not count."""
    wanted = pattern.removesuffix(":*").split()
    flags = 1
    while flags < len(words) and words[flags].known and words[flags].text.startswith("-"):
        flags += 1
    # The last of these flags may have a value.
    starts = {1, flags, flags + 1} if flags > 1 else {1}
    return any(_begins(wanted, [words[0], *words[start:]]) for start in starts)


def _begins(wanted: Sequence[str], words: Sequence[Word]) -> bool:
    for text, word in zip(wanted, words, strict=False):
        if not word.known:
            return True
        if "*" in text:
            continue
        if text != word.text.rsplit("/", 1)[-1]:
            return False
    # All that is certain fits: more words may come, or what comes is behind what the pattern names.
    return len(wanted) > len(words) or all(word.known for word in words[: len(wanted)])


def _means(pattern: str, part: CommandPart) -> bool:
    """Are the words those of the pattern in another spelling: flags in another order, a program's other name?"""
    wanted, words = _plain_words(pattern), [word.text for word in part.simple.stripped or part.simple.words]
    if not wanted or not words:
        return False
    wanted, words = _normalize_words(wanted), _normalize_words(words)
    if wanted[0] != words[0]:
        return False
    named, flags = _split_flags(wanted[1:])
    given, had = _split_flags(words[1:])
    # A flag before the sub-command may have a value.
    starts = range(len(given) if words[1:2] and words[1].startswith("-") else 1)
    fits = any(
        all(text == meant or _is_short(text, meant, words[0]) for meant, text in zip(named, given[at:], strict=False))
        for at in starts
        if len(given) - at >= len(named)
    )
    return (fits or not named) and all(flag in had or _has(had, flag) for flag in flags)


def _plain_words(pattern: str) -> list[str]:
    return [text for text in pattern.removesuffix(":*").split() if "*" not in text]


def _normalize_words(words: Sequence[str]) -> list[str]:
    """A program by its plain name, with the words that its other names and those of its sub-commands stand for."""
    name, rest = re.sub(r"(?<=[a-z])[-\d.]*\d$|\.exe$", "", os.path.basename(words[0])), list(words[1:])
    if name == "python" and "-m" in rest:
        name, *rest = rest[rest.index("-m") + 1 :] or [name]
    if name.startswith("git-"):
        name, rest = "git", [name.removeprefix("git-"), *rest]
    if (name, rest[:1]) == ("uv", ["pip"]):
        name, rest = "pip", rest[1:]
    if rest and rest[0].startswith("+"):
        rest = rest[1:]  # the version of a tool chain
    at = next((at for at, text in enumerate(rest) if not text.startswith("-")), None)
    if at is not None:
        if name == "docker" and rest[at] in _GROUPS and at + 1 < len(rest):
            rest[at : at + 2] = ["rmi" if rest[at : at + 2] == ["image", "rm"] else rest[at + 1]]
        others = _SAME.get(name, {})
        rest[at] = next((sub for sub, texts in others.items() if rest[at] in texts.split()), rest[at])
    return [name, *rest]


def _split_flags(words: Sequence[str]) -> tuple[list[str], list[str]]:
    return [text for text in words if not text.startswith("-")], [text for text in words if text.startswith("-")]


def _is_short(text: str, meant: str, program: str) -> bool:
    """Could it be an abbreviation of the sub-command that is meant?"""
    return len(text) >= _SHORT and meant.startswith(text) and f"{program} {text}" not in table()


def _has(given: Sequence[str], meant: str) -> bool:
    """Could the flag be among these: cut short, or letter by letter in others, or a word for its letter?"""
    if not meant.startswith("--"):
        return all(any(_is_letter(letter, flag) for flag in given) for letter in meant[1:])
    return any(
        meant.startswith(flag.partition("=")[0]) if flag.startswith("--") else _is_letter(meant[2:3], flag)
        for flag in given
        if flag != "--"
    )


def _is_letter(letter: str, flag: str) -> bool:
    return letter.lower() in (flag[2:3] if flag.startswith("--") else flag[1:]).lower()


def _mentions(pattern: str, part: CommandPart, command: str) -> bool:
    """Is the refused command written in code that a program is given, or among the words of one that nobody knows?"""
    words = part.simple.stripped or part.simple.words
    name = os.path.basename(words[0].text) if words else ""
    if part.finding.harmless:
        return False
    runs = re.search(r"\b(runs?|program)\b", part.finding.doubt) is not None
    if not re.fullmatch(_CODE, name):
        return (runs or not part.finding.known) and _says(pattern, [" ".join(word.text for word in words[1:])])
    if name in {"sed", "gsed"} and not runs:
        return False
    reads = not any(word.known and not word.text.startswith("-") for word in words[1:])
    texts = [command] if reads else [word.text for word in words[1:]]
    texts += [one.target.text for one in part.simple.redirects if one.operator.startswith("<<")]
    return _says(pattern, texts)


def _says(pattern: str, texts: Sequence[str]) -> bool:
    """Do the words of the pattern stand in one of the texts, with nothing but blanks, quotes and the like between?"""
    wanted = _plain_words(pattern)
    sought = rf"(?<![\w.-]){_OPERATORS.join(map(re.escape, wanted))}(?![\w-]|\.\w)"
    return bool(wanted) and any(re.search(sought, text) for text in texts)


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
