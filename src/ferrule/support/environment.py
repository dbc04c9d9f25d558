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
