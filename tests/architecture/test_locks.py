"""The locks: every pin has a hash, and no index is named."""

import re
import tomllib

import pytest

from .project import ROOT, shown

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
WHEELS = ("model.txt", "replay.txt")
"""No environments but wheels that tests look into: two of one package, and one with a small language model."""
EVERY = [pytest.param(path, id=shown(path)) for path in LOCKS]
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def pins(text: str) -> list[str]:
    """Each requirement with its hashes, as one line."""
    lines = [
        line
        for line in text.replace("\\\n", " ").splitlines()
        if line.strip() and not line.lstrip().startswith(("#", "--no-binary "))
    ]
    return [" ".join(line.split()) for line in lines]


def named(requirement: str) -> str:
    """The project that a requirement is about, in its normal form."""
    found = _NAME.match(requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def test_there_is_a_lock_for_users_and_one_for_developers():
    assert [path.name for path in LOCKS] == ["dev.txt", *WHEELS, "run.txt"]


@pytest.mark.parametrize("path", EVERY)
def test_every_pin_has_an_exact_version_and_a_hash(path):
    loose = [
        pin
        for pin in pins(path.read_text(encoding="utf-8"))
        if not re.match(r"[A-Za-z0-9._-]+==\S+( ; .*?)?( --hash=sha256:[0-9a-f]{64})+$", pin)
    ]

    assert loose == []


@pytest.mark.parametrize("path", EVERY)
def test_no_address_is_written_into_a_lock(path):
    text = path.read_text(encoding="utf-8")

    assert "://" not in text
    assert "index-url" not in text


def test_the_locks_hold_what_the_project_asks_for():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)
    groups = project["dependency-groups"]
    extras = project["project"]["optional-dependencies"]
    named_extras = [one for extra, held in extras.items() for one in held if extra not in {"all", "local"}]
    users = [*project["project"]["dependencies"], *named_extras, *groups["build"]]
    # A hundred megabytes for models on this machine are for whoever wants them, and for the tests.
    wanted = {
        "run.txt": users,
        "dev.txt": [*users, *extras["local"], *groups["dev"], *groups["oracles"], *groups["node"]],
    }

    for name, requirements in wanted.items():
        locked = {named(pin) for pin in pins((ROOT / "requirements" / name).read_text(encoding="utf-8"))}
        assert {named(requirement) for requirement in requirements} <= locked


def test_users_and_developers_run_the_same_versions():
    run, dev = (
        {pin.split(" --hash")[0] for pin in pins((ROOT / "requirements" / name).read_text())}
        for name in ("run.txt", "dev.txt")
    )

    assert run <= dev
