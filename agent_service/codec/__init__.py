"""protobuf ↔ domain, and the checks of requests; each field's rule stands in agent.proto."""
