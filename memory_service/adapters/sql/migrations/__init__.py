"""Schema steps of the memory service."""
