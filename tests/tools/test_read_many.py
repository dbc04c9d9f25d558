"""read_many: which files are read, in what order, how much of them, and which never are."""

import base64
import os

import pytest
from tests.direct import Direct

from ferrule.core.content import FileText, ManyFiles, Picture
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.files.ledger import Ledger
from ferrule.tools.search.find import ReadMany

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TREE: dict[str, str | bytes] = {
    "README.md": "# read me\n",
    "src/a.py": "a = 1\n",
    "src/b.py": "b = 2",
    "src/deep/c.py": "c = 3\n",
    "src/deep/.hidden.py": "h = 4\n",
    "src/deep/dist/made.py": "m = 5\n",
    "app/[id]/page.tsx": "page\n",
    "node_modules/m/index.js": "m\n",
    "package-lock.json": "{}\n",
    "pixel.png": PIXEL,
    "cut.png": PIXEL[:40],
    "paper.pdf": b"%PDF-1.7\n\0",
    "data.txt": b"\0\1\2\3",
    "empty.txt": "",
    "build/out.txt": "out\n",
    "app.log": "log\n",
    ".env": "SECRET=1\n",
    "src/key.pem": "SECRET\n",
    ".env.example": "SECRET=\n",
    ".gitignore": "build/\n",
}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "w"
    for name, content in TREE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "innocent").symlink_to(".env")
    (folder / "alias.md").symlink_to("README.md")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.fixture
def direct(root):
    made = Direct(root)
    yield made
    made.close()


@pytest.fixture
def read(root, direct):
    async def files(*include, **values):
        many = await direct(ReadMany(), include=include, **values)
        assert isinstance(many, ManyFiles)
        real = os.path.realpath(root)
        given = [os.path.relpath(one.path, real) for one in many.files]
        return given, {os.path.relpath(path, real): why for path, why in many.skipped}

    return files


@pytest.mark.parametrize(
    ("include", "values", "given"),
    [
        pytest.param(["src/b.py", "README.md"], {}, ["src/b.py", "README.md"], id="names-in-their-order"),
        pytest.param(["src/*.py"], {}, ["src/a.py", "src/b.py"], id="glob"),
        pytest.param(["**/*.py"], {}, ["src/a.py", "src/b.py", "src/deep/c.py"], id="deep-glob"),
        pytest.param(["src"], {}, ["src/a.py", "src/b.py", "src/deep/c.py"], id="folder"),
        pytest.param(["src/"], {"recursive": False}, ["src/a.py", "src/b.py"], id="only-its-own-files"),
        pytest.param(["src/b.py", "src/*.py"], {}, ["src/b.py", "src/a.py"], id="each-once"),
        pytest.param(["alias.md", "README.md"], {}, ["README.md"], id="a-link-and-its-file-once"),
        pytest.param(["app/[id]/page.tsx"], {}, ["app/[id]/page.tsx"], id="a-name-that-looks-like-a-pattern"),
        pytest.param(["src/{a,b}.py"], {}, ["src/a.py", "src/b.py"], id="braces"),
        pytest.param(["src"], {"exclude": ("a.py",)}, ["src/b.py", "src/deep/c.py"], id="exclude-a-name"),
        pytest.param(["src"], {"exclude": ("src/deep",)}, ["src/a.py", "src/b.py"], id="exclude-a-folder"),
        pytest.param(["src"], {"exclude": ("**/deep/**", "./src/b.*")}, ["src/a.py"], id="exclude-globs"),
        pytest.param(["src/deep"], {"default_excludes": False}, ["src/deep/c.py", "src/deep/dist/made.py"], id="all"),
        pytest.param(["src/deep/dist/*.py"], {}, ["src/deep/dist/made.py"], id="an-unwanted-folder-by-name"),
        pytest.param(["node_modules/m/index.js"], {}, ["node_modules/m/index.js"], id="an-unwanted-file-by-name"),
        pytest.param(["*.json"], {}, [], id="lock-files"),
        pytest.param(["package-lock.json"], {}, ["package-lock.json"], id="a-lock-file-by-name"),
        pytest.param(["**/*.txt"], {}, ["empty.txt"], id="not-ignored"),
        pytest.param(
            ["**/*.txt"],
            {"ignored": True, "default_excludes": False},
            ["build/out.txt", "empty.txt"],
            id="also-ignored",
        ),
        pytest.param(["build/out.txt"], {}, ["build/out.txt"], id="ignored-by-name"),
        pytest.param([".env.*"], {}, [".env.example"], id="templates-of-secrets"),
        pytest.param(["src/deep/.*.py"], {}, ["src/deep/.hidden.py"], id="hidden-by-pattern"),
        pytest.param(["nowhere/**"], {}, [], id="nothing"),
    ],
)
async def test_which_files_are_read(read, include, values, given):
    assert (await read(*include, **values))[0] == given


async def test_texts_come_back_whole(direct, root):
    many = await direct(ReadMany(), include=("src/a.py", "src/b.py", "empty.txt"))
    real = os.path.realpath(root)

    assert many.files == (
        FileText(f"{real}/src/a.py", 1, ("a = 1",), 1, final_newline=True),
        FileText(f"{real}/src/b.py", 1, ("b = 2",), 1, final_newline=False),
        FileText(f"{real}/empty.txt", 1, (), 0, final_newline=False),
    )
    assert direct.notes == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param(".env", "secret", id="secret"),
        pytest.param("src/key.pem", "secret", id="secret-by-ending"),
        pytest.param("innocent", "secret", id="link-to-a-secret"),
        pytest.param("nowhere.txt", "not found", id="missing"),
        pytest.param("nowhere/at/all.txt", "not found", id="missing-folder"),
        pytest.param("pipe", "not an ordinary file", id="pipe"),
        pytest.param("data.txt", "binary", id="binary"),
        pytest.param("paper.pdf", "a PDF; read it by itself", id="pdf"),
        pytest.param("cut.png", "The image is cut off: its end is missing.", id="damaged-image"),
    ],
)
async def test_what_was_named_and_cannot_be_given_is_listed_with_the_reason(read, name, why):
    given, skipped = await read(name, "README.md")

    assert given == ["README.md"]
    assert list(skipped.values()) == [why]


async def test_a_name_that_is_excluded_is_listed(read):
    assert await read("README.md", exclude=("*.md",)) == ([], {"README.md": "excluded"})


@pytest.mark.parametrize("pattern", ["**/*", ".env", ".*", "src/*", "{.env,src/*.pem}", "."])
@pytest.mark.parametrize("values", [{}, {"default_excludes": False, "ignored": True}])
async def test_no_pattern_reads_a_secret_or_names_it(direct, pattern, values):
    many = await direct(ReadMany(), include=(pattern,), **values)

    assert all(b"SECRET=1" not in repr(one).encode() and not one.path.endswith((".env", ".pem")) for one in many.files)
    assert all(not path.endswith((".env", ".pem")) for path, _ in many.skipped) or pattern == ".env"


async def test_a_picture_is_given_when_it_was_named(direct, read, root):
    many = await direct(ReadMany(), include=("pixel.png",))

    assert many.files == (Picture(f"{os.path.realpath(root)}/pixel.png", "image/png", PIXEL),)
    assert await read("pixel*") == ([], {})
    assert await read("pixel*", default_excludes=False) == ([], {"pixel.png": "an image; name it outright to see it"})
    assert await read("pixel.png", picture_bytes=10) == ([], {"pixel.png": "there is no room for another picture"})


async def test_a_file_is_cut_after_so_many_lines_and_bytes(direct, root):
    (root / "long.txt").write_text("x" * 50 + "\n" + "y\n" * 50)
    many = await direct(ReadMany(), include=("long.txt",), usual_lines=3, line_bytes=10)

    assert many.files == (FileText(f"{os.path.realpath(root)}/long.txt", 1, ("x" * 10, "y", "y"), 51),)
    assert [note.partition(": ")[2] for note in direct.notes] == [
        "these are the first 3 lines of 51.",
        "1 line was cut after 10 bytes.",
    ]


async def test_files_for_which_there_is_no_room_are_listed(direct, root, read):
    for name in "abc":
        (root / f"room/{name}").parent.mkdir(exist_ok=True)
        (root / f"room/{name}").write_text("0123456789\n" * 10)
    many = await direct(ReadMany(), include=("room",), most_bytes=150)

    assert [len(one.lines) for one in many.files] == [10, 3]
    assert [why for _, why in many.skipped] == ["the other files have 150 bytes already"]
    assert await read("room", most_files=2) == (["room/a", "room/b"], {})
    assert direct.notes == ["3 files match; only the first 2 were read. Narrow the patterns."]


async def test_what_was_read_whole_is_known_and_a_part_is_not(direct, root):
    (root / "long.txt").write_text("y\n" * 50)
    await direct(ReadMany(), include=("src/a.py", "long.txt"), usual_lines=3)
    ledger, real = direct.services[Ledger], os.path.realpath(root)

    assert (ledger.knows(f"{real}/src/a.py"), ledger.knows(f"{real}/long.txt")) == (True, False)


async def test_a_huge_file_is_read_from_its_beginning_only(direct, root):
    (root / "huge.txt").write_bytes(b"line\n" * 4_000_000)
    many = await direct(ReadMany(), include=("huge.txt",), usual_lines=5)

    assert many.files == (FileText(f"{os.path.realpath(root)}/huge.txt", 1, ("line",) * 5, None),)


@pytest.mark.parametrize(
    ("include", "folders"),
    [
        pytest.param(("src/a.py", "src/b.py"), ["src"], id="files"),
        pytest.param(("src",), ["src"], id="folder"),
        pytest.param(("src/deep/*.py", "README.md"), ["src/deep", "."], id="glob-and-file"),
        pytest.param(("**/*.py",), ["."], id="everywhere"),
    ],
)
async def test_it_declares_the_folders_that_it_reads(direct, root, include, folders):
    await direct(ReadMany(), include=include)

    assert [os.path.relpath(access.key, os.path.realpath(root)) for access in direct.touches] == folders


@pytest.mark.parametrize("include", ["/etc/passwd", "../outside/*", "../x", "/etc/*.conf", "out/x"])
async def test_nothing_outside_is_read(direct, root, include):
    (root / "out").symlink_to("/etc")
    with pytest.raises(ToolFailure):
        await direct(ReadMany(), include=(include,))


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        pytest.param({"include": ()}, ["include"], id="nothing"),
        pytest.param({"include": ("",)}, ["include"], id="empty-name"),
        pytest.param({"include": ("a",), "exclude": ("{a,b}" * 40,)}, ["exclude"], id="glob"),
    ],
)
async def test_wrong_arguments_are_named_one_a_line(direct, values, wrong):
    with pytest.raises(BadArguments) as caught:
        await direct(ReadMany(), **values)

    assert [line.partition(":")[0] for line in caught.value.message.splitlines()] == wrong


async def test_nothing_found_is_no_failure(direct):
    assert await direct(ReadMany(), include=("*.nothing",)) == ManyFiles((), ())
    assert direct.notes == ["No files match."]
