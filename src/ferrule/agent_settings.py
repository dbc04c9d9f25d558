"""The settings about models, the loop and what belongs to it, with their defaults."""

from typing import Annotated, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_Dollars = Annotated[float, msgspec.Meta(ge=0)]


class ModelHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where models are: an address that speaks one of the four APIs."""

    api: Literal["", "anthropic", "openai-chat", "openai-responses", "gemini"] = ""
    """What it speaks; for a host that is not known beforehand, `openai-chat` where nothing is said."""
    url: str = ""
    key_env: str = ""
    """The environment variable with its key."""
    headers: dict[str, str] = {}
    """More headers; `${NAME}` is expanded."""


class KnownModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a model, over what Ferrule knows itself. Prices are dollars for a million tokens."""

    window: _Count | None = None
    most_output: _Count | None = None
    input: _Dollars | None = None
    output: _Dollars | None = None
    cache_read: _Dollars | None = None
    cache_write: _Dollars | None = None
    vision: bool | None = None
    """Does it take pictures and PDF files?"""


class Models(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models."""

    default: str = ""
    """The model that is asked where none is named, as `anthropic:claude-opus-4-5`; `FERRULE_MODEL` comes before it."""
    small: str = ""
    """A cheaper one, for summaries and questions about pages; the session's own where nothing is said."""
    roles: dict[str, str] = {}
    """A subagent's kind, such as `finder`, `oracle` or `Explore`, or a family's short name such as `haiku` → the model
    that runs it; the session's own where nothing is said."""
    hosts: dict[str, ModelHost] = {}
    """More hosts, or other addresses of those that are known."""
    known: dict[str, KnownModel] = {}
    """A model's id, or how it begins → its window and prices."""
    retries: Annotated[int, msgspec.Meta(ge=0)] = 6
    """How often a model is asked again after a failure that may pass."""
    quiet_seconds: _Seconds = 180.0
    """A model that sends nothing for so long has broken off."""
    max_tokens: _Count | None = None
    """Of each answer; as many as the model gives, at most 32,000, where nothing is said."""
    thinking_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How much the model may think before it answers; the API's own way where nothing is said."""
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""
    """How much work a model puts into its answers, for models that are told so."""
    task_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many tokens a whole task may take, as models of Anthropic are told, to plan with; nothing enforces it."""
    betas: tuple[str, ...] = ()
    """Betas of Anthropic's API that are switched on."""


class Loop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The loop: how long it may go on by itself, and how much it remembers."""

    turns: _Count | None = None
    """How often the model may be asked for one prompt; no limit by default."""
    tokens: _Count | None = None
    """How many tokens one prompt may take."""
    cost: _Dollars | None = None
    """How many dollars one prompt may take, where the prices are known."""
    seconds: _Seconds | None = None
    """How long one prompt may take."""
    repeats: Annotated[int, msgspec.Meta(ge=2)] = 5
    """The same call with the same answer so often in a row stops the loop; two turns before, the model is told."""
    compact_at: Annotated[float, msgspec.Meta(gt=0.1, le=1)] = 0.8
    """The part of the window that the conversation may fill before it is made smaller."""
    keep_turns: _Count = 4
    """The last turns whose outputs stay as they are."""
    depth: Annotated[int, msgspec.Meta(ge=0)] = 2
    """How deep subagents may have subagents; 0 means none at all."""
    children: _Count = 8
    """How many subagents of a session run at once, at each depth."""
    child_turns: _Count = 50
    """How often a subagent's model may be asked, where nothing else is said."""


class PlanMode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Plan mode."""

    folder: str = ".ferrule/plans"
    """Where plans are written, in the workspace."""


class Conversations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The store of conversations."""

    keep: bool = True
    """Is every conversation kept?"""
    titles: bool = True
    """Does a small model make their titles: `models.small`, else the small one of the model's host?"""
    keep_days: Annotated[float, msgspec.Meta(ge=0)] = 365.0


class Terminal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terminal of `ferrule chat`."""

    theme: Literal["auto", "terminal", "dark", "light", "high-contrast", "high-contrast-light", "none"] = "auto"
    """Its colours; `auto` follows COLORFGBG, and is the terminal's own colours where that is not set."""
    title: bool = True
    """Does the title of the terminal say the folder, and whether the agent works, asks or is done?"""
    notify: Literal["auto", "bell", "osc9", "osc777", "off"] = "auto"
    """How a question that waits and the end of a long run are announced while nobody looks at the terminal."""
    notify_seconds: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """A run that took at least so long is a long one."""
    keys: Literal["emacs", "vim"] = "emacs"
    """The keys with which the input is edited."""
    pictures: Literal["auto", "kitty", "iterm2", "off"] = "auto"
    """How pictures are shown that tools read or the user attaches; `auto` only where the terminal is known."""


class Repository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A repository that the librarian may read."""

    path: str
    about: str = ""
    """What it is, for the model."""
