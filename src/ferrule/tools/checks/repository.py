"""What the settings of a repository would have git run or look at, so that a look at its changes does none of it.

Git hands every changed file to the filters that its settings name. Flags and variables turn off all other programs; a
filter is only turned off by its name, and the names are in files that come with the repository.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

_MOST_BYTES = 1 << 18
_MOST_FILTERS = 50
_SECTION = r'(?i)\[filter\s+"((?:[^"\\\n]|\\.)*)"\s*\]|\[filter\.([^\]\s]+)\]'
_INCLUDE = r"(?i)\[include(?:if)?[\s.\]]"
_WORK_TREE = r"(?im)^\s*(?:\[core\]\s*)?worktree\s*=\s*(.*?)\s*$"
_OFF = (
    ("core.fsmonitor", "false"),
    ("core.quotePath", "false"),
    ("core.hooksPath", os.devnull),
    ("diff.noprefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("diff.submodule", "short"),
)


class Obeyed(NamedTuple):
    """What has to be known of the settings of a repository."""

    filters: tuple[str, ...] = ()
    why_unsafe: str = ""
    """Why git is not to look there, as the end of a sentence."""


def environment(filters: tuple[str, ...]) -> dict[str, str]:
    """The variables with which git runs nothing of the repository's choice, and takes nothing from the network."""
    values = [*_OFF]
    for name in filters:
        values += [(f"filter.{name}.{key}", value) for key, value in (("clean", ""), ("process", ""))]
        values.append((f"filter.{name}.required", "false"))
    out = {
        "LC_ALL": "C",  # what it complains of is read
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_COUNT": str(len(values)),
    }
    for number, (key, value) in enumerate(values):
        out |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return out


def top_of(folder: str) -> str:
    """The folder with the `.git` that git would find from here, or nothing."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        if os.path.dirname(folder) == folder:
            return ""
        folder = os.path.dirname(folder)
    return folder


def settings(top: str) -> Obeyed:
    """The settings of the repository whose `.git` is in this folder."""
    filters: dict[str, None] = {}
    try:
        git = _git_folder(os.path.join(top, ".git"))
        for text in _texts(git):
            if re.search(_INCLUDE, text):
                return Obeyed(why_unsafe="the settings of the repository take in other files")
            for tree in re.findall(_WORK_TREE, text):
                if os.path.realpath(os.path.join(git, tree.strip('"'))) != os.path.realpath(top):
                    return Obeyed(why_unsafe="the settings of the repository lead to files of another folder")
            for quoted, plain in re.findall(_SECTION, text):
                filters[re.sub(r"\\(.)", r"\1", quoted) or plain] = None
    except (OSError, ValueError):
        return Obeyed(why_unsafe="the settings of the repository cannot be read")
    if len(filters) > _MOST_FILTERS:
        return Obeyed(why_unsafe=f"the settings of the repository name more than {_MOST_FILTERS} filters")
    return Obeyed(tuple(filters))


def _git_folder(git: str) -> str:
    if os.path.isdir(git):
        return git
    return os.path.join(os.path.dirname(git), _read(git).removeprefix("gitdir:").strip())


def _texts(git: str) -> Iterator[str]:
    """The settings themselves. A work tree shares them with the repository that it belongs to."""
    shared = os.path.join(git, "commondir")
    common = os.path.join(git, _read(shared).strip()) if os.path.lexists(shared) else git
    for path in dict.fromkeys((os.path.join(common, "config"), os.path.join(git, "config.worktree"))):
        if os.path.lexists(path):
            yield _read(path)


def _read(path: str) -> str:
    with open(path, "rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ValueError(path)
    # A line that goes on in the next is one line.
    return raw.decode(errors="surrogateescape").replace("\r\n", "\n").replace("\\\n", "")
