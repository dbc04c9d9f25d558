"""Define secrets: the one list of file names, of places in the home folder, and of signs in a content.

Read, Grep, the judge of commands and every sandbox ask `Guard`, and that asks here.

Paths are compared with patterns as lax file systems compare them: any case, no trailing dots, no streams.
"""

import functools
import os
import re
from collections.abc import Callable, Iterable
from typing import Literal

from ferrule.core.access import within

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
