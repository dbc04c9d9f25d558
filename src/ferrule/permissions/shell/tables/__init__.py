"""The rows of all programs, by subject."""

import importlib
from collections.abc import Mapping

from ferrule.permissions.shell.form import Form

_NEVER = {
    "changes how later commands run": "export declare typeset local readonly alias unalias trap hash enable unset"
    " shopt ulimit umask bind complete disown suspend mapfile readarray getopts let",
    "runs another command": "eval source . exec builtin sudo doas su pkexec watch setsid ionice flock parallel script"
    " chroot unshare nsenter strace ltrace gdb lldb expect at batch crontab systemd-run screen tmux xargs busybox"
    " ssh-agent start-stop-daemon osascript open xdg-open run-parts entr time coproc runuser setpriv chrt taskset"
    " numactl dbus-run-session timeout nice nohup stdbuf noglob toybox caffeinate firejail proxychains fish",
    "is an editor that runs commands": "vi vim nvim view ex ed emacs nano mc",
    "opens the network for any data": "nc ncat netcat socat telnet ftp tftp sftp",
    "changes the machine": "mkfs mount umount fdisk parted shutdown reboot halt poweroff",
}
NEVER: Mapping[str, str] = {name: why for why, names in _NEVER.items() for name in names.split()}
"""Programs and built-ins that no pattern covers, and why."""


_SUBJECTS = ("files", "git", "system", "development")
"""The modules of rows, by subject."""


def rows() -> Mapping[str, Form]:
    """Program, or program and sub-commands → what may follow."""
    subjects = (importlib.import_module(f"{__name__}.{subject}") for subject in _SUBJECTS)
    return {name: form for subject in subjects for names, form in subject.ROWS.items() for name in names.split(", ")}
