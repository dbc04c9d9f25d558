"""A session: an engine, a model, a conversation that is kept, and the loop over them; opened and closed together."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ferrule.agent.agent import Agent
from ferrule.agent.budget import Limits
from ferrule.agent.child import Home
from ferrule.agent.children import Children, Promised
from ferrule.agent.claim import Claim
from ferrule.agent.compacting import Compacting
from ferrule.agent.conversation import Conversation, Setup
from ferrule.agent.events import AgentEvent, Spent, Warned
from ferrule.agent.history import History
from ferrule.agent.keeping import Keeping
from ferrule.agent.prompt import repository, system_prompt
from ferrule.agent.recall import NAME, Recall
from ferrule.core.errors import ConfigError
from ferrule.core.events import Event
from ferrule.core.planning import Planning
from ferrule.core.subagents import Subagent
from ferrule.engine import Engine
from ferrule.models.load import chosen, load_model
from ferrule.models.model import Model, ModelError
from ferrule.permissions.policy import mode_name
from ferrule.settings import Settings, state_folder

if TYPE_CHECKING:
    from ferrule.permissions.asker import Asker
    from ferrule.workspace.thread_store import ThreadStore

_ANSWER_TOKENS = 32_000


class Session:
    """`async with Session(workspace, model="anthropic:...") as session: await session.agent.run("...")`."""

    engine: Engine
    agent: Agent

    def __init__(
        self,
        workspace: str | os.PathLike[str] = ".",
        *,
        model: str | Model | None = None,
        dialect: str | None = None,
        ask: "Asker | None" = None,
        resume: str = "",
        limits: Limits | None = None,
        record: str = "",
        state: str | os.PathLike[str] | None = None,
        on_event: Callable[[AgentEvent], object] = lambda _: None,
        **engine: Any,
    ) -> None:
        """`resume` is the id of a thread, or `last`; `record` a file that the conversation is recorded in.

        What an engine takes beside these, it takes here too.
        """
        self._workspace = os.fspath(workspace)
        self._named = model
        self._dialect = dialect
        self._ask = ask
        self._resume = resume
        self._limits = limits
        self._record = record
        self._state = os.path.abspath(state) if state is not None else state_folder()
        self._on_event = on_event
        self._engine = engine
        self._models: dict[str, Model] = {}
        self._helpers = Promised()
        self._recall = Recall()
        self._keeping: Keeping | None = None
        self._claim: Claim | None = None
        self._store: ThreadStore | None = None

    async def __aenter__(self) -> Self:
        thread = self._find_thread()
        self._recall.engine = self.engine = Engine(
            self._workspace,
            dialect=self._dialect,
            model=None if self._dialect else self._model_id,
            ask=self._ask,
            subagents=self._helpers,
            tools=(self._recall,),
            session_id=thread,
            state=self._state,
            on_event=self._hear,
            **self._engine,
        )
        try:
            self._model_id(self.engine.settings)
            await self.engine.__aenter__()
            self.engine.give("ThreadStore", self._threads)
            await self._begin()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    def _threads(self) -> "ThreadStore":
        if self._store is None:
            from ferrule.workspace.thread_store import ThreadStore  # SQLite is loaded with the first write

            keep_days = self.engine.settings.threads.keep_days if hasattr(self, "engine") else 365.0
            self._store = ThreadStore(os.path.join(self._state, "threads"), keep_days=keep_days)
        return self._store

    def _find_thread(self) -> str | None:
        """The id of the conversation that goes on, if one is to."""
        if not self._resume:
            return None
        from ferrule.agent.stored import looked_up  # for conversations that go on

        store, folder = self._threads(), os.path.realpath(self._workspace)
        try:
            name = looked_up(lambda: store.latest(folder) if self._resume == "last" else store.resolve(self._resume))
        finally:
            store.close()
        if name is not None:
            return name
        if self._resume == "last":
            raise ConfigError(f"There is no conversation to go on with in {folder}: `ferrule threads list --all`.")
        raise ConfigError(f"There is no conversation {self._resume!r}: `ferrule threads list` lists them.")

    def _model_id(self, settings: Settings) -> str:
        """The id of the model that is asked, which decides the dialect; the model is ready then."""
        if self._models:
            return next(iter(self._models.values())).model
        given = self._named
        if given is None or isinstance(given, str):
            name = chosen(given, settings.models, os.environ).name
            given = load_model(name, settings.models)
            if isinstance(getattr(given, "workspace", None), str):  # a recorded conversation works where this one does
                given.workspace = os.path.realpath(self._workspace)  # type: ignore[attr-defined]
        if self._record:
            from ferrule.models.recording import Recording  # for whoever records

            given = Recording(given, self._record, workspace=os.path.realpath(self._workspace))
        self._models[given.name] = given
        return given.model

    @property
    def model(self) -> Model:
        """The model that the session began with."""
        return next(iter(self._models.values()))

    def load(self, name: str) -> Model:
        """Another model by its name; it is closed with the session."""
        if name not in self._models:
            self._models[name] = load_model(name, self.engine.settings.models)
        return self._models[name]

    async def _begin(self) -> None:
        engine, settings = self.engine, self.engine.settings
        history, spent = History(), Spent()
        if settings.threads.keep or self._resume:
            self._hold()
            self._keeping = self._make_keeping()
        if self._resume:
            history, spent = self._resumed()
        compacting = Compacting(settings.loop, self._kept, self._small, NAME)
        home = Home(
            engine,
            self._model_for,
            settings.loop,
            compacting,
            lambda: self._threads() if settings.threads.keep else None,
            self._on_event,
        )
        self._helpers.children = children = Children(home, engine.mode)
        self._recall.thread = self._own_thread
        if hasattr(self.model, "conversation"):
            self.model.conversation = engine.session_id
        planning = engine.need(Planning)
        setup = Setup(
            thread=engine.session_id,
            system=system_prompt(
                workspace=engine.jail.folder,
                section=engine.section(listed=False),
                guidance=await engine.guidance(),
                notes=engine.beginning,
            ),
            dialect=engine.dialect.name,
            cwd=engine.jail.folder,
            limits=self._limits or Limits(*(getattr(settings.loop, name) for name in Limits._fields)),
            max_tokens=settings.models.max_tokens or min(_ANSWER_TOKENS, self.model.most_output),
            thinking_tokens=settings.models.thinking_tokens,
            permission_mode=lambda: mode_name(engine.policy),
            reminder=planning.reminder,
            news=children.news,
            tell_hooks=engine.tell,
        )
        talk = Conversation(
            engine,
            self.model,
            setup,
            history=history,
            spent=spent,
            keeping=self._keeping,
            on_event=self._on_event,
        )
        self.agent = children.parent = Agent(talk, loop=settings.loop, compacting=compacting)
        for warning in engine.warnings:
            talk.warn(warning)

    def _make_keeping(self) -> Keeping:
        engine = self.engine
        return Keeping(
            self._threads(),
            engine.session_id,
            self._warn,
            workspace=engine.jail.folder,
            repo=repository(engine.jail.folder),
            model=self.model.name,
            dialect=engine.dialect.name,
        )

    def _hold(self) -> None:
        """One session at a time goes on with a conversation."""
        self._claim = Claim(os.path.join(self._state, "threads", "open"), self.engine.session_id)

    def _resumed(self) -> tuple[History, Spent]:
        from ferrule.agent.stored import looked_up, resume  # for conversations that go on

        thread = looked_up(lambda: self._threads().load(self.engine.session_id))
        resumed = resume(thread.items if thread is not None else ())
        if resumed.mended is not None and self._keeping is not None:
            self._keeping.turn(resumed.mended)
        if resumed.lost:
            self._warn(f"{resumed.lost} parts of the conversation could not be read and are left out.")
        return resumed.history, resumed.spent

    def _warn(self, sentence: str) -> None:
        self._on_event(Warned(thread=self.engine.session_id, sentence=sentence))

    async def _kept(self, text: str, call_id: str, tool: str) -> str:
        return await self.engine.store.put(text, call_id=call_id, tool=tool)

    async def _own_thread(self, name: str) -> str | None:
        """The text of this session's own conversation."""
        if name.removeprefix("@") != self.engine.session_id or self._keeping is None:
            return None
        from ferrule.agent.stored import as_text  # for conversations that were summed up

        await self._keeping.flush()
        thread = await asyncio.to_thread(self._threads().load, self.engine.session_id)
        return as_text(thread.items) if thread is not None else None

    def _small(self) -> Model | None:
        """The model for summaries, where one is set and can be had."""
        name = self.engine.settings.models.small
        if not name:
            return None
        try:
            return self.load(name)
        except (ModelError, ConfigError):
            return None

    def _model_for(self, agent: Subagent) -> Model:
        """A subagent's own model: what it asks for, what the settings say for its kind, or the session's."""
        roles = self.engine.settings.models.roles
        wanted = agent.model if agent.model not in {"", "inherit"} else ""
        name = wanted or roles.get(agent.role or agent.name, "") or roles.get(agent.name, "")
        # A recorded conversation holds its subagents' answers too.
        if not name or self.model.name.startswith("scripted:"):
            return self.agent.model
        return self.load(name)

    def _hear(self, event: Event) -> None:
        if hasattr(self, "agent"):
            self.agent.hear(event)

    async def _close(self) -> None:
        # What one of them fails with, or a signal in the middle, leaves the others closed all the same.
        async with contextlib.AsyncExitStack() as closing:
            closing.callback(self._let_go)
            for model in self._models.values():
                closing.push_async_callback(model.close)
            if self._keeping is not None:
                closing.push_async_callback(self._keeping.close)
            closing.push_async_callback(self.engine.close)
            if hasattr(self._helpers, "children"):
                closing.push_async_callback(self._helpers.children.close)

    def _let_go(self) -> None:
        if self._store is not None:
            self._store.close()
        if self._claim is not None:
            self._claim.close()
            self._claim = None
