"""The model families, a folder each."""
