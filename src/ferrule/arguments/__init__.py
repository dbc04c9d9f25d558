"""What a call brings: read, fitted to the tool's advertised schema, and put into its final form."""
