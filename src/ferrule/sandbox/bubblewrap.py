"""Confine commands with bubblewrap: a private view of the file system, the processes and the network.

Everything is mounted read-only, and the writable paths are mounted over it. Mount points cannot be renamed or
removed from inside, and nothing inside may mount or make a user namespace, so the view stays as it is.

A terminal signals its whole foreground, and bubblewrap is part of that; if it ended, everything in it would end,
too. So bubblewrap ignores the signals that interrupt or suspend, and the command in it starts by restoring them.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence

from ferrule.sandbox import (
    Profile,
    SandboxBackend,
    SandboxError,
    Wrapped,
    kernel,
    proxy_environment,
    refuse_whole,
    spawner,
)
from ferrule.sandbox.mounts import RESOLVER
from ferrule.sandbox.placeholders import LinkError, Mount, layout
from ferrule.system.environment import program_on_path

_OWN_USERS = ("--unshare-user", "--disable-userns")
_FOR_OTHERS = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN")
_PROBE_SECONDS = 10
_MANY_MOUNTS = 200
"""For each mount bubblewrap looks at all of them: more than these take longer than a tenth of a second."""
_LATER = "A secret file that comes into being while a command runs is not hidden from that command."
_REPLACED = (
    "A secret or protected file or folder that another program replaces or removes while a command runs, as an editor"
    " does that saves by renaming, or git, is from then on neither hidden from that command nor protected against it."
)
_NO_SECCOMP = "System calls are not restricted, because there is no table of them for this processor."
_NESTED = "User namespaces can be made inside, because this bubblewrap is older than 0.8."


class Bubblewrap:
    """Confines by the `bwrap` that is on PATH, but never by one of the workspace."""

    name = "bubblewrap"

    def __init__(self, *, outside: Sequence[str] = (), otherwise: Callable[[], SandboxBackend] | None = None) -> None:
        """`otherwise` makes the sandbox for the commands whose profile bubblewrap has no options for, or too many."""
        self._outside = tuple(outside)
        self._otherwise = otherwise

    @property
    def lacks(self) -> tuple[str, ...]:
        if _build_call_filter(network=False, unix_sockets=False):
            return (_LATER, _REPLACED)
        nested = _can_disable_userns(program_on_path("bwrap", outside=self._outside) or "")
        return (_LATER, _REPLACED, _NO_SECCOMP) if nested else (_LATER, _REPLACED, _NO_SECCOMP, _NESTED)

    def works(self) -> str:
        """Nothing where it confines for real, or else why not. It is tried once."""
        path = program_on_path("bwrap", outside=self._outside)
        return _probe(path) if path else "There is no program bwrap on PATH."

    def wrap(self, argv: Sequence[str], profile: Profile, *, cwd: str) -> Wrapped:
        refuse_whole(profile.writable)
        path = program_on_path("bwrap", outside=(*self._outside, *profile.writable))
        if path is None:
            raise SandboxError("There is no program bwrap outside the workspace. Install bubblewrap.")
        private = _private(profile)
        try:
            mounts = layout(profile._replace(shown=_visible_paths(profile, cwd)), private=private)
        except LinkError:
            other = self._other()
            if other is None:
                raise
            return other.wrap(argv, profile, cwd=cwd)
        if len(mounts) > _MANY_MOUNTS and (other := self._other()) is not None:
            return other.wrap(argv, profile, cwd=cwd)
        shared = _find_shared_cell(profile)
        descriptors: list[int] = []
        try:
            options = [*_apart(path, profile, network=shared is not None), *_view(mounts, private, profile.hidden)]
            if not profile.network:
                descriptors.append(_memory(RESOLVER))
                options += ["--ro-bind-data", str(descriptors[-1]), os.path.realpath("/etc/resolv.conf")]
            bpf = _build_call_filter(network=profile.network or profile.loopback, unix_sockets=profile.unix_sockets)
            if bpf:
                descriptors.append(_memory(bpf))
                options += ["--seccomp", str(descriptors[-1])]
        except BaseException:
            _close(descriptors)
            raise
        env = {"TMPDIR": "/tmp", **(proxy_environment(profile) if shared is not None else {})}  # noqa: S108 - a private one
        return Wrapped((path, *options, "--chdir", cwd, "--", *argv), env, tuple(descriptors), starter=shared)

    def _other(self) -> SandboxBackend | None:
        """Another sandbox, where there is one that works."""
        other = self._otherwise() if self._otherwise else None
        return None if other is None or other.works() else other


def network_of(profile: Profile) -> spawner.CellKind | None:
    """The cell whose network the commands of a session share; None where each has one of its own, or the machine's."""
    if profile.network or not profile.machine or _for_others(profile):
        return None
    return spawner.CellKind("network", loopback=True, machine=profile.machine)


def _find_shared_cell(profile: Profile) -> spawner.Confined | None:
    kind = network_of(profile)
    try:
        if kind is None:
            return None
        spawner.cell(kind)
    except OSError:  # only bubblewrap itself may make namespaces here: `lacks` says so
        return None
    return spawner.Confined(kind, Profile())


def _apart(path: str, profile: Profile, *, network: bool) -> list[str]:
    """`network`: has it one already?"""
    options = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]
    options += ["--unshare-net"] * (not profile.network and not network) + ["--cap-drop", "ALL"]
    if _for_others(profile) and not _probe(path, user_namespace=False):
        # In a user namespace root is nobody to files of other users. Here it keeps what it needs to work on them, in
        # the folders that can be written; the restriction of system calls keeps user namespaces out.
        return options + [part for name in _FOR_OTHERS for part in ("--cap-add", name)]
    return options + list(_OWN_USERS[: 1 + _can_disable_userns(path)])


def _for_others(profile: Profile) -> bool:
    """Does root work in a folder of somebody else, as in a container that shares one with its host?"""
    return (
        os.geteuid() == 0
        and any(os.stat(folder).st_uid != 0 for folder in profile.writable)
        and bool(_build_call_filter(network=False, unix_sockets=False))
    )


def _private(profile: Profile) -> tuple[str, ...]:
    """The folders that are empty inside. In /run are the sockets of other programs."""
    folders = ["/tmp", "/var/tmp", *profile.hidden] + ["/run"] * (not profile.unix_sockets)  # noqa: S108 - the system's
    return tuple(dict.fromkeys(real for real in map(os.path.realpath, folders) if os.path.isdir(real)))


def _visible_paths(profile: Profile, cwd: str) -> tuple[str, ...]:
    """What a command needs of the folders that are empty inside."""
    caches = [path for path, _ in profile.caches]  # it cannot lay one folder over another, so they are read only
    return (*profile.shown, *caches, cwd, sys.base_prefix, *["/etc/resolv.conf"] * profile.network)


def _view(mounts: Sequence[Mount], private: Sequence[str], hidden: Sequence[str]) -> list[str]:
    # For the kernel's own settings root needs no capability, and bubblewrap leaves them writable to it.
    options = ["--ro-bind", os.sep, os.sep, "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    for folder in private:
        options += ["--tmpfs", folder]
    read_only = [part for folder in hidden for part in ("--remount-ro", folder)]
    for path, kind, source in mounts:
        if kind == "empty":
            options += ["--tmpfs", path]
            read_only += ["--remount-ro", path]
        elif kind == "nothing":
            options += ["--ro-bind", os.devnull, path]
        else:
            options += ["--bind" if kind == "bind" else "--ro-bind", source or path, path]
    return options + read_only


def _build_call_filter(*, network: bool, unix_sockets: bool) -> bytes:
    """The restriction of system calls; nothing where this processor is not known."""
    try:
        return kernel.native(network=network, unix_sockets=unix_sockets)
    except OSError:
        return b""


def _memory(data: bytes) -> int:
    """A descriptor from which these bytes can be read once."""
    descriptor = os.memfd_create("ferrule", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@functools.cache
def _can_disable_userns(path: str) -> bool:
    """Can this bubblewrap forbid user namespaces inside?"""
    try:
        said = subprocess.run([path, "--help"], capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--disable-userns" in said.stdout


@functools.cache
def _probe(path: str, *, user_namespace: bool = True) -> str:
    """Confine a command that does nothing, and say what came of it."""
    dropped = () if user_namespace else _OWN_USERS
    wrapped = None
    try:
        wrapped = Bubblewrap().wrap(("/bin/sh", "-c", ":"), Profile(), cwd=os.sep)
        ran = subprocess.run(
            (path, *(part for part in wrapped.argv[1:] if part not in dropped)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            pass_fds=wrapped.descriptors,
            env={},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not start: {error}"
    finally:
        if wrapped is not None:
            _close(wrapped.descriptors)
            wrapped.done()
    said = ran.stderr.decode(errors="replace").strip().splitlines()
    return "" if ran.returncode == 0 else f"bwrap fails: {said[-1] if said else f'exit code {ran.returncode}'}"


_AROUND = "trap '' INT QUIT TSTP; exec \"$@\""
_WITHIN = (
    "import os, signal, sys\n"
    "for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP): signal.signal(one, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


def within(argv: Sequence[str]) -> tuple[str, ...]:
    """The command as it is confined."""
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", _WITHIN, *argv)


def around(argv: Sequence[str]) -> tuple[str, ...]:
    """What confines it as it is started."""
    return ("/bin/sh", "-c", _AROUND, "sh", *argv)
