"""ripgrep: which files are seen, which lines come back and in what order, and what is never read."""

import asyncio
import os
import random
import shutil
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.files import search as hits
from ferrule.files.globs import BadGlob
from ferrule.files.search import (
    BadSearchPattern,
    ContentQuery,
    LineMatch,
    LineMatches,
    MatchCollector,
    among,
    files,
    find_rg,
    search,
)

RG = find_rg() or "rg"
PAGING = {"per_file", "most", "offset", "before", "after", "line_bytes"}


def plant(root, tree: dict[str, str | bytes]) -> None:
    for path, content in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())


async def grep(root, pattern: str = "needle", **options) -> LineMatches:
    paging = {"per_file": 10, "most": 100} | {name: options.pop(name) for name in PAGING & options.keys()}
    async with asyncio.timeout(60):
        return await search(RG, str(root), ContentQuery(pattern, **options), **paging)


async def paths(root, **options) -> list[str]:
    return sorted({hit.path for hit in (await grep(root, **options)).lines})


async def listing(root, **options) -> list[str]:
    async with asyncio.timeout(60):
        return sorted(await files(RG, str(root), **{"hidden": False} | options))


@pytest.fixture(params=["repository", "plain-folder"])
def project(request, tmp_path):
    """A project below a home directory whose own `.gitignore` hides everything, as keepers of dot files have it."""
    root = tmp_path / "home" / "project"
    plant(
        root,
        {
            ".gitignore": "build/\n*.log\n",
            ".env": "needle=secret",
            ".github/ci.yml": "needle",
            "app.py": "needle",
            "app.log": "needle",
            "src/.gitignore": "local.py\n",
            "src/a.py": "needle",
            "src/b.ts": "needle",
            "src/local.py": "needle",
            "src/x.log": "needle",
            "src/.hidden.py": "needle",
            "src/deep/c.py": "needle",
            "build/out.py": "needle",
            "build/deep/out.ts": "needle",
            "other/d.py": "needle",
        },
    )
    if request.param == "repository":
        plant(root, {".git/HEAD": "ref: refs/heads/main", ".git/config": "needle"})
        plant(tmp_path / "home", {".gitignore": "*\n"})
    return root


@pytest.fixture
def outer_rules(project):
    """An ignore file above a folder that is in no repository."""
    if not (project / ".git").exists():
        plant(project.parent, {".gitignore": "*\n"})
    return project


async def test_what_is_ignored_is_not_listed(outer_rules):
    assert await listing(outer_rules) == ["app.py", "other/d.py", "src/a.py", "src/b.ts", "src/deep/c.py"]


async def test_hidden_files_are_listed_on_demand_but_never_those_of_git(project):
    hidden = {".env", ".github/ci.yml", ".gitignore", "src/.gitignore", "src/.hidden.py"}

    assert set(await listing(project, hidden=True)) - set(await listing(project)) == hidden


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        pytest.param("src", ["src/a.py", "src/b.ts", "src/deep/c.py"], id="directory"),
        pytest.param("src/deep/", ["src/deep/c.py"], id="deeper"),
        pytest.param("build", [], id="ignored-directory"),
        pytest.param("build/deep", [], id="below-an-ignored-directory"),
        pytest.param("missing", [], id="missing"),
        pytest.param("app.py", [], id="a-file"),
        pytest.param("..", [], id="outside"),
        pytest.param(".github", [], id="hidden"),
    ],
)
async def test_one_directory_is_listed_as_it_is_within_the_whole(project, below, expected):
    assert await listing(project, below=below) == expected


async def test_names_that_are_globs_themselves_are_only_names(tmp_path):
    names = ("[a]", "{b}", "*", "a", "b", "!c", "back\\slash", "{a,b}", "a,b")
    plant(tmp_path, {f"{name}/x": "" for name in names})
    for below in os.listdir(tmp_path):
        assert await listing(tmp_path, below=below) == [f"{below}/x"]


async def test_a_directory_with_many_siblings_is_listed_too(tmp_path):
    plant(tmp_path, {f"d{number}/x": "" for number in range(600)})

    assert await listing(tmp_path, below="d7") == ["d7/x"]


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are always UTF-8")
async def test_names_that_are_not_text_are_listed_as_bytes(tmp_path):
    folder = os.fsencode(tmp_path)
    for name in (b"\xff", b"new\nline"):
        os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, name, b"f\xfe"), "wb") as file:
            file.write(b"needle\nneedle\n")

    assert sorted(map(os.fsencode, await files(RG, str(tmp_path), hidden=False))) == [b"new\nline/f\xfe", b"\xff/f\xfe"]
    assert await files(RG, str(tmp_path), hidden=False, below=os.fsdecode(b"\xff")) == [os.fsdecode(b"\xff/f\xfe")]
    assert [(hit.path, hit.line) for hit in (await grep(tmp_path)).lines] == [
        ("new\nline/f\ufffd", 1),
        ("new\nline/f\ufffd", 2),
        ("\ufffd/f\ufffd", 1),
        ("\ufffd/f\ufffd", 2),
    ]


async def test_what_is_ignored_is_not_searched(outer_rules):
    assert await paths(outer_rules) == ["app.py", "other/d.py", "src/a.py", "src/b.ts", "src/deep/c.py"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        pytest.param("*.py", ["app.py", "other/d.py", "src/a.py", "src/deep/c.py"], id="any-depth"),
        pytest.param("**/*.py", ["app.py", "other/d.py", "src/a.py", "src/deep/c.py"], id="any-depth-spelled-out"),
        pytest.param("/*.py", ["app.py"], id="root-only"),
        pytest.param("src/*.py", ["src/a.py"], id="one-directory"),
        pytest.param("src/**/*.{py,ts}", ["src/a.py", "src/b.ts", "src/deep/c.py"], id="braces"),
        pytest.param("src/**", ["src/a.py", "src/b.ts", "src/deep/c.py"], id="all-below"),
        pytest.param("deep/", ["src/deep/c.py"], id="directory-at-any-depth"),
        pytest.param("[a-c].*", ["src/a.py", "src/b.ts", "src/deep/c.py"], id="class"),
        pytest.param("?.ts", ["src/b.ts"], id="one-character"),
        pytest.param("!*.py", ["src/b.ts"], id="reversed"),
        pytest.param("!src/**", ["app.py", "other/d.py"], id="reversed-directory"),
        pytest.param("*.log", [], id="ignored-files"),
        pytest.param("build/**", [], id="ignored-directory"),
        pytest.param("**/*.rs", [], id="none"),
        pytest.param(".github/*", [".github/ci.yml"], id="hidden-by-name"),
        pytest.param(".*", [".env", "src/.hidden.py"], id="hidden-by-dot"),
    ],
)
async def test_a_glob_narrows_the_search_and_brings_back_nothing_ignored(project, glob, expected):
    assert await paths(project, glob=glob) == expected


async def test_a_glob_of_too_many_alternatives_is_refused(project):
    with pytest.raises(BadGlob):
        await grep(project, glob="{a,b}" * 20)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("src", ["src/a.py", "src/b.ts", "src/deep/c.py"], id="directory"),
        pytest.param("src/a.py", ["src/a.py"], id="file"),
        pytest.param("src/../app.py", ["app.py"], id="untidy"),
        pytest.param(".", ["app.py", "other/d.py", "src/a.py", "src/b.ts", "src/deep/c.py"], id="root"),
        pytest.param("build", ["build/deep/out.ts", "build/out.py"], id="ignored-but-named"),
        pytest.param("app.log", ["app.log"], id="ignored-file-but-named"),
    ],
)
async def test_a_path_is_where_the_search_happens(project, path, expected):
    assert await paths(project, path=path) == expected
    assert await paths(project, path=str(project / path)) == expected


async def test_a_path_elsewhere_is_shown_in_full(tmp_path):
    plant(tmp_path, {"here/a": "needle", "there/b": "needle"})

    assert await paths(tmp_path / "here", path=str(tmp_path / "there")) == [str(tmp_path / "there" / "b")]


async def test_a_path_that_begins_like_an_option_is_a_path(tmp_path):
    plant(tmp_path, {"--files": "needle", "-x/a": "needle"})

    assert await paths(tmp_path) == ["--files", "-x/a"]
    assert await paths(tmp_path, path="-x") == ["-x/a"]
    assert (await grep(tmp_path, "--files")).total == 0


async def test_a_missing_path_and_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        await grep(tmp_path, path="missing")
    with pytest.raises(OSError, match="Not a file or a directory"):
        await grep(tmp_path, path="pipe")
    assert await paths(tmp_path) == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="whole"),
        pytest.param({"path": ".env"}, id="by-name"),
        pytest.param({"path": "keys/id.PEM"}, id="by-name-in-another-case"),
        pytest.param({"path": "vault/deep/plain.txt"}, id="below-a-named-directory"),
        pytest.param({"path": "vault/deep"}, id="directory-below"),
        pytest.param({"path": "innocent"}, id="through-a-link"),
        pytest.param({"path": "drawer/plain.txt"}, id="through-a-linked-directory"),
        pytest.param({"glob": ".env"}, id="by-glob"),
        pytest.param({"glob": "**/*.PEM"}, id="by-wild-glob"),
    ],
)
async def test_what_is_excluded_is_never_found(tmp_path, options):
    plant(tmp_path, {".env": "needle", "a/.ENV": "needle", "keys/id.PEM": "needle", "vault/deep/plain.txt": "needle"})
    (tmp_path / "innocent").symlink_to(".env")
    (tmp_path / "drawer").symlink_to("vault/deep")
    found = await grep(tmp_path, hidden=True, exclude=[".env", "*.pem", "vault/"], **options)

    assert found == LineMatches([], 0)


@pytest.mark.parametrize("path", [None, ".env.example", "a/.env.Example"])
async def test_spared_names_are_found_and_no_others(tmp_path, path):
    secrets = [".env", ".env.local", ".env.exampl", ".env.examples", ".env.sampl\u00e9", "a/.env.e"]
    shared = [".env.example", ".env.sample", "a/.env.Example"]
    plant(tmp_path, dict.fromkeys(secrets + shared, "needle"))
    rules: dict[str, Any] = {"exclude": ["**/.env", "**/.env.*"], "spare": [".env.example", ".env.sample"]}

    assert await paths(tmp_path, path=path, hidden=True, **rules) == (sorted(shared) if path is None else [path])
    assert (await grep(tmp_path, path=".env.local", hidden=True, **rules)).total == 0


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("strace") is None, reason="needs strace")
async def test_what_is_excluded_is_not_even_opened(tmp_path):
    plant(tmp_path, {"w/.env": "needle", "w/a.txt": "needle"})
    wrapper = tmp_path / "rg"
    wrapper.write_text(f'#!/bin/sh\nexec strace -f -e trace=open,openat -o "{tmp_path}/trace" "{RG}" "$@"\n')
    wrapper.chmod(0o755)
    query = ContentQuery("needle", hidden=True, exclude=[".env"])
    await search(str(wrapper), str(tmp_path / "w"), query, per_file=10, most=10)
    traced = (tmp_path / "trace").read_text()

    assert "a.txt" in traced
    assert '.env"' not in traced


@pytest.mark.parametrize(
    ("pattern", "options", "lines"),
    [
        pytest.param("Needle", {}, [2], id="case-matters"),
        pytest.param("NEEDLE", {"ignore_case": True}, [1, 2], id="case-ignored"),
        pytest.param("a.c", {}, [3, 4], id="expression"),
        pytest.param("a.c", {"literal": True}, [3], id="literal"),
        pytest.param("f(", {"literal": True}, [5], id="literal-of-special-characters"),
        pytest.param("-v", {}, [6], id="looks-like-an-option"),
        pytest.param("end$", {}, [7], id="end-of-a-line-with-carriage-return"),
        pytest.param("h\\wllo", {}, [8], id="letters-beyond-ascii"),
    ],
)
async def test_which_lines_match(tmp_path, pattern, options, lines):
    plant(tmp_path, {"f": "needle\nNeedle\na.c\nabc\nf(\n-v\nend\r\nhöllo\n"})

    assert [hit.line for hit in (await grep(tmp_path, pattern, **options)).lines] == lines


async def test_lines_come_without_their_ends_and_as_text(tmp_path):
    plant(tmp_path, {"f": b"needle \xff: x\r\n  needle:1:2\nneedle"})

    assert (await grep(tmp_path)).lines == [
        LineMatch("f", 1, "needle \ufffd: x"),
        LineMatch("f", 2, "  needle:1:2"),
        LineMatch("f", 3, "needle"),
    ]


async def test_a_line_of_two_hundred_characters_is_whole_and_a_huge_one_is_not(tmp_path):
    plant(tmp_path, {"a": "needle" + "𝄞" * 194 + "\n", "b": "needle" + "x" * 5_000_000 + "\n"})
    whole, cut = (await grep(tmp_path)).lines

    assert whole.text == "needle" + "𝄞" * 194
    assert cut.text.startswith("needlexxx")
    assert len(cut.text) < 1000


async def test_binary_files_give_no_lines_and_disturb_no_others(tmp_path):
    late = b"needle\n" + b"x\n" * 200_000 + b"\0\nneedle\n"
    plant(tmp_path, {"a.bin": b"needle\0\n", "b.bin": late, "c.txt": "needle", "d.txt": "needle"})
    found = await grep(tmp_path)

    assert [hit for hit in found.lines if hit.path != "b.bin"] == [
        LineMatch("c.txt", 1, "needle"),
        LineMatch("d.txt", 1, "needle"),
    ]
    assert (await grep(tmp_path, path="a.bin")).lines == []


async def test_the_first_lines_are_the_same_in_every_run(tmp_path):
    plant(tmp_path, {f"{number % 7}/{number}.txt": "needle\n" * 20 for number in range(400)})
    expected = sorted(f"{number % 7}/{number}.txt" for number in range(400))
    runs = [await grep(tmp_path, per_file=3, most=50) for _ in range(5)]

    assert all(run == runs[0] for run in runs)
    assert runs[0].total == 1200
    assert [(hit.path, hit.line) for hit in runs[0].lines] == [(path, n) for path in expected for n in (1, 2, 3)][:50]


@pytest.mark.parametrize(
    ("pattern", "options", "says"),
    [
        pytest.param("foo(", {}, "regex parse error: unclosed group", id="unclosed"),
        pytest.param("(?<=a)b", {}, "look-ahead and look-behind, is not supported", id="look-behind"),
        pytest.param(r"\p{Foo}", {}, "Unicode property not found", id="unknown-property"),
        pytest.param("a{1000}{1000}{1000}", {}, "size limit", id="too-large"),
        pytest.param("a\nb", {"literal": True}, "is not allowed", id="line-break"),
        pytest.param("a\0b", {}, "NUL", id="nul"),
        pytest.param("a\ud800b", {}, "character", id="half-a-character"),
        pytest.param("a" * 3_000_000, {}, "too long", id="too-long"),
    ],
)
async def test_a_bad_pattern_is_explained_in_a_line_or_two(tmp_path, pattern, options, says):
    plant(tmp_path, {"f": "x"})
    with pytest.raises(BadSearchPattern) as caught:
        await grep(tmp_path, pattern, **options)

    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


async def test_files_that_rg_cannot_read_do_not_hide_the_others(tmp_path):
    stand_in = tmp_path / "rg"
    stand_in.write_text("#!/bin/sh\nprintf './b\\0001:needle\\n'\necho 'rg: ./a: cannot be read' >&2\nexit 2\n")
    stand_in.chmod(0o755)
    found = await search(str(stand_in), str(tmp_path), ContentQuery("x"), per_file=1, most=1)

    assert found == LineMatches([LineMatch("b", 1, "needle")], 1)


async def test_a_missing_folder_among_others_does_not_hide_them(tmp_path):
    plant(tmp_path, {"b": "needle"})
    (tmp_path / "a").symlink_to(tmp_path / "missing")

    assert await paths(tmp_path) == ["b"]


async def test_an_rg_that_dies_is_an_error_and_not_an_empty_answer(tmp_path):
    dying = tmp_path / "rg"
    dying.write_text("#!/bin/sh\nkill -9 $$\n")
    dying.chmod(0o755)
    with pytest.raises(OSError, match="exit code 137"):
        await search(str(dying), str(tmp_path), ContentQuery("x"), per_file=1, most=1)


def test_rg_is_found_on_path_but_not_in_the_workspace(tmp_path, monkeypatch):
    (tmp_path / "rg").write_text("#!/bin/sh\n")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_rg() == str(tmp_path / "rg")
    assert find_rg(outside=[str(tmp_path)]) not in {None, str(tmp_path / "rg")}


def test_rg_is_found_without_path(monkeypatch):
    monkeypatch.setenv("PATH", "")
    beside = find_rg()
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    elsewhere = find_rg()

    assert beside is not None
    assert elsewhere is not None
    assert os.path.samefile(beside, elsewhere)


NAMES = st.lists(st.text("ab/\n", min_size=1, max_size=4), unique=True, max_size=8)


@given(NAMES, st.data())
def test_the_first_hits_are_found_in_any_order_and_however_the_output_is_cut(names, data):
    found = [(name, data.draw(st.integers(min_value=1, max_value=6))) for name in names]
    limit = data.draw(st.integers(min_value=0, max_value=10))
    random.Random(data.draw(st.integers())).shuffle(found)
    output = b"".join(f"./{name}\0{line}:t{line}\r\n".encode() for name, count in found for line in range(1, count + 1))
    gathered = MatchCollector(limit, 5, lambda path: not path.startswith("b"))
    while output:
        size = data.draw(st.integers(min_value=1, max_value=40))
        gathered.feed(output[:size])
        output = output[size:]
        if data.draw(st.booleans()):
            gathered._trim()
    kept = [(name, count) for name, count in found if not name.startswith("b")]
    wanted = sorted((name, line) for name, count in kept for line in range(1, min(count, 5) + 1))

    lines = [LineMatch(name, line, f"t{line}") for name, line in wanted[:limit]]
    assert gathered.hits() == LineMatches(lines, len(wanted), sum(count > 5 for _, count in kept))


@given(
    st.dictionaries(st.text("ab", min_size=1, max_size=2), st.lists(st.booleans(), max_size=9), max_size=5),
    *[st.integers(min_value=0, max_value=3)] * 3,
    st.integers(min_value=0, max_value=9),
    st.data(),
)
def test_context_is_kept_for_the_hits_that_are_shown(tree, before, after, per_file, most, data):
    output = b""
    for name in data.draw(st.permutations(sorted(tree))):
        hits = [number for number, hit in enumerate(tree[name]) if hit]
        for number, hit in enumerate(tree[name]):
            if any(-after <= other - number <= before for other in hits):
                output += f"./{name}\0{number}{':' if hit else '-'}t{number}\n".encode()
    gathered = MatchCollector(most, per_file, lambda _: True, before=before, after=after)
    while output:
        size = data.draw(st.integers(min_value=1, max_value=40))
        gathered.feed(output[:size])
        output = output[size:]
        if data.draw(st.booleans()):
            gathered._trim()
    offset = data.draw(st.integers(min_value=0, max_value=4))
    every = [
        (name, number)
        for name in sorted(tree)
        for number in [number for number, hit in enumerate(tree[name]) if hit][: per_file or None]
    ]
    shown = set(every[offset:most])
    expected = [
        LineMatch(name, number, f"t{number}", (name, number) not in shown)
        for name in sorted(tree)
        for number in range(len(tree[name]))
        if any((name, number + step) in shown for step in range(-after, before + 1))
    ]

    assert gathered.hits(offset) == LineMatches(
        expected, len(every), sum(sum(hits) > per_file > 0 for hits in tree.values())
    )


@pytest.mark.parametrize("context", [0, 2])
def test_the_memory_for_hits_is_bounded_and_what_is_kept_is_a_beginning(monkeypatch, context):
    monkeypatch.setattr(hits, "_KEPT_BYTES", 50_000)
    gathered = MatchCollector(100_000, 0, lambda _: True, after=context)
    for name in ("c", "a", "d", "b"):
        for number in range(1, 2000):
            gathered.feed(f"./{name}\0{number}:{'x' * 50}\n".encode())
            assert gathered._held_bytes < 4 * 50_000
    found = gathered.hits()

    assert found.total == 4 * 1999
    assert 300 < len(found.lines) < 1000
    assert [(hit.path, hit.line) for hit in found.lines] == [("a", number + 1) for number in range(len(found.lines))]


def test_hits_that_come_too_late_are_not_kept():
    gathered = MatchCollector(10, 10, lambda _: True)
    for number in range(50_000):
        gathered.feed(f"./{number:06d}\0{1}:{'x' * 100}\n".encode())

    assert sum(map(len, gathered._kept.values())) < 1100
    assert (gathered.total, gathered.hits().lines[-1].path) == (50_000, "000009")


@pytest.fixture
def counted_rg(tmp_path):
    """A ripgrep that leaves a line for each time it was started."""
    program, starts = tmp_path / "rg", tmp_path / "starts"
    program.write_text(f'#!/bin/sh\necho >> {starts}\nexec {RG} "$@"\n')
    program.chmod(0o755)
    return str(program), lambda: len(starts.read_text().splitlines())


async def test_listings_of_one_moment_are_shared_and_later_ones_are_new(tmp_path, counted_rg):
    rg, starts = counted_rg
    root = tmp_path / "project"
    plant(root, {".env": "", "a.py": ""})
    queries = [
        ContentQuery("a", hidden=True, ignore_case=True),
        ContentQuery("b", hidden=True, literal=True),
        ContentQuery("c", hidden=True),
    ]

    async with asyncio.timeout(60):
        found = await asyncio.gather(*(among(rg, str(root), query, [".env*"]) for query in queries))
        plant(root, {".env.local": ""})
        later = await among(rg, str(root), queries[0], [".env*"])

    assert [*found, sorted(later)] == [[".env"]] * 3 + [[".env", ".env.local"]]
    assert starts() == 2


async def test_a_listing_goes_on_for_those_who_still_wait_for_it(tmp_path, counted_rg):
    rg, starts = counted_rg
    root = tmp_path / "project"
    plant(root, {".env": ""})
    first, second = (
        asyncio.create_task(among(rg, str(root), ContentQuery("a", hidden=True), [".env"])) for _ in range(2)
    )
    await asyncio.sleep(0)
    first.cancel()

    async with asyncio.timeout(60):
        assert await second == [".env"]
    assert first.cancelled()
    assert starts() == 1


async def test_a_folder_that_was_swapped_for_a_link_leads_nowhere(tmp_path):
    plant(tmp_path / "outside/src", {"secret.txt": "needle\n"})
    plant(tmp_path / "work/src", {"a.txt": "needle\n"})
    root = tmp_path / "work/src"

    assert (await grep(root)).total == 1
    (tmp_path / "work").rename(tmp_path / "aside")
    (tmp_path / "work").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"symbolic link|directory"):
        await grep(root)
    with pytest.raises(OSError, match=r"symbolic link|directory"):
        await files(RG, str(root), hidden=False)
