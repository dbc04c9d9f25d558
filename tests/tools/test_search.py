"""glob and Grep, through the whole flow."""

import os
import subprocess

import pytest
from tests.direct import Direct

from ferrule.core.errors import ToolFailure
from ferrule.tools.search.find import Glob


@pytest.fixture
def tree(root):
    """A small project with an ignored folder and a secret."""
    for name, text in {
        "package.json": "{}\n",
        "src/app.ts": "const needle = 1;\nconst Needle = 2;\n",
        "src/deep/util.ts": "needle {}\n",
        "src/deep/util.js": "// nothing\n",
        "src/Upper/x.ts": "x\n",
        "lib/test_app.js": "needle\n",
        "node_modules/dep/index.js": "needle\n",
        "debug.log": "needle\n",
        ".env": "needle=secret\n",
        ".env.example": "needle=\n",
        ".github/flow.yml": "needle\n",
        ".gitignore": "node_modules/\n*.log\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def relative(root, reply):
    real = os.path.realpath(root)
    assert all(os.path.isabs(path) for path in reply.result["files"])
    return [os.path.relpath(path, real) for path in reply.result["files"]]


@pytest.mark.contract("glob.patterns", "glob.recursive", "glob.gitignore", "glob.absolute-paths")
@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        pytest.param("**/*.js", ["lib/test_app.js", "src/deep/util.js"], id="any-folder"),
        pytest.param("src/**/*.ts", ["src/Upper/x.ts", "src/app.ts", "src/deep/util.ts"], id="below"),
        pytest.param("*.json", ["package.json"], id="this-folder-only"),
        pytest.param("*.ts", [], id="not-deeper"),
        pytest.param("**/*test*", ["lib/test_app.js"], id="part-of-a-name"),
        pytest.param("**/*.{js,json}", ["lib/test_app.js", "package.json", "src/deep/util.js"], id="either"),
        pytest.param("src/[a-z]*/*.ts", ["src/deep/util.ts"], id="class"),
        pytest.param("**/*.log", [], id="ignored-by-name"),
        pytest.param("node_modules/**", [], id="ignored-folder"),
        pytest.param(".github/*", [".github/flow.yml"], id="hidden-when-named"),
        pytest.param("**/flow.yml", [], id="hidden-when-not-named"),
        pytest.param("src/app.ts", ["src/app.ts"], id="plain-name"),
        pytest.param("nowhere/**", [], id="no-such-folder"),
    ],
)
async def test_glob_patterns(engine, tree, pattern, files):
    reply = await engine.call("glob", filePattern=pattern)

    assert relative(tree, reply) == files
    assert reply.result["remaining"] == 0


async def test_glob_takes_absolute_patterns_inside(engine, tree):
    reply = await engine.call("glob", filePattern=f"{tree}/src/**/*.ts")

    assert relative(tree, reply) == ["src/Upper/x.ts", "src/app.ts", "src/deep/util.ts"]


async def test_glob_outside_is_refused(engine, tree):
    reply = await engine.call("glob", filePattern="/etc/*.conf")

    assert reply.status == "rejected-by-user"
    assert "--add-dir" in reply.error.message


@pytest.mark.contract("glob.pagination", "glob.remaining")
async def test_glob_pages_fit_together(engine, root):
    for number in range(25):
        (root / f"{number:02d}.txt").write_text("")
    pages = [(await engine.call("glob", filePattern="*.txt", limit=10, offset=at)).result for at in (0, 10, 20, 30)]

    assert [page["remaining"] for page in pages] == [15, 5, 0, 0]
    assert [name for page in pages for name in page["files"]] == [
        os.path.join(os.path.realpath(root), f"{number:02d}.txt") for number in range(25)
    ]


@pytest.mark.contract("glob.default-limit")
async def test_glob_gives_1000_files_unless_told(engine, root):
    for number in range(1005):
        (root / f"{number}.txt").touch()

    reply = await engine.call("glob", filePattern="*.txt")

    assert (len(reply.result["files"]), reply.result["remaining"]) == (1000, 5)


@pytest.mark.parametrize("values", [{"limit": 0}, {"offset": -1}, {"limit": 1.5}, {"unknown": 1}])
async def test_glob_wrong_pages_are_errors(engine, values):
    reply = await engine.call("glob", filePattern="*", **values)

    assert reply.status == "error"


async def test_glob_shows_odd_names(engine, root):
    (root / "a\nb.txt").write_text("")
    (root / "ünï.txt").write_text("")

    reply = await engine.call("glob", filePattern="*.txt")

    assert len(reply.result["files"]) == 2


@pytest.fixture
def found(root, tree):
    """Paths that glob finds by its canonical arguments."""
    direct = Direct(root)

    async def paths(pattern, **values):
        outcome = await direct(Glob(), pattern=pattern, **values)
        real = os.path.realpath(root)
        assert all(os.path.isabs(path) != values.get("relative", False) for path in outcome.paths)
        return [path if values.get("relative") else os.path.relpath(path, real) for path in outcome.paths]

    yield paths
    direct.close()


@pytest.mark.parametrize(
    ("pattern", "values", "files"),
    [
        pytest.param("*.ts", {"path": "src"}, ["src/app.ts"], id="in-a-folder"),
        pytest.param(
            "**/*.ts", {"path": "src"}, ["src/Upper/x.ts", "src/app.ts", "src/deep/util.ts"], id="below-a-folder"
        ),
        pytest.param("deep/*", {"path": "src"}, ["src/deep/util.js", "src/deep/util.ts"], id="pattern-with-a-folder"),
        pytest.param("*", {"path": "."}, ["package.json"], id="the-workspace"),
        pytest.param("*", {"path": ".github"}, [".github/flow.yml"], id="hidden-folder-by-path"),
        pytest.param("**/*.TS", {}, [], id="case-matters"),
        pytest.param(
            "**/*.TS", {"case_sensitive": False}, ["src/Upper/x.ts", "src/app.ts", "src/deep/util.ts"], id="any-case"
        ),
        pytest.param("SRC/upper/*", {"case_sensitive": False}, ["src/Upper/x.ts"], id="folders-in-any-case"),
        pytest.param(
            "upper/*", {"path": "src", "case_sensitive": False}, ["src/Upper/x.ts"], id="any-case-in-a-folder"
        ),
        pytest.param("**/*.log", {"ignored": True}, ["debug.log"], id="ignored-too"),
        pytest.param("**/index.js", {"ignored": True}, ["node_modules/dep/index.js"], id="ignored-folders-too"),
        pytest.param("*", {"path": "node_modules/dep"}, [], id="ignored-folder"),
        pytest.param(
            "*", {"path": "node_modules/dep", "ignored": True}, ["node_modules/dep/index.js"], id="not-ignored-folder"
        ),
        pytest.param("**/*.js", {"path": "src", "relative": True}, ["deep/util.js"], id="relative-to-the-folder"),
        pytest.param("src/*.ts", {"relative": True}, ["src/app.ts"], id="relative-to-the-workspace"),
    ],
)
async def test_glob_by_its_canonical_arguments(found, pattern, values, files):
    assert await found(pattern, **values) == files


async def test_glob_gives_what_was_changed_last_first(root, found):
    for name, seconds in {"src/app.ts": 10, "src/Upper/x.ts": 30, "src/deep/util.ts": 30, "package.json": 20}.items():
        os.utime(root / name, (seconds, seconds))
    ordered = ["src/Upper/x.ts", "src/deep/util.ts", "package.json", "src/app.ts"]

    assert await found("**/*.{ts,json}", by_time=True) == ordered
    assert await found("**/*.{ts,json}", by_time=True, limit=2, offset=1) == ordered[1:3]


async def test_glob_says_where_it_searched(root):
    (root / "sub").mkdir()
    direct = Direct(root)
    try:
        folders = [(await direct(Glob(), pattern="*", path=path)).folder for path in (None, "sub")]
    finally:
        direct.close()

    assert folders == [os.path.realpath(root), os.path.realpath(root / "sub")]


@pytest.mark.parametrize(("path", "code"), [("nowhere", "not-found"), ("package.json", "not-a-folder")])
async def test_glob_in_what_is_no_folder_is_a_clear_failure(found, path, code):
    with pytest.raises(ToolFailure) as caught:
        await found("*", path=path)

    assert caught.value.code == code


@pytest.mark.parametrize("values", [{"path": ".."}, {"path": "/etc"}, {"path": "src/../.."}])
async def test_glob_does_not_search_outside(found, values):
    with pytest.raises(ToolFailure, match="outside"):
        await found("*", **values)


@pytest.mark.contract("grep.result-lines", "grep.case-insensitive")
async def test_grep_finds_lines_in_any_case_by_path_and_line(engine, tree):
    reply = await engine.call("Grep", pattern="needle")

    assert reply.result == [
        "lib/test_app.js:1: needle",
        "src/app.ts:1: const needle = 1;",
        "src/app.ts:2: const Needle = 2;",
        "src/deep/util.ts:1: needle {}",
    ]


@pytest.mark.contract("grep.case-sensitive")
async def test_grep_can_tell_cases_apart(engine, tree):
    reply = await engine.call("Grep", pattern="Needle", caseSensitive=True)

    assert reply.result == ["src/app.ts:2: const Needle = 2;"]


@pytest.mark.contract("grep.path", "grep.glob")
@pytest.mark.parametrize(
    ("values", "files"),
    [
        pytest.param({"path": "src"}, ["src/app.ts", "src/app.ts", "src/deep/util.ts"], id="folder"),
        pytest.param({"path": "src/app.ts"}, ["src/app.ts", "src/app.ts"], id="file"),
        pytest.param({"glob": "**/*.js"}, ["lib/test_app.js"], id="glob"),
        pytest.param({"glob": "*.js"}, ["lib/test_app.js"], id="glob-of-a-name"),
        pytest.param({"glob": "**/*.log"}, [], id="glob-does-not-bring-back-ignored"),
    ],
)
async def test_grep_can_be_narrowed(engine, tree, values, files):
    reply = await engine.call("Grep", pattern="needle", **values)

    found = [line.split(":")[0] for line in reply.result if not line.startswith(("No results", "If you"))]
    assert found == files


@pytest.mark.contract("grep.path-excludes-glob")
async def test_grep_takes_path_or_glob_not_both(engine, tree):
    reply = await engine.call("Grep", pattern="x", path="src", glob="*.ts")

    assert reply.status == "error"
    assert reply.error.message.startswith("path: ")


@pytest.mark.contract("grep.no-results")
async def test_grep_without_results_is_no_error(engine, tree):
    reply = await engine.call("Grep", pattern="nothing of the kind")

    assert reply.as_dict() == {
        "status": "done",
        "result": [
            "No results found.",
            "If you meant to search for a literal string, run Grep again with literal:true.",
        ],
    }


@pytest.mark.contract("grep.literal", "grep.rust-regex")
async def test_grep_braces_are_literal_or_escaped(engine, tree):
    literal = await engine.call("Grep", pattern="needle {}", literal=True)
    escaped = await engine.call("Grep", pattern=r"needle \{\}")
    wrong = await engine.call("Grep", pattern="needle {")

    assert literal.result == escaped.result == ["src/deep/util.ts:1: needle {}"]
    assert wrong.status in ("done", "error")


async def test_grep_explains_a_wrong_pattern(engine, tree):
    reply = await engine.call("Grep", pattern="(unclosed")

    assert reply.status == "error"
    assert "literal:true" in reply.error.message


@pytest.mark.contract("grep.matches-per-file")
async def test_grep_gives_10_lines_of_one_file(engine, root):
    (root / "a.txt").write_text("x\n" * 50)

    reply = await engine.call("Grep", pattern="x")

    assert reply.result == [f"a.txt:{number}: x" for number in range(1, 11)]


@pytest.mark.contract("grep.total-results", "truncate.grep")
async def test_grep_gives_100_lines_in_all_always_the_same_ones(engine, root):
    for number in range(30):
        (root / f"{number:02d}.txt").write_text("x\n" * 8)

    reply = await engine.call("Grep", pattern="x")

    assert reply.result == [f"{n:02d}.txt:{line}: x" for n in range(13) for line in range(1, 9)][:100]
    assert "100 of 240" in reply.notes[0]


@pytest.mark.contract("grep.line-length")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        pytest.param("x" * 200, "x" * 200, id="at-the-limit"),
        pytest.param("x" * 201, "x" * 200 + "...", id="cut"),
        pytest.param("ü" * 300, "ü" * 200 + "...", id="characters-not-bytes"),
        pytest.param("x" + "y" * 5_000_000, "x" + "y" * 199 + "...", id="huge"),
    ],
)
async def test_grep_cuts_lines_after_200_characters(engine, root, line, shown):
    (root / "a.txt").write_text(line + "\n")

    reply = await engine.call("Grep", pattern="[xü]")

    assert reply.result == [f"a.txt:1: {shown}"]


async def test_grep_never_shows_a_secret_file(engine, tree):
    everywhere = await engine.call("Grep", pattern="secret")
    named = await engine.call("Grep", pattern="secret", path=".env")
    by_glob = await engine.call("Grep", pattern="secret", glob=".env*")

    assert everywhere.result[0] == by_glob.result[0] == "No results found."
    assert named.error.error_code == "reading-secret-file"


async def test_grep_shows_templates_of_secret_files(engine, tree):
    reply = await engine.call("Grep", pattern="needle", glob=".env*")

    assert reply.result == [".env.example:1: needle="]


async def test_grep_of_a_missing_path_is_a_clear_error(engine, tree):
    reply = await engine.call("Grep", pattern="x", path="nowhere")

    assert reply.error.message.startswith("ENOENT: no such file or directory")


async def test_grep_of_a_pipe_does_not_hang(engine, root):
    os.mkfifo(root / "pipe")

    reply = await engine.call("Grep", pattern="x", path="pipe")

    assert reply.status == "error"


async def test_patterns_that_look_like_options_are_patterns(engine, root):
    (root / "a.txt").write_text("--files\n")

    reply = await engine.call("Grep", pattern="--files")

    assert reply.result == ["a.txt:1: --files"]


async def test_ignore_files_count_inside_a_repository_too(engine, tree):
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)

    reply = await engine.call("glob", filePattern="**/*.js")

    assert relative(tree, reply) == ["lib/test_app.js", "src/deep/util.js"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        pytest.param("**/*.py", ["a.py", "sub/b.py", "sub/we ird.py"], id="one-end"),
        pytest.param("**/*.{py,ts}", ["a.py", "sub/b.py", "sub/c.ts", "sub/we ird.py"], id="two-ends"),
        pytest.param("**/*y", ["a.py", "py", "sub/b.py", "sub/we ird.py"], id="the-end-of-a-word"),
        pytest.param("**/.hid*.py", [".hid.py"], id="a-dot-that-is-written"),
    ],
)
async def test_a_pattern_that_is_only_an_end_finds_what_it_says_and_nothing_hidden(engine, root, pattern, names):
    (root / ".gitignore").write_text("ignored/\n*.tmp.py\n")
    for name in ("a.py", "A.PY", "py", "x.pyc", ".hid.py", ".dir/d.py", "ignored/e.py", "f.tmp.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
    for name in ("sub/b.py", "sub/c.ts", "sub/we ird.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")

    reply = await engine.call("glob", filePattern=pattern)

    assert [os.path.relpath(path, os.path.realpath(root)) for path in reply.result["files"]] == names
