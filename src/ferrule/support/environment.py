"""What a command finds in its environment: nothing that asks, pages or colours, no start-up code, and no secret."""

import re
from collections.abc import Collection, Mapping

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
    r"|(?:gh[opsur]_|github_pat_|glpat-|xox[abeprs]-|sk-(?:ant|proj|or)-|hf_|npm_|pypi-)[A-Za-z0-9_-]{16}"
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
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "TERM": "dumb",
    "NO_COLOR": "1",
    # Python keeps output back when it writes to a pipe: after a kill it is lost, and errors come before it.
    "PYTHONUNBUFFERED": "1",
}


def quiet_environment(source: Mapping[str, str], *, keep: Collection[str] = ()) -> dict[str, str]:
    """A copy of `source` where nothing asks, pages or colours, no start-up code runs, and no secret is.

    A name looks secret when one of its words does: `GITHUB_TOKEN`, `AWS_ACCESS_KEY_ID`, also `SSH_AUTH_SOCK`. A value
    does when it has the form of one: `postgres://me:password@host`, a known kind of token, a private key. Those in
    `keep` stay; what makes shells and loaders run code never does.
    """
    env = {
        name: value
        for name, value in source.items()
        if not re.fullmatch(_INJECTED, name) and (name in keep or not _is_secret(name, value))
    }
    return env | _QUIET


def _is_secret(name: str, value: str) -> bool:
    if name in {"PWD", "OLDPWD"}:
        return False
    return re.fullmatch(_TELLING, name) is not None or re.search(_SECRETS, value) is not None
