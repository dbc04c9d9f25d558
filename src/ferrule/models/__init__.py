"""Models: what is asked goes out on a wire, what is said comes back as deltas; each kind of host is a row."""
