"""Memories in SQL, the truth: SQLite, MySQL and MariaDB."""
