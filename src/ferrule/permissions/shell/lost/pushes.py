"""Which git takes commits away from others: pushes, by their words, by settings, and by the names of aliases."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.permissions.shell.line import Word
from ferrule.support.git_settings import settings_at

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


def lost_by_push(words: Sequence[Word], given: Sequence[Setting], folder: str, roots: Sequence[str]) -> str:
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
    return LOST if any(one.forces for one in _obeyed(operands, folder, roots)) else ""


def _obeyed(operands: Sequence[Word], folder: str, roots: Sequence[str]) -> Iterator[Setting]:
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


def lost_by_config(words: Sequence[Word]) -> str:
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
    return bool(words) and words[0].text in PUSHES and bool(lost_by_push(words[1:], (), "", ()))


def lost_by_remote(words: Sequence[Word]) -> str:
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
