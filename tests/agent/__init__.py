"""The agent: the loop, its conversation, its subagents."""
