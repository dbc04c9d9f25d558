"""Which keys of a repository's settings a change touches, and whether one of them can run something.

Git itself reads the two versions (`git config --file`), from copies, with no includes: no parser of ours can differ
from it. Where git cannot be asked, every change counts as harmful.
"""

import os
import re
import subprocess
import tempfile

from ferrule.system.environment import program_on_path

_SECONDS = 10
_HARMLESS = re.compile(
    r"""
    branch\..+\.(?:remote|pushremote|merge|mergeoptions|rebase|description|autosetuprebase)
    | remote\..+\.(?:url|pushurl|fetch|push|tagopt|mirror|prune|skipdefaultupdate|partialclonefilter|promisor)
    | remote\.pushdefault
    | user\.(?:name|email|signingkey|useconfigonly)
    | submodule\..+\.(?:url|active|branch|shallow)
    | submodule\.active
    | core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol
        |safecrlf|sparsecheckout|sparsecheckoutcone|abbrev|quotepath|compression|longpaths|protectntfs|protecthfs)
    | extensions\.(?:objectformat|refstorage|partialclone|worktreeconfig|compatobjectformat)
    | init\.defaultbranch
    | pull\.(?:rebase|ff) | push\.(?:default|autosetupremote|followtags) | fetch\.(?:prune|parallel)
    | merge\.(?:ff|conflictstyle) | rebase\.(?:autosquash|autostash) | rerere\.(?:enabled|autoupdate)
    | color\..+ | advice\..+ | status\..+ | gc\.(?:auto|autodetach) | lfs\.repositoryformatversion
    """,
    re.VERBOSE | re.IGNORECASE,
)
_RUNS = re.compile(r"(?:^|[^:/]):{2}|^\s*-|[\x00-\x1f\x7f]|^\s*!")
"""A value that a transport or git would run: `ext::sh -c …`, an option, a command."""


def harmful_keys(before: bytes, now: bytes) -> list[str]:
    """The keys that a change adds or alters and that might run something; `["?"]` where that cannot be told."""
    old, new = _entries(before), _entries(now)
    if old is None or new is None:
        return ["?"]
    changed = set(new) - set(old)
    return sorted({key for key, value in changed if not _HARMLESS.fullmatch(key) or _RUNS.search(value)})


def without(before: bytes, now: bytes, keys: list[str]) -> bytes:
    """The new settings with these keys as they were before; the old ones where git cannot do that."""
    git = program_on_path("git")
    old = _entries(before)
    if git is None or old is None or "?" in keys:
        return before
    with tempfile.NamedTemporaryFile(prefix="ferrule-", suffix=".config") as file:
        file.write(now)
        file.flush()
        for key in keys:
            rows = [["--unset-all", key], *(["--add", key, value] for name, value in old if name == key)]
            for row in rows:
                if _git(git, file.name, *row) is None:
                    return before
        with open(file.name, "rb") as changed:  # git has put another file there
            kept = changed.read()
    return kept if not harmful_keys(before, kept) else before


def _git(git: str, path: str, *words: str) -> bytes | None:
    """What `git config` says of one file; None where it fails. It reads no other settings and runs nothing."""
    try:
        ran = subprocess.run(
            [git, "config", "--file", path, *words],
            cwd=os.sep,
            env={"PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": os.devnull},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return ran.stdout if ran.returncode == 0 else None


def _entries(data: bytes) -> set[tuple[str, str]] | None:
    """All keys with their values, as git reads them; None where it does not."""
    if not data.strip():
        return set()
    git = program_on_path("git")
    if git is None or b"\0" in data:
        return None
    with tempfile.NamedTemporaryFile(prefix="ferrule-", suffix=".config") as file:
        file.write(data)
        file.flush()
        said = _git(git, file.name, "--no-includes", "--list", "-z")
    if said is None:
        return None
    rows = said.decode("utf-8", "surrogateescape").split("\0")
    return {(key, value) for row in rows if row for key, _, value in [row.partition("\n")]}
