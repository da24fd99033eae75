"""The memory service: durable statements about users, found again."""
