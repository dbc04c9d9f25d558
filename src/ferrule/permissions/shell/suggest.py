"""The rules that "always" would save: the narrowest prefix that is of use, or the exact command, or nothing."""

import re
from collections.abc import Iterator

from ferrule.permissions.shell.line import GIVEN, WRAPPERS, CommandLine, Simple
from ferrule.permissions.shell.nested import SHELLS, runs_another

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
_MOST_CHARS = 400
"""A longer line is no rule that a person reads."""
_LEADS = frozenset({"uv run", "poetry run", "pdm run", "pipenv run", "npx", "pnpm exec", "yarn exec", "bundle exec"})
_RIGHTS = frozenset(
    {"sudo", "doas", "su", "ssh", "eval", "source", ".", "exec", "pkexec", "runuser", "trap", "at", "batch"}
)
_MAKERS = frozenset({"make", "gmake", "just", "task", "npx", "uvx", "bunx", "pnpx", "pipx"})
_INTERPRETERS = frozenset(
    {"python", "pypy", "ipython", "node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua", "Rscript"}
)


def proposals(line: CommandLine) -> tuple[str, ...]:
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


def attempts(line: CommandLine, command: str) -> Iterator[tuple[str, ...]]:
    """Sets of specifiers that may cover the line, the most useful first; the last one names it to the letter.

    Nothing where it is not certain what the line runs, or where a shell or an interpreter runs what it is handed.
    """
    if line.doubts or not command.isprintable() or len(command) > _MOST_CHARS or any(map(is_handed, line.commands)):
        return
    asked = [one for one in line.commands if not (one.words and one.words[0].text in _NEEDS_NONE and not one.redirects)]
    chosen = [(_specifier(one) or _environment_specifier(one), _to_the_letter(one)) for one in dict.fromkeys(asked)]
    picked = [useful or letter for useful, letter in chosen]
    for at, (_, letter) in enumerate([("", ""), *chosen]):
        if at:
            picked[at - 1] = letter or picked[at - 1]
        found = tuple(dict.fromkeys(filter(None, picked)))
        if 0 < len(found) <= MOST:
            yield found
    yield (_escape(command.strip()),)


def is_handed(simple: Simple) -> bool:
    """Does it, or a command that it runs, run whatever comes in, or with the rights of somebody else?"""
    for one in (simple, *simple.inside):
        words = one.stripped or one.words
        name = re.sub(r"[\d.]+$", "", words[0].text.rsplit("/", 1)[-1]) if words else ""
        operands = [word.text for word in words[1:] if not word.text.startswith("-")]
        flags = [word.text for word in words[1:] if word.text.startswith("-") and word.text != "--"]
        reads = (not operands and not flags) or "-" in flags or "-s" in flags
        if (words and not words[0].known) or name in _RIGHTS or (name in SHELLS | _INTERPRETERS and reads):
            return True
    return False


def _environment_specifier(simple: Simple) -> str:
    """`uv run pytest *` for a program of the project's environment, which is not one that runs anything."""
    words = [word.text for word in simple.words]
    size = next((size for size in (2, 1) if " ".join(words[:size]) in _LEADS), 0)
    arity = _ARITY.get(words[size], 0) if size and len(words) > size and not simple.assigns else 0
    exact = any(" ".join(words[size : size + count]) in _EXACT for count in (1, 2))
    head = simple.words[: size + arity]
    plain = len(head) == size + arity and all(word.known and re.fullmatch(_PLAIN, word.text) for word in head)
    return " ".join(words[: size + arity]) + " *" if arity and plain and not exact else ""


def _to_the_letter(simple: Simple) -> str:
    """The command with all its words, where these are the same wherever it stands."""
    if not simple.words or simple.assigns or simple.redirects or not all(word.known for word in simple.words):
        return ""
    # What these do with what is piped to them is told by the whole line alone.
    names = {(simple.stripped or simple.words)[0].text.rsplit("/", 1)[-1], simple.words[0].text}
    if names & (_NEVER - SHELLS - _INTERPRETERS - _MAKERS):
        return ""
    source = simple.source.strip()
    if re.search(r"[$`]", source):
        # As a text it could mean other words elsewhere.
        texts = [word.text for word in simple.words]
        return _escape(" ".join(texts)) if all(re.fullmatch(_PLAIN, text) for text in texts) else ""
    return _escape(source)


def _escape(text: str) -> str:
    return re.sub(r"([\\*])", r"\\\1", text)


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
