"""List the hosts of models, and store and find their keys.

A key is kept under the name of the variable that would hold it, so that hosts that share a variable share a key.
A small file says which keys there are and where. Nothing else tells whether the keyring is worth loading.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError, near
from ferrule.permissions.trust import StateFile
from ferrule.settings import ModelHost, Models, state_folder

_LOCAL_NAMES = ("localhost", "host.docker.internal")
_LOCAL_ENDS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


class KnownHost(NamedTuple):
    """A host that is known beforehand."""

    api: str
    url: str
    keys: tuple[str, ...] = ()
    """The variables that may hold its key, the first one that is set; none where it wants no key."""
    urls: tuple[str, ...] = ()
    """The variables that may hold another address."""
    begins: tuple[str, ...] = ()
    """A bare model id that begins so is one of this host's."""
    max_tokens: str = "max_tokens"
    """What a Chat body calls the most tokens of an answer."""
    marks: str = ""
    """A Chat body for models with this in their id takes a mark of what is to be kept in the cache."""
    conversation: bool = False
    """Does it take a name of the conversation, by which it finds what it keeps of it?"""
    takes_thinking: bool = True
    """May a Chat body bring back what the model thought?"""
    free: bool = False
    """Does it speak plain HTTP to any address? Only where somebody set it up themselves."""
    rooted: bool = False
    """Is it at the same path on every machine? Others that speak the API of a host may be anywhere."""
    default: str = ""
    """The model that is asked if this host has a key and nobody has chosen one; the first row with both wins."""
    small: str = ""
    """A cheap model of this host, for titles, if the settings name none."""


ROWS: dict[str, KnownHost] = {
    "anthropic": KnownHost(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        ("claude-",),
        default="claude-opus-5-5",
        small="claude-haiku-5-5",
    ),
    "openai": KnownHost(
        "openai-responses",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        ("gpt-", "o1", "o3", "o4", "chatgpt-", "codex-"),
        conversation=True,
        default="gpt-6.1-sol",
        small="gpt-6-luna",
    ),
    "openai-chat": KnownHost(
        "openai-chat",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        max_tokens="max_completion_tokens",
        conversation=True,
        takes_thinking=False,
    ),
    "gemini": KnownHost(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"),
        ("gemini-", "gemma-"),
        rooted=True,
        default="gemini-3.8-flash",
    ),
    "openrouter": KnownHost(
        "openai-chat",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        ("OPENROUTER_BASE_URL",),
        marks="anthropic/",
        default="anthropic/claude-opus-5.5",
    ),
    "deepseek": KnownHost(
        "openai-chat",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        begins=("deepseek-",),
        default="deepseek-chat",
    ),
    "mistral": KnownHost(
        "openai-chat",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        begins=("mistral-", "codestral-", "devstral-", "magistral-"),
        takes_thinking=False,
        default="devstral-latest",
    ),
    "groq": KnownHost(
        "openai-chat",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        takes_thinking=False,
        default="openai/gpt-oss-120b",
    ),
    "xai": KnownHost(
        "openai-chat",
        "https://api.x.ai/v1",
        ("XAI_API_KEY",),
        begins=("grok-",),
        takes_thinking=False,
        default="grok-code-fast-1",
    ),
    "ollama": KnownHost("openai-chat", "http://127.0.0.1:11434/v1", (), ("OLLAMA_HOST",), rooted=True),
    "vllm": KnownHost("openai-chat", "http://127.0.0.1:8000/v1", (), ("VLLM_BASE_URL",), rooted=True),
    "llamacpp": KnownHost("openai-chat", "http://127.0.0.1:8080/v1", (), ("LLAMACPP_BASE_URL",), rooted=True),
    "lmstudio": KnownHost("openai-chat", "http://127.0.0.1:1234/v1", (), ("LMSTUDIO_BASE_URL",), rooted=True),
}
ALIASES = {"google": "gemini", "openai-responses": "openai", "llama.cpp": "llamacpp", "lm-studio": "lmstudio"}

_PORTS = {"OLLAMA_HOST": 11434}
"""A variable that may hold a bare machine name and nothing else, and the port that is meant then."""
_ENDS = {
    "anthropic": ("/messages", "/v1"),
    "openai-chat": ("/chat/completions",),
    "openai-responses": ("/responses",),
}
"""What an API has in its paths, and some write into its address all the same."""


class Host:
    """A host as it is asked: nothing of it is looked up again. Its key is in no text that it makes of itself."""

    def __init__(
        self,
        name: str,
        row: KnownHost,
        *,
        key: str = "",
        key_env: str = "",
        headers: Mapping[str, str] = {},
        moved: str = "",
        key_from: str = "",
    ) -> None:
        self.name = name
        self.row = row
        self.api = row.api
        self.url = row.url
        self.moved = moved
        """What has set its address; empty where it is the usual one."""
        self.key_env = key_env
        """The variable that has the key or, where none is set, should have it; empty where none is wanted."""
        self.key = key
        self.key_from = key_from
        """Where the key comes from: `environment`, `keyring` or `file`; empty without one."""
        self.headers = dict(headers)

    def __repr__(self) -> str:
        return f"Host({self.name!r}, {self.api!r}, {self.url!r})"

    @property
    def where(self) -> str:
        """Where its address was set, or can be."""
        return self.moved or _setting(self.name)

    def takes_marks(self, model: str) -> bool:
        """Does a Chat body for this model take marks of what is to be kept in the cache?"""
        return bool(self.row.marks) and self.row.marks in model.lower()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be seen in any message."""
        return tuple(value for value in (self.key, *self.headers.values()) if len(value) > 3)


def _setting(name: str) -> str:
    return f"models.hosts.{name}.url in the settings"


def host_names(settings: Models) -> list[str]:
    """The names of all hosts, those of the settings first."""
    return list(dict.fromkeys((*settings.hosts, *ROWS)))


def key_names(name: str, settings: Models) -> tuple[str, ...]:
    """The names under which a host's key may be: of variables, and of keys that `ferrule login` keeps."""
    given = settings.hosts.get(name)
    if given is not None and given.key_env:
        return (given.key_env,)
    row = ROWS.get(ALIASES.get(name, name))
    return row.keys if row is not None and row.keys else ()


def find_host(
    name: str,
    settings: Models,
    environment: Mapping[str, str],
    stored: "Callable[[str], StoredKey | None]" = lambda _: None,
) -> Host:
    """A host by its name. A key that is `stored` counts if the environment has none.

    Raises ConfigError where there is none, or its address cannot be used.
    """
    given = settings.hosts.get(name)
    known = ROWS.get(ALIASES.get(name, name))
    if known is None and given is None:
        raise ConfigError(_unknown(name, host_names(settings)))
    row = known or KnownHost("openai-chat", "")
    moved = ""
    if known is not None and (moved := _first(row.urls, environment)):
        row = row._replace(url=_normalize_address(environment[moved], moved), free=True)
    if given is not None:
        moved = _setting(name) if given.url else moved
        row = _override_row(row, given)
    row = row._replace(url=_whole(row, known))
    _check(name, row, f" (set by {moved})" if moved else "")
    names = key_names(name, settings)
    found = _first(names, environment)
    written = {} if given is None else given.headers
    headers = {
        key: _expand_variables(text, environment, f"The header {key!r} of the host {name}")
        for key, text in written.items()
    }
    kept = next(filter(None, map(stored, names)), None) if not found else None
    key = environment[found].strip() if found else (kept.key if kept else "")
    _check_sent(key, f"The key in {found or 'store of `ferrule login`'}")
    if key[:1] in {'"', "'"}:
        raise ConfigError(f"The key in {found} stands in quotes, and would be sent with them: set it without.")
    for header, text in headers.items():
        _check_sent(header + text, f"The header number {list(headers).index(header) + 1} of the host {name}")
    return Host(
        name,
        row,
        key=key,
        key_env=found or (names[0] if names else ""),
        headers=headers,
        moved=moved,
        key_from="environment" if found else (kept.where if kept else ""),
    )


def _override_row(row: KnownHost, given: ModelHost) -> KnownHost:
    if given.url:
        row = row._replace(url=given.url, free=True)
    if given.api and given.api != row.api:
        row = row._replace(api=given.api, max_tokens="max_tokens", marks="", conversation=False)
    return row


def _first(names: Iterable[str], environment: Mapping[str, str]) -> str:
    return next((name for name in names if environment.get(name, "").strip()), "")


def _normalize_address(address: str, variable: str) -> str:
    """An address as a variable has it: some hold a machine's name only."""
    url = address.strip()
    if "://" not in url:
        url = f"http://{url}"
    scheme, _, rest = url.partition("://")
    machine, slash, path = rest.partition("/")
    if variable in _PORTS:
        if not _has_port(machine):
            machine = f"{machine}:{_PORTS[variable]}"
        # It says where a server listens, and one that listens everywhere is here.
        machine = machine.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:")
    return f"{scheme}://{machine}{slash}{path}"


def _whole(row: KnownHost, known: KnownHost | None) -> str:
    """An address as it is asked, whether it was written with the paths of the API, with its version, or without."""
    url = row.url.rstrip("/")
    for end in _ENDS.get(row.api, ()):
        url = url.removesuffix(end)
    is_bare = not any(sign in url.partition("://")[2] for sign in "/?#")
    if known is not None and known.rooted and known.api == row.api and is_bare:
        url += "/" + known.url.partition("://")[2].partition("/")[2]
    return url


def _has_port(machine: str) -> bool:
    return machine.rpartition(":")[2].isdigit() and not machine.endswith("]")


def _expand_variables(text: str, environment: Mapping[str, str], what: str) -> str:
    """Raises ConfigError for a variable that is not set: an empty header would only be refused, and not say why."""
    if "${" not in text:
        return text

    pattern = re.compile(r"\$\{(\w+)\}")
    for name in pattern.findall(text):
        if name not in environment:
            raise ConfigError(f"{what} needs the variable {name}, which is not set. Set it in the environment.")
    return pattern.sub(lambda found: environment[found[1]], text)


def _check(name: str, row: KnownHost, by: str) -> None:
    scheme, separator, rest = row.url.partition("://")
    machine = rest.partition("/")[0]
    if not row.url:
        raise ConfigError(f"The host {name} has no address: set models.hosts.{name}.url.")
    is_odd = not row.url.isascii() or not row.url.isprintable() or any(sign in row.url for sign in " ?#")
    about = f"The address of the host {name}{by}"
    if not separator or scheme not in {"http", "https"} or not machine or is_odd:
        raise ConfigError(f"{about} must begin with https:// or http:// and name a machine.")
    if not _can_be_machine(machine.rpartition("@")[2]):
        raise ConfigError(f"{about} names no machine that there can be: look at its port.")
    if "@" in machine:
        raise ConfigError(f"{about} must not hold a name or a password: use a key variable.")
    if scheme == "http" and not row.free and not is_near(machine):
        raise ConfigError(f"{about} must begin with https://: a key would be read on the way.")


def _can_be_machine(machine: str) -> bool:
    name, bracket, port = machine.rpartition("]")
    if bracket:
        import ipaddress  # only for addresses of the sixth version

        try:
            ipaddress.IPv6Address(name.removeprefix("[") if name.startswith("[") else "")
        except ValueError:
            return False
        name, port = name[1:], port[1:] if port[:1] == ":" else "1" if not port else ""
    else:
        name, colon, port = machine.partition(":")
        port = port if colon else "1"
    return bool(name) and "[" not in name and port.isdigit() and 0 < len(port) <= 5 and 0 < int(port) < 1 << 16


def _check_sent(text: str, what: str) -> None:
    # What it holds is not shown: it is a key, or may be one.
    if not text.isascii() or not text.isprintable():
        raise ConfigError(f"{what} holds characters that cannot be sent: only plain letters, digits and signs can.")


def is_near(machine: str) -> bool:
    """Is it this machine, or one of a private network?"""
    bare = machine.rpartition(":")[0] if _has_port(machine) else machine
    bare = bare.strip("[]").lower()
    if bare in _LOCAL_NAMES or bare.endswith(_LOCAL_ENDS):
        return True
    import ipaddress  # only for addresses without https

    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_link_local


def _unknown(name: str, names: list[str]) -> str:
    if name in {"scripted", "local"}:
        return (
            f"{name} is no host but a kind of file: write {name}:FILE, for example `ferrule run --model {name}:FILE`."
        )
    # Whoever writes a whole name of a model means its host.
    meant = near(name.partition(":")[0], [*names, *ALIASES, "scripted", "local"], most=1)
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    listed = ", ".join([*names, "scripted", "local"])
    return f"No host of models is called {name!r}.{hint} There are: {listed}. More are set under models.hosts."


HOSTS = ("ollama", "llamacpp")
"""Looked at in this order."""
_MORE_HOSTS = ("vllm", "lmstudio")
"""Looked at besides by who wants to see all."""
_SECONDS = 0.3
"""For each. A server on this machine answers in a few milliseconds."""
_MOST_BYTES = 1 << 20
_MOST_MODELS = 200
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def model_here(settings: Models, environment: Mapping[str, str]) -> str:
    """The first model that a server on this machine has, as HOST:MODEL; empty if none answers."""
    for name in HOSTS:
        try:
            url = find_host(name, settings, environment).url
        except ConfigError:
            continue
        if models := _names(url):
            return f"{name}:{models[0]}"
    return ""


def models_here(settings: Models, environment: Mapping[str, str]) -> dict[str, list[str]]:
    """Host → the models that it names, of those servers on this machine that answer."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name in (*HOSTS, *_MORE_HOSTS):
        try:
            url = find_host(name, settings, environment).url
        except ConfigError:
            continue
        if url not in seen and (models := _names(url)):
            found[name] = models
        seen.add(url)
    return found


def _names(url: str) -> list[str]:
    import http.client  # only without any key and any model
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        return []
    line = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=_SECONDS)
    try:
        line.request("GET", f"{parts.path}/models", headers={"Accept": "application/json"})
        response = line.getresponse()
        said = json.loads(response.read(_MOST_BYTES)) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return []
    finally:
        line.close()
    models = said.get("data") if isinstance(said, dict) else None
    given = models if isinstance(models, list) else []
    names = [one.get("id") for one in given[:_MOST_MODELS] if isinstance(one, dict)]
    return [name for name in names if isinstance(name, str) and _talks(name)]


def _talks(name: str) -> bool:
    """Can it be a model that answers? Those that only make vectors say so in their names."""
    return name != "" and name.isprintable() and len(name) < 200 and "embed" not in name.lower()


SERVICE = "ferrule"
NAME = "credentials.json"
"""A secret file by its name, wherever the state folder is."""
Where = Literal["keyring", "file"]


class _KeyEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    where: Where = "file"
    key: str = ""
    """Empty if the keyring has it."""


class _Index(msgspec.Struct, frozen=True):
    keys: dict[str, _KeyEntry] = {}


class StoredKey(NamedTuple):
    """A key and where it is kept."""

    key: str
    where: Where

    def __repr__(self) -> str:
        return f"StoredKey(…, {self.where!r})"


class KeyStore:
    """The keys that this user has given with `ferrule login`."""

    def __init__(self, state: str | None = None) -> None:
        self._file = StateFile(os.path.join(state or state_folder(), NAME), _Index)

    @property
    def path(self) -> str:
        return self._file.path

    def names(self) -> dict[str, Where]:
        """The names that have a key, and where each is; the keyring is not asked."""
        return {name: entry.where for name, entry in self._file.read().keys.items()}

    def find(self, name: str) -> StoredKey | None:
        """The key of a name. Raises ConfigError if the keyring has it and does not give it."""
        entry = self._file.read().keys.get(name)
        if entry is None:
            return None
        if entry.where == "file":
            return StoredKey(entry.key, "file")
        try:
            key = _keyring().get_password(SERVICE, name)
        except Exception as error:  # noqa: BLE001 - every back end has errors of its own
            raise ConfigError(
                f"The key {name} is in the system's keyring, which does not give it ({type(error).__name__}). "
                f"Unlock it, set {name} in the environment, or use `ferrule login` again."
            ) from None  # a back end may have the key in its own words
        return StoredKey(key, "keyring") if key else None

    def keep(self, name: str, key: str) -> Where:
        """Keep a key in the keyring, or in the file if there is none. Returns where it is. Raises: ConfigError."""
        where: Where = "keyring" if _put(name, key) else "file"
        entry = _KeyEntry(where, "" if where == "keyring" else key)
        self._file.change(lambda index: _Index({**index.keys, name: entry}))
        return where

    def forget(self, name: str) -> Where | None:
        """Remove a key. Returns where it was, None if there was none. Raises: ConfigError."""
        entry = self._file.read().keys.get(name)
        if entry is None:
            return None
        if entry.where == "keyring":
            try:
                _keyring().delete_password(SERVICE, name)
            except Exception as error:  # noqa: BLE001 - as above
                if type(error).__name__ != "PasswordDeleteError":  # it is gone already
                    raise ConfigError(
                        f"The system's keyring does not remove the key {name} ({type(error).__name__})."
                    ) from None
        self._file.change(lambda index: _Index({other: kept for other, kept in index.keys.items() if other != name}))
        return entry.where


def stored_key(name: str) -> StoredKey | None:
    """The kept key of a name, from the state folder that holds now."""
    return KeyStore().find(name)


def _keyring() -> Any:
    import keyring  # an optional package, and slow to load

    return keyring


def _put(name: str, key: str) -> bool:
    """Put a key into the keyring. False if there is none that keeps secrets."""
    try:
        ring = _keyring()
        if float(ring.get_keyring().priority) < 1:  # back ends below that keep nothing, or keep it readable
            return False
        ring.set_password(SERVICE, name, key)
        return bool(ring.get_password(SERVICE, name) == key)
    except Exception:  # noqa: BLE001 - no package, no service, a locked keyring: the file takes it
        return False
