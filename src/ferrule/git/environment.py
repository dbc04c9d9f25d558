"""Run git without running what a repository's own settings name, and judge changes of those settings.

Settings of a repository name programs: monitors, filters, converters, hooks, helpers. A user who unpacks an
archive with a `.git` in it has such settings without having read them. Variables of the environment count more
than any file of settings, so each program is switched off by name. The names of filters and drivers can be
anything: git itself is asked for them first, which runs nothing. The user's own settings (`~/.gitconfig`, the
system's, variables) stay; if a repository has overwritten one, the user's value comes back.

A setting that is planted between the look and the start is not seen. The sandbox that confines commands covers
that moment.

Git itself reads the two versions (`git config --file`), from copies, with no includes: no parser of ours can differ
from it. Where git cannot be asked, every change counts as harmful.
"""

import asyncio
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.files.jail import Jail
from ferrule.system.environment import lies_in, program_on_path
from ferrule.system.run import pipe

_SECONDS = 10.0
_MOST_BYTES = 32 << 20
_MOST_REPOSITORIES = 500
_MOST_KEYS = 1000
"""A variable for each of more would not fit beside a command's arguments."""
_BLOCK_BYTES = 1 << 20
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of an entry that is another repository. Where these bytes are nowhere in an index it has none."""

_ALWAYS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    # Git would go into repositories that the history names, and not only those that are found here.
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    # A folder that looks like a repository is none.
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
)
_VARIABLES = {
    "GIT_OPTIONAL_LOCKS": "0",
    # A repository may lack objects and say where to fetch them, and with what.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}

_DIFFERS = (
    "f() {{ if [ $# -lt 7 ]; then printf '* Unmerged path %s\\n' \"$1\"; return 0; fi;"
    ' printf \'diff --git a/%s b/%s\\n\' "$1" "$1"; {diff} -u -L "a/$1" -L "b/$1" "$2" "$5"; [ $? -lt 2 ]; }}; f'
)
_CONVERTS = (
    'f() {{ if [ ! -s "$1" ] || LC_ALL=C {grep} -qI "" "$1"; then {cat} "$1";'
    " else printf 'Binary content '; {cksum} < \"$1\"; fi; }}; f"
)
"""What stands for a program that cannot be switched off: without a value git only fails."""
_OFF: Mapping[tuple[str, str], str] = {
    ("core", "fsmonitor"): "false",
    ("core", "pager"): "cat",
    ("core", "sshcommand"): "ssh",
    ("core", "askpass"): "",
    ("core", "editor"): "true",
    ("core", "gitproxy"): "none",
    ("core", "alternaterefscommand"): "true",
    ("sequence", "editor"): "true",
    ("interactive", "difffilter"): "cat",
    ("credential", "helper"): "",
    ("log", "showsignature"): "false",
    ("gpg", "defaultkeycommand"): "",
    ("diff", "external"): _DIFFERS,
    ("diff", "command"): _DIFFERS,
    ("diff", "textconv"): _CONVERTS,
    ("diff", "cachetextconv"): "false",
    ("filter", "clean"): "",
    ("filter", "smudge"): "",
    ("filter", "process"): "",
    ("filter", "required"): "false",
    # `log --diff-merges=remerge` merges.
    ("merge", "driver"): "{git} merge-file -q %A %O %B",
}
"""Section and name of a setting → what git does as if nobody had set it."""
_NEEDED = ("diff", "grep", "cat", "cksum", "git")
_QUIETLY = frozenset({"core", "alias", "credential", "sequence", "interactive", "pager"})
"""Sections whose programs make no difference to what a command that reads tells."""


class UnsafeError(Exception):
    """Git is not to look there, for what its settings would have it do is not known; why, as the end of a sentence."""


class Hardened(NamedTuple):
    """What to run git with."""

    env: dict[str, str]
    without: tuple[str, ...] = ()
    """Settings of the repository that would have made a difference to what git tells."""


class _Repository(NamedTuple):
    """What git says of one."""

    top: str
    """Empty where there is no work tree."""
    index_file: str
    entries: tuple[tuple[str, str, str], ...]
    """Scope, key and value of all settings, in their order."""


async def harden(
    folders: Sequence[str],
    env: Mapping[str, str],
    *,
    outside: Sequence[str] = (),
    more: Sequence[tuple[str, str]] = (),
) -> Hardened:
    """The variables with which a git that starts in these folders runs nothing of a repository's choice.

    `env` is what else is in its environment. No program is taken from a folder of `outside`. `more` are settings to
    add. Raises `UnsafeError`.
    """
    git = program_on_path("git", outside=outside)
    if git is None:
        return Hardened(_variables(env, [*_ALWAYS, *more]))
    calm = {**env, **_variables(env, [*_ALWAYS, *more])}
    keys: dict[str, str] = {}
    without: dict[str, None] = {}
    left, seen = [os.path.realpath(folder) for folder in folders], set[str]()
    while left:
        folder = left.pop()
        if folder in seen:
            continue
        seen.add(folder)
        if len(seen) > _MOST_REPOSITORIES:
            raise UnsafeError(f"there are more than {_MOST_REPOSITORIES} repositories in one another")
        found = await _look(git, folder, calm)
        if found is None:
            continue
        _check_work_tree(found, folder, outside)
        own, foreign = _split_settings(found.entries)
        switched = {key: own.get(key, off) for key in foreign if (off := _off(key, outside)) is not None}
        keys |= switched | _checkers(own, outside)
        without |= {key: None for key in switched if key.partition(".")[0] not in _QUIETLY}
        if len(keys) > _MOST_KEYS:
            raise UnsafeError(f"the settings of the repository name more than {_MOST_KEYS} programs")
        left += await _inner(git, found, calm)
    return Hardened(_variables(env, [*_ALWAYS, *keys.items(), *more]), tuple(without))


async def find_ignored(
    folder: str, paths: Sequence[str], env: Mapping[str, str], *, outside: Sequence[str] = ()
) -> set[str]:
    """Those of some files below a folder that git ignores by the rules of the repository there, which runs nothing."""
    git = program_on_path("git", outside=outside)
    if git is None:
        return set()
    calm = {**env, **_variables(env, _ALWAYS)}
    names = b"\0".join(os.fsencode(path) for path in paths)
    words = ("check-ignore", "--no-index", "--stdin", "-z")
    try:
        said = await pipe([git, *words], names, cwd=folder, env=calm, seconds=_SECONDS, limit_bytes=_MOST_BYTES)
    except OSError:
        return set()
    return {os.fsdecode(name) for name in said.stdout.split(b"\0")}


def top_of(folder: str) -> str:
    """The folder with the `.git` that git would find from here, or nothing."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        if os.path.dirname(folder) == folder:
            return ""
        folder = os.path.dirname(folder)
    return folder


def _variables(env: Mapping[str, str], values: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The settings as variables, after those that the user has there already."""
    given = env.get("GIT_CONFIG_COUNT", "")
    first = int(given) if re.fullmatch(r"[0-9]{1,3}", given) else 0
    if not all(f"GIT_CONFIG_{part}_{number}" in env for number in range(first) for part in ("KEY", "VALUE")):
        first = 0  # git would refuse to run
    out = {**_VARIABLES, "GIT_CONFIG_COUNT": str(first + len(values))}
    for number, (key, value) in enumerate(values, first):
        out |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return out


async def _ask_git(git: str, folder: str, env: Mapping[str, str], *words: str) -> tuple[int, bytes]:
    try:
        said = await pipe([git, *words], b"", cwd=folder, env=env, seconds=_SECONDS, limit_bytes=_MOST_BYTES)
    except OSError as error:
        raise UnsafeError("git cannot be asked for the settings of the repository") from error
    if said.stopped:
        raise UnsafeError("the settings of the repository cannot be read")
    return said.exit_code, said.stdout


async def _look(git: str, folder: str, env: Mapping[str, str]) -> _Repository | None:
    """What git finds from a folder; None where that is no repository, and nothing of one is obeyed."""
    if not os.path.isdir(folder):
        return None
    (lost, where), (code, said) = await asyncio.gather(
        _ask_git(git, folder, env, "rev-parse", "--path-format=absolute", "--git-path", "index", "--show-toplevel"),
        _ask_git(git, folder, env, "config", "--list", "--show-scope", "-z"),
    )
    places = os.fsdecode(where).split("\n")[:-1]
    if not places:
        return None
    if code or len(places) > 2 or (not lost and len(places) < 2):
        raise UnsafeError("the settings of the repository cannot be read")
    parts = said.decode(errors="surrogateescape").split("\0")
    entries = tuple(
        (scope, key, value)
        for scope, setting in zip(parts[::2], parts[1::2], strict=False)
        for key, _, value in (setting.partition("\n"),)
    )
    # Inside of `.git`, or where there are no files, it tells only the first.
    return _Repository("" if lost else places[1], places[0], entries)


def _check_work_tree(found: _Repository, folder: str, roots: Sequence[str]) -> None:
    """Settings may say that the files are those of another folder, which would be compared and printed."""
    is_set = any(key == "core.worktree" and _is_foreign(scope) for scope, key, _ in found.entries)
    if not is_set or not found.top:
        return
    if not lies_in(folder, [found.top]) or (lies_in(folder, roots) and not lies_in(found.top, roots)):
        raise UnsafeError("the settings of the repository lead to files of another folder (core.worktree)")


def _is_foreign(scope: str) -> bool:
    return scope not in {"system", "global", "command"}


def _split_settings(entries: Sequence[tuple[str, str, str]]) -> tuple[dict[str, str], dict[str, None]]:
    """The user's own settings with their values, and the keys of those that come with the repository."""
    own = {key: value for scope, key, value in entries if not _is_foreign(scope)}
    return own, {key: None for scope, key, _ in entries if _is_foreign(scope)}


def _checkers(own: Mapping[str, str], outside: Sequence[str]) -> dict[str, str]:
    """The programs that check signatures: a format among the settings of a repository is enough to have them run."""
    usual = {"gpg.program": "gpg", "gpg.x509.program": "gpgsm", "gpg.ssh.program": "ssh-keygen"}
    found = {key: own.get(key) or program_on_path(name, outside=outside) or os.devnull for key, name in usual.items()}
    return {**found, "gpg.openpgp.program": own.get("gpg.openpgp.program") or found["gpg.program"]}


def _off(key: str, outside: Sequence[str]) -> str | None:
    section, _, rest = key.partition(".")
    name = rest.rpartition(".")[2]
    if section == "alias":
        return ""
    off = _OFF.get((section, name))
    if off is None or "{" not in off:
        return off
    # The program is the system's: one in the workspace could be anybody's.
    needed = {one: program_on_path(one, outside=outside) for one in _NEEDED if f"{{{one}}}" in off}
    if not all(needed.values()):
        return ""
    return off.format(**{one: shlex.quote(path or "") for one, path in needed.items()})


async def _inner(git: str, found: _Repository, env: Mapping[str, str]) -> list[str]:
    """The repositories among its files that git goes into by itself."""
    if not found.top or not await asyncio.to_thread(_may_hold, found.index_file):
        return []
    code, said = await _ask_git(git, found.top, env, "ls-files", "--stage", "-z")
    if code:
        raise UnsafeError("the index of the repository cannot be read")
    names = [entry.partition(b"\t")[2] for entry in said.split(b"\0") if entry.startswith(b"160000 ")]
    paths = [os.path.join(found.top, os.fsdecode(name)) for name in dict.fromkeys(names)]
    return [path for path in paths if os.path.lexists(os.path.join(path, ".git"))]


def _may_hold(index: str) -> bool:
    """May the index name other repositories? Looking for the bytes is much cheaper than a list of all files."""
    folder = os.path.dirname(index)
    try:
        shared = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("sharedindex.")]
        return any(_holds(path) for path in (index, *shared) if os.path.lexists(path))
    except OSError:
        return True


def _holds(path: str) -> bool:
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        before = b""
        while block := file.read(_BLOCK_BYTES):
            if _GITLINK in before + block:
                return True
            before = block[1 - len(_GITLINK) :]
    return False


_GIT_SETTINGS_SECONDS = 10
_CALM = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "submodule.recurse=false")
"""What would run something of the repository's choice while git only looks."""


def calm_git(*, outside: Sequence[str]) -> list[str] | None:
    """The words that begin a git that only looks; None where there is none outside of these folders."""
    git = program_on_path("git", outside=outside)
    return None if git is None else [git, "--no-optional-locks", *(word for one in _CALM for word in ("-c", one))]


def settings_at(folder: str, *, outside: Sequence[str]) -> list[tuple[str, str]]:
    """Every key with its value, in the order of their weight; sections and names are in small letters."""
    git = program_on_path("git", outside=outside)
    if git is None or not os.path.isdir(folder):
        return []
    try:
        ran = subprocess.run(
            [git, "config", "--list", "-z"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SETTINGS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = ran.stdout.decode(errors="surrogateescape").split("\0")
    return [(key, value) for row in rows if row for key, _, value in [row.partition("\n")]]


_SHOWN = 5


async def git_variables(command: str, cwd: str, ctx: Context, env: Mapping[str, str]) -> dict[str, str]:
    """What a command line has to find in its environment, beside `env`, for the git in it.

    Nothing where there is none, or where the line was let in for more than reading: what a person or a rule has
    allowed runs as it does outside. Raises `ToolFailure`.
    """
    decided = (one for one in ctx.touches if one.kind == "command" and (one.key, one.folder) == (command, cwd))
    folders = next((one.git for one in decided), "")
    return await calm_git_environment(folders.split("\0"), ctx, env) if folders else {}


async def calm_git_environment(
    folders: Sequence[str], ctx: Context, env: Mapping[str, str], more: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """The same for a git that starts in these folders, whatever it was let in for; `more` are settings to add."""
    try:
        made = await harden(folders, env, outside=[root.path for root in ctx.need(Jail).roots], more=more)
    except UnsafeError as error:
        raise ToolFailure(
            f"Git was not run, for {error}. The user can look at it, or run it outside of Ferrule.",
            code="unsafe-repository",
        ) from error
    if made.without:
        more_keys = f" and {len(made.without) - _SHOWN} more" * (len(made.without) > _SHOWN)
        ctx.note(
            f"Git ran without what the repository's own settings name ({', '.join(made.without[:_SHOWN])}{more_keys}): "
            "files with filters may seem changed. In the user's ~/.gitconfig they would be obeyed."
        )
    return made.env


_CONFIG_SECONDS = 10
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
            timeout=_CONFIG_SECONDS,
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
