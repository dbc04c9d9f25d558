"""The six clients: how each is installed, configured, started and driven, and how its tools are called."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.clients.script import HOOKED, Deed
from bench.clients.speech import AcpTalk, ClaudeTalk, CodexTalk, PiTalk, Talk

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "trials" / "npm"
FOLDER = ROOT / ".trials" / "clients"


class Home(NamedTuple):
    """Where one client lives during one conversation."""

    folder: Path
    project: Path
    url: str
    """Where it finds the model API."""
    hooks: str
    """The command that hooks run."""


Called = tuple[str, dict[str, Any]] | None


class Client(NamedTuple):
    """One program."""

    name: str
    package: str
    program: str
    """Its file below node_modules, by the name of the platform."""
    api: str
    """The API that it speaks."""
    model: str
    arguments: tuple[str, ...]
    talk: type[Talk]
    call: Callable[[Deed, Path], Called]
    prepare: Callable[[Home], Mapping[str, str]]
    """Writes its settings, and returns its environment."""
    can: frozenset[str] = frozenset(("pictures", "pictures in results", "agents", "hooks"))
    is_node: bool = True
    waits: bool = False
    """Do its agents work beside it, so that it has to wait for them?"""

    def command(self, modules: Path) -> list[str]:
        return [str(modules / self.program), *self.arguments]


def platform() -> str:
    """This machine as the packages of binaries name it."""
    kind = os.uname()
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(kind.machine, kind.machine)
    return f"{kind.sysname.lower()}-{machine}"


def _put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1), encoding="utf-8")


def _claude(deed: Deed, project: Path) -> Called:
    path = str(project / deed.path)
    match deed.kind:
        case "read" | "picture":
            return "Read", {"file_path": path}
        case "write":
            return "Write", {"file_path": path, "content": deed.text}
        case "edit":
            return "Edit", {"file_path": path, "old_string": deed.old, "new_string": deed.text}
        case "shell":
            return "Bash", {"command": deed.text, "description": "Run it"}
        case "wait":
            return None
        case "agent":
            values = {"description": "Read", "prompt": deed.text, "subagent_type": "general-purpose"}
            return "Agent", {**values, "run_in_background": False}


def _claude_home(home: Home) -> Mapping[str, str]:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": home.hooks}]}
    _put(home.folder / ".claude" / "settings.json", {"hooks": {"PostToolUse": [hook]}})
    return {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def _codex(deed: Deed, project: Path) -> Called:
    path = str(project / deed.path)
    match deed.kind:
        case "read":
            return "exec_command", {"cmd": f"cat {path}"}
        case "picture":
            return "view_image", {"path": path}
        case "write":
            made = "\n".join(f"+{line}" for line in deed.text.splitlines())
            patch = f"*** Begin Patch\n*** Add File: {deed.path}\n{made}\n*** End Patch\n"
            return "apply_patch", {"input": patch}
        case "edit":
            before, after = (text.splitlines()[0] for text in (deed.old, deed.text))
            patch = (
                f"*** Begin Patch\n*** Update File: {deed.path}\n@@\n-    return {before}\n+    return {after}\n"
                "*** End Patch\n"
            )
            return "apply_patch", {"input": patch}
        case "shell":
            return "exec_command", {"cmd": deed.text}
        case "agent":
            return "spawn_agent", {"task_name": "reader", "message": deed.text}
        case "wait":
            return "wait_agent", {"timeout_ms": 20_000}


def _codex_home(home: Home) -> Mapping[str, str]:
    config = """
check_for_update_on_startup = false
notify = ["sh", "-c", "{hook}"]
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
[features]
hooks = true
apps = false
plugins = false
remote_plugin = false
multi_agent_v2 = true
"""
    _put(home.folder / ".codex" / "config.toml", config.replace("{hook}", home.hooks))
    return {"CODEX_HOME": str(home.folder / ".codex")}


def _gemini(deed: Deed, project: Path) -> Called:
    path = str(project / deed.path)
    match deed.kind:
        case "read" | "picture":
            return "read_file", {"file_path": path}
        case "write":
            return "write_file", {"file_path": path, "content": deed.text}
        case "edit":
            values = {"file_path": path, "old_string": deed.old, "new_string": deed.text}
            return "replace", {**values, "instruction": "Do not add one."}
        case "shell":
            return "run_shell_command", {"command": deed.text, "description": "Run it"}
        case "wait":
            return None
        case "agent":
            return "invoke_agent", {"agent_name": "generalist", "prompt": deed.text}


def _gemini_home(home: Home) -> Mapping[str, str]:
    hook = {"matcher": "run_shell_command", "hooks": [{"type": "command", "command": home.hooks, "name": "watch"}]}
    everything = {"hooks": hook["hooks"]}
    settings = {
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "hooks": {"AfterTool": [hook], "BeforeModel": [everything], "AfterAgent": [everything]},
    }
    _put(home.folder / ".gemini" / "settings.json", settings)
    return {"GEMINI_CLI_TRUST_WORKSPACE": "true"}


def _qwen(deed: Deed, project: Path) -> Called:
    made = _gemini(deed, project)
    if made is None:
        return None
    name, values = made
    match deed.kind:
        case "edit":
            return "edit", {name: value for name, value in values.items() if name != "instruction"}
        case "shell":
            return name, {**values, "is_background": False}
        case "agent":
            given = {"description": "Read", "prompt": deed.text, "subagent_type": "general-purpose"}
            return "agent", {**given, "run_in_background": False}
    return made


def _qwen_home(home: Home) -> Mapping[str, str]:
    hook = {"matcher": "run_shell_command", "hooks": [{"type": "command", "command": home.hooks, "name": "watch"}]}
    settings = {
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "hooks": {"PostToolUse": [hook]},
        "model": {"name": "gpt-6-sol"},
    }
    _put(home.folder / ".qwen" / "settings.json", settings)
    return {"OPENAI_MODEL": "gpt-6-sol", "QWEN_TELEMETRY_ENABLED": "false"}


def _opencode(deed: Deed, project: Path) -> Called:
    path = str(project / deed.path)
    match deed.kind:
        case "read" | "picture":
            return "read", {"filePath": path}
        case "write":
            return "write", {"filePath": path, "content": deed.text}
        case "edit":
            return "edit", {"filePath": path, "oldString": deed.old, "newString": deed.text}
        case "shell":
            return "bash", {"command": deed.text, "description": "Run it"}
        case "wait":
            return None
        case "agent":
            return "task", {"description": "Read", "prompt": deed.text, "subagent_type": "general"}


def _opencode_home(home: Home) -> Mapping[str, str]:
    model = {
        "name": "m",
        "attachment": True,
        "tool_call": True,
        "reasoning": True,
        "limit": {"context": 400_000, "output": 32_000},
    }
    model["modalities"] = {"input": ["text", "image"], "output": ["text"]}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{home.url}/v1", "apiKey": "{env:OPENAI_API_KEY}"},
        "models": {"deepseek-v5": model},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "provider": {"ferrule": provider},
        "model": "ferrule/deepseek-v5",
        "small_model": "ferrule/deepseek-v5",
        "permission": "allow",
    }
    command = json.dumps(home.hooks)
    plugin = (
        'import { execSync } from "node:child_process"\n'
        "export const Watch = async () => ({\n"
        f'  "tool.execute.after": async (input) => {{ if (input.tool === "bash") execSync({command}) }},\n'
        "})\n"
    )
    path = home.folder / "watch.js"
    _put(path, plugin)
    # In its own folder a configuration has a package of npm installed beside it.
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps({**config, "plugin": [path.as_uri()]}),
        # Its own plugins have a package of npm installed in the background.
        "npm_config_registry": home.url,
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def _pi(deed: Deed, project: Path) -> Called:
    path = str(project / deed.path)
    match deed.kind:
        case "read" | "picture":
            return "read", {"path": path}
        case "write":
            return "write", {"path": path, "content": deed.text}
        case "edit":
            return "edit", {"path": path, "edits": [{"oldText": deed.old, "newText": deed.text}]}
        case "shell":
            return "bash", {"command": deed.text}
        case "agent" | "wait":
            return None


def _pi_home(home: Home) -> Mapping[str, str]:
    model = {"id": "claude-opus-5-5", "input": ["text", "image"], "reasoning": True, "contextWindow": 400_000}
    provider = {"baseUrl": home.url, "api": "anthropic-messages", "apiKey": "$OPENAI_API_KEY", "models": [model]}
    agent = home.folder / ".pi" / "agent"
    _put(agent / "models.json", {"providers": {"ferrule": provider}})
    _put(agent / "settings.json", {"retry": {"baseDelayMs": 200}})
    command = json.dumps(home.hooks)
    extension = (
        'import { execSync } from "node:child_process";\n'
        "export default function (pi) {\n"
        f'  pi.on("tool_result", async (event) => {{ if (event.toolName === "bash") execSync({command}); }});\n'
        "}\n"
    )
    _put(agent / "extensions" / "watch.ts", extension)
    return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_CODING_AGENT_DIR": str(agent)}


CLIENTS = (
    Client(
        "claude",
        "@anthropic-ai/claude-code",
        f"@anthropic-ai/claude-code-{platform()}/claude",
        "anthropic",
        "claude-opus-5-5",
        (
            *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
            "--include-partial-messages",
            *("--model", "claude-opus-5-5", "--allowedTools", "Read,Write,Edit,Bash,Agent,Task"),
        ),
        ClaudeTalk,
        _claude,
        _claude_home,
        is_node=False,
    ),
    Client(
        "codex",
        "@openai/codex",
        ".bin/codex",
        "openai-responses",
        "gpt-5.5",
        ("app-server",),
        CodexTalk,
        _codex,
        _codex_home,
        waits=True,
    ),
    Client(
        "gemini",
        "@google/gemini-cli",
        ".bin/gemini",
        "gemini",
        "gemini-3-pro-preview",
        ("--acp", "--approval-mode", "yolo", "--model", "gemini-3-pro-preview"),
        AcpTalk,
        _gemini,
        _gemini_home,
    ),
    Client(
        "opencode",
        "opencode-ai",
        f"opencode-{platform()}/bin/opencode",
        "openai-chat",
        "gpt-6-sol",
        ("acp",),
        AcpTalk,
        _opencode,
        _opencode_home,
        is_node=False,
    ),
    Client(
        "pi",
        "@earendil-works/pi-coding-agent",
        ".bin/pi",
        "anthropic",
        "claude-opus-5-5",
        (
            "--mode",
            "rpc",
            "--provider",
            "ferrule",
            "--model",
            "claude-opus-5-5",
            "--thinking",
            "medium",
            "--no-session",
        ),
        PiTalk,
        _pi,
        _pi_home,
        can=frozenset(("pictures", "pictures in results", "hooks")),
    ),
    Client(
        "qwen",
        "@qwen-code/qwen-code",
        ".bin/qwen",
        "openai-chat",
        "gpt-6-sol",
        ("--acp", "--approval-mode", "yolo"),
        AcpTalk,
        _qwen,
        _qwen_home,
    ),
)


def hook(project: Path) -> str:
    """The command that hooks run."""
    return f"echo watched >> {project / HOOKED}"
