"""The engine as an MCP server."""
