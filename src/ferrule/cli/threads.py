"""Implement `ferrule threads`: list, show, search, rename, export, rewind and delete stored conversations.

A thread that a session has open is not deleted. The todos of a thread are deleted with it. An export is Markdown
to read, or JSON with everything that is stored.
"""

import contextlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click
import msgspec

from ferrule.agent.session import Claim
from ferrule.cli.options import finish, thread_ids
from ferrule.cli.rewind import RewindOptions, rewind_thread
from ferrule.cli.show import DONE, FAILED, columns, escape_json, format_json, paint
from ferrule.core.errors import ToolFailure
from ferrule.output import clean
from ferrule.settings import load_settings, state_folder
from ferrule.system.sqlite import UnusableError
from ferrule.tools.threads import (
    Item,
    Message,
    Thread,
    ThreadCall,
    ThreadFinding,
    ThreadMetadata,
    messages,
    render,
    when,
)
from ferrule.tools.threads.store import ThreadStore
from ferrule.tools.todos import Todos

_SHORT_CHARS = 10
"""`T-` and the first part of an id, which is mostly enough."""
_MODEL_CHARS = 30
_LEAST_TITLE_CHARS = 20

_WORKSPACE = click.option(
    "-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help="The project (default: this folder)."
)
_ALL = click.option("--all", "every", is_flag=True, help="Those of other workspaces too.")
_CHILDREN = click.option("--children", is_flag=True, help="Those of subagents too.")
_LIMIT = click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")


@click.group("threads", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, search, name, export, rewind and delete the conversations that are kept.

    \b
    An id may be shortened to a beginning that only one thread has.

    \b
    Examples:
      ferrule threads
      ferrule threads search parser file:src/app.py after:7d
      ferrule threads show T-5928a90d
      ferrule threads export T-5928a90d --format md -o talk.md
      ferrule threads rename T-5928a90d Empty queries
      ferrule threads rewind T-5928a90d 3
      ferrule threads delete T-5928a90d
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_threads)


@command.command("list")
@_WORKSPACE
@_ALL
@_CHILDREN
@_LIMIT
@_JSON
def list_threads(*, workspace: str, every: bool, children: bool, limit: int, as_json: bool) -> int:
    """The newest threads of this folder and those below it."""
    with _open_store() as store:
        threads = store.list(limit=limit, workspace=_folder(workspace, every=every), children=children)
    if as_json:
        click.echo(format_json([_row(about) for about in threads]))
    elif not threads:
        more = "" if every else " about this folder; --all lists those of others too"
        click.echo(f"No threads are kept{more}.", err=True)
    else:
        _table(threads, every=every)
    return DONE


@command.command("search")
@click.argument("query", nargs=-1, required=True)
@_WORKSPACE
@_ALL
@_CHILDREN
@_LIMIT
@_JSON
def search(*, query: tuple[str, ...], workspace: str, every: bool, children: bool, limit: int, as_json: bool) -> int:
    """Find threads by words, "phrases", file:, repo:, after:, before:.

    A thread is found that holds every word somewhere. Dates are 2026-01-31, or 7d, 2w, 3m for a while ago.

    \b
    Examples:
      ferrule threads search parse_query
      ferrule threads search '"off by one"' file:*.sql
      ferrule threads search --all migration after:2026-01-31
    """
    with _open_store() as store:
        folder = _folder(workspace, every=every)
        findings = store.find(" ".join(query), limit=limit, workspace=folder, children=children)
    for note in findings.notes:
        click.echo(paint(f"note: {clean(note)}", "yellow"), err=True)
    if as_json:
        click.echo(format_json([_search_row(finding) for finding in findings.found]))
    elif not findings.found:
        click.echo("No threads were found.", err=True)
    else:
        click.echo("\n\n".join(_block(finding, every=every) for finding in findings.found))
        if findings.total > len(findings.found):
            click.echo(f"\n{findings.total - len(findings.found)} more; --limit shows them.", err=True)
    return DONE


@command.command("show")
@click.argument("thread", metavar="ID", shell_complete=thread_ids)
@click.option("--full", is_flag=True, help="With all that calls were given and came back with.")
def show(*, thread: str, full: bool) -> int:
    """Print a thread: who said what, and each call in a line."""
    loaded = _load(thread)
    about = loaded.about
    rows = [paint(clean(about.title) or about.id, "bold"), paint(", ".join(filter(None, _facts(about))), "dim")]
    for message in messages(loaded.items):
        head, _, body = clean(render(message, full=full)).partition("\n")
        rows.append(f"\n{paint(head, 'green' if message.speaker == 'user' else 'cyan')}\n{body}")
    _page_text("\n".join(rows))
    if loaded.skipped:
        click.echo(paint(f"warning: the last {loaded.skipped} entries are damaged.", "yellow"), err=True)
    return DONE


@command.command("export")
@click.argument("thread", metavar="ID", shell_complete=thread_ids)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "jsonl"]),
    help="Markdown to read, or JSON with everything that is kept; without it, by the ending of FILE, else Markdown.",
)
@click.option(
    "-o", "--output", "path", type=click.Path(), metavar="FILE", help="Write it there, and not to standard output."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def export(*, thread: str, form: str | None, path: str | None, force: bool) -> int:
    """Write a thread as Markdown, as one JSON object, or as JSON lines."""
    text = render_export(_load(thread), form or export_form(path or ""))
    if path is None:
        click.echo(text, nl=False)
        return DONE
    try:
        write_export(path, text, over=force)
    except FileExistsError:
        raise click.UsageError(f"{path} is there already; --force writes over it.") from None
    click.echo(f"Wrote {path}.", err=True)
    return DONE


@command.command("rename")
@click.argument("thread", metavar="ID", shell_complete=thread_ids)
@click.argument("title", metavar="TITLE", nargs=-1, required=True)
def rename(*, thread: str, title: tuple[str, ...]) -> int:
    """Give a thread another title, which no other replaces."""
    line = " ".join(clean(" ".join(title)).split())
    if not line:
        raise click.UsageError("A title needs words.")
    with _open_store() as store:
        about = _resolve_thread(store, thread)
        store.rename(about.id, line)
    click.echo(f"{about.id} is called “{line}” now.")
    return DONE


@command.command("delete")
@click.argument("threads", metavar="ID...", nargs=-1, required=True, shell_complete=thread_ids)
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(*, threads: tuple[str, ...], yes: bool) -> int:
    """Delete threads and those of their subagents, for good."""
    with _open_store() as store:
        wanted = [_resolve_thread(store, thread) for thread in dict.fromkeys(threads)]
        for about in wanted:
            click.echo(f"{about.id}  {when(about.updated)}  {clean(about.title)}")
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("Nobody can be asked here; --yes deletes without a question.")
            if not click.confirm(f"Delete {'it' if len(wanted) == 1 else f'these {len(wanted)}'} for good?"):
                click.echo("Nothing was deleted.", err=True)
                return FAILED
        delete_threads(store, [about.id for about in wanted])
    click.echo(f"Deleted {len(wanted)} thread{'' if len(wanted) == 1 else 's'}.")
    return DONE


@command.command("rewind")
@click.argument("thread", metavar="ID", shell_complete=thread_ids)
@click.argument("turn", metavar="[TURN]", type=click.IntRange(1), required=False)
@click.option("--files", is_flag=True, help="Take only the files back.")
@click.option("--conversation", is_flag=True, help="Take only the conversation back.")
@click.option("--over", is_flag=True, help="Also over what you have changed by hand since.")
@click.option("--back", is_flag=True, help="Take the last rewind of the conversation back.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def rewind(*, thread: str, turn: int | None, files: bool, conversation: bool, over: bool, back: bool, yes: bool) -> int:
    """Go back to before a prompt: files, conversation or both. Without TURN, list the prompts.

    TURN is the number of a prompt. What would change is shown first. `ferrule undo` takes a rewind of files back,
    --back one of the conversation.

    \b
    Examples:
      ferrule threads rewind T-5928a90d
      ferrule threads rewind T-5928a90d 3
      ferrule threads rewind T-5928a90d 3 --files --yes
      ferrule threads rewind T-5928a90d --back
    """
    if back and (turn is not None or files or conversation or over):
        raise click.UsageError("--back takes the last rewind back; give it alone.")
    wanted = RewindOptions(turn, files and not conversation, conversation and not files, over, yes, back)
    with _open_store() as store:
        return finish(rewind_thread(store, _resolve_thread(store, thread), wanted))


def _page_text(text: str) -> None:
    """Print it; what has no room on a terminal is shown by the user's pager."""
    lines = shutil.get_terminal_size().lines
    if not sys.stdout.isatty() or text.count("\n") + 2 < lines:
        click.echo(text)
        return
    os.environ.setdefault("LESS", "FRX")  # in colour, and it stays on the screen
    click.echo_via_pager(text + "\n")


@contextlib.contextmanager
def _open_store() -> Iterator[ThreadStore]:
    """The store; one that cannot be used is a line and an exit code."""
    store = ThreadStore(os.path.join(state_folder(), "threads"), keep_days=load_settings().threads.keep_days)
    try:
        yield store
    except UnusableError as error:
        click.echo(f"ferrule: {error}", err=True)
        raise SystemExit(FAILED) from error
    finally:
        if store.warning:
            click.echo(paint(f"warning: {store.warning}", "yellow"), err=True)
        store.close()


def _load(name: str) -> Thread:
    with _open_store() as store:
        thread = store.load(_resolve_thread(store, name).id)
    assert thread is not None
    return thread


def _resolve_thread(store: ThreadStore, name: str) -> ThreadMetadata:
    found = store.find_ids(name)
    about = store.about(found[0]) if len(found) == 1 else None
    if about is not None:
        return about
    if found:
        raise click.UsageError(f"{name!r} is the beginning of several ids: {', '.join(found)}. Give more of it.")
    raise click.UsageError(f"There is no thread {name!r}. `ferrule threads list --all` names those that are kept.")


def _folder(workspace: str, *, every: bool) -> str | None:
    if every:
        return None
    if not os.path.isdir(workspace):
        raise click.UsageError(f"{workspace} is not a folder.")
    return os.path.realpath(workspace)


def _table(threads: tuple[ThreadMetadata, ...], *, every: bool) -> None:
    shorts = [about.id[:_SHORT_CHARS] for about in threads]
    ids = [short if shorts.count(short) == 1 else about.id for short, about in zip(shorts, threads, strict=True)]
    models = [_cut(clean(about.model), _MODEL_CHARS) or "-" for about in threads]
    width, model_width = max(map(len, ids)), max(map(len, models))
    # What a narrow terminal has no room for beside the title is left out, the model first.
    free = columns() - width - 29
    has_answers = free - 9 >= _LEAST_TITLE_CHARS
    has_model = free - 11 - model_width >= _LEAST_TITLE_CHARS
    room = max(_LEAST_TITLE_CHARS, free - 9 * has_answers - (model_width + 2) * has_model)
    heads = f"{'prompts':>7}  " + f"{'answers':>7}  " * has_answers + f"{'model':<{model_width}}  " * has_model
    click.echo(paint(f"{'id':<{width}}  {'when':<16}  {heads}title", "bold"))
    for about, short, model in zip(threads, ids, models, strict=True):
        title = _cut(clean(about.title), room)
        where = paint(f"  {clean(about.workspace)}", "dim") if every else ""
        facts = (
            f"{about.prompts:>7}  " + f"{about.answers:>7}  " * has_answers + f"{model:<{model_width}}  " * has_model
        )
        click.echo(f"{short:<{width}}  {when(about.updated)}  {facts}{title}{where}")


def _block(finding: ThreadFinding, *, every: bool) -> str:
    about = finding.about
    where = f"  {clean(about.workspace)}" if every else ""
    rows = [f"{paint(about.id, 'cyan')}  {when(about.updated)}  {about.size}{where}"]
    rows += [f"  {paint(clean(about.title), 'bold')}"] if about.title else []
    rows += [f"  {clean(finding.excerpt)}"] if finding.excerpt else []
    if finding.files:
        more = f" and {finding.more_files} more" if finding.more_files else ""
        rows.append(paint(f"  files: {clean(', '.join(finding.files))}{more}", "dim"))
    return "\n".join(rows)


def _facts(about: ThreadMetadata) -> list[str]:
    parent = f"of a subagent of {about.parent}" if about.parent else ""
    branch = f"branch {clean(about.branch)}" if about.branch else ""
    return [about.id, when(about.updated), clean(about.workspace), branch, clean(about.model), about.size, parent]


def _row(about: ThreadMetadata) -> dict[str, Any]:
    return about.facts()


def _search_row(finding: ThreadFinding) -> dict[str, Any]:
    return {
        **_row(finding.about),
        "excerpt": finding.excerpt,
        "files": list(finding.files),
        "more_files": finding.more_files,
    }


def _cut(text: str, limit_chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1] + "…"


def delete_threads(store: ThreadStore, threads: Sequence[str]) -> None:
    """Delete them. Raises: ConfigError where one is open, for what its session keeps next would bring back a part."""
    folder = os.path.join(state_folder(), "threads", "open")
    with contextlib.ExitStack() as held:
        for thread in threads:
            held.callback(Claim(folder, thread).close)
        for thread in threads:
            store.delete(thread)
        for thread in threads:
            _forget_todos(thread)


def _forget_todos(thread: str) -> None:
    async def forget() -> None:
        todos = Todos(os.path.join(state_folder(), "todos"), thread)
        try:
            await todos.forget()
        finally:
            await todos.close()

    try:
        finish(forget())
    except ToolFailure as error:
        click.echo(paint(f"warning: the tasks of {thread} were not deleted: {error.message}", "yellow"), err=True)


def render_export(thread: Thread, form: str) -> str:
    """The thread as `md`, `json` or `jsonl`; it ends in a newline."""
    if form == "md":
        return _markdown(thread)
    about = {"thread": thread.about.facts(), "files": list(thread.files)}
    items = [_entry(item) for item in thread.items]
    if form == "json":
        return escape_json(msgspec.json.format(msgspec.json.encode({**about, "items": items})).decode()) + "\n"
    return "".join(escape_json(msgspec.json.encode(row).decode()) + "\n" for row in (about, *items))


def export_form(path: str) -> str:
    """The form that a file's name asks for: `json` and `jsonl` by its ending, else `md`."""
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    return ending if ending in {"json", "jsonl"} else "md"


def write_export(path: str, text: str, *, over: bool) -> None:
    """Write it for the user alone, for it may hold secrets. Raises OSError, if the file is there and not `over` too."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if over else os.O_EXCL)
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8", newline="\n") as file:
        if os.name == "posix" and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fchmod(file.fileno(), 0o600)  # also where it was there, for all to read
        file.write(text)


def _entry(item: Item) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(item.body)
    except (msgspec.DecodeError, RecursionError):
        body = item.body.decode("utf-8", "replace")
    return {"kind": item.kind, "role": item.role, "at": item.at, "body": body}


def _markdown(thread: Thread) -> str:
    about = thread.about
    facts = [
        ("Thread", about.id),
        ("Begun", when(about.created)),
        ("Workspace", about.workspace),
        ("Model", about.model),
    ]
    rows = "\n".join(f"- {name}: {value}" for name, value in facts if value)
    blocks = [f"# {' '.join(about.title.split()) or about.id}", rows, *map(_message, messages(thread.items))]
    return clean("\n\n".join(blocks)) + "\n"


def _message(message: Message) -> str:
    calls = [_call(call) for call in message.calls]
    return "\n\n".join(filter(None, [f"## {message.speaker.capitalize()}", message.text, *calls]))


def _call(call: ThreadCall) -> str:
    result = "no result" if call.result is None else call.result.strip()
    head = f"**{call.name}**{' (failed)' if call.failed else ''}"
    return "\n\n".join([head, _fence(call.given, "json"), *([_fence(result, "")] if result else [])])


def _fence(text: str, language: str) -> str:
    """A fence longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
