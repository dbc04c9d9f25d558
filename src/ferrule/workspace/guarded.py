"""Paths that are off limits inside the workspace too: secret files and protected files.

Secret files are never read, searched or edited. Protected files (what programs obey or run by themselves) are never
written. Both lists hold for the real path behind a link, in any letter case, with trailing dots or blanks, and
whether or not the file exists yet. Names compare by whole components.
"""

import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.workspace.paths import Jail

READABLE = (".env.example", ".env.sample", ".env.template")
"""Names that look secret and are meant to be shared."""

SECRET = (
    ".env",
    ".env.*",
    ".env{-,_}*",
    ".env~",
    ".envrc",
    ".flaskenv",
    "*.env",
    "credentials",
    "credentials.*",
    ".credentials",
    ".credentials.*",
    "secrets.{json,yaml,yml,toml,ini,env}",
    "client_secret*.json",
    "service-account*.json",
    "id_{rsa,dsa,ecdsa,ed25519,ecdsa_sk,ed25519_sk}",
    "id_{rsa,dsa,ecdsa,ed25519}.{bak,old,orig,key}",
    ".vault-token",
    "*.tfvars",
    ".aws/**",
    "*.{pem,key,p12,pfx,jks,keystore,kdbx,ppk}",
    ".{netrc,npmrc,pypirc,pgpass,htpasswd,git-credentials,dockercfg}",
    "_netrc",
    ".docker/config.json",
    ".kube/config",
    ".gnupg/**",
    ".ssh/**",
)

PROTECTED = (
    ".git",
    ".git/**",
    "git~1/**",
    ".ferrule",
    ".ferrule/**",
    ".amp/settings*.json*",
    ".amp/{plugins,toolbox}/**",
    ".agents/{tools,checks}/**",
    ".{agents,ah}/skills/*/{tools,toolbox}/**",
    ".{agents,ah}/skills/*/mcp.json",
    ".{claude,codex,gemini,cursor,opencode}/**",
    ".mcp.json",
    ".{vscode,idea,zed,devcontainer}/**",
    ".{bash_aliases,bashrc,bash_profile,bash_login,bash_logout,profile,zshrc,zshenv,zprofile,zlogin,inputrc}",
    ".config/{fish,git}/**",
    ".{gitconfig,gitmodules,envrc,npmrc,yarnrc,yarnrc.yml,pnpmfile.cjs,pypirc}",
    ".{husky,githooks}/**",
    ".pre-commit-config.yaml",
    "lefthook.{yml,yaml}",
    "*.pth",
    "{sitecustomize,usercustomize}.py",
)

UNASKED = (".git", ".git/**", "git~1/**", ".ferrule", ".ferrule/**")
"""Those of them that nobody is asked about: git's own, and what decides about this program's calls."""

_TRAILING = ". \t\n\v\f\r"
# HFS+ drops these from names before it compares them.
_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


class Guard:
    """Decides whether a real path is secret or protected. `allow` lists globs that the user has opened."""

    def __init__(self, allow: Sequence[str] = (), jail: Jail | None = None) -> None:
        self._allow = tuple(allow)
        self._jail = jail
        self.kept: tuple[str, ...] = ()
        """Folders, real, that the user keeps from being written."""
        self._run: dict[str, str] = {}
        """Files that this session runs outside the sandbox, by how they compare."""
        self._plans: set[str] = set()
        self.denied: Callable[[str, str], bool] | None = None
        """Does a rule deny a path, for reading or for writing? Such a file counts as secret or as protected."""

    def open(self, allow: Sequence[str]) -> None:
        """More globs of guarded files that the user has opened."""
        self._allow += tuple(allow)

    def keep(self, paths: Iterable[str]) -> None:
        """These files, real, run outside the sandbox as they are: nothing in the session may write them."""
        self._run |= {path.casefold(): path for path in paths}

    def plan(self, path: str) -> None:
        """This file, by its one real path, is the session's plan: it may be written though its folder is protected."""
        self._plans.add(path)

    @property
    def run(self) -> tuple[str, ...]:
        """Those of them that the user has not opened."""
        return tuple(path for path in self._run.values() if not self._open(path))

    def secret(self, path: str) -> bool:
        if self.denied is not None and self.denied(path, "read"):
            return True
        return self._listed(path, SECRET) and _plain(os.path.basename(path)) not in READABLE and not self._open(path)

    def protected(self, path: str) -> bool:
        if self.denied is not None and self.denied(path, "write"):
            return True
        if any(within(path.casefold(), folder.casefold()) for folder in self.kept):
            return True
        is_listed = path not in self._plans and (self._listed(path, PROTECTED) or _steers_git(path))
        is_obeyed = path.casefold() in self._run or is_listed
        return is_obeyed and not self._open(path)

    def may_be_asked(self, path: str) -> bool:
        """May a person be asked whether this protected file is written? Never for what rules and settings keep."""
        if self.secret(path) or (self.denied is not None and self.denied(path, "write")):
            return False
        if any(within(path.casefold(), folder.casefold()) for folder in self.kept) or path.casefold() in self._run:
            return False
        return not self._listed(path, UNASKED) and not _steers_git(path)

    def _open(self, path: str) -> bool:
        return bool(self._allow) and self._listed(path, self._allow)

    def _listed(self, path: str, patterns: tuple[str, ...]) -> bool:
        """Names above the workspace do not count: a project may well lie in a folder like `.claude/worktrees`."""
        inside = self._jail.from_root(path) if self._jail is not None else path
        return _listed(inside, patterns)

    def search_exclusions(self) -> list[str]:
        """Globs of secret files for a search program; the paths it finds are checked again with `secret`."""
        # What rules open or deny cannot be said in these globs; then the second check decides alone.
        return [] if self._allow or self.denied is not None else [f"**/{pattern}" for pattern in SECRET]

    def check_read(self, path: str) -> None:
        """Raise for a secret file."""
        if self.denied is not None and self.denied(path, "read"):
            raise ToolFailure(
                "File is covered by a Read deny rule in your permission settings and cannot be read.",
                code="denied-by-rule",
                path=path,
            )
        if self.secret(path):
            raise ToolFailure(
                "Refusing to read env file. Reading secrets is not permitted.", code="reading-secret-file", path=path
            )

    def check_write(self, path: str, *, asks: bool = False) -> None:
        """Raise for a secret or a protected file; `asks`: not for one that a person will be asked about."""
        if self.denied is not None and self.denied(path, "read"):
            raise ToolFailure(
                "File is covered by a Read deny rule in your permission settings and cannot be edited.",
                code="denied-by-rule",
                path=path,
            )
        if self.denied is not None and self.denied(path, "write"):
            raise ToolFailure(
                "File is covered by an Edit deny rule in your permission settings and cannot be edited.",
                code="denied-by-rule",
                path=path,
            )
        if self.secret(path):
            raise ToolFailure(
                f"Refusing to write {os.path.basename(path)}, a secret file. Ask the user to change it by hand.",
                code="writing-secret-file",
                path=path,
            )
        if self.protected(path) and not (asks and self.may_be_asked(path)):
            raise ToolFailure(
                f"Refusing to write {os.path.basename(path)}: programs run or obey this file by themselves. "
                "Ask the user to change it by hand, or to list it in files.guarded_allow of the user's settings.",
                code="writing-protected-file",
                path=path,
            )


def _steers_git(path: str) -> bool:
    """Is it the settings or a hook of a repository that lies in a folder of another name?"""
    folder, name = os.path.split(path)
    if name not in {"config", "config.worktree"}:
        if os.path.basename(folder) != "hooks":
            return False
        folder = os.path.dirname(folder)
    return all(os.path.lexists(os.path.join(folder, part)) for part in ("HEAD", "objects", "refs"))


def _plain(name: str) -> str:
    """A name as lax file systems see it: any case, no trailing dots or blanks, no stream, no invisible characters."""
    if not name.isascii():
        name = _INVISIBLE.sub("", name).casefold()
    return name.split(":", 1)[0].rstrip(_TRAILING).lower() or name


def _listed(path: str, patterns: tuple[str, ...]) -> bool:
    parts = [_plain(part) for part in path.split(os.sep) if part]
    return bool(_joined(patterns).search("/" + "/".join(parts)))


@functools.lru_cache(maxsize=8)
def _joined(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all patterns, each anchored at a component boundary and at the end of the path."""
    return re.compile("|".join(rf"(?:/{_expression(pattern)}\Z)" for pattern in patterns), re.DOTALL)


def _expression(pattern: str) -> str:
    """The notation of the lists above: `*` within a component, `**` for all below, `{a,b}` for a choice."""
    pattern, out, at = pattern.lower(), [], 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**", at):
            out.append(".+")
            at += 1
        elif char == "*":
            out.append("[^/]*")
        elif char == "{" and (end := pattern.find("}", at)) > 0:
            out.append("(?:" + "|".join(map(re.escape, pattern[at + 1 : end].split(","))) + ")")
            at = end
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)
