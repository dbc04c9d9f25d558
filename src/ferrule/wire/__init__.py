"""Wire formats: tool definitions out, calls in, replies out, for every model API, and in both directions."""
