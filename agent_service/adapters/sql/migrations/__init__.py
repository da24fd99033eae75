"""The history of the schema, oldest first; database.migrate runs it."""
