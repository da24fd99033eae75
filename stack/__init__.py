"""The three services together on one machine."""
