"""serve/mcp."""
