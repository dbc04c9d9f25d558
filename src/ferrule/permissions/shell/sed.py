"""A reader of sed scripts that knows the commands which only print, and no others.

It takes each script as GNU sed does, and refuses what another sed could take apart at another place.
"""

import re

_ALONE = ["p", "P", "=", "n", "N", "d", "D", "g", "G", "h", "H", "x", "z", "F"]
_NUMBERED = ["q", "Q", "l"]
_BRANCHES = ["b", "t", "T"]
_REACHING = {
    "w": "writes a file",
    "W": "writes a file",
    "e": "runs a program",
    "r": "reads a file",
    "R": "reads a file",
}


class Refused(Exception):  # noqa: N818 - a state, for the caller alone
    """Why a script is not known to be plain."""


def refusal(script: str) -> str:
    """Why the script may do more than print; empty where it only prints."""
    try:
        _Script(script).commands()
    except Refused as error:
        return str(error)
    return ""


class _Script:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def commands(self) -> None:
        while self._skip(" \t\n;"):
            if self._take(r"\}"):
                self.depth -= 1
                if self.depth < 0:
                    raise Refused("sed's script has a bracket too many")
                self._end()
                continue
            self._addresses()
            self._command()
        if self.depth:
            raise Refused("sed's script lacks a bracket")

    def _skip(self, blanks: str) -> bool:
        while self.at < len(self.text) and self.text[self.at] in blanks:
            self.at += 1
        return self.at < len(self.text)

    def _take(self, pattern: str) -> str | None:
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group()

    def _addresses(self) -> None:
        if self._address():
            self._skip(" \t")
            if self._take(","):
                self._skip(" \t")
                if self._take(r"[+~]\d+") is None and not self._address():
                    raise Refused("sed's script has an address that is not known")
        self._skip(" \t")
        while self._take("!"):
            self._skip(" \t")

    def _address(self) -> bool:
        if self._take(r"\d+(~\d+)?") or self._take(r"\$"):
            return True
        if self._take("/"):
            self._until("/")
        elif opened := self._take(r"\\[^\n\\]"):
            self._until(opened[1])
        else:
            return False
        self._take("[IM]*")
        return True

    def _command(self) -> None:
        letter = self._take(r"(?s:.)")
        if letter in _REACHING:
            raise Refused(f"sed's {letter} command {_REACHING[letter]}")
        if letter == "{":
            self.depth += 1
        elif letter in {"s", "y"}:
            self._replacement(letter)
        elif letter in _ALONE:
            self._end()
        elif letter in _NUMBERED:
            self._take(r"[ \t]*\d*")
            self._end()
        elif letter == ":":
            if not self._take(r"[ \t]*\w+"):
                raise Refused("sed's script has a label that is not known")
            self._end()
        elif letter in _BRANCHES:
            self._take(r"[ \t]*\w*")
            self._end()
        else:
            raise Refused(f"sed's {letter or 'empty'} command is not known to be plain")

    def _replacement(self, letter: str) -> None:
        delimiter = self._take(r"[^\n\\]")
        if delimiter is None:
            raise Refused("sed's script lacks a delimiter")
        self._until(delimiter)
        self._until(delimiter)
        if letter == "s":
            self._take(r"[gpiImM0-9]*")
            flag = self.text[self.at : self.at + 1]
            if flag == "w":
                raise Refused("sed's w flag writes a file")
            if flag == "e":
                raise Refused("sed's e flag runs a program")
        self._end()

    def _until(self, delimiter: str) -> None:
        """To the end of a pattern. Some seds do not end one inside of brackets: that is refused."""
        begin = self.at
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == "\\":
                self.at += 1
                # Behind a backslash the line may go on in a replacement; in a pattern that is an error.
            elif letter == delimiter:
                body = self.text[begin : self.at]
                self.at += 1
                if _open_bracket(body):
                    raise Refused("sed's script has its delimiter inside of brackets")
                return
            elif letter == "\n":
                break
            self.at += 1
        raise Refused("sed's script has a pattern without an end")

    def _end(self) -> None:
        """A command ends at a semicolon, a new line, a closing bracket or the end of the script."""
        self._skip(" \t")
        if self.at < len(self.text) and self.text[self.at] not in ";\n}":
            raise Refused("sed's script goes on where a command should end")


def _open_bracket(body: str) -> bool:
    """Does the text end inside of a list of characters?"""
    at = 0
    while at < len(body):
        if body[at] == "\\":
            at += 2
        elif body[at] == "[":
            # The first character of a list, after `^`, does not end it; `[:alpha:]` and its like are lists inside.
            close = re.compile(r"\[\^?\]?(?:\[[:.=]\w{1,20}[:.=]\]|[^\]])*\]").match(body, at)
            if close is None:
                return True
            at = close.end()
        else:
            at += 1
    return False
