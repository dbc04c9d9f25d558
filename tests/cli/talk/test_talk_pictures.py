"""Pictures in the terminal: only where it is known to show them, only what is here, in room that fits."""

import base64
import re

import pytest
from tests.agent.test_attachments import png
from tests.cli.talk.terminals import Pty
from tests.cli.test_chat_tmux import script
from tests.rows import each_row

from ferrule.cli.talk.text import cells, find_protocol, picture
from ferrule.core.content import Image

RAW = png(80, 64)
HERE = Image("image/png", base64.b64encode(RAW).decode())


@each_row(
    ("setting", "environment", "protocol"),
    [
        ("auto", {}, ""),
        ("auto", {"TERM": "xterm-256color"}, ""),
        ("auto", {"TERM": "xterm-kitty"}, "kitty"),
        ("auto", {"TERM_PROGRAM": "ghostty"}, "kitty"),
        ("auto", {"TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ("auto", {"LC_TERMINAL": "iTerm2"}, "iterm2"),
        ("auto", {"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, ""),
        ("auto", {"TERM": "tmux-256color", "LC_TERMINAL": "iTerm2"}, ""),
        ("off", {"TERM": "xterm-kitty"}, ""),
        ("iterm2", {"TERM": "xterm-256color"}, "iterm2"),
    ],
)
def test_the_protocol_follows_from_the_setting_and_the_environment(setting, environment, protocol):
    assert find_protocol(setting, environment) == protocol


@pytest.mark.parametrize(
    ("pixels", "size"),
    [((80, 64), (10, 4)), ((1600, 800), (60, 15)), ((100, 4000), (1, 18)), ((1, 1), (1, 1)), ((4000, 10), (60, 1))],
)
def test_a_picture_keeps_its_form_and_stays_in_bounds(pixels, size):
    assert cells(*pixels, most_columns=60) == size


def test_kitty_gets_it_in_pieces_and_answers_nothing():
    drawn = picture(HERE, "kitty", 80)
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", drawn)

    assert pieces[0][0].startswith("a=T,f=100,q=2,C=1,c=10,r=4,m=")
    assert [head[-3:] for head, _ in pieces] == ["m=1"] * (len(pieces) - 1) + ["m=0"]
    assert base64.b64decode("".join(data for _, data in pieces)) == RAW
    assert max(len(data) for _, data in pieces) <= 4096
    assert drawn.startswith("\n\n\n\n\x1b[4A\x1b[2C\x1b7\x1b_G")
    assert drawn.endswith("\x1b8\r\x1b[4B")


def test_iterm_gets_it_whole():
    found = re.search(r"\x1b\]1337;File=([^:]*):([^\x07]*)\x07", picture(HERE, "iterm2", 80))

    assert found is not None
    assert found[1] == f"inline=1;size={len(RAW)};width=10;height=4;preserveAspectRatio=1"
    assert base64.b64decode(found[2]) == RAW


@pytest.mark.parametrize(
    ("image", "protocol"),
    [
        pytest.param(Image("image/png", "", url="https://x.example/a.png"), "kitty", id="elsewhere"),
        pytest.param(Image("image/png", "A\x1b]2;x\x07"), "kitty", id="what-is-not-encoded"),
        pytest.param(Image("image/png", base64.b64encode(b"<svg/>").decode()), "iterm2", id="no-picture"),
        pytest.param(Image("image/jpeg", base64.b64encode(b"\xff\xd8\xff\xe0" * 9).decode()), "kitty", id="no-png"),
        pytest.param(HERE, "", id="no-protocol"),
    ],
)
def test_what_cannot_be_shown_is_not(image, protocol):
    assert picture(image, protocol, 80) == ""


@pytest.mark.parametrize(("setting", "count"), [("kitty", 2), ("auto", 0)])
def test_what_is_attached_and_what_a_tool_reads_is_shown(tmp_path, setting, count):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.png").write_bytes(RAW)
    (tmp_path / "settings.toml").write_text(f'[chat]\npictures = "{setting}"\n')
    read = {"use": "Read", "input": {"file_path": "${workspace}/a.png"}}
    one = Pty(90, 30)
    try:
        one.start(
            ["chat", "--replay", script(tmp_path, {"parts": [read]}, {"text": "A shop."}), "look at @a.png"],
            folder,
            FERRULE_SETTINGS=str(tmp_path / "settings.toml"),
        )
        shown = one.wait("A shop.")
        one.type("\x04")
        assert one.ended() == 0
    finally:
        one.close()

    assert "Shown to the model: Image" in shown
    assert one._raw.count(b"\x1b_Ga=T") == count
