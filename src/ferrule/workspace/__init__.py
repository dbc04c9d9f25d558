"""The files under the agent's hands: where they may be, how they are read, matched, changed and undone."""
