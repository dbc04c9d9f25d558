"""Real changes, made again through the tools."""
