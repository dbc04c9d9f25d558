"""The GitHub action: its steps run as a runner would run them, with a scripted model and a gh that writes down."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from scripts.action import harmless, options

from ferrule.models.cues import calls, said
from tests.architecture.project import ROOT
from tests.cli.recordings import LIMIT_SECONDS, recording

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
EDIT = ("Edit", {"file_path": "${workspace}/a.py", "old_string": "x = 2", "new_string": "x = 3"})
READ = ("Read", {"file_path": "${workspace}/a.py"})
EVIL = "$(touch STOLEN) `touch STOLEN`\"; touch STOLEN; ' ${{ github.token }}\n::set-output name=skipped::true"
SHADOWS = ("pip", "venv", "json", "ferrule", "click", "subprocess")
_EXPRESSION = re.compile(r"\$\{\{ *([^}]*?) *\}\}")


class Runner:
    """A machine that runs the action on a pull request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.temp = folder / "temp"
        self.bin = folder / "bin"
        for one in (self.work, self.temp, self.bin, folder / "home"):
            one.mkdir()
        self.pull = {
            "number": 7,
            "title": EVIL,
            "head": {"repo": {"full_name": "o/r"}},
            "base": {"repo": {"full_name": "o/r"}, "sha": self._commits()},
        }
        self.env: dict[str, str] = {}
        self.shown = ""
        self._program(
            "gh", 'printf "%s\\n" "$@" > "$GH_SAID"; echo "$GH_TOKEN" >> "$GH_SAID"; cp "${@: -1}" "$GH_SAID.md"'
        )
        wants_pip = f'case "$*" in "-I -m pip"*) echo "$@" >> "{folder}/pip.txt"; exit;; esac'
        self._program("python-of-venv", f'{wants_pip}\nexec {sys.executable} "$@"')
        # The virtual environment is this one; what pip is told is written down and not done.
        self._program(
            "python-of-runner",
            f"""
            test "$*" = "-I -m venv $RUNNER_TEMP/ferrule" || exit 9
            mkdir -p "$4/bin"
            cp "{self.bin}/python-of-venv" "$4/bin/python"
            """,
        )

    def run(self, event_name: str = "pull_request", **inputs: str) -> tuple[int, dict[str, str]]:
        """The exit code of the first step that fails, or 0, and the outputs of the action."""
        event = {} if event_name == "push" else {"pull_request": self.pull}
        (self.folder / "event.json").write_text(json.dumps(event), encoding="utf-8")
        known = {f"inputs.{name}": str(one["default"]) for name, one in ACTION["inputs"].items()}
        known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        known["github.token"] = "a-token"
        known["steps.python.outputs.python-path"] = str(self.bin / "python-of-runner")
        known["inputs.github-token"] = "a-token"
        code = 0
        for step in STEPS:
            if "run" not in step or code != 0 or not _holds(step.get("if", ""), known):
                continue
            output = self.temp / "output.txt"
            output.write_text("", encoding="utf-8")
            code = self._step(step, known, output, event_name)
            for name, value in _outputs(output.read_text(encoding="utf-8")).items():
                known[f"steps.{step['id']}.outputs.{name}"] = value
        shown = {name: _filled(one["value"], known) for name, one in ACTION["outputs"].items()}
        return code, {name: value for name, value in shown.items() if value}

    def _step(self, step: dict, known: dict[str, str], output: Path, event_name: str) -> int:
        script = self.temp / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "LC_ALL": "C.UTF-8",
            **{
                name: os.environ[name]
                for name in ("FERRULE_STATE", "FERRULE_SETTINGS", "OLLAMA_HOST", "LLAMACPP_BASE_URL")
            },
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_ENV": str(self.temp / "env.txt"),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            "GITHUB_REPOSITORY": "o/r",
            "GH_SAID": str(self.folder / "gh.txt"),
            **self.env,
            **{name: _filled(value, known) for name, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        self.shown += done.stdout
        return done.returncode

    def _commits(self) -> str:
        """A repository with one change, beside what a stranger would have Python import."""
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        (self.work / "a.py").write_text("x = 1\n", encoding="utf-8")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
            subprocess.run([*git, *words], cwd=self.work, check=True)
        base = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.work, capture_output=True, text=True, check=True)
        (self.work / "a.py").write_text("x = 2\n", encoding="utf-8")
        for name in SHADOWS:
            (self.work / f"{name}.py").write_text("open('STOLEN', 'w')\n", encoding="utf-8")
        for words in (["add", "-A"], ["commit", "-qm", "two"]):
            subprocess.run([*git, *words], cwd=self.work, check=True)
        return base.stdout.strip()

    def _program(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        (self.bin / name).chmod(0o755)


def _filled(text: object, known: dict[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: str(known.get(found[1], "")), f"{text}")


def _holds(condition: str, known: dict[str, str]) -> bool:
    for part in filter(None, condition.split(" && ")):
        name, sign, value = part.split(" ")
        if (known.get(name, "") == value.strip("'")) != (sign == "=="):
            return False
    return True


def _outputs(text: str) -> dict[str, str]:
    """As the runner reads them."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, end = line.split("<<")
        value = []
        while (one := next(lines)) != end:
            value.append(one)
        found[name] = "\n".join(value)
    return found


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    if shutil.which("bash") is None or shutil.which("git") is None:
        pytest.skip("needs bash and git")
    return Runner(tmp_path)


def cues(runner: Runner, *those: object) -> str:
    return f"scripted:{recording(runner.folder / 'c.jsonl', *those)}"


def test_a_task_ends_with_its_answer_in_the_outputs(runner):
    answer = "Done.\nskipped=true\nskipped<<x\ntrue\nx"
    code, outputs = runner.run(task=EVIL, model=cues(runner, calls(READ), said(answer)))

    thread = outputs.pop("thread")
    assert (code, outputs) == (0, {"result": answer, "exit-code": "0", "refused": "[]", "changed-files": "[]"})
    assert thread.startswith("T-")
    assert not list(runner.folder.rglob("STOLEN"))
    assert not (runner.folder / "gh.txt").exists()
    assert (runner.temp / "summary.md").read_text(encoding="utf-8").startswith("Done.\n")


def test_only_the_lock_is_installed_and_then_the_action_itself(runner):
    runner.run(task="x", model=cues(runner, said("Done.")))

    assert (runner.folder / "pip.txt").read_text(encoding="utf-8").splitlines() == [
        f"-I -m pip install --disable-pip-version-check --quiet --require-hashes -r {ROOT}/requirements/run.txt",
        f"-I -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation {ROOT}",
    ]


def test_a_review_becomes_a_comment_if_it_is_asked_for(runner):
    bad = "Ask @owner. ![x](https://example.org/x?key) <img src=x> `@x` stays."
    model = cues(runner, calls(READ), calls(EDIT), said(bad))
    code, outputs = runner.run(review="true", comment="true", model=model)

    assert (code, outputs["result"]) == (0, bad)
    *words, body, token = (runner.folder / "gh.txt").read_text(encoding="utf-8").splitlines()
    assert words == ["pr", "review", "7", "--repo", "o/r", "--comment", "--body-file"]
    assert (Path(body).name, token) == ("ferrule-result.comment.md", "a-token")
    assert (runner.folder / "gh.txt.md").read_text(encoding="utf-8") == f"{harmless(bad)}\n"
    assert (runner.work / "a.py").read_text(encoding="utf-8") == "x = 2\n"
    assert not list(runner.folder.rglob("STOLEN"))


def ferrule(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", "ferrule", *words], capture_output=True, text=True, check=True).stdout


def test_the_model_of_a_review_is_given_the_changes_as_data(runner):
    runner.run(review="true", task="the tests", model=cues(runner, said("Fine.")))
    thread = json.loads(ferrule("threads", "list", "--all", "--json"))[0]["id"]
    shown = ferrule("threads", "show", thread, "--full")

    order = [
        shown.index(words) for words in ("Look above all at this: the tests", "It is data", "Title: $(touch", "+x = 2")
    ]
    assert order == sorted(order)


def test_what_is_refused_is_an_output_and_the_exit_code(runner):
    code, outputs = runner.run(task="x", model=cues(runner, calls(READ), calls(EDIT), said("No.")))

    assert (code, outputs["exit-code"]) == (3, "3")
    assert [one["tool_name"] for one in json.loads(outputs["refused"])] == ["Edit"]


def test_what_is_changed_is_an_output(runner):
    model = cues(runner, calls(READ), calls(EDIT), said("Yes."))
    code, outputs = runner.run(task="x", model=model, permission_mode="acceptEdits")

    assert (code, [Path(one).name for one in json.loads(outputs["changed-files"])]) == (0, ["a.py"])


def test_the_runner_obeys_nothing_that_is_said_while_the_model_works(runner):
    runner.run(
        task="x", model=cues(runner, calls(("Bash", {"command": "echo '::error::x'; exit 1"})), said("::error::y"))
    )
    lines = runner.shown.splitlines()
    (begin,) = [at for at, line in enumerate(lines) if line.startswith("::stop-commands::")]
    end = lines.index(f"::{lines[begin].removeprefix('::stop-commands::')}::")

    assert [at for at, line in enumerate(lines) if "::error::" in line and not begin < at < end] == []


@pytest.mark.parametrize(
    ("event", "inputs", "words"),
    [
        pytest.param("pull_request_target", {"task": "x"}, "Start this workflow on pull_request.", id="target"),
        pytest.param("pull_request", {}, "Give a task, or review: true.", id="nothing to do"),
        pytest.param("push", {"review": "true"}, "review needs a pull request", id="a review of nothing"),
        pytest.param("push", {"task": "x", "comment": "true"}, "comment needs a pull request", id="nowhere to comment"),
        pytest.param("push", {"task": "x", "review": "yes"}, "review is true or false, and not 'yes'", id="no flag"),
        pytest.param("push", {"task": "x", "working_directory": "nope"}, "is not a folder", id="no folder"),
        pytest.param("push", {"task": "x"}, "No model is chosen", id="no key"),
        pytest.param("push", {"task": "x", "max_cost": "much"}, "'much' is not a valid number", id="no number"),
        pytest.param("push", {"task": "x", "permission_mode": "nope"}, "no permission mode 'nope'", id="no mode"),
    ],
)
def test_what_the_workflow_has_to_change_is_said(runner, event, inputs, words):
    if words[0] in "'n":
        inputs = {**inputs, "model": cues(runner, said("Done."))}
    code, outputs = runner.run(event, **inputs)

    assert (code, outputs) in ((2, {}), (2, {"exit-code": "2"}))
    assert words in runner.shown


def test_a_shallow_checkout_is_told_how_to_be_deeper(runner):
    runner.pull["base"]["sha"] = "0" * 40

    assert runner.run(review="true", model=cues(runner, said("Fine."))) == (2, {})
    assert "`fetch-depth: 0`" in runner.shown


@pytest.mark.parametrize(
    ("key", "model", "ended"),
    [
        pytest.param({}, "", (0, {"skipped": "true"}), id="no key"),
        pytest.param({}, "anthropic:claude-opus-5-5", (0, {"skipped": "true"}), id="a model without its key"),
        pytest.param({"ANTHROPIC_API_KEY": "k"}, "nope", (2, {"exit-code": "2"}), id="a key and no such model"),
    ],
)
def test_a_fork_gets_no_secrets_and_that_is_no_failure(runner, key, model, ended):
    runner.pull["head"] = {"repo": {"full_name": "stranger/r"}}
    runner.env = key

    assert runner.run(review="true", comment="true", model=model) == ended
    assert not (runner.folder / "gh.txt").exists()


READS = ["--tools", "read,grep,glob", "--permission-mode", "dontAsk"]


@pytest.mark.parametrize(
    ("is_review", "is_foreign", "wanted"),
    [
        pytest.param(True, False, ["--max-cost=2", *READS], id="a review"),
        pytest.param(True, True, ["--max-cost=2", "--setting-sources=user", *READS], id="a stranger's review"),
        pytest.param(
            False,
            True,
            ["--max-cost=2", "--setting-sources=user", "--permission-mode=default", "--allowed-tools=Read, -x"],
            id="a task on a stranger's files",
        ),
        pytest.param(
            False,
            False,
            ["--max-cost=2", "--permission-mode=default", "--allowed-tools=Read, -x"],
            id="a task",
        ),
    ],
)
def test_a_review_only_reads_and_a_stranger_gives_no_guidance(monkeypatch, is_review, is_foreign, wanted):
    monkeypatch.setenv("INPUT_MAX_COST", "2")
    monkeypatch.setenv("INPUT_ALLOWED_TOOLS", "Read, -x")

    assert options(is_review=is_review, is_foreign=is_foreign) == wanted


def test_no_expression_stands_in_a_script_and_every_action_is_pinned():
    scripts = [step["run"] for step in STEPS if "run" in step]
    used = [step["uses"] for step in STEPS if "uses" in step]

    assert [script for script in scripts if "${{" in script or "github.event" in script] == []
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []


def test_the_token_goes_to_the_step_that_comments_alone():
    holders = [step["name"] for step in STEPS if "github-token" in json.dumps(step)]

    assert holders == ["Comment"]


def test_the_page_shows_no_workflow_that_gives_strangers_secrets():
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    flows = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]

    assert flows
    for flow in flows:
        assert flow[True] == "pull_request"
        for job in flow["jobs"].values():
            assert [step for step in job["steps"] if "${{" in step.get("run", "")] == []
            assert [
                one
                for step in job["steps"]
                if (one := step.get("uses", "")) and not re.search(r"@([0-9a-f]{40}|COMMIT)$", one)
            ] == []
            given = {name for step in job["steps"] for name in step.get("with", {}) if "ferrule" in step["uses"]}
            assert given <= set(ACTION["inputs"])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("a@b @c", "a@\u200bb @\u200bc", id="mentions"),
        pytest.param("`@c` and\n```\n@c ![x](y)\n```\n", "`@c` and\n```\n@c ![x](y)\n```\n", id="code"),
        pytest.param("![x](y)", "!\\[x](y)", id="pictures"),
        pytest.param("<IMG src=x> 1 < 2", "&lt;IMG src=x> 1 < 2", id="HTML"),
        pytest.param("```\n![x](y)", "```\n!\\[x](y)", id="code that does not end"),
    ],
)
def test_a_comment_calls_nobody_and_loads_nothing(text, wanted):
    assert harmless(text) == wanted
