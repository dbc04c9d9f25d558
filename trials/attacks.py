"""Attacks on what sessions share and on what they leave, in every back end and as every user."""

from collections.abc import Iterator
from functools import partial

from tests.ordinary.person import Person
from tests.ordinary.planted import ATTACKS, Attack, ground
from tests.ordinary.session import ways_of

from trials.trial import Place, Row, Trial, tried


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("attacks")
    for attack in ATTACKS:
        if attack.comes_through:
            what = f"control: {attack.name}, unconfined, {place.people[0].title}"
            yield tried(what, "comes through", partial(_control, attack, place.people[0]))
    for person in place.people:
        why = ways_of(person)
        for attack in ATTACKS:
            for way in attack.ways:
                what = f"{attack.name}, {way}, {person.title}"
                if way != "none" and why.get(way, "unknown"):
                    yield Row(what, "tried", why.get(way, "unknown to this engine"), None)
                    continue
                yield tried(what, attack.expected, partial(_done, attack, person, way))


def _done(attack: Attack, person: Person, way: str) -> tuple[str, bool | None]:
    with ground(person, way) as there:
        return attack.run(there)


def _control(attack: Attack, person: Person) -> tuple[str, bool | None]:
    """An attack that nothing stops: one that cannot succeed at all proves nothing where it fails."""
    with ground(person, "none", control=True) as there:
        measured, held = attack.run(there)
    return measured, held is False


TRIAL = Trial(
    "attacks",
    "Attacks on the shared network, /tmp, forwarded ports, caches, secrets, git's settings, nested repositories and "
    "formatters, in every back end and as every user: nothing planted runs outside the walls, no secret is read. "
    "Each control is the same attack where nothing confines it.",
    _rows,
)
