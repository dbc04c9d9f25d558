"""What a conversation has changed, also by commands, as `/diff` shows it."""

import os

import pytest

from ferrule.cli.talk.commands import changes
from ferrule.files.journal import Journal, Node, NodeChange, WriteOrigin
from ferrule.files.ledger import fingerprint


def file(raw):
    return Node("file", 0o644, fingerprint(raw), len(raw))


@pytest.fixture
def journal(tmp_path):
    return Journal(str(tmp_path / "journal"), keep_bytes=1 << 20, keep_days=30, origin=WriteOrigin("T-1"))


def ran(journal, path, before, after):
    nodes = [NodeChange(str(path), before, after)]
    journal.commit(journal.announce("command", (), b"", nodes=nodes, about="npm run fmt"))


def rows(journal, kept=lambda _: None):
    texts = changes(journal, os.path.basename, kept=kept)
    return [row for text in texts for row in text.split("\n") if row]


def test_what_a_command_changed_is_shown_where_its_bytes_were_kept(journal, tmp_path):
    (tmp_path / "a").write_bytes(b"two\n")
    ran(journal, tmp_path / "a", file(b"one\n"), file(b"two\n"))

    kept = {fingerprint(b"one\n"): b"one\n"}
    assert rows(journal, lambda node: kept.get(node.content))[-3:] == ["@@ -1 +1 @@", "-one", "+two"]


def test_what_a_command_made_needs_no_bytes_of_before(journal, tmp_path):
    (tmp_path / "a").write_bytes(b"new\n")
    ran(journal, tmp_path / "a", None, file(b"new\n"))

    assert rows(journal)[-2:] == ["@@ -0,0 +1 @@", "+new"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(file(b"one\n"), file(b"two\n"), id="its bytes were not kept"),
        pytest.param(file(b"one\n"), Node("file", 0o644), id="nor those behind it"),
        pytest.param(Node("link", content="b"), file(b"two\n"), id="it was a link"),
    ],
)
def test_what_nobody_knows_is_said_to_be_a_commands(journal, tmp_path, before, after):
    (tmp_path / "a").write_bytes(b"two\n")
    ran(journal, tmp_path / "a", before, after)

    assert rows(journal) == ["diff --git a/a b/a", "(changed by a command: `npm run fmt`)"]


def test_what_was_changed_after_a_command_is_not_taken_for_its_own(journal, tmp_path):
    (tmp_path / "a").write_bytes(b"by hand\n")
    ran(journal, tmp_path / "a", None, file(b"two\n"))

    assert "changed by somebody else" in rows(journal)[-1]


def test_the_writes_of_another_conversation_are_not_shown(journal, tmp_path):
    (tmp_path / "a").write_bytes(b"new\n")
    ran(journal, tmp_path / "a", None, file(b"new\n"))
    other = Journal(journal.folder, keep_bytes=1 << 20, keep_days=30, origin=WriteOrigin("T-2"))
    same = Journal(journal.folder, keep_bytes=1 << 20, keep_days=30, origin=WriteOrigin("T-1"))

    assert (rows(other), rows(same)[-1]) == ([], "+new")
