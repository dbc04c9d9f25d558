"""The tools from elsewhere, as a session gathers them."""
