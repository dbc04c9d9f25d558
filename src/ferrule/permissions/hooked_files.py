"""The scripts that the hooks of a project's settings name: they are trusted with them, or not at all."""

import os
from collections.abc import Sequence

import msgspec

from ferrule.permissions.started import look
from ferrule.support.beneath import READ_NO_LINK, read_regular
from ferrule.workspace.hook_scripts import commands

_MOST_BYTES = 1 << 20


def hooked_files(workspace: str, files: Sequence[str]) -> list[str]:
    """The scripts in the workspace, as paths from it; what cannot be read as settings names none."""
    real = os.path.realpath(workspace)
    found = {script for path in files for line in _commands(path) for script in look(line, real).files}
    return [os.path.join(workspace, os.path.relpath(script, real)) for script in sorted(found)]


def _commands(path: str) -> list[str]:
    try:
        raw = read_regular(os.open(path, READ_NO_LINK), _MOST_BYTES) or b""
        decode = msgspec.toml.decode if path.endswith(".toml") else msgspec.json.decode
        said = decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (OSError, ValueError, RecursionError):  # whoever reads the rules says what is wrong
        return []
    return list(commands(said.get("hooks"))) if isinstance(said, dict) else []
