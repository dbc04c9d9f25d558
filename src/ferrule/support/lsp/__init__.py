"""Speaking with a language server: frames, questions and answers, and the process at the other end."""
