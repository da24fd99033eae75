"""agent_service.v1.AgentService over gRPC."""
