"""Detaching on purpose: a command that goes on when the engine ends, with its log and its place in the roster."""

import os
import signal
import threading
from collections.abc import Mapping, Sequence

from ferrule.support.child import OWN
from ferrule.support.programs import find
from ferrule.support.roster import Roster
from ferrule.support.tree import Tree

_SCRIPT = 'cd -- "$1" || exit; shift; "$@" 2>&1 | { head -c "$0"; exec cat >/dev/null; }'
"""Nobody is there to take its output: what the log has no room for goes nowhere, and the command never waits."""


def start_detached(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    log: str,
    log_limit_bytes: int,
    roster: Roster,
    task: str = "",
) -> int:
    """Start a command that outlives this process; the id of the session that it is in.

    `log` is a path where nothing exists yet. The command is listed in the roster as detached: nothing sweeps it, and
    whoever wants it to end stops its entry.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start;
    FileExistsError when there is something at `log`.
    """
    find(argv[0], cwd=cwd, env=env)
    tree = Tree()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    output = os.open(log, flags, 0o600)
    token = roster.add(tree, command=" ".join(argv), cwd=cwd, task=task, detached=True, log=log)
    try:
        with tree.numbering():
            pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT, str(log_limit_bytes), cwd, *argv],
                tree.environment(env),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, output, 1),
                    (os.POSIX_SPAWN_DUP2, output, 2),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE, *([signal.SIGXFSZ] if hasattr(signal, "SIGXFSZ") else [])],
            )
    except (OSError, ValueError) as error:
        os.unlink(log)
        roster.remove(token)
        raise error if isinstance(error, OSError) else OSError(f"The command cannot be started: {error}") from error
    finally:
        os.close(output)
    OWN.add(pid)
    roster.started(token, pid)
    # As long as this process lives, it is the parent, and nobody else can reap it.
    threading.Thread(target=_reap, args=(roster, token, pid), daemon=True).start()
    return pid


def _reap(roster: Roster, token: str, pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return
    OWN.discard(pid)
    roster.remove(token)
