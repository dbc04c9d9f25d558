"""Settings that somebody has planted in a repository: no command that only reads runs what they name.

Every planted program leaves a file of its own. That the repositories are dangerous is proved first, by git as it is.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ferrule import Engine, Settings
from ferrule.git.environment import UnsafeError, harden
from ferrule.permissions import Question
from ferrule.sandbox import report
from ferrule.settings import SandboxSettings
from tests.rows import each_row

LIMIT_SECONDS = 60
BEST = next((row.name for row in report() if row.works and row.name != "none"), "none")
LOOKS = (
    "status",
    "status --short --branch",
    "diff",
    "diff HEAD",
    "diff --stat",
    "diff --cached",
    "diff-files -p",
    "diff-index -p HEAD",
    "log -p --all",
    "log --stat -1",
    "log --all --format=fuller",
    "log -p --all --diff-merges=remerge",
    "show HEAD",
    "show merged --diff-merges=remerge",
    "show signed",
    "blame kept.conv",
    "blame kept.filt",
    "grep -n one",
    "ls-files -m",
    "ls-files --others --exclude-standard",
    "stash list -p",
    "branch -v",
    "tag -l",
    "describe --always --dirty",
    "cat-file -p HEAD",
    "rev-parse HEAD",
    "rev-list --count HEAD",
    "shortlog -s HEAD",
    "reflog",
    "worktree list",
    "check-attr -a kept.filt",
    "whatchanged -1",
    "range-diff HEAD~1..HEAD HEAD~1..HEAD",
)
"""Sub-commands that need no question."""
ATTRIBUTES = "*.ext diff=ext\n*.conv diff=conv\n*.filt filter=filt\n*.proc filter=proc\n*.merged merge=mine\n"


def git(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> str:
    calm = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    ran = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **calm, **(env or {})}, capture_output=True, check=False
    )
    return ran.stdout.decode(errors="replace").strip()


class Planted:
    """A workspace with repositories in it, and the folder in which planted programs leave their files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran = root / "ran"
        self.ran.mkdir(parents=True)

    def program(self, name: str) -> str:
        """A command line that leaves a file and then does nothing useful."""
        return f"touch {self.ran}/{name}; cat"

    def file(self, name: str) -> str:
        """The same as a file, for what is started without a shell."""
        path = self.root / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {self.ran}/{name}\n")
        path.chmod(0o755)
        return str(path)

    def take(self) -> list[str]:
        """What has run since the last look."""
        names = sorted(os.listdir(self.ran))
        for name in names:
            (self.ran / name).unlink()
        return names

    def repository(self, name: str) -> Path:
        """One with history, a merge, a signature and changes."""
        folder = self.root / name
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        (folder / ".gitattributes").write_text(ATTRIBUTES)
        for ending in ("ext", "conv", "filt", "proc", "txt", "merged"):
            (folder / f"kept.{ending}").write_text("one\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "one")
        git(folder, "checkout", "-q", "-b", "side")
        (folder / "kept.merged").write_text("side\n")
        git(folder, "commit", "-q", "-am", "side")
        git(folder, "checkout", "-q", "main")
        (folder / "kept.merged").write_text("main\n")
        (folder / "kept.txt").write_text("two\n")
        git(folder, "commit", "-q", "-am", "main")
        git(folder, "merge", "-q", "-s", "ours", "side", "-m", "merged")
        git(folder, "tag", "merged")
        self._sign(folder)
        for ending in ("ext", "conv", "filt", "proc", "txt"):
            (folder / f"kept.{ending}").write_text("one\nmore\n")
        return folder

    def _sign(self, folder: Path) -> None:
        tree = git(folder, "rev-parse", "HEAD^{tree}")
        who = "a <a@b> 1 +0000"
        mark = "-----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----"
        file = folder / ".git" / "signed"
        file.write_text(f"tree {tree}\nauthor {who}\ncommitter {who}\ngpgsig {mark}\n\nsigned\n")
        git(folder, "branch", "signed", git(folder, "hash-object", "-t", "commit", "-w", "--literally", str(file)))

    def plant(self, folder: Path, mark: str, keys: Callable[["Planted", str], Mapping[str, str]]) -> None:
        lines = []
        for key, value in keys(self, mark).items():
            section, _, rest = key.partition(".")
            inner, _, name = rest.rpartition(".")
            quoted = value.replace('"', '\\"')
            lines.append(f'[{section}{f""" "{inner}" """.rstrip() if inner else ""}]\n\t{name} = "{quoted}"\n')
        real = Path(git(folder, "rev-parse", "--absolute-git-dir"))
        with (real / "config").open("a") as file:
            file.write("".join(lines))
        hook = real / "hooks" / "post-index-change"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {self.ran}/{mark}-hook\n")
        hook.chmod(0o755)


def one(planted: Planted, mark: str) -> dict[str, str]:
    """Keys that do not keep each other from being obeyed."""
    run = planted.program
    return {
        "core.fsmonitor": run(f"{mark}-fsmonitor"),
        "core.pager": run(f"{mark}-pager"),
        "diff.external": run(f"{mark}-external"),
        "diff.ext.command": run(f"{mark}-command"),
        "filter.filt.clean": run(f"{mark}-clean"),
        "filter.filt.required": "true",
        "filter.proc.process": run(f"{mark}-process"),
        "log.showSignature": "true",
        "gpg.program": planted.file(f"{mark}-gpg"),
        "merge.mine.driver": f"touch {planted.ran}/{mark}-driver",
        "alias.status": "!" + run(f"{mark}-alias"),
    }


def two(planted: Planted, mark: str) -> dict[str, str]:
    """The others: an external diff hides converters."""
    return {
        "diff.conv.textconv": f"touch {planted.ran}/{mark}-textconv; cat",
        "diff.conv.cachetextconv": "true",
        "format.pretty": "%H %G? %s",
        "gpg.openpgp.program": planted.file(f"{mark}-openpgp"),
        "diff.submodule": "diff",
        "status.submoduleSummary": "true",
        "submodule.recurse": "true",
    }


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    made = Planted(tmp_path_factory.mktemp("planted").resolve() / "work")
    for name, keys in (("first", one), ("second", two)):
        folder = made.repository(name)
        module = made.repository(f"{name}-source")
        git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "module")
        made.repository(f"{name}/inside")
        git(folder, "add", "-f", "inside")
        git(folder, "commit", "-q", "-m", "more", "module", "inside", ".gitmodules")
        if name == "first":
            git(folder, "worktree", "add", "-q", str(made.root / "tree"))
        for inner in ("module", "inside"):
            (folder / inner / "kept.filt").write_text("changed\n")
            (folder / inner / "kept.proc").write_text("changed\n")
            (folder / inner / "kept.conv").write_text("changed\n")
            made.plant(folder / inner, f"{name}-{inner}", keys)
        made.plant(folder, name, keys)
    tree = made.root / "tree"
    for ending in ("ext", "filt", "proc", "txt"):
        (tree / f"kept.{ending}").write_text("one\nmore\n")
    included = made.repository("included")
    (included / ".git" / "more").write_text(f'[filter "filt"]\n\tclean = touch {made.ran}/included-clean; cat\n')
    with (included / ".git" / "config").open("a") as file:
        file.write(f'[includeIf "gitdir:{included}/"]\n\tpath = more\n')
    made.take()
    return made


FOLDERS = ("first", "second", "first/module", "first/inside", "second/module", "second/inside", "tree", "included")
EXPECTED = {
    *(f"first-{one}" for one in ("fsmonitor", "external", "command", "clean", "process", "gpg", "driver", "hook")),
    *(f"first-{where}-{one}" for where in ("module", "inside") for one in ("fsmonitor", "clean", "process")),
    *("second-textconv", "second-openpgp", "second-module-textconv", "second-inside-textconv", "included-clean"),
}


def dirty(planted: Planted, *folders: str) -> None:
    """Files whose times differ from the index: git has to look at them, and would write its index."""
    for folder in folders or FOLDERS:
        for file in (planted.root / folder).glob("kept.*"):
            file.touch()


def test_git_as_it_is_runs_all_that_is_planted(planted: Planted) -> None:
    for folder in FOLDERS:
        for words in LOOKS:
            dirty(planted, folder)
            git(planted.root / folder, *words.split())
        if folder in ("first", "second"):
            git(planted.root / folder, "-c", "submodule.recurse=false", "status")

    missing = EXPECTED - set(planted.take())
    assert missing == set()


async def test_no_sub_command_runs_any_of_it_where_git_is_hardened(planted: Planted) -> None:
    env = dict(os.environ)
    for folder in FOLDERS:
        made = (await harden([str(planted.root / folder)], env, outside=[str(planted.root)])).env
        for words in LOOKS:
            dirty(planted, folder)
            git(planted.root / folder, *words.split(), env=made)
            assert planted.take() == [], (folder, words)


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk", "acceptEdits"])
@pytest.mark.parametrize("use", sorted({"none", BEST}))
async def test_no_command_of_a_session_runs_any_of_it(planted: Planted, use: str, mode: str) -> None:
    asked: list[Question] = []

    def never(question: Question) -> bool:
        asked.append(question)
        return False

    settings = Settings(sandbox=SandboxSettings(use=use))  # type: ignore[arg-type]
    every = "; ".join(f"git {words}" for words in LOOKS)
    lines = [
        " && ".join(f"(cd {folder} && git status; git diff; git log -p -2)" for folder in FOLDERS),
        "cd first && timeout 20 git status && cd ../second/inside && git diff | head -50",
    ]
    if mode == "default":
        lines[:0] = [f"(cd first && {every}) && (cd second && {every})"]
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        Engine(planted.root, dialect="claude", settings=settings, permission_mode=mode, ask=never) as engine,
    ):
        dirty(planted)
        for command in lines:
            reply = await engine.call("Bash", command=command)
            assert (reply.error, asked) == (None, []), command
            assert planted.take() == [], command


@each_row(
    "command",
    [
        pytest.param(
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=x git status", id="variables"
        ),
        pytest.param("GIT_DIR=first/.git git status", id="a-folder-by-a-variable"),
        pytest.param("git --git-dir=first/.git status", id="a-folder-by-a-flag"),
        pytest.param("git -c core.fsmonitor=x status", id="a-setting"),
        pytest.param("env GIT_CONFIG_COUNT=0 git -C first status", id="by-env"),
        pytest.param("export GIT_CONFIG_COUNT=0; git -C first status", id="for-later"),
        pytest.param("unset GIT_CONFIG_COUNT; git -C first status", id="taken-away"),
        pytest.param("cd bare && git log", id="a-folder-that-looks-like-a-repository"),
        pytest.param("git -C away status", id="files-of-another-folder"),
        pytest.param("git -C second diff --submodule=diff", id="into-folders-of-the-history"),
        pytest.param("git -C first status && make test && git -C first commit -m x", id="more-than-reading"),
    ],
)
async def test_what_would_undo_it_asks(planted: Planted, command: str) -> None:
    bare, away = planted.root / "bare", planted.root / "away"
    if not bare.exists():
        git(planted.root, "init", "-q", "--bare", str(bare))
        git(planted.root, "init", "-q", str(away))
        git(away, "config", "core.worktree", "/etc")
    asked: list[Question] = []

    def no(question: Question) -> bool:
        asked.append(question)
        return False

    settings = Settings(sandbox=SandboxSettings(use="none"))
    async with Engine(planted.root, dialect="claude", settings=settings, ask=no) as engine:
        reply = await engine.call("Bash", command=command)

    assert reply.error is not None
    assert len(asked) == 1
    assert planted.take() == []


async def test_what_a_person_allowed_runs_as_it_does_outside(planted: Planted) -> None:
    folder = planted.repository("allowed")
    planted.plant(folder, "allowed", one)
    settings = Settings(sandbox=SandboxSettings(use="none"))
    async with Engine(planted.root, dialect="claude", settings=settings, ask=lambda _: True) as engine:
        await engine.call("Bash", command="cd allowed && git add kept.filt")

    assert {"allowed-clean", "allowed-hook"} <= set(planted.take())


@pytest.mark.parametrize(
    "command", ["git -C first status", "git -C first diff > said.txt", "git -C first log -p | tee -a said.txt"]
)
async def test_a_git_that_only_reads_runs_none_of_it_also_where_somebody_was_asked(
    planted: Planted, command: str
) -> None:
    dirty(planted)
    settings = Settings(sandbox=SandboxSettings(use="none"))
    async with Engine(planted.root, dialect="claude", settings=settings, ask=lambda _: True) as engine:
        reply = await engine.call("Bash", command=command)

    assert reply.error is None
    assert planted.take() == []


async def test_the_users_own_settings_stay_obeyed_also_where_a_repository_overwrites_them(
    planted: Planted, tmp_path: Path
) -> None:
    folder = planted.repository("owned")
    planted.plant(folder, "owned", one)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[filter "filt"]\n\tclean = touch {planted.ran}/mine; cat\n')
    env = {**os.environ, "HOME": str(home), "GIT_CONFIG_COUNT": "1"}
    env |= {"GIT_CONFIG_KEY_0": "diff.ext.command", "GIT_CONFIG_VALUE_0": f"touch {planted.ran}/of-the-environment; :"}
    made = await harden([str(folder)], env)
    git(folder, "diff", env={**env, **made.env})

    assert planted.take() == ["mine", "of-the-environment"]
    assert "diff.external" in made.without


async def test_differences_read_as_git_writes_them_without_the_programs(planted: Planted) -> None:
    said = {}
    for name, folder in (("first", planted.root / "first"), ("second", planted.root / "second")):
        made = await harden([str(folder)], dict(os.environ))
        said[name] = git(folder, "diff", "kept.txt", "kept.ext", "kept.conv", env=made.env)

    assert "+more" in said["first"].splitlines()
    assert "diff --git a/kept.ext b/kept.ext" in said["first"].splitlines()
    assert said["second"].count("+more") == 3


async def test_settings_that_cannot_be_read_in_time_keep_git_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "made")
    folder = tmp_path / "made"
    os.mkfifo(folder / "endless")
    git(folder, "config", "include.path", str(folder / "endless"))
    monkeypatch.setattr("ferrule.git.environment._SECONDS", 0.2)

    with pytest.raises(UnsafeError):
        await harden([str(folder)], dict(os.environ))
