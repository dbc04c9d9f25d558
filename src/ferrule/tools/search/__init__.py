"""Built-in tools: search."""
