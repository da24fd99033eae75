"""The gateway: a thin HTTP and SSE front of the two services."""
