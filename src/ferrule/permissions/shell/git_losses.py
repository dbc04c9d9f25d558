"""Find the git commands that lose something for good: commits of others, and files that no checkpoint keeps.

Commits of others are lost by pushes, which are recognised by their words, by settings and by aliases. Files are
lost by `git clean`.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.git.environment import calm_git, settings_at, top_of
from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.programs import table
from ferrule.permissions.shell.unkept import Unkept, deletes, fits_ignored, spellings, too_large

LOST = "can take commits away from others, which nothing here brings back"
_UNSURE = f"is not certain in all of its words, and {LOST}"
_LATER = "has later pushes take commits away from others, which nothing here brings back"

PUSHES = frozenset({"push", "send-pack", "http-push"})
_FORCES = ("--force", "--force-with-lease", "--mirror", "--delete", "--prune")
_VALUED = frozenset({"-o", "--push-option", "--repo", "--receive-pack", "--exec", "--recurse-submodules"})
_READS_SETTINGS = r"--get.*|-l|--list|--unset.*|--remove-section|--rename-section|-e|--edit"
_SUBS = frozenset({"set", "get", "list", "unset", "edit", "remove-section", "rename-section"})


class Setting(NamedTuple):
    """One setting that is given to git."""

    key: str
    value: str | None
    """None where it is not certain."""

    @property
    def forces(self) -> bool:
        """Does it have a push take commits away?"""
        key, value = self.key.casefold(), self.value
        if re.fullmatch(r"remote\..+\.mirror", key):
            return value is None or value.casefold() not in {"false", "no", "off", "0"}
        return bool(re.fullmatch(r"remote\..+\.push", key)) and (value is None or value.startswith(("+", ":")))


def setting(word: Word) -> Setting:
    """The setting that a word gives, as behind `-c`."""
    text = word.text if word.known else word.start
    key, joint, value = text.partition("=")
    return Setting(key, (value if joint else "true") if word.known else None)


def push_loss(words: Sequence[Word], given: Sequence[Setting], folder: str, roots: Sequence[str]) -> str:
    """Others may have the commits that it throws away, and nothing here brings them back there."""
    operands: list[Word] = []
    forced, unsure, is_dry = False, False, False
    rest = list(words)
    while rest:
        word = rest.pop(0)
        text = word.text if word.known else word.start
        if text in _VALUED and word.known:
            del rest[:1]
        elif not text:
            unsure = True
        elif text.startswith("--") and len(text) > 2:  # git takes a flag also by its beginning
            flag = text.partition("=")[0]
            if len(flag) > 3 and re.fullmatch(r"--(?:no-)?d.*", flag):
                is_dry = "--dry-run".startswith(flag) or (is_dry and not "--no-dry-run".startswith(flag))
            forced |= any(one.startswith(flag) for one in _FORCES)
        elif text.startswith("-"):
            letters = text[1:].partition("o")[0]
            is_dry |= "n" in letters
            forced |= bool(re.search("[fd]", letters)) or not word.known
        else:
            # One colon alone pushes the branches that both sides have.
            forced |= text.startswith(("+", ":")) and (len(text) > 1 or not word.known)
            operands.append(word)
    if is_dry:
        return ""
    if forced or any(one.forces or not one.key for one in given):
        return LOST
    if unsure:
        return _UNSURE
    return LOST if any(one.forces for one in _push_settings(operands, folder, roots)) else ""


def _push_settings(operands: Sequence[Word], folder: str, roots: Sequence[str]) -> Iterator[Setting]:
    """The settings that the repository and the user have for where it pushes to."""
    found = [Setting(key, value) for key, value in settings_at(folder, outside=roots)]
    names = {one.key.split(".", 1)[1].rpartition(".")[0] for one in found if one.key.startswith("remote.")}
    named = operands[0].text if operands and operands[0].known and operands[0].text in names else ""
    for one in found:
        if one.forces and (not named or one.key.startswith(f"remote.{named}.")):
            yield one


def alias_of(name: str, given: Sequence[Setting], folder: str, roots: Sequence[str]) -> str:
    """What a sub-command that is not git's own stands for; empty where it stands for nothing."""
    wanted = f"alias.{name}".casefold()
    for one in given:
        if one.key.casefold() == wanted:
            return one.value or ""
    found = [value for key, value in settings_at(folder, outside=roots) if key.casefold() == wanted]
    return found[-1] if found else ""


def config_loss(words: Sequence[Word]) -> str:
    """A setting that makes pushes of it later; `words` stand behind `config`."""
    if any(re.fullmatch(_READS_SETTINGS, word.text) for word in words):
        return ""
    operands = [word for word in words if not word.text.startswith("-")]
    if operands and operands[0].text in _SUBS and operands.pop(0).text != "set":
        return ""
    if len(operands) < 2:
        return ""
    key, value = operands[0], operands[1]
    made = Setting(key.text, value.text if value.known else value.start or None)
    if made.forces:
        return _LATER
    if made.key.casefold().startswith("alias.") and made.value and _pushes(made.value):
        return _LATER
    return ""


def _pushes(alias: str) -> bool:
    """Does an alias stand for a push that takes commits away?"""
    words = split(alias.removeprefix("!git ").removeprefix("!"))
    return bool(words) and words[0].text in PUSHES and bool(push_loss(words[1:], (), "", ()))


def remote_loss(words: Sequence[Word]) -> str:
    """A remote that is made a mirror; `words` stand behind `remote`."""
    texts = [word.text for word in words]
    mirrors = any(re.fullmatch(r"--mirror(?:=push)?", text) for text in texts)
    return _LATER if texts[:1] == ["add"] and mirrors else ""


def split(text: str) -> list[Word]:
    """The words of an alias, as git splits them."""
    try:
        return [Word(one, single=True) for one in shlex.split(text)]
    except ValueError:
        return [Word(one, single=True) for one in text.split()]


_SECONDS = 10
_MOST = 200
_TELLS, _FAILED = frozenset({0, 1}), 128
"""The exit codes of git."""


class _CleanArguments(NamedTuple):
    letters: str
    kept: tuple[str, ...]
    """The patterns behind `-e`."""
    operands: tuple[Word, ...]


def clean_loss(words: Sequence[Word], cwd: str, unkept: Unkept) -> str:
    """What is lost, as the end of a sentence; `words` stand behind `clean`."""
    said = _parse_clean_arguments(words)
    if "n" in said.letters:
        return ""
    # With `-X` the patterns say what to delete as well.
    kept = () if "X" in said.letters else said.kept
    takes_folders = "d" in said.letters or bool(said.operands)
    top = top_of(cwd) or cwd
    is_sure = all(word.known or word.glob for word in said.operands)
    for place in _places(said.operands, cwd, top):

        def keeps(path: str) -> bool:
            is_left = not takes_folders and os.path.isdir(path) and unkept.left_out(path)
            return is_left or os.path.basename(path) == ".git" or fits_ignored(path, top, kept)

        is_one = os.path.lexists(place) and unkept.left_out(place)
        found = [place] if is_one and not keeps(place) else unkept.every(place, keeps=keeps, most=_MOST)
        if cleaned := _find_deleted(found, top, said.letters, unkept.roots):
            return deletes(cleaned, is_sure=is_sure)
        if not found and re.search("[xX]", said.letters) and unkept.below(place, keeps=keeps).is_cut:
            return too_large(place)
    return ""


def _parse_clean_arguments(words: Sequence[Word]) -> _CleanArguments:
    letters, kept, operands = "", list[str](), list[Word]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        text = word.text if word.known else word.start
        if text == "--":
            operands += rest
            break
        if text.startswith("--"):
            flag, joint, value = text.partition("=")
            if len(flag) > 3 and "--exclude".startswith(flag):
                kept.append(value if joint or not rest else rest.pop(0).text)
            letters += "n" if len(flag) > 3 and "--dry-run".startswith(flag) else ""
        elif text.startswith("-") and len(text) > 1:
            before, mark, value = text[1:].partition("e")
            letters += before
            if mark:
                kept.append(value if value or not rest else rest.pop(0).text)
        else:
            operands.append(word)
    return _CleanArguments(letters, tuple(one for one in kept if not one.startswith("!")), tuple(operands))


def _places(operands: Sequence[Word], cwd: str, top: str) -> list[str]:
    """The folders and files that it is told to look at; where a word may mean others, the whole repository."""
    if not operands:
        return [os.path.realpath(cwd)]
    places: list[str] = []
    for word in operands:
        named = list(spellings(cwd, word))
        if not named or any(re.search(r"[*?\[]|^:", text) for text in (named if word.known else ())):
            return [top]
        places += [os.path.realpath(os.path.join(cwd, text)) for text in named]
    return places


def _find_deleted(paths: Sequence[str], top: str, letters: str, roots: Sequence[str]) -> str:
    """The first of these that git would delete: it is not tracked, and as much ignored as the letters say."""
    git = calm_git(outside=roots)
    if git is None or not paths:
        return paths[0] if paths and re.search("[xX]", letters) else ""
    names = [os.path.relpath(path, top) for path in paths]
    tracked = _run_git([*git, "ls-files", "-z", "--", *(f":(literal){name}" for name in names)], top)[1].split("\0")
    code, said = _run_git([*git, "check-ignore", "-z", "--no-index", "--stdin"], top, "\0".join(names))
    # Where git cannot tell, all are: what a tool makes is ignored nearly everywhere.
    ignored = set(said.split("\0")) if code in _TELLS else set(names)
    for path, name in zip(paths, names, strict=True):
        if any(one == name or one.startswith(f"{name}/") for one in tracked):
            continue
        if "x" in letters or (name in ignored) == ("X" in letters):
            return path
    return ""


def _run_git(words: Sequence[str], cwd: str, given: str = "") -> tuple[int, str]:
    try:
        ran = subprocess.run(
            words,
            cwd=cwd,
            input=given,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return _FAILED, ""
    return ran.returncode, ran.stdout


_GIT_VALUE_OPTIONS = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--attr-source"}
)
_MOST_ALIASES = 5
_IN_ENVIRONMENT = r"GIT_CONFIG_KEY_\d+|GIT_CONFIG_PARAMETERS|GIT_CONFIG_GLOBAL|GIT_CONFIG_SYSTEM|GIT_CONFIG"


class _GitInvocation(NamedTuple):
    folder: str
    settings: tuple[Setting, ...]
    rest: tuple[Word, ...]
    """The sub-command and all behind it."""


def git_loss(
    words: Sequence[Word], environment: Mapping[str, str], cwd: str, unkept: Unkept, *, line: Callable[[str, str], str]
) -> str:
    """What is lost, as the end of a sentence; `words` stand behind the program, `line` judges a line of the shell."""
    given = _parse_git_options(words, cwd, [Setting(name, None) for name in _from_environment(environment)])
    folder, settings, rest = given
    for _ in range(_MOST_ALIASES):
        name = rest[0].text if rest else ""
        if not name or not rest[0].known or f"git {name}" in table() or name in PUSHES:
            break
        alias = alias_of(name, settings, folder, unkept.roots)
        if alias.startswith("!"):
            return line(" ".join([alias[1:], *(word.text for word in rest[1:])]), folder)
        if not alias:
            break
        folder, more, rest = _parse_git_options([*split(alias), *rest[1:]], folder, settings)
        settings = more
    if not rest:
        return ""
    name, behind = rest[0].text, rest[1:]
    if name == "subtree" and behind and behind[0].text == "push":
        name, behind = "push", behind[1:]
    if name in PUSHES:
        return push_loss(behind, settings, folder, unkept.roots)
    if name == "clean":
        return clean_loss(behind, folder, unkept)
    return {"config": config_loss, "remote": remote_loss}.get(name, lambda _: "")(behind)


def _parse_git_options(words: Sequence[Word], folder: str, settings: Sequence[Setting]) -> _GitInvocation:
    found = list(settings)
    rest = list(words)
    while rest and (rest[0].text if rest[0].known else rest[0].start).startswith("-"):
        word = rest.pop(0)
        text = word.text if word.known else word.start
        flag, joint, joined = text.partition("=")
        value = rest.pop(0) if text in _GIT_VALUE_OPTIONS and rest else None
        if flag == "-C" and value is not None and value.known:
            folder = os.path.join(folder, value.text)
        elif flag == "-c" and value is not None:
            found.append(setting(value))
        elif flag == "--config-env":
            key = joined if joint else value.text if value is not None else ""
            found.append(Setting(key.rpartition("=")[0], None))
        elif re.match(r"-c[A-Za-z]", text):
            found.append(setting(word._replace(text=word.text[2:], start=word.start[2:])))
    return _GitInvocation(folder, tuple(found), tuple(rest))


def _from_environment(environment: Mapping[str, str]) -> list[str]:
    """The keys of settings that variables give to git; an empty one where it is not known which."""
    found: list[str] = []
    for name, value in environment.items():
        if re.fullmatch(_IN_ENVIRONMENT, name):
            named = re.findall(r"remote\.[^'\"=]+", value, re.IGNORECASE)
            found += named or ([] if "KEY" in name and "$" not in value else [""])
    return found
