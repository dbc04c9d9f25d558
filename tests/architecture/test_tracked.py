"""What the repository holds: text, and no large file that nobody meant to commit."""

import subprocess

from .project import ROOT

LIMIT_BYTES = 200_000
_HEAD_BYTES = 8_192
LARGE_BINARIES: dict[str, str] = {}
"""Binary files over the limit that belong here, each with the reason."""


def large_binaries() -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [name for name in listed.split("\0") if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]
    return {name for name in paths if (ROOT / name).stat().st_size > LIMIT_BYTES and _is_binary(name)}


def _is_binary(name: str) -> bool:
    with (ROOT / name).open("rb") as file:
        return b"\0" in file.read(_HEAD_BYTES)


def test_no_large_binary_is_tracked():
    assert large_binaries() == set(LARGE_BINARIES)
