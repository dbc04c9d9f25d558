"""Secret and protected names: in any spelling that a file system might take for them (rules F3 and F4)."""

import fnmatch
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.errors import ToolFailure
from ferrule.files.guard import ENVIRONMENTS, NAMED, PROTECTED, READABLE, SECRET, Guard
from ferrule.files.jail import Jail

SECRETS = [
    ".env",
    ".env.local",
    ".env.production.bak",
    ".env.example.bak",
    ".envrc",
    "prod.env",
    "deep/down/.env",
    "credentials",
    "credentials.json",
    ".credentials",
    ".aws/credentials",
    "secrets.yaml",
    "client_secret_123.json",
    "service-account-prod.json",
    "id_rsa",
    "id_ed25519_sk",
    "server.pem",
    "tls/server.key",
    "store.p12",
    "passwords.kdbx",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".docker/config.json",
    ".kube/config",
    ".ssh/config",
    ".ssh/deep/known_hosts",
    ".gnupg/private-keys-v1.d/a.key",
]
PROTECTEDS = [
    ".git",
    ".git/config",
    ".git/hooks/pre-commit",
    "sub/module/.git",
    "sub/module/.git/hooks/post-checkout",
    ".ferrule/settings.toml",
    ".amp/settings.json",
    ".amp/settings.local.jsonc",
    ".amp/plugins/a.ts",
    ".amp/toolbox/run",
    ".agents/tools/a",
    ".claude/settings.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".opencode/opencode.json",
    ".mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".bashrc",
    ".zshenv",
    ".profile",
    ".config/fish/config.fish",
    ".config/git/config",
    ".gitconfig",
    ".gitmodules",
    ".envrc",
    ".npmrc",
    ".yarnrc.yml",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    "sitecustomize.py",
]
FREE = [
    "main.py",
    "env",
    ".environment",
    "environment.yml",
    "my.envelope",
    "credentials_test.py",
    "test_credentials.py",
    "secrets.py",
    "secrets.md",
    "client_secret.py",
    "id_rsa.pub",
    "key.py",
    "monkey",
    ".gitignore",
    ".gitattributes",
    ".github/workflows/test.yml",
    "docs/.gitkeep",
    "git/config",
    ".amp/notes.md",
    "config.json",
    "docker/config.json",
    ".kube/config.d/note",
    "ssh/config",
    "settings.json",
    "AGENTS.md",
    "mysitecustomize.py",
    "bashrc",
]

SPELLINGS = [
    pytest.param(lambda name: name, id="plain"),
    pytest.param(str.upper, id="upper-case"),
    pytest.param(str.title, id="mixed-case"),
    pytest.param(lambda name: name + ".", id="trailing-dot"),
    pytest.param(lambda name: name + " ", id="trailing-blank"),
    pytest.param(lambda name: name + ". . .\t", id="dots-and-blanks"),
    pytest.param(lambda name: name + "\n", id="trailing-newline"),
    pytest.param(lambda name: name + "::$DATA", id="stream"),
    pytest.param(lambda name: name + ":stream", id="named-stream"),
    pytest.param(lambda name: name.replace("/", "./").replace("/", " /"), id="dots-and-blanks-in-folders"),
    pytest.param(lambda name: name[:2] + "\u200c" + name[2:] + "\ufeff", id="invisible-characters"),
    pytest.param(lambda name: name.replace("s", "\u017f").replace("k", "\u212a"), id="letters-that-fold-to-ascii"),
]


@each_row("spell", SPELLINGS)
@each_row("name", SECRETS)
def test_a_secret_file_is_neither_read_nor_written(name, spell):
    path = "/some/space/" + spell(name)
    guard = Guard()

    assert guard.secret(path)
    with pytest.raises(ToolFailure) as reading:
        guard.check_read(path)
    with pytest.raises(ToolFailure) as writing:
        guard.check_write(path)
    assert (reading.value.code, writing.value.code) == ("reading-secret-file", "writing-secret-file")
    assert reading.value.message == "Refusing to read env file. Reading secrets is not permitted."
    assert reading.value.path == path


@each_row("spell", SPELLINGS)
@each_row("name", PROTECTEDS)
def test_a_protected_file_is_not_written(name, spell):
    path = "/some/space/" + spell(name)
    guard = Guard()

    assert guard.is_protected(path)
    with pytest.raises(ToolFailure) as writing:
        guard.check_write(path)
    assert writing.value.code in ("writing-protected-file", "writing-secret-file")


@each_row("name", FREE)
def test_other_names_are_free(name):
    path = "/some/space/" + name
    guard = Guard()
    guard.check_read(path)
    guard.check_write(path)

    assert not guard.secret(path)
    assert not guard.is_protected(path)


@pytest.mark.parametrize("name", [".git/config", ".vscode/settings.json", ".claude/settings.json", ".gitmodules"])
def test_protected_files_can_be_read(name):
    Guard().check_read("/some/space/" + name)


@each_row("spell", SPELLINGS[:5])
@each_row("name", READABLE)
def test_samples_of_secret_files_are_meant_to_be_shared(name, spell):
    guard = Guard()
    guard.check_read("/some/space/" + spell(name))
    guard.check_write("/some/space/" + spell(name))


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20))
@example("two\nlines")
@example("two\nlines/file")
def test_everything_below_a_guarded_folder_is_guarded_whatever_it_is_called(rest):
    guard = Guard()
    inside = "/" + rest.strip("/") if rest.strip("/") else "/x"
    assert guard.secret("/ws/.ssh" + inside) or os.path.basename(inside).lower().rstrip(". ") in READABLE

    assert guard.is_protected("/ws/.git" + inside)


@given(st.sampled_from(SECRETS), st.data())
def test_any_mix_of_cases_is_as_secret(name, data):
    mixed = "".join(data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in name)

    assert Guard().secret("/ws/" + mixed)


def test_a_link_is_judged_by_the_file_behind_it(tmp_path):
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes.txt").symlink_to(".env")
    (tmp_path / "hooks").symlink_to(".git/hooks")
    (tmp_path / ".env.example").symlink_to(".env")
    jail, guard = Jail(str(tmp_path)), Guard()
    for name in ("notes.txt", ".env.example"):
        with pytest.raises(ToolFailure):
            guard.check_read(jail.real(name))
    with pytest.raises(ToolFailure):
        guard.check_write(jail.real("hooks/pre-commit"))
    jail.close()


def test_what_does_not_exist_yet_is_guarded_too(tmp_path):
    jail, guard = Jail(str(tmp_path)), Guard()
    for name in (".git/hooks/pre-push", ".env", ".vscode/tasks.json"):
        with pytest.raises(ToolFailure):
            guard.check_write(jail.real(name))
    jail.close()


@pytest.mark.parametrize(
    ("allow", "opened", "closed"),
    [
        pytest.param([".env.test"], ["/ws/.env.test", "/ws/a/.ENV.TEST"], ["/ws/.env", "/ws/.env.test2"], id="name"),
        pytest.param(["certs/*.pem"], ["/ws/certs/a.pem"], ["/ws/a.pem", "/ws/certs/deep/a.pem"], id="folder"),
        pytest.param([".vscode/**"], ["/ws/.vscode/a/b.json"], ["/ws/.idea/a"], id="tree"),
        pytest.param(["{a,b}.key"], ["/ws/a.key", "/ws/b.key"], ["/ws/c.key"], id="choice"),
        pytest.param(["a{b.key"], ["/ws/a{b.key"], ["/ws/ab.key"], id="a-brace-that-is-not-closed"),
        pytest.param(["a.b.key"], ["/ws/a.b.key"], ["/ws/axb.key"], id="dots-are-dots"),
        pytest.param([], [], ["/ws/.env", "/ws/.vscode/a"], id="nothing"),
    ],
)
def test_the_user_can_open_guarded_files_by_name(allow, opened, closed):
    guard = Guard(allow)
    for path in opened:
        guard.check_read(path)
        guard.check_write(path)

    for path in closed:
        with pytest.raises(ToolFailure):
            guard.check_write(path)


def test_a_search_leaves_out_every_pattern_whose_name_is_enough():
    assert Guard().search_exclusions() == [
        f"**/{pattern}" for pattern in (*ENVIRONMENTS, *NAMED) if pattern != "credentials"
    ]
    assert Guard(["*.pem"]).search_exclusions() == []


@each_row("pattern", [pattern for pattern in (*SECRET, *PROTECTED) if not set(pattern) & set("{}")])
def test_a_pattern_matches_what_it_looks_like(pattern):
    example = pattern.replace("**", "some/file").replace("*", "thing")

    assert fnmatch.fnmatch(example, pattern)
    assert Guard().secret("/ws/" + example) or Guard().is_protected("/ws/" + example) or example in READABLE


def test_a_refused_write_says_nothing_about_the_content(tmp_path):
    (tmp_path / ".env").write_text("KEY=hunter2")
    with pytest.raises(ToolFailure) as caught:
        Guard().check_write(str(tmp_path / ".env"))

    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("above", [".claude/worktrees/x", ".cursor", ".git", ".ssh"])
def test_names_above_the_workspace_do_not_count(tmp_path, above):
    root = tmp_path / above
    root.mkdir(parents=True)
    jail = Jail(str(root))
    guard = Guard((), jail)
    real = os.path.realpath(root)

    assert not guard.is_protected(f"{real}/src/a.py")
    assert not guard.secret(f"{real}/src/a.py")
    assert guard.is_protected(f"{real}/.git/config")
    assert guard.secret(f"{real}/src/.env")
    jail.close()
