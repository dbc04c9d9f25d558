"""Whose settings git would obey in a folder."""

import os
import re
from collections.abc import Sequence

_WORK_TREE = r"(?im)^\s*(?:\[core\]\s*)?worktree\s*=\s*(.*?)\s*$"
_MOST_CHARS = 1 << 18


def known_repository(cwd: str, words: Sequence[str]) -> bool:
    """Will git find its settings in a `.git`, which no tool may write, and not in files that look like a repository?"""
    folder = cwd
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return not _leads_away(git, folder)
        if os.path.lexists(git):
            return _leads_to_git(git)
        # Git takes a HEAD that leads nowhere too, and may find the rest through a pointer in `commondir`.
        if os.path.lexists(os.path.join(folder, "HEAD")) and any(
            os.path.lexists(os.path.join(folder, name)) for name in ("objects", "refs", "commondir", "config")
        ):
            return False
        if os.path.dirname(folder) == folder:
            # Without a repository `git diff` compares any two files or folders, and prints them.
            return "diff" not in words or all(word.startswith("-") for word in words[words.index("diff") + 1 :])
        folder = os.path.dirname(folder)


def _leads_to_git(file: str) -> bool:
    """Does the pointer of a work tree or a submodule lead into a `.git` folder?"""
    if not os.path.isfile(file):
        return False
    with open(file, encoding="utf-8", errors="replace") as pointer:
        target = pointer.read(4096).removeprefix("gitdir:").strip()
    git = os.path.realpath(os.path.join(os.path.dirname(file), target))
    return ".git" in git.split(os.sep) and not _leads_away(git, os.path.dirname(file))


def _leads_away(git: str, top: str) -> bool:
    """Do the settings say that the files are those of another folder, which git would compare and print?

    Only what stands there plainly is seen; whoever starts git asks git itself.
    """
    for name in ("config", "config.worktree"):
        try:
            with open(os.path.join(git, name), encoding="utf-8", errors="replace") as file:
                text = file.read(_MOST_CHARS)
        except OSError:
            continue
        if "worktree" not in text.lower():
            continue
        for tree in re.findall(_WORK_TREE, text):
            if os.path.realpath(os.path.join(git, tree.strip('"'))) != os.path.realpath(top):
                return True
    return False
