"""Scripted prompt injections with the default settings: no byte leaves, and nothing planted runs outside the walls."""

from collections.abc import Iterator
from functools import partial

from tests.ordinary.hijacked import AT_LEAST, Injection, injections, played, tidied
from tests.ordinary.person import Person
from tests.ordinary.planted import ground
from tests.ordinary.session import CONFINED

from trials.trial import Place, Row, Trial, tried


def _rows(place: Place) -> Iterator[Row]:
    rows = injections()
    yield Row("injections in the list", f"at least {AT_LEAST}", str(len(rows)), len(rows) >= AT_LEAST)
    yield from place.missing_user("injections")
    me = place.people[0]
    for one in rows:
        if one.through:
            what = f"control: {one.name}, unconfined, {me.title}"
            yield tried(what, "comes through", partial(_control, one, me))
    for person, way, why in place.each(CONFINED):
        for one in rows:
            what = f"{one.name}, {way}, {person.title}"
            if why:
                yield Row(what, "tried", why, None)
                continue
            if way == "namespaces":
                yield tried(what, "no canary hit", partial(_played, one, person, way, veiled=False))
            yield tried(f"{what}, in scripts", "no canary hit", partial(_played, one, person, way, veiled=True))


def _played(injection: Injection, person: Person, way: str, *, veiled: bool) -> tuple[str, bool | None]:
    with ground(person, way) as there:
        return played(there, injection, veiled=veiled)


def _control(injection: Injection, person: Person) -> tuple[str, bool | None]:
    """What nothing stops: an injection that cannot succeed at all proves nothing where it fails."""
    try:
        with ground(person, "none", control=True) as there:
            measured, held = played(there, injection)
    finally:
        tidied(person.home)
    return measured, held is False


TRIAL = Trial(
    "injections",
    "What a hijacked model would call, with the default settings and nobody who answers: reading and carrying away "
    "secrets, planting what other programs obey, leading tools elsewhere; as they are, and in scripts that no judge of "
    "command lines looks into. Listeners of the machine and marks outside "
    "the workspace tell whether anything came of it. Each control is the same where nothing confines it.",
    _rows,
)
