"""Have a model read pages and answer from them, so that only its answer takes room in the conversation.

Whatever the pages say, they say it to a model without tools: it can do nothing but answer.
"""

import os

from ferrule.core.delegated import subagents
from ferrule.core.errors import ToolFailure
from ferrule.core.subagents import Job, Subagent, Subagents
from ferrule.core.tool import Context
from ferrule.core.web import Fetched, Page
from ferrule.settings import Settings

_KIND = "web_fetch"
_PROMPT = os.path.join(os.path.dirname(__file__), "reader.md")


async def answered(fetched: Fetched, ctx: Context) -> Fetched:
    """The same with an answer to its prompt, where there is one, pages to read, and somebody to read them."""
    pages = tuple(page for page in fetched.pages if isinstance(page, Page))
    if not fetched.prompt or not pages:
        return fetched
    settings, runs = ctx.need(Settings), subagents(ctx)
    model, asked = _model(settings), _asked(fetched.prompt, pages)
    agent = Subagent(name="reader", model=model, tools=(), system=_system(), role=_KIND, max_turns=1, mode="plan")
    if why := _why_not(settings, runs, agent, asked):
        ctx.note(f"This is the page itself and not an answer to the {ctx.param('prompt')}: {why}")
        return fetched
    ctx.progress("Reading the page")
    try:
        done = await runs.work(Job(agent, asked, description=f"Read {pages[0].address}"), ctx)
    except ToolFailure as failure:
        return _unanswered(fetched, failure.message, ctx)
    if done.status != "completed" or not done.text.strip():
        return _unanswered(fetched, done.why or f"it was {done.status} and said nothing.", ctx)
    if done.reason != "end":
        ctx.note(f"The answer is not complete: {done.why or done.reason}")
    return fetched._replace(answer=done.text.strip(), model=done.model or model)


def _why_not(settings: Settings, runs: Subagents, agent: Subagent, prompt: str) -> str:
    """Why nobody reads the page, as a sentence; empty where somebody does."""
    if not settings.web.answers:
        return "answers are switched off (setting web.answers)."
    if not runs.can_run:
        return "no model can be asked here."
    # A recording says what every model of its session said: where it says nothing about pages, none was asked.
    if not agent.model and not runs.expects(agent, prompt):
        return "the recording that is played has none."
    return ""


def _model(settings: Settings) -> str:
    """The one that reads pages; empty where the session's own does."""
    roles = settings.models.roles
    return roles.get(_KIND, "") or roles.get("reader", "") or settings.models.small


def _unanswered(fetched: Fetched, why: str, ctx: Context) -> Fetched:
    ctx.note(f"This is the page itself: the model gave no answer to the {ctx.param('prompt')}. {why}")
    return fetched


def _asked(prompt: str, pages: tuple[Page, ...]) -> str:
    shown = "\n\n".join(page.framed for page in pages)
    return f"{shown}\n\nAnswer this from the {'page' if len(pages) == 1 else 'pages'} above:\n\n{prompt}"


def _system() -> str:
    with open(_PROMPT, encoding="utf-8") as file:
        return file.read().strip()
