"""What the words of a command name: which program it is, and which files a word leads to."""

import posixpath
import re

_SYSTEM = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/")
"""Folders of programs that only the machine's owner writes."""


def program(text: str) -> tuple[str, str]:
    """The program's plain name, and why it may be another program of that name."""
    if "/" not in text:
        return text, "" if text else "there is no program of that name"
    folder, name = posixpath.split(text)
    if f"{folder}/" in _SYSTEM:
        return name, ""
    return name, f"{text} is a file that could be any program"


def named(kind: str, text: str) -> tuple[str, ...]:
    """The paths that an operand of this kind may name."""
    if text in {"", "-"} or kind in {"text", "url"}:
        return ()
    if kind != "rev":
        return (text,)
    if re.match(r":(?:[!^]|\([^)]*\bexclude\b)", text):
        return ()  # what git leaves out
    # git takes `rev`, `rev:path`, `:path`, `from..to`, `:(magic)path` and plain paths; each part may be a file.
    bare = re.sub(r"^:(?:\([^)]*\)|[!^/]+)", "", text)
    parts = [bare, *re.split(r"\.\.\.?", bare)] if not bare.startswith(("..", "./", "/")) else [bare]
    parts += [part.partition(":")[2] for part in parts]
    return tuple(dict.fromkeys(part for part in parts if part))


def patterns(text: str) -> tuple[str, ...]:
    """The patterns of paths that such an operand of git's may be."""
    return tuple(part for part in named("rev", text) if re.search(r"[*?\[]", part) and ".." not in part)


def odd_address(text: str) -> str:
    """Why an address leads to more than a host of the network; empty where it does not."""
    if "::" in text and "[" not in text:
        return f"{text} names a program that fetches"
    scheme, mark, _ = text.partition("://")
    if mark and scheme.lower() not in {"http", "https", "ssh", "git", "git+ssh", "rsync"}:
        return f"{text} is no address of the network"
    return f"{text} could become a flag" if text.startswith("-") or "@-" in text or "://-" in text else ""


def below(folder: str, path: str) -> str:
    """The path as it is from outside of the folder that the program goes to."""
    return posixpath.join(folder, path) if folder else path
