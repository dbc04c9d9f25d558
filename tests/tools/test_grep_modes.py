"""grep by its canonical arguments: modes, context, pages, types, and that no secret file is searched or named."""

import itertools
import os
import re
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.direct import Direct

from ferrule.core.content import Hit, Hits, Matching
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.files.search import find_rg
from ferrule.tools.search.grep import Grep

TREE: dict[str, str | bytes] = {
    "a.py": "needle\nx\nNeedle needle\n",
    "b.ts": "y\nneedle\n",
    "src/c.py": "needle\n",
    "src/deep/d.tsx": "needle {\n  1\n}\nneedle {}\n",
    "build/out.py": "needle\n",
    "app.log": "needle\n",
    "image.bin": b"needle\0\n",
    ".hidden.py": "needle\n",
    ".gitignore": "build/\n*.log\n",
}
SECRETS: dict[str, str | bytes] = {
    ".env": "needle=secret\n",
    "src/id_rsa": "needle secret\n",
    "src/server.pem": "needle secret\n",
    ".ssh/config": "needle secret\n",
    "credentials.json": "needle secret\n",
    "secrets.yaml ": "needle secret\n",
}


def plant(root, tree: dict[str, str | bytes]) -> None:
    for name, content in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def root(tmp_path):
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


@pytest.fixture
def direct(root):
    made = Direct(root)
    yield made
    made.close()


@pytest.fixture
def grep(direct):
    return lambda pattern="needle", **values: direct(Grep(), pattern=pattern, **values)


@pytest.mark.parametrize(
    ("values", "files"),
    [
        pytest.param({}, ["a.py", "b.ts", "src/c.py", "src/deep/d.tsx"], id="all"),
        pytest.param({"kind": "py"}, ["a.py", "src/c.py"], id="type"),
        pytest.param({"kind": "ts"}, ["b.ts", "src/deep/d.tsx"], id="type-of-two-endings"),
        pytest.param({"kind": "py", "glob": "src/**"}, ["src/c.py"], id="type-and-glob"),
        pytest.param({"kind": "py", "glob": "*.ts"}, [], id="type-and-glob-that-exclude-each-other"),
        pytest.param({"path": "src"}, ["src/c.py", "src/deep/d.tsx"], id="path"),
        pytest.param({"path": "src", "glob": "*.py"}, ["src/c.py"], id="path-and-glob"),
        pytest.param({"path": "src", "glob": "deep/*"}, ["src/deep/d.tsx"], id="glob-from-the-path"),
        pytest.param({"path": "src/c.py", "glob": "*.py"}, ["src/c.py"], id="file-and-glob"),
        pytest.param({"path": "src/c.py", "glob": "*.ts"}, [], id="file-that-the-glob-does-not-fit"),
        pytest.param({"exclude": "*.py"}, ["b.ts", "src/deep/d.tsx"], id="exclude"),
        pytest.param({"exclude": "src"}, ["a.py", "b.ts"], id="exclude-a-folder"),
        pytest.param({"exclude": "src/*.py"}, ["a.py", "b.ts", "src/deep/d.tsx"], id="exclude-in-a-folder"),
        pytest.param({"exclude": "*.{py,tsx}"}, ["b.ts"], id="exclude-either"),
        pytest.param({"exclude": "/c.py"}, ["a.py", "b.ts", "src/c.py", "src/deep/d.tsx"], id="exclude-at-the-root"),
        pytest.param({"exclude": "./src/c.py"}, ["a.py", "b.ts", "src/deep/d.tsx"], id="exclude-an-untidy-path"),
        pytest.param({"exclude": "!*.py"}, ["b.ts", "src/deep/d.tsx"], id="exclude-said-twice"),
        pytest.param({"exclude": "a{"}, ["a.py", "b.ts", "src/c.py", "src/deep/d.tsx"], id="exclude-no-such-name"),
        pytest.param({"exclude": "[ab].*"}, ["src/c.py", "src/deep/d.tsx"], id="exclude-by-class"),
        pytest.param({"exclude": "deep/", "kind": "ts"}, ["b.ts"], id="exclude-and-type"),
        pytest.param({"glob": "*.py", "exclude": "src/**"}, ["a.py"], id="glob-and-exclude"),
        pytest.param(
            {"glob": "", "exclude": "", "kind": ""}, ["a.py", "b.ts", "src/c.py", "src/deep/d.tsx"], id="empty"
        ),
        pytest.param(
            {"ignored": True},
            ["a.py", "app.log", "b.ts", "build/out.py", "src/c.py", "src/deep/d.tsx"],
            id="ignored-too",
        ),
        pytest.param({"glob": "*.log", "ignored": True}, ["app.log"], id="glob-of-ignored"),
        pytest.param({"glob": ".*"}, [".hidden.py"], id="hidden-by-glob"),
        pytest.param({"case_sensitive": True, "pattern": "Needle"}, ["a.py"], id="case"),
        pytest.param({"literal": True, "pattern": "{}"}, ["src/deep/d.tsx"], id="literal"),
    ],
)
async def test_every_mode_searches_the_same_files(root, grep, values, files):
    plant(root, TREE)
    plant(root, SECRETS)
    lines = await grep(mode="lines", **values)
    names = await grep(mode="files", **values)
    counts = await grep(mode="count", **values)

    assert list(dict.fromkeys(hit.path for hit in lines.lines)) == files
    assert names == Matching(tuple((name, 0) for name in files), len(files))
    assert [name for name, _ in counts.files] == files
    assert counts.lines == lines.total == len(lines.lines)


@pytest.mark.parametrize("mode", ["lines", "files", "count"])
@pytest.mark.parametrize("values", [{}, {"ignored": True}, {"glob": "*"}, {"glob": ".*"}, {"kind": "all"}])
@pytest.mark.parametrize("more", [{}, {"multiline": True}, {"before": 2, "after": 2}])
@pytest.mark.parametrize("allow", [(), ("build/nothing.pem",)])
async def test_no_mode_reads_or_names_a_secret_file(root, mode, values, more, allow):
    plant(root, SECRETS)
    direct = Direct(root, guarded_allow=allow)
    try:
        found = await direct(Grep(), pattern="needle", mode=mode, per_file=0, limit=0, **values, **more)
        assert found == (Hits((), 0) if mode == "lines" else Matching((), 0))
        notes = list(direct.notes)
        await direct(Grep(), pattern="nowhere", mode=mode, per_file=0, limit=0, **values, **more)
        assert re.fullmatch(r"\d+ secret files? w(as|ere) not searched\.", notes[0])
        assert direct.notes == notes
    finally:
        direct.close()


@pytest.mark.parametrize("mode", ["lines", "files", "count"])
@pytest.mark.parametrize("path", [".ssh", ".docker", ".kube", ".aws"])
async def test_a_search_that_begins_among_secrets_finds_none(root, direct, mode, path):
    plant(root, dict.fromkeys([".ssh/x", ".docker/config.json", ".kube/config", ".aws/deep/x"], "needle\n"))

    found = await direct(Grep(), pattern="needle", mode=mode, path=path)
    assert found == (Hits((), 0) if mode == "lines" else Matching((), 0))


@pytest.mark.parametrize("mode", ["lines", "files", "count"])
@pytest.mark.parametrize(
    "name", [".env.", ".env ", ".ENV", "id_rsa\n", ".e\u200cnv", "a.pem:stream", "x.KEY", ".env\t"]
)
async def test_names_that_a_lax_disk_takes_for_secret_ones_are_secret_too(root, direct, mode, name):
    plant(root, {name: "needle\n", f"sub/{name}": "needle\n"})
    found = await direct(Grep(), pattern="needle", mode=mode, glob=".*" if name.startswith(".") else None)

    assert found == (Hits((), 0) if mode == "lines" else Matching((), 0))


async def test_what_the_user_has_opened_is_found_and_the_rest_is_not(root):
    plant(root, SECRETS)
    direct = Direct(root, guarded_allow=("*.pem",))
    try:
        assert (await direct(Grep(), pattern="secret")).lines == (Hit("src/server.pem", 1, "needle secret"),)
    finally:
        direct.close()


async def test_context_lines_are_marked_and_joined(root, grep):
    plant(root, {"f": "1\n2\nneedle\n4\nneedle\n6\n7\n8\n9\nneedle\n", "g": "none\n"})
    found = await grep(before=1, after=2)

    assert [(hit.line, hit.text, hit.context) for hit in found.lines] == [
        (2, "2", True), (3, "needle", False), (4, "4", True), (5, "needle", False), (6, "6", True), (7, "7", True),
        (9, "9", True), (10, "needle", False),
    ]  # fmt: skip
    assert found.total == 3


async def test_lines_that_look_like_rg_output_are_only_lines(root, grep):
    plant(root, {"f": "7:needle\n8-needle\n--\nneedle\n3:x\n3-x\n"})

    assert (await grep(after=2)).lines == (
        Hit("f", 1, "7:needle"), Hit("f", 2, "8-needle"), Hit("f", 3, "--", True), Hit("f", 4, "needle"),
        Hit("f", 5, "3:x", True), Hit("f", 6, "3-x", True),
    )  # fmt: skip


async def test_every_line_of_a_match_over_lines_is_a_hit(root, grep):
    plant(root, {"f": "a {\n b\n}\nc\na {\n}\n", "g": "a {\r\n}\r\n"})
    found = await grep(r"a \{.*?\}", multiline=True, after=1)
    counted = await grep(r"a \{.*?\}", multiline=True, mode="count")

    assert [(hit.path, hit.line, hit.text) for hit in found.lines if not hit.context] == [
        ("f", 1, "a {"), ("f", 2, " b"), ("f", 3, "}"), ("f", 5, "a {"), ("f", 6, "}"), ("g", 1, "a {"), ("g", 2, "}"),
    ]  # fmt: skip
    assert [(hit.line, hit.text) for hit in found.lines if hit.context] == [(4, "c")]
    assert counted == Matching((("f", 5), ("g", 2)), 2, 7)
    assert (await grep(r"a \{.*?\}", mode="files")).files == ()


_OVER_LINES = ["-U", "--multiline-dotall"]


@pytest.mark.parametrize(
    ("pattern", "more"),
    [
        *itertools.product(["needle", "n.", "^", "x*"], [[], ["-C1"], ["-B2"], ["-A1", "-i"], _OVER_LINES]),
        (r"e\n.", _OVER_LINES),
    ],
)
async def test_matching_parts_are_those_that_ripgrep_prints(root, grep, pattern, more):
    plant(root, {"f": "needle needle\nx\nNeedle 3:n\n\n5-needle\n", "g": "none\nnext\n"})
    argv = [str(find_rg()), "--no-config", "--sort=path", "-Hno", "--no-context-separator", *more, "-e", pattern, "."]
    printed = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False).stdout.splitlines()
    expected = [re.fullmatch(r"\./(\w+)([:-])(\d+)([:-])(.*)", line) for line in printed]

    found = await grep(
        pattern,
        only_matching=True,
        per_file=0,
        case_sensitive="-i" not in more,
        multiline="-U" in more,
        before=1 if "-C1" in more else 2 if "-B2" in more else 0,
        after=1 if {"-C1", "-A1"} & {*more} else 0,
    )

    assert [(hit.path, hit.line, hit.text, hit.context) for hit in found.lines] == [
        (one[1], int(one[3]), one[5], one[4] == "-") for one in expected if one
    ]
    assert found.total == sum(not hit.context for hit in found.lines)


async def test_matching_parts_are_what_is_counted_and_limited(root, direct, grep):
    plant(root, {"f": "needle needle\nbeside\nneedle needle\n", "g": "needle\n"})

    page = await grep(only_matching=True, limit=2, offset=1, after=1)
    told = [*direct.notes]
    capped = await grep(only_matching=True, per_file=3)
    told += direct.notes

    assert page.lines == (Hit("f", 1, "needle"), Hit("f", 2, "beside", True), Hit("f", 3, "needle"))
    assert (page.total, capped.total) == (5, 4)
    assert told == [
        "Showing 2 to 3 of 5 matches found.",
        "1 files have more than 3 matches; only those are shown of each.",
    ]
    assert await grep(only_matching=True, mode="count") == Matching((("f", 4), ("g", 1)), 2, 5, parts=True)
    assert await grep(only_matching=True, mode="files") == Matching((("f", 0), ("g", 0)), 2)


async def test_a_file_is_cut_after_so_many_lines_and_that_is_said_once(root, direct, grep):
    plant(root, {"f": "needle\n" * 30, "g": "needle\n"})
    found = await grep(per_file=5, after=3)

    assert [(hit.line, hit.context) for hit in found.lines if hit.path == "f"] == [
        *((number, False) for number in range(1, 6)), (6, True), (7, True), (8, True),
    ]  # fmt: skip
    assert found.total == 6
    assert direct.notes == ["1 files have more than 5 matching lines; only those are shown of each."]


async def test_a_page_says_how_much_of_it_there_is_and_the_next_begins_behind_it(root, direct, grep):
    plant(root, {f"{number:03d}": "needle\n" * 40 for number in range(150)})
    visited: list[tuple[str, int]] = []
    while len(visited) < 6000:
        page = await grep(per_file=0, limit=0, offset=len(visited))
        visited += [(hit.path, hit.line) for hit in page.lines]
        assert direct.notes.pop().startswith(f"Showing {len(page.lines)} of 6000") or visited[0] != page.lines[0]
    files = await grep(mode="files", limit=0)

    assert visited == [(f"{number:03d}", line) for number in range(150) for line in range(1, 41)]
    assert (files.total, len(files.files)) == (150, 150)
    assert direct.notes == []


@pytest.mark.parametrize("mode", ["lines", "files", "count"])
async def test_an_offset_past_the_end_is_an_empty_page(root, direct, grep, mode):
    plant(root, {"f": "needle\n"})
    found = await grep(mode=mode, offset=5)

    assert found == (Hits((), 1) if mode == "lines" else Matching((), 1, int(mode == "count")))
    assert "past the end" in direct.notes[0]


async def test_files_changed_last_come_first(root, grep):
    plant(root, dict.fromkeys(["a", "b", "c", "d"], "needle\n"))
    for name, seconds in {"a": 10, "b": 30, "c": 30, "d": 20}.items():
        os.utime(root / name, (seconds, seconds))

    assert [name for name, _ in (await grep(mode="files", by_time=True)).files] == ["b", "c", "d", "a"]
    assert [hit.path for hit in (await grep(by_time=True)).lines] == ["b", "c", "d", "a"]
    assert [hit.path for hit in (await grep(by_time=True, limit=2, offset=1, after=1)).lines] == ["c", "d"]
    assert [name for name, _ in (await grep(mode="count", by_time=True, limit=2, offset=1)).files] == ["c", "d"]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        pytest.param({"path": "src"}, "src/c.py", id="folder"),
        pytest.param({"path": "src/c.py"}, "src/c.py", id="file"),
        pytest.param({"glob": "c.py"}, "src/c.py", id="whole"),
    ],
)
async def test_paths_are_shown_from_the_workspace(root, grep, values, shown):
    plant(root, TREE)

    assert (await grep(**values)).lines[0].path == shown
    assert (await grep(mode="files", **values)).files[0][0] == shown


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        pytest.param("markdwon", "markdown", id="mistyped"),
        pytest.param("tsx", "Did you mean ts or", id="an-ending"),
        pytest.param("*.rs", "rust", id="a-glob"),
        pytest.param("no such thing", "glob", id="nonsense"),
    ],
)
async def test_an_unknown_type_is_answered_with_near_ones(root, grep, kind, says):
    plant(root, {"f": "needle\n"})
    for mode in ("lines", "files", "count"):
        with pytest.raises(BadArguments) as caught:
            await grep(kind=kind, mode=mode)

        assert caught.value.message.startswith("kind: ")
        assert says in caught.value.message


@pytest.mark.parametrize("mode", ["lines", "files", "count"])
@pytest.mark.parametrize("multiline", [False, True])
async def test_a_bad_pattern_is_explained_in_every_mode(root, grep, mode, multiline):
    plant(root, {"f": "needle\n"})
    with pytest.raises(ToolFailure, match="unclosed group") as caught:
        await grep("(needle", mode=mode, multiline=multiline)

    assert caught.value.code == "bad-pattern"


@pytest.mark.parametrize(
    ("values", "names"),
    [
        pytest.param({"pattern": ""}, ["pattern"], id="empty"),
        pytest.param({"before": -1, "after": -1}, ["before", "after"], id="context"),
        pytest.param({"limit": -1, "offset": -1, "per_file": -1}, ["per_file", "limit", "offset"], id="numbers"),
        pytest.param({"line_chars": 0}, ["line_chars"], id="no-characters"),
        pytest.param({"glob": "{a,b}" * 40}, ["glob"], id="glob"),
        pytest.param({"exclude": "{a,b}" * 40}, ["exclude"], id="exclude"),
    ],
)
async def test_wrong_arguments_are_named_one_a_line(grep, values, names):
    with pytest.raises(BadArguments) as caught:
        await grep(**values)

    assert [line.partition(":")[0] for line in caught.value.message.splitlines()] == names


async def test_numbers_beyond_all_measure_do_no_harm(root, grep):
    plant(root, {"f": "1\nneedle\n3\n"})
    huge = 1 << 80

    assert len((await grep(before=huge, after=huge, per_file=huge, limit=huge, line_chars=huge)).lines) == 3


@pytest.mark.parametrize(
    ("line", "line_chars", "shown"),
    [
        pytest.param("𝄞" * 200, 200, "𝄞" * 200, id="wide-characters-at-the-limit"),
        pytest.param("𝄞" * 201, 200, "𝄞" * 200 + "...", id="wide-characters-cut"),
        pytest.param("x" * 5000, 5000, "x" * 5000, id="longer-lines"),
        pytest.param("x" * 5001, 5000, "x" * 5000 + "...", id="longer-lines-cut"),
        pytest.param("x" * 20, 3, "xxx...", id="shorter-lines"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"after": 1}, {"multiline": True}])
async def test_lines_are_cut_where_the_caller_wants(root, grep, line, line_chars, shown, more):
    plant(root, {"f": f"{line}\r\n"})

    assert (await grep("[𝄞x]", line_chars=line_chars, **more)).lines == (Hit("f", 1, shown),)


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are always UTF-8")
async def test_odd_names_come_back_in_every_mode(root, grep):
    for name in (b"new\nline", b"a b", b"\xff.txt", b"x (binary file y)", b"12:34"):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(b"needle\nz\n")
    names = ["12:34", "a b", "new\nline", "x (binary file y)", "\ufffd.txt"]

    assert [hit.path for hit in (await grep()).lines] == names
    assert [(hit.path, hit.line) for hit in (await grep(after=1)).lines] == [
        (n, line) for n in names for line in (1, 2)
    ]
    assert (await grep(mode="files")).files == tuple((name, 0) for name in names)
    assert (await grep(mode="count")).files == tuple((name, 1) for name in names)
    assert (await grep(mode="count", multiline=True)).files == tuple((name, 1) for name in names)


LINES = st.lists(st.sampled_from(["needle", "a needle b", "hay", "", "3:x", "7-needle"]), max_size=9)
TREES = st.dictionaries(st.sampled_from(["a", "b c", "d/e", "d/f", "g\nh"]), LINES, min_size=1)


@given(
    TREES,
    st.sampled_from(["lines", "files", "count"]),
    *[st.integers(min_value=0, max_value=3)] * 3,
    st.integers(min_value=0, max_value=8),
    st.integers(min_value=0, max_value=6),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_all_modes_agree_with_a_plain_model(tmp_path_factory, tree, mode, before, after, per_file, limit, offset):
    root = tmp_path_factory.mktemp("w") / "w"
    root.mkdir()
    plant(root, {name: "".join(f"{line}\n" for line in lines) for name, lines in tree.items()})
    direct = Direct(root)
    try:
        found = await direct(
            Grep(),
            pattern="needle",
            mode=mode,
            before=before,
            after=after,
            per_file=per_file,
            limit=limit,
            offset=offset,
        )
    finally:
        direct.close()
    page = slice(offset, offset + limit if limit else None)
    numbers = {
        name: [number for number, line in enumerate(lines, 1) if re.search("needle", line)]
        for name, lines in sorted(tree.items())
    }
    if mode != "lines":
        files = [(name, len(some) * (mode == "count")) for name, some in numbers.items() if some]
        assert found == Matching(tuple(files[page]), len(files), sum(number for _, number in files))
        return
    hits = [(name, number) for name, some in numbers.items() for number in some[: per_file or None]]
    shown = set(hits[page])
    lines = [
        Hit(name, number, text, (name, number) not in shown)
        for name in sorted(tree)
        for number, text in enumerate(tree[name], 1)
        if any((name, number + step) in shown for step in range(-after, before + 1))
    ]
    assert found == Hits(tuple(lines), len(hits))


@pytest.mark.parametrize("mode", ["lines", "files", "count"])
async def test_source_code_with_a_secret_name_is_searched(root, direct, mode):
    plant(
        root,
        {"pkg/credentials.py": "only here\n", "credentials/store.py": "only here\n", "credentials.json": "only here\n"},
    )

    found = await direct(Grep(), pattern="only here", mode=mode)
    paths = [hit.path for hit in found.lines] if mode == "lines" else [path for path, _ in found.files]
    assert paths == ["credentials/store.py", "pkg/credentials.py"]
    assert direct.notes == ["1 secret file was not searched."]
    below = await direct(Grep(), pattern="only here", mode="files", path="credentials")
    assert [path for path, _ in below.files] == ["credentials/store.py"]
