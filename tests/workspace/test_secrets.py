"""What a secret is: by name, by content, and by place in the home folder."""

import pytest
from tests.rows import each_row

from ferrule.files.guard import HOME, Guard, holds_key, holds_token
from ferrule.files.jail import Jail

BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKj\n"


def pem(label: str, body: str = BODY) -> str:
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n"


@each_row(
    ("text", "is_secret"),
    [
        pytest.param("", False, id="empty"),
        pytest.param(pem("CERTIFICATE"), False, id="certificate"),
        pytest.param(pem("CERTIFICATE").replace("\n", "\r\n"), False, id="carriage-returns"),
        pytest.param("# Issuer: CN=A\n" + pem("CERTIFICATE") * 2, False, id="bundle"),
        pytest.param(pem("PUBLIC KEY"), False, id="public-key"),
        pytest.param(pem("DH PARAMETERS"), False, id="parameters"),
        pytest.param("ssh-ed25519 AAAAC3NzaC1lZDI1 me@here\n", False, id="ssh-public"),
        pytest.param(pem("PRIVATE KEY"), True, id="pkcs8"),
        pytest.param(pem("ENCRYPTED PRIVATE KEY"), True, id="encrypted"),
        pytest.param(pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\n\n" + BODY), True, id="rsa"),
        pytest.param(pem("EC PARAMETERS") + pem("EC PRIVATE KEY"), True, id="ec"),
        pytest.param(pem("OPENSSH PRIVATE KEY"), True, id="openssh"),
        pytest.param(pem("CERTIFICATE") + pem("PRIVATE KEY"), True, id="both"),
        pytest.param(pem("CERTIFICATE") + "-----BEGIN PRIVATE KEY-----\nMII", True, id="cut-off"),
        pytest.param(pem("CERTIFICATE") + "privateExponent:\n 00:aa\n", True, id="told-in-words"),
        pytest.param(pem("CERTIFICATE") + "a" * 64 + "\n", True, id="a-run-of-digits-beside-it"),
        pytest.param("PuTTY-User-Key-File-2: ssh-rsa\n", True, id="putty"),
        pytest.param("d41d8cd98f00b204e9800998ecf8427e\n", True, id="master-key"),
        pytest.param("some words\n", True, id="cannot-be-told"),
        pytest.param(pem("CERTIFICATE") + "\0", True, id="nul"),
    ],
)
def test_only_what_is_known_to_be_public_is_no_key(text, is_secret):
    assert holds_key(text.encode()) is is_secret


def test_binary_keys_are_keys():
    assert holds_key(b"\x30\x82\x04\xbd\x02\x01\x00\x30")
    assert holds_key("-----BEGIN PRIVATE KEY-----".encode("utf-16"))


@each_row(
    ("text", "is_secret"),
    [
        pytest.param("", False, id="empty"),
        pytest.param("legacy-peer-deps=true\nsave-exact = true\n", False, id="settings"),
        pytest.param("always-auth=true\nauth-type=legacy\n", False, id="about-tokens"),
        pytest.param("//registry.npmjs.org/:_authToken=${NPM_TOKEN}\n", False, id="variable"),
        pytest.param('//r/:_authToken="${NPM_TOKEN}"\n', False, id="quoted-variable"),
        pytest.param("//registry.npmjs.org/:_authToken=\n", False, id="nothing"),
        pytest.param("//registry.npmjs.org/:_authToken=abc\n", True, id="token"),
        pytest.param("//r/:_authToken = abc${X}\n", True, id="token-beside-a-variable"),
        pytest.param("_auth=dXNlcjpwYXNz\n", True, id="auth"),
        pytest.param("x=1\r//r/:_password=aGk=\r", True, id="password"),
        pytest.param("; //r/:_authToken=abc\n", True, id="commented-out"),
        pytest.param("proxy=http://me:word@proxy:80\n", True, id="address"),
        pytest.param("registry=https://r/npm_abcdefghijklmnopqrstuvwxyz0123\n", True, id="token-elsewhere"),
        pytest.param("key=-----BEGIN\n", True, id="key"),
        pytest.param("a\0b", True, id="binary"),
    ],
)
def test_an_npmrc_is_secret_with_a_token_in_it(text, is_secret):
    assert holds_token(text.encode()) is is_secret


@each_row(
    ("name", "is_secret"),
    [
        ("credentials.py", False),
        ("pkg/credentials.TS", False),
        ("credentials.test.ts", False),
        ("docs/credentials.md", False),
        ("__pycache__/credentials.cpython-311.pyc", False),
        ("credentials.json", True),
        ("credentials.yml", True),
        ("credentials.txt", True),
        ("credentials.sh", True),
        ("credentials.py.bak", True),
        ("credentials.ts.enc", True),
        (".credentials.py", True),
        ("credentials.env", True),
        ("credentials.pem", True),
        (".aws/cert.pem", True),
    ],
)
def test_of_credentials_source_and_documentation_are_no_secrets(tmp_path, name, is_secret):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(pem("CERTIFICATE"))

    assert Guard((), Jail(str(tmp_path))).secret(str(tmp_path / name)) is is_secret


def test_what_a_file_holds_is_looked_at_again_when_it_changes(tmp_path):
    path = tmp_path / "a.pem"
    guard = Guard((), Jail(str(tmp_path)))
    seen = []
    for label in ("CERTIFICATE", "PRIVATE KEY", "CERTIFICATE"):
        path.write_text(pem(label, BODY[: 40 - len(label)] + "\n"))
        seen.append(guard.secret(str(path)))

    assert seen == [False, True, False]


def test_what_cannot_be_looked_into_is_secret(tmp_path):
    (tmp_path / "folder.key").mkdir()
    (tmp_path / "dangling.pem").symlink_to("nowhere")
    (tmp_path / "large.pem").write_bytes(b"\n" * (5 << 20))
    guard = Guard((), Jail(str(tmp_path)))

    assert all(guard.secret(str(tmp_path / name)) for name in ("folder.key", "dangling.pem", "large.pem", "none.pem"))


@each_row("name", HOME)
def test_the_places_of_the_home_folder_are_secret_wherever_the_workspace_is(tmp_path, monkeypatch, name):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "work").mkdir()
    (home / "work").mkdir(parents=True)
    guards = [Guard((), Jail(str(folder))) for folder in (tmp_path / "work", home / "work", home)]

    assert all(guard.secret(str(home / name)) and guard.secret(f"{home}/{name}/x") for guard in guards)
    assert not any(guard.secret(str(home / "notes.txt")) for guard in guards)


def test_a_workspace_in_such_a_place_can_be_worked_in(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".mozilla/extensions/mine"
    folder.mkdir(parents=True)
    guard = Guard((), Jail(str(folder)))

    assert not guard.secret(str(folder / "main.js"))
    assert guard.secret(str(tmp_path / ".mozilla/firefox/logins.json"))


def test_a_place_that_is_a_link_is_secret_where_it_leads(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "home/.ssh").symlink_to(tmp_path / "dotfiles")

    assert Guard().secret(str(tmp_path / "dotfiles/config"))
