"""Tools about earlier conversations."""
