"""Recognising a denial: in the words of the programs that meet it, and with few false alarms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox.denial import find_denial
from tests.rows import each_row

WORKSPACE = "/home/me/project"


def said(output: str, exit_code: int = 1, refused: tuple[str, ...] = (), asked: tuple[str, ...] = ()) -> str:
    return find_denial(output, exit_code, refused, asked, writable=(WORKSPACE,))


DENIALS = [
    # Files.
    ("touch", "touch: cannot touch '/etc/x': Read-only file system", "keeps /etc/x read-only"),
    ("touch-quotes", "touch: cannot touch \u2018/etc/x\u2019: Read-only file system", "keeps /etc/x read-only"),
    ("dash", "/bin/sh: 1: cannot create /etc/x: Read-only file system", "keeps /etc/x read-only"),
    ("bash", "bash: line 1: /opt/y: Read-only file system", "keeps /opt/y read-only"),
    ("python", "OSError: [Errno 30] Read-only file system: '/home/me/.cache/x'", "keeps /home/me/.cache/x read-only"),
    ("node", "Error: EROFS: read-only file system, mkdir '/home/me/.npm/_cacache'", "keeps /home/me/.npm/_cacache"),
    ("npm", "npm ERR! code EROFS\nnpm ERR! syscall open\nnpm ERR! path /home/me/.npm/x\n", "read-only"),
    (
        "cargo",
        "error: failed to open: /home/me/.cargo/.package-cache\n\nCaused by:\n  Read-only file system (os error 30)",
        "read-only",
    ),
    ("go", "mkdir /home/me/go/pkg: read-only file system", "keeps /home/me/go/pkg read-only"),
    (
        "git-hook",
        "fatal: cannot copy '/x/a.sample' to '/home/me/project/.git/hooks/pre-push.sample': Read-only file system",
        ".git/hooks/",
    ),
    ("mv-git", "mv: cannot move '.git' to 'y': Device or resource busy", "keeps .git as it is"),
    (
        "git-config",
        "error: could not write config file .git/config: Device or resource busy",
        "keeps .git/config as it is",
    ),
    ("env-file", "cat: /home/me/.aws/credentials: Permission denied", "denied access to /home/me/.aws/credentials"),
    (
        "python-env",
        "PermissionError: [Errno 13] Permission denied: '/home/me/.ssh/id_rsa'",
        "denied access to /home/me/.ssh/id_rsa",
    ),
    ("python-eperm", "PermissionError: [Errno 1] Operation not permitted: '/Library/x'", "denied access to /Library/x"),
    (
        "node-eacces",
        "Error: EACCES: permission denied, open '/usr/lib/node_modules/x'",
        "denied access to /usr/lib/node_modules/x",
    ),
    # Network.
    ("curl", "curl: (6) Could not resolve host: example.com", "so example.com was not reached"),
    (
        "curl-connect",
        "curl: (7) Failed to connect to 192.0.2.1 port 80 after 0 ms: Couldn't connect to server",
        "so 192.0.2.1 was not reached",
    ),
    (
        "python-socket",
        "    _socket.socket.__init__(self, family, type)\nPermissionError: [Errno 1] Operation not permitted",
        "no network",
    ),
    ("curl-proxy", "curl: (56) CONNECT tunnel failed, response 403", "no network"),
    ("old-curl-proxy", "curl: (56) Received HTTP code 403 from proxy after CONNECT", "no network"),
    ("wget", "wget: unable to resolve host address \u2018example.com\u2019", "so example.com was not reached"),
    (
        "git-https",
        "fatal: unable to access 'https://example.org/x.git/': Could not resolve host: example.org",
        "so example.org was",
    ),
    (
        "git-ssh",
        "ssh: Could not resolve hostname git.example.org: Temporary failure in name resolution",
        "so git.example.org was",
    ),
    (
        "pip",
        "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/x/",
        "no network",
    ),
    (
        "requests",
        "NameResolutionError: Failed to resolve 'api.example.org' ([Errno -2] Name or service not known)",
        "so api.example.org was",
    ),
    ("requests-proxy", "OSError('Tunnel connection failed: 403 Forbidden')", "no network"),
    (
        "npm-again",
        "npm ERR! request to https://example.org/x failed, reason: getaddrinfo EAI_AGAIN example.org",
        "so example.org was",
    ),
    ("node-notfound", "Error: getaddrinfo ENOTFOUND api.example.org", "so api.example.org was"),
    (
        "cargo-network",
        "  [6] Couldn't resolve host name (Could not resolve host: index.example.org)",
        "so index.example.org was",
    ),
    (
        "go-network",
        "dial tcp: lookup proxy.example.org: Temporary failure in name resolution",
        "so proxy.example.org was",
    ),
    (
        "apt",
        "W: Failed to fetch http://deb.example.org/x  Temporary failure resolving 'deb.example.org'",
        "so deb.example.org was",
    ),
    ("ping", "ping: connect: Network is unreachable", "no network"),
    ("mac", "curl: nodename nor servname provided, or not known", "no network"),
    ("unreach", "connect ENETUNREACH 93.184.215.14:443", "no network"),
    ("bash-tcp", "bash: socket: Operation not permitted", "does not allow this: bash: socket: Operation not permitted"),
    # What the kernel refuses.
    ("unshare", "unshare: unshare failed: Operation not permitted", "does not allow this: unshare"),
    ("strace", "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted", "does not allow this: strace"),
    # The sandbox itself.
    (
        "bwrap",
        "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
        "could not be set up: Can't mount proc",
    ),
    ("seatbelt", "sandbox-exec: sandbox_apply: Operation not permitted", "could not be set up: sandbox_apply"),
]


@each_row(("output", "part"), [pytest.param(*row, id=name) for name, *row in DENIALS])
def test_a_denial_is_known_by_what_programs_say(output, part):
    sentence = said(f"some progress\n{output}\nmore words\n")

    assert part in sentence
    assert sentence.startswith("The sandbox ")
    assert sentence.endswith(".")
    assert "\n" not in sentence


@each_row("output", [pytest.param(row[1], id=row[0]) for row in DENIALS])
def test_a_command_that_succeeded_was_not_stopped(output):
    assert said(output, 0) == ""


@each_row(
    "output",
    [
        pytest.param("", id="nothing"),
        pytest.param("1 failed, 3 passed in 0.12s\nAssertionError: assert 1 == 2", id="pytest"),
        pytest.param("bash: ./run.sh: Permission denied", id="no-execute-bit"),
        pytest.param("bash: /home/me/project/run.sh: Permission denied", id="no-execute-bit-in-the-workspace"),
        pytest.param("PermissionError: [Errno 13] Permission denied: '/home/me/project/out.bin'", id="own-file"),
        pytest.param("git@example.org: Permission denied (publickey).", id="ssh-key"),
        pytest.param("ls: cannot access '/nowhere': No such file or directory", id="no-file"),
        pytest.param("grep: src: Is a directory", id="grep"),
        pytest.param("make: *** [all] Error 2", id="make"),
        pytest.param("umount: target is busy\nrm: cannot remove 'x': Device or resource busy", id="busy"),
        pytest.param("requests.exceptions.HTTPError: 404 Client Error: Not Found", id="http"),
        pytest.param("curl: (7) Failed to connect to localhost port 8000: Connection refused", id="refused"),
        pytest.param("error[E0425]: cannot find value `x` in this scope", id="rustc"),
    ],
)
def test_an_ordinary_failure_is_none(output):
    assert said(output) == ""


def test_what_the_proxy_refused_is_named_first():
    assert said("curl: (56) CONNECT tunnel failed, response 403", 56, ("example.com:443",)) == (
        "The sandbox refused the connection to example.com:443."
    )
    assert said("", 1, ("a:1", "b:1", "c:1", "d:1")) == "The sandbox refused the connection to b:1, c:1, d:1."
    assert said("", 0, ("example.com:443",)) == "The sandbox refused the connection to example.com:443."


def test_a_name_that_was_asked_for_is_told_also_where_a_pipe_hid_the_failure():
    assert said("", 0, (), ("example.com",)) == "The sandbox has no network, so example.com was not reached."


def test_the_last_word_counts():
    assert "/b" in said(
        "touch: cannot touch '/a': Read-only file system\ntouch: cannot touch '/b': Read-only file system"
    )


def test_only_the_end_of_a_long_output_is_read():
    assert said("touch: cannot touch '/a': Read-only file system\n" + "x\n" * 20_000) == ""


@given(st.text(max_size=300), st.integers(-20, 255))
def test_any_text_gives_one_line_or_nothing(output, exit_code):
    sentence = said(output, exit_code)

    assert "\n" not in sentence
    assert bool(sentence) is sentence.startswith("The sandbox ")


@pytest.mark.parametrize("letter", [".", "/", "'", "mount ", "a.", "dial tcp ", "Permission denied"])
def test_no_line_makes_it_slow(letter):
    """Each of these would take minutes if the search were not linear in the length of a line."""
    assert len(said(letter * 20_000 + " Operation not permitted")) < 1_000


@pytest.mark.parametrize(
    ("output", "named"),
    [
        pytest.param(
            "permission denied while trying to connect to unix:///var/run/docker.sock", "container", id="docker"
        ),
        pytest.param("To get started with GitHub CLI, please run:  gh auth login", "login of gh", id="gh"),
        pytest.param("Could not open a connection to your authentication agent.", "ssh agent", id="agent"),
        pytest.param("error: gpg failed to sign the data\nfatal: failed to write commit object", "signed", id="sign"),
        pytest.param("Host key verification failed.", "over ssh", id="remote"),
        pytest.param("bash: /tmp/x: Permission denied", "$TMPDIR", id="no-tmp-of-its-own"),
    ],
)
def test_what_no_command_has_is_named_with_its_reason(output, named):
    assert named in said(output)
