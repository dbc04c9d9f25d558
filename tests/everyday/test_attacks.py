"""What is new does not open a way: a sample of the attacks of `make trials`, each in one back end for one user."""

import pytest

from tests.ordinary.person import in_turn
from tests.ordinary.planted import ATTACKS, ground

SAMPLE = (
    "network: a server of this machine, by the tool for pages",
    "network: a server of another session",
    "network: a page that leads to this machine's servers",
    "ports: known services and privileged ports are not forwarded",
    "/tmp of another session",
    "/tmp: reading through a planted link",
    "/tmp: writing through a planted link",
    "caches, toolchains and settings at home",
    "secrets: newly tracked or committed",
    "secrets: tracked, and changed on disk",
    "secrets: 30 levels deep",
    "secrets: made while the session runs",
    "planted: core.fsmonitor by rename",
    "planted: core.fsmonitor in a nested repository",
    "planted: core.fsmonitor in a new repository",
    "planted: a hook",
    "settings of git that a repository brings, while reading",
    "planted: hooks and servers of Ferrule",
    "planted: a formatter",
    "planted: what a hook runs",
)
KNOWN = {attack.name: attack for attack in ATTACKS}


@pytest.mark.parametrize(("name", "person"), in_turn(*SAMPLE), indirect=["person"])
def test_nothing_planted_runs_outside_and_no_secret_is_read(person, needs, name):
    way = "namespaces" if person.uid else "bubblewrap"
    needs(person, way)
    with ground(person, way) as there:
        measured, good = KNOWN[name].run(there)

    assert good, measured


def test_git_reads_without_running_a_repositorys_settings_where_nothing_is_confined(other_user):
    with ground(other_user, "none") as there:
        measured, good = KNOWN["settings of git that a repository brings, while reading"].run(there)

    assert good, measured
