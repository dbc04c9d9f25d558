"""Questions to a person: what is shown, which keys answer, and what becomes of them."""

import msgspec
import pytest

from ferrule.cli.talk.keyboard import Presses
from ferrule.cli.talk.questions import InPerson
from ferrule.cli.talk.text import plain
from ferrule.core.access import Access
from ferrule.core.services import Choice, Option
from ferrule.permissions import Answer, Question, visible


class Person:
    """A front whose person answers with what was written down before."""

    width = 80

    def __init__(self, *answers):
        self.answers = list(answers)
        self.rows = []
        self.offers = []
        self.seen_before = []
        self.starts = []

    def print_lines(self, *lines):
        self.rows += map(plain, lines)

    def print(self, text):
        self.rows += text.rstrip("\n").split("\n")

    async def key(self, words, keys, *, again=False):
        self.seen_before.append(again)
        self.offers.append(words + " " + " ".join(f"[{key}]{rest}" for key, rest in keys))
        answer = self.answers.pop(0)
        assert answer in dict(keys), f"{answer} is not offered: {keys}"
        return answer

    async def words(self, offer, start=""):
        self.offers.append(offer)
        self.starts.append(start)
        return self.answers.pop(0)

    async def edit(self, text, suffix):
        self.starts.append(text)
        return self.answers.pop(0)


def question(kind="call", **more):
    values = {"call_id": "c", "name": "Edit", "tool": "edit", "summary": "Edit: write a.py", "touches": ()}
    return Question(kind=kind, **{**values, **more})


async def asked(one, *answers):
    person = Person(*answers)
    asker = InPerson(person, markdown=lambda text: f"MARKDOWN {text}\n")
    seen: list[str] = []
    asker.on_shown = seen.append
    answer = await asker.ask(one)
    assert person.answers == []
    return answer, person, seen


async def test_an_edit_is_shown_with_its_change_and_its_reason():
    answer, person, seen = await asked(question(changes=("1 - x", "1 + y"), why="No rule covers it."), "y")

    assert (answer.allow, answer.always) == (True, False)
    assert person.rows == ["", "? Edit: write a.py", "    1 - x", "    1 + y", "  No rule covers it.", "  → yes", ""]
    assert seen == ["c"]


@pytest.mark.parametrize(
    ("keys", "allow", "always", "message"),
    [
        pytest.param(["y"], True, False, "", id="yes"),
        pytest.param(["a"], True, True, "", id="always"),
        pytest.param(["n"], False, False, "", id="no"),
        pytest.param(["t", "not so"], False, False, "The user did not allow this and says: not so", id="tell"),
        pytest.param(["t", None, "y"], True, False, "", id="tell-and-think-better"),
        pytest.param(["t", "", "n"], False, False, "", id="tell-nothing"),
        pytest.param(["t", "\x07b"], False, False, "The user did not allow this and says: \\x07b", id="raw"),
    ],
)
async def test_a_call_is_answered(keys, allow, always, message):
    answer, _, _ = await asked(question(), *keys)

    assert (answer.allow, answer.always, answer.message) == (allow, always, message)


async def test_a_long_change_is_cut_and_can_be_shown_whole():
    changes = ("(new file)", *(f"{number} + {number}" for number in range(50)))

    answer, person, seen = await asked(question(changes=changes), "s", "n")

    first = person.rows.index("    … 31 more lines, s shows all")
    assert "    49 + 49" not in person.rows[:first]
    assert "    49 + 49" in person.rows[first:]
    assert seen == ["c"]
    assert not answer.allow


async def test_no_part_of_a_change_is_cut_off_at_the_edge_of_the_screen():
    _, person, _ = await asked(question(changes=("1 + " + "safe " * 30 + "evil",)), "n")

    assert all(len(row) < 80 for row in person.rows)
    assert any("evil" in row for row in person.rows)


async def test_blanks_hide_nothing_behind_the_edge_of_a_preview():
    _, person, _ = await asked(question(changes=("1 + x = 1" + " " * 600 + "; evil()",)), "n")
    _, other, _ = await asked(question(changes=("(new file)", "1 + " + "x" * 4000)), "s", "n")

    assert any("evil()" in row for row in person.rows)
    assert any("more line, s shows all" in row for row in other.rows)


async def test_rows_are_counted_as_the_screen_breaks_them():
    _, person, _ = await asked(question(changes=("1 + " + "word " * 60,) * 30), "n")

    assert "[s]how all" in person.offers[0]
    assert sum("word" in row for row in person.rows) <= 20


async def test_several_options_can_be_chosen_as_fast_as_one_can_type():
    options = (Option("Red"), Option("Blue"))
    choices = (
        Choice(id="c", question="Which?", options=options, multiple=True),
        Choice(id="d", question="And?", options=options),
    )

    _, person, _ = await asked(question("choose", choices=choices), "1", "2", "d", "1")

    assert person.seen_before == [False, True, True, False]


async def test_a_command_is_shown_once_and_whole_with_what_it_touches():
    one = question(
        name="Bash",
        summary="run `rm -r build`",
        input={"command": "rm -r build", "seconds": 120},
        touches=(Access.command("rm -r build", "/w"),),
        effects=("writes build",),
        proposals=("Bash(rm -r build)",),
    )

    _, person, _ = await asked(one, "a")

    assert person.rows[:3] == ["", "? run `rm -r build`", "    writes build"]
    assert "[a]lways (saves the rule Bash(rm -r build))" in person.offers[0]


async def test_the_middle_of_a_long_command_can_be_shown():
    command = f"echo {'a' * 3000}; touch evil; echo {'b' * 3000}"
    one = question(name="Bash", summary=f"run `{command}`", touches=(Access.command(command, "/w"),))

    _, person, _ = await asked(one, "s", "n")

    assert any("more characters" in row for row in person.rows)
    assert any("touch evil" in row for row in person.rows)


async def test_a_rule_that_is_saved_for_always_is_seen_whole():
    rule = f"Bash({'make ' * 30}all)"

    _, person, _ = await asked(question(proposals=(rule,)), "a")

    assert "[a]lways (as said above)" in person.offers[0]
    assert rule in " ".join(" ".join(person.rows).split())


@pytest.mark.parametrize(
    ("kind", "offer"),
    [
        pytest.param("folder", "Open this folder for the session?", id="folder"),
        pytest.param("outside", "Run it outside the sandbox?", id="outside"),
        pytest.param("server", "Approve it, from now on?", id="server"),
    ],
)
async def test_what_widens_the_session_is_never_answered_for_always(kind, offer):
    answer, person, _ = await asked(question(kind, tool="shell"), "y")

    assert answer.allow
    assert person.offers == [f"{offer} [y]es [n]o [t]ell the model why not"]


@pytest.mark.parametrize(
    ("keys", "allow", "values"),
    [
        pytest.param(["y"], True, None, id="yes"),
        pytest.param(["a"], True, {"mode": "acceptEdits"}, id="edits-too"),
        pytest.param(["n"], False, None, id="no"),
    ],
)
async def test_a_plan_is_shown_with_all_that_a_yes_allows(keys, allow, values):
    effects = tuple(f"allows Bash(make {number}) in this session" for number in range(12))

    answer, person, _ = await asked(question("plan", input={"plan": "# Do it"}, effects=effects), *keys)

    assert (answer.allow, answer.values, answer.always) == (allow, values, False)
    assert "MARKDOWN # Do it" in person.rows
    assert "    allows Bash(make 11) in this session" in person.rows


COMMAND = question(
    name="Bash",
    tool="shell",
    summary="run `rm -r build`",
    input={"command": "rm -r build", "seconds": 120},
    given={"command": "rm -r build", "description": "Clean"},
    touches=(Access.command("rm -r build", "/w"),),
)


@pytest.mark.parametrize(
    ("keys", "allow", "given"),
    [
        pytest.param(["e", "rm -r dist"], True, {"command": "rm -r dist", "description": "Clean"}, id="edited"),
        pytest.param(["e", "rm -r build"], True, None, id="unchanged"),
        pytest.param(["e", None, "n"], False, None, id="given-up"),
        pytest.param(["e", "  ", "n"], False, None, id="nothing"),
    ],
)
async def test_a_command_can_be_edited_before_it_is_allowed(keys, allow, given):
    answer, person, _ = await asked(COMMAND, *keys)

    assert (answer.allow, answer.input) == (allow, given)
    assert person.starts == ["rm -r build"]


async def test_a_command_that_has_begun_is_not_edited():
    met = msgspec.structs.replace(COMMAND, kind="outside")

    _, person, _ = await asked(met, "n")

    assert "[e]dit" not in person.offers[0]


async def test_a_command_of_several_lines_is_shown_in_its_lines():
    script = "cat > a.py <<'EOF'\nprint(1)\nEOF"
    one = question(name="Bash", summary=f"run `{visible(script)}` in src", touches=(Access.command(script, "/w"),))

    _, person, seen = await asked(one, "n")

    assert person.rows[1:5] == ["? run 3 lines of shell in src", "    cat > a.py <<'EOF'", "    print(1)", "    EOF"]
    assert seen == []


async def test_an_edited_plan_is_shown_again_and_its_yes_is_one_to_what_it_became():
    answer, person, _ = await asked(question("plan", input={"plan": "# Do it"}), "e", "# Do less", "a")

    assert answer == Answer(allow=True, input={"plan": "# Do less"}, values={"mode": "acceptEdits"})
    assert "MARKDOWN # Do less" in person.rows
    assert person.starts == ["# Do it"]


@pytest.mark.parametrize("left", [None, "# Do it\n", " ", "x" * 50_001])
async def test_a_plan_that_was_not_changed_or_cannot_be_one_stays(left):
    answer, _, _ = await asked(question("plan", input={"plan": "# Do it"}), "e", left, "y")

    assert answer == Answer(allow=True)


async def test_a_servers_values_are_filled_in_only_after_a_yes():
    schema = {"properties": {"name": {"type": "string"}}, "required": ["name"]}

    answer, _, _ = await asked(question("values", schema=schema), "y", "Ada")
    refused, person, _ = await asked(question("values", schema=schema), "n")

    assert answer.values == {"name": "Ada"}
    assert not refused.allow
    assert len(person.offers) == 1


CHOICE = Choice(question="Which?", header="Base", options=(Option("One", "the first"), Option("Two")))


@pytest.mark.parametrize(
    ("choice", "keys", "values"),
    [
        pytest.param(CHOICE, ["2"], {"Which?": "Two"}, id="one"),
        pytest.param(CHOICE, ["o", "neither"], {"Which?": "neither"}, id="own-words"),
        pytest.param(CHOICE, ["o", None, "1"], {"Which?": "One"}, id="own-words-given-up"),
        pytest.param(CHOICE, ["l"], None, id="left-open"),
        pytest.param(CHOICE, ["n"], None, id="no-answer"),
        pytest.param(
            Choice(question="Which?", options=CHOICE.options, multiple=True),
            ["2", "1", "2", "2", "d"],
            {"Which?": ["One", "Two"]},
            id="several",
        ),
        pytest.param(Choice(question="Why?", kind="text", id="w"), ["o", "so"], {"w": "so"}, id="text"),
    ],
)
async def test_a_choice_is_made_by_number_or_in_own_words(choice, keys, values):
    answer, person, _ = await asked(question("choose", choices=(choice,)), *keys)

    assert answer.values == values
    assert answer.allow is (values is not None)
    assert any(choice.question in row for row in person.rows)


class TestPresses:
    """Which keys count."""

    def setup_method(self):
        self.now = 10.0
        self.presses = Presses(lambda: self.now)

    def test_a_key_after_a_quiet_while_answers(self):
        self.presses.ask()
        self.presses.press()

        assert self.presses.is_armed

    def test_whoever_is_typing_does_not_answer(self):
        for _ in range(5):
            self.presses.press()
            self.now += 0.1
        self.presses.ask()
        for _ in range(20):
            self.presses.press()
            assert not self.presses.is_armed
            self.now += 0.3

    def test_after_a_pause_the_next_key_answers(self):
        self.presses.press()
        self.presses.ask()
        self.now += 0.6
        self.presses.press()

        assert self.presses.is_armed

    def test_whoever_has_sent_a_line_is_not_typing(self):
        self.presses.press()
        self.presses.on_send()
        self.presses.ask()

        assert self.presses.is_armed

    def test_whoever_begins_to_type_words_does_not_answer_with_one_of_their_letters(self):
        self.presses.ask()
        self.presses.press()
        self.presses.on_key()
        for _ in range(20):
            self.now += 0.3
            self.presses.press()
            assert not self.presses.is_armed
        self.now += 0.6
        self.presses.press()

        assert self.presses.is_armed
