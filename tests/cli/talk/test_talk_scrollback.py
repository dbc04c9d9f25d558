"""What is over is in the scrollback once, in its order and as it was said, whatever the terminal's size does meanwhile.

The chat runs in a pseudo-terminal and asks a scripted model over HTTP; its bytes go through a terminal emulator.
"""

import re

import pytest
from tests.cli.talk.emulator import FRAME, Recorder
from tests.cli.talk.model_server import ModelServer, Think, Use

READY = r"^> *\n  (default|acceptEdits|plan mode|bypass)"
ENDED = r"it is over\.\n\n(  \d.*\n\n)?> *\n  default"
WORDS = " ".join(f"w{number:03}" for number in range(150))
WIDE = "".join(f"字{number}漢字" for number in range(100, 160))
ITEMS = [
    f"item{number} of a list that is so long that it has to be broken in a narrow terminal" for number in range(30)
]
CODE = [f"value_{number} = {number}" for number in range(24)]
LONG = "long_line = [" + ", ".join(f"'element {number}'" for number in range(30)) + "]"
AFTER = "And a last paragraph that says that it is over."
ANSWER = "\n\n".join(
    [
        "<HOLD>".join(("# The title", WORDS[:200])) + "<HOLD>" + WORDS[200:],
        WIDE,
        "\n".join(f"- {item}" + ("<HOLD>" if at == 27 else "") for at, item in enumerate(ITEMS)),
        "\n".join(["```python", *CODE[:12], "<HOLD>" + CODE[12], *CODE[13:], LONG, "if True:", "    done = 1", "```"]),
        AFTER + "<HOLD>",
    ]
)
SAID = [
    "The title",
    *WORDS.split(),
    WIDE,
    *(word for item in ITEMS for word in ("•", *item.split())),
    *CODE,
    LONG,
    "if True:",
    "    done = 1",
    AFTER,
]
SIZES = {
    "narrower, and back": [(80, 24), (100, 30), (140, 40), (60, 40), (80, 24)],
    "in small steps": [(80, 24), (77, 24), (74, 23), (71, 22), (68, 24), (71, 26)],
    "wider, then lower": [(60, 30), (80, 30), (140, 30), (140, 24), (60, 24)],
}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def talk(project):
    """Starts the chat with what a model says."""
    opened = []

    def start(script, columns=80, rows=24, *arguments, reflow=True, **environment):
        server = ModelServer(script, pause=0.001)
        server.__enter__()
        one = Recorder(columns, rows, reflow=reflow)
        opened.append((server, one))
        one.start(["chat", *arguments], project, **server.environment, **environment)
        one.wait(READY)
        return server, one

    yield start
    for server, one in opened:
        one.close()
        server.__exit__()


def dense(text):
    """Without blanks, with which rows are filled up and broken."""
    return "".join(text.split())


def said(one):
    """What stands between the prompt and the input, without what the answer took."""
    text = "\n".join(one.emulator.copied()).split("> begin", 1)[1].rsplit("\n>", 1)[0]
    return re.sub(r"\n  [\d.]+s · .* in, .* out · .*\n", "\n", text)


def held(server, one):
    """The stream has come to a hold, and all before it is on the screen."""
    for _ in range(600):
        if server.is_held():
            one.settle()
            return
        one.pump(0.05)
    raise AssertionError(one.text())


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_every_line_is_there_once_and_in_its_order(talk, columns):
    server, one = talk({"begin": [[ANSWER]]}, columns)
    for _ in range(ANSWER.count("<HOLD>")):
        server.release()

    one.submit("begin")
    one.wait(ENDED)

    shown = said(one)
    assert dense(shown) == dense("".join(SAID))
    # Code is copied as it was written: no margin before it, no blanks behind it, no line broken.
    rows = [row for row in shown.split("\n") if row]
    assert [row for row in rows if row in {*CODE, LONG, "if True:", "    done = 1"}] == [
        *CODE,
        LONG,
        "if True:",
        "    done = 1",
    ]
    assert [row for row in rows if row != row.rstrip()] == []


@pytest.mark.parametrize("reflow", [True, False], ids=["broken anew", "cut off"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_resize_while_text_streams_doubles_and_loses_nothing(talk, sizes, reflow):
    first, *others = sizes
    terminal = {} if reflow else {"XTERM_VERSION": "XTerm(379)"}
    server, one = talk({"begin": [[ANSWER]]}, *first, reflow=reflow, **terminal)

    one.submit("begin")
    for size in [*others, others[-1]][: ANSWER.count("<HOLD>")]:
        held(server, one)
        one.resize(*size)
        one.settle()
        server.release()
    one.wait(r"it is over\.")
    server.release()
    one.wait(ENDED)

    shown = said(one)
    if reflow:
        assert dense(shown) == dense("".join(SAID))
    else:  # such a terminal itself loses the ends of rows; what stands at their beginning is there once, in its order
        begins = re.findall(r"^(?: • )?(item\d+|value_\d+) ", shown, re.MULTILINE)
        assert [shown.count(word) for word in ("The title", "w000", "字100", AFTER)] == [1, 1, 1, 1]
        assert begins == [*(item.split()[0] for item in ITEMS), *(row.split()[0] for row in CODE)]
    assert one.text().count("claude-opus-5-5 ·") == 1


def test_a_running_command_is_not_doubled_by_resizes(talk, project, unconfined):
    loop = "for i in $(seq 1 12); do echo row $i of the output of a command; done"
    call = Use("Bash", {"command": f"{loop}; until [ -e go ]; do sleep 0.05; done", "description": "Wait"})
    _, one = talk({"begin": [[Think("I think."), "I run it.", call], ["All done."]]}, 100, 30, "--yes")

    one.submit("begin")
    one.wait("row 12 of the output")
    for size in ((60, 24), (140, 30), (80, 20), (80, 30)):
        one.resize(*size)
        one.settle()
    (project / "go").touch()
    shown = one.wait(r"All done\.\n(.*\n)*> *\n  ")

    assert re.findall(r"row \d+ of", shown) == [f"row {at} of" for at in range(3, 13)]
    assert [shown.count(mark) for mark in ("✓ Bash", "• Bash", "I run it.", "Thought for")] == [1, 0, 1, 1]


def test_no_frame_is_without_what_goes_on_and_nothing_is_ever_cleared(talk):
    server, one = talk({"begin": [[Think("Hm. " * 40), ANSWER]]}, 80)
    for _ in range(ANSWER.count("<HOLD>")):
        server.release()
    one.submit("begin")
    one.wait(ENDED)

    # What takes the live part away also draws it again, in one frame, which the terminal shows at once.
    erased = [frame.rpartition(b"\x1b[J")[2] for frame in FRAME.findall(one.raw) if b"\x1b[J" in frame]
    assert len(erased) > 3
    assert [frame for frame in erased if not re.search(rb"claude-opus|opening", frame)] == []
    assert FRAME.sub(b"", one.raw) == b""
    assert one.emulator.cleared == 0
    assert b"\x1b[?1049h" not in one.raw
