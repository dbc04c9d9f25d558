"""How Amp reads earlier threads."""

from ferrule.core.threads import ThreadFound, ThreadRead, ThreadsFound

_NONE = "No threads found. Use fewer or other words; only threads of this workspace are looked at."


def found(outcome: ThreadsFound) -> str:
    """A block for each thread."""
    if not outcome.found:
        return _NONE
    left = outcome.total - len(outcome.found)
    more = [f"{left} more; give a larger limit, or more words."] if left else []
    return "\n\n".join([*map(_block, outcome.found), *more])


def _block(one: ThreadFound) -> str:
    rows = [f"{one.id}: {one.title}" if one.title else one.id]
    rows.append(f"{one.when}, {_counted(one.turns, 'turn')}" + (f", in {one.workspace}" if one.workspace else ""))
    if one.excerpt:
        rows.append(one.excerpt)
    if one.files:
        rows.append(f"files: {', '.join(one.files)}" + (f" and {one.more_files} more" if one.more_files else ""))
    return "\n".join(rows)


def read(outcome: ThreadRead) -> str:
    """The messages below a line about them; at the end, how to get what was left out."""
    about = [outcome.when, _counted(outcome.messages, "message"), outcome.workspace, outcome.model]
    head = f"{outcome.id}: {outcome.title}\n{', '.join(filter(None, about))}"
    blocks = [head, outcome.text or "It has no messages."]
    if outcome.left_out:
        first = outcome.left_out.partition(",")[0]
        blocks.append(
            f"Left out as less relevant: messages {outcome.left_out}. To read some of them, name them in the goal, "
            f'for example "messages {first}".'
        )
    return "\n\n".join(blocks)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
