"""Decide whether a simple command is covered by a rule, only reads, or is a common development command.

For rules that refuse, the module also lists the files that a command may touch if the tables do not know all of
its words. Then every word may name a file, also after `=`, `@` or the letter of a flag, and so may a piece of a
longer text. Files found this way never allow anything: they only bring rules that refuse to bear.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ferrule.files.globs import BadGlob, expand
from ferrule.permissions.auto_allow import is_development, is_harmless_setting, is_safe_repository
from ferrule.permissions.rules import Always, PathAccess, Rule, Subject
from ferrule.permissions.shell.form import says_numbers
from ferrule.permissions.shell.line import Simple, Word, may_be_set
from ferrule.permissions.shell.nested import activation, find_environment_command, hands_files
from ferrule.permissions.shell.programs import CommandFinding, examine, table
from ferrule.permissions.shell.scene import (
    FEW,
    Scene,
    at,
    command_paths,
    expand_glob,
    harmless_assignment,
    harmless_before,
    harmless_redirect,
    opens_file,
)

_BLANKS = str.maketrans(dict.fromkeys(" \t\n\v\f\r", "\x1f"))
"""What stands for a blank inside a word: no pattern's blank matches it, so that words are compared whole."""
_SHOWN_CHARS = 120
_LEADING = 50
"""So many words behind a flag are enough to tell a command by."""
_STREAMS = ("/dev/null", "/dev/stdin")


class CommandPart(NamedTuple):
    """One simple command with all that is known of it."""

    simple: Simple
    finding: CommandFinding
    paths: tuple[PathAccess, ...]
    forms: tuple[str, ...]
    """The texts that a rule may name the command by; all of them mean the same command."""
    spoken_for: bool = False
    """Is it run by a command whose rule speaks for it too, as `npx` and `docker exec` run others?"""

    @property
    def display_text(self) -> str:
        return quote_command(self.simple.source.strip() or "a redirection")

    @property
    def program(self) -> str:
        words = self.simple.stripped or self.simple.words
        return words[0].text if words and words[0].known else ""

    @property
    def is_known_repository(self) -> bool:
        """Will git find settings that no tool may write?"""
        if self.simple.cwd is None:
            return False
        folder = os.path.realpath(os.path.join(self.simple.cwd, self.finding.folder))
        return is_safe_repository(folder, [word.text for word in self.simple.words])


def quote_command(source: str) -> str:
    """A command on one line of a sentence."""
    text = " ".join(source.split())
    return f"`{text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + '…'}`"


def parts(simple: Simple, *, spoken_for: bool = False) -> Iterator[CommandPart]:
    """The command itself, and those that it runs by itself."""
    finding = examine(simple.stripped or simple.words, cwd=simple.cwd)
    yield CommandPart(simple, finding, command_paths(simple, finding), _forms(simple), spoken_for)
    for inner in simple.inside:
        yield from parts(inner, spoken_for=spoken_for or finding.covers_inside)


def _forms(simple: Simple) -> tuple[str, ...]:
    source = simple.source.strip()
    if not all(word.known for word in simple.words):
        return (source,)
    return tuple(dict.fromkeys((source, _join_words(simple.words), _join_words(simple.stripped or simple.words))))


def _join_words(words: Sequence[Word]) -> str:
    return " ".join(word.text.translate(_BLANKS) for word in words)


def looser(simple: Simple) -> tuple[str, ...]:
    """More texts, for rules that refuse: as a person reads the words, and the program without its folder."""
    words = [word.text for word in simple.stripped or simple.words]
    if not words:
        return ()
    name = os.path.basename(words[0])
    texts = [" ".join(words), " ".join((name, *words[1:]))]
    if "/" in words[0] and simple.cwd is not None:
        # A link may stand for the program.
        meant = os.path.basename(os.path.realpath(os.path.join(simple.cwd, words[0])))
        texts.append(" ".join((meant, *words[1:])))
    form = table().get(name)
    if form is not None and form.subs:
        # The flags before a sub-command, with and without a value each: `git -C sub push` is `git push`.
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 1
            texts += [" ".join((name, *words[begin : begin + _LEADING])) for begin in (at, at + 1)]
            if at + 1 < len(words) and words[at + 1].startswith("-") and not words[at].startswith("-"):
                at += 1
    return tuple(dict.fromkeys(texts))


def reads_only(part: CommandPart, scene: Scene) -> bool:
    """Is it one of the programs that only read, with nothing but what only reads, inside the workspace?"""
    simple, finding = part.simple, part.finding
    if not simple.words:
        sets = all(may_be_set(name) for name, _ in simple.assigns)
        return bool(simple.redirects or simple.assigns) and all(map(harmless_redirect, simple.redirects)) and sets
    # Of `find` the tables have looked at every program that it runs.
    looked_at = simple.stripped != simple.words or part.program == "find"
    runs_others = bool(simple.inside) and not looked_at
    if not part.program or simple.cwd is None or runs_others or not finding.harmless:
        return False
    if part.program in {"cd", "pushd"}:
        return len(part.paths) <= 1 and all(scene.inside(path.real) for path in part.paths)
    return (
        not finding.unsure
        and _is_calm(simple)
        and not scene.impostor(part.program, simple.cwd)
        and not (simple.stripped != simple.words and scene.impostor(simple.words[0].text, simple.cwd))
        and (part.program != "git" or part.is_known_repository)
        and scene.inside(os.path.realpath(simple.cwd))
        and all(_may_be_read(path, part, scene) for path in part.paths)
        and not any(len(expand_glob(simple.cwd, pattern, hidden=False)) > FEW for pattern in finding.globs)
        and not finds_flag(part)
        and (not finding.handed or hands_files(part, scene))
    )


def is_reading_git(part: CommandPart) -> bool:
    """Is it a git that only reads, in a repository that is one? What it prints may go anywhere, and lie anywhere."""
    simple = part.simple
    if part.program != "git" or simple.assigns or not part.is_known_repository:
        return False
    if part.finding.harmless:
        return True
    # Another folder to start in is a matter of its own.
    words = list(simple.stripped or simple.words)
    while len(words) > 2 and words[1].text == "-C" and words[1].known:
        del words[1:3]
    return examine(words, cwd=os.path.join(simple.cwd or "", part.finding.folder)).harmless


def finds_flag(part: CommandPart) -> str:
    """A file that a glob finds now and that the program would take for a flag; empty where there is none."""
    names = (name for pattern in part.finding.globs for name in expand_glob(part.simple.cwd, pattern, hidden=False))
    return next((name for name in names if name.startswith("-")), "")


def _is_calm(simple: Simple) -> bool:
    """Does nothing around it write, or change how it runs?"""
    for redirect in simple.redirects:
        if opens_file(redirect) and not redirect.target.known:
            return False
        if redirect.writes and not harmless_redirect(redirect):
            return False
        if redirect.operator.startswith("<<") and not _may_be_told(redirect.target):
            return False
    program = simple.words[0].text if simple.words else ""
    return all(harmless_before(program, name, value) for name, value in simple.assigns)


def _may_be_told(text: Word) -> bool:
    """Does the text that it hands over tell no more than `echo` might?"""
    return text.known or text.told or says_numbers(text)


def _may_be_read(path: PathAccess, part: CommandPart, scene: Scene) -> bool:
    if path.real in _STREAMS:
        return True
    finding = part.finding
    if not scene.inside(path.real) or scene.off_limits(path, names_only=finding.names_only):
        return False
    # The sandbox would mask a secret file below it, and may not be there.
    # Git shows what was committed, whatever lies there now; ripgrep leaves hidden files out unless it is told.
    if not finding.deep or part.program == "git":
        return True
    told = any(word.text.startswith(("-u", "-.", "--hidden", "--no-ignore")) for word in part.simple.words)
    return not scene.buries_secret(
        path.real,
        hidden=part.program != "rg" or told,
        unhides=finding.unhides,
        only=finding.only,
        opens=part.program == "find",
    )


Weigh = Callable[[Subject], Sequence[Rule]]
"""The rules of all layers that speak about a call, or about one simple command."""

Bound = Callable[[PathAccess], Sequence[Rule]]
"""The rules about a file, whoever touches it."""

_EXACT_ONLY = frozenset({"watch", "setsid", "ionice", "flock"})
"""What these run is never covered by a pattern (a rule of Claude Code)."""


class Covered(NamedTuple):
    """Is a simple command covered, by what, and if not, why not?"""

    by: str = ""
    rule: str = ""
    lacks: str = ""


def cover(
    part: CommandPart, allowing: Sequence[Rule], bound: Bound, scene: Scene, *, reads_only: bool, development: bool
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
    if (named := exact(allowing, part.forms, known=_is_known(simple))) is not None:
        return Covered(named.text, named.text)
    lacks = _beyond(part, allowing[0], scene) if allowing else _explain_uncovered(part, scene)
    if allowing and not lacks:
        return Covered(allowing[0].text, allowing[0].text)
    if reads_only:
        return Covered("it only reads")
    if plain:
        return Covered("a common development command")
    return Covered(lacks=lacks)


def _by_itself(part: CommandPart, scene: Scene, *, development: bool) -> str:
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


def _is_known(simple: Simple) -> bool:
    return all(word.known for word in simple.words)


def _only_sets(simple: Simple) -> bool:
    """Is it `env` with nothing but variables before a command, which is decided on with these by itself?"""
    words = simple.stripped or simple.words
    if not simple.inside or words[0].text != "env" or not all(word.known for word in (*words, *simple.words)):
        return False
    rest = [word.text for word in words[1:]]
    sets = next((at for at, text in enumerate(rest) if not re.match(r"[A-Za-z_]\w*=", text)), len(rest))
    return bool(sets) and sets < len(rest) and not rest[sets].startswith("-")


def _around(part: CommandPart, bound: Bound, scene: Scene, *, development: bool) -> str:
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


def _is_target(path: PathAccess, text: str, cwd: str | None) -> bool:
    return path.spelled == os.path.normpath(os.path.join(cwd or "/", text))


def _may_write(path: PathAccess, bound: Bound) -> bool:
    """Does a rule allow that this file is written?"""
    rules = bound(path)
    return bool(rules) and all(rule.action == "allow" for rule in rules)


def _explain_uncovered(part: CommandPart, scene: Scene) -> str:
    outside = next((path for path in part.paths if not scene.inside(path.real)), None)
    if part.finding.harmless and outside is not None:
        return f"it reads {outside.spelled}, outside the workspace"
    if part.finding.known and part.finding.doubt:
        return part.finding.doubt
    return "no rule covers it"


def _beyond(part: CommandPart, rule: Rule, scene: Scene) -> str:
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


def _reaches(part: CommandPart, rule: Rule, scene: Scene) -> str:
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


def _is_named(path: PathAccess, rule: Rule, cwd: str) -> bool:
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


def is_common(part: CommandPart, scene: Scene) -> bool:
    """Is it one of the short table of tests, builds and linters?"""
    simple = part.simple
    words = tuple(word.text for word in simple.stripped or simple.words)
    if simple.cwd is None or not words or not all(word.known for word in simple.words):
        return False
    if scene.impostor(simple.words[0].text, simple.cwd) and simple.stripped != simple.words:
        return False
    if not all(_is_setting(name, value, simple.cwd, scene) for name, value in simple.assigns):
        return False
    found = find_environment_command(words, simple.cwd, scene)
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


_MOST = 200
_CHANGES = r"writes|deletes|turns the order|runs a program|is an editor"
_HERE = r"(?:\$PWD|\$\{PWD\}|~\+)(?=/|$)"


class PathCandidate(NamedTuple):
    """A file that a command may touch."""

    path: PathAccess
    whole: bool
    """Is it a whole word or a flag's value? Otherwise it is a piece of a text, which may mean something else."""


def loose(simple: Simple, finding: CommandFinding) -> Iterator[PathCandidate]:
    """The files behind the words of a command that is not known for certain, at most some hundred of them."""
    for redirect in simple.redirects:
        if opens_file(redirect) and not redirect.target.known:
            for text in texts(simple.cwd, redirect.target):
                yield from (PathCandidate(path, whole=True) for path in at(simple.cwd, text, write=redirect.writes))
    if finding.known and not finding.doubt:
        return
    write = re.search(_CHANGES, finding.doubt) is not None
    seen: dict[str, bool] = {}
    for word in (simple.stripped or simple.words)[1 : _MOST + 1]:
        for text in texts(simple.cwd, word):
            for name in _loose_names(text):
                seen[name] = True
            for name in re.findall(r"[\w.~+-]*/[\w./~+-]+", text):
                seen.setdefault(name, False)
    for name, whole in list(seen.items())[: 2 * _MOST]:
        yield from (PathCandidate(path, whole) for path in at(simple.cwd, name, write=write))


def texts(cwd: str | None, word: Word) -> Iterator[str]:
    """What a word may become: with the folder for `$PWD`, and with braces and globs expanded."""
    if word.known:
        yield word.text
        return
    text = re.sub(r"['\"]", "", word.text)
    if cwd is not None:
        text = re.sub(_HERE, cwd, text)
    if re.search(r"[$`]", text):
        return

    try:
        expanded = expand(text)
    except BadGlob:
        return
    for one in expanded[:_MOST]:
        yield one
        if re.search(r"[*?\[]", one):
            yield from expand_glob(cwd, one, hidden=False)


def _loose_names(text: str) -> Iterator[str]:
    """The names that a word may hold: itself, and what stands behind `=`, `@`, `:` or a flag's letter."""
    if not text.startswith("-"):
        yield text
    elif not text.startswith("--") and len(text) > 2:
        yield text[2:]
    head, mark, behind = text.partition("=")
    if mark and not re.search(r"\s", head):
        yield behind.lstrip("@<")
    if text.startswith("@"):
        yield text[1:]
    if ":" in text:
        scheme, _, rest = text.partition("://")
        yield from (os.sep + rest.lstrip("/"),) if scheme == "file" else text.split(":")
