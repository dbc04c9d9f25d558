"""The operating system, ignorant of tools: processes, ripgrep, patterns, storage, differences."""
