"""The agent: a model and an engine in a loop, with a history, limits, and helpers of its own kind."""
