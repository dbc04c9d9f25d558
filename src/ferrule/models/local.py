"""A model in a file on this machine: `local:FILE.gguf`, run by `xllamacpp` in this process, off the event loop."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ferrule.models.local_file import LocalFile, look
from ferrule.models.local_grammar import Bounds, grammar
from ferrule.models.local_reader import LocalReader
from ferrule.models.local_words import RESULT, Telling
from ferrule.models.model import Again, ModelError, Prices
from ferrule.wire.delta import Begun, Delta
from ferrule.wire.turn import Asked, Usage

MOST_WINDOW = 32_768
"""Of a longer window only so much is taken where nothing else is said: all of it is memory from the start."""
_UNKNOWN_WINDOW = 4096
_BATCH_TOKENS = 128
"""Between two batches of the prompt it is looked whether anybody still wants the answer."""
_SEED = 1


def load(path: str, *, window: int | None = None) -> "LocalModel":
    """The model `local:PATH`; the file is only looked at, and loaded with the first question.

    Raises: ModelError.
    """
    from importlib.util import find_spec  # only who has a model here pays for it

    if find_spec("xllamacpp") is None:
        raise ModelError("Models on this machine need an extra: pip install 'ferrule[local]'.", "no-model")
    return LocalModel(look(path), window=window)


class LocalModel:
    """Answers one question at a time; others wait. Nothing is left to chance where no temperature is asked for."""

    wire = "local"
    prices: Prices | None = None
    vision = False

    def __init__(
        self, file: LocalFile, *, window: int | None = None, start: "Callable[[LocalFile, int], Any] | None" = None
    ) -> None:
        self.name = f"local:{file.path}"
        self.model = os.path.basename(file.path)
        trained = file.context_length or _UNKNOWN_WINDOW
        self.window = min(window or MOST_WINDOW, trained)
        self.most_output = max(1, self.window // 4)
        self._file = file
        self._telling = Telling(file.template, file.specials)
        self._start = start or started
        self._server: Any = None
        self._worker: ThreadPoolExecutor | None = ThreadPoolExecutor(1, thread_name_prefix="ferrule-model")
        self._stops: set[_Stop] = set()

    async def ask(self, asked: Asked) -> AsyncGenerator[Delta | Again, None]:
        """The answer as it is made. Whoever stops listening stops it.

        Raises: ModelError.
        """
        if self._worker is None:
            raise ModelError(f"{self.name} is closed.", "no-model")
        body = self.body(asked)
        reader = LocalReader(has_tools="grammar" in body)
        stop = _Stop(asyncio.get_running_loop())
        self._stops.add(stop)
        job = self._worker.submit(self._answer, body, stop)
        job.add_done_callback(stop.done)
        finish, usage, begun = "stop", Usage(), False
        try:
            while (chunk := await stop.chunks.get()) is not None:
                if not begun:
                    begun = True
                    yield Begun(str(chunk.get("id", "")), self.model)
                usage = _usage(chunk) or usage
                for choice in chunk.get("choices", ()):
                    finish = choice.get("finish_reason") or finish
                    for delta in reader.feed(choice["delta"].get("content") or ""):
                        yield delta
            _check(job, self.name)
            for delta in reader.end(finish, usage):
                yield delta
        finally:
            stop.is_set = True
            self._stops.discard(stop)

    async def close(self) -> None:
        """Stops what it is saying and gives its memory back."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        for stop in self._stops:
            stop.is_set = True
        await asyncio.wrap_future(worker.submit(self._unload))
        worker.shutdown(wait=False)

    def body(self, asked: Asked) -> dict[str, Any]:
        """What the library is asked. Raises: ModelError."""
        most = min(asked.max_tokens or self.most_output, self.most_output)
        held = grammar(asked.definitions, asked.choice, Bounds.of(self.window))
        body = self._telling.conversation(asked.turns, asked.definitions if held else ())
        body |= {
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
            "cache_prompt": True,
            "max_tokens": most,
            "temperature": asked.temperature or 0.0,
            "seed": _SEED,
        }
        # A model that goes on as if it were the tool has nothing more to say.
        stops = [*asked.stop, *([RESULT[0]] if held else ())]
        if stops:
            body["stop"] = stops
        if held:
            body["grammar"] = held
        return body

    def _answer(self, body: dict[str, Any], stop: "_Stop") -> None:
        """On the worker's thread."""
        if self._server is None and not stop.is_set:
            self._server = self._start(self._file, self.window)
        if self._server is None or stop.is_set:
            return
        try:
            self._server.handle_chat_completions(body, stop.take)
        except Exception as error:
            raise ModelError(f"The model could not be asked: {_words(error)}.", "bad") from error
        stop.check()

    def _unload(self) -> None:
        """On the worker's thread: giving back takes a while too."""
        self._server = None


class _Stop:
    """Between the thread that makes an answer and whoever listens to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.chunks: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.is_set = False
        """Does nobody listen any more?"""
        self.error: ModelError | None = None
        self._loop = loop

    def take(self, chunk: dict[str, Any]) -> bool:
        """A piece of the answer, from the thread; True stops it."""
        if "error" in chunk:
            self.error = _trouble(chunk["error"])
            return True
        return self.is_set or not self._tell(lambda: self.chunks.put_nowait(chunk))

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def done(self, _: Future[None]) -> None:
        self._tell(lambda: self.chunks.put_nowait(None))

    def _tell(self, what: Callable[[], None]) -> bool:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            return False  # the loop is closed: nobody listens
        return True


def started(file: LocalFile, window: int) -> Any:
    """The library's server with the model in it. Raises: ModelError."""
    from importlib import import_module  # it has no types, and takes 50 ms: only who asks the model pays

    try:
        library: Any = import_module("xllamacpp")
    except ImportError as error:
        raise ModelError(f"xllamacpp cannot be used on this machine: {error}.", "no-model") from error
    parameters = library.CommonParams()
    parameters.model.path = file.path
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.chat_template = file.template
    parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    parameters.offline = True
    parameters.verbosity = -1
    threads = max(1, (os.cpu_count() or 2) // 2)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    # The library also listens on a port of this machine. Nobody has the key, so nobody else can ask the model.
    parameters.api_keys = [os.urandom(32).hex()]
    parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = parameters.endpoint_metrics = False
    try:
        return library.Server(parameters)
    except Exception as error:
        raise ModelError(
            f"The model {file.path} cannot be loaded: {_words(error)}. It may be damaged, or too large for this "
            "machine.",
            "no-model",
        ) from error


def _check(job: Future[None], name: str) -> None:
    error = job.exception()
    if isinstance(error, ModelError):
        raise error
    if error is not None:
        raise ModelError(f"{name} could not be asked: {_words(error)}.", "server") from error


def _words(error: BaseException) -> str:
    """What the library says, for the middle of a sentence."""
    return str(error).strip().rstrip(".") or type(error).__name__


def _trouble(error: dict[str, Any]) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        return ModelError(
            f"The conversation has {error.get('n_prompt_tokens', 'too many')} tokens, and the model on this machine "
            f"takes {error.get('n_ctx', 'fewer')}. Make it smaller with /compact, or offer it fewer tools.",
            "too-long",
        )
    said = str(error.get("message") or "it does not say why").strip().rstrip(".")
    return ModelError(f"The model on this machine failed: {said}.", "server")


def _usage(chunk: dict[str, Any]) -> Usage | None:
    usage = chunk.get("usage")
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details") or {}
    return Usage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), details.get("cached_tokens", 0))
