"""The settings about the web, language servers and checks, with their defaults."""

from typing import Annotated, Any, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
"""Not endless: clocks are counted on."""


class Search(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the web is searched."""

    backend: Literal["ddgs", "brave", "tavily", "exa", "searxng"] = "ddgs"
    """Who is asked. `ddgs` needs no key; the others but `searxng`, which needs an address, need one."""
    url: str = ""
    """Another address of the back end; for `searxng` the address of the server."""
    key_env: str = ""
    """The environment variable with the key; `BRAVE_API_KEY`, `TAVILY_API_KEY` or `EXA_API_KEY` unless said."""
    results: Annotated[int, msgspec.Meta(ge=1, le=50)] = 8
    """How many results are given where the caller does not say."""


class Web(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages of the web."""

    private_hosts: tuple[str, ...] = ()
    """Hosts of this machine or of its own network that may be fetched from, as `localhost:8080` or `*.intern.example`;
    without a port at 80 and 443."""
    robots: bool = True
    """Are pages left alone that their site's robots.txt closes to programs?"""
    user_agent: str = ""
    """What sites are told about who asks; Ferrule with its version where nothing is said."""
    proxy: str = ""
    """An http proxy for all pages, as `http://proxy.example:3128`. It looks names up itself, so that only addresses in
    the place of names are judged here."""
    seconds: _Seconds = 30.0
    """How long one page may take, with all of its redirects."""
    most_mb: Annotated[float, msgspec.Meta(gt=0, le=4096)] = 10.0
    """How large a page may be, on the wire and unpacked."""
    hops: Annotated[int, msgspec.Meta(ge=0, le=50)] = 10
    """How many redirects are followed."""
    cache_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 900.0
    """How long a page that was fetched is given again; 0 means never."""
    answers: bool = True
    """Does a model read a page that something is asked about, so that only its answer comes back?"""
    search: Search = Search()


class LanguageServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A language server: one of one's own, or what is to be different about one that is known."""

    command: str = ""
    """A program on PATH, or its absolute path."""
    args: tuple[str, ...] | None = None
    endings: tuple[str, ...] = ()
    """Endings of the files it is for, as `.py`."""
    language: str = ""
    """What the protocol calls the language, where it is not the server's name here."""
    markers: tuple[str, ...] = ()
    """Files that lie where a project of that language begins."""
    env: dict[str, str] = {}
    """Variables that it gets beside the ordinary ones."""
    options: dict[str, Any] = {}
    """What it is told when it starts."""
    configuration: dict[str, Any] = {}
    """What it is told when it asks for its configuration."""
    disabled: bool = False


class Lsp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Language servers."""

    servers: dict[str, LanguageServer] = {}
    """A name → a server: one that is known, such as `ty` or `gopls`, or another. Those that are written here come first
    for their files."""
    seconds: _Seconds = 30.0
    """How long an answer may take."""
    start_seconds: _Seconds = 60.0
    """How long a server may take to start."""
    idle_seconds: _Seconds = 1800.0
    """A server that nobody has asked for so long is ended."""
    most: _Count = 6
    """How many run at once; the one that was asked longest ago ends for another one."""
    confined: bool = True
    """Do they run in the sandbox, where there is one?"""
    after_edits: bool = True
    """Are new errors told after edits, where a server for the file runs already?"""
    after_seconds: _Seconds = 3.0
    """How long the replies to edits wait for that at most."""


class CheckCommand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check of one's own."""

    command: str
    """A command line for the shell."""
    kind: Literal["types", "lint", "format", "tests", "build", "other"] = "other"
    folder: str = ""
    """Where it runs, from the workspace."""
    shares: str = ""
    """A word: checks with the same one do not run at the same time."""


class Checks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The project's own checks."""

    commands: dict[str, CheckCommand] = {}
    """A name → a check beside those that are found; one of the same name replaces it."""
    disable: tuple[str, ...] = ()
    """Globs of names of checks that are not run unless they are named."""
    parallel: _Count = 4
    """How many run at once."""
    review: bool = True
    """Are the reviews of `.agents/checks` done too, where there is a model?"""
