"""Which commands change how later ones of the same line run, so that their words no longer say what they do."""

import os
import re
from collections.abc import Sequence
from functools import cache

from ferrule.permissions.shell.line import Word

# Each of these can put another program, another value or another descriptor under what follows.
CHANGES = frozenset(
    {
        *("alias", "unalias", "export", "declare", "typeset", "local", "readonly", "unset", "set", "shopt", "enable"),
        *("trap", "eval", "source", ".", "exec", "hash", "bind", "complete", "compgen", "compopt", "ulimit", "umask"),
        *("mapfile", "readarray", "getopts", "let", "fc", "coproc", "history", "suspend", "logout"),
    }
)
LATER = "`{}` changes how later commands run"
_SUBSCRIPT = "`{}` evaluates a name that is not a plain one"


@cache
def _own_name() -> re.Pattern[str]:
    return re.compile(r"(?!.*(?:proxy|npm_config|histchars|auto_resume))[a-z][a-z0-9_]*")


def harmless_name(name: str) -> bool:
    """Is a variable of this name one that neither bash nor a program looks at?

    A name that is in the environment already would be handed on to programs with its new value.
    """
    return _own_name().fullmatch(name) is not None and name not in os.environ


_OBEYED = (
    r"(?:BASH|COMP|HIST|READLINE|LC|MAIL|PROMPT|OPT|EPOCH|LD|DYLD|GIT|SSH|GPG|NPM|NODE|PYTHON|PIP|UV|CARGO|RUST|GO|JAVA|JDK"
    r"|MAKE|SSL|CURL|HTTP|HTTPS|ALL|NO|FTP|XDG|DOCKER|TERM|TMP|TEMP|PERL|RUBY|GEM|BUNDLE|FERRULE|CLAUDE|GCC|ZIP|XZ|TAR|GREP"
    r"|LESS|RIPGREP|AWK|POSIX)(?:_?[A-Z0-9_]*)"
    r"|CDPATH|COLUMNS|COPROC|DIRSTACK|ENV|EUID|UID|EXECIGNORE|FCEDIT|FIGNORE|FUNC\w*|GLOB\w*|GROUPS|HOME|HOST\w*|IFS"
    r"|IGNOREEOF|INPUTRC|INSIDE_EMACS|EMACS|LANG\w*|LINENO|LINES|MACHTYPE|MAPFILE|OLDPWD|OSTYPE|PATH|PIPESTATUS|PPID|PS\d|PWD"
    r"|RANDOM|SRANDOM|REPLY|SECONDS|SHELL|SHELLOPTS|SHLVL|TIMEFORMAT|TMOUT|CHILD_MAX|USER|LOGNAME|PAGER|EDITOR|VISUAL|CI|TZ"
)
"""Names in capitals that bash looks at, or that may be in a command's environment though they are not in ours."""


def may_be_set(name: str) -> bool:
    """Is a variable of this name the line's own business: one that is not handed on, and that bash does not look at?"""
    if harmless_name(name):
        return True
    own = re.fullmatch(r"[A-Z][A-Z0-9_]*", name) and not re.fullmatch(_OBEYED, name)
    return bool(own) and name not in os.environ


def assigned(name: str) -> str:
    """Why an assignment that stays is a doubt, or nothing."""
    return "" if may_be_set(name) else f"it sets {name}, which later commands may obey"


def stops_early(words: Sequence[Word]) -> bool:
    """Is it a `set` that only makes the line stop where something fails? With `-x` it would tell variables."""
    texts = [word.text if word.known else "" for word in words]
    return re.fullmatch(r"set(?: -[eu]+| -[eu]*o (?:pipefail|errexit|nounset))+", " ".join(texts)) is not None


def effect(words: Sequence[Word]) -> str:
    """Why a command is a doubt about the whole line, or nothing."""
    if not words or not words[0].known:
        return ""
    name, rest = words[0].text, words[1:]
    if stops_early(words):
        return ""
    if name in CHANGES:
        return LATER.format(name)
    match name:
        case "read":
            return _read(rest)
        case "printf" if rest and rest[0].known and rest[0].text.startswith("-v"):
            return LATER.format("printf -v")
        case "test" | "[" if any(word.known and word.text in {"-v", "-R"} for word in rest):
            return _SUBSCRIPT.format(name)
        case "wait" if any(not word.known or word.text.startswith("-p") for word in rest):
            return LATER.format("wait -p")
    return ""


def _read(rest: Sequence[Word]) -> str:
    names: list[str] = []
    skip = False
    for word in rest:
        if skip:
            skip = False
        elif not word.known:
            return LATER.format("read")
        elif word.text.startswith("-") and not names:
            if "a" in word.text:
                return LATER.format("read -a")
            skip = word.text[-1] in "dinNptu"
        else:
            names.append(word.text)
    return next((why for name in names if (why := assigned(name))), "")
