"""Measurements, each printed with the command that makes it."""
