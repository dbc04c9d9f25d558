"""The guard against the same failing call, again and again."""

from ferrule.execute import Repeats


def test_the_third_failure_in_a_row_is_told() -> None:
    repeats = Repeats()

    assert [repeats.record_end("read", {"path": "x"}, failed=True) for _ in range(2)] == ["", ""]
    assert "3 times in a row" in repeats.record_end("read", {"path": "x"}, failed=True)
    assert "4 times in a row" in repeats.record_end("read", {"path": "x"}, failed=True)


def test_another_call_in_between_begins_the_count_anew() -> None:
    repeats = Repeats()
    for path in ("x", "x", "y", "x", "x"):
        assert repeats.record_end("read", {"path": path}, failed=True) == ""


def test_success_ends_the_count() -> None:
    repeats = Repeats()
    for failed in (True, True, False, True, True):
        assert repeats.record_end("read", {"path": "x"}, failed=failed) == ""


def test_the_order_of_arguments_does_not_count() -> None:
    repeats = Repeats()
    repeats.record_end("edit", {"a": 1, "b": 2}, failed=True)
    repeats.record_end("edit", {"b": 2, "a": 1}, failed=True)

    assert repeats.record_end("edit", {"a": 1, "b": 2}, failed=True)


def test_what_cannot_be_compared_is_never_told() -> None:
    repeats = Repeats()
    endless: dict[str, object] = {}
    endless["self"] = endless
    assert [repeats.record_end("read", endless, failed=True) for _ in range(4)] == [""] * 4
