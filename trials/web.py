"""Web work end to end: a dev server in the background, reached by everybody who should, and gone afterwards."""

import shutil
import uuid
from collections.abc import Iterator

from tests.ordinary import serving
from tests.ordinary.person import Person
from tests.ordinary.session import HIDES, Session, session

from trials.trial import Place, Row, Trial, tried, waited

PHANTOMS = {".claude", ".mcp.json", ".vscode", ".ferrule", ".codex", ".cursor"}


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("web")
    servers = {"python -m http.server": serving.PYTHON}
    if shutil.which("node", path="/usr/local/bin:/usr/bin:/bin"):
        servers["node"] = serving.NODE
    else:
        yield Row("a server of node", "tried", "node is not there", None)
    for person, way, why in place.each(HIDES):
        for name, command in servers.items():
            what = f"{name}, {way}, {person.title}"
            if why:
                yield Row(what, "tried", why, None)
            else:
                yield from _served(person, way, what, command)


def _served(person: Person, way: str, what: str, command: str) -> Iterator[Row]:
    work = person.folder(f"web-{uuid.uuid4().hex[:8]}")
    page = f"canary-{uuid.uuid4().hex}"
    (work / "index.html").write_text(f"<html><body><h1>{page}</h1></body></html>\n")
    person.give(work)
    before, port = serving.below(work), serving.free_port()
    mark = str(port)
    settings = serving.forwarding()
    with session(person, work, way, settings=settings) as opened:
        said, task = serving.started(opened, command.format(port=port))
        yield Row(f"{what}: starts in the background", "a task", said.text[:120], bool(task))
        heard = serving.from_command(opened, port)
        yield Row(f"{what}: the next command", "the page", _short(heard.text, page), page in heard.text)
        told = " ".join((said.text, *said.notes, heard.text, *heard.notes))
        address = f"127.0.0.1:{port}"
        yield Row(
            f"{what}: is told where it listens", address, address if address in told else "nothing", address in told
        )
        phantoms = PHANTOMS & set(serving.below(work))
        yield Row(f"{what}: no folder of ours appears meanwhile", "none", _list(phantoms), not phantoms)
        seen = opened.bash("ls -A")
        shown = PHANTOMS & set(seen.output.split())
        yield Row(
            f"{what}: `ls -A` shows what is there", "index.html", _list(shown) if shown else seen.output, not shown
        )
        yield tried(f"{what}: the tool for pages", "the page", lambda: _of_tool(opened, port, page))
        for host in ("127.0.0.1", "::1"):
            got = serving.from_outside(port, host, seconds=5) if settings else "no setting forwards ports"
            yield Row(f"{what}: from outside, {host}", "the page", _short(got, page), page in got)
        stopped = opened.call("TaskStop", task_id=task)
        yield Row(f"{what}: is stopped", "done", stopped.text[:120], stopped.status == "done")
        late = serving.once_from_command(opened, port)
        yield Row(f"{what}: is gone for the next command", "refused", _short(late.text, page), page not in late.text)
        refused = serving.from_tool(opened, port)
        yield Row(f"{what}: is gone for the tool", "refused", _short(refused.text, page), refused.status != "done")
        free = waited(lambda: not serving.listens_outside(port), 5)
        yield Row(
            f"{what}: the port is free outside while the session lives", "free", _yes(free, "free", "taken"), free
        )
    left = serving.processes(mark)
    yield Row(f"{what}: no process is left", "none", _list(left), not left)
    after = serving.below(work)
    yield Row(f"{what}: no file is left", _list(before), _list(after), after == before)
    shutil.rmtree(work, ignore_errors=True)


def _of_tool(opened: Session, port: int, page: str) -> tuple[str, bool]:
    said = serving.from_tool(opened, port)
    return _short(said.text, page), page in said.text


def _short(text: str, page: str) -> str:
    return "the page" if page in text else " ".join(text.split())[:160]


def _list(names: object) -> str:
    return ", ".join(sorted(names)) or "none"  # type: ignore[call-overload]  # a set or a list of names


def _yes(value: object, one: str, other: str) -> str:
    return one if value else other


TRIAL = Trial(
    "web",
    "A dev server in the background of a session: reached by the next command, by the tool for pages and from outside, "
    "told where it listens, stopped; no port, process or file is left, and no folder of ours is seen meanwhile.",
    _rows,
)
