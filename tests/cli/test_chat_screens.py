"""How the chat looks at 80 columns in its most common moments, compared with `tests/golden/screens`.

The chat runs in a pseudo-terminal and asks a scripted model over HTTP; what a terminal shows of it is the golden file.
"""

import json
import re
import socket

import pytest
from tests.cli.talk.emulator import Recorder
from tests.cli.talk.model_server import Fail, ModelServer, Think, Use

READY = r"^> *\n  (default|acceptEdits|plan mode|bypass)"
PRICING = """THRESHOLD = 20


def discount(total):
    if total > THRESHOLD:
        return total / 10
    return 0
"""
CHECK = """#!/bin/sh
echo "1..14"
for number in $(seq 1 12); do echo "ok $number - price $number of the list"; done
if grep -q ">= THRESHOLD" pricing.py; then echo "ok 13 - discount at twenty"; exit 0; fi
echo "not ok 13 - discount at twenty"
echo "  error: AssertionError: 0 != 2.0"
echo "ok 14 - rounding"
exit 1
"""
READ = Use("Read", {"file_path": "pricing.py"})
EDIT = Use(
    "Edit", {"file_path": "pricing.py", "old_string": "if total > THRESHOLD", "new_string": "if total >= THRESHOLD"}
)
TEST = Use("Bash", {"command": "sh check.sh", "description": "Run the tests"})
PLAN = """# Give the discount at twenty

1. Change `>` to `>=` in `pricing.py`
2. Run `sh check.sh`

Nothing else uses the threshold.
"""


def todo(subject, doing):
    return Use("TaskCreate", {"subject": subject, "description": f"{subject}, and no more.", "activeForm": doing})


def fixed(text, port=0):
    """The screen without what differs from run to run."""
    text = re.sub(r"[⠀-⣿](?= \w)", "⠿", text)
    text = re.sub(r"\b\d+\.\d(?=s\b)", "0.0", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b", "2026-01-01 12:00", text)
    text = re.sub(r"\bT-[0-9a-zA-Z-]{6,}", "T-0", text)
    text = re.sub(r"(?:(?<=running   )|(?<=round, as ))b[0-9a-z]{6}\b", "b000000", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d-[0-9a-f]{6}\b", "2026-01-01-000000", text)
    return text.replace(str(port), "54321") if port else text


@pytest.fixture
def chat(tmp_path, monkeypatch):
    """Starts the chat in a project with what a model says."""
    opened = []
    project = tmp_path / "shop"
    project.mkdir()
    (project / "pricing.py").write_text(PRICING)
    (project / "check.sh").write_text(CHECK)
    monkeypatch.setenv("HOME", str(tmp_path))

    def start(script, *arguments, **options):
        server = ModelServer(script, **options)
        server.__enter__()
        one = Recorder(80, 30)
        opened.append((server, one))
        one.start(["chat", *arguments], project, **server.environment)
        one.wait(READY)
        return server, one

    yield start
    for server, one in opened:
        one.close()
        server.__exit__()


def picture(one, port=0):
    one.settle()
    return fixed(one.text(), port)


def test_a_question_about_an_edit(chat, golden):
    _, one = chat(
        {"discount": [[Think("A look first."), "I look at the comparison.", READ], ["It has to count.", EDIT]]}
    )
    one.submit("An order of exactly 20 gets no discount. Mend it.")
    one.wait(r"\[t\]ell the model why not")

    golden.check("screens/question.txt", picture(one))


def test_a_failing_test(chat, golden, unconfined):
    _, one = chat({"test": [[TEST], ["Test 13 fails: the discount at exactly twenty."]]}, "--yes")
    one.submit("Run the tests")
    one.wait("Test 13 fails")

    golden.check("screens/failing-test.txt", picture(one))


def test_what_was_changed(chat, golden):
    _, one = chat({"discount": [[READ], [EDIT], ["It counts twenty now."]]}, "--yes")
    one.submit("Mend the discount")
    one.wait("It counts twenty now")
    one.rest()
    one.submit("/diff")
    one.wait(r"/diff\n(.*\n)*.*\+ +if total >=")

    golden.check("screens/diff.txt", picture(one))


def test_todos_while_it_works(chat, golden, unconfined):
    todos = [
        todo("Write the test", "Writing the test"),
        todo("Mend the sum", "Mending the sum"),
        todo("Run it all", ""),
    ]
    over = Use("TaskUpdate", {"taskId": "1", "status": "completed"})
    doing = Use("TaskUpdate", {"taskId": "2", "status": "in_progress"})
    wait = Use("Bash", {"command": "echo waiting for a file; until [ -e go ]; do sleep 0.05; done"})
    _, one = chat({"steps": [todos, [over, doing], ["Now the sum.", wait], ["Done."]]}, "--yes")
    one.submit("Do it in steps")
    one.wait("waiting for a file$")

    golden.check("screens/todos.txt", picture(one))


def test_a_server_in_the_background(chat, golden, unconfined):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = f"python3 -m http.server {port} --bind 127.0.0.1"
    call = Use("Bash", {"command": serve, "description": "Serve the folder", "run_in_background": True})
    _, one = chat({"Serve": [[call], [f"The folder is served at http://127.0.0.1:{port}/."]]}, "--yes")
    one.submit("Serve the folder")
    one.wait("The folder is served")
    one.rest()
    one.rest()
    one.submit("/tasks")
    one.wait(r"/tasks\n(.*\n)*.*running")

    golden.check("screens/background-server.txt", picture(one, port))


def test_going_back(chat, golden, unconfined):
    _, one = chat(
        {"discount": [[READ], [EDIT], ["It counts twenty now."]], "test": [[TEST], ["All 13 pass."]]}, "--yes"
    )
    one.submit("Mend the discount")
    one.wait("It counts twenty now")
    one.rest()
    one.submit("Run the tests")
    one.wait("All 13 pass")
    one.rest()
    one.submit("/rewind 1")
    one.wait(r"\[n\]othing")

    golden.check("screens/rewind.txt", picture(one))


def test_choosing_an_earlier_conversation(chat, golden):
    script = {"discount": [["It counts twenty now."]], "list": [["There are 14 prices."]]}
    _, one = chat(script)
    one.submit("Mend the discount at twenty")
    one.wait("It counts twenty now")
    one.rest()
    one.submit("/clear")
    one.wait("A new conversation")
    one.submit("How long is the list of prices?")
    one.wait("There are 14 prices")
    one.rest()
    one.submit("/clear")
    one.wait(r"14 prices(.*\n)*.*A new conversation")
    one.submit("/resume")
    one.wait("(?i)which one|Mend the discount at twenty.*\n(.*\n)*.*Mend the discount at twenty")

    golden.check("screens/resume-picker.txt", picture(one))


def test_a_plan(chat, golden):
    def write(body):
        path = re.search(r"[^\s`\"]*\.ferrule/plans/[\w-]+\.md", json.dumps(body))
        assert path is not None
        return ["I write the plan.", Use("Write", {"file_path": path[0], "content": PLAN})]

    _, one = chat({"begin at 20": [[READ], write, [Use("ExitPlanMode", {})]]})
    one.submit("/plan Have the discount begin at 20")
    one.wait(r"\[t\]ell the model why not")

    golden.check("screens/plan.txt", picture(one))


def test_an_error_of_the_host(chat, golden):
    refused = Fail(401, "invalid x-api-key", "authentication_error")
    _, one = chat({"hello": [[refused]]})
    one.submit("hello there")
    one.wait("✗")

    golden.check("screens/error.txt", picture(one))


def test_an_interrupt(chat, golden, unconfined):
    wait = Use("Bash", {"command": "echo waiting for a file; sleep 600", "description": "Wait"})
    _, one = chat({"Wait": [["I wait for it.", wait]]}, "--yes")
    one.submit("Wait for the file")
    one.wait("waiting for a file$")
    one.type("\x1b")
    one.wait("Interrupted")

    golden.check("screens/interrupt.txt", picture(one))
