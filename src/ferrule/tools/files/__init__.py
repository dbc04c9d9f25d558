"""Built-in tools: files."""
