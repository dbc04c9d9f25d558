"""Tools that give work to subagents."""
