"""Build the environment of commands, and find programs outside the workspace."""

import contextlib
import errno
import os
import re
import signal
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.access import within

# Patterns stay text until the first use: compiling them would be paid by every start of the program.
_INJECTED = (
    r"BASH_ENV|ENV|PROMPT_COMMAND|PS4|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|CDPATH|GLOBIGNORE|LD_PRELOAD|LD_AUDIT"
    r"|DYLD_INSERT_LIBRARIES|PYTHONINSPECT|SUDO_ASKPASS|FORCE_COLOR|CLICOLOR_FORCE|COLORTERM"
)
_TELLING = (
    r"(?i)(?:.*[^A-Z0-9])?"
    r"(?:[A-Z0-9]*(?:TOKENS?|SECRETS?|PASSW(?:OR)?DS?|PASSPHRASE|CREDENTIALS?|APIKEYS?)|(?:ACCESS|SECRET|PRIVATE)?KEYS?"
    r"|PASS|PWD|CREDS?|AUTH(?:ORIZATION)?|BEARER|JWT|PAT|DSN|COOKIES?)(?:[^A-Z0-9].*)?"
)
_SECRETS = (
    r"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/\s:@]*:[^/\s@]+@(?!(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/?\s]|\Z))\S"
    r"|(?:gh[opsur]_|github_pat_|glpat-|xox[abeprs]-|sk-(?:ant|proj|or)-|[rs]k_live_|hf_|npm_|pypi-|dop_v1_"
    r"|shpat_|ya29\.|SG\.|AGE-SECRET-KEY-1)[A-Za-z0-9_-]{16}|\bsk-[A-Za-z0-9]{40}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""How values look that are secrets whatever they are called: passwords in addresses, known tokens, keys.

What opens only this machine's own services is left: a project's tests may need it.
"""
_QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "PSQL_PAGER": "cat",
    "AWS_PAGER": "",
    "GH_PAGER": "cat",
    "BAT_PAGER": "cat",
    "DELTA_PAGER": "cat",
    # What is started by its name pages all the same: at the end of the text it leaves.
    "LESS": "-FRXE",
    "MORE": "-e",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1",
    "PIP_NO_INPUT": "1",
    # Even `pip list` would ask the network whether there is a newer pip.
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "COMPOSER_NO_INTERACTION": "1",
    "POETRY_NO_INTERACTION": "1",
    "TF_INPUT": "0",
    "TERM": "dumb",
    "NO_COLOR": "1",
    # Python keeps output back when it writes to a pipe: after a kill it is lost, and errors come before it.
    "PYTHONUNBUFFERED": "1",
}


_last: list[tuple[dict[str, str], frozenset[str], dict[str, str]]] = []
"""What came out the last time: the environment of an engine hardly ever changes, and looking through it takes time."""


def quiet_environment(source: Mapping[str, str], *, keep: Collection[str] = ()) -> dict[str, str]:
    """A copy of `source` where nothing asks, pages or colours, no start-up code runs, and no secret is.

    A name looks secret when one of its words does: `GITHUB_TOKEN`, `AWS_ACCESS_KEY_ID`, also `SSH_AUTH_SOCK`. A value
    does when it has the form of one: `postgres://me:password@host`, a known kind of token, a private key. Those in
    `keep` stay; what makes shells and loaders run code never does.
    """
    given, kept = dict(source), frozenset(keep)
    if not _last or _last[0][:2] != (given, kept):
        env = {
            name: value
            for name, value in given.items()
            if not re.fullmatch(_INJECTED, name) and (name in kept or not _is_secret(name, value))
        }
        if "GIT_CONFIG_COUNT" in env and any(name.startswith("GIT_CONFIG_KEY_") for name in given.keys() - env.keys()):
            del env["GIT_CONFIG_COUNT"]  # git refuses to run where it counts settings that are not there
        _last[:] = [(given, kept, env | _QUIET)]
    return dict(_last[0][2])


def is_telling(name: str) -> bool:
    """Does the name of a variable look like that of a secret?"""
    return re.fullmatch(_TELLING, name) is not None


def _is_secret(name: str, value: str) -> bool:
    if name in {"HOME", "OLDPWD", "PATH", "PWD", "TMPDIR"}:
        return False  # folders, whatever they are called; without PATH a shell would use one of its own
    return is_telling(name) or re.search(_SECRETS, value) is not None


_BLOCK_BYTES = 512
"""What `ulimit -f` counts in, where the shell is called sh."""


class ProcessLimits(NamedTuple):
    """None: as the engine's own process has it."""

    memory_mb: int | None = None
    """Address space of each process of the command."""
    processes: int | None = None
    """Processes and threads that the user may have besides those that there are when the command starts."""
    open_files: int | None = None
    """Descriptors of each process."""
    file_mb: int | None = None
    """How large a file may become."""


def apply_limits(argv: Sequence[str], limits: ProcessLimits | None) -> Sequence[str]:
    """The command as it runs under the limits: a shell sets them and gives way to it."""
    if limits is None or not any(limit is not None for limit in limits):
        return argv
    steps = []
    if limits.open_files is not None:
        steps.append(f"ulimit -n {int(limits.open_files)}")
    if limits.file_mb is not None:
        steps.append(f"ulimit -f {(int(limits.file_mb) << 20) // _BLOCK_BYTES}")
    if limits.processes is not None and _counts_processes():
        most = _processes_now() + int(limits.processes)
        steps.append(f"{{ ulimit -u {most} 2>/dev/null || ulimit -p {most}; }}")  # the letter depends on the shell
    if limits.memory_mb is not None and _counts_memory():
        steps.append(f"ulimit -v {int(limits.memory_mb) << 10}")
    # A limit that cannot be set ends it: a command does not run without the limits that were asked for.
    script = " && ".join([*steps, 'exec "$@"; exit 126'])
    return ["/bin/sh", "-c", script, "sh", *argv] if steps else argv


def describe_unenforced(limits: ProcessLimits | None) -> tuple[str, ...]:
    """What of the limits nothing enforces here, each as a sentence."""
    lacks = []
    if limits is not None and limits.processes is not None and not _counts_processes():
        lacks.append(
            "The number of processes is not limited: the system counts them for other users than root, and on Linux."
        )
    if limits is not None and limits.memory_mb is not None and not _counts_memory():
        lacks.append("Memory is not limited: the system does not hold processes to a limit of address space.")
    return tuple(lacks)


def describe_limit(limits: ProcessLimits | None, exit_code: int, text: str) -> str:
    """Which limit ended a command, as a sentence, as far as its exit code and what it said at the end tell; or ""."""
    if limits is None or exit_code == 0:
        return ""
    end = text[-2000:]
    if limits.file_mb is not None and (exit_code == _signal_exit_code("SIGXFSZ") or os.strerror(errno.EFBIG) in end):
        return f"It wrote a file that would have become larger than {limits.file_mb:,} MB."
    if limits.open_files is not None and os.strerror(errno.EMFILE) in end:
        return f"It opened more than {limits.open_files:,} files at once."
    if limits.processes is not None and os.strerror(errno.EAGAIN) in end:
        return f"It started more than {limits.processes:,} processes."
    if limits.memory_mb is not None and _is_out_of_memory(exit_code, end):
        return f"It needed more than {limits.memory_mb:,} MB of memory."
    return ""


def _is_out_of_memory(exit_code: int, end: str) -> bool:
    said = (os.strerror(errno.ENOMEM), "MemoryError", "out of memory", "bad_alloc", "memory exhausted")
    return any(words in end for words in said) or exit_code in map(_signal_exit_code, ("SIGSEGV", "SIGABRT", "SIGBUS"))


def _signal_exit_code(name: str) -> int:
    return 128 + getattr(signal, name, 1 << 10)


def _counts_processes() -> bool:
    return sys.platform == "linux" and os.geteuid() != 0


def _counts_memory() -> bool:
    return sys.platform == "linux"


def _processes_now() -> int:
    """The processes and threads that this user has: the system's limit counts them all, whoever started them."""
    count, mine = 0, os.geteuid()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == mine:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


_found: dict[tuple[str, str, tuple[str, ...]], tuple[str, tuple[int, int, int, int]]] = {}
"""What was found before, and which file it was: while it is the same, nobody looks again."""
_FOUND = 256


def program_on_path(name: str, *, outside: Sequence[str] = ()) -> str | None:
    """The program of that name on PATH, but none in or linked into a folder of `outside`."""
    folders = os.environ.get("PATH", os.defpath)
    key = (name, folders, tuple(outside))
    if key in _found:
        path, identity = _found[key]
        if _identity(path) == identity and os.access(path, os.X_OK):
            return path
        del _found[key]
    for folder in folders.split(os.pathsep):
        path = os.path.join(folder, name + ".exe" * (os.name == "nt"))
        is_there = os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK)
        if is_there and not lies_in(path, outside):
            seen = _identity(path)
            if seen is not None:
                if len(_found) >= _FOUND:
                    _found.clear()
                _found[key] = (path, seen)
            return path
    return None


def lies_in(path: str, folders: Sequence[str]) -> bool:
    """Is it in one of the folders, by its own name or by what it is a link to?"""
    places = (os.path.normpath(path), os.path.realpath(path))
    roots = [root for one in folders for root in (os.path.abspath(one), os.path.realpath(one))]
    return any(f"{place}{os.sep}".startswith(root.rstrip(os.sep) + os.sep) for place in places for root in roots)


def shell(*, outside: Sequence[str] = ()) -> str:
    """Where bash is, or else the system's plain shell."""
    return program_on_path("bash", outside=outside) or "/bin/sh"


def find(name: str, *, cwd: str, env: Mapping[str, str]) -> None:
    """Raises FileNotFoundError, NotADirectoryError or PermissionError when it cannot be started there."""
    if not os.path.isdir(cwd):
        number = errno.ENOTDIR if os.path.exists(cwd) else errno.ENOENT
        raise OSError(number, os.strerror(number), cwd)
    if os.sep in name:
        paths = [os.path.join(cwd, name)]
    else:
        paths = [os.path.join(cwd, folder, name) for folder in env.get("PATH", os.defpath).split(os.pathsep)]
    there = [path for path in paths if os.path.exists(path)]
    if not there:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not any(os.path.isfile(path) and os.access(path, os.X_OK) for path in there):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def _identity(path: str) -> tuple[int, int, int, int] | None:
    try:
        seen = os.stat(path)
        link = os.lstat(path)
    except OSError:
        return None
    return (seen.st_dev, seen.st_ino, link.st_ino, link.st_mtime_ns)


_LISTS = (
    *("PYTHONPATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH"),
)
"""Variables that name folders which interpreters load code from."""


def apart(environment: Mapping[str, str], roots: Iterable[str]) -> dict[str, str]:
    """The environment, in which nothing is looked for in these folders.

    A virtual environment of the project is often on PATH: what a command has left there would run with all rights.
    """
    roots = tuple(roots)
    env = {**environment, "PATH": outside(environment.get("PATH", ""), roots)}
    for name in _LISTS:
        if name in env:
            kept = _safe_folders(env.pop(name), roots)
            env |= {name: os.pathsep.join(kept)} if kept else {}
    return env


def outside(path: str, roots: Iterable[str]) -> str:
    """A PATH without what is relative or lies in one of the folders."""
    return os.pathsep.join(_safe_folders(path or os.defpath, tuple(roots))) or os.defpath


def left_out(path: str, roots: Iterable[str]) -> tuple[str, ...]:
    """The folders of a PATH that `outside` leaves out, but for those that are relative."""
    roots = tuple(roots)
    return tuple(
        folder for folder in path.split(os.pathsep) if os.path.isabs(folder) and is_reachable_in(folder, roots)
    )


def is_reachable_in(path: str, roots: Sequence[str]) -> bool:
    """Is the path in one of the folders, or linked into or out of one, in any letter case?"""
    folders = [folder.casefold() for root in roots for folder in (os.path.abspath(root), os.path.realpath(root))]
    # The name may be a link, and so may the folder that it is in: no step on the way may lie inside either.
    its_folder = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    ways = (os.path.normpath(path), os.path.realpath(path), its_folder)
    return any(within(place.casefold(), folder) for place in ways for folder in folders)


def _safe_folders(path: str, roots: Sequence[str]) -> list[str]:
    return [folder for folder in path.split(os.pathsep) if os.path.isabs(folder) and not is_reachable_in(folder, roots)]


class Variables(dict[str, str]):
    """What the user's hooks have set when the session began."""

    def __init__(self) -> None:
        super().__init__()
        self.confined: dict[str, str] = {}
        """What confined hooks have set: no command outside the sandbox has that, for it could lead to any code."""
