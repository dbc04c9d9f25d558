"""The list of what is to be done, while the agent works."""

from tests.cli.talk.test_talk_lines import Stage, began, called, ended

from ferrule.cli.talk.events import describe_todo, todo_rows
from ferrule.cli.talk.text import plain
from ferrule.core.call import TodoItem, TodosChanged


def todo(number, status="pending", **more):
    return TodoItem(str(number), f"Do {number}", status, **more)


def shown(*todos):
    return [plain(row) for row in todo_rows(todos)]


def test_the_list_is_live_while_the_agent_works_and_gone_with_the_end():
    todos = (todo(1, "completed"), todo(2, "in_progress", active_form="Doing 2"), todo(3))
    stage = Stage().play(began(), called(TodosChanged, "", "", todos=todos))

    assert stage.screen == (
        "--\n  3 todos (1 done, 1 in progress, 1 open)\n  ✓ Do 1\n  ◼ Doing 2\n  ◻ Do 3\n⠋ thinking · 0.0s"
    )
    assert stage.play(ended()).screen == "--"


def test_a_list_that_is_done_is_not_in_the_way():
    assert shown(todo(1, "completed"), todo(2, "cancelled")) == []
    assert shown() == []


def test_what_is_left_to_do_comes_before_what_is_done():
    done = [todo(number, "completed") for number in range(10)]

    rows = shown(*done, todo(10, "blocked", owner="Ada"), todo(11), todo(12, "cancelled"))

    assert rows[0] == "  13 todos (10 done, 0 in progress, 2 open, 1 cancelled)"
    assert "  ◻ Do 10  (Ada, blocked)" in rows
    assert "  ✗ Do 12" in rows
    assert rows[-1] == "    … 5 more, /tasks shows all"


def test_of_many_that_are_left_the_first_are_shown():
    rows = shown(*(todo(number) for number in range(30)))

    assert rows[1:3] == ["  ◻ Do 0", "  ◻ Do 1"]
    assert rows[-1] == "    … 22 more, /tasks shows all"


def test_nothing_in_a_todo_steers_the_screen():
    assert shown(TodoItem("1", "a\x1b[2J\nb", "pending"))[1] == "  ◻ a b"


def test_a_call_about_one_todo_names_it_with_its_status():
    todos = (todo(1), todo(2))

    assert describe_todo({"todo_id": "2", "status": "in_progress"}, todos) == "Do 2 → in progress"
    assert describe_todo({"todo_id": "2", "subject": "Else"}, todos) == "Do 2"
    assert describe_todo({"todo_id": "9", "status": "completed"}, todos) == "9 → completed"
    assert describe_todo({"subject": "Do 3"}, todos) == ""
