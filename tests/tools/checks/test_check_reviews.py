"""Reviews: one subagent for each, which only reads, on what was changed; and what is made of its answer."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.agent.stage import Stage
from tests.crew import Crew
from tests.tools.checks.checking import LIMIT_SECONDS, Session, until

from ferrule import Settings
from ferrule.agent import ChildEnded
from ferrule.core.errors import ToolFailure
from ferrule.core.services import Worked
from ferrule.models.cues import calls, said
from ferrule.settings import CheckCommand, Checks, Loop, SandboxSettings

REVIEW = "---\nname: {name}\ndescription: Looks.\n{more}---\nLook for {name}.\n"


def git(root: Path, *words: str) -> None:
    given = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *given, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one file that was changed since."""
    folder = (tmp_path / "workspace").resolve()
    (folder / "api").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "cart.py").write_text("total = 1\n")
    (folder / "api" / "app.py").write_text("app = 1\n")
    add(folder, "naming")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "cart.py").write_text("total = 2\n")
    return folder


def add(folder: Path, name: str, more: str = "") -> None:
    checks = folder / ".agents" / "checks"
    checks.mkdir(parents=True, exist_ok=True)
    (checks / f"{name}.md").write_text(REVIEW.format(name=name, more=more))


class Reviewers(Crew):
    """Subagents whose last words a test says."""

    def __init__(self, *texts: str) -> None:
        super().__init__(self._end)
        self._texts = list(texts)

    def _end(self, job: Any) -> Worked:
        return Worked("a1", job.agent.name, "completed", self._texts.pop(0))


def issues(*rows: Any) -> str:
    return json.dumps({"issues": list(rows)})


async def review(root: Path, crew: Crew, **values: Any) -> tuple[Session, str]:
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, subagents=crew) as session:
        reply = await session.check(**values)
    assert reply.ok, reply
    return session, reply.text


async def test_a_review_sees_what_was_changed_and_its_findings_are_problems(root: Path) -> None:
    found = {
        "severity": "high",
        "file": "cart.py",
        "line": 1,
        "problem": "Off by one.",
        "why": "It sells more.",
        "fix": "Say 1.",
    }
    crew = Reviewers(issues(found))
    session, text = await review(root, crew)
    (job,) = crew.jobs

    assert session.statuses == {"naming": "failed"}
    assert "cart.py:1: [high] Off by one. It sells more. Fix: Say 1." in text
    assert "-total = 1\n+total = 2" in job.prompt
    assert "Look for naming." in job.prompt
    assert "What is reviewed: uncommitted changes." in job.prompt
    assert job.agent.tools == ("read", "grep", "glob", "list_dir", "lsp", "diagnostics")
    assert job.agent.mode == "plan"
    assert job.beside
    assert '{"issues": []}' in job.agent.system


async def test_a_new_file_is_named_and_an_unchanged_scope_is_skipped(root: Path) -> None:
    (root / "new.py").write_text("new = 1\n")
    add(root / "api", "routes")
    git(root, "add", "api")
    git(root, "commit", "-q", "-m", "routes")
    crew = Reviewers(issues())
    session, _ = await review(root, crew)

    assert session.statuses == {"api: routes": "skipped", "naming": "passed"}
    assert session.of("api: routes").why == "Nothing was changed that it is about (uncommitted changes)."
    assert "read them:" in crew.jobs[0].prompt
    assert "\nnew.py" in crew.jobs[0].prompt


async def test_a_revision_says_what_is_reviewed(root: Path) -> None:
    git(root, "commit", "-q", "-am", "two")
    crew = Reviewers(issues(), issues())
    none, _ = await review(root, crew)
    some, _ = await review(root, crew, diff="HEAD~1..HEAD")

    assert none.statuses == {"naming": "skipped"}
    assert some.statuses == {"naming": "passed"}
    assert "+total = 2" in crew.jobs[0].prompt
    assert "What is reviewed: HEAD~1..HEAD." in crew.jobs[0].prompt


@pytest.mark.parametrize(
    "diff", ["nosuchrev", "HEAD; rm x", "HEAD...gone", "$(touch pwned)", "--output=pwned", "the new prices", "HEAD x"]
)
async def test_what_git_knows_no_revision_of_is_an_error_before_anything_runs(root: Path, diff: str) -> None:
    crew = Reviewers()
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, {"lint": "touch ran"}, subagents=crew) as session:
        reply = await session.check(diff=diff)

    assert reply.error is not None
    assert reply.error.error_code == "bad-arguments"
    assert f"git knows no revision {diff!r}." in reply.text
    assert not (root / "pwned").exists()
    assert not (root / "ran").exists()
    assert crew.jobs == []


async def test_a_revision_means_nothing_without_a_repository(tmp_path: Path) -> None:
    add(tmp_path, "naming")
    async with Session(tmp_path, subagents=Reviewers()) as session:
        reply = await session.check(diff="HEAD")

    assert "is in no git repository, so there is no 'HEAD' to review." in reply.text


@pytest.mark.parametrize("diff", ["HEAD@{1 day ago}", "HEAD@{0}", "HEAD^{/one}", "HEAD^{tree}", "HEAD^0", "@"])
async def test_every_way_to_name_a_revision_is_understood(root: Path, diff: str) -> None:
    crew = Reviewers(issues())
    session, _ = await review(root, crew, diff=diff)

    assert session.statuses == {"naming": "passed"}
    assert session.questions == []
    assert "+total = 2" in crew.jobs[0].prompt


@pytest.mark.parametrize("diff", ["HEAD..HEAD", "HEAD...HEAD", "HEAD..", "HEAD^!", "HEAD"])
async def test_files_that_git_does_not_know_are_uncommitted_and_nothing_else(root: Path, diff: str) -> None:
    (root / "new.py").write_text("new = 1\n")
    crew = Reviewers(issues())
    await review(root, crew, diff=diff)

    assert not any("new.py" in job.prompt for job in crew.jobs)


async def test_where_there_is_no_repository_the_files_are_reviewed_as_they_are(tmp_path: Path) -> None:
    add(tmp_path, "naming")
    crew = Reviewers(issues())
    session, _ = await review(tmp_path, crew)

    assert session.statuses == {"naming": "passed"}
    assert "The folder is in no git repository. Find the files yourself" in crew.jobs[0].prompt


@pytest.mark.parametrize(
    ("answer", "status", "problems"),
    [
        pytest.param(issues(), "passed", [], id="nothing"),
        pytest.param(
            "Here:\n```json\n" + issues({"problem": "No.", "file": "a"}) + "\n```\n",
            "failed",
            ["[medium] No."],
            id="in-a-fence",
        ),
        pytest.param(
            "Well, " + issues({"problem": "No.", "severity": "HIGH"}) + " is all.",
            "failed",
            ["[high] No."],
            id="among-words",
        ),
        pytest.param(
            '[{"problem": "No.", "severity": "odd", "line": "x"}]', "failed", ["[medium] No."], id="a-bare-list"
        ),
        pytest.param(issues({"problem": "Eh.", "severity": "low"}), "passed", [], id="only-low"),
        pytest.param(issues("x", {}, {"problem": " "}, {"problem": 3}), "stopped", [], id="rubbish"),
        pytest.param(issues({"issue": "A float."}), "stopped", [], id="names-that-nobody-knows"),
        pytest.param(
            issues({"problem": "Eh.", "severity": "low"}, {"what": "A float."}), "stopped", [], id="rubbish-beside-low"
        ),
        pytest.param(issues("x", {"problem": "No."}), "failed", ["[medium] No."], id="rubbish-among-them"),
        pytest.param(
            issues({"severity": "high", "path": "cart.py", "line": 1, "message": "A float."}),
            "failed",
            ["[high] A float."],
            id="other-names",
        ),
        pytest.param('{"issues": ' + "[" * 2000, "stopped", [], id="nested-too-deep"),
        pytest.param("I found nothing worth telling.", "stopped", [], id="prose"),
        pytest.param("", "stopped", [], id="nothing-said"),
    ],
)
async def test_an_answer_is_read_leniently(root: Path, answer: str, status: str, problems: list[str]) -> None:
    session, text = await review(root, Reviewers(answer))
    one = session.of("naming")

    assert one.status == status
    assert [problem.message for problem in one.problems] == problems
    if status == "stopped" and answer:
        assert answer[:100] in text
    if answer == issues({"problem": "Eh.", "severity": "low"}):
        assert one.why == "1 finding of low severity is not shown."
        assert "Eh." not in text


@pytest.mark.parametrize("place", ["file", "path", "filename"])
@pytest.mark.parametrize("said", ["problem", "message", "text"])
async def test_a_finding_may_call_its_parts_by_other_names(root: Path, place: str, said: str) -> None:
    session, _ = await review(root, Reviewers(issues({place: "cart.py", "line": "1", said: "A float."}, "x")))
    (problem,) = session.of("naming").problems

    assert (problem.path, problem.line, problem.message) == (str(root / "cart.py"), 1, "[medium] A float.")
    assert session.of("naming").why == "1 finding could not be read."


async def test_a_finding_without_a_severity_has_the_one_of_its_file(root: Path) -> None:
    add(root, "naming", "severity-default: critical\n")
    session, _ = await review(root, Reviewers(issues({"problem": "No.", "file": "../../etc/passwd", "line": 2**40})))
    (problem,) = session.of("naming").problems

    assert problem.message == "[critical] No."
    assert (problem.path, problem.line) == ("../../etc/passwd", 0)


async def test_no_more_than_fifty_findings_are_told(root: Path) -> None:
    rows = [{"problem": f"No {at}.", "file": "cart.py", "line": 1} for at in range(70)]
    session, text = await review(root, Reviewers(issues(*rows)))

    assert (len(session.of("naming").problems), session.of("naming").total_problems) == (50, 70)
    assert "… and 20 more" in text


async def test_a_reviewer_gets_no_tool_that_only_its_file_wants(root: Path) -> None:
    add(root, "naming", "tools: [read, Bash, edit_file, grep]\n")
    crew = Reviewers(issues())
    crew.caller = ("read", "grep", "glob", "list_dir", "lsp", "diagnostics", "shell", "edit")
    await review(root, crew)

    assert crew.jobs[0].agent.tools == ("read", "grep")


async def test_a_reviewer_that_cannot_be_run_harms_no_other_check(root: Path) -> None:
    crew = Crew(lambda _: ToolFailure("The subagent cannot be run: overloaded.", code="no-model"))
    async with Session(root, {"lint": "true"}, subagents=crew) as session:
        reply = await session.check()

    assert reply.ok
    assert session.statuses == {"lint": "passed", "naming": "stopped"}
    assert "overloaded" in reply.text


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        pytest.param({"review": False}, {}, [], id="not-wanted"),
        pytest.param({}, {"review": False}, [], id="switched-off"),
        pytest.param({"review": True}, {"review": False}, ["naming"], id="switched-off-and-wanted"),
        pytest.param({"checks": ["review"]}, {}, ["naming"], id="by-kind"),
        pytest.param({"checks": ["nam*"]}, {}, ["naming"], id="by-name"),
        pytest.param({"checks": ["lint"]}, {}, ["lint"], id="not-named"),
    ],
)
async def test_reviews_are_done_where_they_are_wanted(
    root: Path, values: dict[str, Any], settings: dict[str, Any], expected: list[str]
) -> None:
    commands: dict[str, Any] = {"lint": "true"} if "lint" in expected else {}
    async with Session(root, commands, subagents=Reviewers(issues()), checks=settings) as session:
        await session.check(**values)

    assert list(session.statuses) == expected


async def test_without_a_model_the_reviews_are_said_to_be_left_out(root: Path) -> None:
    async with Session(root, {"lint": "true"}) as session:
        reply = await session.check()

    assert session.statuses == {"lint": "passed"}
    assert any("reviews of this project were not done: this session has no model" in note for note in reply.notes)


async def test_reviewers_read_while_the_commands_of_the_same_call_run(root: Path) -> None:
    """The commands may touch everything, and hold all other calls back; those of their reviewers they must not."""
    found = issues({"severity": "high", "file": "cart.py", "line": 1, "problem": "No."})
    settings = Settings(
        sandbox=SandboxSettings(use="none"),
        loop=Loop(children=1),
        checks=Checks(commands={"waits": CheckCommand(command="touch begun; until test -e go; do sleep 0.02; done")}),
    )
    cues = [
        calls(("Check", {}), ("create_file", {"path": "late.txt", "content": "x"})),
        calls(("Read", {"path": "cart.py"}), prompt="Look for naming"),
        said(found, prompt="Look for naming"),
        said("Done."),
    ]

    def on(event: Any) -> None:
        # The reviewer has its answer while the command still runs, which ends only now.
        if isinstance(event, ChildEnded):
            (root / "go").touch()

    stage = Stage(root, *cues, dialect="amp", settings=settings)
    stage.on = on
    async with asyncio.timeout(LIMIT_SECONDS), stage:
        await stage.run()
        checked = next(reply for reply in stage.replies if reply.name == "Check")
        read = next(reply for reply in stage.replies if reply.name == "Read")

    assert read.ok, read
    assert "total = 2" in read.text
    assert checked.ok, checked
    assert "✓ waits" in checked.text
    assert "cart.py:1: [high] No." in checked.text
    assert (root / "late.txt").exists()


async def test_reviewers_wait_for_no_agent_that_may_wait_for_the_checks(root: Path) -> None:
    """The other agent has the only turn there is, and waits with its call for the end of the checks."""
    settings = Settings(
        sandbox=SandboxSettings(use="none"),
        loop=Loop(children=1),
        checks=Checks(commands={"a": CheckCommand(command="touch a")}),
    )
    cues = [
        calls(("Check", {}), ("Task", {"description": "help", "prompt": "another"})),
        calls(("Read", {"path": "cart.py"}), prompt="another"),
        said("Read.", prompt="another"),
        calls(("Read", {"path": "cart.py"}), prompt="Look for naming"),
        said(issues(), prompt="Look for naming"),
        said("Done."),
    ]
    async with asyncio.timeout(LIMIT_SECONDS), Stage(root, *cues, dialect="amp", settings=settings) as stage:
        await stage.run()

    assert [reply.status for reply in stage.replies] == ["done"] * 4


async def test_a_confined_git_tells_what_was_changed_and_obeys_no_settings_of_the_repository(root: Path) -> None:
    (root / ".gitattributes").write_text("*.py diff=odd\n")
    for name in ("diff.odd.command", "diff.odd.textconv", "diff.external", "core.fsmonitor"):
        git(root, "config", name, f"touch {root}/pwned; true")
    crew = Reviewers(issues())
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, subagents=crew, confined=True) as session:
        await session.check()

    assert session.statuses == {"naming": "passed"}
    assert "+total = 2" in crew.jobs[0].prompt
    assert not (root / "pwned").exists()


async def test_cancelling_stops_the_reviewers(root: Path) -> None:
    crew = Reviewers(issues())
    crew.gate = asyncio.Event()
    async with asyncio.timeout(LIMIT_SECONDS), Session(root, subagents=crew) as session:
        running = asyncio.create_task(session.check())
        await until(lambda: bool(crew.jobs))
        session.engine.cancel()
        reply = await running

    assert reply.status == "cancelled"
    assert crew.stopped == 1
