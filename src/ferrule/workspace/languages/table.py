"""The table of language servers: what a row says, and the rows as the user's settings change and add to them."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ferrule.tool_settings import LanguageServer


class Row(NamedTuple):
    """One language server: how it is started, for which files, and what it is told."""

    name: str
    program: str
    """Its name on PATH, or an absolute path."""
    args: tuple[str, ...]
    languages: Mapping[str, str]
    """An ending, as `.py`, or the whole name of a file → what the protocol calls the language; in lower case."""
    markers: tuple[str, ...] = ()
    """Files that lie where a project begins; `*.sln` stands for any with that ending."""
    install: str = ""
    """How one comes by it, in a few words."""
    runs_project_code: bool = False
    """May it run what lies in the project: build scripts, plug-ins, an interpreter, the project's own compiler?"""
    options: Mapping[str, Any] = {}
    """What it is told when it starts."""
    configuration: Mapping[str, Any] = {}
    """What it is told when it asks for its configuration."""
    env: Mapping[str, str] = {}
    """`{private}` is a folder that it may write, in these and in its arguments."""
    needs_marker: bool = False
    """Is it only for projects with one of the markers?"""
    least_version: int = 0
    """Its program is another one before this version; 0: whatever it says."""
    is_named: bool = False
    """Has the user named it in the settings?"""

    def language(self, path: str) -> str:
        """What the protocol calls the language of that file; nothing where this server is not for it."""
        name = os.path.basename(path).lower()
        found = self.languages.get(name)
        if found is None:
            found = self.languages.get(os.path.splitext(name)[1] or name)
        return found or ""


def spread(*groups: tuple[str, str]) -> dict[str, str]:
    """Endings or names, with blanks between them, and their language: `(".c .h", "c")`."""
    return {ending: language for endings, language in groups for ending in endings.split()}


def rows(known: tuple[Row, ...], servers: Mapping[str, LanguageServer]) -> tuple[Row, ...]:
    """All rows, those of the settings first; without those that are disabled there."""
    by_name = {row.name: row for row in known}
    named = [_changed(by_name.get(name), name, wanted) for name, wanted in servers.items() if not wanted.disabled]
    return (*named, *(row for row in known if row.name not in servers))


def _changed(row: Row | None, name: str, wanted: LanguageServer) -> Row:
    row = row or Row(name, name, (), {})
    language = wanted.language or (next(iter(row.languages.values()), "") or name)
    endings = {_ending(one): row.languages.get(_ending(one), language) for one in wanted.endings}
    return row._replace(
        program=os.path.expanduser(wanted.command) or row.program,
        args=row.args if wanted.args is None else wanted.args,
        languages=endings or (dict.fromkeys(row.languages, language) if wanted.language else row.languages),
        markers=wanted.markers or row.markers,
        options=merged(row.options, wanted.options),
        configuration=merged(row.configuration, wanted.configuration),
        env={**row.env, **wanted.env},
        least_version=0 if wanted.command else row.least_version,
        is_named=True,
    )


def _ending(written: str) -> str:
    """`py`, `.py` and `*.py` are the same ending; a name with a capital letter is the whole name of a file."""
    written = written.removeprefix("*")
    if written[:1].isupper():
        return written.lower()
    return (written if written.startswith(".") else f".{written}").lower()


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """What stands above wins, table by table."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        found[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found
