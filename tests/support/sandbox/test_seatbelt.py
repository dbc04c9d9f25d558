"""Seatbelt: what its rules decide, read as macOS reads them. No Mac runs these tests: the rules are evaluated here.

The evaluator knows what the rules use and fails for anything else. The last rule that matches decides.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox import Profile, SandboxError
from ferrule.sandbox.seatbelt import PROGRAM, Seatbelt, rules

TEMPORARY = "/private/var/folders/x/ferrule-1"


def parsed(text: str) -> list[Any]:
    """The rules as nested lists; a string is a pair of its kind and its text."""
    token = re.compile(r'\s*(?:([()])|#"([^"\n]*)"|"((?:[^"\\\n]|\\.)*)"|([^\s()"]+))')
    stack: list[list[Any]] = [[]]
    at = 0
    while text[at:].strip():
        found = token.match(text, at)
        assert found, text[at : at + 40]
        at = found.end()
        bracket, pattern, string, word = found.groups()
        if bracket == "(":
            stack.append([])
        elif bracket == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(("regex", pattern) if pattern is not None else ("text", string) if word is None else word)
    assert len(stack) == 1
    return stack[0]


class Judge:
    """Decides as macOS would."""

    def __init__(self, profile: Profile) -> None:
        text, self.parameters = rules(profile, TEMPORARY)
        version, default, *self.rules = parsed(text)
        assert (version, default) == (["version", "1"], ["deny", "default"])

    def allows(self, operation: str, subject: str = "") -> bool:
        decision = "deny"
        for verb, *rest in self.rules:
            operations = [each for each in rest if isinstance(each, str)]
            filters = [each for each in rest if isinstance(each, list)]
            if any(self._covers(each, operation) for each in operations) and (
                not filters or any(self._matches(each, subject) for each in filters)
            ):
                decision = verb
        return decision == "allow"

    def _covers(self, pattern: str, operation: str) -> bool:
        return operation.startswith(pattern[:-1]) if pattern.endswith("*") else operation == pattern

    def _matches(self, condition: list[Any], subject: str) -> bool:
        kind, value = condition[0], condition[1]
        if isinstance(value, list):
            assert value[0] == "param"
            value = ("text", self.parameters[value[1][1]])
        if kind == "literal":
            return bool(subject == value[1])
        if kind == "subpath":
            return bool(subject == value[1] or subject.startswith(value[1] + "/"))
        if kind == "regex":
            return re.search(value[1], subject) is not None
        if kind == "remote":
            return subject == (value if isinstance(value, str) and value != "ip" else condition[2][1])
        if kind in {"target", "global-name"}:
            return subject == (value if isinstance(value, str) else value[1])
        raise AssertionError(condition)


@pytest.fixture
def workspace(tmp_path):
    for folder in (".git/hooks", "sub", "keys"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".git/config").write_text("")
    (tmp_path / ".env").write_text("")
    return tmp_path


KEPT = (".git/hooks", ".git/config", ".claude/settings.json", "sub/.vscode", ".mcp.json")


def profile(workspace: Path, **changes: object) -> Profile:
    whole = Profile(
        writable=(str(workspace),),
        kept=tuple(str(workspace / name) for name in KEPT),
        masked=(str(workspace / ".env"), str(workspace / "keys"), "/Users/me/.ssh"),
    )
    return whole._replace(**changes)  # type: ignore[arg-type]


WRITES = [
    pytest.param("src/a.py", True, id="file"),
    pytest.param("sub/b", True, id="below"),
    pytest.param(".git/index", True, id="git-index"),
    pytest.param(".git/config", False, id="git-config"),
    pytest.param(".git/hooks", False, id="hooks"),
    pytest.param(".git/hooks/pre-commit", False, id="new-hook"),
    pytest.param(".GIT/Hooks/pre-commit", False, id="in-another-case"),
    pytest.param(".git/hook\u017f/pre-commit", False, id="long-s"),
    pytest.param(".git/hoo\u212as/pre-commit", False, id="kelvin"),
    pytest.param(".git/hooks2", True, id="longer-name"),
    pytest.param(".git/configs", True, id="longer-file"),
    pytest.param(".mcp.json", False, id="absent"),
    pytest.param(".MCP.json", False, id="absent-in-another-case"),
    pytest.param("xmcp.json", True, id="a-dot-is-a-dot"),
    pytest.param(".claude", False, id="absent-folder"),
    pytest.param(".claude/settings.json", False, id="in-absent-folder"),
    pytest.param("sub/.vscode/tasks.json", False, id="absent-below"),
    pytest.param(".env", False, id="masked"),
    pytest.param("keys/new", False, id="in-masked"),
]


@pytest.mark.parametrize(("name", "allowed"), WRITES)
def test_what_may_be_written_in_the_workspace(workspace, name, allowed):
    judge = Judge(profile(workspace))

    for operation in ("file-write-create", "file-write-data", "file-write-unlink"):
        assert judge.allows(operation, str(workspace / name)) is allowed


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/etc/hosts", False),
        ("/Users/me/.zshrc", False),
        ("/private/tmp/x", False),
        (TEMPORARY + "/x", True),
        ("/dev/null", True),
        ("/dev/ttys001", False),
        ("/dev/tty", True),
        ("/dev/disk0", False),
    ],
)
def test_what_may_be_written_elsewhere(workspace, path, allowed):
    assert Judge(profile(workspace)).allows("file-write-data", path) is allowed


def test_a_folder_beside_the_workspace_with_a_longer_name_is_outside(workspace):
    assert not Judge(profile(workspace)).allows("file-write-create", f"{workspace}-evil/x")


@pytest.mark.parametrize("name", [".git", ".GIT", "sub"])
def test_folders_above_what_is_kept_cannot_be_renamed_or_replaced(workspace, name):
    judge = Judge(profile(workspace))

    assert not judge.allows("file-write-unlink", str(workspace / name))
    assert not judge.allows("file-write-create", str(workspace / name))
    assert judge.allows("file-write-mode", str(workspace / name))


def test_the_workspace_itself_cannot_be_renamed(workspace):
    assert not Judge(profile(workspace)).allows("file-write-unlink", str(workspace))


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("{ws}/a", True),
        ("{ws}/.env", False),
        ("{ws}/.env.example", True),
        ("{ws}/keys", False),
        ("{ws}/keys/k", False),
        ("/Users/me/.ssh/id_rsa", False),
        ("/Users/me/.sshx", True),
        ("/usr/bin/git", True),
        ("/dev/ttys003", False),
    ],
)
def test_what_may_be_read(workspace, path, allowed):
    assert Judge(profile(workspace)).allows("file-read-data", path.format(ws=workspace)) is allowed


def test_without_a_network_there_is_none(workspace):
    judge = Judge(profile(workspace))

    for remote in ("localhost:80", "localhost:5432", "*:443", "unix-socket"):
        assert not judge.allows("network-outbound", remote)
    assert not judge.allows("mach-lookup", "com.apple.dnssd.service")


def test_hosts_are_reached_by_the_port_of_the_proxy_only(workspace):
    judge = Judge(profile(workspace, hosts=("example.org",), proxy="http://ferrule:word@127.0.0.1:4567"))

    assert judge.allows("network-outbound", "localhost:4567")
    assert not judge.allows("network-outbound", "localhost:5432")
    assert not judge.allows("network-outbound", "*:443")
    assert not judge.allows("network-bind", "localhost:4567")


@pytest.mark.parametrize("proxy", ["/tmp/x/proxy", "http://127.0.0.1"])
def test_hosts_without_a_port_are_an_error(workspace, proxy):
    with pytest.raises(SandboxError, match="no proxy"):
        rules(profile(workspace, hosts=("example.org",), proxy=proxy), TEMPORARY)


@pytest.mark.parametrize(("unix_sockets", "network"), [(False, False), (False, True), (True, False), (True, True)])
def test_network_and_sockets_are_allowed_apart(workspace, unix_sockets, network):
    judge = Judge(profile(workspace, unix_sockets=unix_sockets, network=network))

    assert judge.allows("network-outbound", "*:443") is network
    assert judge.allows("network-outbound", "unix-socket") is unix_sockets


@pytest.mark.parametrize(
    ("operation", "subject"),
    [
        ("mach-lookup", "com.apple.coreservices.launchservicesd"),
        ("mach-lookup", "com.apple.SecurityServer"),
        ("mach-lookup", "com.apple.pasteboard.1"),
        ("appleevent-send", ""),
        ("lsopen", ""),
        ("job-creation", ""),
        ("signal", "others"),
        ("file-link", ""),
        ("process-info-pidinfo", "others"),
        ("system-privilege", ""),
        ("user-preference-write", ""),
        ("iokit-open", ""),
    ],
)
def test_nobody_outside_is_asked_to_do_it(workspace, operation, subject):
    assert not Judge(profile(workspace, network=True)).allows(operation, subject)


def test_ordinary_things_are_allowed(workspace):
    judge = Judge(profile(workspace))

    for operation, subject in (
        ("process-exec", ""),
        ("process-fork", ""),
        ("sysctl-read", ""),
        ("signal", "same-sandbox"),
    ):
        assert judge.allows(operation, subject)


def test_a_link_is_kept_and_what_it_points_to(workspace):
    (workspace / "real").mkdir()
    (workspace / ".vscode").symlink_to("real")
    judge = Judge(profile(workspace, kept=(str(workspace / ".vscode"),)))

    for name in (".vscode", "real", "real/tasks.json"):
        assert not judge.allows("file-write-unlink", str(workspace / name))
        assert not judge.allows("file-write-create", str(workspace / name))


@pytest.mark.parametrize("name", ['a"b', "a\nb"])
def test_a_name_that_no_rule_can_spell_is_an_error(workspace, name):
    with pytest.raises(SandboxError, match="no rule can spell"):
        rules(profile(workspace, kept=(str(workspace / name),)), TEMPORARY)


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters='/"'), min_size=1, max_size=12))
def test_a_kept_name_is_kept_as_it_is_written_and_in_any_case(name):
    if name in {".", ".."}:
        return
    judge = Judge(Profile(writable=("/nowhere/w",), kept=(f"/nowhere/w/x/{name}",)))

    assert judge.allows("file-write-create", "/nowhere/w/y/" + name)
    for shape in (name, name.swapcase() if name.isascii() else name):
        assert not judge.allows("file-write-create", f"/nowhere/w/x/{shape}/inside")


def test_the_command_line_holds_the_rules_and_the_paths_as_parameters(workspace):
    wrapped = Seatbelt().wrap(("/bin/zsh", "-c", "make"), Profile(writable=(str(workspace),)), cwd=str(workspace))
    temporary = Path(wrapped.env["TMPDIR"])
    existed = temporary.is_dir()
    (temporary / "left").write_text("")
    wrapped.done()

    assert wrapped.argv[:2] == (PROGRAM, "-p")
    assert wrapped.argv[3:] == ("-D", f"W0={workspace}", "-D", f"W1={temporary}", "/bin/zsh", "-c", "make")
    assert existed
    assert not temporary.exists()


def test_a_command_cannot_be_taken_for_an_option(workspace):
    with pytest.raises(SandboxError):
        Seatbelt().wrap(("-D", "x"), Profile(), cwd="/")


def test_the_rules_for_a_small_profile_are_these():
    text, parameters = rules(
        Profile(writable=("/nowhere/w",), kept=("/nowhere/w/.mcp.json",), masked=("/nowhere/s",)), TEMPORARY
    )

    assert parameters == {"W0": "/nowhere/w", "W1": TEMPORARY, "M0": "/nowhere/s"}
    assert text.splitlines()[24:] == [
        '(allow file-write* (subpath (param "W0")) (subpath (param "W1")))',
        '(deny file-write-unlink (literal (param "W0")) (literal (param "W1")))',
        r'(deny file-write* (regex #"^/nowhere/w/\.[mM][cC][pP]\.[jJ](s|S|ſ)[oO][nN](/|$)"))',
        '(deny file-read* file-write* (subpath (param "M0")))',
        "(deny network* (remote unix-socket))",
    ]
