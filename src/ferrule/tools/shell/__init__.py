"""Built-in tools: shell."""
