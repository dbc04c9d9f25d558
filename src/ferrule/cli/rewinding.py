"""Going back to a prompt, in words: which prompts there are, and what would become of the files."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ferrule.agent.past import Past, Prompt
from ferrule.core.errors import ToolFailure
from ferrule.engine import Engine
from ferrule.output.clean import clean
from ferrule.workspace.entry_words import counted, is_folder
from ferrule.workspace.journal import Entry, Node, NodeChange
from ferrule.workspace.remade import left_out_words
from ferrule.workspace.rewind import Rewind
from ferrule.workspace.thread import when

MOST_PROMPTS = 30
_MOST_PATHS = 20
_LINE_CHARS = 70
_PLACES = {"here": "", "rewound": "rewound", "gone": "summed up"}


class Listed(NamedTuple):
    """A prompt that can be gone back to."""

    prompt: Prompt
    files: int
    """How many files were changed since."""

    def words(self) -> str:
        """When it was, its first line, and what has come of it."""
        facts = [_PLACES[self.prompt.place], f"{counted(self.files, 'file')} changed since" if self.files else ""]
        about = ", ".join(filter(None, facts))
        return f"{when(self.prompt.at)}  {_first_line(self.prompt.text)}{f'  ({about})' if about else ''}"


async def previewed(engine: Engine, number: int) -> Rewind:
    """What going back to before a prompt would do to the files. Raises `ToolFailure`."""
    try:
        return await engine.rewind_preview(number)
    except ToolFailure as error:
        if error.code != "no-history":
            raise
        return Rewind()


def listed(past: Past, entries: Iterable[Entry], thread: str) -> list[Listed]:
    """The prompts of a conversation, the newest last."""
    steps: dict[str, list[_Stepped]] = {}
    for entry in entries:
        if entry.thread == thread:
            for file in entry.files:
                steps.setdefault(file.path, []).append(_Stepped(entry.prompt, file.before, file.after))
            for node in (one for one in entry.nodes if not is_folder(one)):
                stepped = _Stepped(entry.prompt, _mark(node.before), _mark(node.after))
                steps.setdefault(node.path, []).append(stepped)
    return [Listed(prompt, sum(_differs(some, prompt.number) for some in steps.values())) for prompt in past.prompts()]


class _Stepped(NamedTuple):
    """What an entry made of a path: the marks of what was there, and of what is."""

    prompt: int
    before: object
    after: object


def _mark(node: Node | None) -> object:
    if node is None or (node.kind == "file" and not node.is_unkept):
        return None if node is None else node.content
    return node if not node.is_unkept else object()  # what was not kept is like nothing else


def _differs(steps: list[_Stepped], number: int) -> bool:
    """Is a path another one now than before a prompt?"""
    since = [step for step in steps if step.prompt >= number]
    return bool(since) and since[0].before != since[-1].after


def is_nothing(rewind: Rewind) -> bool:
    """Are the files, and git, as they were?"""
    return not any(rewind._replace(left_out=()))


def preview_rows(rewind: Rewind, shown: Callable[[str], str]) -> list[str]:
    """What would become of the files: counts, then path by path."""
    if is_nothing(rewind):
        return ["The files are as they were then."]
    kinds = [_kind(change) for change in _files(rewind)]
    counts = [f"{kinds.count(kind):,} {kind}" for kind in ("restored", "removed", "made again") if kind in kinds]
    rows = [f"Files: {', '.join(counts) or 'none changed'}."]
    named = [
        f"  {_kind(change):<10}  {clean(shown(change.path))}{'/' * is_folder(change)}{_lines(change)}"
        for change in rewind.changes
    ]
    rows += _some(named)
    if rewind.by_hand:
        rows.append(f"Changed by you since, and left alone unless you say otherwise: {len(rewind.by_hand):,}")
        rows += _some([f"  by hand     {clean(shown(path))}" for path in rewind.by_hand])
    if rewind.lost:
        rows.append(f"Cannot be brought back, because their bytes were not kept: {len(rewind.lost):,}")
        rows += _some([f"  lost        {clean(shown(path))}" for path in rewind.lost])
    if rewind.damaged:
        rows.append(f"Entries of the journal that are damaged, so that their changes stay: {rewind.damaged:,}")
    if rewind.left_alone:
        rows.append(f"Left alone, because their bytes are not kept: {len(rewind.left_alone):,}")
        rows += _some([f"  left alone  {clean(shown(path))}" for path in rewind.left_alone])
    if rewind.left_out:
        words = left_out_words(dict(rewind.left_out), shown)
        rows.append(f"As they are, because checkpoints leave them out: {clean(words)}.")
    rows += [
        f"Removed: the repository {clean(shown(path))}. Whether it comes back from what was kept is asked then."
        for path in rewind.repositories
    ]
    return [*rows, *map(clean, rewind.moved)]


def done_words(rewind: Rewind, number: int) -> str:
    """What a rewind has done to the files."""
    count = len(_files(rewind))
    return f"{counted(count, 'file')} {'is' if count == 1 else 'are'} as before prompt {number}."


def _files(rewind: Rewind) -> list[NodeChange]:
    """Without folders, unless there is nothing else."""
    return [change for change in rewind.changes if not is_folder(change)] or list(rewind.changes)


def _kind(change: NodeChange) -> str:
    if change.after is None:
        return "removed"
    return "made again" if change.before is None else "restored"


def _lines(change: NodeChange) -> str:
    return f"  +{change.added} -{change.removed}" if change.added or change.removed else ""


def _some(rows: list[str]) -> list[str]:
    more = [f"  … and {len(rows) - _MOST_PATHS:,} more"] if len(rows) > _MOST_PATHS else []
    return [*rows[:_MOST_PATHS], *more]


def _first_line(text: str) -> str:
    words = " ".join(clean(text.strip().split("\n", 1)[0]).split())
    return (words if len(words) <= _LINE_CHARS else words[: _LINE_CHARS - 1] + "…") or "(nothing)"
