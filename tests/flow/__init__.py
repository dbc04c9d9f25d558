"""The whole engine: calls from the model to the reply."""
