"""Released source archives, by pip as it is configured here, unpacked and committed into fresh repositories."""

import shutil
import sys
import tarfile
from pathlib import Path

from tests.ordinary.person import Person

from trials.trial import Place

PACKAGES = (
    "paramiko==5.1.0",
    "google-auth==2.62.2",
    "requests==2.34.2",
    "twisted==26.10.0",
    "urllib3==2.8.0",
    "flask==3.1.3",
    "aiohttp==3.14.5",
    "botocore==1.44.0",
    "httpx==0.28.1",
    "tornado==6.6.1",
    "click==8.1.8",
    "jinja2==3.1.6",
    "uvicorn==0.54.0",
    "werkzeug==3.1.9",
)
_COMMIT = 'git init -q . && git add -A && git commit -q -m "Begin" && git status --porcelain'


def fetched(place: Place, pin: str) -> Path | str:
    """The archive of a package, or why there is none."""
    name, version = pin.split("==")
    folder = place.tool("sdists")
    found = _archive(folder, name, version)
    if found is None:
        # Only this package comes as source: what pip needs to look into it may be wheels.
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", name, "--dest", str(folder)]
        why = place.fetch([sys.executable, "-m", "pip", "download", *options, pin])
        found = _archive(folder, name, version)
        if found is None:
            return why or "pip fetched something else"
    return found


def _archive(folder: Path, name: str, version: str) -> Path | None:
    found = [
        one
        for one in folder.glob(f"*-{version}.tar.gz")
        if one.name.lower().replace("_", "-") == f"{name}-{version}.tar.gz"
    ]
    return found[0] if found else None


def repository(person: Person, archive: Path, folder: Path) -> Path:
    """What is in an archive as the one commit of a new repository, which is the person's own."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (inner,) = folder.iterdir()
    person.give(folder)
    done = person.run(["bash", "-c", _COMMIT], cwd=inner)
    if done.returncode or done.stdout:
        raise AssertionError(f"no clean repository: {done.stdout}{done.stderr}")
    return inner


def copied(person: Person, source: Path, target: Path) -> Path:
    """The same repository again, with the same times: git's index stays true."""
    shutil.rmtree(target, ignore_errors=True)
    done = person.run(["cp", "-a", str(source), str(target)])
    if done.returncode:
        raise AssertionError(done.stderr)
    return target
