"""What confined commands still ask about: what no checkpoint keeps, and what others have of us."""

from pathlib import Path

import pytest

from ferrule.permissions.shell.losses import loss
from ferrule.permissions.shell.scene import Scene
from ferrule.workspace.remade import is_left_out

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


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf node_modules",
        "rm -rf ./node_modules/",
        "rm -rf node_modules dist && npm install",
        "rm -rf .venv",
        "rm -rf src/__pycache__",
        "rm -rf dist/*",
        "rm -rf */node_modules",
        "rm -rf pkg",
        "rm -rf .",
        "rm -rf *",
        "cd pkg && rm -rf node_modules",
        "cd node_modules; rm -rf a",
        "rm -rf crate/target",
        "rm dist/app.js",
        "rmdir node_modules/a",
        "mv node_modules /tmp/away",
        "mv src/app.py dist/app.js",
        "cp src/app.py dist/app.js",
        "echo x > dist/app.js",
        "echo x | tee dist/app.js",
        "truncate -s 0 dist/app.js",
        "dd if=/dev/zero of=dist/app.js bs=1 count=1",
        "sed -i s/a/b/ node_modules/a/index.js",
        "ln -sf ../src/app.py dist/app.js",
        "rsync -a --delete src/ dist/",
        "npx rimraf node_modules",
        "sudo rm -rf node_modules",
        "timeout 5 rm -rf node_modules",
        "sh -c 'rm -rf node_modules'",
        "for d in dist node_modules; do rm -rf $d; done",
        "export X=1; rm -rf node_modules",
        "(rm -rf node_modules)",
        "echo $(rm -rf node_modules)",
        "find . -name node_modules -type d -prune -exec rm -rf '{}' +",
        "find . -name node_modules | xargs rm -rf",
        "find . -name __pycache__ -exec rm -rf {} +",
        "find . -delete",
        "find node_modules -type f -delete",
        "find . -path './dist/*' -delete",
        "find . -name '*.js' -exec sed -i s/a/b/ {} ;",
        "git clean -fdx",
        "git clean -xdf pkg",
        "git -C pkg clean -fdX",
    ],
)
def test_what_no_checkpoint_keeps_is_asked_about(top: str, command: str) -> None:
    assert lost(command, top).endswith("which no checkpoint keeps.")


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "command",
    [
        "git push --force",
        "git push -f origin main",
        "git push -uf origin main",
        "git push --force-with-lease origin main",
        "git push --force-with-lease=main:abc origin main",
        "git push --forc origin main",
        "git push origin +main",
        "git push origin +HEAD:main",
        "git push --mirror",
        "git push --delete origin old",
        "git push -d origin old",
        "git push origin :old",
        "git push --prune origin",
        "git -C sub push --force",
        "git -c user.name=x push --force",
        "git -c remote.origin.push=+main push",
        "git -c alias.p='push --force' p",
        "cd src && git add -A && git commit -m x && git push -f",
        "git push origin $BRANCH",
        "git send-pack --force origin main",
        "/usr/bin/git push --force",
        "env GIT_TRACE=1 git push --force",
    ],
)
def test_git_that_takes_commits_away_from_others_is_asked_about(top: str, command: str) -> None:
    assert "can take commits away from others, which nothing here brings back" in lost(command, top)


def test_what_is_made_unreadable_for_good_is_asked_about(top: str) -> None:
    assert lost("shred -u plain/a.txt", top) == (
        "`shred -u plain/a.txt` destroys files so that nothing can bring them back."
    )


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf src",
        "rm -rf plain",
        "rm -rf build",
        "rm -rf docs/dist",
        "rm -rf lib/target",
        "rm -rf not_there/node_modules",
        "rm node_modules.txt",
        "npm ci",
        "npm install",
        "pip install -e .",
        "cargo clean",
        "make clean",
        "python -c 'import shutil; shutil.rmtree(\"node_modules\")'",
        "mkdir -p dist/new",
        "touch dist/app.js",
        "cp src/app.py dist/new.js",
        "cp -r src dist",
        "mv plain/a.txt dist/",
        "cp -r node_modules /tmp/copy",
        "echo x > dist/new.js",
        "echo x >> dist/app.js",
        "ls node_modules > list.txt",
        "sed -n 1p node_modules/a/index.js",
        "sed -i s/a/b/ src/app.py",
        "go build -o dist/app.js .",
        "find . -name '*.pyc' -delete",
        "find . -name '*.log' -delete",
        "find . -name '*.js' -not -path './node_modules/*' -not -path './dist/*' -not -path './pkg/*' -delete",
        "find . -name node_modules -prune -o -name '*.log' -delete",
        "find . -name node_modules",
        "find plain -delete",
        "git clean -fd",
        "git clean -ndx",
        "git clean -fdx plain",
        "git gc --prune=now",
        "git prune",
        "git reflog expire --expire=now --all",
        "git reset --hard HEAD~1",
        "git push",
        "git push -u origin main",
        "git push origin HEAD:refs/for/main",
        "git push -o ci.skip origin main",
        "git push --follow-tags",
        "git push --no-verify",
        "git fetch --force",
        "git branch -D old",
        "rm -rf .git/objects/ab",
        "echo 'git push --force'",
        "grep -rn 'rm -rf node_modules' src",
    ],
)
def test_everything_else_is_not(top: str, command: str) -> None:
    assert lost(command, top) == ""


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


def test_a_folder_with_too_much_in_it_is_asked_about(tmp_path: Path) -> None:
    for number in range(5_001):
        (tmp_path / "many" / str(number)).parent.mkdir(exist_ok=True)
        (tmp_path / "many" / str(number)).touch()

    top = str(tmp_path.resolve())
    assert "too large to be looked through" in lost("rm -rf many", top)
