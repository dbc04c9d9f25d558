"""The engine's services, each made when it is first needed: a session that only reads loads nothing that writes."""

import hashlib
import os
import re
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.core.access import within
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.ledger import Ledger
from ferrule.permissions.trust import Grants
from ferrule.settings import Settings
from ferrule.system import Threads
from ferrule.system.environment import Variables
from ferrule.system.folder import BY_DESCRIPTOR, Locks
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ferrule.checkpoints.checkpoint import Checkpoints
    from ferrule.checkpoints.undo import History, Undo
    from ferrule.files.guidance import Guidance
    from ferrule.files.journal import Journal
    from ferrule.output.store import Store
    from ferrule.sandbox.confinement import Confinement
    from ferrule.sandbox.web_address import Inside
    from ferrule.tools.plan import Steps
    from ferrule.tools.web import Addresses


S = TypeVar("S")
_WORKERS = 16
_LOOPBACK_PORT = re.compile(r"//(?:127\.[0-9.]+|localhost|\[::1\]):([0-9]{1,5})(?![0-9])")


class Services:
    """One object of each kind, whichever thread asks first; `services[Writer]` is the writer."""

    def __init__(self, jail: Jail, settings: Settings, state: str, thread: str = "") -> None:
        """`thread` is the conversation that the session is of."""
        self._jail = jail
        self._thread = thread
        self._prompt = 0
        self._settings = settings
        self._state = state
        self.home: list[str] = [root.path for root in jail.roots]
        """The folders that the session began with."""
        self.is_held: Callable[[], bool] = bool
        """Is nothing to be written now, because the session plans?"""
        self.is_shared = False
        """Do all such sessions of the workspace share one /tmp for commands?"""
        self.is_watched = False
        """Does a person sit before the session?"""
        self.no_checkpoints = ""
        """Why nothing is kept of what commands change, where that cannot be done."""
        if any(within(os.path.realpath(os.path.expanduser("~")), root.path) for root in jail.roots):
            self.no_checkpoints = "the workspace holds the home folder"
        self.can_take_back: Callable[[], bool] = self.keeps_checkpoints
        """Is a checkpoint made before commands, so that what they change can be taken back?"""
        self.left_out: Callable[[str], bool] = self._table_says
        """Would a checkpoint leave this file or folder out, by its absolute path?"""
        jail.own_tmp = self.own_tmp
        self._lock = threading.RLock()  # taken again by a factory that needs another service
        # By name: asking for a service must not load its type.
        self._made: dict[str, Any] = {
            "Jail": jail,
            "Settings": settings,
            "Guard": Guard(settings.files.guarded_allow, jail),
            "Ledger": Ledger(),
            "Threads": Threads(_WORKERS),
        }
        self._factories: dict[str, Callable[[], object]] = {
            "Addresses": self._make_addresses,
            "Checkpoints": self._make_checkpoints,
            "Confinement": self._make_confinement,
            "Guidance": self._make_guidance,
            "History": self._make_history,
            "Restorer": self._make_restorer,
            "Roster": self._make_roster,
            "Tasks": self._make_tasks,
            "Steps": self._make_steps,
            "Journal": self._make_journal,
            "Store": self._make_store,
            "Undo": self._make_undo,
            "Variables": self._make_variables,
            "Writer": self._make_writer,
        }

    def __getitem__(self, service: type[S]) -> S:
        made = self._one(service.__name__)
        if not isinstance(made, service):
            raise TypeError(f"The engine has no {service.__module__}.{service.__qualname__}.")
        return made

    def _one(self, name: str) -> Any:
        made = self._made.get(name)
        if made is not None:
            return made
        with self._lock:
            if name not in self._made and name in self._factories:
                self._made[name] = self._factories[name]()
            return self._made.get(name)

    def put(self, service: type[S], made: S) -> None:
        """Have an object that was made elsewhere."""
        self._made[service.__name__] = made

    def later(self, name: str, make: "Callable[[], object]") -> None:
        """Have an object made elsewhere, when it is first needed."""
        self._factories[name] = make

    def endings(self) -> list[str]:
        """What is to be told of the tasks that have ended; nothing is made for it."""
        tasks = self._made.get("Tasks")
        return [] if tasks is None else [task.describe_end() for task in tasks.take_ended()]

    def warnings_of(self, name: str) -> "Sequence[str]":
        """What a service has to say, if it was made."""
        made = self._made.get(name)
        return () if made is None else made.warnings

    def begin_prompt(self, number: int) -> None:
        """What is written from now on is for this prompt of the conversation; no journal is made for it."""
        with self._lock:
            self._prompt = number
            if (journal := self._made.get("Journal")) is not None:
                journal.origin.prompt = number

    def journal(self) -> "Journal":
        made: Journal = self._one("Journal")
        return made

    def guidance(self) -> "Guidance":
        made: Guidance = self._one("Guidance")
        return made

    def steps(self) -> "Steps":
        made: Steps = self._one("Steps")
        return made

    def store(self) -> "Store":
        made: Store = self._one("Store")
        return made

    def undo(self) -> "Undo":
        made: Undo = self._one("Undo")
        return made

    def journal_folder(self) -> str:
        """Where the journal of this workspace is."""
        home = hashlib.blake2b(os.fsencode(self._jail.folder), digest_size=10).hexdigest()
        return os.path.join(self._state, "journals", home)

    def keeps_checkpoints(self) -> bool:
        """Is what commands change kept, so that it can be taken back?"""
        return self._settings.checkpoints.keep and BY_DESCRIPTOR and not self.no_checkpoints

    def has_much_kept(self) -> bool:
        """Is most of the workspace kept already, by git or by an earlier session?"""
        saved = os.path.join(self._checkpoint_folder(), "tree")
        return os.path.isdir(os.path.join(self._jail.folder, ".git", "objects")) or os.path.exists(saved)

    def _checkpoint_folder(self) -> str:
        return os.path.join(self._state, "checkpoints", os.path.basename(self.journal_folder()))

    def give_up_checkpoints(self, why: str) -> None:
        """Nothing is kept from now on, and commands are asked about."""
        self.no_checkpoints = why

    def has_checkpoints(self) -> bool:
        """Was one made in this session?"""
        return "Checkpoints" in self._made

    def checkpoints(self) -> "Checkpoints":
        made: Checkpoints = self._one("Checkpoints")
        return made

    def history(self) -> "History":
        made: History = self._one("History")
        return made

    def running_commands(self) -> list[str]:
        """The command lines that were left running."""
        tasks = self._made.get("Tasks")
        return [] if tasks is None else [task.command for task in tasks.list() if task.status == "running"]

    def sweep(self) -> None:
        """Settle what a dead process may have left in this workspace; mostly there is nothing to load anything for."""
        pending = os.path.join(self.journal_folder(), "pending")
        try:
            left = os.listdir(pending)
        except OSError:
            return
        if left:
            self.journal().sweep()

    def sweep_processes(self) -> None:
        """End what engines that are dead have left running."""
        try:
            left = os.listdir(os.path.join(self._state, "processes"))
        except OSError:
            return
        if left:
            self._one("Roster").sweep()

    def confinement(self) -> "Confinement":
        made: Confinement = self._one("Confinement")
        return made

    def why_asked(self) -> str:
        """Why confined commands ask all the same, as a sentence; empty where they run without a question."""
        wanted = self._settings.sandbox.auto_allow
        if wanted is False:
            return "sandbox.auto_allow is false."
        if wanted is True:
            return self.confinement().why_not_hidden()
        if not self.can_take_back():
            return "No checkpoint is kept here, so what commands change could not be taken back."
        return self.confinement().why_not_whole()

    def addresses(self) -> "Addresses":
        made: Addresses = self._one("Addresses")
        return made

    def is_left_out(self, path: str) -> bool:
        """What `left_out` says, whoever was asked to say it when the session had begun."""
        return self.left_out(path)

    def _table_says(self, path: str) -> bool:
        from ferrule.checkpoints import is_left_out  # for commands that run unasked

        others = [os.path.realpath(os.path.expanduser(one)) for one in self._settings.sandbox.writable]
        if is_left_out(path, self.home, others, large_bytes=self._settings.checkpoints.file_mb << 20):
            return True
        made: Checkpoints | None = self._made.get("Checkpoints")
        return made is not None and made.is_left_out(path)

    def own_tmp(self) -> str:
        """The folder that commands have as /tmp; nothing where that is the machine's."""
        confinement = self.confinement()
        return confinement.temporary() if confinement.has_own_tmp else ""

    def inside(self) -> "Inside | None":
        """The network that the session's commands share; None where none has run."""
        return self.confinement().inside() if "Confinement" in self._made else None

    def _make_addresses(self) -> object:
        from ferrule.tools.web import Addresses  # for sessions that look at the web

        return Addresses()

    def _make_confinement(self) -> object:
        from ferrule.sandbox.confinement import Confinement, Wishes

        sandbox = self._settings.sandbox
        wishes = Wishes(*(getattr(sandbox, name) for name in Wishes._fields))
        grants = Grants(self._state, self._jail.folder)
        wishes = wishes._replace(hosts=(*wishes.hosts, *grants.hosts()))
        made = Confinement(
            self._jail,
            self._one("Guard"),
            wishes,
            state=self._state,
            home=self.home,
            is_held=self.is_held,
            is_shared=self.is_shared,
        )
        made.is_watched = self.is_watched
        made.keep_host = grants.add_host
        urls = [host.url for host in self._settings.models.hosts.values()]
        made.reserved = frozenset(int(port) for url in urls for port in _LOOPBACK_PORT.findall(url))
        return made

    def _make_checkpoints(self) -> object:
        from ferrule.checkpoints.checkpoint import Checkpoints  # for sessions that run commands
        from ferrule.checkpoints.store import CheckpointLimits  # as above

        settings = self._settings.checkpoints
        guard: Guard = self._one("Guard")
        return Checkpoints(
            [os.path.realpath(folder) for folder in self.home if os.path.isdir(folder)],
            self.journal(),
            self._checkpoint_folder(),
            CheckpointLimits(settings.file_mb << 20, settings.keep_mb << 20),
            is_tracked=guard.committed.holds_folder,
            own=[os.path.realpath(self._state)],
        )

    def _make_restorer(self) -> object:
        from ferrule.checkpoints.restore import Restorer  # for sessions that go back

        return Restorer(self._jail, self.journal(), self.checkpoints())

    def _make_history(self) -> object:
        from ferrule.checkpoints.undo import History  # for sessions that go back

        return History(self.journal(), self._one("Restorer"), self.checkpoints())

    def _make_roster(self) -> object:

        return Roster(os.path.join(self._state, "processes"))

    def _make_tasks(self) -> object:
        from ferrule.system.tasks import Tasks  # for sessions that leave commands running

        return Tasks(most=self._settings.shell.background_max)

    def _make_guidance(self) -> object:
        from ferrule.files.guidance import Guidance  # for sessions that write

        sources = self._settings.sources
        return Guidance(self._jail, self._one("Guard"), user="user" in sources, project="project" in sources)

    def _make_journal(self) -> object:
        from ferrule.files.journal import Journal, WriteOrigin  # for sessions that write

        undo = self._settings.undo
        origin = WriteOrigin(self._thread)
        origin.prompt = self._prompt
        return Journal(self.journal_folder(), keep_bytes=undo.keep_mb << 20, keep_days=undo.keep_days, origin=origin)

    def _make_steps(self) -> object:
        from ferrule.tools.plan import Steps  # for sessions that plan

        return Steps()

    def _make_store(self) -> object:
        from ferrule.output.store import Store  # for outputs that are cut

        output = self._settings.output
        folder = os.path.join(self._state, "outputs")
        return Store(folder, keep_days=output.keep_days, keep_bytes=output.keep_mb << 20)

    def _make_undo(self) -> object:
        from ferrule.checkpoints.undo import Undo  # for sessions that go back

        restorer = None
        if self.keeps_checkpoints():
            restorer = lambda: (self._one("Restorer"), self.checkpoints())  # noqa: E731 - made when it is needed
        return Undo(self.journal(), self._one("Writer"), restorer)

    def _make_variables(self) -> object:

        return Variables()

    def _make_writer(self) -> object:
        from ferrule.files.transaction import Writer

        return Writer(self._jail, self.journal(), Locks(os.path.join(self._state, "locks")))

    def view(self, own: "Mapping[str, object]") -> "SubagentServices":
        """The same services for a subagent: what belongs to one conversation it has for itself."""
        return SubagentServices(self, own)

    async def close(self) -> None:
        """Let go of everything that was made: each thing also where another one could not be closed."""
        made = self._made
        async with AsyncExitStack() as closing:  # the last one that is put on it comes first
            closing.callback(self._jail.close)
            if "Checkpoints" in made:
                closing.callback(made["Checkpoints"].close)
            if "Store" in made:
                closing.push_async_callback(self.store().close)
            closing.callback(self[Threads].close)
            for name in ("Converter", "Web"):
                if name in made:
                    closing.push_async_callback(made[name].close)
            if "ThreadStore" in made:
                closing.callback(made["ThreadStore"].close)
            for name in ("Todos", "Confinement", "LanguageServers", "Tasks"):
                if name in made:
                    closing.push_async_callback(made[name].close)


class SubagentServices(Services):
    """What a subagent's calls reach: the session's services, but for what was read, where its shell is and its plan."""

    def __init__(self, parent: Services, own: "Mapping[str, object]") -> None:
        self._parent = parent
        self._jail = parent._jail  # noqa: SLF001 - of the same class
        self._settings = parent._settings  # noqa: SLF001 - the same
        self._state = parent._state  # noqa: SLF001 - the same
        self.home = parent.home
        self._lock = threading.RLock()
        self._made = {"Ledger": Ledger(), **own}
        self._factories = {"Guidance": self._make_guidance, "Steps": self._make_steps, "Tasks": self._make_tasks}

    def _one(self, name: str) -> Any:
        if name in self._made or name in self._factories:
            return super()._one(name)
        return self._parent._one(name)  # noqa: SLF001 - of the same class

    async def close(self) -> None:
        """End what the subagent has left running."""
        if "Tasks" in self._made:
            await self._one("Tasks").close()
