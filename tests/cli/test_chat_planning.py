"""A conversation that was left in plan mode, taken up again in the terminal."""

from tests.cli.test_chat_tmux import READY, project, script, submit, terminal  # noqa: F401 - fixtures


def test_it_plans_on_until_the_user_names_another_mode(tmp_path, project, terminal):  # noqa: F811 - fixtures
    one = terminal(["--replay", script(tmp_path, {"text": "I plan."})], project)
    one.wait(READY)
    submit(one, "/plan")
    one.wait("Plan mode is on")
    submit(one, "hello")
    one.wait("I plan.")
    submit(one, "/exit")
    assert one.ended() == 0

    other = terminal(["--replay", script(tmp_path, {"text": "More."})], project)
    other.wait("(?m)^  default")
    submit(other, "/resume")
    other.wait(r"Which conversation\?(.*\n)*.*→ ")
    other.press("Enter")
    other.wait("as it was when this conversation was left")
    other.wait("(?m)^  plan mode")
    submit(other, "/permissions default")
    other.wait("(?m)^  default")
    submit(other, "/exit")
    assert other.ended() == 0

    third = terminal(["--replay", script(tmp_path, {"text": "More."}), "--continue"], project)
    third.wait("I plan.")
    third.wait("(?m)^  default")
    third.press("C-d")
    assert third.ended() == 0
