"""Generated from protos/agent_service/v1; `make proto` writes it."""
