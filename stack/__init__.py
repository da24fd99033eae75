"""The three services together on one machine, as `memory-stack up` runs them."""
