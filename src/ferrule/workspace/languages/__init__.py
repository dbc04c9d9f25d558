"""Language servers: which there are, where they lie, how they are started and kept, and what they are told of files."""
