"""What confined commands still ask about: what no checkpoint keeps, and what others have of us."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from ferrule.checkpoints import is_left_out
from ferrule.permissions.shell.losses import loss
from ferrule.permissions.shell.scene import Scene

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
        "set -e; rm -rf node_modules",
        "set -euo pipefail; rm -rf dist && npm run build",
        "source .venv/bin/activate && rm -rf dist",
        ". .venv/bin/activate; : > dist/app.js",
        "shopt -s nullglob; rm -rf dist/*",
        "trap 'echo x' EXIT; rm -rf node_modules",
        'eval "$(direnv export bash)"; rm -rf node_modules',
        "cd $X; rm -rf node_modules",
        "cd pkg && npm i; cd -; rm -rf dist",
        "pushd lib; popd; rm -rf dist",
        "set -e; cd pkg; rm -rf node_modules",
        "mkdir -p out && cd out && rm -rf ../node_modules",
        'cd "$(git rev-parse --show-toplevel)" && rm -rf node_modules',
        'for p in */; do (cd "$p" && rm -rf node_modules); done',
        "f() { rm -rf node_modules; }; f",
        "echo 'rm -rf node_modules' | sh",
        "set -o pipefail; find . -name node_modules | xargs rm -rf",
        "set -e; git clean -fdx",
        "cd pkg ) && rm -rf node_modules",
        'tmp=$(mktemp -d); cd "$tmp"; rm -rf node_modules',
        'tmp=$(mktemp -d); (cd "$tmp" && ls); rm -rf node_modules',
        'tmp=$(mktemp -d); cd "$tmp" || rm -rf node_modules',
    ],
)
def test_where_it_runs_need_not_be_certain(top: str, command: str) -> None:
    assert lost(command, top).endswith("which no checkpoint keeps.")


@pytest.mark.parametrize(
    "command",
    [
        "d=node_modules; rm -rf $d",
        'OUT=dist && rm -rf "$OUT"',
        'export OUT=dist; rm -rf "${OUT:?}"/*',
        'D="dist node_modules"; rm -rf $D',
        'D=src; D=dist; rm -rf "$D"',
        "rm -rf $(pwd)/node_modules",
        'rm -rf "$(git rev-parse --show-toplevel)/node_modules"',
        "ROOT=$(pwd); rm -rf $ROOT/dist",
        'rm -rf "${ROOT:-.}/node_modules"',
        'f() { rm -rf "$1"; }; f node_modules',
        "rm -rf $(find . -name node_modules)",
        "found=$(find . -name node_modules); rm -rf $found",
        'find . -name node_modules | while read d; do rm -rf "$d"; done',
        'for d in $(find . -name node_modules); do rm -rf "$d"; done',
        "find . -name node_modules | xargs -I{} sh -c 'rm -rf {}'",
        "find . -name node_modules -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
        "find . -iname NODE_MODULES -exec rm -rf {} +",
        "find */ -name node_modules -exec rm -rf {} +",
        "find . -maxdepth 1 -name pkg -exec rm -rf {} +",
        "find . -name node_modules | parallel rm -rf",
        "printf '%s\\n' node_modules dist | xargs rm -rf",
        "echo node_modules | xargs rm -rf",
        "fd -t d node_modules -X rm -rf",
    ],
)
def test_a_variable_or_a_pipe_hides_nothing(top: str, command: str) -> None:
    assert lost(command, top).endswith("which no checkpoint keeps.")


@pytest.mark.parametrize(
    "command",
    [
        'rm -rf "$d"',
        'rm -rf "$d/node_modules"',
        "rm -rf packages/../$x/node_modules",
        "for d in p*; do rm -rf $d/node_modules; done",
        "ls | xargs -I{} rm -rf ./{}/node_modules",
        "ls | grep modules | xargs rm -rf",
        "cat list.txt | xargs rm -rf",
        "xargs -a list.txt rm -rf",
        'while read -r f; do rm -rf "$f"; done < list.txt',
        "git ls-files -oi --exclude-standard | xargs rm -f",
        "rm -rf **/node_modules",
        "rm -rf !(src)",
        "npx rimraf '**/node_modules'",
        'mv dist "$elsewhere"',
        'cd "$p" && rm -rf target',
    ],
)
def test_what_is_not_certain_is_said_to_be_so(top: str, command: str) -> None:
    why = lost(command, top)

    assert (" may delete " in why, why.endswith("which no checkpoint keeps.")) == (True, True), why


@pytest.mark.parametrize(
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
        'git push origin "+$B"',
        'git push origin ":$B"',
        'git push origin "+HEAD:$B"',
        "git push origin '+'\"$B\"",
        'git push "--force-with-lease=main:$SHA" origin main',
        'for b in a b; do git push origin ":$b"; done',
        "F=--force; git push $F",
        "git push --m",
        "git push --dry-run --no-dry-run --force",
        "git -c Remote.origin.push=+main push",
        "git -cremote.origin.mirror=true push",
        "git --config-env=remote.origin.push=X push",
        "git --attr-source HEAD push -f",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.mirror GIT_CONFIG_VALUE_0=true git push",
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.mirror GIT_CONFIG_VALUE_0=true; git push",
        "git -c alias.p=push p -f",
        "git -c alias.p='!git push' p -f",
        "git-push --force",
        "set -e; git push -f",
        "git send-pack --force origin main",
        "/usr/bin/git push --force",
        "env GIT_TRACE=1 git push --force",
    ],
)
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
        "cp dist/*.js docs/",
        "cp -r src/* dist/",
        "cp -t docs dist/app.js",
        'cp dist/app.js "$OUT"/',
        "install -m 755 crate/target/debug/app /tmp/app",
        "cp -n src/app.py dist/app.js",
        "ln -sfn src dist",
        "mv -n src/app.py dist/app.js",
        "git grep -il foo | xargs rm -rf",
        "mv dist dist.old",
        "mv node_modules lib/",
        "rsync -a --delete dist/ docs/",
        "rsync -a --delete --exclude node_modules ./ /tmp/copy/",
        "rsync -a --delete --exclude=dist --exclude .venv --exclude target --exclude node_modules docs/ ./",
        "rsync -az --delete dist/ user@host:/srv",
        "rsync -n -a --delete src/ dist/",
        "sort -o names.txt dist/app.js",
        "tee -a dist/app.js",
        "find . -name '*.js' -exec cp {} /tmp/ \\;",
        "find node_modules -name '*.js' | xargs cp -t docs",
        "find . -name '*.md' -exec mv {} docs/ \\;",
        "find . \\( -name node_modules -o -name dist \\) -prune -o -name '*.js' -exec sed -i s/a/b/ {} +",
        "find . -empty -type d -delete",
        "find . -size +100M -delete",
        "find . -name '*.egg-info' -exec rm -rf {} +",
        "rm -rf $(find . -name '*.egg-info')",
        "find . -name '*.egg-info' | while read d; do rm -rf \"$d\"; done",
        "find . -name '*.egg-info' | xargs rm -rf",
        "for d in *.egg-info; do rm -rf $d; done",
        'tmp=$(mktemp -d); cp -r src "$tmp"; rm -rf "$tmp"',
        "trap 'rm -rf \"$tmp\"' EXIT; tmp=$(mktemp -d)",
        'rm -rf "$TMPDIR/x" "/tmp/x-$USER" "$d/plain"',
        'OUT=plain; rm -rf "$OUT"',
        "OUT=${1:-plain}; rm -rf $OUT",
        'f() { rm -rf "$1"; }; f plain',
        "set -e; rm -rf plain",
        "git ls-files -o --exclude-standard | xargs rm -rf",
        "rg -l foo | xargs rm -f",
        'rm -f "$f"',
        'while read f; do rm -f "$f"; done < list.txt',
        "echo x > dist/new.js",
        "echo x >> dist/app.js",
        "ls node_modules > list.txt",
        "sed -n 1p node_modules/a/index.js",
        "sed -i s/a/b/ src/app.py",
        "go build -o dist/app.js .",
        "find . -name '*.pyc' -delete",
        'tmp=$(mktemp -d); cd "$tmp" && rm -rf *',
        'tmp=$(mktemp -d) && cd "$tmp" && rm -rf ./*',
        'cd "$(mktemp -d)" && rm -rf *',
        "rm -rf src/__pycache__",
        "rm -rf src/__pycache__ plain/__pycache__",
        "rm -f src/__pycache__/*.pyc",
        "find . -name __pycache__ -exec rm -rf {} +",
        "find . -type d -name __pycache__ | xargs rm -rf",
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
        'git push -u origin "$(git branch --show-current)"',
        "git push -u origin $(git rev-parse --abbrev-ref HEAD)",
        'b=feature; git push -u origin "$b"',
        'BRANCH=$(git branch --show-current); git push -u origin "$BRANCH"',
        'git push origin "HEAD:$B"',
        "git push --force --dry-run",
        "git push -nf origin main",
        "git push --repo origin -o fast main",
        "git -c push.default=current push",
        "git config --get remote.origin.push",
        "git config remote.origin.url ../x.git",
        "git config remote.origin.mirror false",
        "git config alias.co checkout",
        "git remote add --mirror=fetch up ../up.git",
        "git fetch --force",
        "git branch -D old",
        "rm -rf .git/objects/ab",
        "echo 'git push --force'",
        "grep -rn 'rm -rf node_modules' src",
    ],
)
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
