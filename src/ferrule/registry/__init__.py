"""Names: which tool a name means, in whatever words it was called."""
