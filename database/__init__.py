"""How our processes speak SQL: engines, types, threads, retries, migrations; no business word."""
