"""What destructive commands did is taken back: 200 scripts, in every back end and as every user; and rewinding."""

from collections.abc import Iterator
from functools import partial

from tests.ordinary.person import Person
from tests.ordinary.restoring import AT_LEAST, Script, batch, part, scripts, summary
from tests.ordinary.session import CONFINED

from trials.trial import Place, Row, Trial, tried

WHOLE = "namespaces"
"""The back end in which all of them are tried; the others get a part."""
EVERY = 4


def _rows(place: Place) -> Iterator[Row]:
    count = len(scripts())
    yield Row("scripts in the list", f"at least {AT_LEAST}", str(count), count >= AT_LEAST)
    yield from place.missing_user("restore")
    me = place.people[0]
    what = f"control: the tree copied anew in the place of undo, none, {me.title}"
    yield tried(what, "all whole again", partial(_restored, me, part(2 * EVERY), "none", copy=True))
    for person, way, why in place.each((WHOLE, *(one for one in (*CONFINED, "none") if one != WHOLE))):
        if way != "none" and why:
            yield Row(f"{way}, {person.title}", "tried", why, None)
            continue
        chosen = scripts() if way == WHOLE else part(EVERY)
        for category in dict.fromkeys(script.category for script in chosen):
            few = [script for script in chosen if script.category == category]
            what = f"{category}, {way}, {person.title}"
            yield tried(what, f"{len(few)} of {len(few)}", partial(_restored, person, few, way))


def _restored(person: Person, chosen: list[Script], way: str, *, copy: bool = False) -> tuple[str, bool]:
    outcomes = list(batch(person, chosen, way, copy=copy))
    return summary(outcomes), all(one.good or one.skipped for one in outcomes)


TRIAL = Trial(
    "restore",
    "200 destructive shell scripts in a repository with everything that is easily lost, each taken back by one undo "
    "and compared byte for byte and mode for mode: all in one back end, a part in the others. What git alone can move "
    "back must have been said. The control compares with the tree copied anew.",
    _rows,
)
