"""Promises: answers that say what will be done, or show it, where nothing was done."""

import os
import re
from collections.abc import Sequence

_DOING = (
    "add|apply|begin|call|change|check|correct|create|debug|delete|edit|examine|execute|find|fix|implement|inspect"
    "|investigate|list|look|make|mend|modify|move|open|patch|proceed|read|refactor|remove|rename|replace|review|rewrite"
    "|run|search|see|start|test|try|update|use|view|write"
)
_WILL = r"(?:i(?:'ll|(?:\s+a|')m\s+going\s+to|\s+will|\s+shall|\s+need\s+to)|let\s+me|let's|we\s+(?:will|need\s+to))"
_FIRST = r"(?:(?:now|first|then|also|just|next|start\s+by|begin\s+by|proceed\s+to)\s+)*"
_PROMISE = re.compile(rf"(?i)\b{_WILL}\s+{_FIRST}(?:{_DOING})(?:ing)?\b")
_ONLY_WORDS = re.compile(
    r"(?i)\A\W*(?:(?:please|now|then|first|just|can you|could you)\s+)*(?:plan|explain|describe|tell|say|answer|how|why"
    r"|what|which|where|who|when|is|are|does|summari[sz]e|suggest|propose|show|discuss|find|list|review|read|look"
    r"|analy[sz]e|count|search|compare|remember|think|consider)\b"
    r"|\b(?:don't|do not|without)\s+(?:chang|edit|touch|writ|do|mak)|\b(?:would you|you would|leave (?:it|them))\b"
)
"""In a prompt: words are all that is wanted."""
_COMMAND = re.compile(
    r"(?i)\W*(?:(?:please|now|then|first|just|can you|could you)\s+)*"
    r"(?:run|execute|start|install|build|compile|commit|push|delete|remove the file|move|copy|rename the file|test)\b"
)
_ASKS = re.compile(r"(?i)\b(?:if you|would you like|do you want|shall i|should i|let me know|once you|when you)\b")
_CODE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ ]{0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"[\w./-]*\w\.\w{1,8}\b|\b(?:Makefile|Dockerfile)\b")
_CHECKS = re.compile(r"(?i)(?<![a-z])(?:tests?|checks?|spec)(?![a-z]).*\.\w+$")
_NUMBERED = re.compile(r"[ ]*(\d+)(?:\t|→|: ?|\| ?)")
_LAST_CHARS = 400

UNCHANGED = (
    "[No file was changed yet. If the user wants {file} changed, do it now with one call, in this form:]\n{form}\n"
    "[If nothing is to be changed, say so in one sentence.]"
)
UNWRITTEN = (
    "[No file was changed yet. If the user wants it changed, {again}. If nothing is to be changed, say so in one "
    "sentence.]"
)
NOT_DONE = (
    "[You have said what you would do, and made no call: nothing was done. Make the call now. If there is nothing to "
    "do, say so in one sentence.]"
)
NOT_EDITED = (
    "[Your last edit failed, and the file is as it was. Make it again: {again}. Or say in one sentence why it cannot "
    "be done.]"
)
EDIT_AGAIN = "the old text must be whole lines, copied from the file exactly"
AGAIN = "edit the file again"
WRITE_AGAIN = "write {name} and a code block with all of the new file"
"""What a model does that writes files out in its answer."""
WISH = "Write {name} with this mended or done: {prompt}"
WISH_ABOVE = "Write {name} with the wish above done."

NEXT = {
    "edited": "[The file is changed. If all is done, say in one sentence what you did, without another call.]",
    "edited, checks": "[The file is changed. Now run the check: {names}]",
    "ran": "[That went well. If all is done, say in one sentence what you did, without another call.]",
    "ran-failed": "[That failed. If your change is wrong, {again}, and then run the check again.]",
}
"""What a small model is told to do next, by what came of its last call: left to itself, it goes on and on."""
UNCHECKED = (
    "[You have changed a file and run nothing since. {names} may be a check of it: run that now with a command. If it "
    "fails, edit again.]"
)
NOT_PASSED = (
    "[The last command failed. If your change is wrong, read why, and {again}; then run the command again. If the "
    "failure has nothing to do with it, say so in one sentence.]"
)


def is_promise(answer: str, prompt: str, workspace: str, *, has_changed: bool) -> bool:
    """Does an answer without a call leave undone what was asked for?

    It does where it ends by saying what comes next; and where it shows code for a file that the prompt names, while
    nothing was changed. A question is answered by words, and who asks back waits for an answer.
    """
    words = answer.strip().replace("\u2019", "'")
    if not words or words.endswith("?") or wants_words(prompt):
        return False
    last = _CODE.sub("", words).strip()[-_LAST_CHARS:]
    last = re.split(r"\n\s*\n", last)[-1]
    if (_PROMISE.search(last) or words.endswith(":")) and not _ASKS.search(last):
        return True
    return not has_changed and _CODE.search(words) is not None and bool(named_files(prompt, workspace))


def wants_words(prompt: str) -> bool:
    """Is an answer in words all that a prompt asks for?"""
    return prompt.rstrip().endswith("?") or _ONLY_WORDS.search(prompt) is not None


def wants_command(prompt: str) -> bool:
    """Does a prompt ask first of all for something to be run?"""
    return _COMMAND.match(prompt) is not None


def named_files(prompt: str, workspace: str, most_bytes: int | None = None) -> Sequence[str]:
    """The files of the workspace that a prompt names, without those that are larger."""
    found = dict.fromkeys(_FILE.findall(prompt))
    paths = {name: os.path.join(workspace, name) for name in found if not os.path.isabs(name) and ".." not in name}
    return [
        name
        for name, path in paths.items()
        if os.path.isfile(path) and (most_bytes is None or os.path.getsize(path) <= most_bytes)
    ]


def checks_in(workspace: str) -> Sequence[str]:
    """Files beside the work whose names say that they check it."""
    try:
        names = sorted(os.listdir(workspace))
    except OSError:
        return []
    return [name for name in names if _CHECKS.search(name) and os.path.isfile(os.path.join(workspace, name))][:3]


def without_numbers(text: str) -> str:
    """A file as it stands, of what a tool shows with the numbers of its lines; any other text as it is."""
    lines = text.splitlines()
    numbered = [_NUMBERED.match(line) for line in lines]
    if not lines or any(found is None or int(found[1]) != at for at, found in enumerate(numbered, 1)):
        return text
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines).rstrip("\n")
