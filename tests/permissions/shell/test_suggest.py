"""What "always" would save for a command line."""

import pytest

from ferrule.permissions.shell.parse import proposals

from .bash import taken


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("git commit -m 'a b'", ["git commit *"]),
        ('git commit -m "$x"', ["git commit *"]),
        ("npm run build", ["npm run build"]),
        ("npm run build -- --watch", ["npm run build *"]),
        ("cargo test --all", ["cargo test *"]),
        ("docker compose up -d", ["docker compose up *"]),
        ("kubectl get pods", ["kubectl get *"]),
        ("pytest -x tests", ["pytest *"]),
        ("ls -la", ["ls *"]),
        ("cd src && git status | head -5", ["git status *", "head *"]),
        ("git status; git status -s", ["git status *"]),
        ("timeout 60 cargo test", ["cargo test *"]),
        ("FOO=1 cargo test", []),
        ("rm -rf build", ["rm -rf build"]),
        ("rm -rf *", []),
        ("rm $x", []),
        ("curl -s example.org", ["curl -s example.org"]),
        ("kill 123", ["kill 123"]),
        ("dd if=a of=b", ["dd if=a of=b"]),
        ("git push origin main", ["git push origin main"]),
        ("git -C other commit", ["git -C other commit"]),
        ("make build", ["make build"]),
        ("make SHELL=./x build", []),
        ("./script.sh a", ["./script.sh a"]),
        ("unheard-of a", ["unheard-of a"]),
        ("git", ["git"]),
        ("cargo test > out.txt", ["cargo test *"]),
    ],
)
def test_the_narrowest_useful_rule_is_proposed(command: str, rules: list[str]) -> None:
    assert proposals(taken(command)) == tuple(rules)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "python x.py",
            "python3.11 -c pass",
            "/usr/bin/python3 x",
            "node x",
            "ruby x",
            "perl -e x",
            "bash x",
            "sh -c ls",
        ),
        *("sudo ls", "env ls", "xargs ls", "xargs -n1 ls", "ssh host ls", "eval ls", "npx tsc", "uvx ruff", "bunx a"),
        *("find . -exec ls {} +", "command -p ls", "watch ls", "awk 1", "sed -n 1p f", "vim f", "docker exec a ls"),
        *("time bash x", "timeout 5 python x", "ls | sh", "ls && python x", "docker run a ls", "uv run python x"),
        *("ls 'a", "PATH=x; ls", "f() { ls; }", "$x", "a; b; c; d; e; f", "> f", "", "pnpm dlx a", "su -c ls"),
    ],
)
def test_nothing_is_proposed_that_could_run_anything(command: str) -> None:
    assert proposals(taken(command)) == ()
