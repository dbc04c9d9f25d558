"""No rule for a reading program opens a secret: one that is named, one in the home folder, one that a glob fits."""

import pytest

from .judged import Bench, furnish

RULES = ["Bash(cat:*)", "Bash(rg:*)", "Bash(grep:*)", "Bash(ls:*)", "Bash(head:*)"]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    home = tmp_path / "home"
    for name in (".config/gh/hosts.yml", ".codex/auth.json", ".ssh/config", "notes.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    monkeypatch.setenv("HOME", str(home))
    top = tmp_path / "work"
    top.mkdir()
    furnish(top)
    (top / "deploy").mkdir()
    (top / "deploy/credentials.json").write_text("{}")
    (top / "src/credentials.py").write_text("x = 1")
    (top / "cert.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    (top / "server.pem").write_text("-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n")
    return Bench(top)


@pytest.mark.parametrize(
    "command",
    [
        "cat HOME/.config/gh/hosts.yml",
        "cat ~/.config/gh/hosts.yml",
        "cat ~/.codex/auth.json",
        "cat HOME/.SSH/config",
        "head -5 ~/.ssh/config",
        "cat .env",
        "cat server.pem",
        "cat deploy/credentials.json",
        "rg --hidden -g .env ''",
        "rg -g '.env*' ''",
        "rg --glob=.env.local x",
        "rg --iglob '.ENV' x",
        "rg -g '{.env,x}' x",
        "rg -g '.env.l*' x",
        "rg -g '*.json' x",
        "rg -g '*.pem' x",
        "rg -g 'deploy/*' x",
        "rg -g '**' x",
        "rg x -g '[.]env'",
        "grep -r --include=.env '' .",
        "grep -r --include='*.json' x .",
    ],
)
def test_a_rule_for_a_reading_program_does_not_cover_a_secret(bench, command, tmp_path):
    judged = bench.judge(command.replace("HOME", str(tmp_path / "home")), allow=RULES)

    assert judged.decision.verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cat HOME/notes.txt",
        "cat src/credentials.py",
        "cat cert.pem",
        "rg -g '*.py' x",
        "rg -g '!.env' x src",
        "rg -g 'src/**' x",
        "rg -g '*.yml' x",
        "grep -r --include='*.py' x .",
    ],
)
def test_what_is_no_secret_is_covered(bench, command, tmp_path):
    judged = bench.judge(command.replace("HOME", str(tmp_path / "home")), allow=RULES)

    assert judged.decision.verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git show HEAD -- '.e*'",
        "git diff '.e??'",
        "git log -p -- '.en?'",
        "git grep x -- '.e*'",
        "git diff -- ':(icase).ENV'",
        "git diff -- ':(glob)**/.e*'",
        "git stash show -p -- '*env'",
        "git status -v .env",
        "git ls-files -s .env",
        "docker compose -f .env up",
    ],
)
def test_a_pattern_or_a_flag_before_the_sub_command_names_a_secret_too(bench, command):
    judged = bench.judge(command, allow=["Bash(git:*)", "Bash(docker compose:*)"])

    assert (judged.decision.verdict, judged.decision.fixed) == ("ask", True)


@pytest.mark.parametrize(
    "command",
    [
        "git ls-files .env",
        "git ls-files '.e*'",
        "git status .env",
        "git check-ignore -v .env",
        "git branch --list 'x*'",
        "git tag -l 's*'",
        "git diff -- '*.py' ':!.env'",
        "git diff -- . ':(exclude).env'",
        "realpath .env",
        "readlink -f .env",
        "[[ -f .env ]]",
        "! [[ -f .env ]]",
        "[[ a -nt .env ]] || [[ -s .env ]]",
    ],
)
def test_what_tells_no_content_of_a_secret_needs_no_rule(bench, command):
    judged = bench.judge(command)

    assert judged.decision.verdict == "allow"


def test_a_file_before_the_sub_command_is_looked_at_like_one_behind_it(bench):
    outside = bench.judge("docker compose -f /srv/x.yml up", allow=["Bash(docker compose:*)"])
    inside = bench.judge("docker compose -f sub/x.yml up", allow=["Bash(docker compose:*)"])

    assert [outside.decision.verdict, inside.decision.verdict] == ["ask", "allow"]
