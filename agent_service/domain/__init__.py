"""The rules of a conversation, pure: no waiting, no foreign system."""
