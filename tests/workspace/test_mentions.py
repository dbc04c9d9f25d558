"""Mentions in prose and globs in front matter: what counts, and that no text can make it slow or fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.frontmatter import MOST_CHARS
from ferrule.files.guidance import PatternFinder, condition, mentions, parts


def shortest(text: str) -> list[str]:
    """Each mention without what closes its sentence."""
    return [words[-1] for words in mentions(text)]


@each_row(
    ("text", "found"),
    [
        pytest.param("@a.md", ["a.md"], id="alone"),
        pytest.param("see @a.md.", ["a.md"], id="end-of-sentence"),
        pytest.param("(see @a.md)", ["a.md"], id="brackets"),
        pytest.param("[style](@doc/a.md)", ["doc/a.md"], id="link"),
        pytest.param("**@a.md**, *@b.md*!", ["a.md", "b.md"], id="emphasis"),
        pytest.param("\"@a.md\", '@b.md'", ["a.md", "b.md"], id="quotes"),
        pytest.param("@a.md,@b.md;@c.md", ["a.md", "b.md", "c.md"], id="list"),
        pytest.param("| @a.md|@b.md |", ["a.md", "b.md"], id="table"),
        pytest.param("- @a.md\n1. @b.md\n> @c.md", ["a.md", "b.md", "c.md"], id="items"),
        pytest.param("@~/a.md @/b/c.md @../d.md", ["~/a.md", "/b/c.md", "../d.md"], id="kinds-of-paths"),
        pytest.param("@doc/*.md @{a,b}.md @app/(x)/y.md", ["doc/*.md", "{a,b}.md", "app/(x)/y.md"], id="patterns"),
        pytest.param("@node_modules/@types/a.md", ["node_modules/@types/a.md"], id="at-in-a-path"),
        pytest.param("@a.md @a.md", ["a.md"], id="once"),
        pytest.param("@a.md\r\n@b.md\r\n", ["a.md", "b.md"], id="crlf"),
        pytest.param("me@a.md x.y@a.md a_@b.c a-@b.c", [], id="addresses"),
        pytest.param("https://x.org/@user", [], id="url"),
        pytest.param("@", [], id="nothing"),
        pytest.param("@ a.md", [], id="blank"),
        pytest.param("`@a.md`", [], id="span"),
        pytest.param("``@a.md ` @b.md`` @c.md", ["c.md"], id="long-span"),
        pytest.param("`x\n@a.md` @b.md", ["b.md"], id="span-over-lines"),
        pytest.param("a ` b @a.md", ["a.md"], id="lone-backtick"),
        pytest.param("a ` b\n\n@a.md ` c", ["a.md"], id="a-span-ends-with-its-paragraph"),
        pytest.param(r"\`@a.md\`", [], id="escaped-backtick-is-no-start-of-a-word"),
        pytest.param(r"\` @a.md `x`", ["a.md"], id="escaped-backtick"),
        pytest.param("```\n@a.md\n```\n@b.md", ["b.md"], id="fence"),
        pytest.param("~~~ md\n@a.md\n```\n~~~\n@b.md", ["b.md"], id="tilde-fence"),
        pytest.param("````\n```\n@a.md\n````\n@b.md", ["b.md"], id="longer-fence"),
        pytest.param("- x\n  ```sh\n  @a.md\n  ```\n- @b.md", ["b.md"], id="fence-in-a-list"),
        pytest.param("> ```\n> @a.md\n> ```\n@b.md", ["b.md"], id="fence-in-a-quotation"),
        pytest.param("```\n@a.md", [], id="open-fence"),
        pytest.param("``` not `a` fence\n@a.md", ["a.md"], id="no-fence"),
        pytest.param("text\n\n    @a.md\n\n    @b.md\n\n@c.md", ["c.md"], id="indented"),
        pytest.param("text\n\n\t@a.md", [], id="indented-by-a-tab"),
        pytest.param("text\n    @a.md", ["a.md"], id="continued"),
        pytest.param("- item\n\n    @a.md", ["a.md"], id="paragraph-of-an-item"),
        pytest.param("- item\n    - @a.md", ["a.md"], id="nested-item"),
        pytest.param("@" + "x" * 600, [], id="too-long"),
    ],
)
def test_what_is_a_mention(text, found):
    assert shortest(text) == found


def test_the_whole_word_comes_before_the_trimmed_ones():
    assert mentions("@a(b).") == [("a(b).", "a(b)", "a(b")]


@given(st.text("@`~a.b/* \n\t\\>-{},", max_size=300))
def test_no_text_makes_it_fail_and_every_mention_stands_in_the_text(text):
    for words in mentions(text):
        assert all(f"@{word}" in text for word in words)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("@" * 32_768, id="signs"),
        pytest.param("@{" * 16_384, id="open-braces"),
        pytest.param("`" * 32_768, id="backticks"),
        pytest.param(" ".join("`" * (n % 200 + 1) for n in range(400)), id="spans-that-never-close"),
        pytest.param("- " * 16_384, id="items"),
        pytest.param("> " * 16_384 + "```", id="quotations"),
        pytest.param("@a." + "." * 32_000, id="dots"),
        pytest.param("---\n" * 8_000, id="front-matters"),
        pytest.param("---\n" + "globs: [" * 4_000, id="open-lists"),
        pytest.param("\n" * 32_768, id="lines"),
    ],
)
def test_no_text_of_the_largest_size_takes_long(text):
    """What grows with the square of the text would not end here within the life of the test."""
    many = text * 20

    assert all(word in many for words in mentions(many) for word in words)
    assert many.endswith(parts(many)[1])


@each_row(
    ("text", "globs", "body"),
    [
        pytest.param("---\nglobs:\n  - '*.ts'\n  - src/**\n---\nbody\n", ("*.ts", "src/**"), "body\n", id="list"),
        pytest.param("---\nglobs: ['*.ts', b]\n---\nbody", ("*.ts", "b"), "body", id="flow-list"),
        pytest.param("---\nglobs: '*.ts'\n---\nbody", ("*.ts",), "body", id="text"),
        pytest.param("---\nglobs: 'a.ts, *.{b,c}'\n---\nbody", ("a.ts", "*.{b,c}"), "body", id="commas"),
        pytest.param("---\r\nglobs: a\r\n---\r\nbody", ("a",), "body", id="crlf"),
        pytest.param("---\nglobs: a\n...\nbody", ("a",), "body", id="dots"),
        pytest.param("---\nglobs: a\n---", ("a",), "", id="no-body"),
        pytest.param("---\nglobs: 2024-99-99\n---\n", ("2024-99-99",), "", id="never-taken-for-a-date"),
        pytest.param("---\nglobs: [1, true, null, [x], a]\n---\n", ("1", "true", "a"), "", id="odd-members"),
        pytest.param("---\nglobs: a\nglobs: b\n---\n", ("a",), "", id="the-first-counts"),
        pytest.param("---\n? [a]\n: b\nglobs: c\n---\n", ("c",), "", id="odd-keys"),
        pytest.param("---\nx: !!python/object:os.system y\nglobs: a\n---\n", ("a",), "", id="tags-mean-nothing"),
        pytest.param("text\n---\nglobs: a\n---\n", (), "text\n---\nglobs: a\n---\n", id="not-at-the-beginning"),
        pytest.param("---\nglobs: a\n", (), "---\nglobs: a\n", id="not-closed"),
        pytest.param("--- x\n---\n", (), "--- x\n---\n", id="not-a-fence"),
        pytest.param("---\n# only\n---\nbody", (), "body", id="comment"),
    ],
)
def test_what_a_front_matter_says(text, globs, body):
    assert parts(text) == (globs, body)


@given(st.text(max_size=200))
def test_no_front_matter_makes_it_fail(text):
    globs, body = parts(f"---\n{text}\n---\nbody")

    assert all(isinstance(glob, str) for glob in globs)
    assert body.endswith("body")


def test_a_front_matter_of_the_largest_size_is_read():
    header = "globs: a\nx: " + "y" * (MOST_CHARS - 14) + "\n"

    assert parts(f"---\n{header}---\n") == (("a",), "")


def test_globs_that_nobody_can_understand_make_no_condition():
    assert condition(["{" * 40 + "a"], "/ws/a.md") is None


def test_the_root_of_everything_is_a_root_too():
    matches = condition(["src/*.ts"], "/a.md")

    assert matches is not None
    assert matches("/src/a.ts", "/")


def test_a_walk_does_not_enter_linked_or_hidden_folders_or_leave_its_reach(tmp_path):
    for name in ("a/b.md", "a/.hidden/c.md", "elsewhere/d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "elsewhere")
    top = str(tmp_path / "a")

    assert PatternFinder(100).files("**/*.md", top, [top]) == [f"{top}/b.md"]
    assert PatternFinder(100).files(".hidden/*.md", top, [top]) == [f"{top}/.hidden/c.md"]
    assert PatternFinder(100).files("../elsewhere/*.md", top, [top]) == []
    assert PatternFinder(0).files("**/*.md", top, [top]) == []
