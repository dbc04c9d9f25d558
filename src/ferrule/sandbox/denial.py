"""Recognising in what a failed command said that the sandbox stopped it.

This is for a sentence to the model and a question to the user, and decides nothing. A command that succeeded was not
stopped. Words that programs also use without a sandbox count only for paths that could not have been written anyway.
"""

import functools
import os
import re
from collections.abc import Callable, Sequence

from ferrule.sandbox.placeholders import within

_TAIL_CHARS = 20_000
_LINE_CHARS = 1000
_NAMED = 3


_MOST_CHARS = 400


def find_denial(
    output_end: str,
    exit_code: int,
    refused_hosts: Sequence[str] = (),
    asked_names: Sequence[str] = (),
    *,
    writable: Sequence[str] = (),
) -> str:
    """One sentence of what the sandbox seems to have stopped, or nothing.

    `refused_hosts` are those that the proxy refused, and `asked_names` those that the resolver was asked for.
    `writable` are the folders that the command could write: a permission that is missing in one of them is not the
    sandbox's doing.
    """
    if refused_hosts:
        names = ", ".join(refused_hosts[-_NAMED:])
        return f"The sandbox refused the connection to {names}."
    if asked_names:
        return f"The sandbox has no network, so {', '.join(asked_names[-_NAMED:])} was not reached."
    if exit_code == 0:
        return ""
    text = output_end[-_TAIL_CHARS:]
    for pattern, say in _patterns():
        for found in reversed(list(pattern.finditer(text))):
            sentence = say(found, writable)
            if sentence:
                # What it names was printed by the command, and may be of any length.
                return sentence if len(sentence) <= _MOST_CHARS else f"{sentence[:_MOST_CHARS]}…"
    return ""


def _explain_setup(found: re.Match[str], writable: Sequence[str]) -> str:  # noqa: ARG001 - one signature for all
    return f"The sandbox could not be set up: {found['why'].strip()}."


def _explain_read_only(found: re.Match[str], writable: Sequence[str]) -> str:  # noqa: ARG001
    path = _path(found[0])
    return f"The sandbox keeps {path} read-only." if path else "The sandbox keeps that place read-only."


def _explain_access(found: re.Match[str], writable: Sequence[str]) -> str:
    """Without a path, or with one that the command may write, the file's own permissions are the likelier reason."""
    path = _path(found[0])
    if path.startswith("/tmp/"):  # noqa: S108 - the machine's, where commands have none of their own
        return f"The sandbox has no /tmp of its own here, so {path} was denied. Commands write to $TMPDIR instead."
    if not path or not os.path.isabs(path) or any(within(os.path.normpath(path), folder) for folder in writable):
        return ""
    return f"The sandbox seems to have denied access to {path}."


def _explain_call(found: re.Match[str], writable: Sequence[str]) -> str:  # noqa: ARG001
    line = found[0].strip()[-_LINE_CHARS:]
    return f"The sandbox does not allow this: {line}." if _calls().search(line) else ""


def _explain_network(found: re.Match[str], writable: Sequence[str]) -> str:  # noqa: ARG001
    host = next((name for name in found.groupdict().values() if name), "")
    return (
        f"The sandbox has no network, so {host.rstrip('.')} was not reached." if host else "The sandbox has no network."
    )


Say = Callable[[re.Match[str], Sequence[str]], str]

_OPEN, _CLOSE = "\"'`\u2018", "\"'`\u2019"
"""Quotation marks, also those of the GNU tools."""
_HOST = rf"[{_OPEN}(]*(?P<{{}}>[A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9-]+)"


_OFFLINE = (
    "failed to lookup address information",
    "[Nn]ame or service not known",
    "[Tt]emporary failure in name resolution",
    "nodename nor servname provided",
    r"\b(?:EAI_AGAIN|ENETUNREACH)\b",
    "[Nn]etwork is unreachable|Network unreachable|[Nn]o route to host",
    "CONNECT tunnel failed, response 403",
    "Received HTTP code 403 from proxy after CONNECT",
    "Tunnel connection failed: 403",
    r"_socket\.socket\.__init__\([^\n]*\n(?:[ ~^]*\n)?PermissionError: \[Errno 1\]",
)
"""What is said without the name of a host."""


_KNOWN = (
    (
        r"docker\.sock|Cannot connect to the Docker daemon|Cannot connect to Podman|podman\.sock",
        "The sandbox has no sockets of other programs (sandbox.unix_sockets), so no container engine is reached.",
    ),
    (
        r"gh auth login|GH_TOKEN environment variable",
        "The sandbox hides the login of gh (~/.config/gh) and has no network.",
    ),
    (
        r"Could not open a connection to your authentication agent|Error connecting to agent|SSH_AUTH_SOCK",
        "The sandbox has no sockets of other programs, so the ssh agent is not reached.",
    ),
    (
        r"gpg failed to sign the data|gpg: (?:signing failed|skipped|no default secret key)|No secret key",
        "The sandbox hides the keys (~/.gnupg, ~/.ssh), so nothing can be signed inside.",
    ),
    (
        r"Host key verification failed",
        "The sandbox hides ~/.ssh and has no network, so remotes over ssh are not reached.",
    ),
)
"""What programs say that need something which no command has, and the reason."""


def _always_say(sentence: str) -> Say:
    return lambda _found, _writable: sentence


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], Say], ...]:
    def host(number: int) -> str:
        return _HOST.format(f"host{number}")

    unreached = "|".join(
        (
            rf"[Cc]ould not resolve (?:host|proxy|hostname):? +{host(1)}",
            rf"unable to resolve (?:host )?address {host(2)}",
            rf"getaddrinfo (?:EAI_AGAIN|ENOTFOUND) {host(3)}",
            rf"dial tcp:? (?:lookup )?{host(4)}",
            rf"Failed to resolve {host(5)}",
            rf"Temporary failure resolving {host(6)}",
            rf"Failed to connect to (?!127\.){host(7)} port \d+ after \d+ ms: Could(?:n't| not) connect to server",
        )
    )
    return (
        *((re.compile(pattern), _always_say(sentence)) for pattern, sentence in _KNOWN),
        (re.compile(r"^bwrap: (?P<why>[^\n]+)$", re.MULTILINE), _explain_setup),
        (re.compile(r"^sandbox-exec: (?P<why>[^\n]+)$", re.MULTILINE), _explain_setup),
        (re.compile(r"^[^\n]*(?:[Rr]ead-only file system|\bEROFS\b)[^\n]*$", re.MULTILINE), _explain_read_only),
        (re.compile(r"^[^\n]*(?:Device or resource busy|\bEBUSY\b)[^\n]*$", re.MULTILINE), _explain_busy),
        (re.compile(unreached), _explain_network),
        (re.compile("|".join(_OFFLINE)), _explain_network),
        (re.compile(r"^[^\n]*Operation not permitted[^\n]*$", re.MULTILINE), _explain_call),
        (
            re.compile(
                r"^[^\n]*(?:[Pp]ermission denied|Operation not permitted|\bEACCES\b|\bEPERM\b)[^\n]*$", re.MULTILINE
            ),
            _explain_access,
        ),
    )


def _explain_busy(found: re.Match[str], writable: Sequence[str]) -> str:  # noqa: ARG001
    """What is protected is a mount point. Other things are busy too, so only names that are protected count."""
    path = _path(found[0])
    guarded = re.search(r"(?:^|/)(?:\.git|\.[a-z]+rc|\.env\b|\.mcp\.json|\.claude|\.vscode|\.idea|hooks)(?:/|$)", path)
    return f"The sandbox keeps {path} as it is." if guarded else ""


@functools.cache
def _calls() -> re.Pattern[str]:
    """Programs and system calls that need rights which nothing inside has."""
    return re.compile(r"\b(?:unshare|u?mount|[ps]trace|gdb|setns|chroot|ping|bind|socket|connect|clone|dmesg|keyctl)\b")


@functools.cache
def _paths() -> re.Pattern[str]:
    quoted = rf"[{_OPEN}](?P<quoted>[^{_OPEN}{_CLOSE}\n]*[/.][^{_OPEN}{_CLOSE}\n]*)[{_CLOSE}]"
    end = rf"[^\s:,;){_OPEN}{_CLOSE}]"
    return re.compile(rf"{quoted}|(?:^|(?<=[\s:=(]))(?P<bare>~?\.{{0,2}}/{end}+|\.[A-Za-z]{end}*)")


def _path(line: str) -> str:
    """The path that a line is about: the last quoted one, or else the last one that stands by itself."""
    found = list(_paths().finditer(line[-_LINE_CHARS:]))
    quoted = [each["quoted"] for each in found if each["quoted"]]
    # The shell that says it stands first, as in `/bin/sh: 1: cannot create /etc/x: Read-only file system`.
    bare = [each["bare"] for each in found if each["bare"] and each.start()]
    return next(iter(quoted[-1:] or bare[-1:]), "")
