"""What confined commands still ask about: what no checkpoint keeps, and what others have of us."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from ferrule.checkpoints import is_left_out
from ferrule.permissions.shell.losses import loss
from ferrule.permissions.shell.scene import Scene
from tests.rows import each_kept_row, each_row

FILES = (
    *("package.json", "src/app.py", "src/__pycache__/app.pyc", "node_modules/a/index.js", ".venv/pyvenv.cfg"),
    *("dist/app.js", "docs/dist/guide.md", "lib/old.py", "lib/target/x", "pkg/node_modules/b/index.js", "pkg/main.js"),
    *("crate/Cargo.toml", "crate/target/debug/app", "build/webpack.js", "plain/a.txt", "plain/__pycache__/a.pyc"),
    *(".git/HEAD", ".git/config", ".git/refs/heads/main", ".git/objects/ab/cdef", ".git/objects/pack/p.pack"),
)


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("losses").resolve()
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    return str(folder)


def lost(command: str, top: str) -> str:
    scene = Scene((top,), secret=lambda _: False, protected=lambda _: False)
    return loss(command, top, scene, lambda path: is_left_out(path, [top], large_bytes=1000))


@each_kept_row
def test_what_no_checkpoint_keeps_is_asked_about(top: str, command: str) -> None:
    assert lost(command, top).endswith("which no checkpoint keeps.")


@each_kept_row
def test_where_it_runs_need_not_be_certain(top: str, command: str) -> None:
    assert lost(command, top).endswith("which no checkpoint keeps.")


@each_kept_row
def test_a_variable_or_a_pipe_hides_nothing(top: str, command: str) -> None:
    assert lost(command, top).endswith("which no checkpoint keeps.")


@each_kept_row
def test_what_is_not_certain_is_said_to_be_so(top: str, command: str) -> None:
    why = lost(command, top)

    assert (" may delete " in why, why.endswith("which no checkpoint keeps.")) == (True, True), why


@each_row(
    "command",
    [
        "sort -o dist/app.js src/app.py",
        "curl -so dist/app.js https://example.org",
        "wget -O dist/app.js https://example.org",
        "tar czf dist/app.js src",
        "echo x | sponge dist/app.js",
        "awk -i inplace 1 dist/app.js",
        "cp -t dist src/app.js src/app.py && cp -T src/app.py dist/app.js",
        'for f in dist/*.js; do : > "$f"; done',
        "mv -n -f src/app.py dist/app.js",
    ],
)
def test_output_over_what_no_checkpoint_keeps_is_asked_about(top: str, command: str) -> None:
    assert " overwrites " in lost(command, top)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cat a > dist/app.js", "`cat a > dist/app.js` overwrites {top}/dist/app.js, which no checkpoint keeps."),
        (": > dist/app.js", "`: > dist/app.js` overwrites {top}/dist/app.js, which no checkpoint keeps."),
        (
            "find . -name target | xargs rm -rf",
            "`find . -name target | xargs rm -rf` deletes ./crate/target, which no checkpoint keeps.",
        ),
        (
            'find . -name target | while read d; do rm -rf "$d"; done',
            '`rm -rf "$d"` with what `find . -name target` tells deletes ./crate/target, which no checkpoint keeps.',
        ),
        (
            "rm -rf $(pwd)/dist",
            "`rm -rf $(pwd)/dist` deletes {top}/dist, which no checkpoint keeps.",
        ),
    ],
)
def test_the_question_shows_what_was_written(top: str, command: str, said: str) -> None:
    assert lost(command, top) == said.format(top=top)


@each_row(
    "command",
    [
        "truncate -s 0 .git/objects/ab/cdef",
        "echo x > .git/objects/ab/cdef",
        "echo x >> .git/objects/pack/p.pack",
        "dd if=/dev/zero of=.git/objects/pack/p.pack",
        "cat a | tee .git/objects/ab/cdef",
        "sed -i s/a/b/ .git/objects/ab/cdef",
        "cp src/app.py .git/objects/ab/cdef",
        "cd .git/objects && truncate -s 0 ab/cdef",
        "truncate -s 0 .git/objects/*/*",
        "find .git/objects -type f -exec truncate -s 0 {} +",
    ],
)
def test_a_change_of_git_s_objects_in_place_is_asked_about(top: str, command: str) -> None:
    assert lost(command, top).endswith("where git keeps its objects and checkpoints rely on them.")


@each_kept_row
def test_git_that_takes_commits_away_from_others_is_asked_about(top: str, command: str) -> None:
    assert "can take commits away from others, which nothing here brings back" in lost(command, top)


@pytest.mark.parametrize(
    "command",
    [
        "git config remote.origin.mirror true",
        "git config --add remote.origin.push '+refs/heads/*:refs/heads/*'",
        "git config set remote.origin.push +main",
        "git config alias.pf 'push --force'",
        "git remote add --mirror=push copy ../copy.git",
        "git remote add --mirror copy ../copy.git",
    ],
)
def test_git_that_has_later_pushes_do_so_is_asked_about(top: str, command: str) -> None:
    assert "has later pushes take commits away from others" in lost(command, top)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own, with a home whose settings no other test sees."""
    home, folder = tmp_path / "home", tmp_path / "repository"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    for name in (
        "package.json",
        "node_modules/a.js",
        ".venv/pyvenv.cfg",
        "crate/Cargo.toml",
        "crate/target/x",
        "src/a",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n")
    (folder / ".gitignore").write_text("node_modules\n.venv\n")
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    return folder.resolve()


@pytest.mark.parametrize(
    ("command", "which"),
    [
        ("git clean -fdx", ".venv"),
        ("git clean -xdf -e .env", ".venv"),
        ("git clean -fdx -e.venv", "node_modules"),
        ("git clean -fdx --exclude .venv -e node_modules", "crate/target"),
        ("git clean -fdx -e '.v*' -e '/crate/target'", "node_modules"),
        ("git clean -fdx -e '!.env'", ".venv"),
        ("cd src && git clean -fdx :/", ".venv"),
        ("git clean -fdx 'cr*'", ".venv"),
        ('git clean -fdx "$d"', ".venv"),
        ("git clean -fdX cr*", ""),
        ("git clean -fdX", ".venv"),
        ("git clean -fd", "crate/target"),
        ("git clean -fd src", ""),
        ("git clean -fx", ""),
        ("git clean -ndx -e .env", ""),
        ("git clean -fdx -e node_modules -e .venv -e target", ""),
        ("git clean -fdx -e node_modules -e .venv -e crate/target", ""),
        ('git -C "$(git rev-parse --show-toplevel)" clean -fdx', ".venv"),
    ],
)
def test_git_clean_deletes_what_it_is_not_told_to_keep(repository: Path, command: str, which: str) -> None:
    why = lost(command, str(repository))

    assert re.findall(r"deletes? (\S+),", why) == ([str(repository / which)] if which else []), why


def test_git_clean_leaves_what_git_tracks(repository: Path) -> None:
    subprocess.run(["git", "add", "-f", "crate", "node_modules", ".venv"], cwd=repository, check=True)

    assert lost("git clean -fdx", str(repository)) == ""


@pytest.mark.parametrize(
    ("settings", "command", "asks"),
    [
        ("[alias]\n\tpf = push --force\n", "git pf", True),
        ("[alias]\n\tp = push\n", "git p origin main", False),
        ("[alias]\n\tp = push\n", "git p -f", True),
        ("[alias]\n\tp = -c user.name=x push\n\tq = p --force\n", "git q", True),
        ("[alias]\n\tall = !git add -A && git push --force\n", "git all", True),
        ("[alias]\n\tst = status\n", "git st", False),
        ('[remote "copy"]\n\turl = ../copy.git\n\tmirror = true\n', "git push", True),
        ('[remote "copy"]\n\turl = ../copy.git\n\tmirror = true\n', "git push copy", True),
        (
            '[remote "copy"]\n\tmirror = true\n[remote "origin"]\n\turl = ../x.git\n',
            "git push origin main",
            False,
        ),
        ('[remote "origin"]\n\turl = ../x.git\n\tpush = +refs/heads/*:refs/heads/*\n', "git push", True),
        ('[remote "origin"]\n\turl = ../x.git\n\tpush = refs/heads/*:refs/heads/*\n', "git push", False),
    ],
)
@pytest.mark.parametrize("place", ["repository", "home"])
def test_what_git_is_set_to_do_counts(repository: Path, settings: str, command: str, asks: bool, place: str) -> None:
    file = repository / ".git" / "config" if place == "repository" else Path(os.environ["HOME"]) / ".gitconfig"
    with file.open("a") as opened:
        opened.write(settings)

    assert bool(lost(command, str(repository))) == asks


def test_what_is_made_unreadable_for_good_is_asked_about(top: str) -> None:
    assert lost("shred -u plain/a.txt", top) == (
        "`shred -u plain/a.txt` destroys files so that nothing can bring them back."
    )


@each_kept_row
def test_everything_else_is_not(top: str, command: str) -> None:
    assert lost(command, top) == ""


@pytest.mark.parametrize(
    ("files", "command", "asks"),
    [
        (("__pycache__/a.cpython-311.pyc",), "rm -rf __pycache__", False),
        (("__pycache__/notes.txt",), "rm -rf __pycache__", True),
        (("__pycache__/a.pyc", "__pycache__/own/a.py"), "rm -rf __pycache__", True),
        ((".pytest_cache/v/cache/lastfailed",), "rm -rf .pytest_cache", False),
        ((".mypy_cache/3.11/a.json", ".ruff_cache/x"), "rm -rf .mypy_cache .ruff_cache", False),
        (("__pycache__/a.pyc", "node_modules/a.js"), "rm -rf __pycache__ node_modules", True),
        ((".venv/lib/a.py",), "rm -rf .venv", True),
    ],
)
def test_a_cache_that_holds_nothing_of_anybody_s_is_no_reason_to_ask(
    tmp_path: Path, files: tuple[str, ...], command: str, asks: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    assert bool(lost(command, str(tmp_path.resolve()))) == asks


def test_a_file_that_is_too_large_for_a_checkpoint_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(1001))
    (tmp_path / "small.bin").write_bytes(bytes(1000))
    top = str(tmp_path.resolve())

    assert [bool(lost(f"rm {name}", top)) for name in ("data.bin", "small.bin")] == [True, False]
    assert [bool(lost(f"{start} data.bin", top)) for start in (": >", "echo x >>", "cat", "rm -rf")] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "command",
    [
        "find . " + "\\( " * 2_000 + "-delete",
        "find . " + "! " * 2_000 + "-name '*.js' -delete",
        "find . " + "\\( " * 200 + "! -name x -exec rm -rf {} +",
        "find . -regex '\\(a+\\)+\\(a+\\)+b' -delete",
        "fd '(a+)+(a+)+b' -x rm -rf",
    ],
)
def test_a_search_that_nobody_can_answer_may_find_anything(top: str, command: str) -> None:
    assert lost(command, top).endswith("which no checkpoint keeps.")


def test_a_line_with_too_much_to_look_at_is_asked_about(tmp_path: Path) -> None:
    for number in range(4_000):
        (tmp_path / str(number)).touch()
    line = "; ".join(f"find . -name x{number} -delete" for number in range(30))

    assert lost(line, str(tmp_path.resolve())) == (
        "The command line deletes or overwrites more than can be looked through for what no checkpoint keeps."
    )


def test_a_folder_with_too_much_in_it_is_asked_about(tmp_path: Path) -> None:
    for number in range(5_001):
        (tmp_path / "many" / str(number)).parent.mkdir(exist_ok=True)
        (tmp_path / "many" / str(number)).touch()

    top = str(tmp_path.resolve())
    assert "too large to be looked through" in lost("rm -rf many", top)
