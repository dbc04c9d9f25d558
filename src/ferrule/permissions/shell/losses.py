"""Find the commands that lose data for good: files that checkpoints leave out, and data that others hold.

This is checked if commands run confined and without a question. Effects that a program has by itself are not seen
here, such as a package manager that recreates `node_modules` or a build that overwrites its own folder. Those are
intended.

A line is also read with its own assignments, its working folder and its functions filled in. Such a reading never
allows anything: it only reveals a loss that a variable would hide, or avoids a question that the line itself
answers.
"""

import functools
import itertools
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.git.environment import top_of
from ferrule.permissions.shell.cover import CommandPart, loose, parts, quote_command
from ferrule.permissions.shell.find_losses import (
    IN_PLACE,
    Act,
    FileNamesAction,
    fd,
    find,
    search_loss,
    source_loss,
    substitution_commands,
    unknown,
)
from ferrule.permissions.shell.git_losses import git_loss
from ferrule.permissions.shell.line import GIVEN, CommandLine, Simple, Word
from ferrule.permissions.shell.nested import SHELLS
from ferrule.permissions.shell.parse import BROKEN, CHARACTERS, parse
from ferrule.permissions.shell.scene import Scene, at, expand_glob, harmless_redirect, opens_file
from ferrule.permissions.shell.unkept import (
    COPIES,
    LeftOut,
    ScanBudget,
    Unkept,
    changes_git,
    copy_loss,
    deletes,
    in_cache,
    is_pinned,
    leaves,
    overwrites,
    soften_reason,
    spellings,
    too_large,
)
from ferrule.permissions.shell.walk import MADE, MOVES

_MOST = 10
"""So many readings of one line are looked at."""
_MOST_NAMES = 50
_QUIETLY = r"(?:\s+2>\s*/dev/null)?\s*"
_BRANCH = (
    r"branch\s+--show-current|rev-parse\s+--abbrev-ref\s+(?:--symbolic-full-name\s+)?HEAD"
    r"|symbolic-ref\s+(?:(?:--short|-q|--quiet)\s+)*HEAD"
)
_DECLARES = frozenset({"export", "local", "declare", "readonly", "typeset"})
_FUNCTION = r"(?:\bfunction\s+([\w-]+)|(?<![\w$-])([\w-]+)\s*\(\s*\))\s*(?:\(\s*\)\s*)?\{"
_SETS = (
    r"\b(?:read|mapfile|readarray|getopts|let|unset)\b[^;&|\n]*(?<![\w$]){name}(?!\w)|\b(?:for|select)\s+{name}(?!\w)"
    r"|-v\s*{name}(?!\w)|\(\([^)]*(?<![\w$]){name}(?!\w)|(?<![\w$]){name}\+="
)
"""Wherever else a variable is set than by a plain assignment."""
_LONE = r"\"?(\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`)\"?"


class Reading(NamedTuple):
    """One way to read a line."""

    command: str
    known: Mapping[str, str]
    """What its variables stand for."""


def readings(command: str, folder: str, roots: Sequence[str]) -> Iterator[Reading]:
    """Every way to read the line, with each of the values that a variable is given in it."""
    if len(command) > CHARACTERS:
        yield Reading(command, {})
        return
    said = _loops(_otherwise(_substitute_commands(command, folder)))
    if "=" not in said and "(" not in said and "function " not in said:
        yield Reading(said, {})
        return
    commands = parse(said, cwd=folder, roots=roots).commands
    values = _find_assignments(said, commands)
    for name, given in values.items():
        use = rf"\$\{{{name}\}}|\${name}(?!\w)"
        if len(given) == 1 and (lone := re.fullmatch(_LONE, given[0])):
            said = lone[1].join(re.split(use, said))
        elif len(given) == 1 and re.fullmatch(r"[\w./-]+(?: [\w./-]+)+", given[0]):
            # Without quotes it is several words.
            said = given[0].join(re.split(rf"(?<=\s)(?:{use})(?=[\s;)]|$)", said))
    plain = {name: [one for one in given if not re.search(r"[$`]", one)] for name, given in values.items()}
    plain = {name: given for name, given in plain.items() if given}
    yield from _vary_values(said, plain, list(_calls(said, commands)))


def _vary_values(
    said: str, values: Mapping[str, Sequence[str]], calls: Sequence[Mapping[str, str]]
) -> Iterator[Reading]:
    first = {"TMPDIR": tempfile.gettempdir(), **{name: given[0] for name, given in values.items()}}
    more = [{**first, name: one} for name, given in values.items() for one in given[1:]]
    called = [{**first, **call} for call in calls] or [first]
    for known in [*called, *more][:_MOST]:
        yield Reading(said, known)


def _substitute_commands(command: str, folder: str) -> str:
    """The line with what its folder tells in the place of the commands that ask for it."""
    top = top_of(folder) or folder
    for pattern, value in (
        (r"\$\(\s*pwd(?:\s+-[LP])?\s*\)|`pwd`", "${PWD}"),
        (rf"\$\(\s*git\s+rev-parse\s+--show-toplevel{_QUIETLY}\)", top),
        (rf"\$\(\s*git\s+(?:{_BRANCH}){_QUIETLY}\)", "HEAD"),
        (r"\$\(\s*mktemp\b[^()]*\)", os.path.join(tempfile.gettempdir(), MADE)),
    ):
        if re.fullmatch(r"[\w./@%+$\{\}-]+", value):
            command = value.join(re.split(pattern, command))
    return command


def _otherwise(said: str) -> str:
    """A variable that nobody sets has the value behind `:-`, one that the line sets has its own."""

    def plain(found: re.Match[str]) -> str:
        is_set = re.search(rf"(?<!\w){found[1]}=", said) is not None
        return f"${{{found[1]}}}" if is_set or not found[2] else found[2]

    return re.sub(r"\$\{(\w+):?(?:\?[^{}]*|[-=]([\w./]+))\}", plain, said)


def _loops(said: str) -> str:
    """The variables of loops in quotes, so that each file of a glob is one word."""
    for name in set(re.findall(r"\bfor\s+(\w+)\s+in\b", said)):
        said = re.sub(rf"(?<=\s)\$(?:{name}|\{{{name}\}})(?=[\s;)]|$)", f'"${name}"', said)
    return said


def _find_assignments(said: str, commands: Sequence[Simple]) -> dict[str, list[str]]:
    """What each variable is given that only plain assignments set, as written where that is not certain."""
    found: dict[str, list[str]] = {}
    for simple in commands:
        for name, value in simple.assigns if not simple.words else ():
            found.setdefault(name, []).append(value.text)
        words = simple.words
        for word in words[1:] if words and words[0].text in _DECLARES else ():
            if given := re.fullmatch(r"(\w+)=(.*)", word.text, re.DOTALL):
                found.setdefault(given[1], []).append(re.sub(r"^(['\"])(.*)\1$", r"\2", given[2]))
    return {
        name: list(dict.fromkeys(values))
        for name, values in itertools.islice(found.items(), _MOST_NAMES)
        if not re.search(_SETS.format(name=name), said)
        and len(re.findall(rf"(?<![\w$\{{-]){name}=", said)) == len(values)
    }


def _calls(said: str, commands: Sequence[Simple]) -> Iterator[dict[str, str]]:
    """The words with which the line calls its own functions, as numbers stand for them there."""
    own = {one or other for one, other in re.findall(_FUNCTION, said)}
    for simple in commands if own else ():
        words = simple.words
        if words and words[0].text in own and len(words) > 1:
            yield {str(number): word.text for number, word in enumerate(words[1:], 1) if word.known}


_REMOVES = frozenset({"rm", "rimraf"})
_ALWAYS = frozenset({"rmdir", "unlink", "dd", "tee", "truncate"})
_WITH_FLAG = {
    "sed": r"-[A-Za-z]*i.*|--in-place.*",
    "gsed": r"-[A-Za-z]*i.*|--in-place.*",
    "perl": r"-[A-Za-z0-9]*i.*",
    "awk": r"inplace|-iinplace",
    "gawk": r"inplace|-iinplace",
}
"""Programs that change files in place where they have such a word."""
_OUTPUTS = {
    "sort": ("-o", "--output"),
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
    "sponge": (),
}
"""Programs that write the file behind such a flag, or without one their operand."""
_DELETES = frozenset({"rmdir", "unlink"})
_DEEP = r"-[A-Za-z]*[rR][A-Za-z]*|--recursive"
_APPENDS = r"-[A-Za-z]*a[A-Za-z]*|--append"
_SCRIPT = r"(?:^|[\s;&|])(?:rm|rimraf)\s(?:.*\s)?-\w*[rR]"
"""A script of a shell that deletes folders."""
_MOST_FOLDERS = 20
_MOST_NESTED = 3
_MOST_LOOKED_AT = 100_000
_TOO_MUCH = "The command line deletes or overwrites more than can be looked through for what no checkpoint keeps."


def loss(command: str, folder: str, scene: Scene, left_out: LeftOut) -> str:
    """Why somebody is to be asked about a command line, as a sentence; empty where it is seen to lose nothing."""
    unkept = Unkept(lambda path: left_out(path) and not in_cache(path), scene.roots, ScanBudget(_MOST_LOOKED_AT))
    why = _LossCheck(unkept).line(command, folder)
    return why or ("" if unkept.budget.left else _TOO_MUCH)


class _LossCheck:
    """One look at one command line."""

    def __init__(self, unkept: Unkept, nested: int = 0) -> None:
        self._unkept = unkept
        self._nested = nested
        self._known: Mapping[str, str] = {}

    def line(self, command: str, folder: str) -> str:
        for reading in readings(command, folder, self._unkept.roots):
            self._known = reading.known
            line = parse(reading.command, cwd=folder, roots=self._unkept.roots, known=reading.known)
            every = [part for simple in dict.fromkeys(line.commands) for part in _parts(simple)]
            # Of a line that does not parse the tree does not tell where it goes.
            cwds = [None if BROKEN in line.doubts else part.simple.cwd for part in every]
            folders = [] if None not in cwds else _folders(line, folder, self._unkept)
            for part, cwd in zip(every, cwds, strict=True):
                for place in folders if cwd is None else [cwd]:
                    placed = part if cwd is not None else _place_in_folder(part, place)
                    if why := self._command_loss(placed, place):
                        # Where it runs is not certain: it counts in every folder that it could be.
                        is_sure = cwd is not None or len(folders) == 1
                        return _sentence(placed, command, folder, why if is_sure else soften_reason(why))
        return ""

    def _command_loss(self, part: CommandPart, cwd: str) -> str:
        """What one command loses, as the end of a sentence."""
        words = part.simple.stripped or part.simple.words
        program = os.path.basename(part.program)
        if why := _redirect_loss(part.simple, cwd, self._unkept):
            return why
        if program == "git" or program.startswith("git-"):
            behind = words[1:] if program == "git" else (Word(program[4:], single=True), *words[1:])
            return git_loss(behind, {**self._known, **_set(part.simple)}, cwd, self._unkept, line=self._inner)
        if program == "shred":
            return "destroys files so that nothing can bring them back"
        acting = functools.partial(_find_act, cwd=cwd, unkept=self._unkept)
        if program == "find":
            programs = [act.program for act in _search_acts([word.text for word in words[1:]], acting)]
            return search_loss(find(words[1:], cwd, acting), cwd, programs, self._unkept) if programs else ""
        if program in {"fd", "fdfind"}:
            search = fd(words[1:], acting)
            return search_loss(search, cwd, (), self._unkept) if search is not None else ""
        if program in {"parallel", *SHELLS}:
            return self._shell_loss(part, words, cwd)
        return self._words_loss(part, program, words[1:], cwd)

    def _inner(self, command: str, folder: str) -> str:
        """What a line loses that git runs by the name of an alias."""
        return _LossCheck(self._unkept, self._nested + 1).line(command, folder) if self._nested < _MOST_NESTED else ""

    def _shell_loss(self, part: CommandPart, words: Sequence[Word], cwd: str) -> str:
        """A script that is handed names, and deletes what they name."""
        fed = part.simple.fed
        said = " ".join(word.text for word in words[1:])
        if not fed or not re.search(_SCRIPT, f" {said} "):
            return ""
        taken = FileNamesAction(Act("rm", is_deep=True), _no_act, GIVEN)
        return source_loss(fed, taken, cwd, self._unkept)

    def _words_loss(self, part: CommandPart, program: str, words: Sequence[Word], cwd: str) -> str:
        rest = [word.text for word in words]
        if program not in _REMOVES and (GIVEN in words or any("{}" in text for text in rest)):
            act = _find_act([program, *("{}" if word == GIVEN else word.text for word in words)], cwd, self._unkept)
            return (
                ""
                if act is None
                else source_loss(part.simple.fed, FileNamesAction(act, _no_act, GIVEN), cwd, self._unkept)
            )
        if program in COPIES:
            return copy_loss(program, words, cwd, self._unkept)
        if program in _REMOVES:
            return self._remove_loss(part, program, words, cwd)
        if program in _OUTPUTS or program == "tar":
            return _output_loss(part, program, words, cwd, self._unkept)
        return _change_loss(part, program, rest, cwd, self._unkept) if _destroys(program, rest) else ""

    def _remove_loss(self, part: CommandPart, program: str, words: Sequence[Word], cwd: str) -> str:
        """What `rm` deletes, word by word."""
        flags = [word.text for word in words if word.known and word.text.startswith("-")]
        deep = program == "rimraf" or any(re.fullmatch(_DEEP, flag) for flag in flags)
        operands = [word for word in words if not (word.known and word.text.startswith("-"))]
        # Without a word of its own it is handed some: by an `xargs` whose flags are not known.
        for word in operands or [GIVEN]:
            if why := self._remove_word_loss(part, Act(program, deep), word, cwd):
                return why
        return ""

    def _remove_word_loss(self, part: CommandPart, act: Act, word: Word, cwd: str) -> str:
        unkept = self._unkept
        is_pattern = re.search(r"[*?\[]" if act.program == "rimraf" else r"\*\*|[!@+?*]\(", word.text)
        named = [] if is_pattern or word == GIVEN or "{}" in word.text else spellings(cwd, word)
        for text in named:
            if why := _delete_loss(os.path.join(cwd, text), unkept, deep=act.is_deep):
                return why
        if word.text == "!":  # what is left of `!(…)`, which is all but some
            return unknown(GIVEN, cwd, unkept) if act.is_deep else ""
        if named or (word.known and not is_pattern):
            return ""
        source = (
            part.simple.fed if word == GIVEN or "{}" in word.text else substitution_commands(word, cwd, unkept.roots)
        )
        source = source or (part.simple.heard if re.fullmatch(r"\"?\$\{?\w+\}?\"?", word.text) else ())
        whole = word == GIVEN or not word.start
        tail = re.sub(r"['\"]", "", word.text).rstrip("/").rpartition("/")[2]
        if source and whole and ("$" in tail or "`" in tail or ")" in tail or word == GIVEN):
            taken = FileNamesAction(act, _no_act, word)
            return source_loss(source, taken, cwd, unkept)
        return unknown(word, cwd, unkept) if act.is_deep else ""


def _set(simple: Simple) -> dict[str, str]:
    """The variables that a command is given."""
    return {name: value.text for name, value in simple.assigns}


def _no_act(_: Sequence[str]) -> Act | None:
    return None


def _parts(simple: Simple) -> Iterator[CommandPart]:
    """The command and those that it runs, but what `xargs` runs once: with the words that it adds."""
    first, *inner = parts(simple)
    yield first
    handed = tuple(word for word in simple.stripped if word != GIVEN) if GIVEN in simple.stripped else None
    yield from (part for part in inner if part.simple.words != handed)


def _sentence(part: CommandPart, command: str, folder: str, why: str) -> str:
    """The whole sentence: the command as it was written, with what it is fed by or where its output goes."""
    if why.endswith("."):  # what an alias stands for has said it
        return why
    simple = part.simple
    if simple.fed and GIVEN in simple.stripped:
        return f"{quote_command(' | '.join(one.source for one in (*simple.fed, simple)))} {why}."
    if any(one.writes and not harmless_redirect(one) for one in simple.redirects):
        goes = [f"{one.operator} {one.target.text}" for one in simple.redirects if opens_file(one)]
        return f"{quote_command(' '.join([simple.source, *goes]))} {why}."
    shown = part.display_text
    if simple.source not in command:
        same = [one for line in parse(command, cwd=folder, roots=()).commands for one in parts(line)]
        named = [one.display_text for one in same if one.program == part.program]
        shown = named[0] if len(named) == 1 else shown
    if simple.heard and "$" in shown:
        shown = f"{shown} with what {quote_command(' | '.join(one.source for one in simple.heard))} tells"
    return f"{shown} {why}."


def _place_in_folder(part: CommandPart, folder: str) -> CommandPart:
    """The same command in a folder."""
    fed = tuple(one._replace(cwd=one.cwd or folder) for one in part.simple.fed)
    heard = tuple(one._replace(cwd=one.cwd or folder) for one in part.simple.heard)
    return next(parts(part.simple._replace(cwd=folder, fed=fed, heard=heard, inside=())))


def _folders(line: CommandLine, folder: str, unkept: Unkept) -> list[str]:
    """The folders that a command could run in, where that is not certain: the line's own, and all that it goes to."""
    places: dict[str, None] = {folder: None}
    for simple in line.commands:
        words = simple.stripped or simple.words
        operands = [word for word in words[1:] if word.text not in {"-L", "-P", "--"}]
        if not words or words[0].text not in MOVES or not operands:
            continue
        target = operands[0]
        if target.known and not target.text.startswith(("-", "+")):
            gone = [os.path.normpath(os.path.join(one, target.text)) for one in places]
        elif target.glob:
            gone = [os.path.join(folder, one) for one in expand_glob(folder, target.text, hidden=False)]
        else:
            gone = [] if target.known else [top_of(folder) or folder, *unkept.homes(folder, _MOST_FOLDERS)]
        places |= dict.fromkeys(gone[:_MOST_FOLDERS])
    return list(places)[:_MOST_FOLDERS]


def _destroys(program: str, rest: Sequence[str]) -> bool:
    """Does it delete or overwrite the files among its words?"""
    flag = _WITH_FLAG.get(program)
    return program in _ALWAYS or (flag is not None and any(re.fullmatch(flag, text) for text in rest))


def _find_act(words: Sequence[str], cwd: str, unkept: Unkept) -> Act | None:
    """What a command does to the files that stand where `{}` does, if it loses them."""
    if not words:
        return None
    program, rest = os.path.basename(words[0]), list(words[1:])
    if program in SHELLS:
        return Act("rm", is_deep=True) if re.search(_SCRIPT, f" {' '.join(rest)} ") else None
    if program in _REMOVES or program == "shred":
        return Act(program, program == "rimraf" or any(re.fullmatch(_DEEP, text) for text in rest))
    if program in COPIES:
        return Act(program, is_deep=program == "mv") if leaves(program, rest, cwd, unkept) else None
    return Act(program, is_deep=program in _DELETES) if _destroys(program, rest) else None


def _search_acts(rest: Sequence[str], acting: "functools.partial[Act | None]") -> Iterator[Act]:
    """What a search does by itself to what it finds."""
    if "-delete" in rest:
        yield Act("-delete", is_deep=False)
    for index, text in enumerate(rest):
        if text in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = next((one for one in range(index, len(rest)) if rest[one] in {";", "+", "\\;"}), len(rest))
            act = acting(rest[index + 1 : end])
            if act is not None:
                yield act


def _redirect_loss(simple: Simple, cwd: str, unkept: Unkept) -> str:
    for redirect in simple.redirects:
        if not redirect.writes or harmless_redirect(redirect):
            continue
        for text in spellings(cwd, redirect.target):
            for path in at(cwd, text, write=True):
                if not os.path.isfile(path.real):
                    continue
                if is_pinned(path.real):
                    return changes_git(path.spelled)
                if ">>" not in redirect.operator and unkept.left_out(path.real):
                    return overwrites(path.spelled)
    return ""


def _delete_loss(place: str, unkept: Unkept, *, deep: bool) -> str:
    """What is lost where a path is deleted."""
    spelled, real = os.path.normpath(place), os.path.realpath(place)
    if not os.path.lexists(spelled) and not os.path.lexists(real):
        return ""
    if unkept.left_out(real) or unkept.left_out(spelled):
        return deletes(spelled)
    if not deep or not os.path.isdir(real) or os.path.islink(spelled):
        return ""
    below = unkept.below(real)
    return deletes(below.path) if below.path else too_large(real) if below.is_cut else ""


def _output_loss(part: CommandPart, program: str, words: Sequence[Word], cwd: str, unkept: Unkept) -> str:
    """What a program writes its output over, as a flag of its or the tables tell."""
    names = list(part.finding.writes) if program == "tar" else []
    flags = _OUTPUTS.get(program, ())
    for at_word, word in enumerate(words):
        flag, joint, value = word.text.partition("=")
        if not flags and program == "sponge" and not word.text.startswith("-"):
            names += spellings(cwd, word)
        elif flags and joint and flag == flags[1]:
            names.append(value)
        elif flags and word.text.startswith("-") and not word.text.startswith("--") and flags[0][1] in word.text:
            joined = word.text.partition(flags[0][1])[2]
            names += (
                [joined] if joined else [one for w in words[at_word + 1 : at_word + 2] for one in spellings(cwd, w)]
            )
        elif flags and word.text == flags[1]:
            names += [one for w in words[at_word + 1 : at_word + 2] for one in spellings(cwd, w)]
    for name in names:
        place = os.path.normpath(os.path.join(cwd, name))
        if os.path.isfile(place) and unkept.left_out(os.path.realpath(place)):
            return overwrites(place)
    return ""


def _change_loss(part: CommandPart, program: str, rest: Sequence[str], cwd: str, unkept: Unkept) -> str:
    """What programs change in place or delete, whose words are all files or nothing."""
    appends = program == "tee" and any(re.fullmatch(_APPENDS, text) for text in rest)
    for real, spelled in dict.fromkeys(_write_targets(part, cwd)):
        if not os.path.lexists(spelled) and not os.path.lexists(real):
            continue
        if program in IN_PLACE and os.path.isfile(real) and is_pinned(real):
            return changes_git(spelled)
        if not appends and (unkept.left_out(real) or unkept.left_out(spelled)):
            return deletes(spelled) if program in _DELETES else overwrites(spelled)
    return ""


def _write_targets(part: CommandPart, cwd: str) -> Iterator[tuple[str, str]]:
    """The paths that it deletes or overwrites, real and as they are spelled."""
    for path in part.paths:
        if path.mode == "write":
            yield path.real, path.spelled
    for pattern in part.finding.globs:
        for text in expand_glob(cwd, pattern, hidden=False):
            yield from ((path.real, path.spelled) for path in at(cwd, text, write=True))
    for path, whole in loose(part.simple, part.finding):
        if whole:
            yield path.real, path.spelled
