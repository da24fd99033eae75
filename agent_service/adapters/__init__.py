"""One foreign system per file."""
