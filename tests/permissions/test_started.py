"""What a command line starts of the workspace, and whether it could start more than it names."""

import os
from pathlib import Path

import pytest

from ferrule.permissions.shell.started import look

CHECK = ".claude/hooks/check"
SCRIPT = ".claude/hooks/check.sh"
MODULE = ".claude/hooks/check.py"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for name in (CHECK, SCRIPT, MODULE, "hooks/check.py", "hooks/__init__.py", "alone/check.py", "data.json", "a b/c"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (folder / SCRIPT).chmod(0o755)
    return folder


def seen(command: str, work: Path) -> tuple[list[str], bool]:
    """The files that it names, and whether that is all that it could run of the workspace."""
    looked = look(command, str(work))
    return [os.path.relpath(path, work.resolve()) for path in looked.files], not looked.unclear


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (SCRIPT, SCRIPT),
        (f"./{SCRIPT}", SCRIPT),
        (f"sh {CHECK}", CHECK),
        (f"bash -eu {CHECK} some words", CHECK),
        (f"/bin/sh {CHECK}", CHECK),
        (f". ./{CHECK}", CHECK),
        (f"source {CHECK}", CHECK),
        (f"true; . {CHECK}", CHECK),
        (f"exec {SCRIPT}", SCRIPT),
        (f"sh < {CHECK}", CHECK),
        ("cd .claude/hooks && ./check.sh", SCRIPT),
        ('cd "$CLAUDE_PROJECT_DIR/.claude/hooks" && sh check', CHECK),
        (f'"$CLAUDE_PROJECT_DIR"/{CHECK}', CHECK),
        (f'sh "${{CLAUDE_PROJECT_DIR}}/{CHECK}"', CHECK),
        (f'"${{CLAUDE_PROJECT_DIR:-.}}"/{CHECK}', CHECK),
        (f'sh "$FERRULE_PROJECT_DIR/{CHECK}"', CHECK),
        (f'sh "$PWD"/{CHECK}', CHECK),
        (f"true && ${{PWD}}/{CHECK}", CHECK),
        (f"sh '{CHECK}'", CHECK),
        ("sh 'a b/c'", "a b/c"),
        ("sh a\\ b/c", "a b/c"),
        (f"timeout 5 sh {CHECK}", CHECK),
        (f"env COLOUR=blue sh {CHECK}", CHECK),
        (f"LEVEL=debug sh {CHECK}", CHECK),
        (f'for one in {CHECK}; do sh "$one"; done', CHECK),
        (f"if true; then sh {CHECK}; fi", CHECK),
        (f"jq -r .tool_name | sh {CHECK}", CHECK),
        (f"python3 {MODULE}", MODULE),
        ("python3 -u alone/check.py", "alone/check.py"),
        (f"/home/me/bin/tool {CHECK}", CHECK),
        (f"/home/me/tool --config={CHECK}", CHECK),
        (f"/opt/hooks/tool . {CHECK}", CHECK),
    ],
)
def test_a_file_that_a_line_names_literally_is_found_in_every_spelling(work: Path, command: str, file: str) -> None:
    assert seen(command, work) == ([file], True)


@pytest.mark.parametrize(
    "command",
    [
        "notify-send done",
        "curl https://example.org",
        'curl -s -X POST -d \'{"text": "done"}\' https://example.org/hook',
        "/home/me/bin/x",
        "~/bin/look-at-command",
        'osascript -e \'display notification "Done" with title "Agent"\'',
        "echo 'export COLOUR=blue' >> \"$CLAUDE_ENV_FILE\"",
        "jq -r .tool_input.command | grep -q 'git push' && exit 2",
        'path=$(jq -r .tool_input.file_path); case "$path" in *.env) exit 2;; esac',
        "git status --porcelain",
        "cat data.json",
        "echo ran >> data.json",
        "tee -a data.json",
        'notify-send "$(jq -r .message)"',
        "say done",
        "logger -t agent done",
        "terminal-notifier -message Done -title Agent",
        "ruff format .",
        "black .",
        "gofmt -w .",
        "shfmt -w .",
        "shellcheck data.json",
        "clang-format -i data.json",
        "/usr/bin/notify-send done",
        "/opt/homebrew/bin/shfmt -w .",
    ],
)
def test_a_line_that_runs_nothing_of_the_workspace_names_nothing_of_it(work: Path, command: str) -> None:
    assert seen(command, work) == ([], True)


@pytest.mark.parametrize(
    "command",
    [
        f'"$(pwd)"/{SCRIPT}',
        f"`pwd`/{SCRIPT}",
        'D=.claude/hooks; "$D"/check.sh',
        'd=.claude/hooks; "$d"/check.sh',
        'for f in .claude/hooks/*.sh; do sh "$f"; done',
        "sh .claude/hooks/ch*.sh",
        "sh .claude/hooks/check{,er}",
        '"$CHECK"',
        'sh "$1"',
        "python3 -m hooks.check",
        "python3 -c 'import hooks.check'",
        f"sh -c {CHECK}",
        f"cat {CHECK} | sh",
        f"sh <<< '. {CHECK}'",
        f'eval "sh {CHECK}"',
        f". {CHECK} && tool",
        f"set -a; sh {CHECK}",
        f"PYTHONPATH=. sh {CHECK}",
        f"BASH_ENV=data.json sh {CHECK}",
        f'sh {CHECK} "$UNKNOWN"',
        "sh not-there",
        "python3 hooks/check.py",
        "python3 hooks",
        "tool .",
        "find . -name '*.sh' -exec sh {} ';'",
        "ls | xargs sh",
        "make fmt",
        "/usr/bin/make fmt",
        "npm run lint",
        "npm ls",
        "npx prettier --check .",
        "yarn lint",
        "pnpm lint",
        f"uv run {MODULE}",
        "poetry run check",
        "pytest",
        "just check",
        "task check",
        "cargo check",
        "eslint .",
        "pre-commit run",
        "lefthook run check",
        "git commit -m done",
        "sudo tool",
        "run-parts .claude/hooks",
        "awk 'BEGIN { system(\"./x\") }'",
        "sh 'unfinished",
        f"cp {CHECK} /tmp/check && sh /tmp/check",
        f"cat {CHECK} > /tmp/check; /tmp/check",
        f"cat {CHECK} | tee /tmp/check; . /tmp/check",
    ],
)
def test_a_line_that_could_run_more_of_the_workspace_than_it_names_is_unclear(work: Path, command: str) -> None:
    assert seen(command, work)[1] is False


LOADING = """
    R az brew commitlint cspell dart drizzle-kit eleventy eslint firebase flutter fnm gatsby goimports jekyll
    knip latexmk launchctl markdownlint-cli2 mkdocs netlify octave php-cs-fixer prettier prisma release-it
    rustfmt sqlfluff tool volta watchexec wrangler xcodebuild
"""
"""Programs that load code, or settings that name some, from where they are started, and one that nobody knows."""


@pytest.mark.parametrize(
    "spelling", ["{}", "/usr/bin/{}", "/opt/x/bin/{} --flag", "timeout 5 {}", "env {}", "jq . | {}"]
)
@pytest.mark.parametrize("name", LOADING.split())
def test_a_program_that_is_not_known_to_load_nothing_is_unclear(work: Path, name: str, spelling: str) -> None:
    assert seen(spelling.format(name), work) == ([], False)


def test_a_file_is_found_that_a_program_is_given_which_may_load_others(work: Path) -> None:
    assert seen(f"tool --config={CHECK}", work) == ([CHECK], False)


@pytest.mark.parametrize(
    "command",
    [
        'terminal-notifier -message Done -execute "sh x"',
        'terminal-notifier -message "$WORDS"',
        "curl -K data.json",
        "curl -sK data.json",
        "curl --config data.json https://example.org",
        "/home/me/latexmk",
        "node /usr/lib/node_modules/npm/bin/npm-cli.js run lint",
        "sh /usr/local/bin/tool",
    ],
)
def test_a_word_or_a_path_can_lead_to_code_as_well(work: Path, command: str) -> None:
    assert seen(command, work)[1] is False


@pytest.mark.parametrize("folder", [".asdf/shims", ".local/share/mise/shims", ".volta/bin"])
@pytest.mark.parametrize("command", ["shfmt -w .", f"sh {CHECK}", "cat data.json"])
def test_a_program_that_a_file_of_the_folder_chooses_is_unclear(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, command: str
) -> None:
    path = tmp_path / folder / command.split(maxsplit=1)[0]
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)

    assert look(command, str(work)).unclear == f"which {path.name} it runs, a file of the folder may choose"


def test_a_link_of_the_user_s_own_to_an_installed_program_is_that_program(work: Path, tmp_path: Path) -> None:
    for name in ("opt/bin/tool", "own/mine"):
        (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / "opt/bin/tool").write_text("")
    (tmp_path / "own/mine").write_text("")
    (tmp_path / "own/tool").symlink_to(tmp_path / "opt/bin/tool")

    assert [seen(str(tmp_path / name), work)[1] for name in ("own/mine", "own/tool", "opt/bin/tool")] == [
        True,
        False,
        False,
    ]


def test_a_program_of_the_workspace_that_only_leads_outside_can_be_exchanged(work: Path) -> None:
    (work / "bin").mkdir()
    (work / "bin/python").symlink_to("/usr/bin/env")

    assert look("bin/python alone/check.py", str(work)).unclear == "commands can write what bin/python leads to"


def test_a_script_that_a_program_of_the_workspace_runs_is_unclear(work: Path) -> None:
    (work / SCRIPT).write_text(f"#!{work}/bin/interpreter\n")

    assert look(SCRIPT, str(work)).unclear == f"{SCRIPT} is run by a program that commands can write"


def test_a_program_in_another_folder_that_commands_can_write_is_unclear(work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "check").write_text("")

    assert [bool(look(f"sh {other}/check", str(work), others=others).unclear) for others in ([], [str(other)])] == [
        False,
        True,
    ]


def test_the_files_of_a_module_are_found(work: Path) -> None:
    assert seen("python3 -m hooks.check", work)[0] == ["hooks/__init__.py", "hooks/check.py"]
