"""What `memory-stack up` will start: pure, so that it can be tested without starting it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Program:
    """One process: how it is called, what it is told, where it answers."""

    name: str
    module: str
    address: str
    environment: Mapping[str, str]
    migrates: bool
    """Its database must be migrated by command; on SQLite the program does that by itself."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the three listen, as host:port."""

    memory: str = "127.0.0.1:9088"
    agent: str = "127.0.0.1:9089"
    gateway: str = "127.0.0.1:8080"


def programs(addresses: Addresses, data: Path, environment: Mapping[str, str]) -> list[Program]:
    """Give the programs in starting order.

    What the environment already says about databases, Milvus and models is kept, so the same
    command also runs the stack on MySQL and a Milvus server; only addresses and targets are set.
    """
    shared = {"MEMORY_DATA_DIR": str(data), "AGENT_DATA_DIR": str(data)}
    memory = {"MEMORY_LISTEN": addresses.memory}
    agent = {"AGENT_LISTEN": addresses.agent, "AGENT_MEMORY_TARGET": addresses.memory}
    gateway = {
        "GATEWAY_LISTEN": addresses.gateway,
        "GATEWAY_AGENT_TARGET": addresses.agent,
        "GATEWAY_MEMORY_TARGET": addresses.memory,
    }
    base = {**shared, **environment}
    return [
        Program(
            "memory",
            "memory_service",
            addresses.memory,
            base | memory,
            migrates=_on_server(base.get("MEMORY_DATABASE_URL", "")),
        ),
        Program(
            "agent",
            "agent_service",
            addresses.agent,
            base | agent,
            migrates=_on_server(base.get("AGENT_DATABASE_URL", "")),
        ),
        Program("gateway", "gateway", addresses.gateway, base | gateway, migrates=False),
    ]


def _on_server(database_url: str) -> bool:
    return bool(database_url) and not database_url.startswith("sqlite")
