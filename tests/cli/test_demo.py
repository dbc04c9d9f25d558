"""`ferrule demo`: it plays to its end anywhere, offline, and leaves nothing behind."""

import os
import re
import shutil
import subprocess

import pytest
from tests.cli.recordings import FERRULE

from ferrule.cli.demo import WordWrapper
from ferrule.cli.main import run


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A place for temporary folders that nothing else uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def left(temporary):
    """The folders of demos; what the process itself has until its end is no business of theirs."""
    return [one for one in temporary.iterdir() if one.name.startswith("ferrule-demo-")]


def test_it_mends_the_project_with_a_subagent_in_plain_text(temporary, capsys):
    assert run(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    for line in (
        r"^> An order of exactly",
        r"^  ┌ Explore: Find the discount",
        r"^  │ ✓ Grep discount$",
        r"^  ✗ Bash python -m unittest: Exit code 1",
        r"^  ✓ Edit shop/discount.py",
        r"^\+    if full >= THRESHOLD:$",
        r"^The project is mended\.$",
    ):
        assert re.search(line, out, re.MULTILINE), line
    assert str(temporary) not in out
    assert left(temporary) == []


def test_it_keeps_the_folder_where_it_is_asked_to(temporary, capsys):
    assert run(["demo", "--keep"]) == 0
    (folder,) = left(temporary)
    out = capsys.readouterr().out
    assert f"Kept: {folder}" in out
    assert f"cd {folder}/before && ferrule chat --replay ../conversation.jsonl" in out
    assert "full >= THRESHOLD" in (folder / "shop" / "shop" / "discount.py").read_text()
    assert "full > THRESHOLD" in (folder / "before" / "shop" / "discount.py").read_text()
    task = "Why does an order of exactly 20.00 get no discount?"
    arguments = ["--workspace", str(folder / "before"), "--replay", str(folder / "conversation.jsonl"), "--yes"]
    assert run(["run", task, *arguments]) == 0
    assert "full >= THRESHOLD" in (folder / "before" / "shop" / "discount.py").read_text()
    shutil.rmtree(folder)


def test_the_tour_of_the_engine_is_still_there(temporary, capsys):
    assert run(["demo", "--calls"]) == 0
    assert "6. Grep" in capsys.readouterr().out
    assert left(temporary) == []


def test_it_plays_in_a_folder_that_cannot_be_written_and_without_a_home(temporary, tmp_path):
    """As root every folder can be written: then it is only looked at whether something was."""
    place = tmp_path / "here"
    place.mkdir()
    place.chmod(0o555)
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "FERRULE_STATE", "FERRULE_SETTINGS")}
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [*FERRULE, "demo"], cwd=place, env={**kept, **offline}, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().endswith("The project is mended.\n")
    assert list(place.iterdir()) == []
    assert not os.path.exists(os.environ["FERRULE_STATE"])


def test_its_readers_may_go_away(temporary):
    child = subprocess.Popen([*FERRULE, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.read(1) == b">"
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(timeout=60) in (0, 1)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_lines_are_broken_between_words_as_they_come(size):
    text = "The sum itself has to count. \n\n- a_word_that_is_longer_than_a_line of it"
    wrapping = WordWrapper(12)
    shown = "".join(wrapping.more(text[at : at + size]) for at in range(0, len(text), size)) + wrapping.rest()
    assert shown == "The sum\nitself has\nto count.\n\n-\na_word_that_is_longer_than_a_line\nof it"
    assert wrapping.more("a b") == "a"  # behind the end a new line begins
