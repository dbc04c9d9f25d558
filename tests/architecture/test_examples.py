"""The examples run as they stand, and say what they promise."""

import subprocess
import sys

import pytest

from .project import LIMIT_SECONDS, ROOT, environment

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def promised(source: str) -> list[str]:
    """The lines that an example's own docstring says it prints."""
    return [line.strip()[2:] for line in source.split('"""')[1].splitlines() if line.strip().startswith("> ")]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in EXAMPLES])
def test_an_example_prints_what_it_promises(path, tmp_path):
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == promised(path.read_text(encoding="utf-8"))
