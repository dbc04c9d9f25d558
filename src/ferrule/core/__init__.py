"""The nouns: calls, replies, tools, access, arguments, errors, events. No I/O happens here."""
