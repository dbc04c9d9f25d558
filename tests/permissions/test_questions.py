"""Questions: what an answer is good for, which folders it opens, and that they come one at a time."""

import asyncio

import pytest

from ferrule.core.access import Access
from ferrule.core.errors import Denied
from ferrule.permissions import Answer, Case, Everybody, Nobody, Question
from tests.rows import each_row
from tests.scripted import ALWAYS, NO, YES, Scripted

from .place import Place


async def test_always_holds_for_the_tool_in_this_session(tmp_path):
    asker = Scripted(ALWAYS, YES)
    place = Place(tmp_path, asker)
    await place.admit(place.case("write", Access.write("a.txt")))
    await place.admit(place.case("write", Access.write("b/c.txt")))
    await place.admit(place.case("edit", Access.write("a.txt")))

    assert [question.name for question in asker.questions] == ["Write", "Edit"]


async def test_a_yes_holds_once(tmp_path):
    asker = Scripted(YES, YES)
    place = Place(tmp_path, asker)
    for _ in range(2):
        await place.admit(place.case("write", Access.write("a.txt")))

    assert len(asker.questions) == 2


async def test_always_holds_for_this_command_in_this_folder(tmp_path):
    asker = Scripted(ALWAYS, YES, YES)
    place = Place(tmp_path, asker)
    (place.work / "build").mkdir()
    for command, cwd in (("rm -rf *", "build"), ("rm -rf *", "build"), ("rm -rf *", "."), ("rm -rf ..", "build")):
        await place.admit(place.command(command, cwd))

    assert [question.summary for question in asker.questions] == [
        "run `rm -rf *` in build",
        "run `rm -rf *`",
        "run `rm -rf ..` in build",
    ]


async def test_always_for_one_host_does_not_open_another(tmp_path):
    asker = Scripted(ALWAYS, YES)
    place = Place(tmp_path, asker)
    for host in ("docs.example", "docs.example", "evil.example"):
        await place.admit(place.case("fetch", Access.host(host)))

    assert len(asker.questions) == 2


async def test_always_does_not_reach_what_is_forbidden_or_outside(tmp_path):
    asker = Scripted(ALWAYS, NO)
    place = Place(tmp_path, asker)
    await place.admit(place.case("write", Access.write("a.txt")))

    assert await place.asks(place.case("write", Access.write(str(tmp_path / "b.txt"))))
    assert [question.kind for question in asker.questions] == ["call", "folder"]


@pytest.mark.parametrize("asker", [Nobody(), Everybody(), Scripted(NO)], ids=["nobody", "yes-to-all", "no"])
@pytest.mark.parametrize("access", [Access.read, Access.write], ids=["read", "write"])
async def test_an_outside_path_is_denied_with_a_way_out(tmp_path, asker, access):
    asker = Scripted(NO) if isinstance(asker, Scripted) else asker
    place = Place(tmp_path, asker)
    path = place.top / "elsewhere" / "a.txt"
    path.parent.mkdir()

    with pytest.raises(Denied) as caught:
        await place.admit(place.case("read", access(str(path))))
    assert f"--add-dir {path.parent}" in caught.value.message
    assert (caught.value.code, caught.value.path) == ("outside-workspace", str(path))
    assert not place.jail.holds(str(path))


@each_row(
    "path",
    ["..", "../work-evil/a", "../work2", "../elsewhere/a", "/", "/etc/passwd", "~", "link/a"],
)
async def test_yes_to_all_widens_nothing(tmp_path, path):
    place = Place(tmp_path, Everybody())
    for name in ("work-evil", "elsewhere"):
        (place.top / name).mkdir()
    (place.work / "link").symlink_to(place.top / "elsewhere")

    assert await place.asks(place.case("read", Access.read(path)))
    assert [root.path for root in place.jail.roots] == [str(place.work)]


async def test_a_granted_folder_is_open_for_the_session(tmp_path):
    asker = Scripted(YES, YES)
    place = Place(tmp_path, asker)
    (place.top / "one" / "deep").mkdir(parents=True)
    (place.top / "two").mkdir()
    for path in ("one/a.txt", "one/b.txt", "one/deep/c.txt", "two"):
        await place.admit(place.case("read", Access.read(str(place.top / path))))

    assert [(question.kind, question.folder) for question in asker.questions] == [
        ("folder", str(place.top / "one")),
        ("folder", str(place.top / "two")),
    ]


async def test_a_write_into_a_granted_folder_still_asks_about_the_write(tmp_path):
    asker = Scripted(YES, NO)
    place = Place(tmp_path, asker)

    with pytest.raises(Denied, match="did not allow this: Write"):
        await place.admit(place.case("write", Access.write(str(place.top / "a.txt"))))
    assert [question.kind for question in asker.questions] == ["folder", "call"]


async def test_the_folder_that_is_asked_for_is_one_that_is_there(tmp_path):
    asker = Scripted(YES)
    place = Place(tmp_path, asker)
    (place.top / "one").mkdir()
    await place.admit(place.case("read", Access.read(str(place.top / "one" / "new" / "deep" / "a.txt"))))

    assert [question.folder for question in asker.questions] == [str(place.top / "one")]


async def test_nobody_is_asked_to_open_the_whole_machine(tmp_path):
    place = Place(tmp_path, Scripted())

    with pytest.raises(Denied, match="outside the workspace"):
        await place.admit(place.case("read", Access.read("/")))


async def test_a_link_put_in_the_folder_s_place_after_the_question_opens_nothing(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "private").mkdir()

    class Swapping:
        async def ask(self, question: Question) -> Answer:
            (tmp_path / "one").rmdir()
            (tmp_path / "one").symlink_to(tmp_path / "private")
            return YES

    place = Place(tmp_path, Swapping())

    with pytest.raises(Denied):
        await place.admit(place.case("read", Access.read(str(place.top / "one" / "a.txt"))))
    assert not place.jail.holds(str(place.top / "private"))


class Slow:
    """Answers when told to, and counts how many questions stand open at once."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.open = self.most = self.asked = 0
        self.go = asyncio.Event()

    async def ask(self, question: Question) -> Answer:
        self.asked += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await self.go.wait()
            await asyncio.sleep(0)
        finally:
            self.open -= 1
        return self.answer


async def all_at_once(place: Place, asker: Slow, cases: list[Case]) -> None:
    """Every case asks before the first has its answer."""
    waiting = asyncio.gather(*(place.admit(case) for case in cases))
    await asyncio.sleep(0)
    asker.go.set()
    await waiting


async def test_one_question_is_asked_at_a_time(tmp_path):
    asker = Slow(YES)
    place = Place(tmp_path, asker)
    await all_at_once(place, asker, [place.case("write", Access.write(f"{number}.txt")) for number in range(5)])

    assert (asker.most, asker.asked, len(place.blocked)) == (1, 5, 5)


async def test_an_always_answers_the_questions_that_wait_behind_it(tmp_path):
    asker = Slow(ALWAYS)
    place = Place(tmp_path, asker)
    await all_at_once(place, asker, [place.case("write", Access.write(f"{number}.txt")) for number in range(5)])

    assert asker.asked == 1


async def test_a_folder_is_asked_for_once_however_many_calls_wait_for_it(tmp_path):
    asker = Slow(YES)
    place = Place(tmp_path, asker)
    paths = [str(place.top / f"{number}.txt") for number in range(5)]
    await all_at_once(place, asker, [place.case("read", Access.read(path)) for path in paths])

    assert asker.asked == 1


async def test_a_call_that_is_cancelled_while_it_waits_lets_the_next_one_ask(tmp_path):
    asker = Slow(YES)
    place = Place(tmp_path, asker)
    first = asyncio.create_task(place.admit(place.case("write", Access.write("a"))))
    second = asyncio.create_task(place.admit(place.case("write", Access.write("b"))))
    await asyncio.sleep(0)
    first.cancel()
    asker.go.set()
    await second

    assert (first.cancelled(), asker.open, asker.asked) == (True, 0, 2)


async def test_an_asker_that_breaks_lets_nothing_pass_and_blocks_nobody(tmp_path):
    class Broken:
        answers = iter([LookupError("no terminal"), None])

        async def ask(self, question: Question) -> Answer:
            error = next(self.answers)
            if error is not None:
                raise error
            return YES

    place = Place(tmp_path, Broken())
    case = place.case("write", Access.write("a"))

    with pytest.raises(Denied, match=r"could not be answered \(LookupError: no terminal\)"):
        await place.admit(case)
    await place.admit(case)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("rm -rf x\r\x1b[2Kls", id="overwrites-the-line"),
        pytest.param("echo \u202etxt.exe", id="turns-the-direction"),
        pytest.param("ls\nrm -rf x", id="second-line"),
        pytest.param("echo \x9b2J", id="c1"),
        pytest.param("echo \udc80", id="half-a-character"),
        pytest.param("echo \U000e0041", id="tag-character"),
    ],
)
async def test_what_a_person_is_shown_cannot_steer_the_screen(tmp_path, command):
    asker = Scripted(NO)
    place = Place(tmp_path, asker)
    with pytest.raises(Denied) as caught:
        await place.admit(place.command(command))

    assert asker.questions[0].summary.isprintable()
    assert caught.value.message.isprintable()
    assert place.blocked == [asker.questions[0].summary]


async def test_a_file_s_name_cannot_steer_the_screen_either(tmp_path):
    asker = Scripted(NO, NO)
    place = Place(tmp_path, asker)
    (place.top / "a\x1b[2J").mkdir()
    assert await place.asks(place.case("write", Access.write("a\x1b[2J.txt")))
    assert await place.asks(place.case("read", Access.read(str(place.top / "a\x1b[2J" / "x"))))

    assert all(question.summary.isprintable() for question in asker.questions)
