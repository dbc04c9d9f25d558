"""When the walls around commands are whole, so that these may run without a question."""

from pathlib import Path
from typing import Any

import pytest

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.sandbox import Profile, Wrapped
from ferrule.sandbox import hidden as precious
from ferrule.sandbox.confinement import Confinement, Wishes


class Wall:
    """A way to confine commands of which only the name counts."""

    lacks = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def wrap(self, argv: Any, profile: Profile, *, cwd: str) -> Wrapped:
        raise AssertionError("nothing runs here")


def around(top: Path, name: str, **wishes: Any) -> Confinement:
    """Commands of a workspace behind a wall of this name."""
    (top / "work").mkdir(exist_ok=True)
    jail = Jail(str(top / "work"))
    made = Confinement(
        jail, Guard((), jail), Wishes(**wishes), state=str(top / "state"), home=[root.path for root in jail.roots]
    )
    made._sandbox, made._chosen = (None if name == "none" else Wall(name)), True
    return made


@pytest.mark.parametrize("name", ["namespaces", "bubblewrap", "seatbelt"])
@pytest.mark.parametrize("wishes", [{}, {"hosts": ("pypi.example", "*.example.org")}])
def test_the_walls_are_whole_where_nothing_is_open_but_named_hosts(tmp_path: Path, name: str, wishes: Any) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".env").write_text("A=b\n")

    assert around(tmp_path, name, **wishes).why_not_whole() == ""


@pytest.mark.parametrize(
    ("name", "wishes", "why"),
    [
        ("none", {}, "Nothing confines commands here."),
        ("landlock", {}, "The sandbox landlock cannot take files out of the folders that commands write."),
        ("namespaces", {"network": True}, "Commands may use the whole network."),
        (
            "bubblewrap",
            {"unix_sockets": True},
            "Commands may talk to other programs of this machine (setting sandbox.unix_sockets).",
        ),
    ],
)
def test_one_opening_is_enough_to_break_them(tmp_path: Path, name: str, wishes: Any, why: str) -> None:
    walls = around(tmp_path, name, **wishes)

    assert (walls.why_not_whole(), walls.is_whole()) == (why, False)


def test_a_search_that_did_not_reach_everything_breaks_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precious, "_MOST_SECONDS", -1.0)

    why = "Not all of the workspace could be searched for secret files."
    assert around(tmp_path, "namespaces").why_not_whole() == why


def test_a_sandbox_that_is_wanted_and_not_there_breaks_them_without_a_failure(tmp_path: Path) -> None:
    walls = around(tmp_path, "none", required=True)

    assert "sandbox.required is set" in walls.why_not_whole()
    assert "sandbox.required is set" in walls.why_not_hidden()


def test_a_network_that_is_opened_later_breaks_them(tmp_path: Path) -> None:
    walls = around(tmp_path, "namespaces")
    assert walls.is_whole()

    walls.allow_host("example.org")
    assert walls.is_whole()
    walls.allow_network()

    assert not walls.is_whole()


@pytest.mark.parametrize(("secret", "hidden"), [(False, True), (True, False)])
def test_for_who_asks_for_no_questions_it_is_enough_that_secrets_are_hidden(
    tmp_path: Path, secret: bool, hidden: bool
) -> None:
    walls = around(tmp_path, "landlock", network=True, unix_sockets=True)
    if secret:
        (tmp_path / "work" / ".env").write_text("A=b\n")

    assert (not walls.why_not_hidden(), walls.is_whole()) == (hidden, False)
