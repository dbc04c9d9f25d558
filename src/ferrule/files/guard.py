"""Guard paths inside the workspace: secret files and protected files.

Secret files are never read, searched or edited; the lists of names and signs below say what is one. Protected files
(what programs obey or run by themselves) are never written. Both lists hold for the real path behind a link, in any
letter case, with trailing dots or blanks, and whether or not the file exists yet. Names compare by whole components.

Two questions about secrets have different answers. `secret`: may a tool tell its content, or a command line name it?
`hidden`: may a command that runs see it? What is committed is in everybody's hands, and git has to find it, so that
commands see it; an environment file is told by no tool all the same, for that is the contract.
"""

import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.files.jail import Jail
from ferrule.git import ABSENT, Committed, CommittedFile
from ferrule.system.folder import Stamp, is_settled, read_whole, stamp

_TRAILING = ". \t\n\v\f\r"
# HFS+ drops these from names before it compares them.
_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def plain(name: str) -> str:
    """A name as lax file systems see it: any case, no trailing dots or blanks, no stream, no invisible characters."""
    if not name.isascii():
        name = _INVISIBLE.sub("", name).casefold()
    return name.split(":", 1)[0].rstrip(_TRAILING).lower() or name


def normal(path: str) -> str:
    """A path whose components are all plain, with a slash before each."""
    return "/" + "/".join([plain(part) for part in path.split(os.sep) if part])


def matches_patterns(path: str, patterns: tuple[str, ...]) -> bool:
    """Does a pattern fit the path, or its end from some component on?"""
    return bool(compile_patterns(patterns).search(normal(path)))


@functools.lru_cache(maxsize=16)
def compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all patterns, each anchored at a component boundary and at the end of the path."""
    return re.compile("|".join(rf"(?:/{_expression(pattern)}\Z)" for pattern in patterns), re.DOTALL)


def in_folder(folder: str, patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """May one of these patterns fit a name in this folder? It never says no where one does, and is quick.

    `**` stands only at the end of a pattern here, and no slash within braces.
    """
    trees = compile_patterns(_trees(patterns))
    return (lambda _: True) if trees.search(normal(folder).rstrip("/") + "/x") else _last(patterns)


@functools.lru_cache(maxsize=4)
def _trees(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(pattern for pattern in patterns if pattern.endswith("**"))


@functools.lru_cache(maxsize=4)
def _last(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    ends = dict.fromkeys(_expression(one.rpartition("/")[2]) for one in patterns if not one.endswith("**"))
    fits = re.compile("|".join(f"(?:{end})" for end in ends), re.DOTALL).fullmatch
    return lambda name: fits(plain(name)) is not None


def _expression(pattern: str) -> str:
    """The notation of the lists: `*` within a component, `**` for all below, `{a,b}` for a choice."""
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


Kind = Literal["environment", "key", "npmrc", "named", "home"]
"""`environment`: variables of a program. `key` and `npmrc`: its content decides. `named`: its name is enough.
`home`: a place in the home folder that holds credentials."""

READABLE = (".env.example", ".env.sample", ".env.template")
"""Names that look secret and are meant to be shared."""

ENVIRONMENTS = (".env", ".env.*", ".env{-,_}*", ".env~", ".envrc", ".flaskenv", "*.env")
NAMED = (
    "credentials",
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
    "*.{p12,pfx,jks,keystore,kdbx,ppk}",
    ".{netrc,pypirc,pgpass,htpasswd,git-credentials,dockercfg}",
    "_netrc",
    ".docker/config.json",
    ".kube/config",
    ".gnupg/**",
    ".ssh/**",
)
CREDENTIALS = "credentials.*"
"""Secret unless it ends like source code or documentation."""
KEYS = "*.{pem,key}"
"""Secret unless all that they hold is public."""
NPMRC = ".npmrc"
"""Secret if it holds a token."""
SECRET = (*ENVIRONMENTS, *NAMED, CREDENTIALS, KEYS, NPMRC)

_SOURCE = (
    "py pyi pyx ts tsx mts cts js jsx mjs cjs go rs java kt kts rb erb c h cc cpp cxx hh hpp hxx m mm cs fs vb php"
    " swift scala clj cljs groovy ex exs erl hs elm ml mli jl lua dart zig nim pl pm proto graphql vue svelte astro"
    " html htm css scss less snap md mdx rst adoc pyc"
)
SOURCE = frozenset(_SOURCE.split())
"""The endings with which `credentials.*` is code or documentation. Not `sh`, `txt`, `sql`, `xml`, `json` and their
like: those are how credentials are kept."""

HOME = (
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".config/gh",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/op",
    ".password-store",
    ".vault-token",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/keyrings",
    ".local/state/ferrule/credentials.json",
    ".mozilla",
    ".config/google-chrome",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".cache/huggingface/token",
    ".local/share/uv/credentials",
    ".config/pypoetry/auth.toml",
    ".composer/auth.json",
    ".terraform.d/credentials.tfrc.json",
)
"""In the user's home: what no command needs and every thief wants."""

MOST_BYTES = 4 << 20
"""A larger file is not looked into, and counts as secret."""

_PUBLIC = frozenset(
    {
        "CERTIFICATE",
        "X509 CERTIFICATE",
        "TRUSTED CERTIFICATE",
        "CERTIFICATE REQUEST",
        "NEW CERTIFICATE REQUEST",
        "X509 CRL",
        "PUBLIC KEY",
        "RSA PUBLIC KEY",
        "DSA PUBLIC KEY",
        "EC PUBLIC KEY",
        "EC PARAMETERS",
        "DSA PARAMETERS",
        "DH PARAMETERS",
        "X9.42 DH PARAMETERS",
        "PKCS7",
        "PGP PUBLIC KEY BLOCK",
        "PGP SIGNATURE",
    }
)
"""The labels of PEM blocks that hold nothing private."""
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9. ]+)-----\r?\n[\x20-\x7e\r\n\t]*?-----END \1-----")
_SSH_PUBLIC = re.compile(
    r"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d+|sk-[\w.@-]+) AAAA[A-Za-z0-9+/=]+(?:[ \t][^\r\n]*)?"
)
_TELLS = re.compile(r"private|secret|passw|-----|[A-Za-z0-9+/=_]{64}", re.IGNORECASE)
"""Beside public blocks: words, or a run of characters, that may well be a key of another form."""
_TOKEN_LINE = re.compile(
    r"(?im)(?:^|[:\s\"'#;])(?:_?auth_?token|_auth|_?password|_?token|key)[\"']?(?:\[\])?[ \t]*=[ \t]*([^\n]*)$"
)
_VARIABLE = re.compile(r"\$\{\w+[?]?\}", re.ASCII)
_TOKEN = re.compile(
    r"://[^/\s@:]*:[^/\s@]+@|\bnpm_[A-Za-z0-9]{20,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bglpat-|\beyJ[\w-]{20}"
)


def kind_of(path: str) -> Kind | None:
    """What a path looks like by its name, from the workspace on; None for no secret. The content may say otherwise."""
    whole = normal(path)
    name = whole.rpartition("/")[2]
    if compile_patterns(SECRET).search(whole) is None or name in READABLE:
        return None
    if compile_patterns(ENVIRONMENTS).search(whole):
        return "environment"
    if compile_patterns(NAMED).search(whole):
        return "named"
    if compile_patterns((CREDENTIALS,)).search(whole) and name.rpartition(".")[2] not in SOURCE:
        return "named"
    if compile_patterns((KEYS,)).search(whole):
        return "key"
    return "npmrc" if compile_patterns((NPMRC,)).search(whole) else None


def is_source(name: str) -> bool:
    """Does a name end like source code or documentation?"""
    return plain(name).rpartition(".")[2] in SOURCE


def at_home(path: str, home: str, roots: Iterable[str] = ()) -> str:
    """The place of credentials in the home folder that a path belongs to; empty for none.

    What lies below one of `roots`, which the user works in, belongs to no place that this root is itself a part of.
    """
    roots = tuple(roots)
    for root in roots:
        if within(path, root) and not meets_home(root, home):
            return ""
    whole = normal(path) + "/"
    for place, shown in _places(home):
        if whole.startswith(place):
            inner = [normal(root) + "/" for root in roots]
            if not any(root.startswith(place) and whole.startswith(root) for root in inner):
                return shown
    return ""


@functools.lru_cache(maxsize=32)
def meets_home(root: str, home: str) -> bool:
    """Is one of the places in this folder, or this folder in one of them?"""
    whole = normal(root).rstrip("/") + "/"
    return any(place.startswith(whole) or whole.startswith(place) for place, _ in _places(home))


def is_above_place(folder: str, home: str) -> bool:
    """Is one of the places right in this folder?"""
    return normal(folder) in _above(home)


@functools.lru_cache(maxsize=4)
def _above(home: str) -> frozenset[str]:
    return frozenset(place[:-1].rpartition("/")[0] or "/" for place, _ in _places(home))


@functools.lru_cache(maxsize=4)
def _places(home: str) -> tuple[tuple[str, str], ...]:
    """Each place as it compares, also where the home folder or the place itself is a link."""
    found: dict[str, str] = {}
    for name in HOME:
        spelled = os.path.join(home, name)
        for path in (spelled, os.path.realpath(spelled)):
            if not within(home, path):  # a link to what lies above hides nothing
                found.setdefault(normal(path) + "/", os.path.join("~", name))
    return tuple(found.items())


def holds_key(raw: bytes) -> bool:
    """May a file hold a private key? Only what is known to be public does not."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return True
    if "\0" in text:
        return True
    if not text.strip():
        return False
    rest, pieces = 0, []
    for block in _BLOCK.finditer(text):
        if block[1] not in _PUBLIC:
            return True
        pieces.append(text[rest : block.start()])
        rest = block.end()
    pieces.append(text[rest:])
    if len(pieces) > 1:
        return _TELLS.search("\n".join(pieces)) is not None
    lines = [line.strip() for line in text.splitlines()]
    return not all(_SSH_PUBLIC.fullmatch(line) for line in lines if line and not line.startswith("#"))


def holds_token(raw: bytes) -> bool:
    """Does an `.npmrc` hold a token, a password or a key? One that is only the name of a variable is none."""
    try:
        text = raw.decode("utf-8-sig").replace("\r", "\n")
    except UnicodeDecodeError:
        return True
    if "\0" in text or _TOKEN.search(text):
        return True
    values = (found[1].strip().strip("\"'").strip() for found in _TOKEN_LINE.finditer(text))
    return any(value and _VARIABLE.fullmatch(value) is None for value in values)


__all__ = ["PROTECTED", "READABLE", "SECRET", "Guard"]

_Why = Literal["environment", "key", "npmrc", "named", "home", "rule"]

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


OWN = (".ferrule", ".ferrule/**")
"""Those that nobody is asked about even when a command has written them."""


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
        self.written: set[str] = set()
        """Protected files that the session itself wrote, with the user's leave."""
        self.denied: Callable[[str, str], bool] | None = None
        """Does a rule deny a path, for reading or for writing? Such a file counts as secret or as protected."""
        self.rules: Callable[[], int] = int
        """How many sets of rules there are: what was denied is asked again when there are more."""
        self.committed = Committed()
        """What was committed when the session began; HEADs are noted here and now, before any command can run."""
        if jail is not None:
            self.committed.begin([root.path for root in jail.roots])
        self._contents: dict[str, tuple[Stamp, bool]] = {}
        """Path → what the file was like, and whether its content was secret then."""

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
        """Is its content to be told by no tool, and its name to be asked about in a command line?"""
        return self._why(path) is not None

    def find_substitute(self, path: str) -> CommittedFile | None:
        """What commands are to see in the place of a file, by its real path: None for the file itself.

        For a state `different` it is the committed bytes, for `absent` nothing.
        """
        return None if (why := self._why(path, is_told=False)) is None else self._substitute_for(path, why)

    def find_target_substitute(self, path: str) -> CommittedFile | None:
        """The same for a file that a secret name leads to, whatever its own name is."""
        return self._substitute_for(path, self._why(path, is_told=False) or "named")

    def is_folder_hidden(self, path: str) -> bool:
        """Is all of a folder hidden because of its name? Not where it is one of source code, or an environment."""
        why = self._why(path, is_told=False)
        if why is None or why in {"home", "rule"}:
            return why is not None
        try:
            names = os.listdir(path)
        except OSError:
            return True
        if "pyvenv.cfg" in names or any(map(is_source, names)):
            return False
        return not self.committed.holds_folder(path)

    def marks(self, folder: str) -> Callable[[str], bool]:
        """May a name in this folder be secret or protected by its name? It errs on the side of yes."""
        home = os.path.expanduser("~")
        if self._home_place(os.path.join(folder, "x")) or is_above_place(folder, home):
            return lambda _: True
        return in_folder(self._inside(folder), (*SECRET, *PROTECTED))

    def is_askable(self, path: str) -> bool:
        """May a person let this secret file of the workspace be read? Environment files open by the setting only."""
        is_here = self._jail is not None and self._jail.holds(path) and os.path.isfile(path)
        return is_here and self._why(path) in {"key", "npmrc", "named"}

    def reason(self, path: str) -> str:
        """Why a file is secret, as a sentence."""
        name = os.path.basename(path)
        why = self._why(path)
        if why == "key":
            return f"{name} holds a private key, or cannot be told from one."
        return {
            None: "",
            "environment": f"{name} is an environment file.",
            "npmrc": f"{name} holds a token, or cannot be told from one that does.",
            "named": f"{name} has a name that files of credentials have.",
            "home": f"{self._home_place(path)} is a place of credentials.",
            "rule": f"A rule denies {name}.",
        }[why]

    def _why(self, path: str, *, is_told: bool = True) -> _Why | None:
        """Why a path is secret; None where it is not. `is_told`: what is committed counts, for what is told of keys."""
        if self.denied is not None and self.denied(path, "read"):
            return "rule"
        kind = kind_of(self._inside(path))
        if kind in {"key", "npmrc"} and not self._holds(path, kind):
            kind = None
        if kind is None and self._home_place(path):
            kind = "home"
        if kind is None or self._open(path):
            return None
        if is_told and kind == "key" and self._substitute_for(path, kind) is None:
            return None
        # A package may well be called `credentials`: what is in it is told by its own names.
        if is_told and kind in {"named", "environment"} and os.path.isdir(path) and not self.is_folder_hidden(path):
            return None
        return kind

    def _holds(self, path: str, kind: str) -> bool:
        """Is there something secret in the file? What cannot be looked into counts as secret."""
        try:
            known = self._contents.get(path)
            if known is None or known[0] != stamp(os.stat(path)):
                raw, status = read_whole(path, MOST_BYTES, follow=True)
                known = (stamp(status), (holds_key if kind == "key" else holds_token)(raw))
                self._contents.pop(path, None)
                if is_settled(status):
                    self._contents[path] = known
        except (OSError, ValueError):
            return True
        return known[1]

    def _substitute_for(self, path: str, why: _Why) -> CommittedFile | None:
        if why in {"home", "rule"}:
            return ABSENT
        state = self.committed.state(os.path.realpath(path))
        return None if state.verdict == "equal" else state

    def _home_place(self, path: str) -> str:
        roots = () if self._jail is None else [root.path for root in self._jail.roots]
        return at_home(path, os.path.expanduser("~"), roots)

    def is_protected(self, path: str) -> bool:
        if self.denied is not None and self.denied(path, "write"):
            return True
        if any(within(path.casefold(), folder.casefold()) for folder in self.kept):
            return True
        is_listed = path not in self._plans and (self._matches_patterns(path, PROTECTED) or _steers_git(path))
        is_obeyed = path.casefold() in self._run or is_listed
        return is_obeyed and not self._open(path)

    def may_be_asked(self, path: str, *, unasked: tuple[str, ...] = UNASKED) -> bool:
        """May a person be asked whether this protected file is written? Never for what rules and settings keep."""
        if self.secret(path) or (self.denied is not None and self.denied(path, "write")):
            return False
        if any(within(path.casefold(), folder.casefold()) for folder in self.kept) or path.casefold() in self._run:
            return False
        return not self._matches_patterns(path, unasked) and (unasked is not UNASKED or not _steers_git(path))

    def _open(self, path: str) -> bool:
        return bool(self._allow) and self._matches_patterns(path, self._allow)

    def _matches_patterns(self, path: str, patterns: tuple[str, ...]) -> bool:
        return matches_patterns(self._inside(path), patterns)

    def _inside(self, path: str) -> str:
        """Names above the workspace do not count: a project may well lie in a folder like `.claude/worktrees`."""
        return self._jail.from_root(path) if self._jail is not None else path

    def search_exclusions(self) -> list[str]:
        """Globs of files that are secret by name, for a search program; `secret` decides about all others."""
        # What rules open or deny cannot be said in these globs; then that decides alone.
        if self._allow or self.denied is not None:
            return []
        # A glob would keep the search out of folders of source code with that name, too.
        return [f"**/{pattern}" for pattern in (*ENVIRONMENTS, *NAMED) if pattern != "credentials"]

    def search_names(self) -> list[str]:
        """Globs of names, without folders, that a file which is secret may have; where a rule denies, any name."""
        return ["*"] if self.denied is not None else [pattern for pattern in SECRET if "/" not in pattern]

    def has_home_place(self, folder: str) -> bool:
        """Are there places of credentials of the home folder in this folder, or is it in one?"""
        return meets_home(folder, os.path.expanduser("~"))

    def check_read(self, path: str) -> None:
        """Raise for a secret file."""
        if self.denied is not None and self.denied(path, "read"):
            raise ToolFailure(
                "File is covered by a Read deny rule in your permission settings and cannot be read.",
                code="denied-by-rule",
                path=path,
            )
        if self.secret(path):
            raise self.refusal(path)

    def refusal(self, path: str) -> ToolFailure:
        """What is said of a secret file that somebody wants to read: the contract's sentence, and the true reason."""
        return ToolFailure(
            "Refusing to read env file. Reading secrets is not permitted.",
            code="reading-secret-file",
            path=path,
            note=self._help(path),
        )

    def _help(self, path: str) -> str:
        return f"{self.reason(path)} The user can open it in files.guarded_allow of the settings."

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
                note=self._help(path),
            )
        if self.is_protected(path) and not (asks and self.may_be_asked(path)):
            raise ToolFailure(
                f"Refusing to write {os.path.basename(path)}: programs run or obey this file by themselves. "
                "Ask the user to change it by hand, or to list it in files.guarded_allow of the user's settings.",
                code="writing-protected-file",
                path=path,
            )
        if self._matches_patterns(path, PROTECTED):
            self.written.add(path)


def _steers_git(path: str) -> bool:
    """Is it the settings or a hook of a repository that lies in a folder of another name?"""
    folder, name = os.path.split(path)
    if name not in {"config", "config.worktree"}:
        if os.path.basename(folder) != "hooks":
            return False
        folder = os.path.dirname(folder)
    return all(os.path.lexists(os.path.join(folder, part)) for part in ("HEAD", "objects", "refs"))
