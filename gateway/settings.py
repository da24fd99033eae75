"""Every knob of the gateway, read from the environment once. Durations are seconds."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "GATEWAY_"
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Wait = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class GatewaySettings(BaseSettings):
    """Read from GATEWAY_*; an empty variable counts as unset. Raises ValidationError."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        validate_default=True,
        populate_by_name=True,
    )

    listen: str = Field(
        default="127.0.0.1:8080",
        description="HTTP address, host:port; other than loopback only with authentication",
    )
    agent_target: str = Field(
        default="127.0.0.1:9089", description="gRPC target of the agent service"
    )
    memory_target: str = Field(
        default="127.0.0.1:9088", description="gRPC target of the memory service"
    )
    agent_token: SecretStr = Field(
        default=SecretStr(""),
        validation_alias="AGENT_SERVICE_TOKEN",
        description="Token of the agent service, from AGENT_SERVICE_TOKEN",
    )
    memory_token: SecretStr = Field(
        default=SecretStr(""),
        validation_alias="MEMORY_SERVICE_TOKEN",
        description="Token of the memory service, from MEMORY_SERVICE_TOKEN",
    )
    api_keys_file: Path | None = Field(
        default=None,
        description="File of API keys, written by `keys create`; unset: no authentication",
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Without authentication: host names of a proxy in front, by commas",
    )
    timeout: Seconds = Field(default=10.0, description="Longest call that does not stream")
    first_event_timeout: Seconds = Field(
        default=30.0, description="Longest wait for the first event of a stream"
    )
    heartbeat: Annotated[float, Field(gt=0, le=15)] = Field(
        default=10.0, description="Longest silence in a stream before a comment is sent"
    )
    max_body_bytes: Annotated[int, Field(ge=1)] = Field(
        default=4 * 1024 * 1024, description="Longest body of a request"
    )
    shutdown_grace: Wait = Field(
        default=10.0, description="Time for running requests to end after SIGTERM"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level of log lines"
    )
    log_json: bool = Field(default=False, description="Log lines as JSON")

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(name.strip() for name in value.split(",") if name.strip())
