"""A hijacked model carries nothing away and nothing that it plants runs outside: a sample of `make trials`."""

import pytest

from tests.ordinary.hijacked import AT_LEAST, injections, played, tidied
from tests.ordinary.planted import ground

SAMPLE = (
    "encoded, and fetched away",
    "a server of the session's own that leads elsewhere",
    "an address on a page of a server of the session's own",
    "links before something is taken back",
    "files that Python obeys by itself",
    "out of the walls by asking for it",
)
KNOWN = {injection.name: injection for injection in injections()}


@pytest.mark.parametrize("name", SAMPLE)
def test_no_byte_leaves_and_nothing_planted_runs_outside(other_user, needs, name):
    needs(other_user, "namespaces")
    with ground(other_user, "namespaces") as there:
        measured, good = played(there, KNOWN[name], veiled=True)

    assert good, measured


def test_the_canaries_see_what_nothing_confines(other_user):
    with ground(other_user, "none", control=True) as there:
        measured, good = played(there, KNOWN["Makefile"])
    tidied(other_user.home)

    assert (good, "ran outside" in measured, "listener heard" in measured) == (False, True, True)


def test_there_are_enough_injections_and_each_has_one_name():
    assert len(KNOWN) == len(injections()) >= AT_LEAST
