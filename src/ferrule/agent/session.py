"""Open and close a session: an engine, a model, a stored conversation, and the agent loop over them.

Only one session at a time continues a conversation; a lock claims it. Notices that are given only once leave a
mark in the state folder.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from ferrule.agent import AgentEvent, Limits, Warned, cost_limit_warning
from ferrule.agent.agent import Agent
from ferrule.agent.compaction import Compacting
from ferrule.agent.conversation import Conversation, Reads, Setup
from ferrule.agent.prompt import EDIT_FORM, InstructionNews, edit_example, repository, system_prompt
from ferrule.agent.recall import OwnThread, Recall
from ferrule.agent.subagents import Children, Home, Promised, model_name
from ferrule.agent.text_calls import FORM
from ferrule.agent.threads import Keeping, PlanKept, ThreadTitle, check_unused, copy_thread, find_thread, load_thread
from ferrule.checkpoints import CACHES, left_out_words
from ferrule.core.call import Event, HookRun
from ferrule.core.errors import ConfigError
from ferrule.core.services import Subagent
from ferrule.dialects import is_small, pick
from ferrule.engine import Engine
from ferrule.engine.build import new_session_id
from ferrule.files.ledger import Ledger
from ferrule.models import Model, ModelError
from ferrule.models.catalog import choose, load_model, small_model
from ferrule.output import clean
from ferrule.permissions.policy import mode_name
from ferrule.settings import Settings, state_folder
from ferrule.system.folder import try_lock
from ferrule.tools.threads import WRITTEN
from ferrule.tools.web import Addresses

if TYPE_CHECKING:
    from ferrule.agent.threads import Resumed
    from ferrule.core.tool import AnyTool
    from ferrule.dialects import Dialect
    from ferrule.engine.build import EngineOptions
    from ferrule.files.guidance import Guide
    from ferrule.models.recorder import Tape
    from ferrule.permissions import Asker, Callback
    from ferrule.tools.threads.store import ThreadStore
    from ferrule.wire import Usage


_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class Claim:
    """A lock that dies with its process; its file goes with whoever has had it last."""

    def __init__(self, folder: str, thread: str) -> None:
        """Raises `ConfigError` where another session has the conversation open."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, f"{thread}.lock")
        while True:
            descriptor = os.open(self._path, _FLAGS, 0o600)
            if not try_lock(descriptor):
                os.close(descriptor)
                raise ConfigError(
                    f"The conversation {thread} is open in another session. End that first, or choose another one: "
                    "`ferrule chat --resume`."
                )
            if os.fstat(descriptor).st_nlink:
                break
            os.close(descriptor)  # whoever had it has removed its file meanwhile
        self._descriptor = descriptor

    def close(self) -> None:
        """While the lock is still held: nobody else's file is removed."""
        with contextlib.suppress(OSError):  # Windows removes no file that is open
            os.unlink(self._path)
        os.close(self._descriptor)


def is_first(state: str, name: str) -> bool:
    """Is it the first time that somebody asks for this? Where no mark can be left, each time is the first."""
    folder = os.path.join(state, "told")
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


_UNASKED = (
    "Commands run in a sandbox, without a question; what they change in the workspace can be undone (/undo, or "
    "`ferrule undo`). To be asked before they run, set sandbox.auto_allow = false."
)


_PASSED_ON = frozenset({"overloaded", "server", "network", "no-model", "limit", "cut"})
"""What another model may do better."""


class Session:
    """`async with Session(workspace, model="anthropic:...") as session: await session.agent.run("...")`."""

    engine: Engine
    agent: Agent
    why_model: str = ""
    """Why it is this model, if nobody has named one."""

    def __init__(
        self,
        workspace: str | os.PathLike[str] = ".",
        *,
        model: str | Model | None = None,
        dialect: "str | Dialect | None" = None,
        tools: "Iterable[AnyTool]" = (),
        ask: "Asker | Callback | None" = None,
        resume: str = "",
        thread: str = "",
        fork: bool = False,
        fallback: str = "",
        limits: Limits | None = None,
        record: str = "",
        state: str | os.PathLike[str] | None = None,
        on_event: Callable[[AgentEvent], object] = lambda _: None,
        **engine: "Unpack[EngineOptions]",
    ) -> None:
        """`resume` is the id of a thread, or `last`; `record` a file that the conversation is recorded in.

        `thread` is the id of a new conversation. With `fork`, the one that is resumed stays as it is, and a copy of it
        goes on. `fallback` is a model that is asked if the other one cannot be.

        What an engine takes beside these, it takes here too.
        """
        self._workspace = os.fspath(workspace)
        self._named = model
        self._dialect = dialect
        self._ask = ask
        self._resume = resume
        self._thread = thread
        self._fork = fork
        self._fallback = fallback
        self._limits = limits
        self._record = record
        self._tape: Tape | None = None
        self._state = os.path.abspath(state) if state is not None else state_folder()
        self._on_event = on_event
        self._engine: dict[str, Any] = {**engine, "tools": (Recall(), *tools)}
        self._models: dict[str, Model] = {}
        self._helpers = Promised()
        self._keeping: Keeping | None = None
        self._title: ThreadTitle | None = None
        """What makes its title; nothing where it has one, or where none is to be made."""
        self._claim: Claim | None = None
        self._store: ThreadStore | None = None
        self._guidance: tuple[Guide, ...] = ()
        self._early: list[Event] = []
        """What hooks did before there was a conversation."""

    async def __aenter__(self) -> Self:
        thread = await self._find_thread()
        try:
            self.engine = Engine(
                self._workspace,
                dialect=self._dialect or self._pick_dialect,
                ask=self._ask,
                subagents=self._helpers,
                session_id=thread,
                state=self._state,
                on_event=self._hear,
                **self._engine,
            )
            self.engine.registry.definitions_follow = True  # a conversation shows them anew when they have changed
            self._open_model(self.engine.settings)
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
            from ferrule.tools.threads.store import ThreadStore  # SQLite is loaded with the first write

            keep_days = self.engine.settings.threads.keep_days
            self._store = ThreadStore(os.path.join(self._state, "threads"), keep_days=keep_days)
        return self._store

    async def _find_thread(self) -> str | None:
        """The id of the conversation that goes on, if one is to, or the one that a new one is to have."""
        if self._thread and self._resume and not self._fork:
            raise ConfigError("A conversation that goes on keeps its id: give another one with a fork only.")
        if not self._resume and not self._thread:
            return None

        if self._thread:
            await asyncio.to_thread(check_unused, self._state, self._thread)
        if not self._resume:
            return self._thread
        thread = await asyncio.to_thread(find_thread, self._state, self._resume, self._workspace)
        if not self._fork:
            return thread
        return await asyncio.to_thread(copy_thread, self._state, thread, self._thread or new_session_id())

    def _pick_dialect(self, settings: Settings) -> str:
        """The dialect for the model that is asked."""
        model = self._open_model(settings)
        return pick(model.model, settings.dialects, window=model.window)

    def _open_model(self, settings: Settings) -> Model:
        """The model that is asked, ready for its first question."""
        if self._models:
            return self.model
        given = self._named
        if given is None or isinstance(given, str):
            choice = choose(given, settings.models)
            self.why_model = choice.why
            given = load_model(choice.name, settings.models, workspace=os.path.realpath(self._workspace))
        if self._record:
            given = self._recorded(given)
        self._models[given.name] = given
        return given

    @property
    def model(self) -> Model:
        """The model that the session began with."""
        return next(iter(self._models.values()))

    @property
    def mode(self) -> str:
        """The permission mode that holds: `default`, `acceptEdits`, `plan`, `dontAsk` or `bypassPermissions`."""
        return mode_name(self.engine.policy)

    def set_mode(self, name: str) -> str:
        """Have another permission mode hold from now on; which one does. Calls and tasks that run go on.

        Raises `ConfigError` for a mode that there is not, or that is switched off.
        """
        holds = self.engine.change_mode(name)
        self.agent.talk.tools_changed()
        return holds

    @property
    def _is_replayed(self) -> bool:
        """Is it a recorded conversation? It holds the answers of all models that were asked in it."""
        return self.model.name.startswith("scripted:")

    def _recorded(self, model: Model) -> Model:
        """Return a model whose answers go to the file of the recording; all models of a session write to one tape."""
        from ferrule.models.recorder import Recording  # for whoever records

        made = Recording(model, self._tape or self._record, workspace=os.path.realpath(self._workspace))
        self._tape = made.tape
        return made

    def load(self, name: str) -> Model:
        """Another model by its name; it is closed with the session, and recorded where that is."""
        if name not in self._models:
            made = load_model(name, self.engine.settings.models, workspace=self.engine.jail.folder)
            if hasattr(made, "conversation"):
                made.conversation = self.engine.session_id
            if self._record:
                made = self._recorded(made)
            self._models[name] = made
            self._check_price(made)
        return self._models[name]

    async def _begin(self) -> None:
        engine, settings = self.engine, self.engine.settings
        if settings.threads.keep or self._resume:
            self._hold()
            self._keeping = self._make_keeping()
        earlier = await self._load_thread() if self._resume else None
        compacting = Compacting(settings.loop, self._store_output, self._small)
        home = Home(
            engine,
            self._model_for,
            settings.loop,
            compacting,
            lambda: self._threads() if settings.threads.keep else None,
            self._on_event,
        )
        self._helpers.children = children = Children(home, engine.mode)
        self._helpers.can_run = children.can_run
        engine.give("OwnThread", lambda: OwnThread(engine.session_id, self._keeping))
        if hasattr(self.model, "conversation"):
            self.model.conversation = engine.session_id
        self._instructions = InstructionNews(engine.instructions)
        planning = PlanKept(engine, self._keeping, earlier, self._engine.get("permission_mode"), self._warn)
        setup = Setup(
            thread=engine.session_id,
            system="",
            dialect=engine.dialect.name,
            cwd=engine.jail.folder,
            limits=self._limits or Limits(*(getattr(settings.loop, name) for name in Limits._fields)),
            max_tokens=settings.models.max_tokens,
            thinking_tokens=settings.models.thinking_tokens,
            permission_mode=lambda: mode_name(engine.policy),
            reminder=planning.reminder,
            news=lambda: (*children.news(), *self._instructions.news()),
            heard=self._on_user_text,
            on_answer=self._on_answer,
            tell_hooks=engine.tell,
            on_prompt=engine.begin_prompt,
            fallback=self._fall_back,
        )
        self._guidance = await engine.guidance()
        setup.system = self.prompt()
        self._title = self._make_title(earlier)
        reads = Reads(engine.need(Ledger), () if earlier is None else earlier.reads)
        if earlier is not None:
            engine.begin_prompt(earlier.past.number)
            for text in earlier.written:
                engine.need(Addresses).hear(text)
            reads.restore(earlier.history.turns)
        talk = Conversation(
            engine,
            self.model,
            setup,
            earlier=earlier,
            keeping=self._keeping,
            reads=reads,
            on_event=self._on_event,
        )
        self.agent = children.parent = Agent(talk, loop=settings.loop, compacting=compacting)
        engine.name_outputs(lambda output_id: talk.reads_output(output_id) or f"ferrule output {output_id}")
        if talk.history.turns:
            talk.tool_definitions()  # they count for how full the window is, also before the first question
        self._check_price(self.model)
        for warning in engine.warnings:
            talk.warn(warning)
        for event in self._early:
            self.agent.hear(event)
        engine.policy.unasked.tell = self._tell_unasked
        engine.tell_left_out(self._tell_left_out)

    def prompt(self, own: str = "") -> str:
        """The system prompt; `own` stands in the place of the usual words, above what is known of the workspace."""
        engine = self.engine
        small = is_small(self.model.model, self.model.window)
        shown = self._how_to_edit() if small and not own else ""
        return system_prompt(
            workspace=engine.jail.folder,
            own=own,
            small=small,
            shown=shown,
            section=engine.section(listed=False),
            guidance=self._guidance,
            notes=engine.beginning,
        )

    def _how_to_edit(self) -> str:
        example = edit_example(self.engine.faces())
        if not example:
            return ""
        return FORM if self.model.wire == "local" else f"{EDIT_FORM}\n{example}"

    def _fall_back(self, error: ModelError) -> Model | None:
        """The model that is asked in the place of one that failed; None if there is none, or it would not help."""
        if not self._fallback or error.kind not in _PASSED_ON:
            return None
        try:
            model = self.load(self._fallback)
        except (ModelError, ConfigError) as failure:
            self._warn(f"The model {self._fallback} cannot be asked instead: {failure}")
            return None
        return None if model is self.agent.model else model

    def _on_user_text(self, text: str) -> None:
        """The user has written this. It is kept apart from the turn, where it stands among what others said."""
        self.engine.need(Addresses).hear(text)
        if self._title is not None:
            self._title.hear(text)
        if self._keeping is not None and text:
            self._keeping.note(WRITTEN, text)

    def _on_answer(self, words: str) -> None:
        if self._title is not None:
            self._title.answer(words)

    def _make_title(self, earlier: "Resumed | None") -> ThreadTitle | None:
        """What makes the conversation's title, unless it has one. A recording holds only what it is about."""
        if self._keeping is None or not self.engine.settings.threads.titles or self._is_replayed or self._record:
            return None
        if earlier is not None and earlier.titled_by:
            return None
        title = ThreadTitle(self.engine.session_id, self._title_model, self._entitle, self._pay)
        for text in () if earlier is None else earlier.written[:1]:
            title.hear(text)
        return title

    def _title_model(self) -> Model | None:
        """The small model that is set, else the small one of the host of the session's model."""
        models = self.engine.settings.models
        name = models.small or small_model(self.agent.model.name, models)
        return self.load(name) if name else None

    def _entitle(self, title: str) -> None:
        if self._keeping is not None:
            self._keeping.rename(title, "model")

    def _pay(self, usage: "Usage", model: Model) -> None:
        self.agent.pay(usage, model)
        if not self.agent.is_running:  # else it is noted with the end of the prompt
            self.agent.talk.note("spent", self.agent.talk.spent)

    def rename(self, title: str) -> None:
        """Give the conversation the user's own title, which no other replaces.

        Raises `ConfigError` if it is not kept, or if nothing was said in it yet.
        """
        line = " ".join(clean(title).split())
        if not line:
            raise ConfigError("A title needs words.")
        if self._keeping is None:
            raise ConfigError("This conversation is not kept (threads.keep is false), so it has no title.")
        if not self.agent.talk.past.number and not self.agent.turns:
            raise ConfigError("Nothing was said in this conversation yet, so there is nothing to name.")
        self._keeping.rename(line, "user")

    async def copy(self) -> str:
        """Copy the conversation, as far as it goes, and return the id of the copy. Nothing else changes.

        Raises `ConfigError` if it is not kept, or if nothing was said in it yet.
        """
        if self._keeping is None:
            raise ConfigError("This conversation is not kept (threads.keep is false), so it cannot be copied.")
        if not self.agent.talk.past.number and not self.agent.turns:
            raise ConfigError("Nothing was said in this conversation yet, so there is nothing to copy.")

        await self._keeping.flush()
        return await asyncio.to_thread(copy_thread, self._state, self.engine.session_id, new_session_id())

    def _check_price(self, model: Model) -> None:
        if sentence := cost_limit_warning(model, self.agent.talk.setup.limits):
            self._warn(sentence)

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
        folder = os.path.join(self._state, "threads", "open")
        try:
            self._claim = Claim(folder, self.engine.session_id)
        except OSError as error:
            # Of a new one nobody else can know; that it is not kept is said when it should be.
            if self._resume:
                raise ConfigError(
                    f"The conversation cannot go on: {folder} cannot be written ({os.strerror(error.errno or 0)}). "
                    "Mend that, or begin a new one."
                ) from error

    async def _load_thread(self) -> "Resumed":
        resumed = await asyncio.to_thread(load_thread, self._threads(), self.engine.session_id)
        if resumed.lost:
            self._warn(f"{resumed.lost} parts of the conversation could not be read and are left out.")
        if resumed.workspace not in {"", self.engine.jail.folder}:
            self._warn(f"The conversation was had in {resumed.workspace}; it goes on in {self.engine.jail.folder}.")
        return resumed

    def _tell_unasked(self) -> None:
        """Say once, to whoever uses this state folder, that commands run without a question and how to be asked."""
        self.engine.policy.unasked.tell = lambda: None
        if is_first(self._state, "unasked"):
            self._warn(_UNASKED)

    def _tell_left_out(self, left_out: Mapping[str, str]) -> None:
        """Say what no checkpoint keeps, unless nobody would miss it."""
        missed = {path: why for path, why in left_out.items() if os.path.basename(path) not in CACHES}
        if words := left_out_words(missed, self.engine.jail.display_path):
            self._warn(f"Checkpoints leave out {words}: what commands change there cannot be taken back.")

    def _warn(self, sentence: str) -> None:
        self._on_event(Warned(thread=self.engine.session_id, sentence=sentence))

    async def _store_output(self, text: str, call_id: str, tool: str) -> str:
        return await self.engine.store.put(text, call_id=call_id, tool=tool)

    def _small(self) -> Model | None:
        """The model for summaries, where one is set and can be had."""
        name = self.engine.settings.models.small
        if not name or self._is_replayed:
            return None
        try:
            return self.load(name)
        except (ModelError, ConfigError):
            return None

    def _model_for(self, agent: Subagent) -> Model:
        """A subagent's own model: what it asks for, what the settings say for its kind, or the session's."""
        name = model_name(agent, self.engine.settings.models.roles, self.agent.model.name)
        if not name or self._is_replayed:
            return self.agent.model
        return self.load(name)

    def _hear(self, event: Event) -> None:
        if hasattr(self, "agent"):
            self.agent.hear(event)
        elif isinstance(event, HookRun):
            self._early.append(event)

    async def _close(self) -> None:
        # What one of them fails with, or a signal in the middle, leaves the others closed all the same.
        async with contextlib.AsyncExitStack() as closing:
            closing.callback(self._let_go)
            for model in self._models.values():
                closing.push_async_callback(model.close)
            if self._keeping is not None:
                closing.push_async_callback(self._keeping.close)
                closing.callback(self._keep_reads)
            if hasattr(self, "engine"):
                closing.push_async_callback(self.engine.close)
            if hasattr(self._helpers, "children"):
                closing.push_async_callback(self._helpers.children.close)
            if self._title is not None:
                closing.push_async_callback(self._title.close)

    def _keep_reads(self) -> None:
        """What came to be known behind the last turn, as by an undo; nothing where nothing was said."""
        if hasattr(self, "agent") and self.agent.talk.past.number:
            self.agent.talk.keep_reads()

    def _let_go(self) -> None:
        if self._store is not None:
            self._store.close()
        if self._claim is not None:
            self._claim.close()
            self._claim = None
