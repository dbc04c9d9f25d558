"""Parse command lines, and propose rules for them.

Every command that bash would run is listed, even if something else is wrong with the line, so that rules that
deny always apply. Any uncertainty about the line as a whole is a doubt, and a line with a doubt is never covered
by rules.

The grammar is more lenient than bash: it takes a carriage return for a blank, joins tokens that bash separates
and separates tokens that bash joins. So every token of the tree, and the text between tokens, is checked against
bash's own rules. Nothing is parsed again here: a token that bash might read in another way is a doubt about the
whole line.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ferrule.permissions.shell.line import (
    AMBIGUOUS,
    ATOMS,
    COMPLICATED,
    CONTAINERS,
    GIVEN,
    KEYWORDS,
    LOOSE,
    OPERATORS,
    PARTS_OF_COMMANDS,
    SEQUENCES,
    TIGHT,
    TOO_WRAPPED,
    UNKNOWN,
    WORDS_ONLY,
    WRAPPERS,
    CommandLine,
    Simple,
    Tokens,
    Word,
    pattern,
    strip,
    tree,
)
from ferrule.permissions.shell.nested import SHELLS, Argv, Script, inside, runs_another
from ferrule.permissions.shell.walk import ShellTreeWalker

if TYPE_CHECKING:
    from tree_sitter import Node


_ENDS_LINE = frozenset({"comment", "heredoc_end", "heredoc_body"})


class Seams:
    """One look over a line's tree."""

    LOST = frozenset({AMBIGUOUS, COMPLICATED, UNKNOWN})
    """The doubts with which a command may be missing from the tree."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._tokens = Tokens(source)

    @property
    def doubts(self) -> dict[str, None]:
        return self._tokens.doubts

    def check(self, root: "Node") -> None:
        """Look at every token below; what is wrong is in `doubts` then."""
        self._tokens.inner.append(root)
        while self._tokens.inner and not self.doubts:
            stream = self._tokens.inner.pop()
            end = self._stream(stream)
            if stream is root and not pattern("gap").fullmatch(self.source[end:]):
                self._tokens.doubt()

    def _stream(self, stream: "Node") -> int:
        """The tokens of one list of commands, those in substitutions left for later."""
        top = stream.type == "program"
        previous: tuple[bytes, str] = (b";", "")
        end = 0 if top else stream.start_byte
        nodes = list(reversed(stream.children))
        self._siblings(stream)
        while nodes and not self.doubts:
            node = nodes.pop()
            kind = node.type
            if node.is_named and kind not in ATOMS:
                if kind not in CONTAINERS:
                    self._tokens.doubt(UNKNOWN)
                self._siblings(node)
                if kind == "heredoc_redirect":
                    self._tokens.here_document(node)
                nodes.extend(reversed(node.children))
                continue
            if kind in {"heredoc_body", "heredoc_end"}:
                end, previous = node.end_byte, (b"", kind)
                continue
            text = self.source[node.start_byte : node.end_byte]
            first = not top and end == stream.start_byte
            if not first:
                self._seam(previous, self.source[end : node.start_byte], text)
            if node.is_named:
                self._tokens.atom(node)
            elif text.startswith(b";") and len(text) > 1 and (not node.parent or node.parent.type != "case_item"):
                self._tokens.doubt()
            elif not first and node.end_byte != stream.end_byte and text not in OPERATORS and text not in KEYWORDS:
                self._tokens.doubt(UNKNOWN)
            # What opens a substitution is like an operator: a word may follow at once.
            end, previous = node.end_byte, ((b";", "") if first else (text, kind))
        return end

    def _siblings(self, node: "Node") -> None:
        """Newlines end commands: none may stand inside of what the tree takes for one."""
        kind = node.type
        before: Node | None = None
        for child in node.children:
            if kind in WORDS_ONLY and child.is_named and child.type not in PARTS_OF_COMMANDS:
                self._tokens.doubt()
            if before is not None:
                newline = b"\n" in self.source[before.end_byte : child.start_byte].replace(b"\\\n", b"")
                # The branches of an `if` end with what ends their last command.
                joined = before.is_named and child.is_named and kind in SEQUENCES and before.type != "elif_clause"
                after_operator = kind in {"list", "pipeline"} and not before.is_named
                if newline:
                    allowed = kind in LOOSE or after_operator or child.type in {"heredoc_body", "heredoc_end"}
                    if not allowed and before.type != "heredoc_body" and child.type != "comment":
                        self._tokens.doubt()
                elif joined and child.type != "comment":
                    self._tokens.doubt()
                if kind in TIGHT and child.type == "comment":
                    self._tokens.doubt()
            before = child

    def _seam(self, previous: tuple[bytes, str], gap: bytes, text: bytes) -> None:
        """What stands between two tokens: would bash too end the one there and begin the other?"""
        was, was_kind = previous
        if was in {b">&", b"<&"} and text.startswith(b"-"):
            # The dash alone closes the descriptor; what follows it is a word of its own.
            self._tokens.doubt()
        if gap:
            fine = pattern("gap").fullmatch(gap) and gap.replace(b"\\\n", b"") and was_kind != "file_descriptor"
            ended = was_kind not in _ENDS_LINE or gap.startswith(b"\n")
            if not fine or not ended:
                self._tokens.doubt()
        elif was_kind in _ENDS_LINE or not _touch(was, was_kind, text):
            self._tokens.doubt()


def _touch(was: bytes, was_kind: str, text: bytes) -> bool:
    """May these two stand side by side without a blank and still be two tokens?"""
    operator = text in OPERATORS
    if was not in OPERATORS:
        if not operator:
            return text == b"`"
        number = was.isdigit() and was_kind != "file_descriptor"
        return text != b"(" and not (text[:1] in b"<>" and (number or was.endswith(b"}")))
    if not operator:
        # `<>(a)` is the operator `<>` and a bracket, not `<` and a substitution.
        return was not in {b"<&-", b">&-"} and not (was[-1:] in b"<>&|" and text[:1] in b"<>")
    if text == b"(":
        return was in {b";", b"&", b"|", b"&&", b"||", b"|&", b";;"}
    if text[:1] in b"<>" and was in {b"(", b";", b"&&", b"||"}:
        return True
    return was == b")" or (was.endswith(b";") and text[:1] not in b";&")


CHARACTERS = 10_000
READ_CHARACTERS = 100_000
"""A longer one is not even read: it is refused by its length alone, and its words are only split."""
PARTS = 200
NESTED = 6

_COMMANDS_IN = "COMMAND|PAGER|EDITOR|VISUAL|SHELL|BROWSER|ASKPASS|DIFF|SSH|RSH"
"""How variables are named that hold a command line which a program runs."""

_NOTHING: Mapping[str, str] = {}
BROKEN = "it does not parse"
CONTROL = "it has control characters or hidden ones, which bash does not read as they look"
TOO_LONG = f"it is longer than {CHARACTERS} characters"
TOO_MANY = f"it has more than {PARTS} commands"


@cache
def _control() -> re.Pattern[str]:
    # Blanks and marks of direction that are not ASCII among them: some builds of bash split words at the former.
    return re.compile(
        "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\xa0\\xad\\u061c\\u1680\\u180e\\u2000-\\u200b\\u200e\\u200f\\u2028-\\u202f"
        "\\u205f-\\u206f\\u3000\\ufeff\\ud800-\\udfff]"
    )


def parse(command: str, *, cwd: str, roots: Sequence[str], known: Mapping[str, str] = _NOTHING) -> CommandLine:
    """Every simple command of the line, and every doubt about it; `known` are variables of its environment."""
    values = {name: Word(value, single=True) for name, value in known.items()}
    commands, doubts = _read(command, os.path.normpath(cwd), nested=0, known=values)
    return CommandLine(tuple(commands), tuple(doubts), tuple(roots))


def _read(
    command: str, cwd: str | None, *, nested: int, known: Mapping[str, Word]
) -> tuple[list[Simple], dict[str, None]]:
    doubts: dict[str, None] = {}
    if len(command) > CHARACTERS:
        doubts[TOO_LONG] = None
    if _control().search(command):
        doubts[CONTROL] = None
        command = _control().sub(" ", command)
    if len(command) > READ_CHARACTERS:
        return list(_split(command)), doubts
    source = command.encode(errors="replace")
    root = tree(source)
    walker = ShellTreeWalker(source, known)
    walker.walk(root, None if cwd is None else frozenset({cwd}))
    commands = walker.found.commands
    doubts |= walker.found.doubts
    if root.has_error:
        doubts[BROKEN] = None
    else:
        seams = Seams(source)
        seams.check(root)
        doubts |= seams.doubts
    if len(commands) > PARTS:
        doubts[TOO_MANY] = None
    commands = [_fill_inner(simple, doubts, nested, known) for simple in commands]
    if nested < NESTED and any(map(_takes_code, commands)):
        for text in _find_shell_input(commands):
            commands += _read(text, None, nested=nested + 1, known=known)[0]
    if root.has_error or doubts.keys() & Seams.LOST:
        # What bash would make of it is not in the tree: a rough look, so that rules that deny see the words.
        seen = {simple.source for simple in commands}
        commands += [simple for simple in _split(command) if simple.source not in seen]
    return commands, doubts


def _takes_code(simple: Simple) -> bool:
    """Is it a shell, or does it read more commands?"""
    words = simple.stripped or simple.words
    return bool(words) and os.path.basename(words[0].text) in SHELLS | {"source", ".", "at", "batch"}


def _find_shell_input(commands: Sequence[Simple]) -> list[str]:
    """The texts of a line that a shell in it could be handed as commands."""
    said = [simple.words[1:] for simple in commands if simple.words and simple.words[0].text in {"echo", "printf"}]
    texts = [" ".join(word.text for word in words if not word.text.startswith("-")) for words in said]
    given = [one for simple in commands for one in simple.redirects if one.operator in {"<<", "<<<"}]
    return [*texts, *(one.target.text for one in given)]


def _fill_inner(simple: Simple, doubts: dict[str, None], nested: int, known: Mapping[str, Word]) -> Simple:
    """The command with those that it runs by itself."""
    found = list(inside(simple.words, simple.redirects))
    found += [Script(value.text, sure=False) for name, value in simple.assigns if re.search(_COMMANDS_IN, name)]
    if not found:
        return simple
    if nested >= NESTED:
        doubts[TOO_WRAPPED] = None
        return simple
    inner: list[Simple] = []
    for one in found:
        cwd = None if one.moves else simple.cwd
        if isinstance(one, Script):
            commands, more = _read(one.text, cwd, nested=nested + 1, known=known)
            doubts |= more if one.sure else {}
            inner += commands
        else:
            inner.append(_build_simple(one, cwd, doubts, nested + 1, known))
    return simple._replace(inside=tuple(_flatten(inner)))


def _build_simple(
    argv: Argv, cwd: str | None, doubts: dict[str, None], nested: int, known: Mapping[str, Word]
) -> Simple:
    stripped = strip(argv.words)
    if stripped is None:
        doubts[TOO_WRAPPED] = None
    made = Simple(
        words=argv.words,
        source=" ".join(word.text for word in argv.words),
        assigns=argv.assigns,
        cwd=cwd,
        stripped=argv.words if stripped is None else stripped,
    )
    return _fill_inner(made, doubts, nested, known)


def _flatten(commands: Iterable[Simple]) -> Iterable[Simple]:
    """Outermost first, each once."""
    for simple in commands:
        yield simple._replace(inside=())
        yield from simple.inside


def _split(command: str) -> Iterable[Simple]:
    """The line cut at everything that could end a command, quotes or not."""
    for piece in re.split(r"[;&|()`\n{}]|\$\(|<\(|>\(", command[:READ_CHARACTERS]):
        texts = re.sub(r"['\"\\]", "", piece).split()
        if texts:
            words = tuple(Word(text, known=False, start=text) for text in texts)
            yield Simple(words=words, source=piece.strip(), stripped=words)


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
