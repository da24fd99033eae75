"""Generated from protos/memory_service/v1; `make proto` writes it."""
