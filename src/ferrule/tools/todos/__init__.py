"""Built-in tools: the list of what is to be done, with an order and owners."""
