"""Tools about tools and about servers."""
