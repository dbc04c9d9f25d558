"""Becomes another user and starts a program: `python -I enter.py '{"uid": 990, "gid": 990, "shown": []}' PROGRAM …`.

`shown` are folders that the program needs although folders above them may be closed to that user, such as a Python
below `/root`. In a mount namespace of its own an empty open folder lies over each closed one, and in it what is shown.
Nothing of the machine is changed, and what else is in the closed folder stays out of reach.
"""

import ctypes
import json
import os
import stat
import sys

NEW_MOUNTS, NEW_USERS = 0x20000, 0x10000000
BIND, RECURSIVE, PRIVATE, NO_DEVICES, NO_SUID = 0x1000, 0x4000, 0x40000, 0x4, 0x2
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """What was asked for, in the order in which the rights for it are still there."""
    wanted, program = json.loads(sys.argv[1]), sys.argv[2:]
    uid, gid = wanted["uid"], wanted["gid"]
    if wanted.get("mapped"):
        _map(uid, gid)
    else:
        covers = covered(wanted["shown"], uid, gid)
        if covers:
            _show(covers)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(0o022)
    os.execvpe(program[0], program, os.environ)


def covered(shown: list[str], uid: int, gid: int) -> dict[str, list[str]]:
    """The outermost folder that is closed to the user → what of it has to be shown."""
    found: dict[str, list[str]] = {}
    for path in dict.fromkeys(one for name in shown for one in (os.path.abspath(name), os.path.realpath(name))):
        for above in _above(path):
            if os.path.isdir(above) and not os.path.islink(above) and not _open_to(above, uid, gid):
                found.setdefault(above, []).append(path)
                break
    return found


def _above(path: str) -> list[str]:
    """The folders above a path, the outermost first."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: number + 1]) for number in range(len(parts))]


def _open_to(folder: str, uid: int, gid: int) -> bool:
    """May the user go through this folder? Without the groups of the user: it has none but its own."""
    status = os.stat(folder)
    bit = stat.S_IXUSR if status.st_uid == uid else stat.S_IXGRP if status.st_gid == gid else stat.S_IXOTH
    return bool(status.st_mode & bit)


def _show(covers: dict[str, list[str]]) -> None:
    _checked(_libc.unshare(NEW_MOUNTS))
    _mount("none", "/", "", RECURSIVE | PRIVATE)
    for closed, shown in covers.items():
        # Held by descriptors: the names are gone as soon as something lies over them.
        held = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in shown if os.path.isdir(path)]
        _mount("none", closed, "tmpfs", NO_DEVICES | NO_SUID, "mode=0755")
        for path, descriptor in held:
            os.makedirs(path, exist_ok=True)
            _mount(f"/proc/self/fd/{descriptor}", path, "", BIND | RECURSIVE)
            os.close(descriptor)


def _map(uid: int, gid: int) -> None:
    """In a user namespace in which this user has another number, and no rights beyond those of an owner."""
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    _checked(_libc.unshare(NEW_USERS))
    for name, text in (
        ("setgroups", "deny"),
        ("gid_map", f"{gid} {outer_gid} 1"),
        ("uid_map", f"{uid} {outer_uid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    _checked(_libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
