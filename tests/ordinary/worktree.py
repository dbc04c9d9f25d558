"""A small repository with everything in it that is easily lost: what a day's work leaves, and what few tools expect."""

import os
import subprocess
import sys
from pathlib import Path

LARGE = ("plain", "large")
"""Kinds of trees: `large` has a sparse file of 50 MB and 30 MB of random bytes besides."""
REMADE = ("node_modules",)
"""What a tool makes again, and no picture has."""
REPOSITORIES = (".", "nested", "modules/lib")
_LONG = "long-" + "n" * 245 + ".txt"
_IDENTITY = (
    "git config user.name Ordinary; git config user.email ordinary@example.org; git config commit.gpgsign false\n"
)
_LIMIT_SECONDS = 120

_TRACKED = {
    "README.md": "# The project\n\nOne line, and another one.\n",
    "Makefile": "output/app.txt: src/app.py\n\tmkdir -p output\n\tcp src/app.py output/app.txt\n\n"
    "clean:\n\trm -rf output docs/built.html\n\n.PHONY: clean\n",
    "src/app.py": "def main():\n    return   'app'\n",
    "src/util.py": "\n".join(f"VALUE_{number} = {number}" for number in range(200)) + "\n",
    "src/staged.py": "STAGED = 0\n",
    "src/deep/er/module.py": "DEEP = True\n",
    "tests/test_app.py": "from src.app import main\n\n\ndef test_it():\n    assert main() == 'app'\n",
    "docs/guide.md": "# Guide\n\nSome words.\n",
    "docs/built.html": "<h1>built, and committed</h1>\n",
    "docs/list.txt": "pear\napple\nfig\n",
    "output/app.txt": "built, and committed\n",
    "build/scripts/release.sh": "#!/bin/sh\necho release\n",
    "lib/dist/bundle.js": "var bundled = 1;\n",
    "lib/package.json": '{"name": "lib"}\n',
    "windows/crlf.txt": "one\r\ntwo\r\nthree\r\n",
    "windows/auto.txt": "lines\nof\ntext\n",
    "windows/mixed.bat": "@echo off\r\necho hi\n",
    "filtered.flt": "uryyb, gurer\n",
    "same.txt": "the same before and after\n",
    "empty.txt": "",
    ".gitignore": "*.log\nlocal.cfg\ndata/\nnode_modules/\n.env\nbig/\n*.db*\n",
    ".gitattributes": "windows/* text=auto\nwindows/crlf.txt text eol=crlf\nwindows/mixed.bat -text\n"
    "*.flt filter=rot\n",
}
_UNTRACKED = {
    "notes.txt": "words that are nowhere else\n",
    "src/new_module.py": "NEW = 1\n",
    "scratch/idea one.md": "# An idea\n",
    "-dash.txt": "its name begins with a dash\n",
    "with space/two words.txt": "blanks\n",
    "line\nbreak.txt": "its name has two lines\n",
    "grüße-ünïcode.txt": "composed\n",
    "gru\u0308ße-decomposed.txt": "decomposed\n",
    "quote'and\"quote.txt": "quotes\n",
    "$(touch ran).txt": "a name that is a command\n",
    "star*.txt": "a name that is a pattern\n",
    _LONG: "a name of 254 bytes\n",
}
_IGNORED = {
    "debug.log": "2026-11-01 something that happened once\n",
    "src/trace.log": "a trace\n",
    "local.cfg": "[machine]\nname = this one\n",
    "data/measured.csv": "1,2,3\n4,5,6\n",
    "data/deep/more.csv": "7,8,9\n",
    "node_modules/left/index.js": "module.exports = 1\n",
    ".env": "API_KEY=only-on-this-machine\n",
}
_BEGIN = (
    f"""
set -e
git init -q -b main .
{_IDENTITY}git config filter.rot.clean 'tr a-z n-za-m'
git config filter.rot.smudge 'tr a-z n-za-m'
git config core.autocrlf false
"""
    r"""
chmod 755 build/scripts/release.sh
chmod 600 docs/list.txt
git add -A
git commit -q -m 'Begin'
git checkout -q -b topic
echo 'TOPIC = 1' >> src/util.py
git commit -q -a -m 'On a branch'
git checkout -q main
echo '# more' >> docs/guide.md
git commit -q -a -m 'Second'
git tag v1
echo 'of a stash' >> README.md
git stash -q
echo 'STAGED = 1' > src/staged.py
git add src/staged.py
echo 'STAGED = 2' > src/staged.py
echo '# changed, and not staged' >> src/app.py
"""
)
_NESTED = f"""
set -e
git init -q -b main .
{_IDENTITY}git add -A
git commit -q -m 'Nested'
echo 'of a nested stash' >> inner.txt
git stash -q
echo 'not committed' > loose.txt
"""
_MODULE = """
set -e
git -c protocol.file.allow=always submodule --quiet add "$1" modules/lib
git commit -q -m 'Add a module' .gitmodules modules/lib
echo 'changed in the module' >> modules/lib/lib.txt
"""
_DATABASE = """
import os, sqlite3, sys
line = sqlite3.connect(sys.argv[1])
line.execute("pragma journal_mode=wal")
line.execute("pragma wal_autocheckpoint=0")
line.execute("create table rows (id integer primary key, words text)")
line.executemany("insert into rows (words) values (?)", [(f"row {n}",) for n in range(500)])
line.commit()
os._exit(0)
"""


def built(top: Path) -> dict[str, Path]:
    """Both kinds of trees below a folder, by their names; whoever calls it owns them."""
    trees = {name: top / name for name in LARGE}
    plain, origin = trees["plain"], top / "origin"
    for folder in (plain, origin):
        folder.mkdir(parents=True)
    _write(plain, _TRACKED)
    _shell(plain, _BEGIN)
    _write(origin, {"lib.txt": "of the module\n"})
    _shell(origin, f"git init -q -b main .\n{_IDENTITY}git add -A\ngit commit -q -m Module\n")
    _shell(plain, _MODULE, str(origin))
    removed_later = {**_UNTRACKED, **_IGNORED}
    _write(plain, removed_later)
    _write(plain / "nested", {"inner.txt": "of a repository in a repository\n"})
    _shell(plain / "nested", _NESTED)
    _odd(plain)
    subprocess.run(["cp", "-a", str(plain), str(trees["large"])], check=True, timeout=_LIMIT_SECONDS)
    big = trees["large"] / "big"
    big.mkdir()
    (big / "random.bin").write_bytes(os.urandom(30 << 20))
    with open(big / "sparse.img", "wb") as file:
        file.truncate(50 << 20)
        file.seek(25 << 20)
        file.write(b"in the middle")
    return trees


def _odd(tree: Path) -> None:
    """Links, modes, names and kinds of files that are rarely thought of. What is closed comes last."""
    (tree / os.fsdecode(b"bad-\xff\xfe.txt")).write_text("its name is no text\n")
    (tree / "link-to-file").symlink_to("README.md")
    (tree / "link-to-folder").symlink_to("src")
    (tree / "dangling").symlink_to("nowhere/at/all")
    (tree / "docs/link-up").symlink_to("../src/app.py")
    (tree / "empty/inner").mkdir(parents=True)
    (tree / "hard-one.txt").write_text("one file with two names\n")
    os.link(tree / "hard-one.txt", tree / "hard-two.txt")
    os.mkfifo(tree / "pipe", 0o644)
    subprocess.run([sys.executable, "-c", _DATABASE, str(tree / "data/app.db")], check=True, timeout=_LIMIT_SECONDS)
    modes = {"private.txt": 0o600, "tool.sh": 0o755, "suid-tool": 0o4755, "read-only.txt": 0o444}
    for name, mode in modes.items():
        (tree / name).write_text(f"#!/bin/sh\necho {name}\n")
        (tree / name).chmod(mode)
    closed = tree / "read-only"
    closed.mkdir()
    (closed / "kept.txt").write_text("in a folder that is closed\n")
    (closed / "kept.txt").chmod(0o444)
    (tree / "shared").mkdir()
    (tree / "shared").chmod(0o2775)
    closed.chmod(0o555)


def copied(tree: Path, target: Path) -> Path:
    """The same tree again: links, modes, holes and hard links as they are."""
    argv = ["cp", "-a", "--sparse=always", "--reflink=auto", str(tree), str(target)]
    subprocess.run(argv, check=True, timeout=_LIMIT_SECONDS)
    return target


def git_state(tree: Path, name: str) -> str:
    """What git says of one repository: its commits, branches, stashes and where its head is; read outside the walls."""
    commands = "git log --all --format=%H --no-walk=sorted; git for-each-ref; git stash list; git rev-parse HEAD"
    script = f"{commands}; git symbolic-ref HEAD; git diff --cached --name-only"
    return _git(tree / name, script)


def unsound(tree: Path, name: str) -> str:
    """What git finds broken in a repository; nothing where all is well."""
    said = _git(tree / name, "git fsck --full --no-dangling --no-progress && echo sound")
    return "" if said.strip().endswith("sound") else said.strip()[-300:] or "no answer"


def _git(folder: Path, script: str) -> str:
    env = {**os.environ, "GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder), "GIT_OPTIONAL_LOCKS": "0"}
    argv = ["bash", "-c", script]
    # Where the folder itself is gone there is nothing to ask.
    if not folder.is_dir():
        return "no folder"
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, timeout=_LIMIT_SECONDS, check=False)
    return (done.stdout + done.stderr).decode(errors="replace")


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


def _shell(folder: Path, script: str, *words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"no fixture: {done.stdout}{done.stderr}")
