"""The container: what the Dockerfile copies and runs, done in a folder of its own, as an ordinary user too."""

import fnmatch
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from trials.container import Instruction, context, instructions, is_copied

from ferrule.models.cues import calls, said
from tests.architecture.project import ROOT
from tests.cli.recordings import recording
from tests.ordinary.person import Person

LINES = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
COPIES = [shlex.split(one.words) for one in LINES if one.name == "COPY"]


def test_what_is_copied_is_there_and_goes_to_the_builder():
    sources = [word for words in COPIES if not words[0].startswith("--from") for word in words[:-1]]

    assert sources
    assert [one for one in sources if not (ROOT / one).exists() or not is_copied(one)] == []


def test_the_builder_is_given_nothing_else(tmp_path):
    context(tmp_path)
    given = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()}

    assert given == {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "requirements", "src"}
    assert [
        path
        for path in tmp_path.rglob("*")
        if fnmatch.fnmatch(path.name, ".env*") or path.name in {".git", "__pycache__"}
    ] == []


@pytest.mark.parametrize(
    "name", [".git/config", ".env", "src/.env", "src/ferrule/.git/config", ".venv/bin/python", "tests/conftest.py"]
)
def test_no_secret_and_no_history_goes_to_the_builder(name):
    assert not is_copied(name)


def test_the_last_stage_is_an_ordinary_user_s_and_holds_no_key():
    last = LINES[max(at for at, one in enumerate(LINES) if one.name == "FROM") :]
    (user,) = [one.words for one in last if one.name == "USER"]

    assert user.split(":")[0] not in {"0", "root", ""}
    assert [one for one in last if one.name in {"ENTRYPOINT", "CMD"}] == [Instruction("ENTRYPOINT", '["ferrule"]')]
    assert [one for one in LINES if one.name in {"ARG", "ENV"} and "KEY" in one.words.upper()] == []


def test_what_is_installed_comes_by_its_hash():
    pip = [one.words for one in LINES if one.name == "RUN" and " pip " in one.words]

    assert len(pip) == 2
    assert [one for one in pip if "--require-hashes" not in one and "--no-index --no-deps" not in one] == []
    assert [
        one for one in LINES if one.name == "RUN" and any(word in one.words for word in ("curl", "wget", "git clone"))
    ] == []


@pytest.fixture(scope="module")
def site() -> Iterator[Path]:
    """The package as the Dockerfile makes it of what the builder is given, where every user can read it."""
    (words,) = [shlex.split(one.words) for one in LINES if one.name == "RUN" and one.words.endswith(" .")]
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        build, target = Path(made, "build"), Path(made, "site")
        build.mkdir()
        context(build)
        install = [sys.executable, *words[1:], "--quiet", "--no-compile", "--target", str(target)]
        done = subprocess.run(install, cwd=build, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        yield target


def test_the_context_alone_makes_a_package_that_works(site: Path, person: Person):
    work = person.folder("work")
    (work / "a.py").write_text("x = 1\n")
    path = recording(work / "c.jsonl", calls(("Read", {"file_path": "${workspace}/a.py"})), said("One."))
    person.give(work)
    env = {"PYTHONPATH": str(site)}
    where = person.run([sys.executable, "-P", "-c", "import ferrule; print(ferrule.__file__)"], env=env, cwd=work)
    version = person.run([sys.executable, "-P", "-m", "ferrule", "--version"], env=env, cwd=work)
    done = person.run(
        [sys.executable, "-P", "-m", "ferrule", "run", "x", "--replay", path, "--json"], env=env, cwd=work
    )

    assert where.stdout.startswith(str(site)), where.stderr
    assert version.stdout.startswith("ferrule 0"), version.stderr
    assert (done.returncode, json.loads(done.stdout)["result"]) == (0, "One."), done.stderr


def test_the_programs_that_it_promises_are_installed():
    lock = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    apt = next(one.words for one in LINES if one.name == "RUN" and "apt-get install" in one.words)

    assert "\nripgrep-bin==" in f"\n{lock}"
    assert "git" in apt.split("&&")[1].split()
    assert shutil.which("rg", path=str(Path(sys.prefix, "bin")))
