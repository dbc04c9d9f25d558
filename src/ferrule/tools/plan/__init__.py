"""Built-in tools: the plan of a session."""
