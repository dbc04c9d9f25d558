"""Confinement on macOS: a profile for `sandbox-exec`, in which the last rule that matches decides.

Whatever is not allowed is denied, other programs of the machine included: a command that may ask the system to open
something for it is not confined. Protected names hold in any letter case, as the file system there compares them.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from ferrule.sandbox import Profile, SandboxError, Wrapped, proxy_environment, refuse_whole
from ferrule.sandbox.placeholders import between, innermost

PROGRAM = "/usr/bin/sandbox-exec"

_ALWAYS = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow user-preference-read)
(allow ipc-posix-sem ipc-posix-shm)
(allow pseudo-tty)
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
(allow file-read*)
(deny file-read* (regex #"^/dev/ttys"))
(allow file-ioctl (literal "/dev/null") (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys"))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx"))
"""
"""No terminal is opened by its name: whoever can open another one can type into it."""
_NETWORK = """\
(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.dnssd.service"))
"""
_ALIKE = {"s": "\u017f", "k": "\u212a"}
"""Letters that the file system takes for these two."""
_SPECIAL = frozenset(".^$*+?()[]{}|\\")


class Seatbelt:
    """Confines by the program that comes with macOS."""

    name = "seatbelt"
    lacks = (
        "Commands share /tmp with everybody; it can be read and not written, and TMPDIR is a folder of their own.",
        "Hard links cannot be made inside.",
    )

    def works(self) -> str:
        """Nothing where it confines for real, or else why not."""
        return _probe() if os.path.exists(PROGRAM) else "It is a part of macOS only."

    def wrap(self, argv: Sequence[str], profile: Profile, *, cwd: str) -> Wrapped:

        del cwd  # the file system is the same, so whoever starts it chooses
        refuse_whole(profile.writable)
        if not argv or argv[0].startswith("-"):
            raise SandboxError("The command has no program.")
        given = dict(profile.layers).get("/tmp", "")  # noqa: S108 - the folder of the session in its place
        folder = given or os.path.realpath(tempfile.mkdtemp(prefix="ferrule-"))
        try:
            text, parameters = rules(profile, folder)
        except BaseException:
            if not given:
                os.rmdir(folder)
            raise
        defined = [part for name, value in parameters.items() for part in ("-D", f"{name}={value}")]
        env = {"TMPDIR": folder + "/", **proxy_environment(profile)}

        def done() -> None:
            if not given:
                shutil.rmtree(folder, ignore_errors=True)

        return Wrapped((PROGRAM, "-p", text, *defined, *argv), env, done=done)


def rules(profile: Profile, temporary: str) -> tuple[str, dict[str, str]]:
    """The text of the rules, and the paths that it names as parameters. Raises SandboxError."""
    writable = (*profile.writable, temporary)
    parameters = {f"W{number}": path for number, path in enumerate(writable)}
    lines = [_ALWAYS]
    lines.append(_rule("allow", "file-write*", [f'(subpath (param "W{number}"))' for number in range(len(writable))]))
    # A root that is renamed takes its protected files along to where no rule names them.
    lines.append(
        _rule("deny", "file-write-unlink", [f'(literal (param "W{number}"))' for number in range(len(writable))])
    )
    for path in dict.fromkeys(each for kept in profile.kept for each in (kept, os.path.realpath(kept))):
        root = innermost(path, profile.writable)
        if root is not None:
            lines += _keep(path, root)
    masked = list(dict.fromkeys(each for mask in profile.masked for each in (mask, os.path.realpath(mask))))
    for number, path in enumerate(masked):
        parameters[f"M{number}"] = path
        # It stays where it is: under another name it would be readable.
        lines.append(_rule("deny", "file-read* file-write*", [f'(subpath (param "M{number}"))']))
        root = innermost(path, profile.writable)
        if root is not None:
            lines += _stay(path, root)
    lines += _reach(profile)
    if any("\0" in value for value in parameters.values()):
        raise SandboxError("A path of the sandbox has a NUL in it.")
    return "".join(lines), parameters


def _rule(verb: str, operations: str, filters: Sequence[str]) -> str:
    return f"({verb} {operations} {' '.join(filters)})\n"


def _keep(path: str, root: str) -> list[str]:
    """Deny every change at a path, in any case, and every change of the folders above that would move it away."""
    place = _first_absent(path, root)
    return [*_stay(place, root), _rule("deny", "file-write*", [f'(regex #"^{_any_case(place, root)}(/|$)")'])]


def _first_absent(path: str, root: str) -> str:
    """The first part of the path below a folder at which nothing is; the path itself where all of it exists."""
    return next((upper for upper in between(root, path) if not os.path.lexists(upper)), path)


def _stay(path: str, root: str) -> list[str]:
    """The folders from the root to a path can be neither removed, nor renamed, nor replaced."""
    uppers = [f'(regex #"^{_any_case(upper, root)}$")' for upper in between(root, path)]
    return [_rule("deny", "file-write-unlink file-write-create", uppers)] if uppers else []


def _any_case(path: str, root: str) -> str:
    """A pattern for the path: the root exists and is spelled as it is, the rest may be spelled in any case."""
    if '"' in path or any(ord(letter) < 0x20 for letter in path):
        raise SandboxError(f"The sandbox cannot protect {path!r}: no rule can spell that name.")
    head, tail = (root.rstrip("/"), path[len(root.rstrip("/")) :])
    return "".join(map(_exactly, head)) + "".join(map(_either, tail))


def _exactly(letter: str) -> str:
    return "\\" + letter if letter in _SPECIAL else letter


def _either(letter: str) -> str:
    cases = dict.fromkeys((letter.lower(), letter.upper()))
    if letter.lower() in _ALIKE:
        cases[_ALIKE[letter.lower()]] = None
    if len(cases) == 1:
        return _exactly(letter)
    # Letters beyond ASCII are several bytes: they do not go into brackets.
    return "(" + "|".join(cases) + ")" if not "".join(cases).isascii() else "[" + "".join(cases) + "]"


def _reach(profile: Profile) -> list[str]:
    lines: list[str] = []
    if profile.network:
        lines.append(_NETWORK)
    elif profile.proxy:
        port = profile.proxy.rpartition(":")[2]
        if not profile.proxy.startswith("http://") or not port.isdigit():
            raise SandboxError("Hosts are allowed, but there is no proxy on a port to reach them through.")
        lines.append(_rule("allow", "network-outbound", [f'(remote ip "localhost:{port}")']))
    verb = "allow" if profile.unix_sockets else "deny"
    lines.append(_rule(verb, "network*", ["(remote unix-socket)"]))
    return lines


def _probe() -> str:

    text, parameters = rules(Profile(), "/private/var/empty")
    defined = [part for name, value in parameters.items() for part in ("-D", f"{name}={value}")]
    try:
        ran = subprocess.run(
            [PROGRAM, "-p", text, *defined, "/usr/bin/true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"sandbox-exec does not start: {error}"
    said = ran.stderr.decode(errors="replace").strip()
    return "" if ran.returncode == 0 else f"sandbox-exec fails: {said or f'exit code {ran.returncode}'}"
