"""MCP servers whose tools a session may call."""
