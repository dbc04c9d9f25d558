"""The ledger: what each call has shown, what is forgotten with it, and what is told to be kept."""

from ferrule.files.ledger import FileWindowRecord, Ledger, Sight, Sights, fingerprint

ONE, TWO = fingerprint(b"one"), fingerprint(b"two")


def test_what_a_call_has_shown_is_forgotten_with_it():
    ledger = Ledger()
    ledger.of("c1").saw("/a", b"one")
    ledger.of("c1").saw("/b", b"one")
    ledger.of("c2").saw("/b", b"one")
    ledger.forget_calls({"c1"})

    assert (ledger.knows("/a"), ledger.knows("/b")) == (False, True)


def test_a_window_is_shown_again_once_the_call_that_showed_it_is_out_of_sight():
    ledger = Ledger()
    for call in ("c1", "c2"):
        if not ledger.of(call).mark_shown("/a", b"one", (None, None)):
            ledger.of(call).saw("/a", b"one")
    ledger.of("c3").saw("/a", b"one")
    ledger.forget_calls({"c1"})

    assert ledger.knows("/a")
    assert not ledger.of("c4").mark_shown("/a", b"one", (None, None))
    assert ledger.of("c5").mark_shown("/a", b"one", (None, None))


def test_news_are_told_once():
    ledger = Ledger()
    ledger.of("c1").saw("/a", b"one")
    ledger.of("c1").saw("/b", b"one")
    ledger.of("c1").mark_shown("/a", b"one", (1, None))
    first = ledger.take_news()
    ledger.of("c2").saw("/a", b"two")
    ledger.of("c2").forget("/b")
    ledger.of("c2").forget("/c")

    assert first == Sights(
        {"/a": Sight(ONE, "c1"), "/b": Sight(ONE, "c1")}, (FileWindowRecord("/a", 1, None, ONE, "c1"),)
    )
    assert ledger.take_news() == Sights({"/a": Sight(TWO, "c2"), "/b": Sight("", "c2")})
    assert ledger.take_news() is None


def test_what_was_put_back_is_still_of_the_call_that_showed_it():
    ledger = Ledger()
    ledger.of("c1").saw("/a", b"one")
    ledger.take_news()
    ledger.follow({"/a": b"two", "/b": b"two"})

    assert ledger.take_news() == Sights({"/a": Sight(TWO, "c1")})


def test_what_was_told_is_known_again_without_what_only_calls_have_shown_that_are_gone():
    told = [
        Sights({"/a": Sight(ONE, "c1"), "/b": Sight(ONE, "c1"), "/c": Sight(ONE, "c1"), "/d": Sight(ONE, "c1")}),
        Sights(
            {"/a": Sight(TWO, "c2"), "/b": Sight("", "c2"), "/c": Sight("", "")},
            (FileWindowRecord("/a", 1, 2, TWO, "c2"),),
        ),
    ]
    ledger, whole = Ledger(), Ledger()
    ledger.restore(told, {"c1"}.__contains__)
    whole.restore(told, {"c1", "c2"}.__contains__)

    assert [ledger.stale("/a", raw) for raw in (b"one", b"two")] == [False, True]
    assert [whole.stale("/a", raw) for raw in (b"one", b"two")] == [True, False]
    assert [ledger.knows(f"/{name}") for name in "abcd"] == [True, True, False, True]
    assert [whole.knows(f"/{name}") for name in "abcd"] == [True, False, False, True]
    assert (ledger.mark_shown("/a", b"two", (1, 2)), whole.mark_shown("/a", b"two", (1, 2))) == (False, True)
