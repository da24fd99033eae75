"""The rules of memory, pure: no waiting, no foreign system."""
