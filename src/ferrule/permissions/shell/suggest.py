"""The rules that "always" would save: the narrowest prefix that is of use, or the exact command, or nothing."""

import re

from ferrule.permissions.shell.inside import SHELLS, runs_another
from ferrule.permissions.shell.line import Line, Simple
from ferrule.permissions.shell.unwrap import GIVEN, WRAPPERS

MOST = 5

# How many words name what is done; the longest entry that fits counts.
_ARITY = {
    **dict.fromkeys(("ls", "cat", "head", "tail", "wc", "grep", "rg", "du", "df", "stat", "file", "which", "diff"), 1),
    **dict.fromkeys(("jq", "sort", "uniq", "cut", "tree", "basename", "dirname", "realpath", "date", "md5sum"), 1),
    **dict.fromkeys(("pytest", "ruff", "mypy", "pyright", "black", "isort", "flake8", "tsc", "eslint", "prettier"), 1),
    **dict.fromkeys(("jest", "vitest", "gofmt", "rustfmt", "clippy-driver", "shellcheck", "hadolint", "sha256sum"), 1),
    **dict.fromkeys(("mkdir", "touch", "ps", "id", "uname", "nproc", "free", "cmp", "comm", "tr", "nl", "column"), 1),
    **dict.fromkeys(("git", "cargo", "go", "npm", "pnpm", "yarn", "pip", "pip3", "poetry", "uv", "bundle", "gem"), 2),
    **dict.fromkeys(("docker", "podman", "kubectl", "helm", "terraform", "brew", "dotnet", "swift", "gh", "nix"), 2),
    **dict.fromkeys(("composer", "mix", "rake", "gradle", "mvn", "bazel", "apt", "apt-get", "conda", "rustup"), 2),
    **dict.fromkeys(("systemctl", "journalctl", "hatch", "pdm", "tox", "nox", "pre-commit", "alembic", "flask"), 2),
    **dict.fromkeys(("npm run", "pnpm run", "yarn run", "bun run", "git stash", "git remote", "git worktree"), 3),
    **dict.fromkeys(("docker compose", "docker image", "docker container", "docker volume", "docker network"), 3),
    **dict.fromkeys(("gh pr", "gh issue", "gh run", "gh repo", "gh workflow", "git submodule", "git bisect"), 3),
    **dict.fromkeys(("uv pip", "uv tool", "go mod", "terraform state", "poetry env", "conda env", "helm repo"), 3),
}
# What these do to a file, a process or another machine depends on their words alone.
_EXACT = frozenset(
    {
        *("git push", "git reset", "git clean", "git config", "git checkout", "git restore", "git rebase", "git rm"),
        *("git filter-branch", "git submodule", "git worktree", "git remote", "git bisect", "git clone", "git pull"),
        *("npm publish", "npm install", "npm config", "pnpm publish", "pnpm add", "yarn add", "yarn publish", "npm ci"),
        *("pip install", "pip3 install", "uv pip", "uv add", "uv tool", "cargo install", "cargo publish", "go install"),
        *("docker rm", "docker rmi", "docker system", "docker volume", "docker build", "docker push", "docker cp"),
        *("kubectl delete", "kubectl apply", "kubectl edit", "kubectl patch", "kubectl cp", "kubectl scale"),
        *("gh api", "gh auth", "gh secret", "gh repo", "gh workflow", "gh release", "gh extension", "gh alias"),
        *("terraform apply", "terraform destroy", "terraform state", "helm install", "helm uninstall"),
        *("brew install", "apt install", "apt-get install", "gem install", "cargo add", "go get", "poetry add"),
    }
)
# They run what their words, their input or a file of the workspace says.
_NEVER = SHELLS | frozenset(
    {
        *(
            "python",
            "python2",
            "python3",
            "pypy",
            "pypy3",
            "ipython",
            "node",
            "nodejs",
            "deno",
            "bun",
            "ts-node",
            "tsx",
        ),
        *("ruby", "irb", "perl", "php", "lua", "luajit", "Rscript", "R", "julia", "java", "jshell", "scala", "groovy"),
        *("osascript", "pwsh", "powershell", "cmd", "tclsh", "wish", "expect", "awk", "gawk", "mawk", "nawk", "sed"),
        *("vim", "vi", "nvim", "view", "emacs", "ed", "ex", "nano", "less", "more", "man", "gdb", "lldb", "ghci"),
        *("sudo", "doas", "su", "ssh", "scp", "sftp", "rsync", "eval", "source", ".", "exec", "xargs", "env", "nc"),
        *("npx", "bunx", "uvx", "pnpx", "pipx", "ncat", "socat", "telnet", "crontab", "at", "batch", "screen", "tmux"),
        *("sqlite3", "psql", "mysql", "make", "gmake", "just", "task", "command", "builtin", "parallel", "watch"),
    }
)
# Harmless without a rule: an "always" need not name them.
_NEEDS_NONE = frozenset({"cd", "pwd", "echo", "true", "false", ":", "test", "[", "exit", "sleep"})
_PLAIN = r"[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*"


def proposals(line: Line) -> tuple[str, ...]:
    """One specifier for each command of the line, all of which together would cover it; nothing where none should."""
    found: dict[str, None] = {}
    if line.doubts:
        return ()
    for simple in line.commands:
        if simple.words and simple.words[0].known and simple.words[0].text in _NEEDS_NONE and not simple.assigns:
            continue
        specifier = _specifier(simple)
        if not specifier:
            return ()
        found[specifier] = None
    return tuple(found) if len(found) <= MOST else ()


def _specifier(simple: Simple) -> str:
    words = simple.stripped
    if not words or simple.assigns or not words[0].known or GIVEN in words:
        return ""
    texts = [word.text for word in words]
    program, following = texts[0], texts[1] if len(texts) > 1 and words[1].known else ""
    name = program.rsplit("/", 1)[-1]
    wraps = simple.inside and not (simple.stripped != simple.words and simple.words[0].text in WRAPPERS)
    if wraps or re.sub(r"[\d.]+$", "", name) in _NEVER or name in _NEVER or runs_another(name, following):
        # A target of `make` is as exact as a command gets; a variable on its line can be any program.
        is_target = name in {"make", "just", "task"} and not any("=" in text for text in texts)
        return _exact(simple) if is_target and not wraps and program == name else ""
    if "/" in program or any(" ".join(texts[:size]) in _EXACT for size in (1, 2)):
        return _exact(simple)
    arity = next((_ARITY[key] for size in (2, 1) if (key := " ".join(texts[:size])) in _ARITY), 0)
    head = words[:arity]
    if not head or len(head) < arity or not all(word.known and re.fullmatch(_PLAIN, word.text) for word in head):
        return _exact(simple)
    prefix = " ".join(texts[:arity])
    if arity == 3 and len(words) == 3:
        return prefix
    return prefix + " *"


def _exact(simple: Simple) -> str:
    """The command as it was written, unless that would be a pattern or is not the same command every time."""
    if not all(word.known for word in simple.words) or simple.stripped != simple.words:
        return ""
    source = simple.source.strip()
    return "" if re.search(r"[*\n]|:\*$", source) else source
