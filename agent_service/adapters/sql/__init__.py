"""Conversations in SQL: SQLite, MySQL and MariaDB."""
