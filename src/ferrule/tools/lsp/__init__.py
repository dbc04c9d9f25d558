"""tools/lsp."""
