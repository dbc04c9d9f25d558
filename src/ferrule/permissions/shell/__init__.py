"""What a command line would do, read from the tree that bash's own grammar gives it."""
