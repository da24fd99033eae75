"""The agent service: conversations with memory."""
