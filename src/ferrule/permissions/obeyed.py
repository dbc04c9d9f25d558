"""What runs or obeys a protected file, in words for whoever is asked whether it may be written."""

import os

_FOLDERS = {
    ".vscode": "VS Code runs its tasks and obeys its settings",
    ".idea": "the editors of JetBrains run and obey it",
    ".zed": "Zed runs its tasks and obeys its settings",
    ".devcontainer": "editors build and start containers by it",
    ".claude": "Claude Code and Ferrule take settings, hooks, commands, agents and skills from there",
    ".codex": "Codex obeys it",
    ".gemini": "the Gemini CLI obeys it",
    ".cursor": "Cursor obeys it",
    ".opencode": "opencode obeys it",
    ".amp": "Amp and Ferrule take settings and tools from there",
    ".agents": "agents, Ferrule among them, run what is there",
    ".ah": "agents, Ferrule among them, run what is there",
    ".husky": "git runs it at commits and pushes",
    ".githooks": "git runs it at commits and pushes",
    ".config": "shells and git obey it",
}
_FILES = {
    ".mcp.json": "Claude Code and Ferrule start MCP servers by it",
    ".pre-commit-config.yaml": "pre-commit runs programs by it at every commit",
    "lefthook.yml": "lefthook runs programs by it at commits and pushes",
    "lefthook.yaml": "lefthook runs programs by it at commits and pushes",
    ".gitconfig": "git obeys it, and runs programs that it names",
    ".gitmodules": "git obeys it, and fetches from where it says",
    "sitecustomize.py": "Python runs it whenever it starts",
    "usercustomize.py": "Python runs it whenever it starts",
    ".yarnrc": "Yarn obeys it, and runs programs that it names",
    ".yarnrc.yml": "Yarn obeys it, and runs programs that it names",
    ".pnpmfile.cjs": "pnpm runs it at every installation",
}
_SHELL = ("rc", "profile", "aliases", "env", "login", "logout")


def obeyed_by(path: str) -> str:
    """The end of a sentence; the nearest name in the path decides."""
    name = os.path.basename(path).lower()
    if name in _FILES:
        return _FILES[name]
    if name.endswith(".pth"):
        return "Python runs it whenever it starts"
    for part in reversed(path.lower().split(os.sep)[:-1]):
        if part in _FOLDERS:
            return _FOLDERS[part]
    if name.startswith(".") and name.endswith(_SHELL):
        return "shells run it when they start"
    return "programs run or obey it by themselves"
