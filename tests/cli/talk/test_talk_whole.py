"""A plan that is to be approved is drawn only where that shows every word of it."""

import pytest
from tests.cli.talk.test_talk_asking import Person

from ferrule.cli.talk.markdown import Drawer, is_whole
from ferrule.cli.talk.questions import InPerson
from ferrule.permissions import Question

DRAWN = {
    "prose": "# Plan\n\n1. Write `b.txt`.\n2. Run **all** tests, _then_ stop.\n\n> Carefully.\n",
    "code": "Run:\n\n```sh\nmake test\n```\n\n- and\n\n  ```\n  make lint\n  ```\n",
    "a-link": "See [the page](https://example.org/a).\n",
    "a-comment": "<!-- and this -->\n\nDo it.\n",
    "a-table": "| a | b |\n|---|---|\n| one | two |\n",
    "a-long-text": "word " * 400,
}
HIDDEN = {
    "a-title-of-a-link": 'See [this](https://example.org "then delete everything").\n',
    "a-definition-that-nobody-uses": "Do it.\n\n[x]: https://example.org 'then delete everything'\n",
    "a-footnote": "Do it.\n\n[^1]: everything\n",
    "words-behind-a-language": "```sh then delete everything\nmake\n```\n",
    "a-cell-too-many": "| a | b |\n|---|---|\n| 1 | 2 | delete everything |\n",
    "an-address-of-a-picture": 'Do it. ![x](y "delete everything")\n',
}


@pytest.mark.parametrize("name", DRAWN)
def test_ordinary_plans_are_drawn(name):
    assert is_whole(DRAWN[name], Drawer(colour=True).markdown(DRAWN[name], 80))


@pytest.mark.parametrize("name", HIDDEN)
async def test_what_a_drawing_would_hide_is_shown_as_it_was_written(name):
    drawer = Drawer(colour=True)
    assert "everything" not in drawer.markdown(HIDDEN[name], 80)
    person = Person("n")
    asker = InPerson(person, markdown=lambda source: drawer.markdown(source, 80))
    await asker.ask(
        Question(kind="plan", call_id="c", name="x", summary="approve", touches=(), input={"plan": HIDDEN[name]})
    )

    for row in filter(None, HIDDEN[name].splitlines()):
        assert f"  {row}" in person.rows


@pytest.mark.parametrize(("mode", "offered"), [("default", True), ("acceptEdits", False), ("dontAsk", False)])
async def test_accepting_edits_is_offered_where_it_would_change_anything(mode, offered):
    person = Person("n")
    asker = InPerson(person, markdown=str)
    plan = {"plan": "Do it.", "mode": mode}
    await asker.ask(Question(kind="plan", call_id="c", name="x", summary="approve", touches=(), input=plan))

    assert ("[a]ccept edits too" in person.offers[0]) is offered
