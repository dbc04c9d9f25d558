"""Guidance files: at most one in a folder, outermost first, each told once; and the files that they mention."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ferrule.files import guidance as subject
from ferrule.files.guard import Guard
from ferrule.files.guidance import FILE_BYTES, MOST_BYTES, MOST_FILES, NAMES, Guidance, Guide, guidance_in
from ferrule.files.jail import Jail


@pytest.fixture
def home(tmp_path):
    folder = Path(os.path.realpath(tmp_path)) / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def jail(home):
    (home / "code" / "ws").mkdir(parents=True)
    opened = Jail(str(home / "code" / "ws"))
    yield opened
    opened.close()


@pytest.fixture
def ws(jail, home):
    return home / "code" / "ws"


@pytest.fixture
def guide(jail, home):
    """Guidance of a session that begins now."""
    return lambda **options: Guidance(jail, Guard((), jail), **{"home": str(home), "config": "", **options})


def put(folder: Path, name: str = "AGENTS.md", text: str | bytes = "Be kind.") -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


def names(guides: tuple[Guide, ...], ws: Path) -> list[str]:
    return [os.path.relpath(guide.path, ws) for guide in guides]


def rule(*globs: str, text: str = "rule") -> str:
    lines = "".join(f"  - '{glob}'\n" for glob in globs)
    return f"---\nglobs:\n{lines}---\n{text}"


@pytest.mark.parametrize("first", range(len(NAMES)))
def test_the_first_name_that_is_there_counts(tmp_path, first):
    for name in NAMES[first:]:
        put(tmp_path, name)

    assert guidance_in(str(tmp_path)) == str(tmp_path / NAMES[first])


def test_a_folder_without_guidance_or_without_existence_has_none(tmp_path):
    (tmp_path / "README.md").write_text("hello")
    (tmp_path / "AGENTS.md").mkdir()

    assert guidance_in(str(tmp_path)) is None
    assert guidance_in(str(tmp_path / "nowhere")) is None


def test_a_folder_of_that_name_does_not_hide_the_file_after_it(tmp_path):
    (tmp_path / "AGENTS.md").mkdir()
    put(tmp_path, "CLAUDE.md")

    assert guidance_in(str(tmp_path)) == str(tmp_path / "CLAUDE.md")


@pytest.mark.contract("create.guidance-discovery")
def test_guidance_on_the_way_is_told_outermost_first_and_once(guide, ws):
    outer, inner = put(ws / "a"), put(ws / "a" / "b" / "c", "CLAUDE.md")
    beside = put(ws / "a" / "d")
    guidance = guide()

    assert guidance.discover(str(ws / "a" / "b" / "c" / "file.py")) == (outer, inner)
    assert guidance.discover(str(ws / "a" / "b" / "c" / "other.py")) == ()
    assert guidance.discover(str(ws / "a" / "d" / "file.py")) == (beside,)


def test_the_workspaces_own_guidance_is_known_from_the_start(guide, ws):
    put(ws)

    assert guide().discover(str(ws / "file.py")) == ()


def test_the_file_itself_is_no_news(guide, ws):
    written = put(ws / "a")

    assert guide().discover(written) == ()


def test_outside_of_the_workspace_nothing_is_looked_for(guide, tmp_path):
    put(tmp_path / "elsewhere" / "a")

    assert guide().discover(str(tmp_path / "elsewhere" / "a" / "file.py")) == ()


def test_a_link_that_leads_out_of_the_workspace_is_no_guidance(guide, ws, tmp_path):
    (tmp_path / "secret").write_text("hunter2")
    (ws / "a").mkdir()
    (ws / "a" / "AGENTS.md").symlink_to(tmp_path / "secret")

    assert guide().discover(str(ws / "a" / "file.py")) == ()


def test_a_link_within_the_workspace_is_guidance(guide, ws):
    put(ws, "RULES.md")
    (ws / "a").mkdir()
    (ws / "a" / "AGENTS.md").symlink_to("../RULES.md")

    assert guide().discover(str(ws / "a" / "file.py")) == (str(ws / "a" / "AGENTS.md"),)


def test_an_added_folder_is_looked_through_from_its_own_root(guide, jail, home):
    put(home / "code")
    guidance = guide()
    guidance.start()
    outer, inner = put(home / "code" / "extra"), put(home / "code" / "extra" / "a")
    jail.add(str(home / "code" / "extra"))

    assert guidance.discover(str(home / "code" / "extra" / "a" / "file.py")) == (outer, inner)


def test_what_holds_from_the_start_is_told_outermost_first(guide, ws, home):
    put(home / ".config" / "amp", text="amp")
    put(home / ".config", text="user")
    put(home, text="home")
    put(home / "code", "CLAUDE.md", text="code")
    put(ws, "AGENT.md", text="ws")
    put(ws / "sub", text="later")
    put(home.parent, text="above home")

    assert guide().start() == (
        Guide(str(home / ".config/amp/AGENTS.md"), "amp", "user"),
        Guide(str(home / ".config/AGENTS.md"), "user", "user"),
        Guide(str(home / "AGENTS.md"), "home", "parent"),
        Guide(str(home / "code/CLAUDE.md"), "code", "parent"),
        Guide(str(ws / "AGENT.md"), "ws", "project"),
    )


def test_the_start_is_the_same_when_it_is_asked_for_again_and_is_not_told_later(guide, ws, home):
    put(home)
    put(ws)
    guidance = guide()

    assert guidance.start() == guidance.start()
    assert guidance.guides_for(str(ws / "a.py")) == ()


def test_another_configuration_folder_can_be_chosen(guide, jail, home, tmp_path, monkeypatch):
    chosen = put(tmp_path / "elsewhere" / "amp")
    put(home / ".config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))

    assert [one.path for one in Guidance(jail, Guard(), home=str(home)).start()] == [os.path.realpath(chosen)]
    assert [one.path for one in guide(config=str(tmp_path / "elsewhere")).start()] == [os.path.realpath(chosen)]


@pytest.mark.parametrize("other", ["elsewhere", "code/ws", "code/ws/inner", "code/w"])
def test_above_a_workspace_that_is_not_below_the_home_folder_nothing_is_looked_for(guide, ws, home, other):
    put(home / "code")
    own = put(ws)

    assert [one.path for one in guide(home=str(home / other)).start()] == [own]


@pytest.mark.parametrize("home_folder", ["", "relative"])
def test_without_a_home_folder_there_is_only_the_workspace(guide, ws, home_folder):
    own = put(ws, text="@~/x @~ @~root/x")

    assert [one.path for one in guide(home=home_folder).start()] == [own]


def test_the_text_comes_along(guide, ws):
    file = put(ws / "a", text=b"\xef\xbb\xbfBe kind.\r\n\xff")

    assert guide().guides_for(str(ws / "a" / "x.py")) == (Guide(file, "Be kind.\r\n\ufffd", "project"),)


def test_a_guidance_file_that_the_session_writes_is_found(guide, ws):
    guidance = guide()
    assert guidance.discover(str(ws / "a" / "x.py")) == ()
    written = put(ws / "a")

    assert guidance.discover(str(ws / "a" / "y.py")) == ()
    assert guidance.discover(written) == ()
    assert guidance.discover(str(ws / "a" / "x.py")) == (written,)
    assert guidance.discover(written) == ()
    assert guidance.discover(str(ws / "a" / "z.py")) == ()


def test_a_folder_can_be_looked_at_again(guide, ws):
    guidance = guide()
    guidance.discover(str(ws / "a" / "b" / "x.py"))
    written = put(ws / "a")
    guidance.forget(str(ws / "a"))

    assert guidance.discover(str(ws / "a" / "b" / "x.py")) == (written,)


def test_a_path_is_settled_when_nothing_can_be_told_about_it(guide, ws):
    guidance, path = guide(), str(ws / "a" / "b" / "x.py")
    before = guidance.is_settled(path)
    guidance.guides_for(path)

    assert (before, guidance.is_settled(path)) == (False, True)
    assert not guidance.is_settled(str(ws / "a" / "b" / "AGENTS.md"))
    assert not guidance.is_settled(str(ws / "a" / "b" / "y.ts"))
    guidance.forget(str(ws / "a"))
    assert not guidance.is_settled(path)


def test_a_folder_that_was_looked_at_costs_no_further_look(guide, ws, monkeypatch):
    put(ws, text="@rule.md")
    put(ws, "rule.md", rule("*.ts"))
    guidance = guide()
    guidance.guides_for(str(ws / "a" / "b" / "x.py"))
    for name in ("listdir", "scandir", "open", "stat", "lstat", "readlink"):
        monkeypatch.delattr(os, name)

    assert guidance.guides_for(str(ws / "a" / "b" / "y.py")) == ()
    assert guidance.guides_for(str(ws / "a" / "z.py")) == ()


def test_many_threads_are_told_everything_once(guide, ws):
    expected = {put(ws / f"d{number}") for number in range(20)}
    guidance = guide()
    together = threading.Barrier(8, timeout=30)

    def visit(_):
        together.wait()
        return [path for number in range(20) for path in guidance.discover(str(ws / f"d{number}" / "x"))]

    with ThreadPoolExecutor(8) as pool:
        told = [path for paths in pool.map(visit, range(8), timeout=30) for path in paths]

    assert sorted(told) == sorted(expected)


@pytest.mark.parametrize(
    ("mention", "files"),
    [
        pytest.param("@a.md", ["a.md"], id="beside"),
        pytest.param("@./doc/b.md", ["doc/b.md"], id="below"),
        pytest.param("@doc/../a.md", ["a.md"], id="through-a-folder"),
        pytest.param("@{ws}/a.md", ["a.md"], id="absolute"),
        pytest.param("@~/code/ws/a.md", ["a.md"], id="home"),
        pytest.param("@doc/*.md", ["doc/b.md", "doc/c.md"], id="pattern"),
        pytest.param("@**/c.md", ["doc/c.md", "doc/deep/c.md"], id="deep-pattern"),
        pytest.param("@doc/{b,c}.md.", ["doc/b.md", "doc/c.md"], id="braces"),
        pytest.param("@{ws}/doc/?.md", ["doc/b.md", "doc/c.md"], id="absolute-pattern"),
        pytest.param("@~/code/*/a.md", [], id="pattern-that-begins-outside"),
        pytest.param("@~/code/ws/*.md", ["[x].md", "a.md"], id="home-pattern"),
        pytest.param("@doc/*.md @doc/b.md @a.md", ["doc/b.md", "doc/c.md", "a.md"], id="each-once"),
        pytest.param("@[x].md", ["[x].md"], id="a-file-before-a-pattern"),
        pytest.param("@AGENTS.md", [], id="itself"),
        pytest.param("@doc", [], id="folder"),
        pytest.param("@missing.md and @property", [], id="no-file"),
        pytest.param("me@a.md", [], id="address"),
        pytest.param("`@a.md`", [], id="code"),
        pytest.param("@/etc/passwd @../../.ssh/id_rsa @~/private.txt @../other.md", [], id="outside"),
        pytest.param("@.env @secrets.json @*.env @.e*", [], id="secret"),
        pytest.param("@out.md @out/x.md @out/*.md @hidden.md", [], id="links-out-and-to-secrets"),
        pytest.param("@in.md", ["a.md"], id="link-within"),
        pytest.param("@fifo @binary.md", [], id="not-a-text"),
    ],
)
def test_what_a_file_of_the_workspace_may_mention(guide, ws, home, mention, files):
    for name in ("a.md", "doc/b.md", "doc/c.md", "doc/deep/c.md", "[x].md", ".env", "secrets.json", "x.env"):
        put(ws, name, "text")
    put(ws, "binary.md", b"a\0b")
    put(home, "private.txt")
    put(home / "code", "other.md")
    put(home / ".ssh", "id_rsa")
    os.mkfifo(ws / "fifo")
    (ws / "out.md").symlink_to(home / "private.txt")
    (ws / "out").symlink_to(home / "code")
    put(home / "code", "x.md")
    (ws / "hidden.md").symlink_to(".env")
    (ws / "in.md").symlink_to("a.md")
    text = mention.replace("{ws}", str(ws))
    put(ws / "sub", text="@../AGENTS.md" if "AGENTS" in text else "")
    own = put(ws, text=text)

    found = guide().start()

    assert found[0] == Guide(own, text, "project")
    assert found[1:] == tuple(Guide(str(ws / name), "text", "mentioned") for name in files)


def test_what_the_users_own_file_may_mention(guide, ws, home, tmp_path):
    outside = put(tmp_path, "outside.md")
    notes, beside = put(home / "notes", "a.md", "@b.md"), put(home / ".config", "style.md")
    nested = put(home / "notes", "b.md", "end")
    put(home / ".ssh", "id_rsa")
    put(home, ".netrc")
    text = f"@~/notes/a.md @style.md @{outside} @~/.ssh/id_rsa @~/.netrc @~/.ssh/* @/etc/passwd"
    own = put(home / ".config", text=text)

    assert [one.path for one in guide().start()] == [own, notes, nested, beside]


def test_the_users_own_file_may_be_a_link_to_anywhere(guide, home, tmp_path):
    put(tmp_path / "store", "agents.md", "from the store")
    (home / ".config").mkdir()
    (home / ".config" / "AGENTS.md").symlink_to(tmp_path / "store" / "agents.md")

    assert [one.text for one in guide().start()] == ["from the store"]


def test_a_folder_above_the_workspace_reaches_no_further_than_itself(guide, ws, home):
    put(home, "private.md")
    mine, deep = put(home / "code", "style.md"), put(ws, "a.md")
    own = put(home / "code", text="@../private.md @~/private.md @style.md @ws/a.md")

    assert [one.path for one in guide().start()] == [own, mine, deep]


def test_a_guidance_file_above_that_leads_elsewhere_is_none(guide, home):
    put(home, "private.md")
    (home / "code" / "AGENTS.md").symlink_to("../private.md")

    assert guide().start() == ()


@pytest.mark.parametrize("kind", ["mention", "link"])
def test_the_workspace_gains_no_reach_through_the_users_file(guide, ws, home, kind):
    put(home, "private.md")
    rules = put(ws, "rules.md", "@~/private.md @../../private.md @../rules/x.md")
    if kind == "mention":
        put(home / ".config", text="@~/code/ws/rules.md")
    else:
        (home / ".config").mkdir()
        (home / ".config" / "AGENTS.md").symlink_to(rules)

    assert str(home / "private.md") not in [one.path for one in guide().start()]


def test_mentions_of_what_is_found_later_come_right_after_it(guide, ws):
    outer = put(ws / "a", text="see @x.md")
    mentioned = put(ws / "a", "x.md")
    inner = put(ws / "a" / "b")

    assert guide().discover(str(ws / "a" / "b" / "f.py")) == (outer, mentioned, inner)


def test_a_mentioned_guidance_file_is_not_told_again_below_its_folder(guide, ws):
    put(ws, text="@sub/AGENTS.md")
    put(ws / "sub")
    guidance = guide()

    assert names(guidance.start(), ws) == ["AGENTS.md", "sub/AGENTS.md"]
    assert guidance.discover(str(ws / "sub" / "a.py")) == ()


@pytest.mark.parametrize(
    ("globs", "path", "told"),
    [
        pytest.param(["*.ts"], "a.ts", True, id="name"),
        pytest.param(["*.ts"], "x/y/a.ts", True, id="any-depth"),
        pytest.param(["*.ts"], "a.tsx", False, id="other-name"),
        pytest.param(["src/*.ts"], "x/src/a.ts", True, id="folder-at-any-depth"),
        pytest.param(["src/*.ts"], "x/src/y/a.ts", False, id="one-level"),
        pytest.param(["**/*.ts"], "x/a.ts", True, id="explicit"),
        pytest.param(["*.{ts,tsx}"], "a.tsx", True, id="braces"),
        pytest.param(["*.py", "*.ts"], "a.ts", True, id="any-of-them"),
        pytest.param(["./*.ts"], "doc/a.ts", True, id="beside"),
        pytest.param(["./*.ts"], "a.ts", False, id="not-beside"),
        pytest.param(["../src/**/*.ts"], "src/x/a.ts", True, id="from-the-folder-above"),
        pytest.param(["../src/**/*.ts"], "x/src/a.ts", False, id="only-from-there"),
        pytest.param(["../../*.ts"], "a.ts", False, id="out-of-the-workspace"),
        pytest.param([".github/**"], ".github/workflows/a.yml", True, id="hidden"),
        pytest.param(["*.yml"], ".github/workflows/a.yml", True, id="in-a-hidden-folder"),
    ],
)
def test_a_file_with_globs_waits_for_a_path_that_matches(guide, ws, globs, path, told):
    put(ws, text="@doc/rule.md")
    file = put(ws, "doc/rule.md", rule(*globs))
    guidance = guide()

    assert names(guidance.start(), ws) == ["AGENTS.md"]
    assert guidance.guides_for(str(ws / "other.txt")) == ()
    assert guidance.guides_for(str(ws / path)) == ((Guide(file, "rule", "mentioned"),) if told else ())
    assert guidance.guides_for(str(ws / path)) == ()


def test_a_path_that_was_touched_before_the_mention_was_known_counts(guide, ws):
    sub = put(ws / "sub", text="@rule.md")
    file = put(ws / "sub", "rule.md", rule("*.ts"))
    guidance = guide()
    guidance.guides_for(str(ws / "a.ts"))

    assert guidance.discover(str(ws / "sub" / "a.py")) == (sub, file)


def test_what_a_waiting_file_mentions_waits_with_it(guide, ws):
    put(ws, text="@one.md")
    one = put(ws, "one.md", rule("*.ts", text="@two.md @three.md"))
    two = put(ws, "two.md")
    put(ws, "three.md", rule("*.py"))
    guidance = guide()

    assert guidance.discover(str(ws / "a.py")) == ()
    assert guidance.discover(str(ws / "a.ts")) == (one, two, str(ws / "three.md"))


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("globs: []", id="empty-list"),
        pytest.param("globs:", id="nothing"),
        pytest.param("description: x", id="other-key"),
        pytest.param("", id="empty"),
        pytest.param("globs: {a: b}", id="mapping"),
    ],
)
def test_a_front_matter_without_globs_makes_no_condition_and_is_left_out(guide, ws, header):
    put(ws, text="@rule.md")
    put(ws, "rule.md", f"---\n{header}\n---\nrule")

    assert [one.text for one in guide().start()] == ["@rule.md", "rule"]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(BOMB + "globs: ['*.ts']", id="alias-bomb"),
        pytest.param("globs: &g ['*.ts']", id="anchor"),
        pytest.param("globs: *.ts", id="alias-by-accident"),
        pytest.param("globs: " + "[" * 5000 + "]" * 5000, id="deep"),
        pytest.param("globs: ['*.ts']\nx: " + "y" * 16_384, id="too-long"),
        pytest.param("globs: [", id="broken"),
        pytest.param("just text", id="no-mapping"),
    ],
)
def test_a_front_matter_that_is_broken_or_a_trap_is_text(guide, ws, header):
    put(ws, text="@rule.md")
    text = f"---\n{header}\n---\nrule"
    put(ws, "rule.md", text)

    assert [one.text for one in guide().start()] == ["@rule.md", text]


def test_files_that_mention_each_other_are_told_once(guide, ws):
    put(ws, text="@a.md @AGENTS.md")
    put(ws, "a.md", "@b.md @a.md")
    put(ws, "b.md", "@a.md @AGENTS.md")
    (ws / "again.md").symlink_to("a.md")

    assert names(guide().start(), ws) == ["AGENTS.md", "a.md", "b.md"]


def test_mentions_lead_five_files_far(guide, ws):
    put(ws, text="@1.md")
    for number in range(1, 9):
        put(ws, f"{number}.md", f"@{number + 1}.md")

    assert names(guide().start(), ws) == ["AGENTS.md", "1.md", "2.md", "3.md", "4.md", "5.md"]


def test_a_huge_file_is_cut_at_a_character_and_says_so(guide, ws):
    put(ws, text="x" + "é" * FILE_BYTES + "@a.md")
    put(ws, "a.md")

    (found,) = guide().start()

    kept, _, said = found.text.partition("\n\n")
    assert kept == "x" + "é" * ((FILE_BYTES - 1) // 2)
    assert said == f"[Cut after 32,768 of {1 + 2 * FILE_BYTES + 5:,} bytes; read {ws}/AGENTS.md for the rest.]"


def test_a_file_of_exactly_the_limit_is_whole(guide, ws):
    put(ws, text="x" * FILE_BYTES)

    assert guide().start()[0].text == "x" * FILE_BYTES


def test_a_thousand_mentions_bring_in_a_hundred_files_and_say_so(guide, ws):
    for number in range(1000):
        put(ws, f"f{number:03}.md", "x")
    put(ws, text=" ".join(f"@f{number:03}.md" for number in range(1000)))

    found = guide().start()

    assert len(found) == MOST_FILES
    assert [one.text for one in found[1:]] == ["x"] * (MOST_FILES - 2) + [
        "x\n\n[There is more guidance than is included here.]"
    ]


def test_the_bytes_of_all_files_together_are_limited(guide, ws):
    for number in range(50):
        put(ws, f"f{number:02}.md", "x" * FILE_BYTES)
    put(ws, text="@*.md")

    assert sum(len(one.text) for one in guide().start()) <= MOST_BYTES + FILE_BYTES


def test_files_that_wait_are_told_in_portions(guide, ws):
    for number in range(99):
        put(ws, f"r{number:02}.md", rule("*.ts", text="x" * (FILE_BYTES - 40)))
    put(ws, text="@r*.md")
    guidance = guide()

    told = [len(guidance.guides_for(str(ws / f"{number}.ts"))) for number in range(20)]

    assert sum(told) == 99
    assert max(told) <= MOST_BYTES // (FILE_BYTES - 40) + 1


def test_a_thousand_patterns_over_a_large_tree_end_soon(guide, ws, monkeypatch):
    looked, scan = [], os.scandir

    def counted(folder):
        looked.append(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", counted)
    monkeypatch.setattr(subject, "_MOST_ENTRIES", 300)
    for number in range(50):
        put(ws, f"d{number}/x.txt")
    put(ws, text=" ".join(f"@**/no{number}*.md" for number in range(900)))

    assert names(guide().start(), ws) == ["AGENTS.md"]
    assert len(looked) < 3000


def test_deep_folders_full_of_guidance_are_told_in_portions(guide, ws):
    folder, files = ws, []
    for number in range(20):
        folder /= f"d{number}"
        files.append(put(folder, text="x" * FILE_BYTES))
    guidance = guide()

    told = [guidance.discover(str(folder / f"{number}.py")) for number in range(4)]

    assert [path for paths in told for path in paths] == files
    assert max(map(len, told)) <= MOST_BYTES // FILE_BYTES


def test_guidance_that_is_a_secret_by_its_target_is_none(guide, ws):
    put(ws, ".env", "TOKEN=hunter2")
    (ws / "a").mkdir()
    (ws / "a" / "AGENTS.md").symlink_to("../.env")

    assert guide().discover(str(ws / "a" / "x.py")) == ()


def test_a_workspace_that_is_gone_has_no_guidance(guide, ws, home):
    put(ws)
    guidance = guide()
    ws.rename(home / "code" / "moved")
    put(ws)

    assert guidance.start() == ()
